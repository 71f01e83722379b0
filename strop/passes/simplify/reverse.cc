// Rules of reverse.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Dimensions of one element, and those along which the operand is the same, need no reversing.
Instruction* ReverseLess(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  Dims kept;
  for (int64_t d : i->dimensions()) {
    if (x->shape().dim(d) <= 1) continue;
    if (x->op() == Op::Broadcast && !Contains(x->dimensions(), d)) continue;
    kept.push_back(d);
  }
  if (kept.size() == i->dimensions().size()) return kept.empty() ? x : nullptr;
  return kept.empty() ? x : b.Make(Op::Reverse, {x}, DimensionsAttrs{kept});
}

// Twice: the dimensions that are reversed by one of the two only
Instruction* ReverseReverse(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  if (inner->op() != Op::Reverse) return nullptr;
  Dims odd;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const Dims &x = i->dimensions(), &y = inner->dimensions();
    const bool in_x = Contains(x, d), in_y = Contains(y, d);
    if (in_x != in_y) odd.push_back(d);
  }
  return odd.empty() ? inner->operand(0) : b.Make(Op::Reverse, {inner->operand(0)}, DimensionsAttrs{odd});
}

constexpr Rule kRules[] = {
    {"reverse-less", Op::Reverse, &ReverseLess},
    {"reverse-reverse", Op::Reverse, &ReverseReverse},
};

}  // namespace

RuleSet ReverseRules() { return kRules; }

}  // namespace strop::simplify
