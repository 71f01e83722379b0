// dot -> GEMM. The contracting and the free dimensions must lie in memory like one dimension each, the batch dimensions
// like two (the heads of attention lie inside of time, the batch outside of it); the strides say the rest, so that
// transposed operands need no transpose.
#include <algorithm>
#include <optional>

#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

struct Merged {
  int64_t size = 1;
  int64_t stride = 0;
};

// The dimensions `dims` of an array as one: each must be as far from the next as the next spans.
std::optional<Merged> Merge(const Shape& shape, const Dims& dims) {
  const Int64Vector strides = shape.Strides();
  Merged m;
  for (size_t i = dims.size(); i-- > 0;) {
    const int64_t size = shape.dim(dims[i]);
    if (size == 1) continue;
    if (m.size == 1)
      m.stride = strides[dims[i]];
    else if (strides[dims[i]] != m.stride * m.size)
      return std::nullopt;
    m.size *= size;
  }
  return m;
}

Dims Between(int64_t first, int64_t end) {
  Dims dims;
  for (int64_t d = first; d < end; ++d) dims.push_back(d);
  return dims;
}

Dims FreeDims(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (std::find(batch.begin(), batch.end(), d) == batch.end() &&
        std::find(contracting.begin(), contracting.end(), d) == contracting.end())
      free.push_back(d);
  return free;
}

Dims Part(const Dims& dims, size_t first, size_t end) {
  Dims part;
  for (size_t i = first; i < end; ++i) part.push_back(dims[i]);
  return part;
}

// The batch dimensions of both operands and of the result as one, or as two that are cut at the same place.
bool SetBatch(const Shape& lhs, const Shape& rhs, const Shape& out, const DotAttrs& dims, GemmProblem& p) {
  const size_t rank = dims.lhs_batch.size();
  const Dims out_batch = Between(0, static_cast<int64_t>(rank));
  for (size_t cut = 0; cut < std::max<size_t>(rank, 1); ++cut) {
    struct Side {
      const Shape& shape;
      const Dims& dims;
      StridedMatrix& matrix;
    };
    bool fits = true;
    for (Side side : {Side{lhs, dims.lhs_batch, p.a}, Side{rhs, dims.rhs_batch, p.b}, Side{out, out_batch, p.c}}) {
      const auto outer = Merge(side.shape, Part(side.dims, 0, cut)),
                 inner = Merge(side.shape, Part(side.dims, cut, rank));
      fits = fits && outer && inner;
      if (!fits) break;
      side.matrix.outer_stride = outer->stride;
      side.matrix.batch_stride = inner->stride;
      p.batch = outer->size * inner->size;
      p.inner_batch = cut == 0 ? 0 : inner->size;
    }
    if (fits) return true;
  }
  return false;
}

}  // namespace

