#if defined(__AVX2__)
#define STROP_ISA avx2
#define STROP_VECTOR_BYTES 32
#define STROP_ROWS 6
#define STROP_VECTORS 2
#include "strop/runtime/lapack/substitution.inc"

namespace strop::lapack {
const SubstitutionIsa& SubstitutionAvx2() {
  static constexpr SubstitutionIsa kIsa = {avx2::Table<float>(), avx2::Table<double>()};
  return kIsa;
}
}  // namespace strop::lapack
#endif
