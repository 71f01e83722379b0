// Rules of compare. Comparisons of floats keep their meaning for NaN: x == x is not true.
#include <algorithm>
#include <optional>

#include "strop/analysis/integer_range.h"
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

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

// Is `x` the larger (`op`) of z and c?
bool IsExtremeOf(const Instruction* x, Op op, const Instruction* z, const Instruction* c) {
  if (x->op() != op) return false;
  for (int64_t k = 0; k < 2; ++k)
    if (x->operand(k) == z && SameSplat(x->operand(1 - k), c)) return true;
  return false;
}

// z > c -> max(z, c) > c, and so for z <= c and for minima, if nobody needs z for anything but its maximum with c: the
// gradient of relu reads what its forward pass keeps anyway, and z is needed no longer. A NaN stays one.
Instruction* CompareExtreme(Instruction* i, Builder& b) {
  Instruction *z = i->operand(0), *c = i->operand(1);
  const CompareAttrs& attrs = i->attrs<CompareAttrs>();
  const CompareDirection d = attrs.direction;
  if ((IsFloat(Type(z)) && attrs.order == CompareOrder::TotalOrder) || !Splat(c) || z->IsRoot()) return nullptr;
  const bool of_maximum = d == CompareDirection::Gt || d == CompareDirection::Le;
  if (!of_maximum && d != CompareDirection::Lt && d != CompareDirection::Ge) return nullptr;
  const Op op = of_maximum ? Op::Maximum : Op::Minimum;
  bool has_extreme = false;
  for (const Use& use : z->uses()) {
    const bool extreme = IsExtremeOf(use.user, op, z, c);
    has_extreme |= extreme;
    if (!extreme && use.user != i) return nullptr;
  }
  return has_extreme ? b.Make(Op::Compare, {b.Make(op, {z, c}), c}, attrs) : nullptr;  // cse finds the one there is
}

// Of integers whose ranges tell: what is counted is not negative, whatever a program says of negative indices.
Instruction* CompareRanges(Instruction* i, Builder& b) {
  if (!IsInteger(Type(i->operand(0)))) return nullptr;
  const std::optional<bool> always = ComparisonOf(*i);
  return always ? b.Splat(ElementType::Pred, *always, i->shape().dims()) : nullptr;
}

constexpr Rule kRules[] = {
    {"compare-self", Op::Compare, &CompareSelf},
    {"compare-pred", Op::Compare, &ComparePred},
    {"compare-unsigned", Op::Compare, &CompareUnsigned},
    {"compare-constant-first", Op::Compare, &CompareConstantFirst},
    {"compare-sum", Op::Compare, &CompareSum},
    {"compare-select", Op::Compare, &CompareSelect},
    {"compare-converted-pred", Op::Compare, &CompareConvertedPred},
    {"compare-extreme", Op::Compare, &CompareExtreme},
    {"compare-ranges", Op::Compare, &CompareRanges},
};

}  // namespace

RuleSet CompareRules() { return kRules; }

}  // namespace strop::simplify
