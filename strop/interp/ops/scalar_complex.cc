// Complex numbers, in long double: its 11 extra digits hide the rounding of the formulas from c128, and its exponent
// range keeps |z|^2 from overflowing. The elementary functions are the C library's (C99 Annex G at the special values);
// multiplication is the textbook one, without Annex G's repair of infinities, as XLA has it.
#include <cmath>
#include <limits>

#include "strop/interp/scalar.h"

namespace strop::interp {

namespace {

using I = const ScalarInfo&;
using Wide = std::complex<long double>;

Wide Load(Cell c) { return {c.re, c.im}; }
Cell Store(Wide z) { return Cell::Complex(static_cast<double>(z.real()), static_cast<double>(z.imag())); }

template <Wide (*F)(const Wide&)>
Cell Unary(Cell a, Cell, Cell, I) {
  return Store(F(Load(a)));
}
template <Wide (*F)(const Wide&, const Wide&)>
Cell Binary(Cell a, Cell b, Cell, I) {
  return Store(F(Load(a), Load(b)));
}

Wide Add(const Wide& a, const Wide& b) { return a + b; }
Wide Subtract(const Wide& a, const Wide& b) { return a - b; }
Wide Multiply(const Wide& a, const Wide& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
Wide Divide(const Wide& a, const Wide& b) { return a / b; }
Wide Negate(const Wide& a) { return -a; }
Wide Acos(const Wide& a) { return std::acos(a); }
Wide Acosh(const Wide& a) { return std::acosh(a); }
Wide Asin(const Wide& a) { return std::asin(a); }
Wide Asinh(const Wide& a) { return std::asinh(a); }
Wide Atan(const Wide& a) { return std::atan(a); }
Wide Atanh(const Wide& a) { return std::atanh(a); }
// C's Annex G has an infinite real part of unknown sign for infinities without an angle; XLA and JAX expect NaN.
bool HasNoAngle(long double size, long double angle) { return std::isinf(size) && !std::isfinite(angle); }
Wide NoNumber() {
  constexpr auto kNan = std::numeric_limits<long double>::quiet_NaN();
  return {kNan, kNan};
}
Wide Cos(const Wide& a) { return HasNoAngle(a.imag(), a.real()) ? NoNumber() : std::cos(a); }
Wide Cosh(const Wide& a) { return HasNoAngle(a.real(), a.imag()) ? NoNumber() : std::cosh(a); }
Wide Exp(const Wide& a) { return std::exp(a); }
Wide Log(const Wide& a) { return std::log(a); }
Wide Sin(const Wide& a) { return HasNoAngle(a.imag(), a.real()) ? NoNumber() : std::sin(a); }
Wide Sinh(const Wide& a) { return HasNoAngle(a.real(), a.imag()) ? NoNumber() : std::sinh(a); }
Wide Sqrt(const Wide& a) { return std::sqrt(a); }
Wide Tan(const Wide& a) { return std::tan(a); }
Wide Tanh(const Wide& a) { return std::tanh(a); }
Wide Rsqrt(const Wide& a) {
  if (a == Wide(0)) return {std::numeric_limits<long double>::infinity(), 0};
  if (std::isinf(a.real()) || std::isinf(a.imag())) return {0, 0};
  return Wide(1) / std::sqrt(a);
}
// e^(x+iy) - 1 = (expm1(x) cos y - 2 sin^2(y/2)) + i e^x sin y : no cancellation near zero.
Wide Expm1(const Wide& a) {
  const long double x = a.real(), y = a.imag();
  if (y == 0) return {std::expm1(x), y};
  if (!std::isfinite(x) || !std::isfinite(y)) return std::exp(a) - Wide(1);
  const long double half = std::sin(y / 2);
  return {std::expm1(x) * std::cos(y) - 2 * half * half, std::exp(x) * std::sin(y)};
}
// Re log(1+z) = log1p(2x + x^2 + y^2) / 2, which keeps small values; far from zero plain log is as good.
Wide Log1p(const Wide& a) {
  const long double x = a.real(), y = a.imag();
  const Wide shifted(1 + x, y);
  if (!(std::fabs(x) < 2 && std::fabs(y) < 2)) return std::log(shifted);
  // 2x + x^2 + y^2 cancels where |1+z| is close to 1; the two rounding errors are recovered with fma.
  const long double xx = x * (2 + x), yy = y * y;
  const long double xx_error = std::fma(x, 2 + x, -xx), yy_error = std::fma(y, y, -yy);
  const long double square_less_one = (xx + yy) + (xx_error + yy_error);
  if (square_less_one <= -0.5L) return {std::log(std::hypot(1 + x, y)), std::arg(shifted)};
  return {std::log1p(square_less_one) / 2, std::arg(shifted)};
}
Wide Logistic(const Wide& a) { return Wide(1) / (Wide(1) + std::exp(-a)); }
Wide Cbrt(const Wide& a) {  // the principal root
  if (a == Wide(0)) return a;
  return std::polar(std::cbrt(std::abs(a)), std::arg(a) / 3);
}
Wide Sign(const Wide& a) {
  if (std::isnan(a.real()) || std::isnan(a.imag())) {
    const long double nan = std::numeric_limits<long double>::quiet_NaN();
    return {nan, nan};
  }
  if (a == Wide(0)) return {0, 0};
  const long double size = std::abs(a);
  return {a.real() / size, a.imag() / size};
}
Wide Power(const Wide& a, const Wide& b) {
  if (b == Wide(0)) return {1, 0};
  if (a == Wide(0)) {
    if (b.real() > 0) return {0, 0};
    const long double nan = std::numeric_limits<long double>::quiet_NaN();
    return b.imag() == 0 ? Wide(std::numeric_limits<long double>::infinity(), 0) : Wide(nan, nan);
  }
  return std::pow(a, b);
}
// atan2(y, x) = -i log((x + iy) / sqrt(x^2 + y^2)), for complex x and y.
Wide Atan2(const Wide& y, const Wide& x) {
  const Wide iy(-y.imag(), y.real());
  const Wide w = std::log((x + iy) / std::sqrt(x * x + y * y));
  return {w.imag(), -w.real()};
}

Cell Abs(Cell a, Cell, Cell, I) { return Cell::Real(static_cast<double>(std::abs(Load(a)))); }
Cell Real(Cell a, Cell, Cell, I) { return Cell::Real(a.re); }
Cell Imag(Cell a, Cell, Cell, I) { return Cell::Real(a.im); }
Cell IsFinite(Cell a, Cell, Cell, I) { return Cell::Bool(std::isfinite(a.re) && std::isfinite(a.im)); }

// Ordered by real part, then imaginary part, as StableHLO has it. A NaN part wins.
bool Less(Cell a, Cell b) { return CompareCells(Domain::Complex, CompareDirection::Lt, CompareOrder::Default, a, b); }
bool HasNan(Cell a) { return std::isnan(a.re) || std::isnan(a.im); }
Cell Maximum(Cell a, Cell b, Cell, I) { return HasNan(a) ? a : HasNan(b) ? b : Less(a, b) ? b : a; }
Cell Minimum(Cell a, Cell b, Cell, I) { return HasNan(a) ? a : HasNan(b) ? b : Less(b, a) ? b : a; }
Cell Clamp(Cell low, Cell x, Cell high, I info) { return Minimum(Maximum(x, low, {}, info), high, {}, info); }

}  // namespace

ScalarFn ComplexFunction(Op op) {
  switch (op) {
    case Op::Abs: return Abs;
    case Op::Acos: return Unary<Acos>;
    case Op::Acosh: return Unary<Acosh>;
    case Op::Asin: return Unary<Asin>;
    case Op::Asinh: return Unary<Asinh>;
    case Op::Atan: return Unary<Atan>;
    case Op::Atanh: return Unary<Atanh>;
    case Op::Cbrt: return Unary<Cbrt>;
    case Op::Cos: return Unary<Cos>;
    case Op::Cosh: return Unary<Cosh>;
    case Op::Exp: return Unary<Exp>;
    case Op::Expm1: return Unary<Expm1>;
    case Op::Imag: return Imag;
    case Op::IsFinite: return IsFinite;
    case Op::Log: return Unary<Log>;
    case Op::Log1p: return Unary<Log1p>;
    case Op::Logistic: return Unary<Logistic>;
    case Op::Negate: return Unary<Negate>;
    case Op::Real: return Real;
    case Op::Rsqrt: return Unary<Rsqrt>;
    case Op::Sign: return Unary<Sign>;
    case Op::Sin: return Unary<Sin>;
    case Op::Sinh: return Unary<Sinh>;
    case Op::Sqrt: return Unary<Sqrt>;
    case Op::Tan: return Unary<Tan>;
    case Op::Tanh: return Unary<Tanh>;
    case Op::Add: return Binary<Add>;
    case Op::Atan2: return Binary<Atan2>;
    case Op::Divide: return Binary<Divide>;
    case Op::Maximum: return Maximum;
    case Op::Minimum: return Minimum;
    case Op::Multiply: return Binary<Multiply>;
    case Op::Power: return Binary<Power>;
    case Op::Subtract: return Binary<Subtract>;
    case Op::Clamp: return Clamp;
    default: return nullptr;
  }
}

}  // namespace strop::interp
