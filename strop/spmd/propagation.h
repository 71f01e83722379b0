// PropagateShardings(): gives every value a sharding, from those that the program states.
//
//   %x = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}     stated
//   %t = f32[4,8] transpose(%x)                                   {devices=[1,4]<=[4]}, from %x
//   %y = f32[4,8] parameter(1)                                    the same, from %s, if the caller leaves it to us
//   ROOT %s = f32[4,8] add(%t, %y)
//
// Written once over the factors of ops (rule.h), in both directions, until nothing changes. The order in which
// conflicts are decided is Shardy's: what the program states is never changed, but for dimensions that it leaves open,
// and those not along axes that it says to replicate over; dimensions of the first priority, then those of later ones;
// in each, elementwise ops, transposes and reshapes whose operands have one use, those with more, factors that pass
// through any op, all factors, and broadcasts forward last. Within an op the factor of the largest tensor comes first.
// A dimension is cut into even pieces only, unless the program says otherwise.
//
// Values that cost nothing to have in any piece (constants, iotas, broadcasts of scalars) have no sharding of their
// own. Needs calls inlined: what is in a call that stands is whole.
#pragma once
#include <functional>

#include "strop/ir/module.h"
#include "strop/spmd/call_owners.h"

namespace strop::spmd {

// Why a value has its sharding: (the value, what is said).
using Reason = std::function<void(const Instruction&, const std::string&)>;

// Fills in shardings of instructions; returns how many values got one. Parameters and results of which the program says
// nothing are given one where module.config().allow_spmd_sharding_propagation_to_* allows it. `owners` may be null;
// their errors are returned.
Result<int64_t> PropagateShardings(Module& module, const Reason& reason, const CallOwners* owners = nullptr);

// Is it had in any piece without communication?
bool IsFree(const Instruction& i);

}  // namespace strop::spmd
