// Plan: everything that is decided before code is generated: which programs of which steps, where each value lives,
// what is copied. Immutable once built, printable. The backend fills the kernels' bodies in, which makes it an
// ExecutableSpec.
//
//   module (Stage::Scheduled, flat tuples only around control flow) --BuildPlan--> Plan --Backend::Compile-->
//   Executable
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"
#include "strop/plan/region.h"
#include "strop/plan/target_info.h"
#include "strop/runtime/executable.h"

namespace strop {

// A step whose body the backend must supply.
struct PlannedKernel {
  int32_t program = 0;
  int32_t step = 0;
  const Instruction* instruction = nullptr;
  std::vector<int> in_place;             // per result leaf: the operand whose memory it shares, or -1
  std::shared_ptr<const Region> region;  // not null: this is to be compiled instead of the instruction alone
  bool unaligned = false;                // a result's address is aligned to its elements only
};

// A step whose target must be looked up in a registry.
struct PlannedCustomCall {
  int32_t program = 0;
  int32_t step = 0;
  const Instruction* instruction = nullptr;
};

// A copy that could not be avoided.
struct PlannedCopy {
  const Instruction* of = nullptr;  // computes the value
  const Instruction* at = nullptr;  // needs the copy
  int64_t bytes = 0;
  std::string why;  // "%dus updates it, and it is read later"
  std::string ToString() const;
};

// What a run needs: memory that lives throughout it, and the arena with the values that come and go.
struct MemoryProfile {
  struct Value {
    const Instruction* instruction = nullptr;  // computes it
    int64_t bytes = 0;
  };
  struct Moment {
    const Instruction* step = nullptr;
    int64_t live = 0;  // bytes of temporaries while it runs
  };
  int64_t arguments = 0, constants = 0;
  int64_t results = 0;           // of memory of their own
  int64_t donated = 0;           // results in the memory of arguments
  int64_t temporaries = 0;       // size of the arena
  int64_t peak = 0;              // of temporaries alive at a time; what the arena has beyond it is gaps
  int64_t unshared = 0;          // of all temporaries if each had memory of its own
  std::vector<Value> at_peak;    // the largest first
  std::vector<Moment> timeline;  // a step each, in the order of the program
  const Instruction* peak_step = nullptr;
};

struct Plan {
  ExecutableSpec spec;
  std::vector<PlannedKernel> kernels;
  std::vector<PlannedCustomCall> custom_calls;
  std::vector<PlannedCopy> copies;
  MemoryProfile memory;  // filled if asked for
  bool has_regions() const;
  std::string ToString() const;
};

// The module must outlive the plan.
Result<Plan> BuildPlan(const Module& module, const TargetInfo& target, bool profile_memory = false);

// Why a kernel ends where it does: what forbade to compute it inside the kernels of its users.
struct FusionLimit {
  const Instruction* kernel = nullptr;  // a fusion, or an instruction by itself
  std::string why;
};
// Turns groups of instructions into Op::Fusion instructions; the module gets Stage::Fused.
Status FuseModule(Module& module, const TargetInfo& target, std::vector<FusionLimit>* limits = nullptr);

enum class ScheduleOrder : uint8_t { kAsWritten, kDepthFirst, kForwards, kBackwards };  // see schedule.cc
std::string_view Name(ScheduleOrder order);

struct ScheduleDecision {
  const Computation* computation = nullptr;
  ScheduleOrder order = ScheduleOrder::kAsWritten;
  int64_t written_peak = 0, peak = 0;  // estimated bytes of temporaries: in the written order, and in this one
};

// Orders each computation's list to keep few bytes alive; the module gets Stage::Scheduled and is_scheduled.
Status ScheduleModule(Module& module, std::vector<ScheduleDecision>* decisions = nullptr);

// A value that is computed once more, so that it needs no memory in between.
struct Recomputation {
  std::string value, again;  // names; no `again`: it is only computed later than before
  std::string where;
  int64_t bytes = 0;  // freed at the peak
  std::string ToString() const;
};
// Plans a scheduled module so that a run needs at most `limit` bytes (arguments, results, constants and temporaries):
// values are computed again near their late users, as few and as cheap ones as will do; what they are is appended to
// `told`. ResourceExhausted if it cannot be done, naming what is alive at the peak.
Result<Plan> BuildPlanWithin(Module& module, const TargetInfo& target, int64_t limit, bool profile_memory,
                             std::vector<Recomputation>* told = nullptr);

// May the memory of operand `k` serve as that of result leaf `r` of this kernel? Required: it must (the plan copies
// first if it cannot).
enum class InPlace : uint8_t { No, Allowed, Required };
InPlace CanReuseOperand(const Instruction& kernel, int64_t operand, int64_t result_leaf);

}  // namespace strop
