#include "strop/passes/fixed_divisor.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strop {
namespace {

__extension__ using Wide = unsigned __int128;

// Of an odd number, modulo 2^128: each step doubles the number of right bits, of which 3 are there at first.
Wide InverseOf(Wide odd) {
  Wide inverse = odd;
  for (int bits = 3; bits < 128; bits *= 2) inverse *= 2 - odd * inverse;
  return inverse;
}

// 1 / c for c above 0; `low` is the nearest there is (0), or one of its neighbours (-1, 1).
template <class F>
FixedDivisor<F> Split(F c, int neighbour) {
  F high = 1 / c;
  if (std::fma(-c, high, F(1)) < 0) high = std::nextafter(high, F(0));
  const F low = std::fma(-c, high, F(1)) / c;
  return {high, neighbour == 0 ? low : std::nextafter(low, neighbour < 0 ? F(0) : 2 * low)};
}

// Is x / c rounded right for all mantissas? Both in [1, 2), as integers X and C of p bits. A midpoint between two
// numbers is M / 2^s, where M is odd and has p + 1 bits, and s is p if X >= C, else p + 1. x high + (x low) is within
// 2^(2 - 2p) of the quotient, so that it can round differently only if |X 2^s - C M| < 8: for few integers d = X 2^s -
// C M, each of which names M modulo a power of two, and so X.
template <class F>
bool IsExactFor(F c, const FixedDivisor<F>& divisor) {
  constexpr int p = std::numeric_limits<F>::digits;
  constexpr int kFarthest = 8;
  const Wide one = 1, mantissa = static_cast<Wide>(std::ldexp(c, p - 1));
  const int zeros = std::countr_zero(static_cast<uint64_t>(mantissa));
  const Wide inverse = InverseOf(mantissa >> zeros);
  for (const int s : {p, p + 1}) {
    for (int distance = 1; distance <= kFarthest; ++distance) {
      if (std::countr_zero(static_cast<unsigned>(distance)) != zeros) continue;  // M is odd
      for (const bool below : {false, true}) {
        const Wide d = below ? -static_cast<Wide>(distance) : static_cast<Wide>(distance);
        const Wide period = one << (s - zeros);
        const Wide odd_d = below ? -static_cast<Wide>(distance >> zeros) : static_cast<Wide>(distance >> zeros);
        for (Wide m = (0 - odd_d * inverse) & (period - 1); m < one << (p + 1); m += period) {
          if (m <= one << p) continue;
          const Wide numerator = mantissa * m + d, x = numerator >> s;
          if (x << s != numerator || x < one << (p - 1) || x >= one << p || (x >= mantissa) != (s == p)) continue;
          const F value = std::ldexp(static_cast<F>(static_cast<uint64_t>(x)), 1 - p);
          if (std::fma(value, divisor.high, value * divisor.low) != value / c) return false;
        }
      }
    }
  }
  return true;
}

}  // namespace

template <class F>
std::optional<FixedDivisor<F>> FixedDivisorOf(F c) {
  constexpr int kFarthest = std::numeric_limits<F>::digits == 24 ? 50 : 300;
  int exponent = 0;
  if (!std::isfinite(c) || c == 0) return std::nullopt;
  const F mantissa = 2 * std::fabs(std::frexp(c, &exponent));
  if (mantissa == 1 || std::abs(exponent) > kFarthest) return std::nullopt;
  for (const int neighbour : {0, 1, -1}) {
    if (!IsExactFor(mantissa, Split(mantissa, neighbour))) continue;
    const FixedDivisor<F> divisor = Split(std::fabs(c), neighbour);
    return FixedDivisor<F>{std::copysign(divisor.high, c), std::copysign(divisor.low, c)};
  }
  return std::nullopt;
}

template std::optional<FixedDivisor<float>> FixedDivisorOf(float);
template std::optional<FixedDivisor<double>> FixedDivisorOf(double);

}  // namespace strop
