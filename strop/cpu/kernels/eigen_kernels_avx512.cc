#if defined(__AVX512F__)
#define STROP_ISA avx512
#include "strop/cpu/kernels/eigen_kernels.inc"

namespace strop::cpu {
// Wider vectors help complex numbers only (twice as fast): Eigen solves a wider diagonal block without vectors then,
// and its real products are as fast with AVX2. Measured with Eigen 3.4 on an EPYC.
const EigenIsa& EigenAvx512() {
  static const EigenIsa kIsa = {EigenAvx2().f32, EigenAvx2().f64, avx512::Table<std::complex<float>>(),
                                avx512::Table<std::complex<double>>()};
  return kIsa;
}
}  // namespace strop::cpu
#endif