Result<GemmProblem> GemmProblemOf(const Instruction& dot) {
  const DotAttrs& a = dot.attrs<DotAttrs>();
  if (dot.operand_count() != 2) return Unimplemented("sparse dot");
  const Shape& lhs = dot.operand(0)->shape();
  const Shape& rhs = dot.operand(1)->shape();
  const Shape& out = dot.shape();
  if (GemmAccumulator(lhs.type(), rhs.type(), out.type()) == ElementType::Invalid || IsPred(out.type()))
    return Unimplemented("dot of ", Name(lhs.type()), " and ", Name(rhs.type()), " to ", Name(out.type()));
  if (IsComplex(out.type()) != (IsComplex(lhs.type()) || IsComplex(rhs.type())))
    return Unimplemented("dot of ", Name(lhs.type()), " and ", Name(rhs.type()), " to ", Name(out.type()));
  auto lhs_k = Merge(lhs, a.lhs_contracting), rhs_k = Merge(rhs, a.rhs_contracting);
  auto m = Merge(lhs, FreeDims(lhs, a.lhs_batch, a.lhs_contracting));
  auto n = Merge(rhs, FreeDims(rhs, a.rhs_batch, a.rhs_contracting));
  if (!lhs_k || !m) return Unimplemented("dot whose lhs ", lhs.ToString(), " interleaves its dimensions");
  if (!rhs_k || !n) return Unimplemented("dot whose rhs ", rhs.ToString(), " interleaves its dimensions");
  GemmProblem p;
  p.m = m->size;
  p.n = n->size;
  p.k = lhs_k->size;
  p.a = {lhs.type(), m->stride, lhs_k->stride};
  p.b = {rhs.type(), rhs_k->stride, n->stride};
  p.c = {out.type(), p.n, 1};
  if (out.has_layout() && !out.layout().IsRowMajor()) {
    const int64_t batch = static_cast<int64_t>(a.lhs_batch.size());
    const int64_t rows = lhs.rank() - batch - static_cast<int64_t>(a.lhs_contracting.size());
    const auto c_m = Merge(out, Between(batch, batch + rows)), c_n = Merge(out, Between(batch + rows, out.rank()));
    if (!c_m || !c_n)
      return Unimplemented("dot whose result ", out.ToStringWithLayout(), " interleaves its dimensions");
    p.c = {out.type(), c_m->stride, c_n->stride};
    if (p.n == 1) p.c.col_stride = 1;
  }
  if (!SetBatch(lhs, rhs, out, a, p))
    return Unimplemented("dot whose batch dimensions lie in more than two pieces: ", lhs.ToString(), ", ",
                         rhs.ToString(), ", ", out.ToStringWithLayout());
  // A dimension of size one has no stride; give it one that lets the contiguous forms be seen.
  if (p.k == 1 && p.a.col_stride == 0) p.a.col_stride = 1;
  if (p.n == 1 && p.b.col_stride == 0) p.b.col_stride = 1;
  return p;
}

// Writing the numbers of B as blocks of real ones pays from about here on; what is smaller is a loop.
constexpr int64_t kFewComplexProducts = 1024;

// A product by so small a matrix or vector (coordinates, states of a filter) fills tiles with nothing; along its long
// side it is a loop over full vectors. Batches of them stay with the library, whose small products are one call; so do
// those of more terms and rows or columns than kVeryThin, which fill half of a tile, unless they have to be converted
// for that and rows of eight are vectors (others take LLVM as long as they save).
constexpr int64_t kThin = 8, kVeryThin = 4;
bool IsThin(const GemmProblem& p) {
  // What is converted on the way: halves and bytes.
  const auto plain_type = [](ElementType type) {
    return type == ElementType::F32 || type == ElementType::F64 || type == ElementType::BF16 ||
           type == ElementType::F16 || type == ElementType::S8 || type == ElementType::U8;
  };
  const auto fits = [&](ElementType type) {
    if (p.c.type == ElementType::S32) return type == ElementType::S8 || type == ElementType::U8;
    return plain_type(type) && Bits(type) <= std::max(Bits(p.c.type), 32);  // what it is summed in
  };
  const bool plain =
      fits(p.a.type) && fits(p.b.type) && (p.c.type == ElementType::S32 || (IsFloat(p.c.type) && plain_type(p.c.type)));
  const bool converted = p.a.type != p.c.type || p.b.type != p.c.type || Bits(p.c.type) < 32;
  const int64_t side = std::min(p.m, p.n);
  return plain && p.batch == 1 && p.k <= kThin && side <= kThin &&
         (std::min(p.k, side) <= kVeryThin || (converted && side == kThin)) && std::max(p.m, p.n) > 1;
}

Decision SupportsDot(const Instruction& dot) {
  Result<GemmProblem> problem = GemmProblemOf(dot);
  if (!problem.ok()) return Decision::No(problem.status().message());
  if (IsThin(*problem)) return Decision::No("a product by a matrix of a few rows and columns");
  const double products = static_cast<double>(problem->batch) * problem->m * problem->n * problem->k;
  if (IsComplex(dot.shape().type()) && products <= kFewComplexProducts) return Decision::No("a few complex products");
  return Decision::Yes();
}

Result<CompiledKernel> MakeDot(const KernelSpec& spec) {
  STROP_ASSIGN(GemmProblem problem, GemmProblemOf(*spec.instruction));
  return FromRecipe(RecipeOf(kGemmRecipe, problem));
}

}  // namespace strop::cpu
