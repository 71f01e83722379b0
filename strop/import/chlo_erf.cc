// erfc and erf_inv.
#include <limits>

#include "strop/import/chlo.h"

namespace strop {
namespace {

// Cephes ndtrf.c / ndtr.c: erfc(x) = exp(-x^2) R(x) for |x| > 1.
constexpr double kErfcP32[] = {2.326819970068386e-2,  -1.387039388740657e-1, 3.687424674597105e-1,
                               -5.824733027278666e-1, 6.210004621745983e-1,  -4.944515323274145e-1,
                               3.404879937665872e-1,  -2.741127028184656e-1, 5.638259427386472e-1};
constexpr double kErfcR32[] = {-1.047766399936249e+1, 1.297719955372516e+1,  -7.495518717768503e+0,
                               2.921019019210786e+0,  -1.015265279202700e+0, 4.218463358204948e-1,
                               -2.820767439740514e-1, 5.641895067754075e-1};
constexpr double kErfcP64[] = {2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
                               4.86371970985681366614e1,   1.96520832956077098242e2,  5.26445194995477358631e2,
                               9.34528527171957607540e2,   1.02755188689515710272e3,  5.57535335369399327526e2};
constexpr double kErfcQ64[] = {1.0,
                               1.32281951154744992508e1,
                               8.67072140885989742329e1,
                               3.54937778887819891062e2,
                               9.75708501743205489753e2,
                               1.82390916687909736289e3,
                               2.24633760818710981792e3,
                               1.65666309194161350182e3,
                               5.57535340817727675546e2};
constexpr double kErfcR64[] = {5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
                               6.16021097993053585195e0,  7.40974269950448939160e0, 2.97886665372100240670e0};
constexpr double kErfcS64[] = {1.0,
                               2.26052863220117276590e0,
                               9.39603524938001434673e0,
                               1.20489539808096656605e1,
                               1.70814450747565897222e1,
                               9.60896809063285878198e0,
                               3.36907645100081516050e0};

// Mike Giles, "Approximating the erfinv function": polynomials in w = -log(1 - x^2).
constexpr double kErfInvCentral32[] = {2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
                                       -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
constexpr double kErfInvTail32[] = {-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
                                    -0.0076224613,   0.00943887047,  1.00167406,    2.83297682};
constexpr double kErfInvCentral64[] = {
    -3.6444120640178196996e-21, -1.685059138182016589e-19,  1.2858480715256400167e-18,  1.115787767802518096e-17,
    -1.333171662854620906e-16,  2.0972767875968561637e-17,  6.6376381343583238325e-15,  -4.0545662729752068639e-14,
    -8.1519341976054721522e-14, 2.6335093153082322977e-12,  -1.2975133253453532498e-11, -5.4154120542946279317e-11,
    1.051212273321532285e-09,   -4.1126339803469836976e-09, -2.9070369957882005086e-08, 4.2347877827932403518e-07,
    -1.3654692000834678645e-06, -1.3882523362786468719e-05, 0.0001867342080340571352,   -0.00074070253416626697512,
    -0.0060336708714301490533,  0.24015818242558961693,     1.6536545626831027356};
constexpr double kErfInvMiddle64[] = {
    2.2137376921775787049e-09,  9.0756561938885390979e-08, -2.7517406297064545428e-07, 1.8239629214389227755e-08,
    1.5027403968909827627e-06,  -4.013867526981545969e-06, 2.9234449089955446044e-06,  1.2475304481671778723e-05,
    -4.7318229009055733981e-05, 6.8284851459573175448e-05, 2.4031110387097893999e-05,  -0.0003550375203628474796,
    0.00095328937973738049703,  -0.0016882755560235047313, 0.0024914420961078508066,   -0.0037512085075692412107,
    0.005370914553590063617,    1.0052589676941592334,     3.0838856104922207635};
constexpr double kErfInvTail64[] = {-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09,
                                    -3.7894654401267369937e-09, 7.6157012080783393804e-09,  -1.4960026627149240478e-08,
                                    2.9147953450901080826e-08,  -6.7711997758452339498e-08, 2.2900482228026654717e-07,
                                    -9.9298272942317002539e-07, 4.5260625972231537039e-06,  -1.9681778105531670567e-05,
                                    7.5995277030017761139e-05,  -0.00021503011930044477347, -0.00013871931833623122026,
                                    1.0103004648645343977,      4.8499064014085844221};

}  // namespace

Status ConvertChloErfc(OpImport& op) {
  Chlo c(op);
  Instruction* x = c.x();
  Instruction* ax = c.Abs(x);
  Instruction* near = c.Sub(c.Num(1), c.Unary(Op::Erf, x));
  Instruction* minus_square = c.Neg(c.Mul(x, x));
  Instruction* far;
  if (c.is_double()) {
    Instruction* middle = c.Div(c.Polynomial(ax, kErfcP64), c.Polynomial(ax, kErfcQ64));
    Instruction* tail = c.Div(c.Polynomial(ax, kErfcR64), c.Polynomial(ax, kErfcS64));
    far = c.Mul(c.Exp(minus_square), c.If(c.Lt(ax, c.Num(8)), middle, tail));
  } else {
    Instruction* q = c.Div(c.Num(1), ax);
    Instruction* y = c.Mul(q, q);
    Instruction* p = c.If(c.Lt(ax, c.Num(2)), c.Polynomial(y, kErfcP32), c.Polynomial(y, kErfcR32));
    far = c.Mul(c.Mul(c.Exp(minus_square), q), p);
  }
  // Where exp underflows the rational function may be infinite.
  double log_max = c.is_double() ? 7.09782712893383996843e2 : 88.72283905206835;
  far = c.If(c.Lt(minus_square, c.Num(-log_max)), c.Num(0), far);
  far = c.If(c.Lt(x, c.Num(0)), c.Sub(c.Num(2), far), far);
  return c.Return(c.If(c.Lt(c.Num(1), ax), far, near));
}

Status ConvertChloErfInv(OpImport& op) {
  Chlo c(op);
  Instruction* x = c.x();
  Instruction* w = c.Neg(c.Log1p(c.Neg(c.Mul(x, x))));
  Instruction* p;
  if (c.is_double()) {
    Instruction* root = c.Sqrt(w);
    Instruction* central = c.Polynomial(c.Sub(w, c.Num(3.125)), kErfInvCentral64);
    Instruction* middle = c.Polynomial(c.Sub(root, c.Num(3.25)), kErfInvMiddle64);
    Instruction* tail = c.Polynomial(c.Sub(root, c.Num(5)), kErfInvTail64);
    p = c.If(c.Lt(w, c.Num(6.25)), central, c.If(c.Lt(w, c.Num(16)), middle, tail));
  } else {
    Instruction* central = c.Polynomial(c.Sub(w, c.Num(2.5)), kErfInvCentral32);
    Instruction* tail = c.Polynomial(c.Sub(c.Sqrt(w), c.Num(3)), kErfInvTail32);
    p = c.If(c.Lt(w, c.Num(5)), central, tail);
  }
  Instruction* infinite = c.Mul(x, c.Num(std::numeric_limits<double>::infinity()));
  return c.Return(c.If(c.Eq(c.Abs(x), c.Num(1)), infinite, c.Mul(p, x)));
}

}  // namespace strop
