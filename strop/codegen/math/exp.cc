// Exponentials.
//
//   x = n ln 2 + r, |r| <= ln 2 / 2;   e^r = 1 + r + r^2 p(r);   e^x = 2^n e^r
//
// n comes out of an addition of 1.5 * 2^(mantissa bits), which rounds to the nearest integer and leaves it in the low
// bits. ln 2 is subtracted in two parts, the first with so few bits that n times it is exact. Coefficients: Remez
// exchange in multi-precision.
#include "strop/codegen/math/math.h"

namespace strop::math {
namespace {

struct Reduced {
  V r;
  V n;      // as integers of the same width
  V expm1;  // e^r - 1, the last bits of r included
};

Reduced Reduce(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  const double magic = wide ? 0x1.8p52 : 0x1.8p23;
  V shifted = b.Fma(x, b.F(0x1.71547652b82fep+0, x), b.F(magic, x));
  V n = b.FSub(shifted, b.F(magic, x));
  V first = b.Fma(n, b.F(wide ? -0x1.62e42fee00000p-1 : -0x1.62e4p-1, x), x);
  V minus_low = b.F(wide ? -0x1.a39ef35793c76p-33 : -0x1.7f7d1cp-20, x);
  V r = b.Fma(n, minus_low, first);
  V lost = b.Fma(n, minus_low, b.FSub(first, r));
  V p =
      wide ? b.Polynomial(r, {0.5, 0.16666666666666666, 0.04166666666666671, 0.00833333333333201, 0.0013888888888815526,
                              0.0001984126985197372, 2.4801587646673525e-05, 2.7557287687318944e-06,
                              2.7556730910068644e-07, 2.5090140076065342e-08, 2.120666791010752e-09})
           : b.Polynomial(r, {0.4999999403953552, 0.16666515171527863, 0.04166845604777336, 0.008369418792426586,
                              0.0013813144760206342});
  V integer = b.Sub(b.AsInt(shifted), b.AsInt(b.F(magic, x)));
  return {r, integer, b.FAdd(r, b.Fma(b.FMul(r, r), p, lost))};
}

// 2^n for exponents of normal numbers.
V PowerOfTwo(VectorBuilder& b, V n, bool wide) {
  return b.AsFloat(b.Shl(b.Add(n, b.I(wide ? 1023 : 127, n)), wide ? 52 : 23));
}

// Within [low, high]; NaN stays.
V Clamp(VectorBuilder& b, V x, double low, double high) {
  x = b.Select(b.FLt(x, b.F(low, x)), b.F(low, x), x);
  return b.Select(b.FGt(x, b.F(high, x)), b.F(high, x), x);
}

}  // namespace

// 2^n in two factors, so that results may be subnormal (rounded once, by the second) or overflow.
V Exp(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  x = wide ? Clamp(b, x, -750, 711) : Clamp(b, x, -110, 90);
  const Reduced e = Reduce(b, x);
  V first = b.AShr(e.n, 1);
  V second = b.Sub(e.n, first);
  V value = b.FAdd(e.expm1, b.F(1, x));
  return b.FMul(b.FMul(value, PowerOfTwo(b, first, wide)), PowerOfTwo(b, second, wide));
}

// 2^n (e^r - 1) + (2^n - 1), halved throughout so that 2^n may overflow.
V Expm1(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  // Up to the least that overflows, with n = 1024 (128) still.
  V clamped = wide ? Clamp(b, x, -40, 709.9) : Clamp(b, x, -20, 88.8);
  const Reduced e = Reduce(b, clamped);
  V half_power = PowerOfTwo(b, b.Sub(e.n, b.I(1, e.n)), wide);
  V half = b.Fma(half_power, e.expm1, b.FSub(half_power, b.F(0.5, x)));
  V tiny = b.FLt(b.FAbs(x), b.F(wide ? 0x1p-54 : 0x1p-25, x));
  return b.Select(tiny, x, b.FAdd(half, half));
}

// 1 / (1 + e^-x) = e^x / (1 + e^x): whichever has the exponential that does not overflow.
V Logistic(VectorBuilder& b, V x) {
  V e = Exp(b, b.FNeg(b.FAbs(x)));
  V numerator = b.Select(b.FLt(x, b.Zero(x)), e, b.F(1, x));
  V result = b.FDiv(numerator, b.FAdd(e, b.F(1, x)));
  return b.Select(b.IsNan(x), x, result);
}

// t / (t + 2) with t = e^(2|x|) - 1; 1 from |x| = 20 on (10 for floats, where the quotient rounds to it).
V Tanh(VectorBuilder& b, V x) {
  if (!IsDouble(x)) {
    V a = Clamp(b, b.FAbs(x), 0, 10);
    const Reduced e = Reduce(b, b.FAdd(a, a));
    V power = PowerOfTwo(b, e.n, false);
    V t = b.Fma(power, e.expm1, b.FSub(power, b.F(1, x)));
    return b.CopySign(b.FDiv(t, b.FAdd(t, b.F(2, x))), x);
  }
  V a = Clamp(b, b.FAbs(x), 0, 20);
  V t = Expm1(b, b.FAdd(a, a));
  V result = b.FDiv(t, b.FAdd(t, b.F(2, x)));
  V one = b.FGe(a, b.F(20, x));
  return b.CopySign(b.Select(one, b.F(1, x), result), x);
}

V SinhOfFloat(VectorBuilder& b, V x) {
  V wide = b.ToF64(x);
  V t = Expm1(b, Clamp(b, b.FAbs(wide), 0, 200));
  V value = b.FMul(b.F(0.5, t), b.FAdd(t, b.FDiv(t, b.FAdd(t, b.F(1, t)))));
  return b.ToF32(b.CopySign(value, wide));
}

V CoshOfFloat(VectorBuilder& b, V x) {
  V e = Exp(b, Clamp(b, b.FAbs(b.ToF64(x)), 0, 200));
  return b.ToF32(b.FMul(b.F(0.5, e), b.FAdd(e, b.FDiv(b.F(1, e), e))));
}

}  // namespace strop::math
