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

// The signed remainder x % 2^k that `p` asks to be negative, or null.
Instruction* NegativeRemainder(const Instruction* p) {
  if (p->op() != Op::Compare || p->attrs<CompareAttrs>().direction != CompareDirection::Lt) return nullptr;
  Instruction* remainder = p->operand(0);
  if (remainder->op() != Op::Remainder || !IsZeroInteger(p->operand(1)) || !IsSigned(Type(remainder))) return nullptr;
  return PowerOfTwo(remainder->operand(1)) >= 0 ? remainder : nullptr;
}

// x % 2^k < 0 ? x % 2^k + 2^k : x % 2^k -> x & (2^k - 1), the remainder of a division that rounds down
Instruction* SelectModulo(Instruction* i, Builder& b) {
  Instruction *remainder = NegativeRemainder(i->operand(0)), *sum = i->operand(1);
  if (!remainder || i->operand(2) != remainder || sum->op() != Op::Add) return nullptr;
  const int k = PowerOfTwo(remainder->operand(1));
  const Instruction* c = Other(sum, [&](const Instruction* x) { return x == remainder; });
  if (!c || PowerOfTwo(c) != k) return nullptr;
  Instruction* mask = b.Constant(Literal::ScalarOfInt(Type(i), static_cast<int64_t>((uint64_t{1} << k) - 1)));
  return b.Make(Op::And,
                {remainder->operand(0), i->shape().IsScalar() ? mask : b.Broadcast(mask, i->shape().dims(), {})});
}

// x % 2^k < 0 ? x / 2^k - 1 : x / 2^k -> x >> k, the quotient that is rounded down
Instruction* SelectFloorDivision(Instruction* i, Builder& b) {
  const Instruction *remainder = NegativeRemainder(i->operand(0)), *less = i->operand(1), *quotient = i->operand(2);
  if (!remainder || quotient->op() != Op::Divide || less->op() != Op::Add) return nullptr;
  const int k = PowerOfTwo(remainder->operand(1));
  if (quotient->operand(0) != remainder->operand(0) || PowerOfTwo(quotient->operand(1)) != k) return nullptr;
  const Instruction* minus = Other(i->operand(1), [&](const Instruction* x) { return x == quotient; });
  return minus && IsAllOnes(minus) ? b.Make(Op::ShiftRightArithmetic, {quotient->operand(0), Like(b, i, k)}) : nullptr;
}

constexpr Rule kRules[] = {
    {"select-constant", Op::Select, &SelectConstant}, {"select-same", Op::Select, &SelectSame},
    {"select-not", Op::Select, &SelectNot},           {"select-pred", Op::Select, &SelectPred},
    {"select-select", Op::Select, &SelectSelect},     {"select-one-zero", Op::Select, &SelectOneZero},
    {"select-modulo", Op::Select, &SelectModulo},     {"select-floor-division", Op::Select, &SelectFloorDivision},
};

}  // namespace

RuleSet SelectRules() { return kRules; }

}  // namespace strop::simplify
