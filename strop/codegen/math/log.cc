// Logarithms.
//
//   x = 2^n (1 + f), sqrt(1/2) <= 1 + f < sqrt 2
//   float    log(1+f) = f - f^2/2 + f^3 p(f)
//   double   s = f / (2+f), log(1+f) = f - (f^2/2 - s (f^2/2 + s^2 p(s^2)))     (2 atanh s, without its cancellation)
//
// n ln 2 is added in two parts, of which n times the first is exact. Coefficients: Remez exchange in multi-precision.
#include <cmath>

#include "strop/codegen/math/math.h"

namespace strop::math {
namespace {

struct Split {
  V n;         // as float
  V fraction;  // 1 + f
};

// x positive, finite, normal, or any number by instructions that know of the others.
Split SplitExponent(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  if (b.HasFloatParts(x)) {
    V n = b.ExponentOf(x), mantissa = b.MantissaOf(x);
    V above = b.FGe(mantissa, b.F(wide ? 0x1.6a09e667f3bcdp0 : 0x1.6a09e6p0, x));  // twice sqrt(1/2), as below
    return {b.Select(above, b.FAdd(n, b.F(1, x)), n), b.Select(above, b.FMul(mantissa, b.F(0.5, x)), mantissa)};
  }
  const int mantissa = wide ? 52 : 23;
  V bits = b.AsInt(x);
  // The exponent counts from sqrt(1/2): what is below it in the mantissa borrows.
  V from_root = b.Sub(bits, b.I(wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3, bits));
  V n = b.AShr(from_root, mantissa);
  V fraction = b.AsFloat(b.Sub(bits, b.Shl(n, mantissa)));
  V n_float;
  if (wide) {  // small integers to double by the same magic as in exp.cc: not every machine converts 64-bit vectors
    V magic = b.F(0x1.8p52, x);
    n_float = b.FSub(b.AsFloat(b.Add(n, b.AsInt(magic))), magic);
  } else {
    n_float = b.ir().CreateSIToFP(n, x->getType());
  }
  return {n_float, fraction};
}

// Subnormals scaled up; `shift` is what to subtract from n.
V Normalize(VectorBuilder& b, V x, V* shift) {
  const bool wide = IsDouble(x);
  V subnormal = b.FLt(x, b.F(wide ? 0x1p-1022 : 0x1p-126, x));
  *shift = b.Select(subnormal, b.F(wide ? 54 : 25, x), b.Zero(x));
  return b.Select(subnormal, b.FMul(x, b.F(wide ? 0x1p54 : 0x1p25, x)), x);
}

// n ln 2 + log(1 + f) + c for doubles.
V Assemble(VectorBuilder& b, V n, V f, V c) {
  V s = b.FDiv(f, b.FAdd(f, b.F(2, f)));
  V z = b.FMul(s, s);
  V p = b.FMul(z, b.Polynomial(z, {0.6666666666666737, 0.39999999999394614, 0.2857142874727144, 0.22222198031984372,
                                   0.18183594399674194, 0.153132341346613, 0.1480456502357568}));
  V half_square = b.FMul(b.F(0.5, f), b.FMul(f, f));
  V low = b.Fma(n, b.F(0x1.a39ef35793c76p-33, f), c);
  V inner = b.FSub(half_square, b.Fma(s, b.FAdd(half_square, p), low));
  return b.Fma(n, b.F(0x1.62e42fee00000p-1, f), b.FSub(f, inner));
}

// The same for floats; c may be null.
V AssembleFloat(VectorBuilder& b, V n, V f, V c) {
  V p = b.Polynomial(
      f, {0.3333331346511841, -0.25000008940696716, 0.2000211924314499, -0.1666799634695053, 0.14219552278518677,
          -0.1240558847784996, 0.11888159066438675, -0.11675654351711273, 0.06746651232242584});
  V square = b.FMul(f, f);
  V tail = b.FMul(b.FMul(square, f), p);
  if (c) tail = b.FAdd(tail, c);
  tail = b.Fma(n, b.F(0x1.7f7d1cp-20, f), tail);
  tail = b.Fma(square, b.F(-0.5, f), tail);
  return b.Fma(n, b.F(0x1.62e4p-1, f), b.FAdd(f, tail));
}

V SpecialCases(VectorBuilder& b, V argument, V result) {
  if (b.HasFloatParts(argument)) return b.FixUp(result, argument, 0x03530422);
  result = b.Select(b.FEq(argument, b.Zero(argument)), b.F(-HUGE_VAL, result), result);
  result = b.Select(b.FLt(argument, b.Zero(argument)), b.F(NAN, result), result);
  V keep = b.Or(b.IsNan(argument), b.FEq(argument, b.F(HUGE_VAL, argument)));
  return b.Select(keep, argument, result);
}

}  // namespace

V Log(VectorBuilder& b, V x) {
  V shift = nullptr;
  const Split split = SplitExponent(b, b.HasFloatParts(x) ? x : Normalize(b, x, &shift));
  V n = shift ? b.FSub(split.n, shift) : split.n;
  V f = b.FSub(split.fraction, b.F(1, x));
  return SpecialCases(b, x, IsDouble(x) ? Assemble(b, n, f, b.Zero(x)) : AssembleFloat(b, n, f, nullptr));
}

// log(u) for u = 1 + x, plus (x - (u - 1)) / u for what rounding u lost.
V Log1p(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  V one = b.F(1, x);
  V u = b.FAdd(x, one);
  V lost = b.Select(b.FGt(x, one), b.FSub(one, b.FSub(u, x)), b.FSub(x, b.FSub(u, one)));
  V correction = b.FDiv(lost, u);
  const Split split = SplitExponent(b, u);
  V f = b.FSub(split.fraction, one);
  V value = wide ? Assemble(b, split.n, f, correction) : AssembleFloat(b, split.n, f, correction);
  return b.Select(b.FLt(b.FAbs(x), b.F(wide ? 0x1p-54 : 0x1p-25, x)), x, SpecialCases(b, u, value));
}

namespace {

// From here on log(2x) and asinh x, acosh x are the same to the last place; a^2 is far from overflow below it.
V IsLarge(VectorBuilder& b, V a) { return b.FGt(a, b.F(IsDouble(a) ? 0x1p60 : 0x1p30, a)); }

// log(1 + inner), or log(2a) where `large`.
V LogOfSum(VectorBuilder& b, V large, V a, V inner) {
  V value = Log1p(b, b.Select(large, a, inner));
  return b.Select(large, b.FAdd(value, b.F(std::log(2.0), a)), value);
}

}  // namespace

// log1p(a + a^2 / (1 + sqrt(1 + a^2)))
V Asinh(VectorBuilder& b, V x) {
  V a = b.FAbs(x), one = b.F(1, x);
  V root = b.Sqrt(b.Fma(a, a, one));
  V inner = b.FAdd(a, b.FDiv(b.FMul(a, a), b.FAdd(one, root)));
  return b.CopySign(LogOfSum(b, IsLarge(b, a), a, inner), x);
}

// log1p(t + sqrt(t^2 + 2t)), t = x - 1
V Acosh(VectorBuilder& b, V x) {
  V t = b.FSub(x, b.F(1, x));
  V inner = b.FAdd(t, b.Sqrt(b.Fma(t, t, b.FAdd(t, t))));
  V value = LogOfSum(b, IsLarge(b, x), x, inner);
  return b.Select(b.FLt(t, b.Zero(t)), b.F(NAN, t), value);
}

// log1p(2a / (1 - a)) / 2; beyond 1 the logarithm is NaN
V Atanh(VectorBuilder& b, V x) {
  V a = b.FAbs(x);
  V value = b.FMul(b.F(0.5, a), Log1p(b, b.FDiv(b.FAdd(a, a), b.FSub(b.F(1, a), a))));
  return b.CopySign(value, x);
}

// y0 from a polynomial, then y - (y^3 - m) y / 3m twice, the last time with the rounding errors of y^3:
// x = m 2^3k, 0.7 < m < 5.7. Subnormals scaled by 2^54.
V Cbrt(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  V a = b.FAbs(x);
  V subnormal = b.FLt(a, b.F(wide ? 0x1p-1022 : 0x1p-126, x));
  const Split split = SplitExponent(b, b.Select(subnormal, b.FMul(a, b.F(0x1p54, x)), a));
  V third = b.RoundEven(b.FMul(split.n, b.F(1.0 / 3, x)));
  V rest = b.Fma(third, b.F(-3, x), split.n);  // -1, 0 or 1
  V up = b.FGt(rest, b.Zero(x)), down = b.FLt(rest, b.Zero(x));
  const auto choose = [&](double least, double middle, double most) {
    return b.Select(up, b.F(most, x), b.Select(down, b.F(least, x), b.F(middle, x)));
  };
  V m = b.FMul(split.fraction, choose(0.5, 1, 2));
  V y = b.Polynomial(b.FSub(split.fraction, b.F(1, x)),
                     {0.9999991059303284, 0.3333188593387604, -0.11097410321235657, 0.062339089810848236,
                      -0.044664982706308365, 0.026541341096162796});
  y = b.FMul(y, choose(std::cbrt(0.5), 1, std::cbrt(2.0)));
  V slope = b.FDiv(b.F(1.0 / 3, x), m);
  if (wide) y = b.Fma(b.FSub(m, b.FMul(b.FMul(y, y), y)), b.FMul(y, slope), y);
  V square = b.FMul(y, y), cube = b.FMul(square, y);
  V lost = b.Fma(b.Fma(y, y, b.FNeg(square)), y, b.Fma(square, y, b.FNeg(cube)));
  y = b.Fma(b.FSub(b.FSub(m, cube), lost), b.FMul(y, slope), y);
  V exponent = b.FSub(third, b.Select(subnormal, b.F(18, x), b.Zero(x)));
  // 2^exponent: the sum leaves it in the low bits.
  V biased = b.AsInt(b.FAdd(exponent, b.F(wide ? 0x1.8p52 + 1023 : 0x1.8p23 + 127, x)));
  V root = b.FMul(y, b.AsFloat(b.Shl(biased, wide ? 52 : 23)));
  V keep = b.Or(b.FEq(a, b.Zero(a)), b.Not(b.FLt(a, b.F(HUGE_VAL, a))));
  return b.Select(keep, x, b.CopySign(root, x));
}

}  // namespace strop::math
