// Rules of xor.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* XorConstant(Instruction* i, Builder& b) {
  if (i->operand(0) == i->operand(1)) return b.Splat(Type(i), 0, i->shape().dims());
  for (int64_t k = 0; k < 2; ++k) {
    if (IsZeroInteger(i->operand(k))) return i->operand(1 - k);
    if (IsAllOnes(i->operand(k))) return b.Make(Op::Not, {i->operand(1 - k)});
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"xor-constant", Op::Xor, &XorConstant},
};

}  // namespace

RuleSet XorRules() { return kRules; }

}  // namespace strop::simplify
