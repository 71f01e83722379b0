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

// The same for how vectors multiply f32: without those that take it apart (GemmIsa::thirds), which go another way.
inline std::vector<GemmIsa> IsasOfVectors() {
  std::vector<GemmIsa> all;
  for (const GemmIsa* isa : AllIsas()) all.push_back(*isa), all.back().thirds = {};
  return all;
}

}  // namespace strop::cpu
