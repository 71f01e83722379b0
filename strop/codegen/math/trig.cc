// Trigonometric functions and their inverses.
//
//   x = n pi/2 + r, |r| <= pi/4; sin and cos of r by polynomials; n mod 4 chooses and signs
//
// pi/2 is subtracted in three parts of 53 bits. With fma the first difference is exact (x and n pi1 are multiples of
// the same power of two, and the difference is small), and the rest carries r to twice the precision; good for |x| up
// to a limit. Lanes beyond it, which no program has in numbers, go to libm. Sines and cosines of floats do the same
// with three parts of 24 bits; lanes beyond their limit, tangents, and machines without fma compute in double, where
// two parts are enough.
#include <cmath>

#include "strop/codegen/math/math.h"

namespace strop::math {
namespace {

constexpr double kPi1 = 0x1.921fb54442d18p+0, kPi2 = 0x1.1a62633145c07p-54, kPi3 = -0x1.f1976b7ed8fbcp-110;
// The same in floats.
constexpr double kFloatPi1 = 0x1.921fb6p+0, kFloatPi2 = -0x1.777a5cp-25, kFloatPi3 = -0x1.ee59dap-50;
constexpr double kLimitOfDouble = 1 << 20, kLimitOfFloat = 1 << 27, kLimitInFloats = 1 << 17;

struct Angle {
  V r, rest;   // r + rest; rest is null for floats that are computed in double
  V quadrant;  // in the low bits, an integer of the width of r
};

// x in float lanes. n pi2 is rounded before it is subtracted: then it is a multiple of no more than the first
// difference is, so that what the second one loses is exact however much they cancel.
Angle ReduceInFloats(VectorBuilder& b, V x) {
  V magic = b.F(0x1.8p23, x);
  V shifted = b.Fma(x, b.F(0x1.45f306p-1, x), magic);
  V n = b.FSub(shifted, magic);
  V first = b.Fma(n, b.F(-kFloatPi1, x), x);
  V second = b.FMul(n, b.F(kFloatPi2, x));
  V r = b.FSub(first, second);
  V r_lost = b.FSub(b.FSub(first, r), second);
  V second_lost = b.Fma(n, b.F(-kFloatPi3, x), b.Fma(n, b.F(-kFloatPi2, x), second));
  return {r, b.FAdd(r_lost, second_lost), b.AsInt(shifted)};
}

// x in double lanes.
Angle Reduce(VectorBuilder& b, V x, bool for_float) {
  V magic = b.F(0x1.8p52, x);
  V shifted = b.Fma(x, b.F(0x1.45f306dc9c883p-1, x), magic);
  V n = b.FSub(shifted, magic);
  V first = b.Fma(n, b.F(-kPi1, x), x);
  if (for_float) return {b.Fma(n, b.F(-kPi2, x), first), nullptr, b.AsInt(shifted)};
  // What follows is exact but for the last product: near a multiple of pi/2 `first` and n pi2 may cancel, too.
  V second = b.FMul(n, b.F(kPi2, x));
  V second_lost = b.Fma(n, b.F(kPi2, x), b.FNeg(second));
  V r = b.FSub(first, second);
  V taken = b.FSub(first, r);
  V r_lost = b.FAdd(b.FSub(first, b.FAdd(r, taken)), b.FSub(taken, second));
  V rest = b.Fma(n, b.F(-kPi3, x), b.FSub(r_lost, second_lost));
  return {r, rest, b.AsInt(shifted)};
}

// high + low, and what rounding it loses if somebody asks.
V Sum(VectorBuilder& b, V high, V low, V* lost) {
  V sum = b.FAdd(high, low);
  if (lost) *lost = b.FAdd(b.FSub(high, sum), low);
  return sum;
}

V SinePolynomial(VectorBuilder& b, const Angle& a, V* lost = nullptr) {
  V z = b.FMul(a.r, a.r);
  if (!IsDouble(z)) {
    V p = b.Polynomial(z, {-1.6666654611e-1, 8.3321608736e-3, -1.9515295891e-4});
    return b.FAdd(a.r, b.Fma(b.FMul(a.r, z), p, a.rest));
  }
  if (!a.rest) {
    V p = b.PolynomialByPairs(
        z, {-0.1666666663956871, 0.008333329145162601, -0.0001983925703145628, 2.7175682063426978e-06});
    return b.Fma(b.FMul(a.r, z), p, a.r);
  }
  V p = b.Polynomial(z, {-0.16666666666666627, 0.00833333333332129, -0.00019841269828874846, 2.755731335769109e-06,
                         -2.505070430729533e-08, 1.5893599677009438e-10});
  // sin(r + e) = sin r + e cos r
  V low = b.Fma(b.FMul(a.r, z), p, b.Fma(b.FMul(a.rest, z), b.F(-0.5, z), a.rest));
  return Sum(b, a.r, low, lost);
}

V CosinePolynomial(VectorBuilder& b, const Angle& a, V* lost = nullptr) {
  V z = b.FMul(a.r, a.r);
  V one = b.F(1, z);
  if (!IsDouble(z)) {
    V minus_half = b.FMul(a.r, b.F(-0.5, z));
    V top = b.Fma(minus_half, a.r, one);
    V top_lost = b.Fma(minus_half, a.r, b.FSub(one, top));
    V p = b.Polynomial(z, {4.166664568298827e-2, -1.388731625493765e-3, 2.443315711809948e-5});
    return b.FAdd(top, b.Fma(b.FMul(z, z), p, b.Fma(b.FNeg(a.r), a.rest, top_lost)));
  }
  V half = b.FMul(z, b.F(0.5, z));
  V top = b.FSub(one, half);
  if (!a.rest) {
    V p = b.PolynomialByPairs(
        z, {0.041666666619224225, -0.0013888883440104996, 2.4799436843608976e-05, -2.720333917532251e-07});
    return b.Fma(b.FMul(z, z), p, top);
  }
  V p = b.Polynomial(z, {0.04166666666666659, -0.0013888888888872607, 2.4801587288496756e-05, -2.7557314057966465e-07,
                         2.087568207333652e-09, -1.1357458906619965e-11});
  V top_lost = b.FSub(b.FSub(one, top), half);
  V low = b.Fma(b.FMul(z, z), p, b.Fma(b.FNeg(a.r), a.rest, top_lost));
  return Sum(b, top, low, lost);
}

V Bit(VectorBuilder& b, V quadrant, int64_t mask) {
  return b.ir().CreateICmpNE(b.And(quadrant, b.I(mask, quadrant)), b.Zero(quadrant));
}

// -x where the highest bit of `sign` is set.
V FlipSign(VectorBuilder& b, V x, V sign) {
  const int top = VectorBuilder::ScalarBits(x) - 1;
  V highest = b.I(static_cast<int64_t>(uint64_t{1} << top), sign);
  return b.AsFloat(b.Xor(b.AsInt(x), b.And(sign, highest)));
}

// sin (or cos, a quarter ahead).
V SineOrCosineOfAny(VectorBuilder& b, V x, bool cosine, bool for_float) {
  const Angle a = IsDouble(x) ? Reduce(b, x, for_float) : ReduceInFloats(b, x);
  V quadrant = cosine ? b.Add(a.quadrant, b.I(1, a.quadrant)) : a.quadrant;
  V value = b.Select(Bit(b, quadrant, 1), CosinePolynomial(b, a), SinePolynomial(b, a));
  return FlipSign(b, value, b.Shl(quadrant, VectorBuilder::ScalarBits(x) - 2));
}

// A single small angle is not reduced first, which is half of the time that somebody waits for it (scalar loops of
// physics); the bits are the same, since n is 0. Vectors rarely have small angles only.
V SineOrCosine(VectorBuilder& b, V x, bool cosine, bool for_float) {
  if (VectorBuilder::Lanes(x) > 1) return SineOrCosineOfAny(b, x, cosine, for_float);
  constexpr double kSmall = 0.78;  // below pi/4
  const Angle a{x, IsDouble(x) && for_float ? nullptr : b.Zero(x), nullptr};
  const V small = cosine ? CosinePolynomial(b, a) : SinePolynomial(b, a);
  return b.RarePath(b.Not(b.FLt(b.FAbs(x), b.F(kSmall, x))), small,
                    [&] { return SineOrCosineOfAny(b, x, cosine, for_float); });
}

V WithLibmBeyond(VectorBuilder& b, double limit, V x, V usual, const char* name64, const char* name32) {
  return b.RarePath(b.FGt(b.FAbs(x), b.F(limit, x)), usual,
                    [&] { return b.CallPerLane(IsDouble(x) ? name64 : name32, {x}); });
}

V SineOrCosineOfFloat(VectorBuilder& b, V x, bool cosine) {
  const auto in_double = [&](V wide) {
    V value = b.ToF32(SineOrCosine(b, b.ToF64(wide), cosine, true));
    return WithLibmBeyond(b, kLimitOfFloat, wide, value, cosine ? "cos" : "sin", cosine ? "cosf" : "sinf");
  };
  if (!b.target().fma) return in_double(x);
  return b.RarePath(b.FGt(b.FAbs(x), b.F(kLimitInFloats, x)), SineOrCosine(b, x, cosine, true),
                    [&] { return b.CallPerRegister(cosine ? "strop.cos" : "strop.sin", x, in_double); });
}

// t in [0, 1] of double lanes, to a float's accuracy.
V AtanPolynomial(VectorBuilder& b, V t) {
  V z = b.FMul(t, t);
  V p = b.Polynomial(
      z, {-0.3333333329239181, 0.19999996636307277, -0.14285617103484313, 0.11109685407473918, -0.09078432450083476,
          0.07621020571348548, -0.06385090738343947, 0.05082309449291368, -0.03575832058127355, 0.02038128245558211,
          -0.00850170680737731, 0.0022515715146973077, -0.0002800479866021808});
  return b.Fma(b.FMul(t, z), p, t);
}

constexpr double kHalfPi = 0x1.921fb54442d18p+0, kPi = 0x1.921fb54442d18p+1;

// Angle of the point (x, y), double lanes; zeros and infinities as C's atan2.
V AngleOf(VectorBuilder& b, V y, V x) {
  V ax = b.FAbs(x), ay = b.FAbs(y);
  V steep = b.FGt(ay, ax);
  V large = b.Select(steep, ay, ax), small = b.Select(steep, ax, ay);
  V ratio = b.FDiv(small, large);
  ratio = b.Select(b.FEq(large, b.Zero(large)), b.Zero(ratio), ratio);
  ratio = b.Select(b.FEq(small, b.F(HUGE_VAL, small)), b.F(1, ratio), ratio);
  V angle = AtanPolynomial(b, ratio);
  angle = b.Select(steep, b.FSub(b.F(kHalfPi, angle), angle), angle);
  V left = b.SLt(b.AsInt(x), b.Zero(b.AsInt(x)));
  angle = b.Select(left, b.FSub(b.F(kPi, angle), angle), angle);
  angle = b.CopySign(angle, y);
  return b.Select(b.ir().CreateFCmpUNO(x, y), b.FAdd(x, y), angle);
}

}  // namespace

V Sin(VectorBuilder& b, V x) {
  if (IsDouble(x)) {
    V tiny = b.FLt(b.FAbs(x), b.F(0x1p-27, x));  // keeps -0
    V usual = b.Select(tiny, x, SineOrCosine(b, x, false, false));
    return WithLibmBeyond(b, kLimitOfDouble, x, usual, "sin", "sinf");
  }
  return FlipSign(b, SineOrCosineOfFloat(b, b.FAbs(x), false), b.AsInt(x));  // keeps -0
}

V Cos(VectorBuilder& b, V x) {
  if (IsDouble(x)) return WithLibmBeyond(b, kLimitOfDouble, x, SineOrCosine(b, x, true, false), "cos", "cosf");
  // A sine of the same angle shares all but the choice at the end; scalars branch, and share nothing.
  return SineOrCosineOfFloat(b, VectorBuilder::Lanes(x) > 1 ? b.FAbs(x) : x, true);
}

V Tan(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  const Angle a = Reduce(b, b.ToF64(x), !wide);
  V sine_lost = nullptr, cosine_lost = nullptr;
  V sine = SinePolynomial(b, a, &sine_lost), cosine = CosinePolynomial(b, a, &cosine_lost);
  V odd = Bit(b, a.quadrant, 1);
  V numerator = b.Select(odd, b.FNeg(cosine), sine), denominator = b.Select(odd, sine, cosine);
  if (!wide) {
    V value = b.ToF32(b.FDiv(numerator, denominator));
    return WithLibmBeyond(b, kLimitOfFloat, x, b.Select(b.FEq(x, b.Zero(x)), x, value), "tan", "tanf");
  }
  V numerator_lost = b.Select(odd, b.FNeg(cosine_lost), sine_lost);
  V denominator_lost = b.Select(odd, sine_lost, cosine_lost);
  V reciprocal = b.FDiv(b.F(1, x), denominator);
  V value = b.FMul(numerator, reciprocal), minus = b.FNeg(value);
  V rest = b.FAdd(b.Fma(minus, denominator, numerator), b.Fma(minus, denominator_lost, numerator_lost));
  V usual = b.Select(b.FLt(b.FAbs(x), b.F(0x1p-27, x)), x, b.Fma(rest, reciprocal, value));
  return WithLibmBeyond(b, kLimitOfDouble, x, usual, "tan", "tanf");
}

V AtanOfFloat(VectorBuilder& b, V x) {
  V wide = b.ToF64(x), a = b.FAbs(wide), one = b.F(1, wide);
  V large = b.FGt(a, one);
  V angle = AtanPolynomial(b, b.Select(large, b.FDiv(one, a), a));
  angle = b.Select(large, b.FSub(b.F(kHalfPi, angle), angle), angle);
  return b.ToF32(b.CopySign(angle, wide));
}

namespace {

// (asin(sqrt z) / sqrt z - 1) / z for z up to 1/4.
V AsinPolynomial(VectorBuilder& b, V z) {
  if (IsDouble(z)) {
    return b.Polynomial(
        z, {0.16666666666666669, 0.0749999999999824, 0.044642857146723926, 0.030381944110921776, 0.02237217401036493,
            0.0173523683463984, 0.013971565419758164, 0.01147582372012767, 0.01034409687010944, 0.0053683200850328724,
            0.01763785093394544, -0.015213534910356147, 0.028999286537737288});
  }
  return b.Polynomial(
      z, {0.16666673123836517, 0.07498761266469955, 0.0450202152132988, 0.026433363556861877, 0.038328301161527634});
}

// pi/2 in two parts.
V HalfPi(VectorBuilder& b, V like) { return b.F(IsDouble(like) ? kPi1 : 0x1.921fb6p+0, like); }
V HalfPiRest(VectorBuilder& b, V like) { return b.F(IsDouble(like) ? kPi2 : -0x1.777a5cp-25, like); }

// The sine s or, beyond 1/2, that of the half of the complement: asin x = pi/2 - 2 asin s, s^2 = (1 - x) / 2. Outside
// [-1, 1] the root is NaN. `cubic` is asin s - s.
struct HalfAngle {
  V beyond, s, cubic;
};

HalfAngle ReduceSine(VectorBuilder& b, V a) {
  V beyond = b.FGt(a, b.F(0.5, a));
  V z = b.Select(beyond, b.Fma(a, b.F(-0.5, a), b.F(0.5, a)), b.FMul(a, a));
  V s = b.Select(beyond, b.Sqrt(z), a);
  return {beyond, s, b.FMul(b.FMul(s, z), AsinPolynomial(b, z))};
}

}  // namespace

V Asin(VectorBuilder& b, V x) {
  const HalfAngle h = ReduceSine(b, b.FAbs(x));
  V direct = b.FAdd(h.s, h.cubic);
  V twice = b.FAdd(h.s, h.s);
  V high = b.FSub(HalfPi(b, x), twice);
  V lost = b.FSub(b.FSub(HalfPi(b, x), high), twice);
  V low = b.FSub(b.FAdd(h.cubic, h.cubic), b.FAdd(HalfPiRest(b, x), lost));
  V complement = b.FSub(high, low);
  return b.CopySign(b.Select(h.beyond, complement, direct), x);
}

V Acos(VectorBuilder& b, V x) {
  const HalfAngle h = ReduceSine(b, b.FAbs(x));
  V half = b.FAdd(h.s, h.cubic), twice = b.FAdd(half, half);
  V pi = b.FMul(b.F(2, x), HalfPi(b, x)), pi_rest = b.FMul(b.F(2, x), HalfPiRest(b, x));
  V outer = b.Select(b.FLt(x, b.Zero(x)), b.FSub(pi, b.FSub(twice, pi_rest)), twice);
  V s = b.CopySign(h.s, x), cubic = b.CopySign(h.cubic, x);
  V inner = b.FSub(HalfPi(b, x), b.FSub(s, b.FSub(HalfPiRest(b, x), cubic)));
  return b.Select(h.beyond, outer, inner);
}

// Angle of the point (x, y), double lanes, by the ratio t of the smaller coordinate to the larger one, from tan(pi/8)
// on of their difference to their sum: k pi/4 +- atan t, both with what their rounding lost.
V Atan2OfDouble(VectorBuilder& b, V y, V x) {
  b.Match(y, x);
  V ax = b.FAbs(x), ay = b.FAbs(y), zero = b.Zero(x), one = b.F(1, x), infinity = b.F(HUGE_VAL, x);
  V steep = b.FGt(ay, ax);
  V large = b.Select(steep, ay, ax), small = b.Select(steep, ax, ay);
  V flat = b.FEq(small, zero), both = b.FEq(small, infinity), far = b.FEq(large, infinity);
  V scale = b.Select(b.FGt(large, b.F(0x1p1000, x)), b.F(0x1p-100, x),
                     b.Select(b.FLt(large, b.F(0x1p-900, x)), b.F(0x1p100, x), one));
  large = b.Select(b.Or(flat, far), one, b.FMul(large, scale));
  small = b.Select(both, one, b.Select(far, zero, b.FMul(small, scale)));
  V diagonal = b.FGt(small, b.FMul(large, b.F(0x1.a827999fcef32p-2, x)));
  V numerator = b.Select(diagonal, b.FSub(small, large), small);
  V denominator = b.Select(diagonal, b.FAdd(small, large), large);
  V lost = b.Select(diagonal, b.FSub(small, b.FSub(denominator, large)), zero);
  V difference_lost = b.Select(diagonal, b.FSub(small, b.FAdd(numerator, large)), zero);

  V reciprocal = b.FDiv(one, denominator);
  V t = b.FMul(numerator, reciprocal);
  V minus_t = b.FNeg(t);
  V rest = b.FAdd(b.Fma(minus_t, denominator, numerator), b.Fma(minus_t, lost, difference_lost));
  V t_lost = b.FMul(rest, reciprocal);

  V z = b.FMul(t, t);
  V p = b.Polynomial(z, {-0.3333333333333333, 0.19999999999999815, -0.14285714285662438, 0.11111111105391769,
                         -0.09090908764481294, 0.0769229667272373, -0.06666429917949812, 0.05878983633819344,
                         -0.052308353685400856, 0.045532439666145896, -0.03461097230728901, 0.016328478116974826});
  V low = b.Fma(b.FMul(t, z), p, b.Fma(b.FNeg(z), t_lost, t_lost));

  V left = b.SLt(b.AsInt(x), b.Zero(b.AsInt(x)));
  V k = b.Select(diagonal, one, b.Select(steep, b.F(2, x), zero));
  k = b.Select(left, b.FSub(b.F(4, x), k), k);
  V turned = b.ir().CreateXor(steep, left);
  t = b.Select(turned, b.FNeg(t), t);
  low = b.Select(turned, b.FNeg(low), low);
  V base = b.FMul(k, b.F(kPi1 / 2, x));
  V base_low = b.Fma(k, b.F(kPi2 / 2, x), b.Fma(k, b.F(kPi1 / 2, x), b.FNeg(base)));
  V sum = b.FAdd(base, t);
  V angle = b.FAdd(sum, b.FAdd(b.FAdd(b.FSub(base, sum), t), b.FAdd(base_low, low)));
  angle = b.Select(b.FEq(k, zero), b.FAdd(t, low), angle);
  angle = b.CopySign(angle, y);
  return b.Select(b.ir().CreateFCmpUNO(x, y), b.FAdd(x, y), angle);
}

V Atan2OfFloat(VectorBuilder& b, V y, V x) {
  b.Match(y, x);
  return b.ToF32(AngleOf(b, b.ToF64(y), b.ToF64(x)));
}

}  // namespace strop::math
