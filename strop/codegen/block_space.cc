#include "strop/codegen/block_space.h"

#include <algorithm>
#include <bit>

#include "strop/codegen/dim_groups.h"

namespace strop {
namespace {

using V = llvm::Value*;

constexpr int kMinLanes = 4;          // shorter sides are not worth turning
constexpr int64_t kShort = 8;         // sides that strided reads and interleaved stores do better
constexpr int kMaxLanes = 32;         // vectors of a block: all registers
constexpr int kMaxLanesOfBytes = 16;  // turning more takes longer than it saves
constexpr int64_t kLine = 64;         // bytes of a cache line
constexpr int64_t kTile = 64;         // elements of a tile's side
// Sides, in vectors, of tiles that are stored past the caches: along the rows that are read, and that are written.
constexpr int kStreamedAcross = 8, kStreamedAlong = 4;
// What is read and written of kernels that store past the caches. Rows wait for each other's lines there: floats of
// 1024x1024 took 0.70 of the time of tiles of 64x64, 1536x1536 0.80, 2048x2048 0.33.
constexpr int64_t kStreamedBytes = int64_t{8} << 20;
constexpr int64_t kTaskBytes = int64_t{256} << 10;
constexpr int64_t kMaxTasks = 4096;

// The number of elements behind the result's group that is innermost in the operand: 1 if rows stay rows.
int64_t SuffixAcross(const Instruction& transpose) {
  const std::vector<DimGroup> groups = ResultGroups(transpose);
  std::vector<size_t> order;
  InSourceOrder(groups, &order);
  while (!order.empty() && groups[order.back()].size == 1) order.pop_back();
  if (order.empty()) return 1;
  int64_t suffix = 1;
  for (size_t g = order.back() + 1; g < groups.size(); ++g) suffix *= groups[g].size;
  return suffix;
}

// Elements of a vector, unit by unit: out[k] is unit of(k) of the two vectors one behind the other.
template <class F>
V Units(VectorBuilder& b, V first, V second, int unit, const F& of) {
  llvm::SmallVector<int, 64> mask;
  for (int k = 0; k < VectorBuilder::Lanes(first) / unit; ++k)
    for (int e = 0; e < unit; ++e) mask.push_back(of(k) * unit + e);
  return b.ir().CreateShuffleVector(first, second, mask);
}

// Turns squares within pieces of 16 bytes, then the pieces, as processors have instructions for. (Each stage on whole
// vectors needs as many, but slower ones, with masks that take long to compile.)
void Turn(VectorBuilder& b, std::vector<V>& rows) {
  constexpr int kPieceBits = 128;
  const int n = static_cast<int>(rows.size());
  const bool bits = rows[0]->getType()->getScalarType()->isIntegerTy(1);
  if (bits)
    for (V& v : rows) v = b.ZExtOrTrunc(v, 8);
  const int of_piece = kPieceBits / static_cast<int>(rows[0]->getType()->getScalarSizeInBits());
  const int piece = std::min(n, std::max(1, of_piece));  // elements
  // Row i * piece + j becomes, in each piece p, elements i * piece onwards of column p * piece + j.
  for (int unit = 1; unit < piece; unit *= 2) {
    const int half = piece / unit / 2;  // units
    std::vector<V> next(rows.size());
    for (int group = 0; group < n; group += 2 * unit)
      for (int k = 0; k < unit; ++k)
        for (int high = 0; high < 2; ++high)
          next[group + 2 * k + high] = Units(b, rows[group + k], rows[group + k + unit], unit, [&](int at) {
            const int in_piece = at % (2 * half);
            return at - in_piece + high * half + in_piece / 2 + in_piece % 2 * (n / unit);
          });
    rows = std::move(next);
  }
  // Even and odd pieces of pairs of vectors, as often as halves the number of pieces: piece p comes out at p's bits,
  // the lowest first.
  const int pieces = n / piece;
  for (int j = 0; j < piece; ++j) {
    std::vector<std::vector<V>> sets(1);
    for (int i = 0; i < pieces; ++i) sets[0].push_back(rows[i * piece + j]);
    while (static_cast<int>(sets.size()) < pieces) {
      std::vector<std::vector<V>> next(2 * sets.size());
      for (size_t s = 0; s < sets.size(); ++s)
        for (size_t i = 0; i < sets[s].size(); i += 2)
          for (size_t odd = 0; odd < 2; ++odd)
            next[s + odd * sets.size()].push_back(
                Units(b, sets[s][i], sets[s][i + 1], piece, [&](int at) { return 2 * at + static_cast<int>(odd); }));
      sets = std::move(next);
    }
    for (int p = 0; p < pieces; ++p) rows[p * piece + j] = sets[p][0];
  }
  if (bits)
    for (V& v : rows) v = b.ZExtOrTrunc(v, 1);
}

// Computes a transpose for one block, along its operand's rows, and leaves the emitter with its values along the
// result's.
void TurnBlock(ElementalEmitter& e, const Instruction* transpose, std::span<const ArrayIndex> columns,
               std::span<const ArrayIndex> rows) {
  const int lanes = e.lanes();
  std::vector<V> re, im;
  for (const ArrayIndex& at : columns) {
    const Val v = e.elements().Splat(e.Emit(transpose, at), lanes);
    re.push_back(v.re);
    if (v.im) im.push_back(v.im);
  }
  Turn(e.b(), re);
  if (!im.empty()) Turn(e.b(), im);
  for (size_t k = 0; k < rows.size(); ++k)
    e.Provide(transpose, rows[k], {Val{re[k], im.empty() ? nullptr : im[k], transpose->shape().type()}});
}

// Rows of the next tile that each block of a tile asks for, all of the tile's blocks for all of them; 0: none.
int64_t RowsFetched(const BlockSpace& space) {
  const int64_t vectors = space.tile_across / space.lanes;
  return space.streams && space.lanes % vectors == 0 ? space.lanes / vectors : 0;
}

// Bytes of an element of the results.
int64_t NarrowestResult(const KernelBody& body) {
  int64_t bytes = kLine;
  for (const Instruction* root : body.roots)
    for (const Shape& leaf : root->shape().Leaves()) bytes = std::min<int64_t>(bytes, Bytes(leaf.type()));
  return bytes;
}

}  // namespace

std::vector<const Instruction*> TransposesAtRoots(const KernelBody& body) {
  std::vector<const Instruction*> found, stack(body.roots.begin(), body.roots.end()), seen;
  const auto is_input = [&](const Instruction* i) {
    return i != body.kernel && std::find(body.inputs.begin(), body.inputs.end(), i) != body.inputs.end();
  };
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (is_input(i) || std::find(seen.begin(), seen.end(), i) != seen.end()) continue;
    seen.push_back(i);
    if (i->op() == Op::Transpose) {
      found.push_back(i);
    } else if (IsElementwise(i->op()) || i->op() == Op::Reshape || i->op() == Op::Copy) {
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        const Shape& shape = i->operand(k)->shape();
        if (shape.IsArray() && i->shape().IsArray() && shape.num_elements() == i->shape().num_elements())
          stack.push_back(i->operand(k));
      }
    }
  }
  return found;
}

