// Rules of dot.
#include <algorithm>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Nothing is summed: zero
Instruction* DotOfEmpty(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || i->operand(0)->shape().num_elements() != 0 || IsComplex(Type(i))) return nullptr;
  return b.Splat(Type(i), 0, i->shape().dims());
}

// Every sum has one term: an outer product, elementwise. It begins at zero: 0 + -0 is not -0.
Instruction* DotIsOuterProduct(Instruction* i, Builder& b) {
  const auto& a = i->attrs<DotAttrs>();
  if (i->operand_count() != 2 || Type(i->operand(0)) != Type(i) || Type(i->operand(1)) != Type(i) ||
      !a.algorithm.empty())
    return nullptr;
  for (int64_t d : a.lhs_contracting)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  // Result dimensions: batch, those of lhs that are left, those of rhs that are left.
  int64_t next = static_cast<int64_t>(a.lhs_batch.size());
  auto spread = [&](Instruction* x, const Dims& batch, const Dims& contracting) {
    Int64Vector dims;
    Dims dimensions;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Contains(contracting, d)) continue;
      const auto at = std::find(batch.begin(), batch.end(), d);
      dims.push_back(x->shape().dim(d));
      dimensions.push_back(at == batch.end() ? next++ : at - batch.begin());
    }
    Instruction* reshaped = b.Reshape(x, dims);
    return i->shape().IsScalar() ? reshaped : b.Broadcast(reshaped, i->shape().dims(), dimensions);
  };
  Instruction* lhs = spread(i->operand(0), a.lhs_batch, a.lhs_contracting);
  Instruction* rhs = spread(i->operand(1), a.rhs_batch, a.rhs_contracting);
  Instruction* product = b.Make(IsPred(Type(i)) ? Op::And : Op::Multiply, {lhs, rhs});
  if (IsInteger(Type(i)) || IsPred(Type(i))) return product;
  return b.Make(Op::Add, {product, b.Splat(Type(i), 0, i->shape().dims())});
}

constexpr Rule kRules[] = {
    {"dot-of-empty", Op::Dot, &DotOfEmpty},
    {"dot-is-outer-product", Op::Dot, &DotIsOuterProduct},
};

}  // namespace

RuleSet DotRules() { return kRules; }

}  // namespace strop::simplify
