// Rules of select.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

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

// select(p, 1, 0) -> convert(p)
Instruction* SelectOneZero(Instruction* i, Builder& b) {
  const ElementType type = Type(i);
  if (!(IsInteger(type) || IsFloat(type)) || !i->operand(0)->shape().SameDims(i->shape())) return nullptr;
  if (IsInteger(type) && IsSigned(type) && Bits(type) < 4) return nullptr;
  const bool zero = IsInteger(type) ? IsZeroInteger(i->operand(2)) : IsPositiveZero(i->operand(2));
  return zero && IsSplatOf(i->operand(1), 1) ? b.Convert(i->operand(0), type) : nullptr;
}

constexpr Rule kRules[] = {
    {"select-constant", Op::Select, &SelectConstant}, {"select-same", Op::Select, &SelectSame},
    {"select-not", Op::Select, &SelectNot},           {"select-pred", Op::Select, &SelectPred},
    {"select-select", Op::Select, &SelectSelect},     {"select-one-zero", Op::Select, &SelectOneZero},
};

}  // namespace

RuleSet SelectRules() { return kRules; }

}  // namespace strop::simplify
