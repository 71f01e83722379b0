// Rules of multiply. x * 0 is not 0 for floats (infinity, NaN).
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* MultiplyOne(Instruction* i, Builder&) {
  if (!IsIntOrFloat(i)) return nullptr;
  return Other(i, [](const Instruction* o) { return IsSplatOf(o, 1); });
}

Instruction* MultiplyZero(Instruction* i, Builder& b) {
  return IsInt(i) && Other(i, IsZeroInteger) ? Like(b, i, 0) : nullptr;
}

// x * -1 -> -x
Instruction* MultiplyMinusOne(Instruction* i, Builder& b) {
  if (!(IsInt(i) ? IsSigned(Type(i)) : IsFloat(Type(i)) && FormatOf(Type(i)).has_sign)) return nullptr;
  Instruction* x = Other(i, [](const Instruction* o) { return IsSplatOf(o, -1); });
  return x ? b.Make(Op::Negate, {x}) : nullptr;
}

// |x| * |x| -> x * x
Instruction* SquareOfAbs(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x != i->operand(1) || x->op() != Op::Abs || Type(x) != Type(x->operand(0))) return nullptr;
  return b.Make(Op::Multiply, {x->operand(0), x->operand(0)});
}

constexpr Rule kRules[] = {
    {"multiply-one", Op::Multiply, &MultiplyOne},
    {"multiply-zero", Op::Multiply, &MultiplyZero},
    {"multiply-minus-one", Op::Multiply, &MultiplyMinusOne},
    {"square-of-abs", Op::Multiply, &SquareOfAbs},
};

}  // namespace

RuleSet MultiplyRules() { return kRules; }

}  // namespace strop::simplify
