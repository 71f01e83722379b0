// Which neighbouring dimensions of a result an op treats alike, so that they can be one digit of a position.
//
//   broadcast f32[64,3] to f32[8,64,3]: [8] [64*3]      slice of whole rows: [rows*row size]      transpose {2,0,1}:
//   [2] [0,1]
//
// The emission rules use the groups for their arithmetic; the choice of the loops (loop_space.h) asks them which
// dimensions must be told apart.
#pragma once
#include <vector>

#include "strop/ir/instruction.h"

namespace strop {

struct DimGroup {
  int64_t first = 0, last = 0;  // dimensions [first, last) of the result
  int64_t size = 1;             // their product
  int64_t inner = 1;            // the product without the first
  int64_t source = -1;          // first dimension of the operand (of the indices, for a gather's batches); -1: none
};

// For broadcast, transpose, slice, reverse, pad, concatenate, dynamic-slice, dynamic-update-slice, gather, iota and
// reduce (kept dimensions of operand 0, `first` counting the result's). For other ops, every dimension by itself.
std::vector<DimGroup> ResultGroups(const Instruction& i);
Int64Vector GroupSizes(const std::vector<DimGroup>& groups);
// How many elements at the end of its result a transpose permutes among themselves; 1: it moves nothing.
int64_t PermutedTogether(const Instruction& transpose);
// Elements of the operand between neighbours along each digit of a transpose's result; empty if a digit is in several
// groups.
Int64Vector StridesInOperand(const Instruction& transpose, const Int64Vector& digits);
// Groups that have a source, in the operand's order.
std::vector<DimGroup> InSourceOrder(const std::vector<DimGroup>& groups, std::vector<size_t>* order);

}  // namespace strop
