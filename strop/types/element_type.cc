// Conversion of small floats goes through double, which holds every value of every format of 32 bits or less exactly:
// decoding is exact, and encoding rounds once.
#include "strop/types/element_type.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace strop {

std::optional<ElementType> ParseElementType(std::string_view name) {
  for (int i = 0; i < kNumElementTypes; ++i) {
    ElementType t = static_cast<ElementType>(i);
    if (t != ElementType::Invalid && t != ElementType::Tuple && Name(t) == name && name != "invalid") return t;
  }
  return std::nullopt;
}

std::optional<ElementType> ElementTypeFromNumber(int64_t number) {
  if (number <= 0 || number >= kNumElementTypes) return std::nullopt;
  ElementType t = static_cast<ElementType>(number);
  if (Name(t) == "invalid") return std::nullopt;
  return t;
}

const FloatFormat& FormatOf(ElementType t) {
  static constexpr FloatFormat kF16{16, 5, 10, 15, true, true, true};
  static constexpr FloatFormat kBF16{16, 8, 7, 127, true, true, true};
  static constexpr FloatFormat kF32{32, 8, 23, 127, true, true, true};
  static constexpr FloatFormat kF64{64, 11, 52, 1023, true, true, true};
  static constexpr FloatFormat kF8E5M2{8, 5, 2, 15, true, true, true};
  static constexpr FloatFormat kF8E4M3{8, 4, 3, 7, true, true, true};
  static constexpr FloatFormat kF8E3M4{8, 3, 4, 3, true, true, true};
  static constexpr FloatFormat kF8E4M3FN{8, 4, 3, 7, false, true, true};
  static constexpr FloatFormat kF8E4M3B11FNUZ{8, 4, 3, 11, false, true, false};
  static constexpr FloatFormat kF8E5M2FNUZ{8, 5, 2, 16, false, true, false};
  static constexpr FloatFormat kF8E4M3FNUZ{8, 4, 3, 8, false, true, false};
  static constexpr FloatFormat kF8E8M0FNU{8, 8, 0, 127, false, true, false, false, false};
  static constexpr FloatFormat kF4E2M1FN{4, 2, 1, 1, false, false, true};
  switch (t) {
    case ElementType::F16: return kF16;
    case ElementType::BF16: return kBF16;
    case ElementType::F64: return kF64;
    case ElementType::F8E5M2: return kF8E5M2;
    case ElementType::F8E4M3: return kF8E4M3;
    case ElementType::F8E3M4: return kF8E3M4;
    case ElementType::F8E4M3FN: return kF8E4M3FN;
    case ElementType::F8E4M3B11FNUZ: return kF8E4M3B11FNUZ;
    case ElementType::F8E5M2FNUZ: return kF8E5M2FNUZ;
    case ElementType::F8E4M3FNUZ: return kF8E4M3FNUZ;
    case ElementType::F8E8M0FNU: return kF8E8M0FNU;
    case ElementType::F4E2M1FN: return kF4E2M1FN;
    default: return kF32;
  }
}

double DecodeFloat(ElementType t, uint64_t code) {
  if (t == ElementType::F64) return std::bit_cast<double>(code);
  if (t == ElementType::F32) return std::bit_cast<float>(static_cast<uint32_t>(code));
  const FloatFormat& f = FormatOf(t);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  if (!f.has_sign) return code == 0xff ? nan : std::ldexp(1.0, static_cast<int>(code) - f.bias);  // e8m0
  const int exponent_max = (1 << f.exponent_bits) - 1;
  const int mantissa_max = (1 << f.mantissa_bits) - 1;
  const int mantissa = static_cast<int>(code) & mantissa_max;
  const int exponent = static_cast<int>(code >> f.mantissa_bits) & exponent_max;
  const bool negative = (code >> (f.bits - 1)) & 1;
  if (!f.has_negative_zero && negative && exponent == 0 && mantissa == 0) return nan;
  if (f.has_infinity && exponent == exponent_max) {
    if (mantissa != 0) return std::copysign(nan, negative ? -1.0 : 1.0);
    return negative ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  }
  if (!f.has_infinity && f.has_nan && f.has_negative_zero && exponent == exponent_max && mantissa == mantissa_max)
    return std::copysign(nan, negative ? -1.0 : 1.0);
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - f.bias - f.mantissa_bits)
                               : std::ldexp(mantissa + (1 << f.mantissa_bits), exponent - f.bias - f.mantissa_bits);
  return negative ? -magnitude : magnitude;
}

