#if defined(__AVX512F__)
#define STROP_ISA avx512
#define STROP_VECTOR_BYTES 64
#define STROP_MR 12
#define STROP_NRV 2
#include "strop/cpu/kernels/gemm_micro.inc"

namespace strop::cpu {
const GemmIsa& GemmAvx512() {
  static const GemmIsa kIsa = avx512::Make("avx512");
  return kIsa;
}
}  // namespace strop::cpu
#endif
