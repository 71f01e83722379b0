// What rules ask of instructions. Constants as they see them: a scalar constant, or a broadcast of one. (Larger
// constants of equal elements become broadcasts by a rule of their own.)
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>

#include "strop/ir/builder.h"

namespace strop::simplify {

inline ElementType Type(const Instruction* i) { return i->shape().type(); }

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

inline bool SameSplat(const Instruction* x, const Instruction* y) {
  const Literal *a = Splat(x), *b = Splat(y);
  return a && b && a->type() == b->type() && std::ranges::equal(a->bytes(), b->bytes());
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

// ---- what several roots ask ----

inline bool IsInt(const Instruction* i) { return IsInteger(Type(i)); }

inline bool IsIntOrFloat(const Instruction* i) { return IsInt(i) || IsFloat(Type(i)); }

// Is -x a number of the type? Not of f8e8m0fnu, where it is NaN.
inline bool HasNegatives(const Instruction* i) { return !IsFloat(Type(i)) || FormatOf(Type(i)).has_sign; }

inline bool NegatesExactly(const Instruction* i) { return IsIntOrFloat(i) && HasNegatives(i); }

inline Instruction* Like(Builder& b, const Instruction* i, double value) {
  return b.Splat(Type(i), value, i->shape().dims());
}

// Is it what a loop carries, perhaps updated or with something added up in it?
inline bool IsCarried(const Instruction* i) {
  while (i->op() == Op::DynamicUpdateSlice || (i->op() == Op::Scatter && i->operand_count() == 3)) i = i->operand(0);
  return i->op() == Op::GetTupleElement && i->operand(0)->IsParameter();
}

// The operand beside one that fits, or null.
template <class Predicate>
Instruction* Other(Instruction* i, Predicate fits) {
  if (fits(i->operand(1))) return i->operand(0);
  return fits(i->operand(0)) ? i->operand(1) : nullptr;
}

// The constant that `i` is a splat of, negated; integers wrap.
inline Instruction* NegatedConstant(Builder& b, const Instruction* i) {
  const Literal& c = *Splat(i);
  Instruction* minus = b.Constant(
      IsInteger(c.type()) ? Literal::ScalarOfInt(c.type(), static_cast<int64_t>(-static_cast<uint64_t>(c.GetInt(0))))
                          : Literal::ScalarOf(c.type(), -c.GetDouble(0)));
  return i->shape().IsScalar() ? minus : b.Broadcast(minus, i->shape().dims(), {});
}

inline Instruction* SameType(Instruction* i, Builder&) {
  return Type(i->operand(0)) == Type(i) ? i->operand(0) : nullptr;
}

// Start index `d` if it is constant, put where the slice fits; -1 if unknown. An index of no consequence is 0.
inline int64_t ConstantStart(const Instruction* i, int64_t first, int64_t d, int64_t size, int64_t slice) {
  if (size == slice) return 0;
  if (i->operand_count() - first == 1 && i->operand(first)->shape().rank() == 1) return -1;
  const Literal* index = Splat(i->operand(first + d));
  if (!index) return -1;
  const int64_t value = index->GetInt(0);
  const bool huge = index->type() == ElementType::U64 && value < 0;
  return huge ? size - slice : std::clamp<int64_t>(value, 0, size - slice);
}

// Start indices from operand `first` on: one scalar a dimension, not one list of all
inline bool HasScalarStarts(const Instruction* i, int64_t first) {
  return i->shape().rank() > 0 && i->operand_count() - first == i->shape().rank() &&
         i->operand(first)->shape().IsScalar();
}

inline bool SameStarts(const Instruction* x, int64_t first_x, const Instruction* y, int64_t first_y) {
  if (x->operand_count() - first_x != y->operand_count() - first_y) return false;
  for (int64_t k = 0; k < x->operand_count() - first_x; ++k)
    if (x->operand(first_x + k) != y->operand(first_y + k)) return false;
  return true;
}

inline Instruction* Bool(Builder& b, const Instruction* like, bool value) {
  return b.Splat(ElementType::Pred, value, like->shape().dims());
}

inline bool IsEquality(CompareDirection d) { return d == CompareDirection::Eq || d == CompareDirection::Ne; }

}  // namespace strop::simplify
