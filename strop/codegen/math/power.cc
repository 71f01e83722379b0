// Powers of floats, in double; erf.
#include <cmath>

#include "strop/codegen/math/math.h"

namespace strop::math {

namespace {

constexpr int kFew = 2;  // lanes

// Of one number the chain counts, of many the number of instructions.
V PolynomialOfPower(VectorBuilder& b, V x, std::initializer_list<double> coefficients) {
  return VectorBuilder::Lanes(x) <= kFew ? b.PolynomialByHalves(x, coefficients) : b.PolynomialByPairs(x, coefficients);
}

// log2 a of double lanes with ten bits more than a float has; log2 0 is so low that any power of it is 0 or infinite,
// but for the exponent 0.
V Log2(VectorBuilder& b, V a) {
  V bits = b.AsInt(a);
  V from_root = b.Sub(bits, b.I(0x3fe6a09e667f3bcd, bits));  // that of sqrt(1/2)
  V n = b.AShr(from_root, 52);
  V f = b.FSub(b.AsFloat(b.Sub(bits, b.Shl(n, 52))), b.F(1, a));
  V magic = b.F(0x1.8p52, a);
  V n_float = b.FSub(b.AsFloat(b.Add(n, b.AsInt(magic))), magic);
  V p = PolynomialOfPower(
      b, f,
      {1.4426950408687047, -0.7213475208687612, 0.48089836139543757, -0.36067367482687385, 0.28853729348006096,
       -0.24045316567535813, 0.20617535911949714, -0.18030059870728593, 0.15876980558692877, -0.14315649598651833,
       0.1447484523410332, -0.14283915550190857, 0.0773701787859251});
  return b.Select(b.FEq(a, b.Zero(a)), b.F(-1e300, a), b.Fma(f, p, n_float));
}

// C's rules for negative bases, ones, infinities and NaN; `value` is |x|^y where both are finite.
V SpecialPowers(VectorBuilder& b, V x, V y, V value) {
  V zero = b.Zero(x), one = b.F(1, x), infinity = b.F(HUGE_VAL, x), nan = b.F(NAN, x), a = b.FAbs(x);
  V infinite = b.FEq(a, infinity);
  value = b.Select(infinite, b.Select(b.FLt(y, zero), zero, infinity), value);
  value = b.Select(b.FEq(a, one), one, value);  // log 1 * inf is NaN
  V whole = b.FEq(b.Floor(y), y);
  V half = b.FMul(y, b.F(0.5, y));
  V odd = b.And(whole, b.ir().CreateFCmpUNE(b.Floor(half), half));
  V negative = b.SLt(b.AsInt(x), b.Zero(b.AsInt(x)));
  value = b.Select(b.And(negative, odd), b.FNeg(value), value);
  V rootless = b.And(b.And(b.FLt(x, zero), b.Not(infinite)), b.Not(whole));
  value = b.Select(b.Or(rootless, b.ir().CreateFCmpUNO(x, y)), nan, value);
  return b.Select(b.Or(b.FEq(x, one), b.FEq(y, zero)), one, value);
}

}  // namespace

// |x|^y = 2^(y log2 |x|), in double. One number is the first of two lanes: the bits of scalars would go to and fro
// between registers of floats and of integers, which takes as long as a polynomial.
V PowOfFloat(VectorBuilder& b, V x, V y) {
  b.Match(x, y);
  if (VectorBuilder::Lanes(x) == 1) return b.Lane(PowOfFloat(b, b.Splat(x, kFew), b.Splat(y, kFew)), 0);
  V power = b.FMul(b.ToF64(y), Log2(b, b.ToF64(b.FAbs(x))));
  V low = b.F(-200, power), high = b.F(200, power), magic = b.F(0x1.8p52, power);
  power = b.Select(b.FGt(power, low), power, low);
  power = b.Select(b.FLt(power, high), power, high);
  V shifted = b.FAdd(power, magic);
  V r = b.FSub(power, b.FSub(shifted, magic));
  V p = PolynomialOfPower(b, r,
                          {1.0000000005541656, 0.6931472057372647, 0.24022646890623264, 0.05550328776972002,
                           0.009618488958294426, 0.0013399931221420888, 0.0001534581168135117});
  V value = b.ToF32(b.AsFloat(b.Add(b.AsInt(p), b.Shl(b.AsInt(shifted), 52))));
  V x_bits = b.AsInt(x), y_bits = b.AsInt(b.FAbs(y)), infinity = b.AsInt(b.F(HUGE_VAL, x));
  V usual = b.And(b.ULt(x_bits, infinity), b.ULt(y_bits, infinity));
  return b.RarePath(b.Not(usual), value, [&] { return SpecialPowers(b, x, y, value); });
}

namespace {

struct InParts {
  V high, low;  // high + low, to twice the digits
};

// high + low, |high| >= |low|
InParts FastSum(VectorBuilder& b, V high, V low) {
  V sum = b.FAdd(high, low);
  return {sum, b.FSub(low, b.FSub(sum, high))};
}

InParts Product(VectorBuilder& b, const InParts& x, const InParts& y) {
  V high = b.FMul(x.high, y.high);
  V lost = b.Fma(x.high, y.high, b.FNeg(high));
  return {high, b.Fma(x.high, y.low, b.Fma(x.low, y.high, lost))};
}

// c + x, where c is the larger one.
InParts Sum(VectorBuilder& b, double high, double low, const InParts& x) {
  const InParts sum = FastSum(b, b.F(high, x.high), x.high);
  return {sum.high, b.FAdd(sum.low, b.FAdd(x.low, b.F(low, x.high)))};
}

// log2 a of doubles, to 2^-66 of it: a = 2^n m, sqrt(1/2) <= m < sqrt 2, s = (m - 1) / (m + 1), z = s^2,
//   log2 m = s (2/ln 2 + z (2/(3 ln 2) + z (2/(5 ln 2) + z p(z))))
// of which all but z p(z) is computed to twice the digits.
InParts Log2InParts(VectorBuilder& b, V a) {
  V subnormal = b.FLt(a, b.F(0x1p-1022, a)), one = b.F(1, a), magic = b.F(0x1.8p52, a);
  V bits = b.AsInt(b.Select(subnormal, b.FMul(a, b.F(0x1p54, a)), a));
  V n = b.AShr(b.Sub(bits, b.I(0x3fe6a09e667f3bcd, bits)), 52);  // counted from sqrt(1/2)
  V m = b.AsFloat(b.Sub(bits, b.Shl(n, 52)));
  V whole = b.FSub(b.AsFloat(b.Add(n, b.AsInt(magic))), magic);
  whole = b.FSub(whole, b.Select(subnormal, b.F(54, a), b.Zero(a)));
  V above = b.FSub(m, one), below = b.FAdd(m, one), lost = b.FSub(m, b.FSub(below, one));
  V reciprocal = b.FDiv(one, below);
  V quotient = b.FMul(above, reciprocal), minus = b.FNeg(quotient);
  const InParts s{quotient, b.FMul(b.Fma(minus, lost, b.Fma(minus, below, above)), reciprocal)};
  const InParts z = Product(b, s, s);
  V p = b.Polynomial(z.high, {0.4121985831111439, 0.3205988979671547, 0.2623081914681522, 0.2219527885851067,
                              0.19238056603036385, 0.16888529114458137, 0.16912971664122153});
  const InParts inmost = Sum(b, 0x1.2776c50ef9bfep-1, 0x1.cc5e0dfa7cdd4p-55, {b.FMul(z.high, p), b.Zero(a)});
  const InParts inner = Sum(b, 0x1.ec709dc3a03fdp-1, 0x1.d27f05548af0cp-55, Product(b, z, inmost));
  const InParts outer = Sum(b, 0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55, Product(b, z, inner));
  const InParts log = Product(b, s, outer);
  const InParts sum = FastSum(b, whole, log.high);
  return {sum.high, b.FAdd(sum.low, log.low)};
}

// 2^x, with one rounding but for 2^-4 ULP; far beyond the range it is 0 or infinite.
V PowerOfTwoInParts(VectorBuilder& b, InParts x) {
  V far = b.Not(b.FLt(b.FAbs(x.high), b.F(1100, x.high))), one = b.F(1, x.high), magic = b.F(0x1.8p52, x.high);
  x.high = b.Select(far, b.CopySign(b.F(1100, x.high), x.high), x.high);
  x.low = b.Select(far, b.Zero(x.low), x.low);
  V n = b.FSub(b.FAdd(x.high, magic), magic);
  const InParts r = FastSum(b, b.FSub(x.high, n), x.low);
  V ln2 = b.F(0x1.62e42fefa39efp-1, one);
  V first = b.FMul(r.high, ln2);
  V rest = b.Fma(r.high, b.F(0x1.abc9e3b39803fp-56, one), b.Fma(r.high, ln2, b.FNeg(first)));
  V low = b.FMul(r.low, ln2);
  rest = b.FAdd(rest, b.Fma(low, first, low));
  V p = b.Polynomial(r.high,
                     {0.24022650695910072, 0.0555041086648216, 0.009618129107628479, 0.0013333558146416916,
                      0.00015403530393375903, 1.525273382986708e-05, 1.3215486802919256e-06, 1.0178062426976924e-07,
                      7.054899947032901e-09, 4.4549643712692967e-10, 2.5725099252888687e-11});
  rest = b.Fma(b.FMul(r.high, r.high), p, rest);
  const InParts value = FastSum(b, one, first);
  return b.ScaleByWhole(b.FAdd(value.high, b.FAdd(value.low, rest)), n);
}

}  // namespace

// |x|^y = 2^(y log2 |x|), both to twice the digits up to the last sum (as in Dekker, "A floating-point technique for
// extending the available precision", 1971). Zeros, infinities, NaN and negative bases are C's.
V PowOfDouble(VectorBuilder& b, V x, V y) {
  b.Match(x, y);
  if (VectorBuilder::Lanes(x) == 1) return b.Lane(PowOfDouble(b, b.Splat(x, kFew), b.Splat(y, kFew)), 0);
  V a = b.FAbs(x), zero = b.Zero(x), infinity = b.F(HUGE_VAL, x);
  V value = PowerOfTwoInParts(b, Product(b, {y, zero}, Log2InParts(b, a)));
  V usual = b.And(b.And(b.FGt(x, zero), b.FLt(x, infinity)), b.FLt(b.FAbs(y), infinity));
  return b.RarePath(b.Not(usual), value, [&] {
    V of_zero = b.Select(b.FLt(y, zero), infinity, zero);
    return SpecialPowers(b, x, y, b.Select(b.FEq(a, zero), of_zero, value));
  });
}

// x - k y, k = trunc(x / y), with the signs aside. Where the quotient has fewer bits than the type, k is right or, if
// the quotient was rounded up to it, one too large; the fma is exact then: a multiple of the last place of y, no
// larger than y. Other quotients, NaN, infinities and zeros go to libm.
V Fmod(VectorBuilder& b, V x, V y) {
  b.Match(x, y);
  V dividend = b.FAbs(x), divisor = b.FAbs(y);
  V quotient = b.FDiv(dividend, divisor);
  V rest = b.Fma(b.FNeg(b.Trunc(quotient)), divisor, dividend);
  rest = b.Select(b.FLt(rest, b.Zero(rest)), b.FAdd(rest, divisor), rest);
  V usual = b.And(b.FLt(quotient, b.F(IsDouble(x) ? 0x1p52 : 0x1p23, x)), b.FLt(divisor, b.F(HUGE_VAL, x)));
  return b.RarePath(b.Not(usual), b.CopySign(rest, x),
                    [&] { return b.CallPerLane(IsDouble(x) ? "fmod" : "fmodf", {x, y}); });
}

namespace {

// 1 / sqrt x, positive and normal. Floats to 2^-20.6: they begin with half the exponent, negated, by the bits (to
// 3.4 %), and a step whose constants spread its error evenly (to 2^-10.6; both: Moroz, Walczyk et al., "Fast
// calculation of inverse square root with the use of magic constant", 2016): a third of the time of a root and a
// division.
V NearRsqrt(VectorBuilder& b, V x) {
  if (IsDouble(x)) return b.FDiv(b.F(1, x), b.Sqrt(x));
  V y = b.AsFloat(b.Sub(b.I32(0x5f1ffff9), b.LShr(b.AsInt(x), 1)));
  y = b.FMul(b.FMul(y, b.F(0.703952253, x)), b.Fma(b.FMul(x, y), b.FNeg(y), b.F(2.38924456, x)));
  return b.Fma(b.FMul(y, b.F(0.5, x)), b.Fma(b.FMul(x, y), b.FNeg(y), b.F(1, x)), y);
}

// A step of Newton's, y + y (1 - x y^2) / 2, with the rounding of x y, so that only the last sum rounds.
V LastStepOfRsqrt(VectorBuilder& b, V x, V y) {
  V product = b.FMul(x, y);
  V lost = b.Fma(x, y, b.FNeg(product));
  V rest = b.Fma(b.FNeg(lost), y, b.Fma(b.FNeg(product), y, b.F(1, x)));
  return b.Fma(b.FMul(y, b.F(0.5, x)), rest, y);
}

V RsqrtByRoot(VectorBuilder& b, V x) {
  V y = b.FDiv(b.F(1, x), b.Sqrt(x));
  V usual = b.And(b.FGt(x, b.Zero(x)), b.FLt(x, b.F(HUGE_VAL, x)));
  return b.Select(usual, LastStepOfRsqrt(b, x, y), y);
}

}  // namespace

// 1 / sqrt x
V Rsqrt(VectorBuilder& b, V x) {
  if (IsDouble(x)) return RsqrtByRoot(b, x);
  V y = NearRsqrt(b, x);
  V normal = b.And(b.FGe(x, b.F(0x1p-126, x)), b.FLt(x, b.F(HUGE_VAL, x)));
  return b.RarePath(b.Not(normal), LastStepOfRsqrt(b, x, y), [&] { return RsqrtByRoot(b, x); });
}

namespace {

// x^(n/2) where powers of x are far from the ends of the range: with y near 1 / sqrt x and e = 1 - x y^2,
//   x^(n/2) = x^((n+1)/2) y (1 + e/2 + ...), and, of negative n, y^-n (1 - n e/2 + ...)
// of which the powers are computed to twice the digits, so that the last sum alone rounds.
V PowOfHalvesInside(VectorBuilder& b, V x, int n) {
  V y = NearRsqrt(b, x);
  V product = b.FMul(x, y);
  V lost = b.Fma(x, y, b.FNeg(product));
  V e = b.Fma(b.FNeg(lost), y, b.Fma(b.FNeg(product), y, b.F(1, x)));
  InParts power = n > 0 ? InParts{product, lost} : InParts{y, b.Zero(y)};
  for (int k = n > 0 ? (n - 1) / 2 : -n - 1; k > 0; --k) power = Product(b, power, {n > 0 ? x : y, b.Zero(y)});
  V correction = b.FMul(e, b.F(n > 0 ? 0.5 : -0.5 * n, e));
  return b.FAdd(power.high, b.Fma(power.high, correction, power.low));
}

}  // namespace

// A root, or its reciprocal, but for the signs of zeros and infinities. Beyond these, three times as fast as a power.
V PowOfHalves(VectorBuilder& b, V x, int n) {
  V infinity = b.F(HUGE_VAL, x), positive = b.FAdd(x, b.Zero(x));  // of -0: 0
  if (n == 1) return b.Select(b.FEq(x, b.FNeg(infinity)), infinity, b.Sqrt(positive));
  if (n == -1) return b.Select(b.FEq(x, b.FNeg(infinity)), b.Zero(x), Rsqrt(b, positive));
  V end = b.F(IsDouble(x) ? 0x1p300 : 0x1p40, x), begin = b.F(IsDouble(x) ? 0x1p-300 : 0x1p-40, x);
  V usual = b.And(b.FGt(x, begin), b.FLt(x, end));
  V exponent = b.F(0.5 * n, x);
  return b.RarePath(b.Not(usual), PowOfHalvesInside(b, x, n),
                    [&] { return IsDouble(x) ? PowOfDouble(b, x, exponent) : PowOfFloat(b, x, exponent); });
}

namespace {

// Floats: x + x p(x^2) below 1.1; 1 - s(x)^8 beyond, to where it rounds to 1, s^8 being erfc. Both polynomials have
// seven coefficients, so that one chain of fma with chosen coefficients does for both. NaN takes the first way.
V ErfOfFloat(VectorBuilder& b, V x) {
  constexpr double kNear[] = {0.12837916612625122,  -0.37612611055374146,   0.11283364146947861,  -0.026843518018722534,
                              0.005167731083929539, -0.0007824739441275597, 7.236068631755188e-05};
  constexpr double kFar[] = {1.0010863542556763,   -0.14599601924419403,   -0.060005322098731995, -0.01250177901238203,
                             0.013419236056506634, -0.0025823290925472975, 0.00016032073472160846};
  V a = b.FAbs(x), one = b.F(1, x), end = b.F(3.92, x);
  V far = b.FGe(a, b.F(1.1, x));
  const auto coefficient = [&](int k) { return b.Select(far, b.F(kFar[k], x), b.F(kNear[k], x)); };
  V argument = b.Select(far, b.Select(b.FGt(a, end), end, a), b.FMul(a, a));
  V p = coefficient(6);
  for (int k = 5; k >= 0; --k) p = b.Fma(p, argument, coefficient(k));
  V square = b.FMul(p, p), fourth = b.FMul(square, square);
  V complement = b.Fma(b.FNeg(fourth), fourth, one);
  return b.CopySign(b.Select(far, complement, b.Fma(p, a, a)), x);
}

// Doubles: x + x p(x^2) below 1; 1 - 2^p(|x|) beyond, to where it rounds to 1. NaN takes the first way.
V ErfOfDouble(VectorBuilder& b, V x) {
  V a = b.FAbs(x), z = b.FMul(a, a), one = b.F(1, x), end = b.F(5.93, x);
  V near = b.Polynomial(
      z, {0.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.026866170645077864, 0.0052239776248283335,
          -0.0008548326981420758, 0.00012055331132807185, -1.4925595769145757e-05, 1.64610084365668e-06,
          -1.6350395854324983e-07, 1.4660326646023797e-08, -1.1374949067447646e-09, 5.960676073335479e-11});
  near = b.Fma(near, a, a);
  V limited = b.Select(b.FGt(a, end), end, a);
  V log = b.Polynomial(b.FSub(limited, one),
                       {-2.6684166967815997,    -3.807225345853579,      -1.2163466576879851,    -0.059959990001235274,
                        0.014475749753314025,   -0.0028535083555722963,  0.0003423779469706081,  3.792326016743048e-05,
                        -3.9197764959011e-05,   1.3871689595102526e-05,  -2.965725889789964e-06, 1.871027300646091e-07,
                        1.6270280390966688e-07, -9.115096491532763e-08,  2.9751389505544267e-08, -7.176946622800187e-09,
                        1.3454294262537026e-09, -1.9712378753820202e-10, 2.2228702429439605e-11, -1.865587657250498e-12,
                        1.0976536695861539e-13, -4.038473995966808e-15,  6.988050708744027e-17});
  V far = b.FSub(one, PowerOfTwoOfNormal(b, log, 1));
  return b.CopySign(b.Select(b.FGe(a, one), far, near), x);
}

}  // namespace

V Erf(VectorBuilder& b, V x) { return IsDouble(x) ? ErfOfDouble(b, x) : ErfOfFloat(b, x); }

}  // namespace strop::math
