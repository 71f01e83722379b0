// Rules of iota.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Along a dimension of one element: zero
Instruction* IotaOfOne(Instruction* i, Builder& b) {
  if (i->shape().dim(i->attrs<IotaAttrs>().dimension) != 1) return nullptr;
  return b.Splat(i->shape().type(), 0, i->shape().dims());
}

constexpr Rule kRules[] = {
    {"iota-of-one", Op::Iota, &IotaOfOne},
};

}  // namespace

RuleSet IotaRules() { return kRules; }

}  // namespace strop::simplify