namespace {

uint64_t NanCode(const FloatFormat& f, bool negative) {
  const uint64_t sign = uint64_t{1} << (f.bits - 1);
  if (!f.has_sign) return 0xff;
  if (!f.has_nan) return sign;  // f4e2m1fn: XLA converts NaN to negative zero
  if (!f.has_negative_zero) return sign;
  const uint64_t exponent = ((uint64_t{1} << f.exponent_bits) - 1) << f.mantissa_bits;
  const uint64_t mantissa =
      f.has_infinity ? uint64_t{1} << (f.mantissa_bits - 1) : (uint64_t{1} << f.mantissa_bits) - 1;
  return (negative ? sign : 0) | exponent | mantissa;
}

uint64_t EncodeE8M0(double value) {  // a power of two in 2^-127 .. 2^127; no sign, no zero
  const FloatFormat& f = FormatOf(ElementType::F8E8M0FNU);
  if (std::isnan(value) || value < 0 || std::isinf(value)) return 0xff;
  if (value == 0) return 0;
  int exponent;
  double fraction = std::frexp(value, &exponent);  // value = fraction * 2^exponent, fraction in [0.5, 1)
  int code = exponent - 1 + f.bias;
  // Ties to even: 1.5 * 2^k lies half way between the codes of 2^k and 2^(k+1).
  if (fraction > 0.75 || (fraction == 0.75 && (code & 1))) ++code;
  if (code > 254) return 0xff;
  return code < 0 ? 0 : static_cast<uint64_t>(code);
}

}  // namespace

uint64_t EncodeFloat(ElementType t, double value) {
  if (t == ElementType::F64) return std::bit_cast<uint64_t>(value);
  if (t == ElementType::F32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  if (t == ElementType::F8E8M0FNU) return EncodeE8M0(value);
  const FloatFormat& f = FormatOf(t);
  const bool negative = std::signbit(value);
  const uint64_t sign = negative ? uint64_t{1} << (f.bits - 1) : 0;
  if (std::isnan(value)) return NanCode(f, negative);
  const int exponent_max = (1 << f.exponent_bits) - 1;
  // The largest finite code: all ones below infinity, or below the NaN code of the FN formats.
  uint64_t largest;
  if (f.has_infinity) {
    largest = (static_cast<uint64_t>(exponent_max) << f.mantissa_bits) - 1;
  } else {
    largest = (uint64_t{1} << (f.bits - 1)) - 1;
    if (f.has_nan && f.has_negative_zero) --largest;
  }
  const uint64_t infinity = f.has_infinity ? (static_cast<uint64_t>(exponent_max) << f.mantissa_bits) | sign
                            : f.has_nan    ? NanCode(f, negative)
                                           : largest | sign;  // f4e2m1fn saturates
  double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return infinity;
  if (magnitude == 0) return f.has_negative_zero ? sign : 0;
  int exponent;
  std::frexp(magnitude, &exponent);
  // Units of the last place: those of the value's binade, or of the subnormals.
  int unit = std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits;
  double units = std::nearbyint(std::ldexp(magnitude, -unit));  // exact scaling; rounds to nearest even
  uint64_t code = static_cast<uint64_t>(units);
  const int biased = unit + f.mantissa_bits + f.bias;  // exponent field if the implicit one is present
  // A subnormal has code == units; a normal number adds its exponent field (a carry into it comes out right).
  code += static_cast<uint64_t>(biased - 1) << f.mantissa_bits;
  if (code > largest) return infinity;
  if (code == 0 && !f.has_negative_zero) return 0;
  return code | sign;
}

}  // namespace strop
