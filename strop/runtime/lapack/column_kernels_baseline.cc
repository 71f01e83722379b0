#define STROP_ISA baseline
#define STROP_VECTOR_BYTES 16
#include "strop/runtime/lapack/column_kernels.inc"

namespace strop::lapack {

const ColumnIsa& ColumnKernelsBaseline() {
  static constexpr ColumnIsa kIsa = {baseline::Table<float>(), baseline::Table<double>()};
  return kIsa;
}

const ColumnIsa& BestColumnIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool kAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kAvx512) return ColumnKernelsAvx512();
  if (kAvx2) return ColumnKernelsAvx2();
#endif
  return ColumnKernelsBaseline();
}

}  // namespace strop::lapack
