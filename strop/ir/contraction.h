// Contraction: a product that is used by one sum only is not rounded before it is added.
//
//   %p = multiply(%x, %y); %s = add(%p, %z)   ->   %s is x y + z, rounded once
//
// So it is with a product whose elements a reduction sums.
//
// The pass `contraction` decides, and leaves its mark at the sum: which operand is the product. Fusion keeps marked
// pairs in one kernel, and whoever emits the sum emits an fma; so the bits do not depend on what else is fused. The
// mark is a frontend attribute, so that it survives printing and reading back. Who does not know it (the evaluator)
// rounds twice.
#pragma once
#include "strop/ir/instruction.h"

namespace strop {

inline constexpr char kContractionMark[] = "strop.contracted_operand";

// A sum that is a quotient by a constant (pass `constant-division`): what is said of quotients holds for it.
inline constexpr char kQuotientMark[] = "strop.quotient";
inline bool IsQuotient(const Instruction& i) {
  return i.op() == Op::Divide || (i.op() == Op::Add && i.frontend_attributes().contains(kQuotientMark));
}

// Sums of f32 and f64; smaller floats are rounded after each operation, as their type says.
inline bool IsContractible(const Instruction& sum) {
  if (!sum.shape().IsArray()) return false;
  const bool reduction = sum.op() == Op::Reduce && sum.called(0)->root()->op() == Op::Add;
  if (sum.op() != Op::Add && sum.op() != Op::Subtract && !reduction) return false;
  return sum.shape().type() == ElementType::F32 || sum.shape().type() == ElementType::F64;
}

// The number of the operand that is the product; -1: the sum is an ordinary one.
inline int64_t ContractedOperand(const Instruction& sum) {
  if (!IsContractible(sum)) return -1;
  const auto mark = sum.frontend_attributes().find(kContractionMark);
  if (mark == sum.frontend_attributes().end()) return -1;
  const int64_t k = mark->second == "1" ? 1 : 0;
  return sum.operand(k)->op() == Op::Multiply ? k : -1;
}

}  // namespace strop
