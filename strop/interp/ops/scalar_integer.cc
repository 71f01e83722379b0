// Integers and predicates. Arithmetic wraps at the width of the element type (Normalize does the wrapping), so
// everything is computed on 64 bits, unsigned where signed overflow would be undefined. What HLO says about the
// corners:
//   x / 0 is all ones (-1, or the unsigned maximum); x % 0 is x; MIN / -1 is MIN; MIN % -1 is 0
//   a shift by the width or more gives 0, or the sign for the arithmetic shift; a negative shift amount counts as too
//   large x ** negative is 0 unless |x| is 1
#include <bit>

#include "strop/interp/scalar.h"

namespace strop::interp {

namespace {

using I = const ScalarInfo&;

uint64_t Low(uint64_t v, int bits) { return bits == 64 ? v : v & ((uint64_t{1} << bits) - 1); }

// ---- both signs
Cell Add(Cell a, Cell b, Cell, I) { return Cell::Uint(a.u + b.u); }
Cell Subtract(Cell a, Cell b, Cell, I) { return Cell::Uint(a.u - b.u); }
Cell Multiply(Cell a, Cell b, Cell, I) { return Cell::Uint(a.u * b.u); }
Cell Negate(Cell a, Cell, Cell, I) { return Cell::Uint(-a.u); }
Cell And(Cell a, Cell b, Cell, I) { return Cell::Uint(a.u & b.u); }
Cell Or(Cell a, Cell b, Cell, I) { return Cell::Uint(a.u | b.u); }
Cell Xor(Cell a, Cell b, Cell, I) { return Cell::Uint(a.u ^ b.u); }
Cell Not(Cell a, Cell, Cell, I) { return Cell::Uint(~a.u); }
Cell Clz(Cell a, Cell, Cell, I info) { return Cell::Int(std::countl_zero(Low(a.u, info.bits)) - (64 - info.bits)); }
Cell PopulationCount(Cell a, Cell, Cell, I info) { return Cell::Int(std::popcount(Low(a.u, info.bits))); }
Cell Self(Cell a, Cell, Cell, I) { return a; }

// The shift amount is read as unsigned at the operand's width, so that a negative one is too large.
Cell ShiftLeft(Cell a, Cell b, Cell, I info) {
  uint64_t n = Low(b.u, info.bits);
  return Cell::Uint(n >= static_cast<uint64_t>(info.bits) ? 0 : a.u << n);
}
Cell ShiftRightLogical(Cell a, Cell b, Cell, I info) {
  uint64_t n = Low(b.u, info.bits);
  return Cell::Uint(n >= static_cast<uint64_t>(info.bits) ? 0 : Low(a.u, info.bits) >> n);
}
Cell ShiftRightArithmetic(Cell a, Cell b, Cell, I info) {
  uint64_t n = Low(b.u, info.bits);
  int64_t v =
      static_cast<int64_t>(a.u << (64 - info.bits)) >> (64 - info.bits);  // an unsigned type shifts its top bit in too
  if (n >= static_cast<uint64_t>(info.bits)) return Cell::Int(v < 0 ? -1 : 0);
  return Cell::Int(v >> n);
}

uint64_t PowerBySquaring(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent; exponent >>= 1, base *= base)
    if (exponent & 1) result *= base;
  return result;
}

// ---- signed
Cell AbsInt(Cell a, Cell, Cell, I) { return Cell::Uint(a.i < 0 ? -a.u : a.u); }
Cell SignInt(Cell a, Cell, Cell, I) { return Cell::Int((a.i > 0) - (a.i < 0)); }
Cell DivideInt(Cell a, Cell b, Cell, I) {
  if (b.i == 0) return Cell::Int(-1);
  if (b.i == -1) return Cell::Uint(-a.u);
  return Cell::Int(a.i / b.i);
}
Cell RemainderInt(Cell a, Cell b, Cell, I) {
  if (b.i == 0) return a;
  if (b.i == -1) return Cell::Int(0);
  return Cell::Int(a.i % b.i);
}
Cell MaximumInt(Cell a, Cell b, Cell, I) { return a.i < b.i ? b : a; }
Cell MinimumInt(Cell a, Cell b, Cell, I) { return b.i < a.i ? b : a; }
Cell ClampInt(Cell low, Cell x, Cell high, I) {
  int64_t v = x.i < low.i ? low.i : x.i;
  return Cell::Int(v > high.i ? high.i : v);
}
Cell MulhiInt(Cell a, Cell b, Cell, I info) {
  __extension__ using Wide = __int128;
  return Cell::Int(static_cast<int64_t>((Wide{a.i} * Wide{b.i}) >> info.bits));
}
Cell PowerInt(Cell a, Cell b, Cell, I) {
  if (b.i >= 0) return Cell::Uint(PowerBySquaring(a.u, b.u));
  if (a.i == 1) return Cell::Int(1);
  if (a.i == -1) return Cell::Int(b.i & 1 ? -1 : 1);
  return Cell::Int(0);
}

// ---- unsigned
Cell SignUint(Cell a, Cell, Cell, I) { return Cell::Uint(a.u != 0); }
Cell DivideUint(Cell a, Cell b, Cell, I) { return Cell::Uint(b.u == 0 ? ~uint64_t{0} : a.u / b.u); }
Cell RemainderUint(Cell a, Cell b, Cell, I) { return Cell::Uint(b.u == 0 ? a.u : a.u % b.u); }
Cell MaximumUint(Cell a, Cell b, Cell, I) { return a.u < b.u ? b : a; }
Cell MinimumUint(Cell a, Cell b, Cell, I) { return b.u < a.u ? b : a; }
Cell ClampUint(Cell low, Cell x, Cell high, I) {
  uint64_t v = x.u < low.u ? low.u : x.u;
  return Cell::Uint(v > high.u ? high.u : v);
}
Cell MulhiUint(Cell a, Cell b, Cell, I info) {
  __extension__ using Wide = unsigned __int128;
  return Cell::Uint(static_cast<uint64_t>((Wide{a.u} * Wide{b.u}) >> info.bits));
}
Cell PowerUint(Cell a, Cell b, Cell, I) { return Cell::Uint(PowerBySquaring(a.u, b.u)); }

// ---- predicates
Cell NotBool(Cell a, Cell, Cell, I) { return Cell::Bool(!a.u); }
Cell AndNotBool(Cell a, Cell b, Cell, I) { return Cell::Bool(a.u && !b.u); }

// What does not depend on the sign.
ScalarFn CommonInteger(Op op) {
  switch (op) {
    case Op::Add: return Add;
    case Op::Subtract: return Subtract;
    case Op::Multiply: return Multiply;
    case Op::Negate: return Negate;
    case Op::And: return And;
    case Op::Or: return Or;
    case Op::Xor: return Xor;
    case Op::Not: return Not;
    case Op::Clz: return Clz;
    case Op::PopulationCount: return PopulationCount;
    case Op::ShiftLeft: return ShiftLeft;
    case Op::ShiftRightLogical: return ShiftRightLogical;
    case Op::ShiftRightArithmetic: return ShiftRightArithmetic;
    default: return nullptr;
  }
}

}  // namespace

