// Rules of subtract. x - 0 is x; x - x is not 0 for floats (infinity, NaN).
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* SubtractZero(Instruction* i, Builder&) {
  const Instruction* y = i->operand(1);
  return (IsInt(i) ? IsZeroInteger(y) : IsPositiveZero(y)) ? i->operand(0) : nullptr;
}

Instruction* SubtractSelf(Instruction* i, Builder& b) {
  return IsInt(i) && i->operand(0) == i->operand(1) ? Like(b, i, 0) : nullptr;
}

// x - -y -> x + y
Instruction* SubtractNegate(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!NegatesExactly(i) || !Match(i, Subtract(Any(&x), OneUse(Negate(Any(&y)))))) return nullptr;
  return b.Make(Op::Add, {x, y});
}

// 0 - x -> -x for integers; for floats 0 - 0 is 0, but -(0) is -0.
Instruction* ZeroMinus(Instruction* i, Builder& b) {
  const bool exact = IsInt(i) ? IsZeroInteger(i->operand(0)) : IsNegativeZero(i->operand(0));
  return exact ? b.Make(Op::Negate, {i->operand(1)}) : nullptr;
}

// x + y - y, x + y - x, x - (x - y), for integers
Instruction* SubtractWhatWasAdded(Instruction* i, Builder&) {
  if (!IsInt(i)) return nullptr;
  Instruction *x = i->operand(0), *y = i->operand(1);
  if (x->op() == Op::Add && x->operand(1) == y) return x->operand(0);
  if (x->op() == Op::Add && x->operand(0) == y) return x->operand(1);
  return y->op() == Op::Subtract && y->operand(0) == x ? y->operand(1) : nullptr;
}

// x - c -> x + -c for integers, so that constants meet in sums.
Instruction* SubtractConstant(Instruction* i, Builder& b) {
  if (!IsInt(i) || !Splat(i->operand(1)) || Splat(i->operand(0))) return nullptr;
  return b.Make(Op::Add, {i->operand(0), NegatedConstant(b, i->operand(1))});
}

constexpr Rule kRules[] = {
    {"subtract-zero", Op::Subtract, &SubtractZero},          {"subtract-self", Op::Subtract, &SubtractSelf},
    {"subtract-negate", Op::Subtract, &SubtractNegate},      {"zero-minus", Op::Subtract, &ZeroMinus},
    {"subtract-added", Op::Subtract, &SubtractWhatWasAdded}, {"subtract-constant", Op::Subtract, &SubtractConstant},
};

}  // namespace

RuleSet SubtractRules() { return kRules; }

}  // namespace strop::simplify
