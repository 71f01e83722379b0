// Rules of add. x + -0 is x, but x + 0 is not: -0 + 0 = 0.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* AddZero(Instruction* i, Builder&) {
  if (IsInt(i)) return Other(i, IsZeroInteger);
  return IsFloat(Type(i)) ? Other(i, IsNegativeZero) : nullptr;
}

// x + -y -> x - y
Instruction* AddNegate(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!NegatesExactly(i) || !Match(i, Add(Any(&x), OneUse(Negate(Any(&y)))))) return nullptr;
  return b.Make(Op::Subtract, {x, y});
}

// x - y + y for integers
Instruction* AddWhatWasSubtracted(Instruction* i, Builder&) {
  if (!IsInt(i)) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *difference = i->operand(k), *y = i->operand(1 - k);
    if (difference->op() == Op::Subtract && difference->operand(1) == y) return difference->operand(0);
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"add-zero", Op::Add, &AddZero},
    {"add-negate", Op::Add, &AddNegate},
    {"add-subtracted", Op::Add, &AddWhatWasSubtracted},
};

}  // namespace

RuleSet AddRules() { return kRules; }

}  // namespace strop::simplify
