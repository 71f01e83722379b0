// LU factorisation of one small matrix, for which a call of the library costs more than the arithmetic (several real
// ones: side_by_side_lu.h, with the same bits).
//
// As LAPACK's unblocked getf2 has it: column by column, the pivot is the first of the largest |x| (complex: |re| +
// |im|), a column whose pivot is zero is left and the first such is told in info. Orders that are common are compiled
// for themselves, which unrolls the loops.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

// Up to this many rows and columns the loops here beat the library's (measured: 32 in c64, and 24 in c128, are slower).
template <class T>
inline constexpr Int kSmallLu = sizeof(T) == 16 ? 12 : 24;

template <class T>
Real<T> Magnitude(T x) {
  if constexpr (kIsComplex<T>)
    return std::abs(x.real()) + std::abs(x.imag());
  else
    return std::abs(x);
}

// Complex products without the library's treatment of infinities, as LAPACK has them.
template <class T>
T Times(T a, T b) {
  if constexpr (kIsComplex<T>)
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
  else
    return a * b;
}

// kRows and kColumns are the sizes, or 0 where `m` and `n` tell them. Columns lie in a row, m elements each.
template <class T, Int kRows, Int kColumns>
void SmallLuOf(Int m, Int n, T* a, Int* pivots, Int* info) {
  if constexpr (kRows > 0) m = kRows;
  if constexpr (kColumns > 0) n = kColumns;
  *info = 0;
  for (Int k = 0; k < std::min(m, n); ++k) {
    T* column = a + k * m;
    Int pivot = k;
    Real<T> largest = Magnitude(column[k]);
    for (Int i = k + 1; i < m; ++i) {
      const Real<T> magnitude = Magnitude(column[i]);
      pivot = magnitude > largest ? i : pivot;
      largest = magnitude > largest ? magnitude : largest;
    }
    pivots[k] = pivot + 1;
    if (column[pivot] == T(0)) {
      if (*info == 0) *info = k + 1;
      continue;
    }
    if (pivot != k)
      for (Int j = 0; j < n; ++j) std::swap(a[j * m + k], a[j * m + pivot]);
    if (largest >= std::numeric_limits<Real<T>>::min()) {
      const T reciprocal = T(1) / column[k];
      for (Int i = k + 1; i < m; ++i) column[i] = Times(column[i], reciprocal);
    } else {
      for (Int i = k + 1; i < m; ++i) column[i] /= column[k];
    }
    for (Int j = k + 1; j < n; ++j) {
      T* to = a + j * m;
      const T factor = to[k];
      for (Int i = k + 1; i < m; ++i) to[i] -= Times(column[i], factor);
    }
  }
}

template <class T>
void SmallLu(Int m, Int n, T* a, Int* pivots, Int* info) {
  if (m != n) return SmallLuOf<T, 0, 0>(m, n, a, pivots, info);
  switch (n) {
    case 2: return SmallLuOf<T, 2, 2>(m, n, a, pivots, info);
    case 3: return SmallLuOf<T, 3, 3>(m, n, a, pivots, info);
    case 4: return SmallLuOf<T, 4, 4>(m, n, a, pivots, info);
    case 6: return SmallLuOf<T, 6, 6>(m, n, a, pivots, info);
    case 8: return SmallLuOf<T, 8, 8>(m, n, a, pivots, info);
    default: return SmallLuOf<T, 0, 0>(m, n, a, pivots, info);
  }
}

}  // namespace strop::lapack
