// How a scatter's operand and updates lie, told in as few dimensions as it takes.
#pragma once
#include "strop/ir/instruction.h"

namespace strop::cpu {

// Dimensions of the window that follow each other in memory, in the operand and in the updates, are one.
struct ScatterGeometry {
  int64_t inputs = 1;
  Int64Vector batch_dims, window_dims;         // sizes of the updates' dimensions of either kind, in order
  int64_t updates = 1, window = 1;             // how many
  Int64Vector operand_dims, updates_dims;      // sizes
  Int64Vector operand_window, updates_window;  // of each of them, which one of window_dims it is, or -1
  Int64Vector joined, unit;  // of each dimension of the operand: of operand_dims, and how many of its elements
};
ScatterGeometry ScatterGeometryOf(const Instruction& scatter);

}  // namespace strop::cpu
