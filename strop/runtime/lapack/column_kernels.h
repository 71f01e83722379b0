// Matrices times vectors, for reductions that go column by column, and matrices transposed: one table per instruction
// set.
//
// Matrices lie by columns, whose strides are multiples of `lanes` elements and which begin at 64 bytes; rows [0, rows)
// are read in whole vectors: what lies above the first row in its vector is read as well, and what lies behind the last
// one must be zero, in vectors too. column_kernels.inc is compiled once for each set with its own flags.
#pragma once
#include <cstdint>
#include <type_traits>

namespace strop::lapack {

template <class T>
struct ColumnKernels {
  int64_t lanes = 0;
  // y[i] += sum of a(i, k) c[k] over columns k, for rows i in [begin, rows).
  void (*add_product)(int64_t begin, int64_t rows, int64_t columns, const T* a, int64_t stride, const T* c,
                      T* y) = nullptr;
  // sums[k] = sum of a(i, k) x[i] over rows [begin, rows); groups of `lanes` columns are read, and sums written, whole.
  void (*dots)(int64_t begin, int64_t rows, int64_t columns, const T* a, int64_t stride, const T* x, T* sums) = nullptr;
  // Sum of x[i] y[i] over rows [begin, rows), from the vector on in which row `begin` is.
  T (*dot)(int64_t begin, int64_t rows, const T* x, const T* y) = nullptr;
  // y += what columns [begin, end) of a symmetric matrix, of which the lower triangle is read, contribute to a x, by
  // their rows above the diagonal, too. Groups of `lanes` columns are read whole: where x is zero they must be finite.
  void (*add_symmetric)(int64_t begin, int64_t end, int64_t rows, const T* a, int64_t stride, const T* x,
                        T* y) = nullptr;
  // to[j * to_stride + i] = from[i * stride + j] for i < rows, j < columns; neither need be aligned.
  void (*transpose)(int64_t rows, int64_t columns, const T* from, int64_t stride, T* to, int64_t to_stride) = nullptr;

  int64_t RoundUp(int64_t n) const { return (n + lanes - 1) / lanes * lanes; }
};

struct ColumnIsa {
  ColumnKernels<float> f32;
  ColumnKernels<double> f64;
};

const ColumnIsa& ColumnKernelsBaseline();
const ColumnIsa& ColumnKernelsAvx2();    // x86 only
const ColumnIsa& ColumnKernelsAvx512();  // x86 only
// The best that this processor runs.
const ColumnIsa& BestColumnIsa();

template <class T>
const ColumnKernels<T>& BestColumnKernels() {
  if constexpr (std::is_same_v<T, float>)
    return BestColumnIsa().f32;
  else
    return BestColumnIsa().f64;
}

}  // namespace strop::lapack
