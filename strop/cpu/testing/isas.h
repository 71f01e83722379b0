// The instruction sets that the tests of library kernels go through.
#pragma once
#include <vector>

#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/cpu/testing/step_kernels.h"

namespace strop::cpu {

// Those of this machine, and one that is none (step_kernels.h).
inline std::vector<const GemmIsa*> AllIsas() {
  const GemmIsa* isas[kMostGemmIsas];
  const int n = GemmIsas(isas);
  std::vector<const GemmIsa*> all(isas, isas + n);
  all.push_back(&testing::StepIsa());
  return all;
}

}  // namespace strop::cpu
