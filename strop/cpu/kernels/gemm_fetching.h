// Kernels that ask for what the next tiles need while one is summed, a line at a time: asked for all at once, or as
// late as it is read, it would hold up what is read now. Tiles of narrow vectors are done so soon that a panel of B has
// to come as fast as the first-level cache hands it over; those of wide ones read twice as much of it. And
// kernels that pack the panel which they multiply (docs/adr/0037). Internal to GEMM.
#pragma once
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"

namespace strop::cpu {

// Pairs of lines, `stride` bytes apart, to ask for into the second-level cache.
struct LinesAhead {
  const uint8_t* from = nullptr;
  int64_t stride = 0;
};
inline constexpr int64_t kPairBytes = 128;
// As MicroKernel, and asks meanwhile for lines.
template <class T>
using FetchingKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                                bool accumulate, LinesAhead next);
// As MicroKernel of B where it lies; what it reads of B it writes to `packed`, a panel as wide as the tile.
template <class T>
using PackingKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* packed, T* c,
                               int64_t c_stride, bool accumulate);
// Rows of B, `stride` elements apart, that become panels, a tile wide and `distance` apart.
template <class T>
struct RowsAhead {
  const T* from = nullptr;
  int64_t stride = 0;
  T* to = nullptr;
  int64_t panels = 0, distance = 0;
  int64_t count = 0;  // of pieces, each a row of a panel
  int64_t panel = 0;  // of the next one
};
// As MicroKernel, and copies pieces meanwhile, one for so many units, and asks for those below them.
template <class T>
using CopyingKernel = void (*)(int64_t units, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride,
                               bool accumulate, RowsAhead<T>& rows);
inline constexpr int kLineBytes = 64;

template <class T>
struct FetchingKernels {
  const FetchingKernel<T>* of_rows = nullptr;  // [i] of i + 1 rows; null: there are none
  const PackingKernel<T>* packing = nullptr;   // the same
  const CopyingKernel<T>* copying[2] = {};     // the same; a row for units_a_copy units
  int units_a_copy[2] = {1, 1};
  int units_a_pair = 1;  // of lines that are asked for
  explicit operator bool() const { return of_rows != nullptr; }
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
