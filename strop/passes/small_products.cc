// Batches of products of a few rows, columns and terms are sums of products of elements:
//
//   dot(f32[1000,3,3] %a, f32[1000,3,3] %b), lhs_batch_dims={0}, rhs_batch_dims={0}
//   ->  broadcast(%a[:,:,0]) * broadcast(%b[:,0,:]) + broadcast(%a[:,:,1]) * broadcast(%b[:,1,:]) + ...
//
// A product of 2 x 2 is less work than the call that computes it. As arithmetic it is vectors over rows, columns and
// members of the batch, at known places of each other (docs/adr/0025), and kernels of it take in what it is computed
// from and what is computed from it: rotations, small systems, scans over matrices.
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMostOfSide = 4;       // rows, columns and terms
constexpr int64_t kFewestElements = 16;  // of the result

bool IsFloatOrBrain(ElementType type) {
  return type == ElementType::F32 || type == ElementType::F64 || type == ElementType::BF16 || type == ElementType::F16;
}

class Expander {
 public:
  explicit Expander(Instruction* dot) : dot_(dot), attrs_(dot->attrs<DotAttrs>()), b_(dot->parent()) {}

  bool Run() {
    if (!IsSmall()) return false;
    b_.set_insert_before(dot_);
    if (dot_->has_metadata()) b_.set_metadata(dot_->shared_metadata());
    const ElementType type = dot_->shape().type();
    const bool widens = Bits(type) < 32;
    Instruction* sides[2];
    for (int64_t k = 0; k < 2; ++k) {
      sides[k] = dot_->operand(k);
      if (widens) sides[k] = b_.Convert(sides[k], ElementType::F32);
    }
    const int64_t terms = dot_->operand(0)->shape().dim(attrs_.lhs_contracting[0]);
    Instruction* sum = nullptr;
    for (int64_t t = 0; t < terms; ++t) {
      Instruction* product = b_.Make(Op::Multiply, {Term(sides[0], 0, t), Term(sides[1], 1, t)});
      sum = sum ? b_.Make(Op::Add, {sum, product}) : product;
    }
    if (widens) sum = b_.Convert(sum, type);
    if (!b_.status().ok()) return false;
    dot_->parent()->Replace(dot_, sum);
    return true;
  }

 private:
  const Dims& Batch(int64_t k) const { return k == 0 ? attrs_.lhs_batch : attrs_.rhs_batch; }
  int64_t Contracting(int64_t k) const { return k == 0 ? attrs_.lhs_contracting[0] : attrs_.rhs_contracting[0]; }

  bool IsSmall() const {
    const Shape& shape = dot_->shape();
    if (dot_->operand_count() != 2 || !shape.IsStatic() || !IsFloatOrBrain(shape.type())) return false;
    if (!dot_->control_predecessors().empty() || !dot_->control_successors().empty() || dot_->sharding()) return false;
    if (attrs_.lhs_batch.empty() || attrs_.lhs_contracting.size() != 1) return false;
    for (int64_t k = 0; k < 2; ++k) {
      const Shape& side = dot_->operand(k)->shape();
      if (side.type() != shape.type() || !side.IsStatic()) return false;
      int64_t matrix = 1;
      for (int64_t d = 0; d < side.rank(); ++d) {
        if (std::ranges::find(Batch(k), d) != Batch(k).end()) continue;
        if (side.dim(d) > kMostOfSide || side.dim(d) == 0) return false;
        matrix *= side.dim(d);
      }
      if (matrix > kMostOfSide * kMostOfSide) return false;
    }
    return shape.num_elements() >= kFewestElements;
  }

  // Of operand k, the elements of one term, spread over the result.
  Instruction* Term(Instruction* side, int64_t k, int64_t term) {
    const Shape& shape = side->shape();
    const int64_t contracting = Contracting(k), rank = shape.rank();
    Dims start(static_cast<size_t>(rank), 0), limit, stride(static_cast<size_t>(rank), 1), to;
    Int64Vector dims;
    for (int64_t d = 0; d < rank; ++d) limit.push_back(shape.dim(d));
    start[contracting] = term;
    limit[contracting] = term + 1;
    // Free dimensions come behind the batch in the result, those of the left side first.
    int64_t free = static_cast<int64_t>(Batch(k).size());
    if (k == 1) free = dot_->shape().rank() - (rank - free - 1);
    Dims order;  // of what is left of the operand, by its place in the result
    for (int64_t d : Batch(k)) order.push_back(d);
    for (int64_t d = 0; d < rank; ++d)
      if (d != contracting && std::ranges::find(Batch(k), d) == Batch(k).end()) order.push_back(d);
    // Its dimensions as they lie, each with its place.
    for (int64_t d = 0; d < rank; ++d) {
      if (d == contracting) continue;
      dims.push_back(shape.dim(d));
      const auto at = std::ranges::find(order, d) - order.begin();
      const auto batch = static_cast<int64_t>(Batch(k).size());
      to.push_back(at < batch ? at : free + (at - batch));
    }
    Instruction* taken = b_.Reshape(b_.Slice(side, start, limit, stride), dims);
    if (!std::ranges::is_sorted(to)) {
      Dims permutation;
      for (int64_t n = 0; n < static_cast<int64_t>(to.size()); ++n) permutation.push_back(n);
      std::ranges::sort(permutation, [&](int64_t x, int64_t y) { return to[x] < to[y]; });
      taken = b_.Transpose(taken, permutation);
      std::ranges::sort(to);
    }
    return b_.Broadcast(taken, dot_->shape().dims(), to);
  }

  Instruction* dot_;
  const DotAttrs attrs_;
  Builder b_;
};

struct SmallProducts final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> dots;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Dot) dots.push_back(i);
      for (Instruction* dot : dots) expanded += Expander(dot).Run();
    }
    context.Count("small-products.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSmallProducts() { return std::make_unique<SmallProducts>(); }

}  // namespace strop
