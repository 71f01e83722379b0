// Rules of abs.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// ||x|| and |-x|
Instruction* AbsOfAbs(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() == Op::Abs) return x;
  return HasNegatives(x) && x->op() == Op::Negate ? b.Make(Op::Abs, {x->operand(0)}) : nullptr;
}

// |e^x|, |x * x| of floats, |logistic(x)|, of an iota and of what was unsigned: nothing to do.
Instruction* AbsOfPositive(Instruction* i, Builder&) {
  Instruction* x = i->operand(0);
  if (Type(x) != Type(i)) return nullptr;  // of a complex number
  if (IsUnsigned(Type(x))) return x;
  if (x->op() == Op::Convert && Bits(Type(x->operand(0))) < Bits(Type(x)) &&
      (IsUnsigned(Type(x->operand(0))) || IsPred(Type(x->operand(0)))))
    return x;
  if (x->op() == Op::Iota) {
    const int64_t last = x->shape().dim(x->attrs<IotaAttrs>().dimension) - 1;
    return IsFloat(Type(x)) || Bits(Type(x)) == 64 || last < (int64_t{1} << (Bits(Type(x)) - 1)) ? x : nullptr;
  }
  if (!IsFloat(Type(x))) return nullptr;
  const bool square = x->op() == Op::Multiply && x->operand(0) == x->operand(1);
  return square || x->op() == Op::Exp || x->op() == Op::Logistic ? x : nullptr;
}

constexpr Rule kRules[] = {
    {"abs-abs", Op::Abs, &AbsOfAbs},
    {"abs-of-positive", Op::Abs, &AbsOfPositive},
};

}  // namespace

RuleSet AbsRules() { return kRules; }

}  // namespace strop::simplify
