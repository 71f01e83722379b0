#if defined(__AVX512F__)
#define STROP_ISA avx512
#define STROP_VECTOR_BYTES 64
#include "strop/runtime/lapack/column_kernels.inc"

namespace strop::lapack {
const ColumnIsa& ColumnKernelsAvx512() {
  static constexpr ColumnIsa kIsa = {avx512::Table<float>(), avx512::Table<double>()};
  return kIsa;
}
}  // namespace strop::lapack
#endif
