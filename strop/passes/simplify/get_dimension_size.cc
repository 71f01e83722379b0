// Rules of get-dimension-size.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* StaticSize(Instruction* i, Builder& b) {
  const int64_t size = i->operand(0)->shape().dim(i->dimensions()[0]);
  return size <= INT32_MAX ? b.Constant(Literal::Scalar(static_cast<int32_t>(size))) : nullptr;
}

constexpr Rule kRules[] = {
    {"static-size", Op::GetDimensionSize, &StaticSize},
};

}  // namespace

RuleSet GetDimensionSizeRules() { return kRules; }

}  // namespace strop::simplify
