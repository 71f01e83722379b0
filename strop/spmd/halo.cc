#include "strop/spmd/halo.h"

#include <algorithm>
#include <limits>

#include "strop/base/division.h"

namespace strop::spmd {
namespace {

// Each neighbour is a permute: beyond these, moving whole pieces takes fewer and larger messages.
constexpr size_t kMostNeighbours = 8;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The neighbours that one device needs something of: their places less its own.
struct Reach {
  int64_t first = 0, last = -1;  // none
  int64_t begin = 0, end = 0;    // in the pieces of the first and of the last
};

int64_t Base(const Span& span, int64_t n, int64_t c) { return span.mirrored ? n - 1 - c : c; }

Reach ReachOf(int64_t whole, int64_t n, const Span& span, int64_t c) {
  const int64_t piece = CeilDiv(whole, n), from = span.scale * c + span.offset;
  const int64_t low = span.around ? from : std::max<int64_t>(from, 0);
  const int64_t high = span.around ? from + span.size : std::min(from + span.size, whole);
  if (low >= high) return {};
  const int64_t first = FloorDiv(low, piece), last = FloorDiv(high - 1, piece), base = Base(span, n, c);
  return {first - base, last - base, low - first * piece, high - last * piece};
}

Instruction* Number(Builder& b, int64_t n) { return b.Constant(Literal::ScalarOfInt(ElementType::S32, n)); }

// scale * c + offset, s32[].
Instruction* Position(Builder& b, Resharder& resharder, const Axes& axes, int64_t scale, int64_t offset) {
  if (scale == 0) return Number(b, offset);
  Instruction* scaled = b.Make(Op::Multiply, {resharder.Coordinate(b, axes), Number(b, scale)});
  return offset == 0 ? scaled : b.Make(Op::Add, {scaled, Number(b, offset)});
}

// Elements [start, + size) of dimension d.
Instruction* Cut(Builder& b, Instruction* value, int64_t d, Instruction* start, int64_t constant_start, int64_t size) {
  const Shape& shape = value->shape();
  if (!start) {
    if (constant_start == 0 && size == shape.dim(d)) return value;
    Dims first(shape.rank(), 0), limit(shape.dims().begin(), shape.dims().end()), stride(shape.rank(), 1);
    first[d] = constant_start;
    limit[d] = constant_start + size;
    return b.Slice(value, first, limit, stride);
  }
  Dims sizes(shape.dims().begin(), shape.dims().end());
  sizes[d] = size;
  std::vector<Instruction*> operands = {value};
  for (int64_t k = 0; k < shape.rank(); ++k) operands.push_back(k == d ? start : Number(b, 0));
  return b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{std::move(sizes)}, {}, nullptr);
}

Instruction* Padded(Builder& b, Instruction* value, int64_t d, int64_t low, int64_t high, Instruction* fill) {
  if (low == 0 && high == 0) return value;
  PadAttrs pad;
  pad.padding.resize(value->shape().rank());
  pad.padding[d].low = low;
  pad.padding[d].high = high;
  return b.Make(Op::Pad, {value, fill ? fill : b.Scalar(value->shape().type(), 0)}, std::move(pad));
}

// The other way: a sender cuts out what its target needs, where that lies in its own piece, and the target puts
// together what comes. It moves as much as is asked for, where whole pieces are much more. Not around, not mirrored.
double AimedElements(int64_t n, const Span& span, const Halo& halo) {
  size_t ways = 0;
  for (const Halo::Piece& p : halo.pieces) ways += p.own ? 0 : p.ways.size();
  return static_cast<double>(span.size) * static_cast<double>(ways) / static_cast<double>(n);
}

double JoinedElements(int64_t n, const Halo& halo) {
  double sent = 0;
  for (const Halo::Piece& p : halo.pieces)
    if (!p.own) sent += static_cast<double>(p.end - p.begin) * static_cast<double>(p.ways.size());
  return sent / static_cast<double>(n);
}

bool IsAimed(int64_t n, const Span& span, const Halo& halo) {
  return halo.scale != 0 && !span.around && !span.mirrored && AimedElements(n, span, halo) < JoinedElements(n, halo);
}

// pred: is first + i, i along dimension d, at least zero and below `limit`?
Instruction* Within(Builder& b, Instruction* first, int64_t limit, int64_t d, const Int64Vector& dims) {
  Instruction* index = b.Make(Op::Add, {b.Iota(Shape::Array(ElementType::S32, dims), d), b.Broadcast(first, dims, {})});
  auto all = [&](int64_t n) { return b.Broadcast(Number(b, n), dims, {}); };
  return b.Make(Op::And,
                {b.Compare(index, all(0), CompareDirection::Ge), b.Compare(index, all(limit), CompareDirection::Lt)});
}

// `fill` where scale * c + offset + i is no element of the dimension.
Instruction* Masked(Builder& b, Resharder& resharder, Instruction* value, int64_t whole, int64_t d, const Axes& axes,
                    const Span& span, Instruction* fill) {
  const Int64Vector dims = value->shape().dims();
  Instruction* inside = Within(b, Position(b, resharder, axes, span.scale, span.offset), whole, d, dims);
  return b.Make(Op::Select, {inside, value, b.Broadcast(fill, dims, {})});
}

Instruction* TakeAimed(Builder& b, Resharder& resharder, Instruction* shard, int64_t piece, int64_t d, const Axes& axes,
                       const Span& span, const Halo& halo) {
  Instruction* around = Padded(b, shard, d, span.size, span.size, nullptr);
  Instruction* all = nullptr;
  for (size_t k = 0; k < halo.pieces.size(); ++k) {
    const Halo::Piece& p = halo.pieces[k];
    if (p.ways.empty()) continue;
    const int64_t from = halo.first + static_cast<int64_t>(k);  // the sender's coordinate less the target's
    // Where the target's span begins in the sender's piece: by the target's coordinate, by the sender's.
    const int64_t by_target = span.offset - from * piece, by_sender = span.offset - from * span.scale;
    Instruction* start = Position(b, resharder, axes, span.scale - piece, by_sender + span.size);
    Instruction* cut = around && start ? Cut(b, around, d, start, 0, span.size) : nullptr;
    if (cut && !p.own) cut = resharder.Send(b, cut, axes, p.ways);
    if (!cut) return nullptr;
    Instruction* begins = Position(b, resharder, axes, span.scale - piece, by_target);
    all = all ? b.Make(Op::Select, {Within(b, begins, piece, d, cut->shape().dims()), cut, all}) : cut;
    if (!all) return nullptr;
  }
  return all;
}

// Of a value that each device has as a whole.
Instruction* CutWhole(Builder& b, Resharder& resharder, Instruction* value, int64_t d, const Axes& axes, int64_t n,
                      const Span& span, Instruction* fill) {
  const int64_t last = span.scale * (n - 1) + span.offset, size = value->shape().dim(d);
  const int64_t low = std::max<int64_t>(0, -std::min(span.offset, last));
  const int64_t high = std::max<int64_t>(0, std::max(span.offset, last) + span.size - size);
  Instruction* padded = Padded(b, value, d, low, high, fill);
  Instruction* start = Position(b, resharder, axes, span.scale, span.offset + low);
  return padded && start ? Cut(b, padded, d, start, 0, span.size) : nullptr;
}

}  // namespace

