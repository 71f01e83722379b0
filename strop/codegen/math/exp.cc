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
  V n;        // as integers of the same width
  V expm1;    // e^r - 1, the last bits of r included
  V rounded;  // the same without them
  V whole_n;  // as floats
  V shifted;  // what RoundingSum left: n and twice the bias in the low bits
};

// What leaves n, and twice the bias of the type's exponents, in the low bits of a sum with it.
double RoundingSum(bool wide) { return wide ? 0x1.8p52 + 2 * 1023 : 0x1.8p23 + 2 * 127; }

// a 2^n, rounded once, as VectorBuilder::Scale does it: two factors of half the exponent, which are normal numbers.
// Where no instruction does it, they come from the sum that n was rounded by: half of it has one bias, and so has what
// half leaves.
//
// Where one does it (vscalef), it takes 150 cycles on Intel's processors if the result is subnormal: such ones are
// scaled to be multiples of the least number, and their rounded count is what stands for them.
V ScaleBySum(VectorBuilder& b, V a, V whole_n, V shifted) {
  const bool wide = IsDouble(a);
  if (b.target().scale) {
    V subnormal = b.FLt(whole_n, b.F(wide ? -1021 : -125, a));
    V count = b.FAdd(whole_n, b.F(wide ? 1074 : 149, a));
    V scaled = b.ScaleByWhole(a, b.Select(subnormal, count, whole_n));
    return b.Select(subnormal, b.AsFloat(b.RoundToInt(scaled)), scaled);
  }
  const int mantissa = wide ? 52 : 23;
  V sum = b.AsInt(shifted), half = b.LShr(sum, 1);
  return b.FMul(b.FMul(a, b.AsFloat(b.Shl(half, mantissa))), b.AsFloat(b.Shl(b.Sub(sum, half), mantissa)));
}

Reduced Reduce(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  const double magic = RoundingSum(wide);
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
  V square = b.FMul(r, r);
  return {r, integer, b.FAdd(r, b.Fma(square, p, lost)), b.Fma(square, p, r), n, shifted};
}

// 2^n for exponents of normal numbers.
V PowerOfTwo(VectorBuilder& b, V n, bool wide) {
  return b.AsFloat(b.Shl(b.Add(n, b.I(wide ? 1023 : 127, n)), wide ? 52 : 23));
}

// Up to high, and within [low, high]; NaN stays.
V AtMost(VectorBuilder& b, V x, double high) { return b.Select(b.FGt(x, b.F(high, x)), b.F(high, x), x); }
V Clamp(VectorBuilder& b, V x, double low, double high) {
  return AtMost(b, b.Select(b.FLt(x, b.F(low, x)), b.F(low, x), x), high);
}

// Within what ScaleBySum can do, from where e^x rounds to zero on; NaN stays.
V FromZero(VectorBuilder& b, V x) {
  const double low = b.target().scale ? (IsDouble(x) ? -745.5 : -104) : (IsDouble(x) ? -750 : -110);
  return b.Select(b.FLt(x, b.F(low, x)), b.F(low, x), x);
}
// The same up to `high`.
V Limit(VectorBuilder& b, V x, double high) { return AtMost(b, FromZero(b, x), high); }

}  // namespace

// Of what Limit() has let through.
static V ExpOfLimited(VectorBuilder& b, V x) {
  const Reduced e = Reduce(b, x);
  // One ULP either way; floats go without the last bits, which are three operations.
  return ScaleBySum(b, b.FAdd(IsDouble(x) ? e.expm1 : e.rounded, b.F(1, x)), e.whole_n, e.shifted);
}

V Exp(VectorBuilder& b, V x) { return ExpOfLimited(b, Limit(b, x, IsDouble(x) ? 711 : 90)); }

