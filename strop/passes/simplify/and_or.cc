// Rules that and and or share.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// x & 0 = 0, x & ~0 = x, and the duals for or
Instruction* AndOrConstant(Instruction* i, Builder&) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *c = i->operand(k), *x = i->operand(1 - k);
    if (IsZeroInteger(c)) return i->op() == Op::And ? c : x;
    if (IsAllOnes(c)) return i->op() == Op::And ? x : c;
  }
  return nullptr;
}

bool Compares(const Instruction* i, CompareDirection direction) {
  return i->op() == Op::Compare && i->attrs<CompareAttrs>().direction == direction;
}

// x < y and x != y -> x < y, and so for >. (Of the remainder of a division that rounds down.)
Instruction* AndImplied(Instruction* i, Builder&) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *order = i->operand(k), *differ = i->operand(1 - k);
    if (!Compares(differ, CompareDirection::Ne)) continue;
    if (!Compares(order, CompareDirection::Lt) && !Compares(order, CompareDirection::Gt)) continue;
    if (order->attrs<CompareAttrs>().order != differ->attrs<CompareAttrs>().order) continue;
    const auto same = [&](int64_t a, int64_t c) {
      return order->operand(a) == differ->operand(c) || SameSplat(order->operand(a), differ->operand(c));
    };
    if ((same(0, 0) && same(1, 1)) || (same(0, 1) && same(1, 0))) return order;
  }
  return nullptr;
}

// sign(x) != 1 and x % c != 0 -> x % c < 0, where c > 0: where a quotient that rounds down is not what divide makes.
Instruction* AndSignsOfDivision(Instruction* i, Builder& b) {
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction *sign = i->operand(k), *rest = i->operand(1 - k);
    if (!Compares(sign, CompareDirection::Ne) || !Compares(rest, CompareDirection::Ne)) continue;
    if (sign->operand(0)->op() != Op::Sign || !IsSplatOf(sign->operand(1), 1)) continue;
    Instruction* remainder = rest->operand(0);
    if (remainder->op() != Op::Remainder || !IsZeroInteger(rest->operand(1))) continue;
    const Literal* c = Splat(remainder->operand(1));
    if (remainder->operand(0) != sign->operand(0)->operand(0) || !IsSigned(Type(remainder)) || !c || c->GetInt(0) <= 0)
      continue;
    return b.Compare(remainder, rest->operand(1), CompareDirection::Lt);
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"and-implied", Op::And, &AndImplied},
    {"and-signs-of-division", Op::And, &AndSignsOfDivision},
    {"and-constant", Op::And, &AndOrConstant},
    {"or-constant", Op::Or, &AndOrConstant},
};

}  // namespace

RuleSet AndOrRules() { return kRules; }

}  // namespace strop::simplify
