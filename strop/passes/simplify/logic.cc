// Rules of logic and bits, comparisons and select. Comparisons of floats keep their meaning for NaN: x == x is not
// true.
#include <optional>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

Instruction* Bool(Builder& b, const Instruction* like, bool value) {
  return b.Splat(ElementType::Pred, value, like->shape().dims());
}

Instruction* OfItself(Instruction* i, Builder&) { return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr; }

// x & 0 = 0, x & ~0 = x, and the duals for or
Instruction* AndOrConstant(Instruction* i, Builder&) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *c = i->operand(k), *x = i->operand(1 - k);
    if (IsZeroInteger(c)) return i->op() == Op::And ? c : x;
    if (IsAllOnes(c)) return i->op() == Op::And ? x : c;
  }
  return nullptr;
}

Instruction* XorConstant(Instruction* i, Builder& b) {
  if (i->operand(0) == i->operand(1)) return b.Splat(Type(i), 0, i->shape().dims());
  for (int64_t k = 0; k < 2; ++k) {
    if (IsZeroInteger(i->operand(k))) return i->operand(1 - k);
    if (IsAllOnes(i->operand(k))) return b.Make(Op::Not, {i->operand(1 - k)});
  }
  return nullptr;
}

Instruction* NotNot(Instruction* i, Builder&) {
  return i->operand(0)->op() == Op::Not ? i->operand(0)->operand(0) : nullptr;
}

CompareDirection Inverse(CompareDirection d) {
  switch (d) {
    case CompareDirection::Eq: return CompareDirection::Ne;
    case CompareDirection::Ne: return CompareDirection::Eq;
    case CompareDirection::Lt: return CompareDirection::Ge;
    case CompareDirection::Ge: return CompareDirection::Lt;
    case CompareDirection::Gt: return CompareDirection::Le;
    case CompareDirection::Le: return CompareDirection::Gt;
  }
  return d;
}

bool IsEquality(CompareDirection d) { return d == CompareDirection::Eq || d == CompareDirection::Ne; }

// not(x < y) -> x >= y where there is a total order, not(x == y) -> x != y always
Instruction* NotCompare(Instruction* i, Builder& b) {
  const Instruction* compare = i->operand(0);
  if (compare->op() != Op::Compare || compare->use_count() != 1) return nullptr;
  CompareAttrs attrs = compare->attrs<CompareAttrs>();
  const ElementType type = Type(compare->operand(0));
  const bool total = attrs.order == CompareOrder::TotalOrder || IsInteger(type) || IsPred(type);
  if (!IsEquality(attrs.direction) && !total) return nullptr;
  attrs.direction = Inverse(attrs.direction);
  return b.Make(Op::Compare, {compare->operand(0), compare->operand(1)}, attrs);
}

Instruction* ShiftByZero(Instruction* i, Builder&) { return IsZeroInteger(i->operand(1)) ? i->operand(0) : nullptr; }

Instruction* CompareSelf(Instruction* i, Builder& b) {
  const ElementType type = Type(i->operand(0));
  if (i->operand(0) != i->operand(1) || !(IsInteger(type) || IsPred(type))) return nullptr;
  switch (i->attrs<CompareAttrs>().direction) {
    case CompareDirection::Eq:
    case CompareDirection::Le:
    case CompareDirection::Ge: return Bool(b, i, true);
    default: return Bool(b, i, false);
  }
}

// p == true -> p, p == false -> not p, and so on
Instruction* ComparePred(Instruction* i, Builder& b) {
  const CompareDirection d = i->attrs<CompareAttrs>().direction;
  if (!IsPred(Type(i->operand(0))) || !IsEquality(d)) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    const Literal* c = Splat(i->operand(k));
    if (!c) continue;
    const bool keep = (c->GetInt(0) != 0) == (d == CompareDirection::Eq);
    return keep ? i->operand(1 - k) : b.Make(Op::Not, {i->operand(1 - k)});
  }
  return nullptr;
}

