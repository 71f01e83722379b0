// Unwritten arrays: a broadcast whose elements nobody reads before they are written need not be written itself.
//
//   %zeros = f32[100,4096] broadcast(0)                      a loop of 100 trips that puts a row into each place of it
//
// The pass `unwritten-stacks` finds them and leaves its mark; the plan gives such an array its memory and no kernel.
// Who does not know the mark (the evaluator) writes it. The mark is a frontend attribute, so that it survives printing
// and reading back.
#pragma once
#include "strop/ir/instruction.h"

namespace strop {

inline constexpr char kUnwrittenMark[] = "strop.unwritten";

// Of a broadcast, alone or as all that a fusion gives.
inline bool MayStayUnwritten(const Instruction& value) {
  const Instruction& made = value.op() == Op::Fusion ? *value.called(0)->root() : value;
  return made.op() == Op::Broadcast && made.frontend_attributes().count(kUnwrittenMark) > 0;
}

}  // namespace strop
