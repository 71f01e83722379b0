#include "strop/passes/layouts_of_uses.h"

namespace strop {

Instruction* LyingAs(Instruction* value, const Shape& shape, Instruction* before) {
  if (!value->shape().IsArray() || !shape.IsArray()) return value;
  if (value->shape().layout_or_default().minor_to_major == shape.layout_or_default().minor_to_major) return value;
  return before->parent()->Add(Op::Copy, shape, {value}, CopyAttrs{}, {}, before);
}

void ReplaceAllUsesKeepingLayout(Instruction* from, Instruction* to) {
  for (Instruction* user : from->users())
    if (user->op() == Op::Bitcast && user != to) user->SetOperand(0, LyingAs(to, from->shape(), user));
  from->ReplaceAllUsesWith(to);
}

}  // namespace strop
