// Inside the plan: what a computation's steps do to memory, for choosing their order before values have places.
//
// A model of what BuildPlan will do: aliases (tuples, reshapes, barriers) are looked through, parameters, constants and
// results cost nothing here, a kernel may take over an operand that it reads last, and a loop's carry is rewritten in
// place unless somebody reads the old value later.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "strop/ir/module.h"

namespace strop::plan_internal {

struct ScheduleBuffer {
  int64_t size = 0;      // as the arena rounds it
  bool own = true;       // takes room in the arena; not so: memory of the caller's
  bool fixed = true;     // never dies and cannot be taken over: parameters and constants
  bool carried = false;  // a parameter that a result rewrites: what overwrites it last needs no copy
  int32_t writer = -1;
  int32_t rewrites = -1;         // a result: goes to the memory of this buffer if nobody reads that any more
  std::vector<int32_t> readers;  // steps, each once
};

struct ScheduleStep {
  Instruction* instruction = nullptr;
  std::vector<int32_t> reads, writes;              // buffers, each once
  std::vector<std::pair<int32_t, int32_t>> reuse;  // (operand, result) that may share memory
  std::vector<int32_t> required;                   // operands that are overwritten, or copied first
  std::vector<int32_t> before, after;              // steps, each once
  int64_t inner = 0;                               // bytes that what it calls needs
};

// Of a computation that was scheduled: what its callers must know.
struct ScheduledFacts {
  int64_t peak = 0;
  std::vector<bool> invariant;  // result leaves that are the parameter's own (of a loop's body)
};
using FactsOf = std::map<const Computation*, ScheduledFacts>;

struct ScheduleGraph {
  std::vector<ScheduleBuffer> buffers;
  std::vector<ScheduleStep> steps;  // in list order
  std::vector<bool> invariant;
};
// Steps with side effects stay in the order that they have.
ScheduleGraph MakeScheduleGraph(const Computation& computation, const FactsOf& facts);

struct OrderCost {
  int64_t peak = 0;    // bytes of the arena
  size_t peak_at = 0;  // number in the order of the step that runs then
  int64_t copied = 0;  // bytes that are copied since an old value is still needed
};
// `order`: numbers of steps.
OrderCost CostOfOrder(const ScheduleGraph& graph, std::span<const int32_t> order);

}  // namespace strop::plan_internal
