// Division by a number that is known beforehand, without a division: x / c is x high + (x low), where high + low is 1 /
// c in twice the precision; two operations, a product and a fused multiply-add, where processors take ten times as long
// to divide. (Brisebarre, Muller, Raina: Accelerating correctly rounded floating-point division when the divisor is
// known in advance, IEEE Transactions on Computers 53 (8), 2004.)
#pragma once
#include <optional>

namespace strop {

// 1 / c = high + low, `high` rounded towards zero, so that both have the sign of c, as zeros and infinities need it.
template <class F>
struct FixedDivisor {
  F high, low;
};

// For f32 and f64. Nothing where the result would not be the rounded quotient for all x for which x low is a normal
// number (quotients from 2^-76 on for f32, 2^-900 for f64; below them it is wrong by less than a unit in the last
// place), which is found out by trying the few mantissas of x whose quotient comes as close to a number where rounding
// turns; and for c of extreme size (beyond 2^50 and 2^-50, 2^300 and 2^-300), zero, infinite or a power of two (by
// which products with the inverse are exact).
template <class F>
std::optional<FixedDivisor<F>> FixedDivisorOf(F c);

}  // namespace strop
