// Rules of dynamic-update-slice.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// An update as large as its operand replaces it, an empty one changes nothing.
Instruction* UpdateOfWhole(Instruction* i, Builder&) {
  if (i->operand(1)->shape().SameDims(i->shape())) return i->operand(1);
  return i->operand(1)->shape().num_elements() == 0 ? i->operand(0) : nullptr;
}

// What was just read is written back.
Instruction* UpdateByOwnSlice(Instruction* i, Builder&) {
  const Instruction* slice = i->operand(1);
  if (slice->op() != Op::DynamicSlice || slice->operand(0) != i->operand(0)) return nullptr;
  return SameStarts(slice, 1, i, 2) ? i->operand(0) : nullptr;
}

// The same place is written twice.
Instruction* UpdateOfUpdate(Instruction* i, Builder& b) {
  const Instruction* inner = i->operand(0);
  if (inner->op() != Op::DynamicUpdateSlice || !inner->operand(1)->shape().SameDims(i->operand(1)->shape()) ||
      !SameStarts(inner, 2, i, 2))
    return nullptr;
  std::vector<Instruction*> operands = i->operands();
  operands[0] = inner->operand(0);
  return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
}

// Into copies of a scalar, at a known place: padding
Instruction* UpdateOfScalar(Instruction* i, Builder& b) {
  Instruction* value = SpreadScalar(i->operand(0));
  if (!value || i->shape().IsScalar()) return nullptr;
  PaddingConfig padding;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const int64_t size = i->shape().dim(d), part = i->operand(1)->shape().dim(d);
    const int64_t start = ConstantStart(i, 2, d, size, part);
    if (start < 0) return nullptr;
    padding.push_back({start, size - start - part, 0});
  }
  return b.Make(Op::Pad, {i->operand(1), value}, PadAttrs{padding});
}

constexpr Rule kRules[] = {
    {"update-of-whole", Op::DynamicUpdateSlice, &UpdateOfWhole},
    {"update-by-own-slice", Op::DynamicUpdateSlice, &UpdateByOwnSlice},
    {"update-of-update", Op::DynamicUpdateSlice, &UpdateOfUpdate},
    {"update-of-scalar", Op::DynamicUpdateSlice, &UpdateOfScalar},
};

}  // namespace

RuleSet DynamicUpdateSliceRules() { return kRules; }

}  // namespace strop::simplify
