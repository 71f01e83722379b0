// Powers, roots and erf of floats, in double.
#include <cmath>

#include "strop/codegen/math/math.h"

namespace strop::math {

// |x|^y = e^(y log |x|), then C's rules for negative bases, zeros, ones and infinities.
V PowOfFloat(VectorBuilder& b, V x, V y) {
  b.Match(x, y);
  V base = b.ToF64(x), exponent = b.ToF64(y);
  V a = b.FAbs(base), one = b.F(1, a), zero = b.Zero(a);
  V unit = b.FEq(a, one);  // log 1 * inf would be NaN
  V value = b.Select(unit, one, Exp(b, b.FMul(exponent, Log(b, a))));
  V whole = b.FEq(b.Floor(exponent), exponent);
  V half = b.FMul(exponent, b.F(0.5, a));
  V odd = b.And(whole, b.ir().CreateFCmpUNE(b.Floor(half), half));
  V negative = b.SLt(b.AsInt(base), b.Zero(b.AsInt(base)));
  value = b.Select(b.And(negative, odd), b.FNeg(value), value);
  V finite_negative = b.And(b.FLt(base, zero), b.FGt(base, b.F(-HUGE_VAL, a)));
  value = b.Select(b.And(finite_negative, b.Not(whole)), b.F(NAN, a), value);
  value = b.Select(b.ir().CreateFCmpUNO(base, exponent), b.F(NAN, a), value);
  value = b.Select(b.Or(b.FEq(base, one), b.FEq(exponent, zero)), one, value);
  return b.ToF32(value);
}

V CbrtOfFloat(VectorBuilder& b, V x) {
  V wide = b.ToF64(x);
  V root = Exp(b, b.FMul(Log(b, b.FAbs(wide)), b.F(1.0 / 3.0, wide)));
  return b.ToF32(b.CopySign(root, wide));
}

// x p(x^2) up to 1; 1 - e^(-x^2) p(1 / (1 + x/2)) beyond, which is 1 from 4.2 on.
V ErfOfFloat(VectorBuilder& b, V x) {
  V wide = b.ToF64(x), a = b.FAbs(wide), one = b.F(1, wide);
  V square = b.FMul(a, a);
  V inner = b.FMul(a, b.Polynomial(square, {1.1283791670487335, -0.3761263832534117, 0.11283779952859764,
                                            -0.026865263475230727, 0.005220514223395853, -0.0008475938684943075,
                                            0.000112029642721982, -9.476852760272144e-06}));
  V t = b.FDiv(one, b.Fma(a, b.F(0.5, a), one));
  V p = b.Polynomial(
      t, {-0.00041002285642853504, 0.28874835080071787, 0.2346697874341399, 0.4405029626987401, -0.31703145152371304,
          0.8758729608482714, -0.7556832253313166, 0.2664139082149613, -0.03306649566228472});
  V outer = b.FSub(one, b.FMul(Exp(b, b.FNeg(square)), p));
  outer = b.Select(b.FGt(a, b.F(4.2, a)), one, outer);
  V value = b.Select(b.FGt(a, one), outer, inner);
  return b.ToF32(b.CopySign(b.Select(b.IsNan(wide), wide, value), wide));
}

}  // namespace strop::math
