#include "strop/cpu/kernels/gemm.h"

#include <algorithm>
#include <type_traits>

#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

ElementType GemmAccumulator(ElementType a, ElementType b, ElementType c) {
  auto wide = [](ElementType t) { return t == ElementType::F64 || t == ElementType::C128; };
  if (IsComplex(a) || IsComplex(b) || IsComplex(c))
    return wide(a) || wide(b) || wide(c) ? ElementType::C128 : ElementType::C64;
  if (IsFloat(a) || IsFloat(b) || IsFloat(c))
    return wide(a) || wide(b) || wide(c) ? ElementType::F64 : ElementType::F32;
  if (!IsArrayType(a) || !IsArrayType(b)) return ElementType::Invalid;
  return Bits(a) == 64 || Bits(b) == 64 || Bits(c) == 64 ? ElementType::S64 : ElementType::S32;
}

namespace {

// Many columns of A, which lie in rows, by few of B: the rows are long, and read as they lie by the transpose.
bool AreFewColumnsOfRows(const GemmProblem& p) {
  constexpr int64_t kFewColumns = 12, kManyRows = 96, kLeastSums = 64;
  return p.a.type == p.b.type && (p.a.type == ElementType::F32 || p.a.type == ElementType::F64) && p.n <= kFewColumns &&
         p.m > kManyRows && p.k >= kLeastSums && p.a.row_stride == 1 && p.a.col_stride != 1;
}

// Rows of A by as many columns of B as tiles have, both where they lie: as dot products, each element of B would be
// read for one row of A at a time. Rows that meet in the same lines of the cache would have to be packed.
bool AreTallByATile(const GemmIsa& isa, const GemmProblem& p) {
  constexpr int64_t kTileColumns = 16, kTallRows = 256, kTallBytes = 1 << 18;
  // Wide tiles, if most of their columns are there, and B with them stays in the cache (gemm_thin.cc).
  const bool wide = p.a.type == ElementType::F32 && !HasNarrowVectors(isa.f32) && p.n <= isa.f32.nr &&
                    8 * p.n > 5 * isa.f32.nr && p.m >= kTallRows && p.k * isa.f32.nr * 4 <= kTallBytes;
  return p.n > kLongDotRows && (p.n <= kTileColumns || wide) && p.b.col_stride == 1 && p.a.col_stride == 1 &&
         (wide || !MeetInSets(p.a.row_stride * Bytes(p.a.type)));
}

// Is it better to compute the transpose, which has few rows? Complex results that lie along columns are so written
// along memory.
bool SuitsSwapped(const GemmIsa& isa, const GemmProblem& p, ElementType accumulator) {
  if (IsComplex(accumulator)) {
    if (p.b.row_stride == 1 && p.b.type == accumulator && AreComplexDots(p, p.m) && p.m <= p.n) return false;
    const bool dots = (p.a.col_stride == 1 || p.a.row_stride == 1) && p.a.type == accumulator && AreComplexDots(p, p.n);
    return (p.n == 1 && p.m > 1) || (dots && p.n < p.m) || (p.c.col_stride != 1 && p.c.row_stride == 1);
  }
  if (p.m > p.n && p.n <= kDotRows) return !AreFewShortColumns(p);
  if (AreFewColumnsOfRows(p) || PacksRowsOfTranspose(p, isa)) return true;
  if (AreTallByATile(isa, p)) return false;
  const bool dots_already = p.b.row_stride == 1 && AreDots(p, p.m, isa);
  return p.m >= p.n && p.k >= kLeastDotElements && p.a.col_stride == 1 && !dots_already && AreDots(p, p.n, isa);
}

// C^T = B^T A^T: the operands come the other way round.
class SwappedGemm final : public Gemm {
 public:
  explicit SwappedGemm(std::shared_ptr<const Gemm> inner) : inner_(std::move(inner)) {
    num_tasks_ = inner_->num_tasks();
    scratch_bytes_ = inner_->scratch_bytes();
    tiles_ = StrCat("transposed, ", inner_->tiles());
    rounds_ = inner_->rounds();
    prepare_tasks_ = inner_->prepare_tasks();
    shared_bytes_ = inner_->shared_bytes();
  }
  void Prepare(const GemmCall& call, int64_t begin, int64_t end) const override {
    inner_->Prepare(Swapped(call), begin, end);
  }
  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    inner_->Run(Swapped(call), begin, end, scratch);
  }

