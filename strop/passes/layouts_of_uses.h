// Values in the place of others that lie otherwise. Until layout-normalization has run, a bitcast reads the elements in
// the order in which its operand lies, so that a value of the same elements is not yet the same to it.
#pragma once
#include "strop/ir/module.h"

namespace strop {

// `value`, or a copy of it, before `before`, that lies as `shape` says, if it does not.
Instruction* LyingAs(Instruction* value, const Shape& shape, Instruction* before);

// from->ReplaceAllUsesWith(to), with a copy of `to` for bitcasts where it lies otherwise than `from`.
void ReplaceAllUsesKeepingLayout(Instruction* from, Instruction* to);

}  // namespace strop