BlockSpace ChooseBlockSpace(const KernelBody& body, std::span<const int> in_place, int vector_bytes) {
  BlockSpace space;
  // What is computed once a row would be computed once a tile.
  for (const Instruction* i : body.Computed())
    if (i->op() == Op::Reduce) return space;
  const std::vector<const Instruction*> transposes = TransposesAtRoots(body);
  int64_t suffix = 1;
  for (const Instruction* t : transposes) {
    const int64_t s = SuffixAcross(*t);
    if (s == 1) continue;
    if (suffix == 1) suffix = s;
    if (s == suffix) space.turned.push_back(t);
  }
  if (suffix == 1) return space;
  space.sizes = DigitsOf(body);
  int64_t behind = 1;
  size_t across = space.sizes.size();
  while (across > 0 && behind < suffix) behind *= space.sizes[--across];
  if (behind != suffix || across == 0) return space;
  space.across = across - 1;
  const int64_t side = std::min(space.sizes[space.across], space.sizes.back());
  if (side <= kShort && side < PreferredLanes(body, vector_bytes)) return space;
  const bool complex = std::any_of(space.turned.begin(), space.turned.end(),
                                   [](const Instruction* t) { return IsComplex(t->shape().type()); });
  const int64_t bytes = NarrowestResult(body);
  int lanes =
      std::min({PreferredLanes(body, vector_bytes) / (complex ? 2 : 1), bytes == 1 ? kMaxLanesOfBytes : kMaxLanes,
                static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(side, 64))))});
  // Overlapping blocks would compute from what they have written.
  if (std::any_of(in_place.begin(), in_place.end(), [](int k) { return k >= 0; }))
    while (lanes > 1 && (space.sizes[space.across] % lanes != 0 || space.sizes.back() % lanes != 0)) lanes /= 2;
  if (lanes < kMinLanes) return space;
  space.lanes = lanes;
  const KernelCost cost = CostOf(body);
  space.streams = lanes * bytes >= kLine && space.sizes.back() * bytes % kLine == 0 && cost.bytes >= kStreamedBytes;
  const auto tile_of = [&](int64_t tile, int64_t size) { return std::min(tile, (size + lanes - 1) / lanes * lanes); };
  space.tile_across = tile_of(space.streams ? kStreamedAcross * lanes : kTile, space.sizes[space.across]);
  space.tile_along = tile_of(space.streams ? kStreamedAlong * lanes : kTile, space.sizes.back());
  return space;
}

