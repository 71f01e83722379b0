#define STROP_ISA baseline
#define STROP_VECTOR_BYTES 16
#define STROP_ROWS 6
#define STROP_VECTORS 2
#include "strop/runtime/lapack/substitution.inc"

namespace strop::lapack {

const SubstitutionIsa& SubstitutionBaseline() {
  static constexpr SubstitutionIsa kIsa = {baseline::Table<float>(), baseline::Table<double>()};
  return kIsa;
}

const SubstitutionIsa& BestSubstitutionIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool kAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kAvx512) return SubstitutionAvx512();
  if (kAvx2) return SubstitutionAvx2();
#endif
  return SubstitutionBaseline();
}

}  // namespace strop::lapack