ScalarFn IntFunction(Op op) {
  switch (op) {
    case Op::Abs: return AbsInt;
    case Op::Sign: return SignInt;
    case Op::Divide: return DivideInt;
    case Op::Remainder: return RemainderInt;
    case Op::Maximum: return MaximumInt;
    case Op::Minimum: return MinimumInt;
    case Op::Clamp: return ClampInt;
    case Op::Mulhi: return MulhiInt;
    case Op::Power: return PowerInt;
    default: return CommonInteger(op);
  }
}

ScalarFn UintFunction(Op op) {
  switch (op) {
    case Op::Abs: return Self;
    case Op::Sign: return SignUint;
    case Op::Divide: return DivideUint;
    case Op::Remainder: return RemainderUint;
    case Op::Maximum: return MaximumUint;
    case Op::Minimum: return MinimumUint;
    case Op::Clamp: return ClampUint;
    case Op::Mulhi: return MulhiUint;
    case Op::Power: return PowerUint;
    default: return CommonInteger(op);
  }
}

// Addition of predicates is "or" and multiplication "and", as StableHLO says.
ScalarFn BoolFunction(Op op) {
  switch (op) {
    case Op::Not: return NotBool;
    case Op::And:
    case Op::Multiply:
    case Op::Minimum: return And;
    case Op::Or:
    case Op::Add:
    case Op::Maximum: return Or;
    case Op::Xor: return Xor;
    case Op::Subtract: return Xor;
    case Op::Clamp: return ClampUint;
    case Op::Abs:
    case Op::Sign:
    case Op::PopulationCount: return Self;
    case Op::ShiftLeft:
    case Op::ShiftRightLogical:
    case Op::ShiftRightArithmetic: return AndNotBool;
    default: return nullptr;
  }
}

}  // namespace strop::interp
