// Formulas follow C's Annex G in what they give for infinities and zeros; cancellation is avoided by the usual
// rewritings (Kahan's), overflow of intermediate squares by scaling with powers of two.
#include "strop/codegen/complex_arithmetic.h"

#include <cmath>

#include "strop/codegen/math/math.h"

namespace strop {

using V = llvm::Value*;

Val ComplexArithmetic::Mul(const Val& x, const Val& y) {
  return Make(b_.FSub(b_.FMul(x.re, y.re), b_.FMul(x.im, y.im)), b_.FAdd(b_.FMul(x.re, y.im), b_.FMul(x.im, y.re)),
              x.type);
}

// (a + ib) / (c + id), with c and d scaled by a power of two so that c^2 + d^2 neither overflows nor vanishes.
Val ComplexArithmetic::Div(const Val& x, const Val& y) {
  V a = x.re, bb = x.im, c = y.re, d = y.im;
  b_.Match(a, c);
  b_.Match(bb, d);
  const bool wide = VectorBuilder::ScalarBits(c) == 64;
  const int mantissa = wide ? 52 : 23, bias = wide ? 1023 : 127;
  V zero = b_.Zero(a);
  V larger = b_.Select(b_.FGt(b_.FAbs(c), b_.FAbs(d)), b_.FAbs(c), b_.FAbs(d));
  V exponent = b_.LShr(b_.AsInt(larger), mantissa);
  // scale = 2^(bias - exponent): exponents 1 .. 2*bias-1 only, so clamp; 0 and infinity keep a harmless scale.
  V clamped = b_.Binary(llvm::Intrinsic::umin, exponent, b_.I(2 * bias - 1, exponent));
  V scale = b_.AsFloat(
      b_.Shl(b_.Sub(b_.I(2 * bias, exponent), b_.Binary(llvm::Intrinsic::umax, clamped, b_.I(1, exponent))), mantissa));
  V cs = b_.FMul(c, scale), ds = b_.FMul(d, scale);
  V denominator = b_.FAdd(b_.FMul(cs, cs), b_.FMul(ds, ds));
  V re = b_.FMul(b_.FDiv(b_.FAdd(b_.FMul(a, cs), b_.FMul(bb, ds)), denominator), scale);
  V im = b_.FMul(b_.FDiv(b_.FSub(b_.FMul(bb, cs), b_.FMul(a, ds)), denominator), scale);
  // Annex G: what came out as NaN + i NaN although it has a limit.
  const auto inf = [&](V v) { return b_.FEq(b_.FAbs(v), b_.F(HUGE_VAL, v)); };
  const auto finite = [&](V v) { return b_.FLt(b_.FAbs(v), b_.F(HUGE_VAL, v)); };
  const auto box = [&](V v) { return b_.CopySign(b_.Select(inf(v), b_.F(1, v), b_.Zero(v)), v); };
  V both_nan = b_.And(b_.IsNan(re), b_.IsNan(im));
  V by_zero = b_.And(b_.FEq(denominator, zero), b_.Or(b_.Not(b_.IsNan(a)), b_.Not(b_.IsNan(bb))));
  V signed_inf = b_.CopySign(b_.F(HUGE_VAL, c), c);
  V inf_over_finite = b_.And(b_.Or(inf(a), inf(bb)), b_.And(finite(c), finite(d)));
  V finite_over_inf = b_.And(b_.Or(inf(c), inf(d)), b_.And(finite(a), finite(bb)));
  V ab = box(a), bbb = box(bb), cb = box(c), db = box(d);
  V huge = b_.F(HUGE_VAL, a);
  V re2 = b_.FMul(huge, b_.FAdd(b_.FMul(ab, c), b_.FMul(bbb, d)));
  V im2 = b_.FMul(huge, b_.FSub(b_.FMul(bbb, c), b_.FMul(ab, d)));
  V re3 = b_.FMul(zero, b_.FAdd(b_.FMul(a, cb), b_.FMul(bb, db)));
  V im3 = b_.FMul(zero, b_.FSub(b_.FMul(bb, cb), b_.FMul(a, db)));
  V fixed_re =
      b_.Select(by_zero, b_.FMul(signed_inf, a), b_.Select(inf_over_finite, re2, b_.Select(finite_over_inf, re3, re)));
  V fixed_im =
      b_.Select(by_zero, b_.FMul(signed_inf, bb), b_.Select(inf_over_finite, im2, b_.Select(finite_over_inf, im3, im)));
  return Make(b_.Select(both_nan, fixed_re, re), b_.Select(both_nan, fixed_im, im), x.type);
}

// sqrt(re^2 + im^2): in double for floats; scaled by 2^-600 or 2^600 at the ends of the range for doubles.
V ComplexArithmetic::Magnitude(V re, V im) {
  V infinite = b_.Or(b_.FEq(b_.FAbs(re), b_.F(HUGE_VAL, re)), b_.FEq(b_.FAbs(im), b_.F(HUGE_VAL, im)));
  V result;
  if (VectorBuilder::ScalarBits(re) == 32) {
    V r = b_.ToF64(re), i = b_.ToF64(im);
    result = b_.ToF32(b_.Sqrt(b_.FAdd(b_.FMul(r, r), b_.FMul(i, i))));
  } else {
    V ar = b_.FAbs(re), ai = b_.FAbs(im);
    V largest = b_.Select(b_.FGt(ar, ai), ar, ai);
    V big = b_.FGt(largest, b_.F(0x1p500, largest)), small = b_.FLt(largest, b_.F(0x1p-500, largest));
    V scale = b_.Select(big, b_.F(0x1p-600, largest), b_.Select(small, b_.F(0x1p600, largest), b_.F(1, largest)));
    V unscale = b_.Select(big, b_.F(0x1p600, largest), b_.Select(small, b_.F(0x1p-600, largest), b_.F(1, largest)));
    V r = b_.FMul(re, scale), i = b_.FMul(im, scale);
    result = b_.FMul(b_.Sqrt(b_.Fma(r, r, b_.FMul(i, i))), unscale);
  }
  return b_.Select(infinite, b_.F(HUGE_VAL, result), result);
}

Val ComplexArithmetic::Abs(const Val& x) { return Val{Magnitude(x.re, x.im), nullptr, ComplexPart(x.type)}; }

Val ComplexArithmetic::Sign(const Val& x) {
  // The magnitude of subnormal parts would have few bits: small numbers are scaled.
  const bool wide = VectorBuilder::ScalarBits(x.re) == 64;
  V limit = b_.F(wide ? 0x1p-900 : 0x1p-90, x.re);
  V small = b_.And(b_.FLt(b_.FAbs(x.re), limit), b_.FLt(b_.FAbs(x.im), limit));
  V scale = b_.Select(small, b_.F(wide ? 0x1p512 : 0x1p64, x.re), F(1, x));
  V re = b_.FMul(x.re, scale), im = b_.FMul(x.im, scale);
  V magnitude = Magnitude(re, im);
  V zero = b_.FEq(magnitude, b_.Zero(magnitude));
  return Make(b_.Select(zero, re, b_.FDiv(re, magnitude)), b_.Select(zero, im, b_.FDiv(im, magnitude)), x.type);
}

// e^a (cos b + i sin b), by two halves of e^a so that it overflows only with the result. b = 0 keeps the imaginary
// zero.
Val ComplexArithmetic::Exp(const Val& x) {
  V half = math::Exp(b_, b_.FMul(x.re, F(0.5, x)));
  V re = b_.FMul(b_.FMul(half, math::Cos(b_, x.im)), half);
  V im = b_.FMul(b_.FMul(half, math::Sin(b_, x.im)), half);
  V whole = math::Exp(b_, x.re);
  V direct_re = b_.FMul(whole, math::Cos(b_, x.im)), direct_im = b_.FMul(whole, math::Sin(b_, x.im));
  V large = b_.FGt(x.re, F(VectorBuilder::ScalarBits(x.re) == 64 ? 700 : 80, x));
  V real = b_.FEq(x.im, b_.Zero(x.im));
  V vanishes = b_.FEq(x.re, F(-HUGE_VAL, x));  // e^-inf is 0 whatever the angle
  re = b_.Select(large, re, direct_re);
  im = b_.Select(large, im, direct_im);
  re = b_.Select(real, whole, b_.Select(vanishes, b_.Zero(re), re));
  im = b_.Select(real, x.im, b_.Select(vanishes, b_.Zero(im), im));
  return Make(re, im, x.type);
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

// log |z| + i atan2(b, a). Near |z| = 1, log |z| = log1p((|a|-1)(|a|+1) + b^2) / 2 keeps its digits.
Val ComplexArithmetic::Log(const Val& x) {
  V a = b_.FAbs(x.re), c = b_.FAbs(x.im);
  V large = b_.Select(b_.FGt(a, c), a, c), small = b_.Select(b_.FGt(a, c), c, a);
  V magnitude = Magnitude(x.re, x.im);
  V near = b_.And(b_.FGt(magnitude, F(0.5, x)), b_.FLt(magnitude, F(2, x)));
  V one = F(1, x);
  V near_log =
      b_.FMul(F(0.5, x), math::Log1p(b_, b_.Fma(b_.FSub(large, one), b_.FAdd(large, one), b_.FMul(small, small))));
  // |z| may be beyond the range, or subnormal, although its logarithm is not.
  const double scale = VectorBuilder::ScalarBits(x.re) == 64 ? 0x1p600 : 0x1p70;
  const double log_scale = std::log(scale);
  V tiny = b_.FLt(large, F(1 / scale, x)), huge = b_.FGt(large, F(scale, x));
  V factor = b_.Select(tiny, F(scale, x), b_.Select(huge, F(1 / scale, x), one));
  V offset = b_.Select(tiny, F(-log_scale, x), b_.Select(huge, F(log_scale, x), F(0, x)));
  V far_log = b_.FAdd(math::Log(b_, Magnitude(b_.FMul(x.re, factor), b_.FMul(x.im, factor))), offset);
  return Make(b_.Select(near, near_log, far_log), EmitAtan2(b_, x.im, x.re), x.type);
}

// log |1 + z| = log1p(a (2 + a) + b^2) / 2
Val ComplexArithmetic::Log1p(const Val& x) {
  Val direct = Log(Make(b_.FAdd(x.re, F(1, x)), x.im, x.type));
  V small = b_.And(b_.FLt(b_.FAbs(x.re), F(0.5, x)), b_.FLt(b_.FAbs(x.im), F(0.5, x)));
  V sum = b_.Fma(x.re, b_.FAdd(x.re, F(2, x)), b_.FMul(x.im, x.im));
  V near_log = b_.FMul(F(0.5, x), math::Log1p(b_, sum));
  return Make(b_.Select(small, near_log, direct.re), direct.im, x.type);
}

// t = sqrt((|a| + |z|) / 2), other part b / 2t; scaled so that |a| + |z| stays in range.
Val ComplexArithmetic::Sqrt(const Val& x) {
  V a = x.re, c = x.im;
  V largest = b_.Select(b_.FGt(b_.FAbs(a), b_.FAbs(c)), b_.FAbs(a), b_.FAbs(c));
  const bool wide = VectorBuilder::ScalarBits(a) == 64;
  const double up = wide ? 0x1p200 : 0x1p60, limit = wide ? 0x1p-900 : 0x1p-60;
  V tiny = b_.FLt(largest, F(limit, x)), huge = b_.FGt(largest, F(1 / limit, x));
  V scale = b_.Select(tiny, F(up, x), b_.Select(huge, F(1 / up, x), F(1, x)));
  V unscale = b_.Select(tiny, F(std::sqrt(1 / up), x), b_.Select(huge, F(std::sqrt(up), x), F(1, x)));
  V as = b_.FMul(a, scale), cs = b_.FMul(c, scale);
  V t = b_.Sqrt(b_.FMul(b_.FAdd(b_.FAbs(as), Magnitude(as, cs)), F(0.5, x)));
  V zero = b_.FEq(largest, b_.Zero(a));
  V other = b_.FDiv(cs, b_.FMul(t, F(2, x)));
  t = b_.FMul(t, unscale);
  other = b_.FMul(other, unscale);
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

Val ComplexArithmetic::Sinh(const Val& x) {
  V re = b_.FMul(EmitMath(b_, MathFunction::kSinh, x.re), math::Cos(b_, x.im));
  V im = b_.FMul(EmitMath(b_, MathFunction::kCosh, x.re), math::Sin(b_, x.im));
  V real = b_.FEq(x.im, b_.Zero(x.im)), imaginary = b_.FEq(x.re, b_.Zero(x.re));
  return Make(b_.Select(imaginary, x.re, b_.Select(real, EmitMath(b_, MathFunction::kSinh, x.re), re)),
              b_.Select(real, x.im, im), x.type);
}

Val ComplexArithmetic::Cosh(const Val& x) {
  V cosh = EmitMath(b_, MathFunction::kCosh, x.re), sinh = EmitMath(b_, MathFunction::kSinh, x.re);
  V re = b_.FMul(cosh, math::Cos(b_, x.im)), im = b_.FMul(sinh, math::Sin(b_, x.im));
  V real = b_.FEq(x.im, b_.Zero(x.im)), imaginary = b_.FEq(x.re, b_.Zero(x.re));
  V zero = b_.FMul(b_.CopySign(F(1, x), x.re), b_.CopySign(b_.Zero(x.im), x.im));
  return Make(b_.Select(real, cosh, re), b_.Select(b_.Or(real, imaginary), b_.FMul(zero, F(1, x)), im), x.type);
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
  const double limit = VectorBuilder::ScalarBits(x.re) == 64 ? 0x1p500 : 0x1p60;
  V large = b_.Or(b_.FGt(b_.FAbs(x.re), F(limit, x)), b_.FGt(b_.FAbs(x.im), F(limit, x)));
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
  const double limit = VectorBuilder::ScalarBits(x.re) == 64 ? 0x1p500 : 0x1p60;
  V large = b_.Or(b_.FGt(b_.FAbs(x.re), F(limit, x)), b_.FGt(b_.FAbs(x.im), F(limit, x)));
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
  // Far out: re = a / |z|^2, im = +-pi/2; by 1/z, which cannot overflow.
  const double limit = VectorBuilder::ScalarBits(x.re) == 64 ? 0x1p400 : 0x1p50;
  V large = b_.Or(b_.FGt(a, F(limit, x)), b_.FGt(b_.FAbs(x.im), F(limit, x)));
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

Val ComplexArithmetic::Pow(const Val& x, const Val& y) {
  // z^w = exp(w log z); 0^w is 0 (1 for w = 0); z^0 is 1.
  Val log = Log(x);
  Val power = Exp(Mul(y, log));
  V base_zero = b_.And(b_.FEq(x.re, b_.Zero(x.re)), b_.FEq(x.im, b_.Zero(x.im)));
  V exponent_zero = b_.And(b_.FEq(y.re, b_.Zero(y.re)), b_.FEq(y.im, b_.Zero(y.im)));
  V one = F(1, power), zero = b_.Zero(power.re);
  V re = b_.Select(exponent_zero, one, b_.Select(base_zero, zero, power.re));
  V im = b_.Select(b_.Or(exponent_zero, base_zero), zero, power.im);
  return Make(re, im, x.type);
}

// atan2(y, x) = -i log((x + iy) / sqrt(x^2 + y^2))
Val ComplexArithmetic::Atan2(const Val& y, const Val& x) {
  Val sum = s_.Add(x, TimesI(y));
  Val root = Sqrt(s_.Add(Mul(x, x), Mul(y, y)));
  return TimesMinusI(Log(Div(sum, root)));
}

Val ComplexArithmetic::Math(MathFunction f, const Val& x) {
  switch (f) {
    case MathFunction::kExp: return Exp(x);
    case MathFunction::kExpm1: return Expm1(x);
    case MathFunction::kLog: return Log(x);
    case MathFunction::kLog1p: return Log1p(x);
    case MathFunction::kSqrt: return Sqrt(x);
    case MathFunction::kRsqrt: return Div(Real(1, x), Sqrt(x));
    case MathFunction::kLogistic: return Div(Real(1, x), s_.Add(Real(1, x), Exp(s_.Neg(x))));
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
    case MathFunction::kAcos: {  // pi/2 - asin, by the roots of 1 - z and 1 + z, which does not cancel
      Val minus = Sqrt(Make(b_.FSub(F(1, x), x.re), b_.FNeg(x.im), x.type));
      Val plus = Sqrt(Make(b_.FAdd(F(1, x), x.re), x.im, x.type));
      V re = b_.FMul(F(2, x), EmitAtan2(b_, minus.re, plus.re));
      V im = EmitMath(b_, MathFunction::kAsinh, b_.FSub(b_.FMul(plus.re, minus.im), b_.FMul(plus.im, minus.re)));
      return Make(re, im, x.type);
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
