#define STROP_ISA baseline
#define STROP_VECTOR_BYTES 16
#define STROP_MR 4
#define STROP_NRV 2
#include "strop/cpu/kernels/gemm_micro.inc"

namespace strop::cpu {

const GemmIsa& GemmBaseline() {
  static const GemmIsa kIsa = baseline::Make("baseline");
  return kIsa;
}

int GemmIsas(const GemmIsa* (&isas)[kMostGemmIsas]) {
  int n = 0;
  isas[n++] = &GemmBaseline();
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx2) isas[n++] = &GemmAvx2();
  if (avx512) isas[n++] = &GemmAvx512();
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (vnni) isas[n++] = &GemmAvx512Vnni();
  if (vnni && __builtin_cpu_supports("avx512bf16")) isas[n++] = &GemmAvx512Bf16();
#endif
  return n;
}

const GemmIsa& BestGemmIsa() {
  static const GemmIsa& kBest = []() -> const GemmIsa& {
    const GemmIsa* isas[kMostGemmIsas];
    const int n = GemmIsas(isas);
    return *isas[n - 1];
  }();
  return kBest;
}

}  // namespace strop::cpu
