// Small matrices of a batch factored side by side, one in each lane of a vector: LU and Cholesky of real numbers.
//
// A matrix of order 16 is too short for vectors along its columns, and a call of the library costs more than its
// arithmetic. Each lane computes what LAPACK's unblocked getf2 and potf2 do, in their order, so a matrix's
// bits do not depend on its neighbours.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "strop/base/arrays_in_lanes.h"
#include "strop/base/isa.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class T>
class SideBySide {
 public:
  static constexpr int kLanes = ArraysInLanes<T>::kLanes;  // matrices at a time
  static constexpr Int kMaxOrder = 32;                     // 32 kB of f32: the first cache holds them
  using Vec = typename ArraysInLanes<T>::Vec;
  using Integer = typename ArraysInLanes<T>::Integer;
  using Mask = typename ArraysInLanes<T>::Mask;

  // Elements of T that the functions below work in, aligned as vectors are.
  static int64_t WorkElements(int64_t rows, int64_t columns) { return rows * columns * kLanes; }

  // `count` <= kLanes matrices of m rows and n columns, column by column, in place; pivots and info as getrf has them.
  // Orders that are common are compiled for themselves: their loops are short.
  static void Lu(Int m, Int n, int64_t count, T* a, Int* pivots, Int* info, T* work) {
    if (m != n) return LuOf<0>(m, n, count, a, pivots, info, work);
    switch (n) {
      case 3: return LuOf<3>(m, n, count, a, pivots, info, work);
      case 4: return LuOf<4>(m, n, count, a, pivots, info, work);
      case 6: return LuOf<6>(m, n, count, a, pivots, info, work);
      case 8: return LuOf<8>(m, n, count, a, pivots, info, work);
      default: return LuOf<0>(m, n, count, a, pivots, info, work);
    }
  }
  template <Int kOrder>
  static void LuOf(Int rows, Int columns, int64_t count, T* a, Int* pivots, Int* info, T* work) {
    WithVectors([=] {
      const Int m = kOrder > 0 ? kOrder : rows, n = kOrder > 0 ? kOrder : columns;
      Vec* s = reinterpret_cast<Vec*>(work);
      const int64_t elements = int64_t{m} * n;
      ArraysInLanes<T>::Gather(elements, count, a, s);
      const Int steps = std::min(m, n);
      Mask first_zero{};
      for (Int k = 0; k < steps; ++k) {
        Vec* column = s + int64_t{k} * m;
        const Mask chosen = Pivot(m, k, column);
        for (int64_t l = 0; l < count; ++l) pivots[l * steps + k] = static_cast<Int>(chosen[l]) + 1;
        Exchange(m, n, k, chosen, s);
        const Mask zero = column[k] == Vec{};
        const bool none = !Any(zero);
        if (!none) first_zero = (first_zero == 0) & zero ? Mask{} + (k + 1) : first_zero;
        Divide(m, k, zero, column);
        for (Int j = k + 1; j < n; ++j) {
          Vec* to = s + int64_t{j} * m;
          const Vec factor = to[k];
          if (none)
            for (Int i = k + 1; i < m; ++i) to[i] -= column[i] * factor;
          else
            for (Int i = k + 1; i < m; ++i) to[i] = zero ? to[i] : to[i] - column[i] * factor;
        }
      }
      for (int64_t l = 0; l < count; ++l) info[l] = static_cast<Int>(first_zero[l]);
      ArraysInLanes<T>::Scatter(elements, count, s, a);
    });
  }