Status WalkBlocks(KernelFrame& frame, const BlockSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks) {
  VectorBuilder& b = frame.b();
  LoopScopes& scopes = frame.scopes();
  ElementalEmitter& e = frame.Emitter(space.lanes);
  IndexBuilder& indices = e.indices();
  const int64_t across = space.sizes[space.across], along = space.sizes.back();
  // One tile after the other along the rows that are written, or along those that are read.
  std::vector<size_t> order;
  for (size_t d = 0; d < space.sizes.size(); ++d)
    if (d != space.across || !space.streams) order.push_back(d);
  if (space.streams) order.push_back(space.across);
  Int64Vector sizes = space.sizes, tiles;
  sizes[space.across] = (across + space.tile_across - 1) / space.tile_across;
  sizes.back() = (along + space.tile_along - 1) / space.tile_along;
  for (size_t d : order) tiles.push_back(sizes[d]);
  int64_t units = 1;
  for (int64_t n : tiles) units *= n;
  const int64_t wanted = std::clamp<int64_t>(cost.bytes / kTaskBytes, 1, std::min(units, kMaxTasks));
  const int64_t units_per_task = (units + wanted - 1) / wanted;
  *num_tasks = (units + units_per_task - 1) / units_per_task;

  Status status;
  // The blocks of a tile along one digit; fn gets where a block begins, and its number in the tile.
  const auto along_digit = [&](const char* name, const LaneIndex& tile, int64_t tile_size, int64_t size,
                               const std::function<void(const LaneIndex&, const LaneIndex&)>& fn) {
    const LaneIndex first = indices.Mul(tile, tile_size);
    V end = b.ir().CreateAdd(first.base, b.I64(tile_size));
    if (size % tile_size != 0) end = b.Binary(llvm::Intrinsic::smin, end, b.I64(size));
    scopes.Loop(name, first.base, end, space.lanes, [&](V i) {
      LaneIndex begin = indices.Counter(i, scopes.current(), 0, space.lanes);
      if (size % space.lanes != 0)
        begin = indices.Counter(b.Binary(llvm::Intrinsic::smin, i, b.I64(size - space.lanes)), scopes.current(), 0, 1);
      const LaneIndex in_tile = indices.Counter(b.ir().CreateSub(i, first.base), scopes.current(), 0, space.lanes);
      fn(begin, indices.DivMod(in_tile, space.lanes, tile_size).first);
    });
  };
  V begin = b.ir().CreateMul(frame.task_begin(), b.I64(units_per_task));
  V end = b.Binary(llvm::Intrinsic::smin, b.ir().CreateMul(frame.task_end(*num_tasks), b.I64(units_per_task)),
                   b.I64(units));
  scopes.Loop("tiles", begin, end, 1, [&](V unit) {
    const auto tile_at = [&](V number) {
      const ArrayIndex flat{{indices.Counter(number, scopes.current(), 0, 1)}, {units}};
      const ArrayIndex tile = indices.Refactor(flat, tiles);
      ArrayIndex at;
      at.sizes = space.sizes;
      at.digits.resize(order.size());
      for (size_t k = 0; k < order.size(); ++k) at.digits[order[k]] = tile.digits[k];
      return at;
    };
    ArrayIndex at = tile_at(unit), next;
    const int64_t rows_fetched = RowsFetched(space);
    if (rows_fetched > 0) next = tile_at(b.Binary(llvm::Intrinsic::smin, b.Add(unit, b.I64(1)), b.I64(units - 1)));
    const auto fetch = [&](const LaneIndex& block) {
      for (int64_t r = 0; r < rows_fetched; ++r)
        for (int64_t v = 0; v < space.tile_across; v += space.lanes) {
          ArrayIndex of = next;
          LaneIndex& begin = of.digits[space.across];
          begin = indices.Add(indices.Mul(begin, space.tile_across), indices.Constant(v));
          begin.stride = 1;
          of.digits.back() = indices.Add(indices.Mul(of.digits.back(), space.tile_along),
                                         indices.Add(indices.Mul(block, rows_fetched), indices.Constant(r)));
          for (const Instruction* t : space.turned) e.Fetch(t, of);
        }
    };
    const LaneIndex tile_across = at.digits[space.across], tile_along = at.digits.back();
    along_digit("across", tile_across, space.tile_across, across, [&](const LaneIndex& row, const LaneIndex& down) {
      along_digit("along", tile_along, space.tile_along, along, [&](const LaneIndex& column, const LaneIndex& right) {
        if (rows_fetched > 0) fetch(indices.Add(indices.Mul(down, space.tile_along / space.lanes), right));
        std::vector<ArrayIndex> rows, columns;
        LaneIndex lanes_across = row, lanes_along = column;
        lanes_across.stride = lanes_along.stride = 1;
        for (int64_t k = 0; k < space.lanes; ++k) {
          at.digits[space.across] = lanes_across;
          at.digits.back() = indices.Add(column, indices.Constant(k));
          columns.push_back(at);
          at.digits[space.across] = indices.Add(row, indices.Constant(k));
          at.digits.back() = lanes_along;
          rows.push_back(at);
        }
        for (const Instruction* t : space.turned) TurnBlock(e, t, columns, rows);
        for (const ArrayIndex& r : rows)
          if (status.ok()) status = point(e, r);
      });
    });
  });
  if (status.ok()) status = e.status();
  return status;
}

}  // namespace strop
