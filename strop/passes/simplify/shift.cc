// Rules of the three shifts.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* ShiftByZero(Instruction* i, Builder&) { return IsZeroInteger(i->operand(1)) ? i->operand(0) : nullptr; }

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

constexpr Rule kRules[] = {
    {"shift-by-zero", Op::ShiftLeft, &ShiftByZero},
    {"shift-by-zero", Op::ShiftRightLogical, &ShiftByZero},
    {"shift-by-zero", Op::ShiftRightArithmetic, &ShiftByZero},
    {"shift-shift", Op::ShiftLeft, &ShiftShift},
    {"shift-shift", Op::ShiftRightLogical, &ShiftShift},
};

}  // namespace

RuleSet ShiftRules() { return kRules; }

}  // namespace strop::simplify
