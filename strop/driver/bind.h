// Inside the driver: fills the holes of a plan, kernels by the backend, custom calls from the registry.
#pragma once
#include "strop/driver/compile.h"
#include "strop/plan/plan.h"

namespace strop {

// Bodies, costs and code of plan.kernels; notes what is interpreted in `explanation`.
Status BindKernels(Plan& plan, const Backend& backend, const CompileSettings& options, Explanation& explanation);
// NotFound, at the user's line, for a target that nobody registered.
Status BindCustomCalls(Plan& plan, const CompileSettings& options);

}  // namespace strop
