// lgamma, digamma, zeta, polygamma.
//
// Gamma by Lanczos' approximation with g = 7 and nine terms, for x >= 1/2; below that by reflection:
//   log Gamma(z + 1) = log sqrt(2 pi) + (z + 1/2) log t - t + log A(z),  t = z + g + 1/2,  A(z) = c0 + sum c_i / (z +
//   i)
// zeta by Euler-Maclaurin summation, nine terms and twelve corrections.
#include <cmath>
#include <limits>
#include <numbers>

#include "strop/import/chlo.h"

namespace strop {
namespace {

constexpr double kLanczosG = 7;
constexpr double kLanczosBase = 0.99999999999980993227684700473478;
constexpr double kLanczos[] = {676.520368121885098567009190444019, -1259.13921672240287047156078755283,
                               771.3234287776530788486528258894,   -176.61502916214059906584551354,
                               12.507343278686904814458936853,     -0.13857109526572011689554707,
                               9.984369578019570859563e-6,         1.50563273514931155834e-7};

// (2j)! / B_2j
constexpr double kZeta[] = {12.0,
                            -720.0,
                            30240.0,
                            -1209600.0,
                            47900160.0,
                            -1.8924375803183791606e9,
                            7.47242496e10,
                            -2.950130727918164224e12,
                            1.1646782814350067249e14,
                            -4.5979787224074726105e15,
                            1.8152105401943546773e17,
                            -7.1661652561756670113e18};

// log t = log(g + 1/2) + log1p(z / (g + 1/2)) keeps the digits of a small z.
Instruction* LogT(Chlo& c, Instruction* z) {
  return c.Add(c.Num(std::log(kLanczosG + 0.5)), c.Log1p(c.Div(z, c.Num(kLanczosG + 0.5))));
}

}  // namespace

Instruction* Chlo::Lgamma(Instruction* x) {
  Instruction* reflect = Lt(x, Num(0.5));
  Instruction* z = If(reflect, Neg(x), Sub(x, Num(1)));
  Instruction* sum = Num(kLanczosBase);
  for (size_t i = 0; i < std::size(kLanczos); ++i)
    sum = Add(sum, Div(Num(kLanczos[i]), Add(z, Num(static_cast<double>(i + 1)))));
  Instruction* t = Add(Num(kLanczosG + 0.5), z);
  Instruction* log_t = LogT(*this, z);
  // (z + 1/2 - t / log t) log t instead of (z + 1/2) log t - t, whose parts overflow sooner
  Instruction* log_y =
      Add(Add(Mul(Sub(Add(z, Num(0.5)), Div(t, log_t)), log_t), Num(0.5 * std::log(2 * std::numbers::pi))), Log(sum));
  // log Gamma(x) = log pi - log |sin(pi x)| - log Gamma(1 - x); sin of the distance to the nearest integer is exact
  // near poles
  Instruction* ax = Abs(x);
  Instruction* fraction = Sub(ax, Floor(ax));
  Instruction* reduced = If(Lt(Num(0.5), fraction), Sub(Num(1), fraction), fraction);
  Instruction* log_sine = Log(Unary(Op::Sin, Mul(Num(std::numbers::pi), reduced)));
  Instruction* reflected =
      If(Unary(Op::IsFinite, log_sine), Sub(Sub(Num(std::log(std::numbers::pi)), log_sine), log_y), Neg(log_sine));
  Instruction* infinity = Num(std::numeric_limits<double>::infinity());
  return If(Eq(ax, infinity), infinity, If(reflect, reflected, log_y));
}

Instruction* Chlo::Digamma(Instruction* x) {
  Instruction* reflect = Lt(x, Num(0.5));
  Instruction* z = If(reflect, Neg(x), Sub(x, Num(1)));
  Instruction* numerator = Num(0);
  Instruction* denominator = Num(kLanczosBase);
  for (size_t i = 0; i < std::size(kLanczos); ++i) {
    Instruction* d = Add(z, Num(static_cast<double>(i + 1)));
    numerator = Sub(numerator, Div(Num(kLanczos[i]), Mul(d, d)));
    denominator = Add(denominator, Div(Num(kLanczos[i]), d));
  }
  Instruction* t = Add(Num(kLanczosG + 0.5), z);
  Instruction* y = Sub(Add(LogT(*this, z), Div(numerator, denominator)), Div(Num(kLanczosG), t));
  // digamma(x) = digamma(1 - x) - pi cot(pi x), the angle reduced to [-pi/2, pi/2]
  Instruction* reduced = Mul(Num(std::numbers::pi), Add(x, Abs(Floor(Add(x, Num(0.5))))));
  Instruction* cotangent = Div(Unary(Op::Cos, reduced), Unary(Op::Sin, reduced));
  Instruction* reflected = Sub(y, Mul(Num(std::numbers::pi), cotangent));
  Instruction* pole = And(Le(x, Num(0)), Eq(x, Floor(x)));
  return If(pole, Num(std::numeric_limits<double>::quiet_NaN()), If(reflect, reflected, y));
}

Instruction* Chlo::Zeta(Instruction* x, Instruction* q) {
  Instruction* minus_x = Neg(x);
  Instruction* sum = Pow(q, minus_x);
  Instruction* a = q;
  for (int i = 0; i < 9; ++i) {
    a = Add(a, Num(1));
    sum = Add(sum, Pow(a, minus_x));
  }
  // The last term counts half; the integral and the corrections stand for the rest.
  Instruction* last = Pow(a, minus_x);
  sum = Add(sum, Div(Mul(last, a), Sub(x, Num(1))));
  sum = Sub(sum, Mul(Num(0.5), last));
  // x (x+1) ... (x+2j-2) a^(-x-2j+1) / ((2j)! / B_2j)
  Instruction* factor = Div(Mul(last, x), a);
  Instruction* correction = Div(factor, Num(kZeta[0]));
  for (int j = 1; j < 12; ++j) {
    Instruction* rising = Mul(Add(x, Num(2 * j - 1)), Add(x, Num(2 * j)));
    factor = Div(Mul(factor, rising), Mul(a, a));
    correction = Add(correction, Div(factor, Num(kZeta[j])));
  }
  Instruction* value = Add(sum, correction);
  // Where the first term is all that can be seen, the corrections may be inf - inf.
  value = If(Ne(Unary(Op::IsFinite, value), Unary(Op::IsFinite, Pow(q, minus_x))), sum, value);
  Instruction* infinity = Num(std::numeric_limits<double>::infinity());
  Instruction* nan = Num(std::numeric_limits<double>::quiet_NaN());
  Instruction* not_positive = Le(q, Num(0));
  Instruction* q_integer = Eq(q, Floor(q));
  Instruction* x_integer = Eq(x, Floor(x));
  value = If(And(not_positive, q_integer), infinity, If(And(not_positive, Not(x_integer)), nan, value));
  value = If(Eq(x, Num(1)), infinity, value);
  return If(Lt(x, Num(1)), nan, value);
}

Status ConvertChloLgamma(OpImport& op) {
  Chlo c(op);
  return c.Return(c.Lgamma(c.x()));
}

Status ConvertChloDigamma(OpImport& op) {
  Chlo c(op);
  return c.Return(c.Digamma(c.x()));
}

Status ConvertChloZeta(OpImport& op) {
  Chlo c(op);
  return c.Return(c.Zeta(c.x(), c.y()));
}

// (-1)^(n+1) n! zeta(n + 1, x); the digamma function for n = 0
Status ConvertChloPolygamma(OpImport& op) {
  Chlo c(op);
  Instruction *n = c.x(), *x = c.y();
  Instruction* half = c.Mul(n, c.Num(0.5));
  Instruction* odd = c.Sub(n, c.Mul(c.Num(2), c.Floor(half)));
  Instruction* sign = c.Sub(c.Mul(c.Num(2), odd), c.Num(1));
  Instruction* next = c.Add(n, c.Num(1));
  Instruction* value = c.Mul(c.Mul(sign, c.Exp(c.Lgamma(next))), c.Zeta(next, x));
  value = c.If(c.Eq(n, c.Num(0)), c.Digamma(x), value);
  Instruction* bad = c.Or(c.Lt(n, c.Num(0)), c.Ne(n, c.Floor(n)));
  return c.Return(c.If(bad, c.Num(std::numeric_limits<double>::quiet_NaN()), value));
}

}  // namespace strop
