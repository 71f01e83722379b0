#if defined(__AVX512F__)
#define STROP_ISA avx512
#define STROP_VECTOR_BYTES 64
#define STROP_ROWS 6
#define STROP_VECTORS 4
#include "strop/runtime/lapack/substitution.inc"

namespace strop::lapack {
const SubstitutionIsa& SubstitutionAvx512() {
  static constexpr SubstitutionIsa kIsa = {avx512::Table<float>(), avx512::Table<double>()};
  return kIsa;
}
}  // namespace strop::lapack
#endif
