#include "strop/cpu/kernels/scan.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/half.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scan_vector.h"

namespace strop::cpu {
namespace {

constexpr int64_t kChunk = 512;     // neighbouring lines of one task
constexpr int64_t kSegment = 4096;  // shortest segment worth a second pass
constexpr int64_t kTaskElements = 1 << 15;
constexpr int64_t kTogether = 64;  // lines shorter than a vector, side by side
// Vectors, or neighbouring lines, whose floats are summed from zero before what came before is added: the error of a
// sum grows with the additions that lead to it, here by the block, not by the line.
constexpr int64_t kBlock = 128;

// Elements as they lie in memory (T) and as they are combined (Sum). Complex numbers are added part by part: two
// elements for each of theirs.
template <class T, int kPartsOfOne = 1>
struct Native {
  using Sum = T;
  static constexpr int kParts = kPartsOfOne;
  static T Load(const void* data, int64_t i) { return static_cast<const T*>(data)[i]; }
  static void Store(void* data, int64_t i, T v) { static_cast<T*>(data)[i] = v; }
};
template <ElementType kType>
struct Small {
  using Sum = float;
  static constexpr int kParts = 1;
  static float Load(const void* data, int64_t i) {
    const uint16_t code = static_cast<const uint16_t*>(data)[i];
    return kType == ElementType::F16 ? HalfToFloat(code) : Bf16ToFloat(code);
  }
  static void Store(void* data, int64_t i, float v) {
    static_cast<uint16_t*>(data)[i] = kType == ElementType::F16 ? FloatToHalf(v) : FloatToBf16(v);
  }
};

// Position r of line l, one behind the other, to turned[r][l], or back. Compiled once for a type, not for each
// combiner.
template <class T, int kLength, bool kBack>
void TurnLines(T* __restrict lines, int64_t n, int64_t count, T (*__restrict turned)[kTogether]) {
  const int64_t length = kLength > 0 ? kLength : n;
  for (int64_t l = 0; l < count; ++l)
    for (int64_t r = 0; r < length; ++r)
      kBack ? (void)(lines[l * length + r] = turned[r][l]) : (void)(turned[r][l] = lines[l * length + r]);
}
template <bool kBack, class T>
__attribute__((noinline)) void Turn(T* lines, int64_t n, int64_t count, T (*turned)[kTogether]) {
  WithVectors([=] {
    switch (n) {
      case 2: return TurnLines<T, 2, kBack>(lines, n, count, turned);
      case 3: return TurnLines<T, 3, kBack>(lines, n, count, turned);
      case 4: return TurnLines<T, 4, kBack>(lines, n, count, turned);
      case 5: return TurnLines<T, 5, kBack>(lines, n, count, turned);
      case 6: return TurnLines<T, 6, kBack>(lines, n, count, turned);
      case 7: return TurnLines<T, 7, kBack>(lines, n, count, turned);
      default: return TurnLines<T, 0, kBack>(lines, n, count, turned);
    }
  });
}

// A scan cut into segments; positions along a line count in the direction of the scan, what lies side by side counts
// part by part.
struct Cut {
  explicit Cut(const ScanProblem& p) : p(p), inner(p.inner * (IsComplex(p.type) ? 2 : 1)), alone(p.inner == 1) {
    chunks = alone ? 1 : (inner + kChunk - 1) / kChunk;
    const int64_t lines = std::max<int64_t>(p.outer * chunks, 1);
    const int64_t shortest = alone ? kSegment : kSegment / 16;
    const int64_t wanted = std::clamp<int64_t>(p.n / shortest, 1, std::max<int64_t>(32 / lines, 1));
    length = (p.n + wanted - 1) / wanted;
    segments = (p.n + length - 1) / length;
  }
  // Offset of the first part at position i of line (o, 0).
  int64_t At(int64_t o, int64_t i) const { return (o * p.n + (p.reverse ? p.n - 1 - i : i)) * inner; }
  int64_t begin(int64_t segment) const { return segment * length; }
  int64_t end(int64_t segment) const { return std::min(p.n, (segment + 1) * length); }

