#if defined(__AVX2__)
#define STROP_ISA avx2
#include "strop/cpu/kernels/eigen_kernels.inc"

namespace strop::cpu {
const EigenIsa& EigenAvx2() { return avx2::kEigenIsa; }
}  // namespace strop::cpu
#endif
