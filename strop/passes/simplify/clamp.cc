// Rules of clamp.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// clamp(l, clamp(l, x, h), h)
Instruction* ClampClamp(Instruction* i, Builder&) {
  Instruction* inner = i->operand(1);
  if (inner->op() != Op::Clamp || inner->operand(0) != i->operand(0) || inner->operand(2) != i->operand(2))
    return nullptr;
  return inner;
}

constexpr Rule kRules[] = {
    {"clamp-clamp", Op::Clamp, &ClampClamp},
};

}  // namespace

RuleSet ClampRules() { return kRules; }

}  // namespace strop::simplify
