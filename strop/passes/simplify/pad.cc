// Rules of pad.
#include <algorithm>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* PadNothing(Instruction* i, Builder&) {
  const PaddingConfig& padding = i->attrs<PadAttrs>().padding;
  const bool none = std::all_of(padding.begin(), padding.end(), [](const PaddingDim& p) { return p == PaddingDim{}; });
  return none ? i->operand(0) : nullptr;
}

Instruction* PadOfEmpty(Instruction* i, Builder& b) {
  if (i->operand(0)->shape().num_elements() != 0) return nullptr;
  return b.Broadcast(i->operand(1), i->shape().dims(), {});
}

// Negative padding cuts off: pad what is positive, then slice.
Instruction* PadNegative(Instruction* i, Builder& b) {
  PaddingConfig padding = i->attrs<PadAttrs>().padding;
  const bool negative =
      std::any_of(padding.begin(), padding.end(), [](const PaddingDim& p) { return p.low < 0 || p.high < 0; });
  if (!negative) return nullptr;
  SliceDims slice;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const int64_t start = std::max<int64_t>(0, -padding[d].low);
    slice.push_back({start, start + i->shape().dim(d), 1});
    padding[d].low = std::max<int64_t>(0, padding[d].low);
    padding[d].high = std::max<int64_t>(0, padding[d].high);
  }
  return b.Make(Op::Slice, {b.Make(Op::Pad, {i->operand(0), i->operand(1)}, PadAttrs{padding})}, SliceAttrs{slice});
}

Instruction* PadPad(Instruction* i, Builder& b) {
  const Instruction* inner = i->operand(0);
  if (inner->op() != Op::Pad || inner->operand(1) != i->operand(1)) return nullptr;
  PaddingConfig both;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const PaddingDim &x = inner->attrs<PadAttrs>().padding[d], &y = i->attrs<PadAttrs>().padding[d];
    if (x.interior || y.interior || x.low < 0 || x.high < 0 || y.low < 0 || y.high < 0) return nullptr;
    both.push_back({x.low + y.low, x.high + y.high, 0});
  }
  return b.Make(Op::Pad, {inner->operand(0), i->operand(1)}, PadAttrs{both});
}

// Around copies of a scalar, the same scalar
Instruction* PadScalar(Instruction* i, Builder& b) {
  Instruction *x = SpreadScalar(i->operand(0)), *value = i->operand(1);
  if (!x || !SameScalar(x, value)) return nullptr;
  return b.Broadcast(value, i->shape().dims(), {});
}

constexpr Rule kRules[] = {
    {"pad-nothing", Op::Pad, &PadNothing},   {"pad-of-empty", Op::Pad, &PadOfEmpty},
    {"pad-negative", Op::Pad, &PadNegative}, {"pad-pad", Op::Pad, &PadPad},
    {"pad-scalar", Op::Pad, &PadScalar},
};

}  // namespace

RuleSet PadRules() { return kRules; }

}  // namespace strop::simplify
