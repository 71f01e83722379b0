#if defined(__AVX512F__)
#define STROP_ISA avx512
#include "strop/cpu/kernels/eigen_kernels.inc"

namespace strop::cpu {
const EigenIsa& EigenAvx512() { return avx512::kEigenIsa; }
}  // namespace strop::cpu
#endif