// Unsigned x >= 0 and x < 0
Instruction* CompareUnsigned(Instruction* i, Builder& b) {
  if (!IsUnsigned(Type(i->operand(0))) || !IsZeroInteger(i->operand(1))) return nullptr;
  const CompareDirection d = i->attrs<CompareAttrs>().direction;
  if (d == CompareDirection::Ge) return Bool(b, i, true);
  if (d == CompareDirection::Lt) return Bool(b, i, false);
  return nullptr;
}

Instruction* SelectConstant(Instruction* i, Builder&) {
  const Literal* p = Splat(i->operand(0));
  return p ? i->operand(p->GetInt(0) ? 1 : 2) : nullptr;
}

Instruction* SelectSame(Instruction* i, Builder&) { return i->operand(1) == i->operand(2) ? i->operand(1) : nullptr; }

Instruction* SelectNot(Instruction* i, Builder& b) {
  if (i->operand(0)->op() != Op::Not) return nullptr;
  return b.Make(Op::Select, {i->operand(0)->operand(0), i->operand(2), i->operand(1)});
}

// select(p, true, false) -> p
Instruction* SelectPred(Instruction* i, Builder& b) {
  if (!IsPred(Type(i)) || !i->operand(0)->shape().SameDims(i->shape())) return nullptr;
  if (IsAllOnes(i->operand(1)) && IsZeroInteger(i->operand(2))) return i->operand(0);
  if (IsZeroInteger(i->operand(1)) && IsAllOnes(i->operand(2))) return b.Make(Op::Not, {i->operand(0)});
  return nullptr;
}

// select(p, select(p, a, b), c) -> select(p, a, c), and on the other side
Instruction* SelectSelect(Instruction* i, Builder& b) {
  Instruction *p = i->operand(0), *x = i->operand(1), *y = i->operand(2);
  if (x->op() == Op::Select && x->operand(0) == p) return b.Make(Op::Select, {p, x->operand(1), y});
  if (y->op() == Op::Select && y->operand(0) == p) return b.Make(Op::Select, {p, x, y->operand(2)});
  return nullptr;
}

// (x >> c) >> d -> x >> (c + d) while the sum is less than the width
Instruction* ShiftShift(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  if (inner->op() != i->op() || inner->use_count() != 1) return nullptr;
  const Literal *d = Splat(i->operand(1)), *c = Splat(inner->operand(1));
  if (!c || !d) return nullptr;
  const int64_t width = Bits(Type(i)), x = c->GetInt(0), y = d->GetInt(0);
  if (x < 0 || y < 0 || x >= width || y >= width || x + y >= width) return nullptr;
  return b.Make(i->op(), {inner->operand(0), b.Splat(Type(i), static_cast<double>(x + y), i->shape().dims())});
}

// x & ~x = 0, x | ~x = ~0, x ^ ~x = ~0
Instruction* WithItsComplement(Instruction* i, Builder& b) {
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction* n = i->operand(k);
    if (n->op() != Op::Not || n->operand(0) != i->operand(1 - k)) continue;
    Instruction* zero = b.Splat(Type(i), 0, i->shape().dims());
    return i->op() == Op::And ? zero : b.Make(Op::Not, {zero});
  }
  return nullptr;
}

CompareDirection Swapped(CompareDirection d) {
  switch (d) {
    case CompareDirection::Lt: return CompareDirection::Gt;
    case CompareDirection::Gt: return CompareDirection::Lt;
    case CompareDirection::Le: return CompareDirection::Ge;
    case CompareDirection::Ge: return CompareDirection::Le;
    default: return d;
  }
}

