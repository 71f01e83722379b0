// binary16 and bfloat16 <-> float without branches, so that loops over them become vector code.
#pragma once
#include <bit>
#include <cstdint>

namespace strop::cpu {

// a where `test` is negative, else b. Not a ?: of the two: compilers compute floats only where they are chosen then,
// which is a branch.
inline uint32_t WhereNegative(uint32_t test, uint32_t a, uint32_t b) {
  const uint32_t mask = static_cast<uint32_t>(static_cast<int32_t>(test) >> 31);
  return b ^ ((a ^ b) & mask);
}

// Exact. Signalling NaNs stay what they are.
inline float HalfToFloat(uint16_t code) {
  const uint32_t sign = static_cast<uint32_t>(code & 0x8000) << 16, rest = static_cast<uint32_t>(code & 0x7fff) << 13;
  // The exponent is 112 too small; a product with 2^112 also makes subnormals normal.
  const uint32_t finite = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p112f);
  const uint32_t special = rest | 0x7f800000;
  return std::bit_cast<float>(sign | WhereNegative(rest - 0x0f800000, finite, special));
}

// Rounds to nearest, ties to even; NaNs become quiet.
inline uint16_t FloatToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000, rest = bits & 0x7fffffff;
  // Normal results: the exponent shifts by 112, and half of the last place is added, one less if it is even.
  const uint32_t normal = (rest - 0x38000000 + 0xfff + ((rest >> 13) & 1)) >> 13;
  // Subnormal results: adding 1/2 lets the addition round to multiples of 2^-24.
  const uint32_t subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(rest) + 0.5f) - 0x3f000000;
  const uint32_t special = WhereNegative(0x7f800000 - rest, 0x7e00 | ((rest >> 13) & 0x3ff), 0x7c00);
  const uint32_t finite = WhereNegative(rest - 0x38800000, subnormal, normal);
  return static_cast<uint16_t>(sign | WhereNegative(rest - 0x477ff000, finite, special));
}

inline float Bf16ToFloat(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }

// Rounds to nearest, ties to even; NaNs become quiet.
inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = bits + 0x7fff + ((bits >> 16) & 1), quiet = bits | 0x400000;
  return static_cast<uint16_t>(WhereNegative(0x7f800000 - (bits & 0x7fffffff), quiet, rounded) >> 16);
}

}  // namespace strop::cpu
