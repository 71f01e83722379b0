// Rules of copy.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* CopyOfAnything(Instruction* i, Builder&) { return i->operand(0); }

constexpr Rule kRules[] = {
    {"copy", Op::Copy, &CopyOfAnything},
};

}  // namespace

RuleSet CopyRules() { return kRules; }

}  // namespace strop::simplify
