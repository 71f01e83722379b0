// Kernels for narrow vectors, whose tiles are done so soon that a panel of B has to come as fast as the first-level
// cache hands it over. What the next tiles need is asked for while one is summed, a line at a time: asked for all at
// once, or as late as it is read, it would hold up what is read now. Internal to GEMM.
#pragma once
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"

namespace strop::cpu {

// As MicroKernel, and asks meanwhile for the memory from `next` on, into the second-level cache: a line for each
// kUnitsALine units.
template <class T>
using FetchingKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                                bool accumulate, const T* next);
inline constexpr int kLineBytes = 64, kUnitsALine = 4;

// Of vectors of 32 bytes, of tiles as GemmAvx2() has them: [i] of i + 1 rows. x86 only.
inline constexpr int kFetchingRows = 6;
const FetchingKernel<float>* FetchingAvx2(float);
const FetchingKernel<double>* FetchingAvx2(double);

// Those that do what micro's kernels do; null if there are none.
template <class T>
const FetchingKernel<T>* FetchingKernelsOf([[maybe_unused]] const MicroTable<T>& micro) {
  if constexpr (std::is_floating_point_v<T>) {
#if defined(__x86_64__)
    const bool same = micro.lanes * sizeof(T) == 32 && micro.mr == kFetchingRows && micro.nr == 2 * micro.lanes;
    if (same && micro.group == 1) return FetchingAvx2(T());
#endif
  }
  return nullptr;
}

}  // namespace strop::cpu
