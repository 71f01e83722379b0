// Ops on parts of a sum. A value that lies unreduced has a part on each device, and the value is the sum of the parts.
// What is linear can be done with the parts, so that they are summed once, at the end:
//
//   %g = dot(%x, %y), contracted along a cut dimension     parts
//   %t = transpose(%g), wanted unreduced                   of each part
//   %s = add(%t, %acc), both unreduced                     part by part
//
// Only where the program wants the result unreduced: elsewhere parts are summed at once, as they were made.
#pragma once
#include "strop/spmd/values.h"

namespace strop::spmd {

// The axes along which operands are in parts, and the result stays so.
Axes KeptParts(const Instruction& i, const Values& values, const std::vector<Spec>& wanted);
// The form of operand k with these axes as well, if it is read in parts along them; other operands are read whole.
Spec WithParts(Spec spec, const Instruction& i, const Values& values, int64_t k, const Axes& kept);
// The same of the result.
Spec WithParts(Spec spec, const Axes& kept);

}  // namespace strop::spmd
