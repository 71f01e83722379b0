// PartitionModule(): from a program on whole values, with shardings, to the program that each partition runs on its
// shards.
//
// Inside, every value is whole on every partition: parameters are gathered from their shards, results cut into theirs.
// That is right for every op and costs the memory and the work of one device on each; sharding propagation is to make
// it cheaper, value by value. Manual regions (shard_map, pmap) run on shards as they are written: values are cut on the
// way in and gathered on the way out. A call that only one device shall make (a sharding {maximal device=d} of a custom
// call, as host callbacks have) is made there and its results are sent to the others.
//
//   %p = f32[8,4] parameter(0), sharding={devices=[4,1]<=[4]}       %p = f32[2,4] parameter(0)
//   ROOT %r = f32[8,4] negate(%p), sharding={devices=[1,2,2]...} -> %w = f32[8,4] of an all-gather; %r = negate(%w);
//                                                                   ROOT f32[8,2] dynamic-slice(%r, starts of
//                                                                   partition-id())
//
// Errors: InvalidArgument and Unimplemented of shardings (shards.h), at the value's place in the user's program.
#pragma once
#include "strop/ir/module.h"

namespace strop::spmd {

// A custom call that says something about its operand (its sharding, layout, memory) and is that operand.
bool IsMark(const Instruction& instruction);

// Nothing happens to a module of one partition. Returns how many values were cut, gathered or sent.
Result<int64_t> PartitionModule(Module& module);

}  // namespace strop::spmd