  // The named triangle of symmetric matrices becomes their factor, as potrf has it: column by column, what the columns
  // before contribute subtracted in their order. A matrix that is not positive definite has the number of the first
  // column that shows it in info, and nothing of use in its triangle.
  static void Cholesky(bool lower, Int n, int64_t count, T* a, Int* info, T* work) {
    WithVectors([=] {
      Vec* s = reinterpret_cast<Vec*>(work);
      const int64_t elements = int64_t{n} * n;
      // Element (i, j) of the lower triangle, or (j, i) of the upper.
      const int64_t row = lower ? 1 : n, column = lower ? n : 1;
      ArraysInLanes<T>::Gather(elements, count, a, s);
      Mask failed{};
      for (Int j = 0; j < n; ++j) {
        Vec* at = s + j * column;
        constexpr int kRows = 4;
        Int i = j;
        for (; i + kRows <= n; i += kRows) {
          Vec sum[kRows];
          for (int r = 0; r < kRows; ++r) sum[r] = at[(i + r) * row];
          for (Int k = 0; k < j; ++k) {
            const Vec* before = s + k * column;
            const Vec factor = before[j * row];
            for (int r = 0; r < kRows; ++r) sum[r] -= before[(i + r) * row] * factor;
          }
          for (int r = 0; r < kRows; ++r) at[(i + r) * row] = sum[r];
        }
        for (; i < n; ++i) {
          Vec sum = at[i * row];
          for (Int k = 0; k < j; ++k) sum -= s[k * column + i * row] * s[k * column + j * row];
          at[i * row] = sum;
        }
        const Vec diagonal = at[j * row];
        const Mask bad = ~(diagonal > Vec{});  // NaN too
        failed = (failed == 0) & bad ? Mask{} + (j + 1) : failed;
        Vec root;
        for (int l = 0; l < kLanes; ++l) root[l] = __builtin_sqrt(diagonal[l]);
        at[j * row] = root;
        const Vec reciprocal = T(1) / root;
        for (Int r = j + 1; r < n; ++r) at[r * row] *= reciprocal;
      }
      for (int64_t l = 0; l < count; ++l) info[l] = static_cast<Int>(failed[l]);
      ArraysInLanes<T>::Scatter(elements, count, s, a);
    });
  }

 private:
  static Vec Magnitude(Vec x) {
    return reinterpret_cast<Vec>(reinterpret_cast<Mask>(x) & std::numeric_limits<Integer>::max());
  }
  static bool Any(Mask mask) {
    Integer any = 0;
    for (int l = 0; l < kLanes; ++l) any |= mask[l];
    return any != 0;
  }

  // The row of the first of the largest elements from row k on, in each lane.
  static Mask Pivot(Int m, Int k, const Vec* column) {
    Mask row = Mask{} + k;
    Vec largest = Magnitude(column[k]);
    for (Int i = k + 1; i < m; ++i) {
      const Vec magnitude = Magnitude(column[i]);
      const Mask larger = magnitude > largest;
      row = larger ? Mask{} + i : row;
      largest = larger ? magnitude : largest;
    }
    return row;
  }
  static void Exchange(Int m, Int n, Int k, Mask chosen, Vec* s) {
    uint64_t rows = 0;
    for (int l = 0; l < kLanes; ++l) rows |= uint64_t{1} << chosen[l];
    rows &= ~(uint64_t{1} << k);
    for (; rows != 0; rows &= rows - 1) {
      const int64_t i = __builtin_ctzll(rows);
      const Mask here = chosen == static_cast<Integer>(i);
      for (Int j = 0; j < n; ++j) {
        Vec* column = s + int64_t{j} * m;
        const Vec x = column[k], y = column[i];
        column[k] = here ? y : x;
        column[i] = here ? x : y;
      }
    }
  }
  // What is below the pivot, by it; by its reciprocal where that has all digits.
  static void Divide(Int m, Int k, Mask zero, Vec* column) {
    const Vec top = column[k], reciprocal = T(1) / top;
    const Mask by_reciprocal = Magnitude(top) >= std::numeric_limits<T>::min();
    const bool all = !Any(~by_reciprocal);
    for (Int i = k + 1; i < m; ++i) {
      Vec quotient = column[i] * reciprocal;
      if (!all) quotient = by_reciprocal ? quotient : column[i] / top;
      column[i] = zero ? column[i] : quotient;
    }
  }
};

}  // namespace strop::lapack
