// KernelBody: what a kernel computes, whether it comes as a fusion or as a single instruction.
#pragma once
#include <string>
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
  // Of result r.
  int64_t ElementsOf(size_t r) const;
};

// Does it compute something, from arrays of known sizes?
Decision ComputesFromArrays(const Instruction& kernel);
// The results that have so many elements, which share a walk: a body of them alone, and their numbers in the whole.
struct ResultsOfOneSize {
  int64_t elements = 0;
  KernelBody body;
  std::vector<size_t> outputs;
};
// The smallest first.
std::vector<ResultsOfOneSize> ResultsBySize(const KernelBody& body);
// A symbol that profilers can show: the kernel's name, letters and digits only; its number keeps equal ones apart.
std::string KernelSymbol(const std::string& name, size_t number);

}  // namespace strop
