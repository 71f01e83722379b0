#define STROP_ISA baseline
#include "strop/cpu/kernels/fft_ducc.inc"

namespace strop::cpu {

const FftTable& FftTableBaseline() { return baseline::kFftTable; }

}  // namespace strop::cpu
