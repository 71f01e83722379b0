// What an artifact that is linked into a program has besides the executable.
#pragma once
#include "strop/runtime/artifact.h"

namespace strop::cpu {

inline constexpr uint32_t kFeaturesSection = SectionName("feat");  // of the processor, as LLVM lists them

}  // namespace strop::cpu
