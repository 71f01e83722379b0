// PartitionModule(): from a program on whole values, with shardings, to the program that each partition runs on its
// shards.
//
// Each value lies as its sharding says (propagation.h gives one to all). An op works on shards where its rule allows it
// (factored.h); where it does not, its operands are gathered, it is computed whole on every partition, and users take
// their pieces of the result, which costs nothing. Manual regions (shard_map, pmap) run on shards as they are written.
// A call that only one device shall make (a sharding {maximal device=d} of a custom call, as host callbacks have) is
// made there and its results are sent to the others.
//
//   %p = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}             %p = f32[2,4] parameter(0)
//   %n = f32[8,4] negate(%p), sharding={devices=[4,1]<=[4]}        ->     %n = f32[2,4] negate(%p)
//   ROOT %r = f32[4] reduce(%n, 0), dimensions={0}, to_apply=add          ROOT f32[4] all-reduce(f32[4] reduce(%n, 0))
//
// Errors: InvalidArgument and Unimplemented of shardings (shards.h), at the value's place in the user's program.
#pragma once
#include <functional>

#include "strop/ir/module.h"
#include "strop/spmd/call_owners.h"
#include "strop/spmd/manual.h"

namespace strop::spmd {

// Frontend attributes of modules whose shapes are those of shards: that they are, and a sharding for each leaf of the
// parameters and of the result. They survive printing and reading back.
inline constexpr char kPartitionedMark[] = "strop.partitioned";
inline constexpr char kParameterShardings[] = "strop.parameter_shardings";
inline constexpr char kResultShardings[] = "strop.result_shardings";

// Told of each op that is computed whole although an operand lies in shards.
using WholeOp = std::function<void(const Instruction&)>;

// Nothing happens to a module of one partition. Returns how many values are cut, exchanged or sent. `owners` may be
// null.
Result<int64_t> PartitionModule(Module& module, const WholeOp& told, const CallOwners* owners = nullptr);

}  // namespace strop::spmd
