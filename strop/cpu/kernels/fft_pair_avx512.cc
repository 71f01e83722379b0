#if defined(__AVX512F__)
#define STROP_ISA avx512
#define STROP_VECTOR_BYTES 64
#include "strop/cpu/kernels/fft_pair.inc"

namespace strop::cpu {
const FftPairIsa& FftPairAvx512() { return avx512::kFftPair; }
}  // namespace strop::cpu
#endif
