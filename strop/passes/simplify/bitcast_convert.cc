// Rules of bitcast-convert.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

Instruction* BitcastBitcast(Instruction* i, Builder& b) {
  Instruction* x;
  if (!Match(i, BitcastConvert(BitcastConvert(Any(&x))))) return nullptr;
  if (x->shape().Compatible(i->shape())) return x;
  if (Bits(Type(x)) != Bits(Type(i)) || !x->shape().SameDims(i->shape())) return nullptr;
  return b.BitcastConvert(x, Type(i));
}

constexpr Rule kRules[] = {
    {"bitcast-convert-same-type", Op::BitcastConvert, &SameType},
    {"bitcast-convert-chain", Op::BitcastConvert, &BitcastBitcast},
};

}  // namespace

RuleSet BitcastConvertRules() { return kRules; }

}  // namespace strop::simplify