ScaledExp ExpInParts(VectorBuilder& b, V x) {
  const Reduced e = Reduce(b, IsDouble(x) ? Clamp(b, x, -2300, 2300) : Clamp(b, x, -300, 300));
  return {b.FAdd(e.expm1, b.F(1, x)), e.n};
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

// 1 / (1 + e^-x) = e^x / (1 + e^x): whichever has the exponential that does not overflow. The quotient is corrected for
// what the sum lost, and for its own rounding.
V Logistic(VectorBuilder& b, V x) {
  V e = ExpOfLimited(b, FromZero(b, b.FNeg(b.FAbs(x))));
  V one = b.F(1, x);
  V sum = b.FAdd(one, e), lost = b.FSub(e, b.FSub(sum, one));
  V numerator = b.Select(b.FLt(x, b.Zero(x)), e, one);
  // (What the quotient is corrected by need not be more exact than its error is small.)
  V reciprocal = b.HasNearReciprocal(x) ? b.NearReciprocal(sum) : b.FDiv(one, sum);
  V q = b.FMul(numerator, reciprocal), minus_q = b.FNeg(q);
  V rest = b.Fma(minus_q, lost, b.Fma(minus_q, sum, numerator));
  return b.Fma(rest, reciprocal, q);
}

// 2^(scale x) where that is a normal number, to one ULP and what rounding scale x by a quarter does. NaN stays, if it
// is the usual one. The low bits of `shifted` hold n, and nothing else that the shift to the exponent would keep.
V PowerOfTwoOfNormal(VectorBuilder& b, V x, double scale) {
  const bool wide = IsDouble(x);
  V magic = b.F(wide ? 0x1.8p52 : 0x1.8p23, x), factor = b.F(scale, x);
  const auto scaled = [&](V c) { return scale == 1 ? b.FAdd(x, c) : b.Fma(x, factor, c); };
  V shifted = scaled(magic);
  V r = scaled(b.FSub(magic, shifted));
  V value = wide ? b.Polynomial(
                       r, {1, 0.6931471805599453, 0.24022650695910097, 0.05550410866482166, 0.009618129107606852,
                           0.0013333558146395952, 0.00015403530441796546, 1.525273385333689e-05, 1.321544255124856e-06,
                           1.0178051702893746e-07, 7.0725932529420425e-09, 4.4566794650424756e-10})
                 : b.Polynomial(r, {1, 0.6931471824645996, 0.24022650718688965, 0.055503569543361664,
                                    0.009618030861020088, 0.0013390890089794993, 0.0001546976127428934});
  return b.AsFloat(b.Add(b.AsInt(value), b.Shl(b.AsInt(shifted), wide ? 52 : 23)));
}

// x / ln 2 has the error of the factor, which only matters for large x.
static V ExpOfNarrow(VectorBuilder& b, V x) {
  V magic = b.F(RoundingSum(false), x), factor = b.F(0x1.71547652b82fep+0, x);
  V shifted = b.Fma(x, factor, magic);
  V minus_n = b.FSub(magic, shifted);
  V r = b.Fma(x, factor, minus_n);
  V value = b.Polynomial(r, {1, 0.693146977595067, 0.24022242082587367, 0.055507337491489575, 0.009671512767530687,
                             0.0013264725422170367});
  return ScaleBySum(b, value, b.FNeg(minus_n), shifted);
}

V ExpForNarrow(VectorBuilder& b, V x) { return ExpOfNarrow(b, Limit(b, x, 90)); }

V LogisticForNarrow(VectorBuilder& b, V x) {
  V e = ExpOfNarrow(b, FromZero(b, b.FNeg(b.FAbs(x))));
  V numerator = b.Select(b.FLt(x, b.Zero(x)), e, b.F(1, x));
  return b.FDiv(numerator, b.FAdd(e, b.F(1, x)));
}

// x + x^3 r(x^2) up to 0.55; 1 - 2 / (e^(2|x|) + 1) beyond, to where it rounds to 1. NaN takes the first way. r is a
// polynomial for floats; for doubles it is a quotient, and shares the division of the other way.
V Tanh(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  V a = b.FAbs(x), z = b.FMul(a, a), end = b.F(wide ? 20 : 10, x), one = b.F(1, x);
  V large = b.FGe(a, b.F(0.55, x));
  V limited = b.Select(b.FGt(a, end), end, a);
  V sum = b.FAdd(PowerOfTwoOfNormal(b, limited, 0x1.71547652b82fep+1), one);
  if (wide) {
    V p = b.Polynomial(z, {-0.33333333333333265, -0.02048564406041519, -0.00019859548237692603});
    V q = b.Polynomial(z, {1.0, 0.46145693218117, 0.023273797415829234, 0.00020590983448007564});
    V numerator = b.Select(large, b.F(-2, x), b.FMul(b.FMul(a, z), p));
    V quotient = b.FDiv(numerator, b.Select(large, sum, q));
    return b.CopySign(b.FAdd(b.Select(large, one, a), quotient), x);
  }
  V p = b.Polynomial(
      z, {-0.3333333134651184, 0.13333117961883545, -0.05391012877225876, 0.02131255902349949, -0.006614597048610449});
  V small = b.Fma(b.FMul(a, z), p, a);
  return b.CopySign(b.Select(large, b.FSub(one, b.FDiv(b.F(2, x), sum)), small), x);
}

// e^a / 2, which overflows only where sinh and cosh do; a >= 0 or NaN.
static V HalfExp(VectorBuilder& b, V a) {
  const bool wide = IsDouble(a);
  const Reduced e = Reduce(b, b.Select(b.FGt(a, b.F(wide ? 712 : 91, a)), b.F(wide ? 712 : 91, a), a));
  return b.ScaleByWhole(b.FAdd(e.expm1, b.F(1, a)), b.FSub(e.whole_n, b.F(1, a)));
}

// x + x^3 p(x^2) below 1; (e^x - e^-x) / 2 beyond.
V Sinh(VectorBuilder& b, V x) {
  V a = b.FAbs(x), z = b.FMul(a, a);
  V p =
      IsDouble(x)
          ? b.Polynomial(z, {0.16666666666666666, 0.008333333333333299, 0.0001984126984132424, 2.7557319191363583e-06,
                             2.505211769941754e-08, 1.605767931215576e-10, 7.746188973187928e-13})
          : b.Polynomial(z, {0.1666666716337204, 0.008333339355885983, 0.00019838099251501262, 2.806300699376152e-06});
  V small = b.Fma(b.FMul(a, z), p, a);
  V half = HalfExp(b, a);
  V large = b.FSub(half, b.FDiv(b.F(0.25, x), half));
  return b.CopySign(b.Select(b.FLt(a, b.F(1, x)), small, large), x);
}

V Cosh(VectorBuilder& b, V x) {
  V half = HalfExp(b, b.FAbs(x));
  return b.FAdd(half, b.FDiv(b.F(0.25, x), half));
}

}  // namespace strop::math
