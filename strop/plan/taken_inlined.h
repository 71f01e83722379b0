// What takes its operands inside its kernel, as far as that does not depend on how much would be computed again.
#pragma once
#include "strop/ir/instruction.h"
#include "strop/plan/target_info.h"

namespace strop::plan_internal {

// No step and no memory of its own: the same bytes as its operand.
bool IsAlias(const Instruction& i);

// Are these the elements of its buffer that a dynamic-update-slice overwrites, in the same order?
bool ReadsWindow(const Instruction& reader, const Instruction& root);

// May the producer of operand `k` be computed inside the kernel rooted at `root`?
Decision TakesInlined(const Instruction& root, int64_t k, const TargetInfo& target);

// How many instructions a kernel takes, those that cost nothing aside.
int MostInKernel(const Instruction& root);

}  // namespace strop::plan_internal
