#if defined(__AVX512F__)
#define STROP_VECTOR_BYTES 64
#define STROP_MR 12
#define STROP_UNITS_A_PIECE 4
#include "strop/cpu/kernels/gemm_fetching.inc"

namespace strop::cpu {
FetchingKernels<float> FetchingAvx512(float) { return Kernels<float>(); }
FetchingKernels<double> FetchingAvx512(double) { return Kernels<double>(); }
}  // namespace strop::cpu
#endif
