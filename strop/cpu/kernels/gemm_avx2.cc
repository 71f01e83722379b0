#if defined(__AVX2__)
#define STROP_ISA avx2
#define STROP_VECTOR_BYTES 32
#define STROP_MR 6
#define STROP_NRV 2
#include "strop/cpu/kernels/gemm_micro.inc"

namespace strop::cpu {
const GemmIsa& GemmAvx2() {
  static const GemmIsa kIsa = avx2::Make("avx2");
  return kIsa;
}
}  // namespace strop::cpu
#endif
