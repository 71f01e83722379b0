#if defined(__AVX2__)
#define STROP_ISA avx2
#define STROP_VECTOR_BYTES 32
#include "strop/runtime/lapack/column_kernels.inc"

namespace strop::lapack {
const ColumnIsa& ColumnKernelsAvx2() {
  static constexpr ColumnIsa kIsa = {avx2::Table<float>(), avx2::Table<double>()};
  return kIsa;
}
}  // namespace strop::lapack
#endif
