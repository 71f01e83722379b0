// Collectives as steps of the runtime.
#pragma once
#include "strop/ir/module.h"
#include "strop/runtime/executable.h"

namespace strop {

bool IsCollective(Op op);
// For a program on several devices. Unimplemented, saying why, for forms that the runtime has no step for.
Result<CollectiveStep> MakeCollectiveStep(const Instruction& collective, const ModuleConfig& config);

}  // namespace strop
