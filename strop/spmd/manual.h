// Which instructions work on what one device has: those between the ways into and out of a manual region (shard_map),
// and what is made of a device's number or of collectives. They run as they are written; shardings do not reach them.
#pragma once
#include <string_view>

#include "strop/ir/module.h"

namespace strop::spmd {

// "SPMDFullToShardShape" and Shardy's "xla.sdy.GlobalToLocalShape"; and the ways back.
bool IsWayIn(const Instruction& call);
bool IsWayOut(const Instruction& call);
// A custom call that says something about its operand (its sharding, layout, memory) and is that operand.
bool IsMark(const Instruction& instruction);

// Does anything in the module say how values lie over devices? Otherwise each device runs it as it is.
bool StatesShardings(const Module& module);

// Functions of single elements, as reductions have, lie nowhere: what marks say there of their values goes.
void RemoveMarksOfElements(Module& module);

// A dynamic-slice at places that are known is a slice: of that neighbours know what they need.
void SliceWhereKnown(Module& module);

class ManualRegions {
 public:
  explicit ManualRegions(const Module& module);
  bool Has(const Instruction& i) const { return i.id() < static_cast<int64_t>(local_.size()) && local_[i.id()]; }

 private:
  bool Visit(const Computation& computation, bool parameters);
  bool IsLocal(const Instruction& i);

  std::vector<bool> local_;  // by id of the instruction
};

}  // namespace strop::spmd
