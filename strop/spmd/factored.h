// One op on shards: which of its factors are cut along which axes, and what of the op must be said differently there.
#pragma once
#include "strop/spmd/rule.h"
#include "strop/spmd/values.h"

namespace strop::spmd {

// Makes the op work on shards, where its rule allows that, and leaves its results as they are assigned. False: the op
// has no rule, or works on whole values anyway; nothing was changed.
//
// Among the ways to cut the factors (as the results are, as each operand is) the cheapest is taken: bytes moved to
// bring operands there and results back, and the work that is left on each device. `rule` was made when all shapes were
// those of whole values.
Result<bool> PartitionByFactors(Instruction& i, const Rule& rule, Values& values);

}  // namespace strop::spmd
