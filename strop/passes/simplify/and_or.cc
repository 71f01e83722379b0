// Rules that and and or share.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// x & 0 = 0, x & ~0 = x, and the duals for or
Instruction* AndOrConstant(Instruction* i, Builder&) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *c = i->operand(k), *x = i->operand(1 - k);
    if (IsZeroInteger(c)) return i->op() == Op::And ? c : x;
    if (IsAllOnes(c)) return i->op() == Op::And ? x : c;
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"and-constant", Op::And, &AndOrConstant},
    {"or-constant", Op::Or, &AndOrConstant},
};

}  // namespace

RuleSet AndOrRules() { return kRules; }

}  // namespace strop::simplify
