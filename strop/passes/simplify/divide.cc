// Rules of divide. A division by a power of two is exactly the product with its inverse.
#include <cmath>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* DivideOne(Instruction* i, Builder&) {
  return IsIntOrFloat(i) && IsSplatOf(i->operand(1), 1) ? i->operand(0) : nullptr;
}

// x / 2^k -> x * 2^-k, where both are normal numbers: then both round the same exact value.
Instruction* DivideByPowerOfTwo(Instruction* i, Builder& b) {
  const Literal* c = Splat(i->operand(1));
  if (!c || !IsFloat(Type(i))) return nullptr;
  int exponent = 0;
  const double value = c->GetDouble(0);
  if (!std::isfinite(value) || std::fabs(std::frexp(value, &exponent)) != 0.5) return nullptr;
  const FloatFormat& format = FormatOf(Type(i));
  const int k = exponent - 1, lowest = 1 - format.bias;
  if (!format.has_sign || k < lowest || -k < lowest) return nullptr;
  return b.Make(Op::Multiply, {i->operand(0), Like(b, i, 1 / value)});
}

// 1 / (1 + e^-x) -> logistic(x), as JAX writes it: rounded once instead of four times, and subnormal where e^-x
// overflows.
Instruction* DivideLogistic(Instruction* i, Builder& b) {
  Instruction *one, *sum;
  if (!IsFloat(Type(i)) || !Match(i, Divide(Any(&one), OneUse(Any(&sum)))) || !IsSplatOf(one, 1)) return nullptr;
  if (sum->op() != Op::Add) return nullptr;
  Instruction* exp = Other(sum, [](const Instruction* o) { return IsSplatOf(o, 1); });
  if (!HasNegatives(i) || !exp || exp->op() != Op::Exp || exp->use_count() != 1 || exp->operand(0)->op() != Op::Negate)
    return nullptr;
  return b.Make(Op::Logistic, {exp->operand(0)->operand(0)}, DefaultAttrs(Op::Logistic));
}

// Unsigned x / 2^k -> x >> k
Instruction* DivideUnsigned(Instruction* i, Builder& b) {
  const int k = PowerOfTwo(i->operand(1));
  if (!IsUnsigned(Type(i)) || k < 0) return nullptr;
  return b.Make(Op::ShiftRightLogical, {i->operand(0), Like(b, i, k)});
}

constexpr Rule kRules[] = {
    {"divide-one", Op::Divide, &DivideOne},
    {"divide-by-power-of-two", Op::Divide, &DivideByPowerOfTwo},
    {"divide-logistic", Op::Divide, &DivideLogistic},
    {"divide-unsigned", Op::Divide, &DivideUnsigned},
};

}  // namespace

RuleSet DivideRules() { return kRules; }

}  // namespace strop::simplify
