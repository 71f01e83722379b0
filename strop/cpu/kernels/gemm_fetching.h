// Kernels that ask for what the next tiles need while one is summed, a line at a time: asked for all at once, or as
// late as it is read, it would hold up what is read now. Tiles of narrow vectors are done so soon that a panel of B has
// to come as fast as the first-level cache hands it over; those of wide ones read twice as much of it. And
// kernels that pack the panel which they multiply (docs/adr/0037). Internal to GEMM.
#pragma once
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/cpu/kernels/memory_rows.h"

namespace strop::cpu {

// As MicroKernel of B where it lies; what it reads of B it writes to `packed`, a panel as wide as the tile.
template <class T>
using PackingKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* packed, T* c,
                               int64_t c_stride, bool accumulate);
// As MicroKernel, and asks meanwhile for pieces of memory, or copies them and asks for those some rows below, one for
// so many units.
template <class T>
using AheadKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                             bool accumulate, PiecesAhead<T>& pieces);
inline constexpr int kLineBytes = 64;

template <class T>
struct FetchingKernels {
  const PackingKernel<T>* packing = nullptr;  // [i] of i + 1 rows; null: there are none
  // The same; of those that fetch and those that copy, such as take a piece often and such as do seldom.
  const AheadKernel<T>* ahead[2][2] = {};
  int units_a_piece[2] = {1, 1};
  explicit operator bool() const { return packing != nullptr; }
};

// Of tiles as GemmAvx2() and GemmAvx512() have them. x86 only.
FetchingKernels<float> FetchingAvx2(float);
FetchingKernels<double> FetchingAvx2(double);
FetchingKernels<float> FetchingAvx512(float);
FetchingKernels<double> FetchingAvx512(double);

// Those that do what micro's kernels do, if there are any.
template <class T>
FetchingKernels<T> FetchingKernelsOf([[maybe_unused]] const MicroTable<T>& micro) {
  if constexpr (std::is_floating_point_v<T>) {
#if defined(__x86_64__)
    const int64_t vector_bytes = micro.lanes * static_cast<int64_t>(sizeof(T));
    if (micro.group > 1 || micro.nr != 2 * micro.lanes) return {};
    if (vector_bytes == 32 && micro.mr == 6) return FetchingAvx2(T());
    if (vector_bytes == 64 && micro.mr == 12) return FetchingAvx512(T());
#endif
  }
  return {};
}

}  // namespace strop::cpu
