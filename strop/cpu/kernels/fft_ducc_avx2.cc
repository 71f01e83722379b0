#if defined(__AVX2__)
#define STROP_ISA avx2
#include "strop/cpu/kernels/fft_ducc.inc"

namespace strop::cpu {
const FftTable& FftTableAvx2() { return avx2::kFftTable; }
}  // namespace strop::cpu
#endif
