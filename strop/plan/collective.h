// Collectives as steps of the runtime.
#pragma once
#include "strop/ir/module.h"
#include "strop/runtime/executable.h"

namespace strop {

bool IsCollective(Op op);

// Who meets whom, in logical ids (replica * num_partitions + partition). Of a permute the pairs, of others the groups.
struct Meeting {
  std::vector<std::vector<int32_t>> groups;
  std::vector<std::pair<int32_t, int32_t>> source_target;
};
Result<Meeting> MeetingOf(const Instruction& collective, const ModuleConfig& config);

// For a program on several devices. Unimplemented, saying why, for forms that the runtime has no step for.
Result<CollectiveStep> MakeCollectiveStep(const Instruction& collective, const ModuleConfig& config);

}  // namespace strop