Halo PlanHalo(int64_t whole, int64_t n, const Span& span) {
  const int64_t piece = CeilDiv(whole, n);
  std::vector<Reach> reaches;
  int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
  for (int64_t c = 0; c < n; ++c) {
    const Reach& r = reaches.emplace_back(ReachOf(whole, n, span, c));
    if (r.first > r.last) continue;
    first = std::min(first, r.first);
    last = std::max(last, r.last);
  }
  Halo halo;
  if (first > last) first = last = 0;
  for (int64_t k = first; k <= last; ++k) {
    Halo::Piece p{.begin = k == first ? piece : 0, .end = k == last ? 0 : piece, .ways = {}, .own = false};
    for (int64_t c = 0; c < n; ++c) {
      const Reach& r = reaches[c];
      if (k < r.first || k > r.last) continue;
      if (k == first && r.first == k) p.begin = std::min(p.begin, r.begin);
      if (k == last && r.last == k) p.end = std::max(p.end, r.end);
      p.ways.emplace_back(((Base(span, n, c) + k) % n + n) % n, c);
    }
    if (p.ways.empty()) p.begin = 0, p.end = piece;
    p.own = !span.mirrored && k % n == 0;
    halo.pieces.push_back(std::move(p));
  }
  halo.first = first;
  int64_t length = 0;
  for (const Halo::Piece& p : halo.pieces) length += p.end - p.begin;
  // Where the joined pieces begin, as a function of c.
  const int64_t sign = span.mirrored ? -1 : 1, base = span.mirrored ? n - 1 : 0;
  halo.scale = span.scale - sign * piece;
  halo.offset = span.offset - (base + first) * piece - halo.pieces.front().begin;
  for (int64_t c = 0; c < n; ++c) {
    const int64_t at = halo.scale * c + halo.offset, from = span.scale * c + span.offset;
    halo.low = std::max(halo.low, -at);
    halo.high = std::max(halo.high, at + span.size - length);
    halo.leaves = halo.leaves || (!span.around && (from < 0 || from + span.size > whole));
  }
  halo.offset += halo.low;
  return halo;
}

