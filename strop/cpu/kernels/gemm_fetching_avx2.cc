#if defined(__AVX2__)
#define STROP_VECTOR_BYTES 32
#define STROP_MR 6
#define STROP_UNITS_A_PIECE 4
#include "strop/cpu/kernels/gemm_fetching.inc"

namespace strop::cpu {
FetchingKernels<float> FetchingAvx2(float) { return Kernels<float>(); }
FetchingKernels<double> FetchingAvx2(double) { return Kernels<double>(); }
}  // namespace strop::cpu
#endif
