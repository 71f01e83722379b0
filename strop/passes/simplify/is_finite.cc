// Rules of is-finite.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Integers are finite.
Instruction* IsFiniteOfInteger(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->op() != Op::Convert || Type(x) == ElementType::F16) return nullptr;
  const ElementType from = Type(x->operand(0));
  const bool wide = Type(x) == ElementType::F32 || Type(x) == ElementType::F64 || Type(x) == ElementType::BF16;
  return wide && (IsInteger(from) || IsPred(from)) ? Bool(b, i, true) : nullptr;
}

constexpr Rule kRules[] = {
    {"is-finite-of-integer", Op::IsFinite, &IsFiniteOfInteger},
};

}  // namespace

RuleSet IsFiniteRules() { return kRules; }

}  // namespace strop::simplify
