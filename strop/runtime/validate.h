// Checks of an ExecutableSpec, so that Run needs none. Errors are InvalidArgument naming program and step.
#pragma once
#include "strop/runtime/executable.h"

namespace strop {

Status ValidateSpec(const ExecutableSpec& spec);

// Programs that a step runs.
std::vector<int32_t> ProgramsOf(const Step& step);

}  // namespace strop
