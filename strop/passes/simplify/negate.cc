// Rules of negate.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* NegateNegate(Instruction* i, Builder&) {
  return HasNegatives(i) && i->operand(0)->op() == Op::Negate ? i->operand(0)->operand(0) : nullptr;
}

// -(x - y) -> y - x for integers; floats differ in the sign of zero.
Instruction* NegateSubtract(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!IsInt(i) || !Match(i, Negate(OneUse(Subtract(Any(&x), Any(&y)))))) return nullptr;
  return b.Make(Op::Subtract, {y, x});
}

constexpr Rule kRules[] = {
    {"negate-negate", Op::Negate, &NegateNegate},
    {"negate-subtract", Op::Negate, &NegateSubtract},
};

}  // namespace

RuleSet NegateRules() { return kRules; }

}  // namespace strop::simplify
