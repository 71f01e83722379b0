// Products of matrices by vectors are sums along rows or columns:
//
//   dot(f32[512,300] %a, f32[300] %x)   ->   reduce(multiply(%a, broadcast(%x))), dimensions={1}
//   dot(f32[512] %y, f32[512,300] %a)   ->   reduce(multiply(%a, broadcast(%y))), dimensions={0}
//
// Each element of the matrix is used once, so that blocks and panels have nothing to give, and a kernel that sums takes
// in what the matrix is computed from (an activation, a mask, a scale): it is neither written nor read again. Columns
// of a matrix that is read from memory and no cache holds are left to the library, and so are long rows. Loops keep
// their products: passes over these know them.
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kFewestTerms = 8;
constexpr int64_t kFewestOfBatch = 16;  // shorter rows are side by side in a vector, with another member's
constexpr int64_t kFewestRows = 2;
constexpr int64_t kFewestColumns = 64;  // whose sums are vectors side by side
// Of the matrix, in bytes: columns that a cache holds; rows that one may hold, and of others, how long they are. (The
// library reads several rows at a time from memory.)
constexpr int64_t kCachedColumns = int64_t{1} << 20, kNearRows = int64_t{4} << 20, kLongRow = int64_t{16} << 10;

class Rewriter {
 public:
  explicit Rewriter(Instruction* dot) : dot_(dot), a_(dot->attrs<DotAttrs>()), b_(dot->parent()) {}

  bool Run() {
    const Shape& shape = dot_->shape();
    if (dot_->operand_count() != 2 || !shape.IsStatic() || !a_.algorithm.empty()) return false;
    if (dot_->HasControlEdges() || dot_->sharding()) return false;
    if (shape.type() != ElementType::F32 && shape.type() != ElementType::F64) return false;
    int64_t free[2] = {1, 1};
    for (int64_t k = 0; k < 2; ++k) {
      const Shape& side = dot_->operand(k)->shape();
      if (!side.IsStatic() || side.type() != shape.type() || side.num_elements() == 0) return false;
      for (int64_t d = 0; d < side.rank(); ++d)
        if (IsFree(k, d)) free[k] *= side.dim(d);
    }
    for (int64_t k = 0; k < 2; ++k)
      if (free[k] >= kFewestRows && free[1 - k] == 1 && Suits(k, free[k])) return Rewrite(k);
    return false;
  }

 private:
  const Dims& Batch(int64_t k) const { return k == 0 ? a_.lhs_batch : a_.rhs_batch; }
  const Dims& Contracting(int64_t k) const { return k == 0 ? a_.lhs_contracting : a_.rhs_contracting; }
  bool IsFree(int64_t k, int64_t d) const { return !Contains(Batch(k), d) && !Contains(Contracting(k), d); }

  // Is operand k a matrix whose rows, as they lie, are summed, or whose columns are, side by side?
  bool Suits(int64_t k, int64_t free) const {
    const Instruction& matrix = *dot_->operand(k);
    const int64_t rank = matrix.shape().rank();
    int64_t terms = 1;
    for (int64_t d : Contracting(k)) terms *= matrix.shape().dim(d);
    if (terms < (Batch(k).empty() ? kFewestTerms : kFewestOfBatch) || Contracting(k).empty()) return false;
    // Which dimension of the operand each one of memory is, from the last.
    Dims lies;
    for (int64_t d = rank; d-- > 0;) lies.push_back(d);
    if (matrix.op() == Op::Transpose)
      for (int64_t d = 0; d < rank; ++d) lies[rank - 1 - matrix.dimensions()[d]] = d;
    const auto summed = static_cast<int64_t>(Contracting(k).size());
    const int64_t bytes = matrix.shape().byte_size();
    if (std::all_of(lies.begin(), lies.begin() + summed, [&](int64_t d) { return Contains(Contracting(k), d); }))
      return bytes <= kNearRows || bytes <= kLongRow * (matrix.shape().num_elements() / terms) || IsComputed(matrix);
    if (!IsFree(k, lies[0]) || free < kFewestColumns) return false;
    return bytes <= kCachedColumns || IsComputed(matrix);
  }

  // Will kernels compute it for nobody else?
  static bool IsComputed(const Instruction& matrix) {
    return IsElementwise(matrix.op()) && matrix.use_count() == 1 && !matrix.HasControlEdges();
  }

  bool Rewrite(int64_t k) {
    Instruction *matrix = dot_->operand(k), *vector = dot_->operand(1 - k);
    const Shape& shape = matrix->shape();
    // Where the vector's dimensions are in the matrix, in its own order; those that are free are of one element.
    Dims sizes, at;
    for (int64_t d = 0; d < vector->shape().rank(); ++d) {
      const Dims &batch = Batch(1 - k), &contracting = Contracting(1 - k);
      if (const auto b = std::ranges::find(batch, d); b != batch.end())
        at.push_back(Batch(k)[b - batch.begin()]);
      else if (const auto c = std::ranges::find(contracting, d); c != contracting.end())
        at.push_back(Contracting(k)[c - contracting.begin()]);
      else
        continue;
      sizes.push_back(vector->shape().dim(d));
    }
    // What is left of the matrix's dimensions must be the result's, in order.
    Dims left;
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (!Contains(Contracting(k), d)) left.push_back(d);
    const Dims& batch = Batch(k);
    if (!std::ranges::is_sorted(at) || !std::equal(batch.begin(), batch.end(), left.begin())) return false;
    b_.set_insert_before(dot_);
    if (dot_->has_metadata()) b_.set_metadata(dot_->shared_metadata());
    Computation* sum = dot_->parent()->module()->AddComputation("sum");
    const Shape scalar = Shape::Array(shape.type(), {});
    Instruction *x = sum->AddParameter(0, scalar), *y = sum->AddParameter(1, scalar);
    sum->set_root(sum->Add(Op::Add, scalar, {x, y}));
    Instruction* spread = b_.Broadcast(b_.Reshape(vector, Int64Vector(sizes.begin(), sizes.end())), shape.dims(), at);
    Dims dimensions = Contracting(k);
    std::ranges::sort(dimensions);
    Instruction* sums = b_.Reduce(b_.Make(Op::Multiply, {matrix, spread}), b_.Scalar(shape.type(), 0), dimensions, sum);
    sums = b_.Reshape(sums, dot_->shape().dims());
    if (!b_.status().ok()) return false;
    dot_->parent()->Replace(dot_, sums);
    return true;
  }

  Instruction* const dot_;
  const DotAttrs a_;
  Builder b_;
};

struct VectorProducts final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    std::vector<Instruction*> dots;
    for (Instruction* i : module.entry()->instructions())
      if (i->op() == Op::Dot) dots.push_back(i);
    int64_t rewritten = 0;
    for (Instruction* dot : dots) rewritten += Rewriter(dot).Run();
    context.Count("vector-products.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeVectorProducts() { return std::make_unique<VectorProducts>(); }

}  // namespace strop
