// Formulas follow C's Annex G in what they give for infinities and zeros; cancellation is avoided by the usual
// rewritings (Kahan's) and by sums in two parts, overflow of intermediate squares by scaling with powers of two.
// Functions of c64 compute in c128, whose range and digits leave nothing of that to see: what is written below is for
// doubles.
#include "strop/codegen/complex_arithmetic.h"

#include <cmath>

#include "strop/codegen/math/math.h"

namespace strop {

using V = llvm::Value*;

Val ComplexArithmetic::Mul(const Val& x, const Val& y) {
  return Make(b_.FSub(b_.FMul(x.re, y.re), b_.FMul(x.im, y.im)), b_.FAdd(b_.FMul(x.re, y.im), b_.FMul(x.im, y.re)),
              x.type);
}

Val ComplexArithmetic::Widen(const Val& x) {
  return VectorBuilder::ScalarBits(x.re) == 64 ? x : Make(b_.ToF64(x.re), b_.ToF64(x.im), ElementType::C128);
}

Val ComplexArithmetic::NarrowTo(ElementType type, const Val& x) {
  return type == ElementType::C128 ? x : Make(b_.ToF32(x.re), b_.ToF32(x.im), type);
}

namespace {

constexpr int kMantissa = 52, kBias = 1023;

// 2^n for exponents of normal numbers.
V PowerOfTwo(VectorBuilder& b, V n) { return b.AsFloat(b.Shl(b.Add(n, b.I(kBias, n)), kMantissa)); }

// The exponent of a positive number; that of the least normal number for subnormals and zero. One less than the largest
// at the upper end, where the reciprocal of the power of two would be no normal number.
V Exponent(VectorBuilder& b, V x) {
  V biased = b.LShr(b.AsInt(x), kMantissa);
  biased = b.Binary(llvm::Intrinsic::umin, biased, b.I(2 * kBias - 1, biased));
  biased = b.Binary(llvm::Intrinsic::umax, biased, b.I(1, biased));
  return b.Sub(biased, b.I(kBias, biased));
}

V Larger(VectorBuilder& b, V x, V y) {
  x = b.FAbs(x), y = b.FAbs(y);
  return b.Select(b.FGt(x, y), x, y);
}

// Larger does not say so: beside NaN, zero and infinity are its results or not by the order of the two.
V BothZero(VectorBuilder& b, const Val& x) { return b.And(b.FEq(x.re, b.Zero(x.re)), b.FEq(x.im, b.Zero(x.im))); }

V AnyInfinite(VectorBuilder& b, const Val& x) {
  V inf = b.F(HUGE_VAL, x.re);
  return b.Or(b.FEq(b.FAbs(x.re), inf), b.FEq(b.FAbs(x.im), inf));
}

}  // namespace

// (a + ib) / (c + id), with the larger part of both about 1, so that nothing overflows or vanishes before the quotient
// does.
Val ComplexArithmetic::Div(const Val& narrow_x, const Val& narrow_y) {
  const bool narrow = narrow_x.type != ElementType::C128;
  const Val x = Widen(narrow_x), y = Widen(narrow_y);
  V a = x.re, bb = x.im, c = y.re, d = y.im;
  b_.Match(a, c);
  b_.Match(bb, d);
  V as = a, bs = bb, cs = c, ds = d, exponent = nullptr;
  if (!narrow) {
    V up = Exponent(b_, Larger(b_, a, bb)), down = Exponent(b_, Larger(b_, c, d));
    V scale = PowerOfTwo(b_, b_.Sub(b_.Zero(up), up));
    as = b_.FMul(a, scale), bs = b_.FMul(bb, scale);
    scale = PowerOfTwo(b_, b_.Sub(b_.Zero(down), down));
    cs = b_.FMul(c, scale), ds = b_.FMul(d, scale);
    exponent = b_.Sub(up, down);
  }
  V denominator = b_.Fma(cs, cs, b_.FMul(ds, ds));
  V re = SumOfProducts(as, cs, bs, ds), im = SumOfProducts(bs, cs, b_.FNeg(as), ds);
  if (narrow) {  // digits enough for one division instead of two
    V reciprocal = b_.FDiv(b_.F(1, denominator), denominator);
    re = b_.FMul(re, reciprocal), im = b_.FMul(im, reciprocal);
  } else {
    re = b_.FDiv(re, denominator), im = b_.FDiv(im, denominator);
  }
  if (exponent) {
    V first = b_.AShr(exponent, 1), second = b_.Sub(exponent, first);
    V one = PowerOfTwo(b_, first), two = PowerOfTwo(b_, second);
    re = b_.FMul(b_.FMul(re, one), two);
    im = b_.FMul(b_.FMul(im, one), two);
  }
  V both_nan = b_.And(b_.IsNan(re), b_.IsNan(im));
  const Val plain = Make(re, im, x.type);
  re = b_.RarePath(both_nan, re, [&] { return LimitOfQuotient(Make(a, bb, x.type), Make(c, d, x.type), plain).re; });
  im = b_.RarePath(both_nan, im, [&] { return LimitOfQuotient(Make(a, bb, x.type), Make(c, d, x.type), plain).im; });
  return NarrowTo(narrow_x.type, Make(re, im, x.type));
}

// Annex G: what a quotient that came out as NaN + i NaN should be, if it has a limit.
Val ComplexArithmetic::LimitOfQuotient(const Val& x, const Val& y, const Val& quotient) {
  V a = x.re, bb = x.im, c = y.re, d = y.im, re = quotient.re, im = quotient.im, zero = b_.Zero(a);
  const auto inf = [&](V v) { return b_.FEq(b_.FAbs(v), b_.F(HUGE_VAL, v)); };
  const auto finite = [&](V v) { return b_.FLt(b_.FAbs(v), b_.F(HUGE_VAL, v)); };
  const auto box = [&](V v) { return b_.CopySign(b_.Select(inf(v), b_.F(1, v), b_.Zero(v)), v); };
  V by_zero = b_.And(b_.And(b_.FEq(c, zero), b_.FEq(d, zero)), b_.Or(b_.Not(b_.IsNan(a)), b_.Not(b_.IsNan(bb))));
  V signed_inf = b_.CopySign(b_.F(HUGE_VAL, c), c);
  V inf_over_finite = b_.And(b_.Or(inf(a), inf(bb)), b_.And(finite(c), finite(d)));
  V finite_over_inf = b_.And(b_.Or(inf(c), inf(d)), b_.And(finite(a), finite(bb)));
  V ab = box(a), bbb = box(bb), cb = box(c), db = box(d);
  V huge = b_.F(HUGE_VAL, a);
  V re2 = b_.FMul(huge, b_.FAdd(b_.FMul(ab, c), b_.FMul(bbb, d)));
  V im2 = b_.FMul(huge, b_.FSub(b_.FMul(bbb, c), b_.FMul(ab, d)));
  V re3 = b_.FMul(zero, b_.FAdd(b_.FMul(a, cb), b_.FMul(bb, db)));
  V im3 = b_.FMul(zero, b_.FSub(b_.FMul(bb, cb), b_.FMul(a, db)));
  re = b_.Select(by_zero, b_.FMul(signed_inf, a), b_.Select(inf_over_finite, re2, b_.Select(finite_over_inf, re3, re)));
  im =
      b_.Select(by_zero, b_.FMul(signed_inf, bb), b_.Select(inf_over_finite, im2, b_.Select(finite_over_inf, im3, im)));
  return Make(re, im, x.type);
}

// p q + r s with one rounding more than the sum's own.
V ComplexArithmetic::SumOfProducts(V p, V q, V r, V s) {
  V product = b_.FMul(r, s);
  V lost = b_.Fma(r, s, b_.FNeg(product));
  return b_.FAdd(b_.Fma(p, q, product), lost);
}

// sqrt(re^2 + im^2): in double for floats; scaled by 2^-600 or 2^600 at the ends of the range for doubles.
V ComplexArithmetic::Magnitude(V re, V im) {
  if (VectorBuilder::ScalarBits(re) == 64)
    return ScaledMagnitude(re, im, {500, 600, 600}, [&](V p, V q) { return b_.Sqrt(b_.Fma(p, p, b_.FMul(q, q))); });
  V r = b_.ToF64(re), i = b_.ToF64(im);
  return InfiniteIfPart(re, im, b_.ToF32(b_.Sqrt(b_.FAdd(b_.FMul(r, r), b_.FMul(i, i)))));
}

// `root` of the larger and the smaller part, which are scaled where the larger one is at an end of the range.
V ComplexArithmetic::ScaledMagnitude(V re, V im, const Range& range, llvm::function_ref<V(V larger, V smaller)> root) {
  V ar = b_.FAbs(re), ai = b_.FAbs(im), first = b_.FGt(ar, ai);
  V larger = b_.Select(first, ar, ai), smaller = b_.Select(first, ai, ar), one = b_.F(1, larger);
  const auto power = [&](int exponent) { return b_.F(std::ldexp(1.0, exponent), larger); };
  V big = b_.FGt(larger, power(range.end)), small = b_.FLt(larger, power(-range.end));
  const auto by = [&](int of_big, int of_small) {
    return b_.Select(big, power(of_big), b_.Select(small, power(of_small), one));
  };
  V scale = by(-range.down, range.up);
  V result = root(b_.FMul(larger, scale), b_.FMul(smaller, scale));
  return InfiniteIfPart(re, im, b_.FMul(result, by(range.down, -range.up)));
}

// sqrt(p^2 + q^2) of floats, p >= q, to 0.54 ulp without doubles, whose roots take three times as long: what rounding
// took from the sum, and the root from it, is added by one step of Newton's, for which 1 / sqrt by halving the
// exponent is good enough (to 3.5 %: C. Lomont, Fast Inverse Square Root, 2003).
V ComplexArithmetic::RootOfSquares(V p, V q) {
  constexpr int64_t kInverseRoot = 0x5f3759df;
  V square = b_.FMul(p, p), sum = b_.Fma(q, q, square);
  V lost = b_.FAdd(b_.Fma(p, p, b_.FNeg(square)), b_.Fma(q, q, b_.FSub(square, sum)));
  V root = b_.Sqrt(sum), bits = b_.AsInt(sum);
  V inverse = b_.AsFloat(b_.Sub(b_.I(kInverseRoot, bits), b_.LShr(bits, 1)));
  V rest = b_.FAdd(b_.Fma(b_.FNeg(root), root, sum), lost);
  return b_.Fma(rest, b_.FMul(inverse, b_.F(0.5, inverse)), root);
}

V ComplexArithmetic::InfiniteIfPart(V re, V im, V magnitude) {
  V infinite = b_.Or(b_.FEq(b_.FAbs(re), b_.F(HUGE_VAL, re)), b_.FEq(b_.FAbs(im), b_.F(HUGE_VAL, im)));
  return b_.Select(infinite, b_.F(HUGE_VAL, magnitude), magnitude);
}

Val ComplexArithmetic::Abs(const Val& x) {
  if (VectorBuilder::ScalarBits(x.re) == 64) return Val{Magnitude(x.re, x.im), nullptr, ComplexPart(x.type)};
  V magnitude = ScaledMagnitude(x.re, x.im, {60, 70, 100}, [&](V p, V q) { return RootOfSquares(p, q); });
  return Val{magnitude, nullptr, ComplexPart(x.type)};
}

Val ComplexArithmetic::Sign(const Val& narrow) {
  const Val x = Widen(narrow);
  if (narrow.type != ElementType::C128) {  // the squares are in range, and there are digits enough for one division
    V square = b_.Fma(x.re, x.re, b_.FMul(x.im, x.im));
    V reciprocal = b_.FDiv(F(1, x), b_.Sqrt(square));
    V zero = b_.FEq(square, b_.Zero(square));
    return NarrowTo(narrow.type, Make(b_.Select(zero, x.re, b_.FMul(x.re, reciprocal)),
                                      b_.Select(zero, x.im, b_.FMul(x.im, reciprocal)), x.type));
  }
  V largest = Larger(b_, x.re, x.im);
  V tiny = b_.FLt(largest, F(0x1p-900, x)), huge = b_.FGt(largest, F(0x1p900, x));
  V scale = b_.Select(tiny, F(0x1p200, x), b_.Select(huge, F(0x1p-200, x), F(1, x)));
  V re = b_.FMul(x.re, scale), im = b_.FMul(x.im, scale);
  V magnitude = Magnitude(re, im);
  V zero = b_.FEq(magnitude, b_.Zero(magnitude));
  return NarrowTo(narrow.type, Make(b_.Select(zero, x.re, b_.FDiv(re, magnitude)),
                                    b_.Select(zero, x.im, b_.FDiv(im, magnitude)), x.type));
}

// v e^a 2^more, which overflows and vanishes only if the product does: by e^a / 2^n and a quarter of n at a time.
V ComplexArithmetic::TimesExp(V v, V a, int more) {
  const math::ScaledExp e = math::ExpInParts(b_, a);
  constexpr int kUp = 600;
  V tiny = b_.FLt(b_.FAbs(v), b_.F(0x1p-500, v));
  V n = b_.Sub(e.n, b_.Select(tiny, b_.I(kUp - more, e.n), b_.I(-more, e.n)));
  V quarter = b_.AShr(n, 2);
  V power = PowerOfTwo(b_, quarter);
  V last = PowerOfTwo(b_, b_.Sub(n, b_.Add(b_.Shl(quarter, 1), quarter)));
  V product = b_.FMul(b_.Select(tiny, b_.FMul(v, b_.F(std::ldexp(1.0, kUp), v)), v), e.value);
  return b_.FMul(b_.FMul(b_.FMul(b_.FMul(product, power), power), power), last);
}

// e^a (cos b + i sin b). b = 0 keeps the imaginary zero.
Val ComplexArithmetic::Exp(const Val& x) {
  V cos = math::Cos(b_, x.im), sin = math::Sin(b_, x.im), zero = b_.Zero(x.re);
  V re = TimesExp(cos, x.re, 0), im = TimesExp(sin, x.re, 0);
  V real = b_.FEq(x.im, zero);
  // e^-inf is 0 in the angle's quadrant, or whatever the angle; e^inf of no angle infinite with an unknown sign.
  V no_angle = b_.IsNan(sin);
  V vanishes = b_.FEq(x.re, F(-HUGE_VAL, x)), infinite = b_.FEq(x.re, F(HUGE_VAL, x));
  re = b_.Select(vanishes, b_.CopySign(zero, b_.Select(no_angle, zero, cos)), re);
  im = b_.Select(vanishes, b_.CopySign(zero, b_.Select(no_angle, x.im, sin)), im);
  re = b_.Select(b_.And(infinite, no_angle), x.re, re);
  re = b_.Select(real, math::Exp(b_, x.re), re);
  return Make(re, b_.Select(real, x.im, im), x.type);
}

// e^a cos b - 1 = expm1(a) cos b - 2 sin^2(b/2); NaN for an angle that is not finite, even where e^a is 0.
Val ComplexArithmetic::Expm1(const Val& x) {
  V e = math::Expm1(b_, x.re);
  V half_sine = math::Sin(b_, b_.FMul(x.im, F(0.5, x)));
  V re = b_.FSub(b_.FMul(e, math::Cos(b_, x.im)), b_.FMul(F(2, x), b_.FMul(half_sine, half_sine)));
  Val exp = Exp(x);
  V real = b_.FEq(x.im, b_.Zero(x.im));
  V large = b_.FGt(b_.FAbs(x.re), F(30, x));
  re = b_.Select(large, b_.FSub(exp.re, F(1, x)), re);
  V no_angle = b_.IsNan(half_sine);
  return Make(b_.Select(real, e, b_.Select(no_angle, half_sine, re)), b_.Select(no_angle, half_sine, exp.im), x.type);
}

// p + q, and what rounding it lost.
V ComplexArithmetic::TwoSum(V p, V q, V* lost) {
  V sum = b_.FAdd(p, q), taken = b_.FSub(sum, p);
  *lost = b_.FAdd(b_.FSub(p, b_.FSub(sum, taken)), b_.FSub(q, taken));
  return sum;
}

// log1p(p + q + r + the rounding errors of the squares x^2 and y^2) / 2, of numbers that may cancel.
V ComplexArithmetic::HalfLog1p(V p, V q, V r, V x, V y) {
  V lost[4];
  V sum = TwoSum(q, r, &lost[0]);
  sum = TwoSum(p, sum, &lost[1]);
  sum = TwoSum(sum, b_.Fma(x, x, b_.FNeg(b_.FMul(x, x))), &lost[2]);
  sum = TwoSum(sum, b_.Fma(y, y, b_.FNeg(b_.FMul(y, y))), &lost[3]);
  V whole = b_.FAdd(sum, b_.FAdd(b_.FAdd(lost[0], lost[1]), b_.FAdd(lost[2], lost[3])));
  return b_.FMul(b_.F(0.5, whole), math::Log1p(b_, whole));
}

// log |z| + i atan2(b, a). Near |z| = 1, log |z| = log1p(a^2 - 1 + b^2) / 2 with the rounding errors of the squares.
Val ComplexArithmetic::Log(const Val& x) {
  V one = F(1, x);
  V large = Larger(b_, x.re, x.im);
  V small = b_.Select(b_.FGt(b_.FAbs(x.re), b_.FAbs(x.im)), b_.FAbs(x.im), b_.FAbs(x.re));
  V large2 = b_.FMul(large, large), small2 = b_.FMul(small, small);
  V size = b_.FAdd(large2, small2);
  V near = b_.And(b_.FGt(size, F(0.5, x)), b_.FLt(size, F(3, x)));
  V near_log = HalfLog1p(b_.FSub(large2, one), small2, b_.Zero(one), large, small);
  // |z| may be beyond the range, or subnormal, although its logarithm is not.
  constexpr double kScale = 0x1p600;
  const double log_scale = std::log(kScale);
  V tiny = b_.FLt(large, F(1 / kScale, x)), huge = b_.FGt(large, F(kScale, x));
  V factor = b_.Select(tiny, F(kScale, x), b_.Select(huge, F(1 / kScale, x), one));
  V offset = b_.Select(tiny, F(-log_scale, x), b_.Select(huge, F(log_scale, x), F(0, x)));
  V far_log = b_.FAdd(math::Log(b_, Magnitude(b_.FMul(x.re, factor), b_.FMul(x.im, factor))), offset);
  return Make(b_.Select(near, near_log, far_log), EmitAtan2(b_, x.im, x.re), x.type);
}

// log |1 + z| = log1p(2a + a^2 + b^2) / 2, near 1 with the rounding errors of the squares and of the sum.
Val ComplexArithmetic::Log1p(const Val& x) {
  Val direct = Log(Make(b_.FAdd(x.re, F(1, x)), x.im, x.type));
  V a2 = b_.FMul(x.re, x.re), c2 = b_.FMul(x.im, x.im), twice = b_.FAdd(x.re, x.re);
  V sum = b_.FAdd(twice, b_.FAdd(a2, c2));
  V near = b_.And(b_.FGt(sum, F(-0.5, x)), b_.FLt(sum, F(2, x)));
  V near_log = HalfLog1p(twice, a2, c2, x.re, x.im);
  return Make(b_.Select(near, near_log, direct.re), direct.im, x.type);
}

// t = sqrt((|a| + |z|) / 2), other part b / 2t; scaled so that |a| + |z| stays in range.
Val ComplexArithmetic::Sqrt(const Val& x) {
  V a = x.re, c = x.im;
  V largest = Larger(b_, a, c);
  V tiny = b_.FLt(largest, F(0x1p-900, x)), huge = b_.FGt(largest, F(0x1p900, x));
  V scale = b_.Select(tiny, F(0x1p200, x), b_.Select(huge, F(0x1p-200, x), F(1, x)));
  V unscale = b_.Select(tiny, F(0x1p-100, x), b_.Select(huge, F(0x1p100, x), F(1, x)));
  V as = b_.FMul(a, scale), cs = b_.FMul(c, scale);
  V t = b_.FMul(b_.Sqrt(b_.FMul(b_.FAdd(b_.FAbs(as), Magnitude(as, cs)), F(0.5, x))), unscale);
  V zero = BothZero(b_, x);
  V other = b_.FDiv(c, b_.FMul(t, F(2, x)));
  V right = b_.FGe(a, b_.Zero(a));
  V re = b_.Select(right, t, b_.FAbs(other));
  V im = b_.Select(right, other, b_.CopySign(t, c));
  V inf = b_.F(HUGE_VAL, a);
  V c_inf = b_.FEq(b_.FAbs(c), inf), a_inf = b_.FEq(b_.FAbs(a), inf);
  re = b_.Select(a_inf, b_.Select(right, inf, b_.Select(b_.IsNan(c), c, b_.Zero(a))), re);
  im = b_.Select(a_inf, b_.Select(right, b_.Select(b_.IsNan(c), c, b_.CopySign(b_.Zero(a), c)), b_.CopySign(inf, c)),
                 im);
  re = b_.Select(c_inf, inf, b_.Select(zero, b_.Zero(a), re));
  im = b_.Select(c_inf, c, b_.Select(zero, c, im));
  return Make(re, im, x.type);
}

// conj(sqrt z) / |z|, the smaller part as (b / |z|) / 2t; by z 2^200 or 2^-200 at the ends of the range.
Val ComplexArithmetic::Rsqrt(const Val& x) {
  V largest = Larger(b_, x.re, x.im);
  V tiny = b_.FLt(largest, F(0x1p-800, x)), huge = b_.FGt(largest, F(0x1p800, x));
  V scale = b_.Select(tiny, F(0x1p200, x), b_.Select(huge, F(0x1p-200, x), F(1, x)));
  V unscale = b_.Select(tiny, F(0x1p100, x), b_.Select(huge, F(0x1p-100, x), F(1, x)));
  V a = b_.FMul(x.re, scale), c = b_.FMul(x.im, scale);
  V magnitude = Magnitude(a, c);
  V t = b_.Sqrt(b_.FMul(b_.FAdd(b_.FAbs(a), magnitude), F(0.5, x)));
  V main = b_.FMul(b_.FDiv(t, magnitude), unscale);
  V other = b_.FMul(b_.FDiv(b_.FDiv(c, magnitude), b_.FAdd(t, t)), unscale);
  V right = b_.FGe(a, b_.Zero(a));
  V re = b_.Select(right, main, b_.FAbs(other));
  V im = b_.Select(right, b_.FNeg(other), b_.FNeg(b_.CopySign(main, c)));
  // 1 / 0 is infinite, 1 / infinity zero with the sign that conj has.
  V infinite = AnyInfinite(b_, x), zero = BothZero(b_, x);
  V nothing = b_.CopySign(b_.Zero(c), b_.FNeg(c));
  re = b_.Select(zero, F(HUGE_VAL, x), b_.Select(infinite, b_.Zero(re), re));
  return Make(re, b_.Select(b_.Or(zero, infinite), nothing, im), x.type);
}

// Beyond |a| = 40, sinh and cosh are e^|a| / 2. An infinite a without an angle gives NaN + i NaN, as with XLA: Annex G
// has an infinite real part there, whose sign it leaves open.
Val ComplexArithmetic::Sinh(const Val& x) {
  V sinh = EmitMath(b_, MathFunction::kSinh, x.re), cosh = EmitMath(b_, MathFunction::kCosh, x.re);
  V cos = math::Cos(b_, x.im), sin = math::Sin(b_, x.im);
  V large = b_.FGt(b_.FAbs(x.re), F(40, x)), sign = b_.CopySign(F(1, x), x.re);
  V far_re = TimesExp(b_.FMul(sign, cos), b_.FAbs(x.re), -1), far_im = TimesExp(sin, b_.FAbs(x.re), -1);
  V re = b_.Select(large, far_re, b_.FMul(sinh, cos)), im = b_.Select(large, far_im, b_.FMul(cosh, sin));
  V real = b_.FEq(x.im, b_.Zero(x.im)), imaginary = b_.FEq(x.re, b_.Zero(x.re));
  V zero = b_.CopySign(x.re, b_.FMul(sign, b_.Select(b_.IsNan(cos), F(1, x), cos)));
  re = b_.Select(imaginary, zero, b_.Select(real, sinh, re));
  return Make(re, b_.Select(real, x.im, im), x.type);
}

Val ComplexArithmetic::Cosh(const Val& x) {
  V sinh = EmitMath(b_, MathFunction::kSinh, x.re), cosh = EmitMath(b_, MathFunction::kCosh, x.re);
  V cos = math::Cos(b_, x.im), sin = math::Sin(b_, x.im);
  V large = b_.FGt(b_.FAbs(x.re), F(40, x)), one = b_.CopySign(F(1, x), x.re);
  V far_re = TimesExp(cos, b_.FAbs(x.re), -1), far_im = TimesExp(b_.FMul(one, sin), b_.FAbs(x.re), -1);
  V re = b_.Select(large, far_re, b_.FMul(cosh, cos)), im = b_.Select(large, far_im, b_.FMul(sinh, sin));
  V real = b_.FEq(x.im, b_.Zero(x.im)), imaginary = b_.FEq(x.re, b_.Zero(x.re));
  V sign = b_.FMul(one, b_.CopySign(F(1, x), b_.Select(real, x.im, sin)));
  re = b_.Select(real, cosh, re);
  return Make(re, b_.Select(b_.Or(real, imaginary), b_.CopySign(b_.Zero(sign), sign), im), x.type);
}

// 1 / (1 + e^-z) = e^z / (1 + e^z): whichever has the exponential that does not overflow.
Val ComplexArithmetic::Logistic(const Val& x) {
  V negative = b_.FLt(x.re, b_.Zero(x.re));
  Val one = Real(1, x);
  Val e = Exp(Select(negative, x, s_.Neg(x)));
  return Div(Select(negative, e, one), s_.Add(one, e));
}

// tanh z = (sinh a cosh a + i sin b cos b) / (sinh^2 a + cos^2 b); beyond |a| = 20 it is +-1 + i 4 sin b cos b e^-2|a|.
Val ComplexArithmetic::Tanh(const Val& x) {
  V a = x.re, c = x.im;
  V sinh = EmitMath(b_, MathFunction::kSinh, a), cosh = EmitMath(b_, MathFunction::kCosh, a);
  V sin = math::Sin(b_, c), cos = math::Cos(b_, c);
  V denominator = b_.Fma(sinh, sinh, b_.FMul(cos, cos));
  V re = b_.FDiv(b_.FMul(sinh, cosh), denominator), im = b_.FDiv(b_.FMul(sin, cos), denominator);
  V large = b_.FGt(b_.FAbs(a), F(20, x));
  V decay = math::Exp(b_, b_.FMul(F(-2, x), b_.FAbs(a)));
  V infinite = b_.FEq(b_.FAbs(a), F(HUGE_VAL, x));
  V no_angle = b_.And(b_.IsNan(sin), b_.Not(infinite));
  re = b_.Select(large, b_.Select(no_angle, sin, b_.CopySign(F(1, x), a)), re);
  im = b_.Select(large, b_.FMul(b_.FMul(F(4, x), b_.FMul(sin, cos)), decay), im);
  im = b_.Select(infinite, b_.CopySign(b_.Zero(c), b_.Select(b_.IsNan(sin), c, b_.FMul(sin, cos))), im);
  V real = b_.FEq(c, b_.Zero(c));
  re = b_.Select(real, EmitMath(b_, MathFunction::kTanh, a), re);
  return Make(re, b_.Select(real, c, im), x.type);
}

// Kahan: asinh z by the square roots of 1 + iz and 1 - iz, which do not cancel.
Val ComplexArithmetic::Asinh(const Val& x) {
  Val plus = Sqrt(Make(b_.FSub(F(1, x), x.im), x.re, x.type));            // sqrt(1 + iz)
  Val minus = Sqrt(Make(b_.FAdd(F(1, x), x.im), b_.FNeg(x.re), x.type));  // sqrt(1 - iz)
  V re = EmitMath(b_, MathFunction::kAsinh, b_.FSub(b_.FMul(plus.im, minus.re), b_.FMul(plus.re, minus.im)));
  V product_re = b_.FSub(b_.FMul(plus.re, minus.re), b_.FMul(plus.im, minus.im));
  V im = EmitAtan2(b_, x.im, product_re);
  // Beyond the range of the products: sign(a) log 2z.
  V large = b_.FGt(Larger(b_, x.re, x.im), F(0x1p500, x));
  Val log = Log(Make(b_.FAbs(x.re), b_.FAbs(x.im), x.type));
  V log_re = b_.FAdd(log.re, F(std::log(2.0), x));
  return Make(b_.Select(large, b_.CopySign(log_re, x.re), re), b_.Select(large, b_.CopySign(log.im, x.im), im), x.type);
}

// acosh z = asinh(Re(conj(sqrt(z-1)) sqrt(z+1))) + 2i atan2(Im sqrt(z-1), Re sqrt(z+1))
Val ComplexArithmetic::Acosh(const Val& x) {
  Val minus = Sqrt(Make(b_.FSub(x.re, F(1, x)), x.im, x.type));
  Val plus = Sqrt(Make(b_.FAdd(x.re, F(1, x)), x.im, x.type));
  V re = EmitMath(b_, MathFunction::kAsinh, b_.FAdd(b_.FMul(minus.re, plus.re), b_.FMul(minus.im, plus.im)));
  V im = b_.FMul(F(2, x), EmitAtan2(b_, minus.im, plus.re));
  V large = b_.FGt(Larger(b_, x.re, x.im), F(0x1p500, x));
  Val log = Log(x);
  return Make(b_.Select(large, b_.FAdd(log.re, F(std::log(2.0), x)), re), b_.Select(large, log.im, im), x.type);
}

// atanh z = log1p(4a / ((1-a)^2 + b^2)) / 4 + i atan2(2b, (1-a)(1+a) - b^2) / 2
Val ComplexArithmetic::Atanh(const Val& x) {
  V one = F(1, x);
  V a = b_.FAbs(x.re);
  V down = b_.FSub(one, a), up = b_.FAdd(one, a);
  V b2 = b_.FMul(x.im, x.im);
  V re = b_.FMul(F(0.25, x), math::Log1p(b_, b_.FDiv(b_.FMul(F(4, x), a), b_.Fma(down, down, b2))));
  V im = b_.FMul(F(0.5, x), EmitAtan2(b_, b_.FMul(F(2, x), x.im), b_.Fma(down, up, b_.FNeg(b2))));
  // Next to the poles +-1, whose distance has no square: log(2 / distance) / 2.
  V distance = Larger(b_, down, x.im);
  V pole = b_.FLt(distance, F(0x1p-400, x));
  constexpr double kUp = 0x1p600;
  V pole_log = math::Log(b_, Magnitude(b_.FMul(down, F(kUp, x)), b_.FMul(x.im, F(kUp, x))));
  re = b_.Select(pole, b_.FMul(F(0.5, x), b_.FSub(F(std::log(2 * kUp), x), pole_log)), re);
  // Far out: re = a / |z|^2, im = +-pi/2; by 1/z, which cannot overflow.
  V large = b_.FGt(Larger(b_, a, x.im), F(0x1p400, x));
  Val inverse = Div(Real(1, x), x);
  re = b_.Select(large, b_.FAbs(inverse.re), re);
  im = b_.Select(large, b_.CopySign(F(std::acos(0.0), x), x.im), im);
  return Make(b_.CopySign(re, x.re), im, x.type);
}

Val ComplexArithmetic::Extreme(const Val& x, const Val& y, bool min) {
  const auto nan = [&](const Val& v) { return b_.Or(b_.IsNan(v.re), b_.IsNan(v.im)); };
  const Val beyond = s_.Compare(min ? CompareDirection::Lt : CompareDirection::Gt, CompareOrder::Default, y, x);
  return Select(nan(x), x, Select(b_.Or(nan(y), beyond.re), y, x));
}

// z^w = exp(w log z); z^0 is 1; 0^w is 0 for Re w > 0, infinite for Re w < 0, otherwise nothing.
Val ComplexArithmetic::Pow(const Val& narrow_x, const Val& narrow_y) {
  const Val x = Widen(narrow_x), y = Widen(narrow_y);
  Val power = Exp(Mul(y, Log(x)));
  V zero = b_.Zero(power.re), one = F(1, power), nan = F(NAN, power);
  const auto is_zero = [&](V v) { return b_.FEq(v, b_.Zero(v)); };
  V base_zero = b_.And(is_zero(x.re), is_zero(x.im)), exponent_zero = b_.And(is_zero(y.re), is_zero(y.im));
  V vanishes = b_.FGt(y.re, b_.Zero(y.re)), infinite = b_.FLt(y.re, b_.Zero(y.re));
  V re = b_.Select(base_zero, b_.Select(vanishes, zero, b_.Select(infinite, F(HUGE_VAL, power), nan)), power.re);
  V im = b_.Select(base_zero, b_.Select(b_.Or(vanishes, b_.And(infinite, is_zero(y.im))), zero, nan), power.im);
  re = b_.Select(exponent_zero, one, re);
  im = b_.Select(exponent_zero, zero, im);
  return NarrowTo(narrow_x.type, Make(re, im, power.type));
}

// atan2(y, x) = -i log((x + iy) / sqrt(x^2 + y^2))
Val ComplexArithmetic::Atan2(const Val& narrow_y, const Val& narrow_x) {
  const Val x = Widen(narrow_x), y = Widen(narrow_y);
  Val sum = s_.Add(x, TimesI(y));
  Val root = Sqrt(s_.Add(Mul(x, x), Mul(y, y)));
  return NarrowTo(narrow_x.type, TimesMinusI(Log(Div(sum, root))));
}

Val ComplexArithmetic::Math(MathFunction f, const Val& x) { return NarrowTo(x.type, WideMath(f, Widen(x))); }

Val ComplexArithmetic::WideMath(MathFunction f, const Val& x) {
  switch (f) {
    case MathFunction::kExp: return Exp(x);
    case MathFunction::kExpm1: return Expm1(x);
    case MathFunction::kLog: return Log(x);
    case MathFunction::kLog1p: return Log1p(x);
    case MathFunction::kSqrt: return Sqrt(x);
    case MathFunction::kRsqrt: return Rsqrt(x);
    case MathFunction::kLogistic: return Logistic(x);
    case MathFunction::kSinh: return Sinh(x);
    case MathFunction::kCosh: return Cosh(x);
    case MathFunction::kTanh: return Tanh(x);
    // By the imaginary axis: sin z = -i sinh iz, and so on.
    case MathFunction::kSin: return TimesMinusI(Sinh(TimesI(x)));
    case MathFunction::kCos: return Cosh(TimesI(x));
    case MathFunction::kTan: return TimesMinusI(Tanh(TimesI(x)));
    case MathFunction::kAsinh: return Asinh(x);
    case MathFunction::kAcosh: return Acosh(x);
    case MathFunction::kAtanh: return Atanh(x);
    case MathFunction::kAsin: return TimesMinusI(Asinh(TimesI(x)));
    case MathFunction::kAtan: return TimesMinusI(Atanh(TimesI(x)));
    case MathFunction::kAcos: {  // acosh z turned into the right half plane
      Val acosh = Acosh(x);
      return Make(b_.FAbs(acosh.im), b_.FNeg(b_.CopySign(acosh.re, x.im)), x.type);
    }
    case MathFunction::kCbrt: {  // exp(log z / 3)
      Val log = Log(x);
      V third = F(1.0 / 3.0, x);
      Val root = Exp(Make(b_.FMul(log.re, third), b_.FMul(log.im, third), x.type));
      V zero = b_.And(b_.FEq(x.re, b_.Zero(x.re)), b_.FEq(x.im, b_.Zero(x.im)));
      return Select(zero, x, root);
    }
    case MathFunction::kErf: break;  // not defined for complex: refused by shape inference
  }
  return x;
}

}  // namespace strop
