// AVX-512 with one instruction for the products of a pair, or of four bytes, and their sum; the rest is
// gemm_avx512.cc's.
#if defined(__AVX512VNNI__)
#define STROP_ISA avx512_vnni
#define STROP_VECTOR_BYTES 64
#define STROP_MR 12
#define STROP_NRV 2
#include "strop/cpu/kernels/gemm_micro.inc"

namespace strop::cpu {
const GemmIsa& GemmAvx512Vnni() {
  static const GemmIsa kIsa = [] {
    GemmIsa isa = GemmAvx512();
    isa.name = "avx512_vnni";
    isa.s16 = avx512_vnni::Pairs();
    isa.bytes[0][0] = avx512_vnni::Quads(/*biased=*/true);
    isa.bytes[1][0] = avx512_vnni::Quads(/*biased=*/false);
    return isa;
  }();
  return kIsa;
}
}  // namespace strop::cpu
#endif
