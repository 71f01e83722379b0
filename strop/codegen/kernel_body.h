// KernelBody: what a kernel computes, whether it comes as a fusion or as a single instruction.
#pragma once
#include <vector>

#include "strop/ir/module.h"

namespace strop {

struct KernelBody {
  const Instruction* kernel = nullptr;
  std::vector<const Instruction*> inputs;  // per operand: the body's parameter, or the operand itself
  std::vector<const Instruction*> roots;   // per result leaf: the instruction that gives it
  std::vector<int> root_leaf;              // and which of its leaves (variadic reduce)

  static KernelBody Of(const Instruction& kernel);
  // Everything that the kernel computes, operands before users, inputs excluded. Empty for an unfused instruction but
  // itself.
  std::vector<const Instruction*> Computed() const;
  // Are floats of less than 32 bits at most moved, never computed with?
  bool MovesSmallFloats() const;
};

}  // namespace strop
