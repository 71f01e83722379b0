// Which operand memory a kernel may, or must, write its result to.
#include <unordered_set>

#include "strop/plan/plan.h"

namespace strop {
namespace {

const Shape& Leaf(const Shape& shape, int64_t leaf) { return shape.IsTuple() ? shape.element(leaf) : shape; }

bool SameElements(const Shape& a, const Shape& b) {
  return a.IsArray() && b.IsArray() && a.SameDims(b) && Bytes(a.type()) == Bytes(b.type());
}

// Every path from the parameter to the root goes element by element.
bool ReadOnlyAtTheResultIndex(const Instruction& parameter, const Instruction& root) {
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> stack = {&parameter};
  while (!stack.empty()) {
    const Instruction* at = stack.back();
    stack.pop_back();
    for (const Use& use : at->uses()) {
      if (!IsElementwise(use.user->op()) || !use.user->shape().SameDims(root.shape())) return false;
      if (!at->shape().SameDims(root.shape())) return false;
      if (seen.insert(use.user).second) stack.push_back(use.user);
    }
  }
  return true;
}

// One result a operand of the root; not so where tuples are in tuples.
bool ResultsAreOperands(const Instruction& tuple) {
  for (int64_t k = 0; k < tuple.operand_count(); ++k)
    if (!tuple.operand(k)->shape().IsArray()) return false;
  return true;
}

InPlace FusionReuse(const Instruction& kernel, int64_t operand, int64_t leaf) {
  if (kernel.attrs<FusionAttrs>().kind == FusionKind::Custom) return InPlace::No;  // its kernels know of no sharing
  const Computation& fused = *kernel.called(0);
  const Instruction* root = fused.root();
  if (root->op() == Op::Tuple) {
    if (!ResultsAreOperands(*root)) return InPlace::No;
    root = root->operand(leaf);
  }
  const Instruction* parameter = fused.parameter(operand);
  if (root->op() == Op::DynamicUpdateSlice) return root->operand(0) == parameter ? InPlace::Required : InPlace::No;
  if (fused.root()->op() == Op::Tuple || !IsElementwise(root->op())) return InPlace::No;
  if (!SameElements(parameter->shape(), root->shape())) return InPlace::No;
  return ReadOnlyAtTheResultIndex(*parameter, *root) ? InPlace::Allowed : InPlace::No;
}

}  // namespace

InPlace CanReuseOperand(const Instruction& kernel, int64_t operand, int64_t leaf) {
  const Shape& result = Leaf(kernel.shape(), leaf);
  const Shape& from = kernel.operand(operand)->shape();
  switch (kernel.op()) {
    case Op::DynamicUpdateSlice: return operand == 0 ? InPlace::Required : InPlace::No;
    case Op::Scatter: {
      const int64_t inputs = (kernel.operand_count() - 1) / 2;
      return operand == leaf && operand < inputs ? InPlace::Required : InPlace::No;
    }
    case Op::Fusion: return FusionReuse(kernel, operand, leaf);
    default:
      if (!IsElementwise(kernel.op()) || !SameElements(from, result)) return InPlace::No;
      return InPlace::Allowed;
  }
}

}  // namespace strop