  const ScanProblem& p;
  int64_t inner;  // in parts
  bool alone;     // no line lies beside another
  int64_t chunks = 1, segments = 1, length = 0;
};

template <CombineKind kKind, class E>
class Scan {
 public:
  using Sum = typename E::Sum;
  static constexpr int kParts = E::kParts;
  static constexpr bool kWidened = !std::is_same_v<E, Native<Sum, E::kParts>>;
  // (What is widened is rounded by more than its sums are wrong.)
  static constexpr bool kInBlocks = kKind == CombineKind::kAdd && std::is_floating_point_v<Sum> && !kWidened;
  Scan(const Cut& cut, const void* in, const void* initial, void* out) : cut_(cut), in_(in), out_(out) {
    for (int part = 0; part < kParts; ++part) initial_[part] = E::Load(initial, part);
  }

  void Run(ThreadPool* pool) const {
    if (cut_.alone)
      ScanRows(pool);
    else
      ScanColumns(pool);
    if (cut_.segments == 1) return;
    ForEachTask(pool, cut_.p.outer, [&](int64_t o) { JoinEnds(o); });
    ForEachTask(pool, cut_.p.outer * (cut_.segments - 1), [&](int64_t task) {
      WithVectors([&] { AddWhatCameBefore(task / (cut_.segments - 1), task % (cut_.segments - 1) + 1); });
    });
  }

 private:
  // ---- lines alone: segments of them, a vector at a time

  using Held = Native<Sum>;
  static constexpr int64_t kLanes = ScanVector<kKind, Sum, false, kParts>::kLanes;
  static constexpr int64_t kHeld = kLanes * kTogether;
  // One operation an element is as fast one element after another, unless turning is a few shuffles.
  static constexpr int64_t kFewShuffles = 4;
  static constexpr bool kLongStep = kWidened || kKind == CombineKind::kMinimum || kKind == CombineKind::kMaximum;

  void ScanRows(ThreadPool* pool) const {
    ForEachPiece(pool, cut_.p.outer * cut_.segments, std::max<int64_t>(1, kTaskElements / cut_.length),
                 [&](int64_t begin, int64_t end) {
                   WithVectors([&] { cut_.p.reverse ? ScanPiece<true>(begin, end) : ScanPiece<false>(begin, end); });
                 });
  }

  template <bool kReverse>
  void ScanPiece(int64_t begin, int64_t end) const {
    if constexpr (kParts == 1) {
      const bool turned = cut_.p.n < kLanes && (kLongStep || cut_.p.n <= kFewShuffles);
      if (turned || (kWidened && cut_.p.n <= kHeld)) return ScanShortLines<kReverse>(begin, end);
    }
    if (cut_.p.n < kLanes) {
      for (int64_t line = begin; line < end; ++line)
        ScanOneByOne<E, kReverse>(in_, out_, cut_.At(line, 0), cut_.p.n * kParts, initial_);
      return;
    }
    if (cut_.segments == 1) {
      for (int64_t line = begin; line < end; ++line) ScanSegment<E, kReverse>(in_, out_, cut_.At(line, 0), cut_.p.n);
      return;
    }
    for (int64_t line = begin; line < end; ++line) {
      const int64_t segment = line % cut_.segments, first = cut_.begin(segment);
      ScanSegment<E, kReverse>(in_, out_, cut_.At(line / cut_.segments, first), cut_.end(segment) - first);
    }
  }

