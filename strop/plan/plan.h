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
};

// A step whose target must be looked up in a registry.
struct PlannedCustomCall {
  int32_t program = 0;
  int32_t step = 0;
  const Instruction* instruction = nullptr;
};

struct Plan {
  ExecutableSpec spec;
  std::vector<PlannedKernel> kernels;
  std::vector<PlannedCustomCall> custom_calls;
  // Why values were copied: "copy of %x (400 B): %dus updates it while it is still read by %add" — for explain.
  std::vector<std::string> copy_reasons;
  bool has_regions() const;
  std::string ToString() const;
};

// The module must outlive the plan.
Result<Plan> BuildPlan(const Module& module, const TargetInfo& target);

// Turns groups of instructions into Op::Fusion instructions; the module gets Stage::Fused. `why_not`, if given,
// collects a line per edge that could have been fused and was not.
Status FuseModule(Module& module, const TargetInfo& target, std::vector<std::string>* why_not = nullptr);

enum class ScheduleOrder : uint8_t { kAsWritten, kDepthFirst, kForwards, kBackwards };  // see schedule.cc
std::string_view Name(ScheduleOrder order);

struct ScheduleDecision {
  const Computation* computation = nullptr;
  ScheduleOrder order = ScheduleOrder::kAsWritten;
  int64_t written_peak = 0, peak = 0;  // estimated bytes of temporaries: in the written order, and in this one
};

// Orders each computation's list to keep few bytes alive; the module gets Stage::Scheduled and is_scheduled.
Status ScheduleModule(Module& module, std::vector<ScheduleDecision>* decisions = nullptr);

// May the memory of operand `k` serve as that of result leaf `r` of this kernel? Required: it must (the plan copies
// first if it cannot).
enum class InPlace : uint8_t { No, Allowed, Required };
InPlace CanReuseOperand(const Instruction& kernel, int64_t operand, int64_t result_leaf);

}  // namespace strop
