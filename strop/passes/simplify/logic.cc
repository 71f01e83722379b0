// Rules of logic and bits, comparisons and select. Comparisons of floats keep their meaning for NaN: x == x is not
// true.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

ElementType Type(const Instruction* i) { return i->shape().type(); }

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
};

}  // namespace

RuleSet LogicRules() { return kRules; }

}  // namespace strop::simplify
