// What rules ask of instructions. Constants as they see them: a scalar constant, or a broadcast of one. (Larger
// constants of equal elements become broadcasts by a rule of their own.)
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>

#include "strop/ir/module.h"

namespace strop::simplify {

inline ElementType Type(const Instruction* i) { return i->shape().type(); }

inline bool Contains(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// The scalar that every element of `i` equals, or null.
inline const Literal* Splat(const Instruction* i) {
  while (i->op() == Op::Broadcast || i->op() == Op::Reshape) i = i->operand(0);
  return i->IsConstant() && i->shape().IsScalar() ? &i->literal() : nullptr;
}

// The scalar whose copies an array is, or null.
inline Instruction* SpreadScalar(Instruction* i) {
  while (!i->shape().IsScalar() && (i->op() == Op::Broadcast || i->op() == Op::Reshape)) i = i->operand(0);
  return i->shape().IsScalar() ? i : nullptr;
}

// The same value, bit for bit: one instruction, or equal constants.
inline bool SameScalar(const Instruction* x, const Instruction* y) {
  if (x == y) return true;
  if (!x->IsConstant() || !y->IsConstant() || x->shape().type() != y->shape().type()) return false;
  const auto a = x->literal().bytes(), c = y->literal().bytes();
  return std::equal(a.begin(), a.end(), c.begin(), c.end());
}

// Equal to `value` as a number (0 is -0 as well); complex numbers have no imaginary part.
inline bool IsSplatOf(const Instruction* i, double value) {
  const Literal* s = Splat(i);
  return s && s->GetDouble(0) == value && (!IsComplex(s->type()) || s->GetImag(0) == 0);
}

inline bool IsNegativeZero(const Instruction* i) {
  const Literal* s = Splat(i);
  return s && IsFloat(s->type()) && s->GetDouble(0) == 0 && std::signbit(s->GetDouble(0));
}
inline bool IsPositiveZero(const Instruction* i) {
  const Literal* s = Splat(i);
  return s && IsFloat(s->type()) && s->GetDouble(0) == 0 && !std::signbit(s->GetDouble(0));
}

// Every bit set: -1, the largest unsigned number, true.
inline bool IsAllOnes(const Instruction* i) {
  const Literal* s = Splat(i);
  if (!s) return false;
  if (IsPred(s->type())) return s->GetInt(0) != 0;
  if (!IsInteger(s->type())) return false;
  const uint64_t mask = Bits(s->type()) == 64 ? ~uint64_t{0} : (uint64_t{1} << Bits(s->type())) - 1;
  return (static_cast<uint64_t>(s->GetInt(0)) & mask) == mask;
}

inline bool IsZeroInteger(const Instruction* i) {
  const Literal* s = Splat(i);
  return s && (IsInteger(s->type()) || IsPred(s->type())) && s->GetInt(0) == 0;
}

// k if every element is 2^k, k >= 0, of an integer type; otherwise -1.
inline int PowerOfTwo(const Instruction* i) {
  const Literal* s = Splat(i);
  if (!s || !IsInteger(s->type())) return -1;
  const uint64_t v = static_cast<uint64_t>(s->GetInt(0));
  if (v == 0 || (v & (v - 1)) != 0 || (IsSigned(s->type()) && s->GetInt(0) < 0)) return -1;
  return std::countr_zero(v);
}

}  // namespace strop::simplify