  // `first` is where the parts of the first element begin.
  template <class From, bool kReverse>
  void ScanSegment(const void* in, void* out, int64_t first, int64_t length) const {
    using Vectors = ScanVector<kKind, Sum, kReverse, kParts>;
    const int64_t parts = length * kParts, whole = parts - parts % kLanes;
    typename Vectors::Vec sums;
    Vectors::FillParts(initial_, sums);
    if (!kInBlocks || whole <= kBlock * kLanes)
      ScanVectors<From, kReverse, false>(in, out, first, 0, whole, sums, sums);
    else
      ScanBlocks<From, kReverse>(in, out, first, whole, sums);
    Sum last[kParts];
    for (int part = 0; part < kParts; ++part) last[part] = static_cast<Sum>(sums[part]);
    ScanOneByOne<From, kReverse>(in, out, kReverse ? first - whole : first + whole, parts - whole, last);
  }

  template <class From, bool kReverse, class Vec>
  void ScanBlocks(const void* in, void* out, int64_t first, int64_t whole, Vec& sums) const {
    using Vectors = ScanVector<kKind, Sum, kReverse, kParts>;
    for (int64_t i = 0; i < whole; i += kBlock * kLanes) {
      Vec of_block;
      Vectors::FillParts(initial_, of_block);
      ScanVectors<From, kReverse, true>(in, out, first, i, std::min(whole, i + kBlock * kLanes), sums, of_block);
      Vectors::Combined(sums, of_block, sums);
    }
  }

  // The parts [begin, end) of a line, whole vectors; `sums` are those of the parts before. What came before is one
  // addition a vector; the sums inside the vector do not wait for it.
  template <class From, bool kReverse, bool kAddsWhatCameBefore, class Vec>
  void ScanVectors(const void* in, void* out, int64_t first, int64_t begin, int64_t end, const Vec& came_before,
                   Vec& sums) const {
    using Vectors = ScanVector<kKind, Sum, kReverse, kParts>;
    Vec before = sums, v, stored;
    for (int64_t i = begin; i < end; i += kLanes) {
      const int64_t at = kReverse ? first - i - (kLanes - kParts) : first + i;
      for (int64_t l = 0; l < kLanes; ++l) v[l] = From::Load(in, at + l);
      Vectors::Inside(v);
      Vectors::Combined(before, v, stored);
      if constexpr (kAddsWhatCameBefore) Vectors::Combined(came_before, stored, stored);
      Vectors::Last(v, v);
      Vectors::Combined(before, v, before);
      for (int64_t l = 0; l < kLanes; ++l) From::Store(out, at + l, stored[l]);
    }
    sums = before;
  }

  template <class From, bool kReverse>
  void ScanOneByOne(const void* in, void* out, int64_t first, int64_t parts, const Sum (&before)[kParts]) const {
    Sum sums[kParts];
    for (int part = 0; part < kParts; ++part) sums[part] = before[part];
    for (int64_t i = 0; i < parts; i += kParts) {
      const int64_t at = kReverse ? first - i : first + i;
      for (int part = 0; part < kParts; ++part) {
        sums[part] = Combine<kKind>(sums[part], From::Load(in, at + part));
        From::Store(out, at + part, sums[part]);
      }
    }
  }

  // Several lines at a time, widened together if they are.
  template <bool kReverse>
  void ScanShortLines(int64_t begin, int64_t end) const {
    const int64_t n = cut_.p.n, together = n < kLanes ? kTogether : kHeld / n;
    alignas(32) Sum held[kHeld];
    for (int64_t line = begin; line < end; line += together) {
      const int64_t count = std::min(together, end - line);
      for (int64_t i = 0; i < count * n; ++i) held[i] = E::Load(in_, line * n + i);
      if (n < kLanes)
        ScanTogether<kReverse>(held, n, count);
      else
        for (int64_t l = 0; l < count; ++l) ScanSegment<Held, kReverse>(held, held, l * n + (kReverse ? n - 1 : 0), n);
      for (int64_t i = 0; i < count * n; ++i) E::Store(out_, line * n + i, held[i]);
    }
  }

