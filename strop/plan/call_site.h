// What the runtime is told of a custom call.
#pragma once
#include "strop/ir/module.h"
#include "strop/runtime/custom_call.h"

namespace strop {

// Shapes are those of the leaves, in their default layouts; the opaque string is the call's, or its backend_config.
CustomCallSite CallSiteOf(const Instruction& custom_call);

}  // namespace strop
