// Rules of not.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

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

constexpr Rule kRules[] = {
    {"not-not", Op::Not, &NotNot},
    {"not-compare", Op::Not, &NotCompare},
};

}  // namespace

RuleSet NotRules() { return kRules; }

}  // namespace strop::simplify
