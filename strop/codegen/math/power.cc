// Powers of floats, in double; erf.
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

// 1 / sqrt x; of doubles with a step of Newton's, y + y (1 - x y^2) / 2, that takes back the first rounding.
V Rsqrt(VectorBuilder& b, V x) {
  V y = b.FDiv(b.F(1, x), b.Sqrt(x));
  if (!IsDouble(x)) return y;
  V product = b.FMul(x, y);
  V lost = b.Fma(x, y, b.FNeg(product));
  V rest = b.Fma(b.FNeg(lost), y, b.Fma(b.FNeg(product), y, b.F(1, x)));
  V better = b.Fma(b.FMul(y, b.F(0.5, x)), rest, y);
  return b.Select(b.And(b.FGt(x, b.Zero(x)), b.FLt(x, b.F(HUGE_VAL, x))), better, y);
}

// x + x p(x^2) near zero; 1 - 2^p(|x|) beyond, to where it rounds to 1. NaN takes the first way.
V Erf(VectorBuilder& b, V x) {
  const bool wide = IsDouble(x);
  V a = b.FAbs(x), z = b.FMul(a, a);
  const double end = wide ? 5.93 : 4;
  V near = wide ? b.Polynomial(z, {0.1283791670955126, -0.3761263890318375, 0.11283791670954885, -0.026866170645077864,
                                   0.0052239776248283335, -0.0008548326981420758, 0.00012055331132807185,
                                   -1.4925595769145757e-05, 1.64610084365668e-06, -1.6350395854324983e-07,
                                   1.4660326646023797e-08, -1.1374949067447646e-09, 5.960676073335479e-11})
                : b.Polynomial(z, {0.12837916612625122, -0.37612634897232056, 0.11283694207668304, -0.02685927040874958,
                                   0.005200634244829416, -0.0008137436816468835, 8.345223614014685e-05});
  near = b.Fma(near, a, a);
  V limited = b.Select(b.FGt(a, b.F(end, a)), b.F(end, a), a);
  V log = wide ? b.Polynomial(
                     b.FSub(limited, b.F(1, a)),
                     {-2.6684166967815997,    -3.807225345853579,      -1.2163466576879851,    -0.059959990001235274,
                      0.014475749753314025,   -0.0028535083555722963,  0.0003423779469706081,  3.792326016743048e-05,
                      -3.9197764959011e-05,   1.3871689595102526e-05,  -2.965725889789964e-06, 1.871027300646091e-07,
                      1.6270280390966688e-07, -9.115096491532763e-08,  2.9751389505544267e-08, -7.176946622800187e-09,
                      1.3454294262537026e-09, -1.9712378753820202e-10, 2.2228702429439605e-11, -1.865587657250498e-12,
                      1.0976536695861539e-13, -4.038473995966808e-15,  6.988050708744027e-17})
               : b.Polynomial(limited, {-0.00015768605226185173, -1.6277556419372559, -0.9169590473175049,
                                        -0.1530900001525879, 0.03449328988790512, -0.00545310927554965,
                                        0.0005289730615913868, -2.3411272195517085e-05});
  V far = b.FSub(b.F(1, a), PowerOfTwoOfNormal(b, log, 1));
  return b.CopySign(b.Select(b.FGe(a, b.F(wide ? 1 : 0.93, a)), far, near), x);
}

}  // namespace strop::math