  // A line a lane.
  template <bool kReverse>
  void ScanTogether(Sum* lines, int64_t n, int64_t count) const {
    using Vectors = ScanVector<kKind, Sum, kReverse>;
    alignas(32) Sum turned[kLanes][kTogether];
    if (count < kTogether) std::memset(turned, 0, sizeof(turned));
    Turn<false>(lines, n, count, turned);
    for (int64_t l = 0; l < count; l += kLanes) {
      typename Vectors::Vec sums, v;
      Vectors::Fill(initial_[0], sums);
      for (int64_t i = 0; i < n; ++i) {
        Sum* const at = &turned[kReverse ? n - 1 - i : i][l];
        std::memcpy(&v, at, sizeof(v));
        Vectors::CombinedInOrder(sums, v, sums);
        std::memcpy(at, &sums, sizeof(v));
      }
    }
    Turn<true>(lines, n, count, turned);
  }

  // ---- neighbouring lines together

  void ScanColumns(ThreadPool* pool) const {
    ForEachTask(pool, cut_.p.outer * cut_.segments * cut_.chunks, [&](int64_t task) {
      const int64_t chunk = task % cut_.chunks, segment = task / cut_.chunks % cut_.segments;
      WithVectors([&] { ScanChunk(task / cut_.chunks / cut_.segments, segment, chunk * kChunk); });
    });
  }

  void ScanChunk(int64_t o, int64_t segment, int64_t first) const {
    const int64_t width = std::min(kChunk, cut_.inner - first);
    Sum sums[kChunk], came_before[kChunk];
    for (int64_t v = 0; v < width; ++v) sums[v] = initial_[v % kParts];
    const int64_t begin = cut_.begin(segment), end = cut_.end(segment);
    const int64_t of_first_block = kInBlocks ? std::min(end, begin + kBlock) : end;
    for (int64_t i = begin; i < of_first_block; ++i) {
      const int64_t at = cut_.At(o, i) + first;
      for (int64_t v = 0; v < width; ++v) sums[v] = Combine<kKind>(sums[v], E::Load(in_, at + v));
      for (int64_t v = 0; v < width; ++v) E::Store(out_, at + v, sums[v]);
    }
    for (int64_t block = of_first_block; block < end; block += kBlock) {
      for (int64_t v = 0; v < width; ++v) {
        came_before[v] = block == of_first_block ? sums[v] : Combine<kKind>(came_before[v], sums[v]);
        sums[v] = initial_[v % kParts];
      }
      for (int64_t i = block; i < std::min(end, block + kBlock); ++i) {
        const int64_t at = cut_.At(o, i) + first;
        for (int64_t v = 0; v < width; ++v) sums[v] = Combine<kKind>(sums[v], E::Load(in_, at + v));
        for (int64_t v = 0; v < width; ++v) E::Store(out_, at + v, Combine<kKind>(came_before[v], sums[v]));
      }
    }
  }

  // ---- segments

  void JoinEnds(int64_t o) const {
    for (int64_t s = 1; s < cut_.segments; ++s) {
      const int64_t before = cut_.At(o, cut_.end(s - 1) - 1), last = cut_.At(o, cut_.end(s) - 1);
      for (int64_t v = 0; v < cut_.inner; ++v)
        E::Store(out_, last + v, Combine<kKind>(E::Load(out_, before + v), E::Load(out_, last + v)));
    }
  }

  void AddWhatCameBefore(int64_t o, int64_t segment) const {
    const int64_t before = cut_.At(o, cut_.end(segment - 1) - 1);
    const int64_t begin = cut_.begin(segment), end = cut_.end(segment) - 1;  // the last has it
    if (cut_.alone) {
      const int64_t from = std::min(cut_.At(o, begin), cut_.At(o, std::max(begin, end - 1)));
      Sum carry[kParts];
      for (int part = 0; part < kParts; ++part) carry[part] = E::Load(out_, before + part);
      for (int64_t i = from; i < from + (end - begin) * kParts; i += kParts)
        for (int part = 0; part < kParts; ++part)
          E::Store(out_, i + part, Combine<kKind>(carry[part], E::Load(out_, i + part)));
      return;
    }
    for (int64_t first = 0; first < cut_.inner; first += kChunk) {
      const int64_t width = std::min(kChunk, cut_.inner - first);
      Sum carry[kChunk];  // a copy: what is stored below is known not to change it
      for (int64_t v = 0; v < width; ++v) carry[v] = E::Load(out_, before + first + v);
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = cut_.At(o, i) + first;
        for (int64_t v = 0; v < width; ++v) E::Store(out_, at + v, Combine<kKind>(carry[v], E::Load(out_, at + v)));
      }
    }
  }

