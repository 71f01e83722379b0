// Rules of constants.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// A constant of equal elements -> broadcast of a scalar
Instruction* ConstantSplat(Instruction* i, Builder& b) {
  const Literal& literal = i->literal();
  if (!i->shape().IsArray() || i->shape().IsScalar() || !literal.has_values()) return nullptr;
  if (literal.num_elements() < 2 || !literal.AllElementsEqual()) return nullptr;
  const size_t bytes = static_cast<size_t>(Bytes(i->shape().type()));
  Result<Literal> scalar = Literal::FromBytes(Shape::Scalar(i->shape().type()), literal.bytes().first(bytes));
  if (!scalar.ok()) return nullptr;
  return b.Broadcast(b.Constant(*std::move(scalar)), i->shape().dims(), {});
}

constexpr Rule kRules[] = {
    {"constant-splat", Op::Constant, &ConstantSplat},
};

}  // namespace

RuleSet ConstantRules() { return kRules; }

}  // namespace strop::simplify
