// Scalars as the interpreter computes them. Every element type belongs to one of five domains, and a scalar op is a
// plain function on the domain's host type: bool, int64, uint64, double or complex<double>. The result is then brought
// to its element type once, by Normalize (wrap an integer, round a float). Because double has more than twice the
// digits of f32, f16, bf16 and the f8 forms, + - * / sqrt computed this way are correctly rounded for them.
//
//   STROP_ASSIGN(ScalarOp add, MakeScalarOp(Op::Add, f32, f32, attrs));
//   Cell sum = add(Cell::Real(1), Cell::Real(2), {});
#pragma once
#include <complex>
#include <cstdint>

#include "strop/ir/attrs.h"
#include "strop/ir/op.h"

namespace strop::interp {

enum class Domain : uint8_t { Bool, Int, Uint, Real, Complex };

constexpr Domain DomainOf(ElementType t) {
  switch (Kind(t)) {
    case ElementKind::Pred: return Domain::Bool;
    case ElementKind::Signed: return Domain::Int;
    case ElementKind::Unsigned: return Domain::Uint;
    case ElementKind::Complex: return Domain::Complex;
    default: return Domain::Real;
  }
}

// One scalar of any domain; which member counts follows from the element type that travels beside it.
struct Cell {
  union {
    int64_t i;   // Int
    uint64_t u;  // Uint; Bool as 0 or 1
    double re;   // Real, real part of Complex
  };
  double im = 0;

  Cell() : u(0) {}
  static Cell Bool(bool v) { return Uint(v); }
  static Cell Int(int64_t v) {
    Cell c;
    c.i = v;
    return c;
  }
  static Cell Uint(uint64_t v) {
    Cell c;
    c.u = v;
    return c;
  }
  static Cell Real(double v) {
    Cell c;
    c.re = v;
    return c;
  }
  static Cell Complex(double re, double im) {
    Cell c;
    c.re = re;
    c.im = im;
    return c;
  }
  static Cell Complex(std::complex<double> v) { return Complex(v.real(), v.imag()); }
  std::complex<double> complex() const { return {re, im}; }
};

// What a scalar function may need to know besides its operands.
struct ScalarInfo {
  ElementType operand = ElementType::Invalid;  // type of the first operand that is not a predicate selector
  ElementType result = ElementType::Invalid;
  int bits = 0;  // Bits(operand)
  CompareDirection direction = CompareDirection::Eq;
  CompareOrder order = CompareOrder::Default;
  int exponent_bits = 0, mantissa_bits = 0;  // reduce-precision
};

using ScalarFn = Cell (*)(Cell a, Cell b, Cell c, const ScalarInfo& info);

// The value of `c` (of t's domain) after it has been stored in an element of type t.
Cell Normalize(ElementType t, Cell c);

struct ScalarOp {
  ScalarFn fn = nullptr;
  ScalarInfo info;
  Cell operator()(Cell a, Cell b, Cell c) const { return Normalize(info.result, fn(a, b, c, info)); }
};

// `operand` is the type of the first operand (of the second for select). Unimplemented, naming op and type, where HLO
// gives the op no meaning for the type.
Result<ScalarOp> MakeScalarOp(Op op, ElementType operand, ElementType result, const Attrs& attrs);

// The functions of one domain, or null; each family is a file under ops/.
ScalarFn BoolFunction(Op op);
ScalarFn IntFunction(Op op);
ScalarFn UintFunction(Op op);
ScalarFn RealFunction(Op op);
ScalarFn ComplexFunction(Op op);
// Conversions between any two array types, reduce-precision and stochastic-convert.
ScalarFn ConvertFunction(ElementType from, ElementType to);
ScalarFn ReducePrecisionFunction();
ScalarFn StochasticConvertFunction();

// IEEE 754 total order of two doubles as integers: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN.
int64_t TotalOrderKey(double v);
bool CompareCells(Domain domain, CompareDirection direction, CompareOrder order, Cell a, Cell b);
// NaN if either is NaN; -0 is less than +0.
double Maximum(double a, double b);
double Minimum(double a, double b);

// Array bytes (row-major, as in Literal) to cells and back. Storing wraps or rounds.
void LoadCells(ElementType t, const uint8_t* bytes, int64_t begin, int64_t count, Cell* out);
void StoreCells(ElementType t, const Cell* cells, int64_t count, uint8_t* bytes, int64_t begin);
Cell LoadCell(const Literal& literal, int64_t linear);
std::vector<Cell> LoadAll(const Literal& literal);
// The whole array in the host type of its domain: for the ops that multiply and accumulate. Bool counts as Uint.
std::vector<double> LoadReals(const Literal& literal);
std::vector<int64_t> LoadInts(const Literal& literal);  // two's complement for unsigned
std::vector<std::complex<double>> LoadComplexes(const Literal& literal);

}  // namespace strop::interp
