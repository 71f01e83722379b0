// AVX-512 with products of bf16 pairs; the rest is gemm_avx512_vnni.cc's.
#if defined(__AVX512BF16__)
#define STROP_ISA avx512_bf16
#define STROP_VECTOR_BYTES 64
#define STROP_MR 12
#define STROP_NRV 2
#include "strop/cpu/kernels/gemm_micro.inc"

namespace strop::cpu {
const GemmIsa& GemmAvx512Bf16() {
  static const GemmIsa kIsa = [] {
    GemmIsa isa = GemmAvx512Vnni();
    isa.name = "avx512_bf16";
    isa.bf16 = avx512_bf16::Bf16Pairs();
    isa.store_bf16 = &avx512_bf16::StoreBf16;
    return isa;
  }();
  return kIsa;
}
}  // namespace strop::cpu
#endif
