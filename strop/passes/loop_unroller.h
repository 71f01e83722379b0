// Unrolling of short elementwise loops: see loop_unroller.cc.
#pragma once
#include <cstdint>

#include "strop/ir/module.h"

namespace strop {

// Has it at most a few trips, of elementwise instructions and moves of small arrays, in all not too many to be written
// one behind the other?
bool IsShortElementwiseLoop(const Instruction& loop, int64_t trips);
// The bodies of all trips take its place. It must not be ordered by control edges.
void UnrollLoop(Instruction* loop, int64_t trips);

}  // namespace strop
