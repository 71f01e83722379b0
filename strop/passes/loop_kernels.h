// The pass loop-kernels with another limit than its own.
#pragma once
#include <cstdint>
#include <memory>

#include "strop/passes/pass.h"

namespace strop {

// Of loops whose carried arrays have at least so many elements.
std::unique_ptr<Pass> MakeLoopKernelsOf(int64_t fewest_elements);

}  // namespace strop