double ElementsSent(int64_t whole, int64_t n, const Span& span) {
  const Halo halo = PlanHalo(whole, n, span);
  if (halo.pieces.size() > kMostNeighbours) return std::numeric_limits<double>::infinity();
  return IsAimed(n, span, halo) ? AimedElements(n, span, halo) : JoinedElements(n, halo);
}

Instruction* TakeSpan(Builder& b, Resharder& resharder, Instruction* shard, int64_t whole, int64_t d, const Axes& axes,
                      const Span& span, Instruction* fill, bool is_whole) {
  const int64_t n = resharder.mesh().SizeOf(axes);
  if (is_whole) return CutWhole(b, resharder, shard, d, axes, n, span, fill);
  const Halo halo = PlanHalo(whole, n, span);
  if (IsAimed(n, span, halo)) {
    Instruction* aimed = TakeAimed(b, resharder, shard, CeilDiv(whole, n), d, axes, span, halo);
    return aimed && fill && halo.leaves ? Masked(b, resharder, aimed, whole, d, axes, span, fill) : aimed;
  }
  std::vector<Instruction*> pieces;
  for (const Halo::Piece& p : halo.pieces) {
    if (p.begin >= p.end) continue;
    Instruction* piece = Cut(b, shard, d, nullptr, p.begin, p.end - p.begin);
    if (!piece) return nullptr;
    if (p.own) {
      pieces.push_back(piece);
    } else {
      pieces.push_back(p.ways.empty() ? b.Splat(piece->shape().type(), 0, piece->shape().dims())
                                      : resharder.Send(b, piece, axes, p.ways));
    }
    if (!pieces.back()) return nullptr;
  }
  Instruction* joined = pieces[0];
  if (pieces.size() > 1) joined = b.Make(Op::Concatenate, pieces, DimensionsAttrs{Dims{d}}, {}, nullptr);
  if (!joined) return nullptr;
  joined = Padded(b, joined, d, halo.low, halo.high, fill);
  if (!joined) return nullptr;
  Instruction* start = halo.scale == 0 ? nullptr : Position(b, resharder, axes, halo.scale, halo.offset);
  Instruction* taken = Cut(b, joined, d, start, halo.offset, span.size);
  // Nobody sends what is beyond the ends: that is zero already.
  const bool zeros = fill && fill->IsSplat(0) && whole % n == 0;
  if (!taken || !fill || !halo.leaves || zeros) return taken;
  return Masked(b, resharder, taken, whole, d, axes, span, fill);
}

}  // namespace strop::spmd