// c < x -> x > c: what compares with the same constant looks the same.
Instruction* CompareConstantFirst(Instruction* i, Builder& b) {
  if (!Splat(i->operand(0)) || Splat(i->operand(1))) return nullptr;
  CompareAttrs attrs = i->attrs<CompareAttrs>();
  attrs.direction = Swapped(attrs.direction);
  return b.Make(Op::Compare, {i->operand(1), i->operand(0)}, attrs);
}

// x + c == d -> x == d - c: integers wrap, so that it is exact.
Instruction* CompareSum(Instruction* i, Builder& b) {
  const Instruction* sum = i->operand(0);
  if (sum->op() != Op::Add || sum->use_count() != 1 || !IsInteger(Type(sum)) || !Splat(i->operand(1)) ||
      !IsEquality(i->attrs<CompareAttrs>().direction))
    return nullptr;
  for (int64_t k = 0; k < 2; ++k)
    if (Splat(sum->operand(k)) && !Splat(sum->operand(1 - k)))
      return b.Make(Op::Compare, {sum->operand(1 - k), b.Make(Op::Subtract, {i->operand(1), sum->operand(k)})},
                    i->any_attrs());
  return nullptr;
}

std::optional<bool> Holds(CompareDirection d, int64_t x, int64_t y) {
  switch (d) {
    case CompareDirection::Eq: return x == y;
    case CompareDirection::Ne: return x != y;
    case CompareDirection::Lt: return x < y;
    case CompareDirection::Le: return x <= y;
    case CompareDirection::Gt: return x > y;
    case CompareDirection::Ge: return x >= y;
  }
  return std::nullopt;
}

// A count against a number it never or always reaches: iota of 8 < 8
Instruction* CompareIota(Instruction* i, Builder& b) {
  const Instruction* iota = i->operand(0);
  while (iota->op() == Op::Broadcast || iota->op() == Op::Reshape) iota = iota->operand(0);
  const Literal* c = Splat(i->operand(1));
  if (iota->op() != Op::Iota || !c || !IsInteger(Type(iota)) || Bits(Type(iota)) < 16) return nullptr;
  const int64_t last = iota->shape().dim(iota->attrs<IotaAttrs>().dimension) - 1, value = c->GetInt(0);
  const int64_t largest = Bits(Type(iota)) == 16 ? INT16_MAX : INT32_MAX;
  if (last < 0 || last > largest || (IsUnsigned(c->type()) && value < 0)) return nullptr;  // it would wrap
  const CompareDirection d = i->attrs<CompareAttrs>().direction;
  if (IsEquality(d)) {
    if (value >= 0 && value <= last && last > 0) return nullptr;
  } else if (Holds(d, 0, value) != Holds(d, last, value)) {
    return nullptr;
  }
  return Bool(b, i, *Holds(d, 0, value));
}

// select(p, 3, 5) == 3 -> p
Instruction* CompareSelect(Instruction* i, Builder& b) {
  const Instruction* select = i->operand(0);
  const Literal* c = Splat(i->operand(1));
  if (select->op() != Op::Select || !c || !(IsInteger(c->type()) || IsPred(c->type())) ||
      !select->operand(0)->shape().SameDims(i->shape()))
    return nullptr;
  const Literal *x = Splat(select->operand(1)), *y = Splat(select->operand(2));
  if (!x || !y || (Bits(c->type()) == 64 && IsUnsigned(c->type()))) return nullptr;
  const CompareDirection d = i->attrs<CompareAttrs>().direction;
  const bool then = *Holds(d, x->GetInt(0), c->GetInt(0)), otherwise = *Holds(d, y->GetInt(0), c->GetInt(0));
  if (then == otherwise) return Bool(b, i, then);
  return then ? select->operand(0) : b.Make(Op::Not, {select->operand(0)});
}