  const Cut& cut_;
  const void* in_;
  void* out_;
  Sum initial_[kParts];
};

using RunFn = void (*)(const Cut&, const void* in, const void* initial, void* out, ThreadPool*);

template <CombineKind kKind, class E>
void RunAs(const Cut& cut, const void* in, const void* initial, void* out, ThreadPool* pool) {
  Scan<kKind, E>(cut, in, initial, out).Run(pool);
}

template <CombineKind kKind>
RunFn Find(ElementType type) {
  constexpr bool kBits = kKind == CombineKind::kAnd || kKind == CombineKind::kOr;
  constexpr bool kOrdered = kKind == CombineKind::kMinimum || kKind == CombineKind::kMaximum;
  switch (type) {
    case ElementType::Pred: return kBits || kOrdered ? &RunAs<kKind, Native<uint8_t>> : nullptr;
    case ElementType::S8: return &RunAs<kKind, Native<int8_t>>;
    case ElementType::S16: return &RunAs<kKind, Native<int16_t>>;
    case ElementType::S32: return &RunAs<kKind, Native<int32_t>>;
    case ElementType::S64: return &RunAs<kKind, Native<int64_t>>;
    case ElementType::U8: return &RunAs<kKind, Native<uint8_t>>;
    case ElementType::U16: return &RunAs<kKind, Native<uint16_t>>;
    case ElementType::U32: return &RunAs<kKind, Native<uint32_t>>;
    case ElementType::U64: return &RunAs<kKind, Native<uint64_t>>;
    default: break;
  }
  if constexpr (kKind == CombineKind::kAdd) {
    if (type == ElementType::C64) return &RunAs<kKind, Native<float, 2>>;
    if (type == ElementType::C128) return &RunAs<kKind, Native<double, 2>>;
  }
  if constexpr (!kBits) {
    switch (type) {
      case ElementType::F32: return &RunAs<kKind, Native<float>>;
      case ElementType::F64: return &RunAs<kKind, Native<double>>;
      case ElementType::F16: return &RunAs<kKind, Small<ElementType::F16>>;
      case ElementType::BF16: return &RunAs<kKind, Small<ElementType::BF16>>;
      default: break;
    }
  }
  return nullptr;
}

RunFn FindRun(const ScanProblem& p) {
  switch (p.combine) {
    case CombineKind::kAdd: return Find<CombineKind::kAdd>(p.type);
    case CombineKind::kMultiply: return Find<CombineKind::kMultiply>(p.type);
    case CombineKind::kMinimum: return Find<CombineKind::kMinimum>(p.type);
    case CombineKind::kMaximum: return Find<CombineKind::kMaximum>(p.type);
    case CombineKind::kAnd: return Find<CombineKind::kAnd>(p.type);
    case CombineKind::kOr: return Find<CombineKind::kOr>(p.type);
  }
  return nullptr;
}

}  // namespace

Status CheckScan(const ScanProblem& problem) {
  if (!FindRun(problem)) return Unimplemented("scan of ", Name(problem.type), " with this combiner");
  return OkStatus();
}

void RunScan(const ScanProblem& problem, const void* input, const void* initial, void* output, ThreadPool* pool) {
  if (problem.outer * problem.n * problem.inner == 0) return;
  FindRun(problem)(Cut(problem), input, initial, output, pool);
}

}  // namespace strop::cpu
