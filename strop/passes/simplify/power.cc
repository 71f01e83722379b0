// Rules of power.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// x^0 = 1 (for NaN too), x^1 = x; x^2 and x^-1 are rounded once, as x*x and 1/x are.
Instruction* PowerOfSmallInteger(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (IsComplex(Type(i))) return nullptr;
  if (IsSplatOf(i->operand(1), 0)) return Like(b, i, 1);
  if (IsSplatOf(i->operand(1), 1)) return x;
  if (IsSplatOf(i->operand(1), 2)) return b.Make(Op::Multiply, {x, x});
  if (IsFloat(Type(i)) && IsSplatOf(i->operand(1), -1)) return b.Make(Op::Divide, {Like(b, i, 1), x});
  return nullptr;
}

constexpr Rule kRules[] = {
    {"power-small-integer", Op::Power, &PowerOfSmallInteger},
};

}  // namespace

RuleSet PowerRules() { return kRules; }

}  // namespace strop::simplify
