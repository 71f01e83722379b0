// Rules of remainder.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Unsigned x % 2^k -> x & (2^k - 1)
Instruction* RemainderUnsigned(Instruction* i, Builder& b) {
  const int k = PowerOfTwo(i->operand(1));
  if (!IsUnsigned(Type(i)) || k < 0) return nullptr;
  Instruction* mask = b.Constant(Literal::ScalarOfInt(Type(i), static_cast<int64_t>((uint64_t{1} << k) - 1)));
  return b.Make(Op::And, {i->operand(0), i->shape().IsScalar() ? mask : b.Broadcast(mask, i->shape().dims(), {})});
}

constexpr Rule kRules[] = {
    {"remainder-unsigned", Op::Remainder, &RemainderUnsigned},
};

}  // namespace

RuleSet RemainderRules() { return kRules; }

}  // namespace strop::simplify