 private:
  static GemmCall Swapped(GemmCall call) {
    std::swap(call.a, call.b);
    return call;
  }
  std::shared_ptr<const Gemm> inner_;
};

// No products, and no tasks.
class EmptyGemm final : public Gemm {
 public:
  EmptyGemm() { tiles_ = "empty"; }
  void Run(const GemmCall&, int64_t, int64_t, void*) const override {}
};

template <class T>
std::shared_ptr<const Gemm> MakeReal(const GemmProblem& p, const GemmIsa& isa, GemmSharing sharing) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Gemm> columns = MakeColumnsGemm<T>(p, isa)) return columns;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (std::shared_ptr<const Gemm> batch = MakeThirdsOfBatch(p, isa)) return batch;
  }
  if (std::shared_ptr<const Gemm> small = MakeSmallGemm<T>(p, isa)) return small;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Gemm> thin = MakeThinGemm<T>(p, isa)) return thin;
  }
  const AloneGemm alone = MakeAloneGemm<T>(p, isa);
  if (p.k == 0) return alone.gemm;
  if constexpr (std::is_floating_point_v<T>) {
    if (alone.packs || alone.few_rows_or_terms)
      if (std::shared_ptr<const Gemm> tiles = MakeTilesGemm<T>(p, isa)) return tiles;
  }
  if (!alone.packs) return alone.gemm;
  std::shared_ptr<const Gemm> half;
  if constexpr (sizeof(T) == 4) half = MakeHalfGemm(p, isa);
  if (sharing == GemmSharing::Allowed)
    if (std::shared_ptr<const Gemm> shared = MakePanelGemm<T>(p, isa)) return shared;
  if (half) return half;
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Gemm> thin = MakeThinGemm<T>(p, isa, /*instead_of_blocks=*/true)) return thin;
  }
  return alone.gemm;
}

}  // namespace

void Gemm::RunAll(const void* a, const void* b, void* c, void* shared, void* scratch) const {
  for (GemmCall call{a, b, c, 0, shared}; call.round < rounds_; ++call.round) {
    Prepare(call, 0, prepare_tasks_);
    Run(call, 0, num_tasks_, scratch);
  }
}

GemmProblem Transposed(const GemmProblem& problem) {
  GemmProblem p = problem;
  std::swap(p.m, p.n);
  std::swap(p.a, p.b);
  for (StridedMatrix* m : {&p.a, &p.b, &p.c}) std::swap(m->row_stride, m->col_stride);
  return p;
}

GemmProblem WithSigned(const GemmProblem& problem) {
  GemmProblem p = problem;
  const ElementType sums = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  if (sums != ElementType::S32 && sums != ElementType::S64) return p;
  for (StridedMatrix* m : {&p.a, &p.b}) {
    if (m->type == ElementType::U32 && sums == ElementType::S32) m->type = ElementType::S32;
    if (m->type == ElementType::U64) m->type = ElementType::S64;
    if (m->type == ElementType::U16 && Bits(p.c.type) <= 16) m->type = ElementType::S16;
  }
  return p;
}

Result<std::shared_ptr<const Gemm>> Gemm::Create(const GemmProblem& problem, const GemmIsa& isa, GemmSharing sharing) {
  GemmProblem p = WithSigned(problem);
  const ElementType accumulator = GemmAccumulator(p.a.type, p.b.type, p.c.type);
  const bool swap = SuitsSwapped(isa, p, accumulator);
  if (swap) p = Transposed(p);
  std::shared_ptr<const Gemm> gemm;
  if (accumulator != ElementType::Invalid && (p.batch == 0 || p.m == 0 || p.n == 0))
    return std::shared_ptr<const Gemm>(std::make_shared<EmptyGemm>());
  switch (accumulator) {
    case ElementType::F32: gemm = MakeReal<float>(p, isa, sharing); break;
    case ElementType::F64: gemm = MakeReal<double>(p, isa, sharing); break;
    case ElementType::S32: gemm = MakeReal<int32_t>(p, isa, sharing); break;
    case ElementType::S64: gemm = MakeReal<int64_t>(p, isa, sharing); break;
    case ElementType::C64: gemm = MakeComplexGemm<float>(p, isa, sharing); break;
    case ElementType::C128: gemm = MakeComplexGemm<double>(p, isa, sharing); break;
    default: return Unimplemented("dot of ", Name(p.a.type), " and ", Name(p.b.type), " to ", Name(p.c.type));
  }
  if (swap) gemm = std::make_shared<SwappedGemm>(std::move(gemm));
  return gemm;
}

}  // namespace strop::cpu
