#define STROP_ISA baseline
#include "strop/cpu/kernels/eigen_kernels.inc"

namespace strop::cpu {

const EigenIsa& EigenBaseline() {
  static constexpr EigenIsa kIsa = {baseline::Table<float>(), baseline::Table<double>(),
                                    baseline::Table<std::complex<float>>(), baseline::Table<std::complex<double>>()};
  return kIsa;
}

const EigenIsa& BestEigenIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool kAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kAvx512) return EigenAvx512();
  if (kAvx2) return EigenAvx2();
#endif
  return EigenBaseline();
}

}  // namespace strop::cpu
