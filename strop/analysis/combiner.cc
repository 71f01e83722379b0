#include "strop/analysis/combiner.h"

#include <algorithm>

namespace strop {
namespace {

// The one instruction that the root is, applied to the two parameters of a computation.
bool IsBinaryOfParameters(const Instruction& root, bool* swapped) {
  if (root.operand_count() != 2 || !root.operand(0)->IsParameter() || !root.operand(1)->IsParameter()) return false;
  *swapped = root.operand(0)->parameter_number() == 1;
  return root.operand(0) != root.operand(1);
}

bool IsReorderable(Op op) {
  switch (op) {
    case Op::Add:
    case Op::Multiply:
    case Op::Minimum:
    case Op::Maximum:
    case Op::And:
    case Op::Or:
    case Op::Xor: return true;
    default: return false;
  }
}

// argmin, argmax and their kin: every result chooses between its own two arguments by a condition made of comparisons.
bool IsSelection(const Computation& computation) {
  const Instruction* root = computation.root();
  const int64_t n = computation.parameter_count() / 2;
  if (root->op() != Op::Tuple || root->operand_count() != n || n < 2) return false;
  for (const Instruction* i : computation.instructions()) {
    switch (i->op()) {
      case Op::Parameter:
      case Op::Constant:
      case Op::Compare:
      case Op::Select:
      case Op::And:
      case Op::Or:
      case Op::Not:
      case Op::Xor:
      case Op::Tuple:
      case Op::Minimum:
      case Op::Maximum: break;
      default: return false;
    }
  }
  return true;
}

}  // namespace

LaneCombiner RecognizeCombiner(const Computation& computation) {
  LaneCombiner combiner{&computation, false, Op::kEnd};
  const Instruction* root = computation.root();
  bool swapped = false;
  if (root->shape().IsArray() && computation.parameter_count() == 2 && IsBinaryOfParameters(*root, &swapped)) {
    if (IsReorderable(root->op())) {
      combiner.op = root->op();
      combiner.reorderable = true;
    }
  } else {
    combiner.reorderable = IsSelection(computation);
  }
  return combiner;
}

std::vector<Op> OpsOfResults(const Computation& computation) {
  const Instruction& root = *computation.root();
  const int64_t n = computation.parameter_count() / 2;
  if (root.op() != Op::Tuple || root.operand_count() != n) return {};
  std::vector<Op> ops;
  for (int64_t k = 0; k < n; ++k) {
    const Instruction& result = *root.operand(k);
    if (!IsReorderable(result.op()) || result.operand_count() != 2) return {};
    const Instruction *x = result.operand(0), *y = result.operand(1);
    if (!x->IsParameter() || !y->IsParameter()) return {};
    if (std::min(x->parameter_number(), y->parameter_number()) != k) return {};
    if (std::max(x->parameter_number(), y->parameter_number()) != n + k) return {};
    ops.push_back(result.op());
  }
  return ops;
}

}  // namespace strop
