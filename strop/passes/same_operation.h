// Whether instructions compute the same of equal operands: what cse and loop-conditions look for.
#pragma once
#include "strop/ir/instruction.h"

namespace strop {

// The same op, shape, attributes, callees, configuration and sharding; operands are the caller's to compare.
// Collectives may use different channels.
bool SameOperation(const Instruction& a, const Instruction& b);
// Equal for what SameOperation finds equal.
uint64_t HashOperation(const Instruction& i);

}  // namespace strop
