// Rules of reduce-precision.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Not that of a bf16 product: it says that the product is to be rounded (JAX's remat does), which is asked by
// product-widening.
Instruction* ReducePrecisionToSelf(Instruction* i, Builder&) {
  const Op of = i->operand(0)->op();
  if (Type(i) == ElementType::BF16 && (of == Op::Dot || of == Op::Convolution)) return nullptr;
  const auto& attrs = i->attrs<ReducePrecisionAttrs>();
  const FloatFormat& format = FormatOf(Type(i));
  const bool ieee = format.has_infinity && format.has_nan && format.has_negative_zero;
  const bool same = attrs.exponent_bits == format.exponent_bits && attrs.mantissa_bits == format.mantissa_bits;
  return ieee && same ? i->operand(0) : nullptr;
}

constexpr Rule kRules[] = {
    {"reduce-precision-to-self", Op::ReducePrecision, &ReducePrecisionToSelf},
};

}  // namespace

RuleSet ReducePrecisionRules() { return kRules; }

}  // namespace strop::simplify
