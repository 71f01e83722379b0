// Rules of convert. A chain a -> b -> c is a -> c if every value of a is one of b, and if the last step does the same
// to the value whichever type it comes from: integers wrap into smaller integers, floats are cut off at their ends.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

// Integers from -2^negative (none if -1) to 2^positive - 1.
struct IntegerRange {
  int negative, positive;
};

IntegerRange RangeOf(ElementType t) {
  if (IsPred(t)) return {-1, 1};
  return IsSigned(t) ? IntegerRange{Bits(t) - 1, Bits(t) - 1} : IntegerRange{-1, Bits(t)};
}

// Is every value of `from` (infinities, NaN and -0 included) a value of `to`?
bool IsExact(ElementType from, ElementType to) {
  if (from == to) return true;
  if (IsPred(to)) return false;
  const bool from_integer = IsInteger(from) || IsPred(from);
  if (from_integer && IsInteger(to)) {
    const IntegerRange a = RangeOf(from), b = RangeOf(to);
    return a.positive <= b.positive && a.negative <= b.negative;
  }
  if (IsComplex(from)) return to == ElementType::C128;
  if (IsComplex(to)) return IsExact(from, ComplexPart(to));
  if (!IsFloat(to)) return false;
  const FloatFormat& wide = FormatOf(to);
  if (!wide.has_sign || !wide.has_zero) return false;
  if (from_integer) return RangeOf(from).positive <= wide.mantissa_bits + 1 && RangeOf(from).positive <= wide.bias;
  const FloatFormat& narrow = FormatOf(from);
  return narrow.mantissa_bits <= wide.mantissa_bits &&
         narrow.bias + narrow.mantissa_bits <= wide.bias + wide.mantissa_bits &&
         (1 << narrow.exponent_bits) - narrow.bias <= (1 << wide.exponent_bits) - wide.bias &&
         (wide.has_infinity || !narrow.has_infinity) && (wide.has_nan || !narrow.has_nan) &&
         (wide.has_negative_zero || !narrow.has_negative_zero);
}

// Does converting to `to` treat values of both types alike?
bool SameEnding(ElementType a, ElementType b, ElementType to) {
  if (IsPred(to) || IsFloat(to) || IsComplex(to)) return true;
  if (IsComplex(a) || IsComplex(b)) return false;
  const bool a_integer = !IsFloat(a), b_integer = !IsFloat(b);
  return a_integer == b_integer || (a_integer && IsExact(a, to));
}

Instruction* ConvertConvert(Instruction* i, Builder& b) {
  Instruction* x;
  if (!Match(i, Convert(Convert(Any(&x))))) return nullptr;
  const ElementType from = Type(x), middle = Type(i->operand(0)), to = Type(i);
  if (!IsExact(from, middle) || !SameEnding(from, middle, to)) return nullptr;
  return b.Convert(x, to);
}

// Of one constant or another, which are converted once: a mask's 0 and -1e9 in bf16.
Instruction* ConvertSelectConstants(Instruction* i, Builder& b) {
  Instruction* select = i->operand(0);
  if (select->op() != Op::Select || select->use_count() != 1 || select->shape().IsScalar()) return nullptr;
  if (!Splat(select->operand(1)) || !Splat(select->operand(2))) return nullptr;
  const auto converted = [&](int64_t k) {
    return b.Broadcast(b.Convert(SpreadScalar(select->operand(k)), Type(i)), i->shape().dims(), {});
  };
  return b.Make(Op::Select, {select->operand(0), converted(1), converted(2)});
}

constexpr Rule kRules[] = {
    {"convert-same-type", Op::Convert, &SameType},
    {"convert-convert", Op::Convert, &ConvertConvert},
    {"convert-select-constants", Op::Convert, &ConvertSelectConstants},
};

}  // namespace

RuleSet ConvertRules() { return kRules; }

}  // namespace strop::simplify
