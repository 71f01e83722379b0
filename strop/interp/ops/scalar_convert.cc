// Conversions between any two element types. To an integer: truncates toward zero and saturates, NaN gives 0 (from
// floats); wraps (from integers). To pred: is it different from zero. From complex: the real part.
#include <bit>
#include <cmath>
#include <limits>

#include "strop/interp/scalar.h"

namespace strop::interp {

namespace {

using I = const ScalarInfo&;

// The double next to v that keeps, in its last digit, whether something was cut off ("round to odd"): rounding it once
// more to a format with at least two digits fewer gives what rounding v directly would.
double OddDouble(uint64_t magnitude, bool negative) {
  const int width = 64 - std::countl_zero(magnitude);
  uint64_t kept = magnitude;
  if (width > 53) {
    const int drop = width - 53;
    kept = magnitude >> drop << drop;
    if (kept != magnitude) kept |= uint64_t{1} << drop;
  }
  const double d = static_cast<double>(kept);
  return negative ? -d : d;
}

double FromInt(int64_t v, ElementType to) {
  if (to == ElementType::F64 || to == ElementType::C128) return static_cast<double>(v);
  return OddDouble(v < 0 ? -static_cast<uint64_t>(v) : static_cast<uint64_t>(v), v < 0);
}
double FromUint(uint64_t v, ElementType to) {
  if (to == ElementType::F64 || to == ElementType::C128) return static_cast<double>(v);
  return OddDouble(v, false);
}

Cell RealToInt(Cell a, Cell, Cell, I info) {
  if (std::isnan(a.re)) return Cell::Int(0);
  const int bits = Bits(info.result);
  const double limit = std::ldexp(1.0, bits - 1);
  const int64_t largest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  if (a.re >= limit) return Cell::Int(largest);
  if (a.re < -limit) return Cell::Int(-largest - 1);
  return Cell::Int(static_cast<int64_t>(a.re));
}
Cell RealToUint(Cell a, Cell, Cell, I info) {
  if (!(a.re > 0)) return Cell::Uint(0);
  const int bits = Bits(info.result);
  if (a.re >= std::ldexp(1.0, bits)) return Cell::Uint(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1);
  return Cell::Uint(static_cast<uint64_t>(a.re));
}

Cell Same(Cell a, Cell, Cell, I) { return a; }
Cell IntegerToBool(Cell a, Cell, Cell, I) { return Cell::Bool(a.u != 0); }
Cell RealToBool(Cell a, Cell, Cell, I) { return Cell::Bool(a.re != 0); }
Cell IntToReal(Cell a, Cell, Cell, I info) { return Cell::Real(FromInt(a.i, info.result)); }
Cell UintToReal(Cell a, Cell, Cell, I info) { return Cell::Real(FromUint(a.u, info.result)); }
Cell ComplexToReal(Cell a, Cell, Cell, I) { return Cell::Real(a.re); }

// Of a complex number, the real part is converted, to bool as to other types.
ScalarFn ToBool(Domain from) { return from == Domain::Real || from == Domain::Complex ? RealToBool : IntegerToBool; }

}  // namespace

ScalarFn ConvertFunction(ElementType from_type, ElementType to_type) {
  const Domain from = DomainOf(from_type), to = DomainOf(to_type);
  switch (to) {
    case Domain::Bool: return ToBool(from);
    case Domain::Int:
      return from == Domain::Real || from == Domain::Complex ? RealToInt : Same;  // integers wrap in Normalize
    case Domain::Uint: return from == Domain::Real || from == Domain::Complex ? RealToUint : Same;
    case Domain::Real:
    case Domain::Complex:  // a real number becomes complex by its zero imaginary part, which every Cell has
      switch (from) {
        case Domain::Int: return IntToReal;
        case Domain::Bool:
        case Domain::Uint: return UintToReal;
        case Domain::Real: return Same;
        case Domain::Complex: return to == Domain::Real ? ComplexToReal : Same;
      }
  }
  return nullptr;
}

}  // namespace strop::interp