// int(p) != 0 -> p, int(p) == 1 -> p and their opposites
Instruction* CompareConvertedPred(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  const CompareDirection d = i->attrs<CompareAttrs>().direction;
  if (x->op() != Op::Convert || !IsPred(Type(x->operand(0))) || IsComplex(Type(x)) || !IsEquality(d)) return nullptr;
  if (IsFloat(Type(x)) && !FormatOf(Type(x)).has_sign) return nullptr;  // it has no 0
  const bool zero = IsSplatOf(i->operand(1), 0), one = IsSplatOf(i->operand(1), 1);
  if ((!zero && !one) || (IsInteger(Type(x)) && IsSigned(Type(x)) && Bits(Type(x)) == 1)) return nullptr;
  if (i->attrs<CompareAttrs>().order == CompareOrder::TotalOrder && IsFloat(Type(x))) return nullptr;  // -0
  return one == (d == CompareDirection::Eq) ? x->operand(0) : b.Make(Op::Not, {x->operand(0)});
}

// select(p, 1, 0) -> convert(p)
Instruction* SelectOneZero(Instruction* i, Builder& b) {
  const ElementType type = Type(i);
  if (!(IsInteger(type) || IsFloat(type)) || !i->operand(0)->shape().SameDims(i->shape())) return nullptr;
  if (IsInteger(type) && IsSigned(type) && Bits(type) < 4) return nullptr;
  const bool zero = IsInteger(type) ? IsZeroInteger(i->operand(2)) : IsPositiveZero(i->operand(2));
  return zero && IsSplatOf(i->operand(1), 1) ? b.Convert(i->operand(0), type) : nullptr;
}

// Integers are finite.
Instruction* IsFiniteOfInteger(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->op() != Op::Convert || Type(x) == ElementType::F16) return nullptr;
  const ElementType from = Type(x->operand(0));
  const bool wide = Type(x) == ElementType::F32 || Type(x) == ElementType::F64 || Type(x) == ElementType::BF16;
  return wide && (IsInteger(from) || IsPred(from)) ? Bool(b, i, true) : nullptr;
}

constexpr Rule kRules[] = {
    {"and-self", Op::And, &OfItself},
    {"or-self", Op::Or, &OfItself},
    {"and-constant", Op::And, &AndOrConstant},
    {"or-constant", Op::Or, &AndOrConstant},
    {"xor-constant", Op::Xor, &XorConstant},
    {"not-not", Op::Not, &NotNot},
    {"not-compare", Op::Not, &NotCompare},
    {"shift-by-zero", Op::ShiftLeft, &ShiftByZero},
    {"shift-by-zero", Op::ShiftRightLogical, &ShiftByZero},
    {"shift-by-zero", Op::ShiftRightArithmetic, &ShiftByZero},
    {"compare-self", Op::Compare, &CompareSelf},
    {"compare-pred", Op::Compare, &ComparePred},
    {"compare-unsigned", Op::Compare, &CompareUnsigned},
    {"select-constant", Op::Select, &SelectConstant},
    {"select-same", Op::Select, &SelectSame},
    {"select-not", Op::Select, &SelectNot},
    {"select-pred", Op::Select, &SelectPred},
    {"select-select", Op::Select, &SelectSelect},
    {"shift-shift", Op::ShiftLeft, &ShiftShift},
    {"shift-shift", Op::ShiftRightLogical, &ShiftShift},
    {"and-complement", Op::And, &WithItsComplement},
    {"or-complement", Op::Or, &WithItsComplement},
    {"xor-complement", Op::Xor, &WithItsComplement},
    {"compare-constant-first", Op::Compare, &CompareConstantFirst},
    {"compare-sum", Op::Compare, &CompareSum},
    {"compare-iota", Op::Compare, &CompareIota},
    {"compare-select", Op::Compare, &CompareSelect},
    {"compare-converted-pred", Op::Compare, &CompareConvertedPred},
    {"select-one-zero", Op::Select, &SelectOneZero},
    {"is-finite-of-integer", Op::IsFinite, &IsFiniteOfInteger},
};

}  // namespace

RuleSet LogicRules() { return kRules; }

}  // namespace strop::simplify
