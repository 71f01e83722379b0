#if defined(__AVX2__)
#define STROP_ISA avx2
#define STROP_VECTOR_BYTES 32
#include "strop/cpu/kernels/fft_pair.inc"

namespace strop::cpu {
const FftPairIsa& FftPairAvx2() { return avx2::kFftPair; }
}  // namespace strop::cpu
#endif
