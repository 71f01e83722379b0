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

const GemmIsa& BestGemmIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool kAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kAvx512) return GemmAvx512();
  if (kAvx2) return GemmAvx2();
#endif
  return GemmBaseline();
}

}  // namespace strop::cpu
