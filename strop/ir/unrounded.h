// Unrounded values: a result of bf16 that only arithmetic reads need not be rounded before that reads it; and a result
// of f32 that is only rounded to bf16 need not be the nearest f32.
//
//   %p = bf16[n] multiply(%x, %y); %s = bf16[n] exponential(%p)   ->   %s is that of the product as f32 has it
//
// bf16 is computed in f32 and rounded; between two operations of one kernel the rounding takes several times as long as
// the operations. The pass `unrounded-values` decides and leaves its mark at the value. The mark is a permission: what
// is kept in registers stays as it is, what is written to memory is rounded (once, to nearest). XLA:CPU rounds; its
// GPU and TPU compilers do not where excess precision is allowed, the default. The mark is a frontend
// attribute, so that it survives printing and reading back. Who does not know it (the evaluator) rounds.
#pragma once
#include "strop/ir/instruction.h"

namespace strop {

inline constexpr char kUnroundedMark[] = "strop.unrounded";

inline bool MayStayUnrounded(const Instruction& value) {
  if (!value.shape().IsArray() || value.frontend_attributes().empty()) return false;
  const ElementType type = value.shape().type();
  return (type == ElementType::BF16 || type == ElementType::F32) &&
         value.frontend_attributes().count(kUnroundedMark) > 0;
}

}  // namespace strop
