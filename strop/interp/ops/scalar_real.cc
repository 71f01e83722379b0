// Floating point, in double; Normalize rounds to narrower formats once. Elementary functions are the C library's in
// long double, rounded once, where that is the wider type.
#include <cmath>
#include <limits>

#include "strop/interp/scalar.h"

namespace strop::interp {

namespace {

using I = const ScalarInfo&;

template <double (*F)(double)>
Cell Unary(Cell a, Cell, Cell, I) {
  return Cell::Real(F(a.re));
}
template <long double (*F)(long double)>
Cell Long(Cell a, Cell, Cell, I) {
  return Cell::Real(static_cast<double>(F(a.re)));
}
template <double (*F)(double, double)>
Cell Binary(Cell a, Cell b, Cell, I) {
  return Cell::Real(F(a.re, b.re));
}

template <long double (*F)(long double, long double)>
Cell LongBinary(Cell a, Cell b, Cell, I) {
  return Cell::Real(static_cast<double>(F(a.re, b.re)));
}

double Add(double a, double b) { return a + b; }
double Subtract(double a, double b) { return a - b; }
double Multiply(double a, double b) { return a * b; }
double Divide(double a, double b) { return a / b; }
double Negate(double a) { return -a; }
long double Logistic(long double a) { return 1 / (1 + std::exp(-a)); }
long double Rsqrt(long double a) { return 1 / std::sqrt(a); }
double Sign(double a) { return std::isnan(a) || a == 0 ? a : std::copysign(1.0, a); }
// To nearest, ties to even, whatever the floating-point environment: exact for |a| < 2^52, identity beyond.
double RoundEven(double a) {
  double r = std::round(a);  // ties away from zero
  if (std::fabs(a - std::trunc(a)) == 0.5) r = 2 * std::round(a / 2);
  return std::copysign(r, a);
}
Cell IsFinite(Cell a, Cell, Cell, I) { return Cell::Bool(std::isfinite(a.re)); }
Cell Complex(Cell a, Cell b, Cell, I) { return Cell::Complex(a.re, b.re); }
Cell Real(Cell a, Cell, Cell, I) { return a; }
Cell Imag(Cell, Cell, Cell, I) { return Cell::Real(0); }
Cell Clamp(Cell low, Cell x, Cell high, I) {
  if (std::isnan(low.re)) return low;
  if (std::isnan(x.re)) return x;
  if (std::isnan(high.re)) return high;
  return Cell::Real(Minimum(Maximum(x.re, low.re), high.re));
}

// Keeps `exponent_bits` and `mantissa_bits` of the operand's code: rounds the mantissa to nearest even, sends exponents
// that are too large to infinity and those that are too small to zero (subnormals of the narrow format included).
Cell ReducePrecision(Cell a, Cell, Cell, I info) {
  if (std::isnan(a.re)) {
    if (info.mantissa_bits > 0) return a;
    return Cell::Real(std::numeric_limits<double>::infinity());
  }
  const FloatFormat& f = FormatOf(info.operand);
  const uint64_t sign = f.has_sign ? uint64_t{1} << (f.bits - 1) : 0;
  const uint64_t code = EncodeFloat(info.operand, a.re);
  uint64_t magnitude = code & ~sign;
  if (info.mantissa_bits < f.mantissa_bits) {
    const int drop = f.mantissa_bits - info.mantissa_bits;
    const uint64_t last_kept = (magnitude >> drop) & 1;
    magnitude += (uint64_t{1} << (drop - 1)) - 1 + last_kept;
    magnitude = magnitude >> drop << drop;
  }
  const auto overflow = [&] {  // to infinity, or to what the format has in its place
    return Cell::Real(DecodeFloat(info.operand, EncodeFloat(info.operand, std::copysign(INFINITY, a.re))));
  };
  if (magnitude >> (f.bits - f.has_sign)) return overflow();
  if (info.exponent_bits < f.exponent_bits) {
    const int64_t reach = (int64_t{1} << (info.exponent_bits - 1)) - 1;  // largest unbiased exponent
    const int64_t exponent = static_cast<int64_t>(magnitude >> f.mantissa_bits);
    if (exponent > f.bias + reach) return overflow();
    if (exponent <= f.bias - reach) return Cell::Real(f.has_negative_zero ? std::copysign(0.0, a.re) : 0.0);
  }
  if (magnitude == 0 && !f.has_negative_zero) return Cell::Real(0);
  return Cell::Real(DecodeFloat(info.operand, magnitude | (code & sign)));
}

// Rounds away from zero with a probability equal to the fraction: when the random number, read as a fraction of its
// range, is below it. Saturates; NaN gives 0.
Cell StochasticConvert(Cell a, Cell random, Cell, I info) {
  const int result_bits = Bits(info.result);
  const double limit = std::ldexp(1.0, result_bits - 1);  // one more than the largest integer
  const int64_t largest = static_cast<int64_t>((uint64_t{1} << (result_bits - 1)) - 1);
  if (std::isnan(a.re)) return Cell::Int(0);
  if (a.re >= limit || a.re >= static_cast<double>(largest)) return Cell::Int(largest);
  if (a.re <= -limit) return Cell::Int(-largest - 1);
  const double magnitude = std::fabs(a.re);
  const double whole = std::trunc(magnitude);
  int64_t value = static_cast<int64_t>(whole);
  const double threshold = std::ldexp(magnitude - whole, info.bits);  // fraction, in units of the random number
  if (random.u < static_cast<uint64_t>(threshold)) {
    if (value == largest) return Cell::Int(-largest - 1);  // only a negative operand comes here
    ++value;
  }
  return Cell::Int(a.re < 0 ? -value : value);
}

// (-inf)^(-2^63) is infinite in glibc's long double.
long double Power(long double x, long double y) {
  return std::isinf(x) ? std::pow(static_cast<double>(x), static_cast<double>(y)) : std::pow(x, y);
}

}  // namespace

ScalarFn ReducePrecisionFunction() { return ReducePrecision; }
ScalarFn StochasticConvertFunction() { return StochasticConvert; }

ScalarFn RealFunction(Op op) {
  switch (op) {
    case Op::Abs: return Unary<std::fabs>;
    case Op::Acos: return Long<std::acos>;
    case Op::Acosh: return Long<std::acosh>;
    case Op::Asin: return Long<std::asin>;
    case Op::Asinh: return Long<std::asinh>;
    case Op::Atan: return Long<std::atan>;
    case Op::Atanh: return Long<std::atanh>;
    case Op::Cbrt: return Long<std::cbrt>;
    case Op::Ceil: return Unary<std::ceil>;
    case Op::Cos: return Long<std::cos>;
    case Op::Cosh: return Long<std::cosh>;
    case Op::Erf: return Long<std::erf>;
    case Op::Exp: return Long<std::exp>;
    case Op::Expm1: return Long<std::expm1>;
    case Op::Floor: return Unary<std::floor>;
    case Op::Imag: return Imag;
    case Op::IsFinite: return IsFinite;
    case Op::Log: return Long<std::log>;
    case Op::Log1p: return Long<std::log1p>;
    case Op::Logistic: return Long<Logistic>;
    case Op::Negate: return Unary<Negate>;
    case Op::Real: return Real;
    case Op::RoundNearestAfz: return Unary<std::round>;
    case Op::RoundNearestEven: return Unary<RoundEven>;
    case Op::Rsqrt: return Long<Rsqrt>;
    case Op::Sign: return Unary<Sign>;
    case Op::Sin: return Long<std::sin>;
    case Op::Sinh: return Long<std::sinh>;
    case Op::Sqrt: return Unary<std::sqrt>;
    case Op::Tan: return Long<std::tan>;
    case Op::Tanh: return Long<std::tanh>;
    case Op::Add: return Binary<Add>;
    case Op::Atan2: return LongBinary<std::atan2>;
    case Op::Complex: return Complex;
    case Op::Divide: return Binary<Divide>;
    case Op::Maximum: return Binary<Maximum>;
    case Op::Minimum: return Binary<Minimum>;
    case Op::Multiply: return Binary<Multiply>;
    case Op::Power: return LongBinary<Power>;
    case Op::Remainder: return Binary<std::fmod>;
    case Op::Subtract: return Binary<Subtract>;
    case Op::Clamp: return Clamp;
    default: return nullptr;
  }
}

}  // namespace strop::interp
