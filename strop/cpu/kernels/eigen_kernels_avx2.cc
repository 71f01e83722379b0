#if defined(__AVX2__)
#define STROP_ISA avx2
#include "strop/cpu/kernels/eigen_kernels.inc"

namespace strop::cpu {
const EigenIsa& EigenAvx2() {
  static constexpr EigenIsa kIsa = {avx2::Table<float>(), avx2::Table<double>(), avx2::Table<std::complex<float>>(),
                                    avx2::Table<std::complex<double>>()};
  return kIsa;
}
}  // namespace strop::cpu
#endif
