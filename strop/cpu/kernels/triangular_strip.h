// The core that Cholesky and triangular solve share: forward substitution L X = B on a strip of B that is two vectors
// wide.
//
//   for each group of 4 rows:  X[rows] = B[rows] - L[rows, 0:first] X[0:first]     sums in registers, k in order
//                              then the 4 x 4 triangle on the diagonal
//
// A strip is stored as rows of kWidth reals; complex ones as two planes (real, imaginary). L may have any strides, also
// negative ones, and may be conjugated, which makes all transposed, upper and adjoint cases the same.
#pragma once
#include <cmath>
#include <cstdint>

namespace strop::cpu {

// Element (r, c) is re[r * row + c * col] (+ i * sign * im[...] if im is not null).
template <class R>
struct MatrixView {
  const R* re = nullptr;
  const R* im = nullptr;
  int64_t row = 0, col = 0;
  R sign = 1;  // -1: conjugated

  R real(int64_t r, int64_t c) const { return re[r * row + c * col]; }
  R imag(int64_t r, int64_t c) const { return sign * im[r * row + c * col]; }
};

template <class R>
struct Strip {
  static constexpr int64_t kWidth = 64 / sizeof(R);
  R* re = nullptr;
  R* im = nullptr;  // null for real types

  Strip row(int64_t r) const { return {re + r * kWidth, im ? im + r * kWidth : nullptr}; }
};

namespace internal {

typedef float FloatVector __attribute__((vector_size(32), aligned(4), may_alias));
typedef double DoubleVector __attribute__((vector_size(32), aligned(8), may_alias));
template <class R>
struct VectorOf {
  using Type = FloatVector;
};
template <>
struct VectorOf<double> {
  using Type = DoubleVector;
};

// c[i] -= sum over k < depth of a(row0 + i, k) x[k], for i < kRows.
template <class R, int kRows>
inline __attribute__((always_inline)) void SubtractReal(const MatrixView<R>& a, int64_t row0, int64_t depth, const R* x,
                                                        R* c) {
  using V = typename VectorOf<R>::Type;
  constexpr int64_t kWidth = Strip<R>::kWidth, kHalf = kWidth / 2;
  V sum[kRows][2];
  for (int i = 0; i < kRows; ++i) {
    for (int h = 0; h < 2; ++h) sum[i][h] = *reinterpret_cast<const V*>(c + i * kWidth + h * kHalf);
  }
  for (int64_t k = 0; k < depth; ++k) {
    V x0 = *reinterpret_cast<const V*>(x + k * kWidth), x1 = *reinterpret_cast<const V*>(x + k * kWidth + kHalf);
    for (int i = 0; i < kRows; ++i) {
      R factor = a.real(row0 + i, k);
      sum[i][0] -= factor * x0;
      sum[i][1] -= factor * x1;
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int h = 0; h < 2; ++h) *reinterpret_cast<V*>(c + i * kWidth + h * kHalf) = sum[i][h];
  }
}

template <class R, int kRows>
inline __attribute__((always_inline)) void SubtractComplex(const MatrixView<R>& a, int64_t row0, int64_t depth,
                                                           const Strip<R>& x, const Strip<R>& c) {
  using V = typename VectorOf<R>::Type;
  constexpr int64_t kWidth = Strip<R>::kWidth, kHalf = kWidth / 2;
  for (int h = 0; h < 2; ++h) {  // one vector at a time: twice the sums would not fit the registers
    V re[kRows], im[kRows];
    for (int i = 0; i < kRows; ++i) {
      re[i] = *reinterpret_cast<const V*>(c.re + i * kWidth + h * kHalf);
      im[i] = *reinterpret_cast<const V*>(c.im + i * kWidth + h * kHalf);
    }
    for (int64_t k = 0; k < depth; ++k) {
      V xr = *reinterpret_cast<const V*>(x.re + k * kWidth + h * kHalf);
      V xi = *reinterpret_cast<const V*>(x.im + k * kWidth + h * kHalf);
      for (int i = 0; i < kRows; ++i) {
        R ar = a.real(row0 + i, k), ai = a.imag(row0 + i, k);
        re[i] -= ar * xr - ai * xi;
        im[i] -= ar * xi + ai * xr;
      }
    }
    for (int i = 0; i < kRows; ++i) {
      *reinterpret_cast<V*>(c.re + i * kWidth + h * kHalf) = re[i];
      *reinterpret_cast<V*>(c.im + i * kWidth + h * kHalf) = im[i];
    }
  }
}

}  // namespace internal

// Rows [row0, row0 + rows) of c -= a(those rows, 0:depth) * x. `c` points to the first of the rows.
template <class R>
inline __attribute__((always_inline)) void SubtractProduct(const MatrixView<R>& a, int64_t row0, int64_t rows,
                                                           int64_t depth, const Strip<R>& x, const Strip<R>& c) {
  int64_t r = 0;
  if (c.im) {
    for (; r + 2 <= rows; r += 2) internal::SubtractComplex<R, 2>(a, row0 + r, depth, x, c.row(r));
    for (; r < rows; ++r) internal::SubtractComplex<R, 1>(a, row0 + r, depth, x, c.row(r));
  } else {
    for (; r + 4 <= rows; r += 4) internal::SubtractReal<R, 4>(a, row0 + r, depth, x.re, c.row(r).re);
    for (; r < rows; ++r) internal::SubtractReal<R, 1>(a, row0 + r, depth, x.re, c.row(r).re);
  }
}

// row /= (dr + i di), elementwise; Smith's method for complex divisors, which neither over- nor underflows early.
template <class R>
inline void DivideRow(const Strip<R>& row, R dr, R di) {
  constexpr int64_t kWidth = Strip<R>::kWidth;
  if (!row.im) {
    for (int64_t w = 0; w < kWidth; ++w) row.re[w] /= dr;
    return;
  }
  const bool real_larger = std::fabs(dr) >= std::fabs(di);
  const R ratio = real_larger ? (dr == 0 ? di : di / dr) : dr / di;
  const R scale = real_larger ? dr + di * ratio : dr * ratio + di;
  for (int64_t w = 0; w < kWidth; ++w) {
    R re = row.re[w], im = row.im[w];
    row.re[w] = (real_larger ? re + im * ratio : re * ratio + im) / scale;
    row.im[w] = (real_larger ? im - re * ratio : im * ratio - re) / scale;
  }
}

// Solves L X = B in place for the first n rows of the strip.
template <class R>
inline __attribute__((always_inline)) void SolveStrip(const MatrixView<R>& lower, bool unit_diagonal, int64_t n,
                                                      const Strip<R>& b) {
  constexpr int64_t kGroup = 4;
  for (int64_t first = 0; first < n; first += kGroup) {
    int64_t rows = n - first < kGroup ? n - first : kGroup;
    SubtractProduct(lower, first, rows, first, b, b.row(first));
    for (int64_t r = first; r < first + rows; ++r) {
      MatrixView<R> tail = lower;  // columns from `first` on
      tail.re += first * lower.col;
      if (tail.im) tail.im += first * lower.col;
      SubtractProduct(tail, r, 1, r - first, b.row(first), b.row(r));
      if (!unit_diagonal) DivideRow(b.row(r), lower.real(r, r), b.im ? lower.imag(r, r) : R{0});
    }
  }
}

}  // namespace strop::cpu
