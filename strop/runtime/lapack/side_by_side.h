// Small matrices of a batch factored side by side, one in each lane of a vector: LU and Cholesky of real numbers.
//
// A matrix of order 16 is too short for vectors along its columns, and a call of the library costs more than its
// arithmetic. Each lane computes what LAPACK's unblocked getf2 and potf2 do, in their order, so a matrix's
// bits do not depend on its neighbours.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>

#include "strop/base/isa.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class T>
class SideBySide {
 public:
  static constexpr int kLanes = 32 / sizeof(T);  // matrices at a time
  static constexpr Int kMaxOrder = 32;           // 32 kB of f32: the first cache holds them
  typedef T Vec __attribute__((vector_size(32)));
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Integer Mask __attribute__((vector_size(32)));

  // Elements of T that the functions below work in, aligned as vectors are.
  static int64_t WorkElements(int64_t rows, int64_t columns) { return rows * columns * kLanes; }

  // `count` <= kLanes matrices of m rows and n columns, column by column, in place; pivots and info as getrf has them.
  static void Lu(Int m, Int n, int64_t count, T* a, Int* pivots, Int* info, T* work) {
    WithVectors([=] {
      Vec* s = reinterpret_cast<Vec*>(work);
      const int64_t elements = int64_t{m} * n;
      Gather(elements, count, a, s);
      const Int steps = std::min(m, n);
      Mask first_zero{};
      for (Int k = 0; k < steps; ++k) {
        Vec* column = s + int64_t{k} * m;
        const Mask chosen = Pivot(m, k, column);
        for (int64_t l = 0; l < count; ++l) pivots[l * steps + k] = static_cast<Int>(chosen[l]) + 1;
        Exchange(m, n, k, chosen, s);
        const Mask zero = column[k] == Vec{};
        first_zero = (first_zero == 0) & zero ? Mask{} + (k + 1) : first_zero;
        Divide(m, k, zero, column);
        for (Int j = k + 1; j < n; ++j) {
          Vec* to = s + int64_t{j} * m;
          const Vec factor = to[k];
          for (Int i = k + 1; i < m; ++i) to[i] = zero ? to[i] : to[i] - column[i] * factor;
        }
      }
      for (int64_t l = 0; l < count; ++l) info[l] = static_cast<Int>(first_zero[l]);
      Scatter(elements, count, s, a);
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
      Gather(elements, count, a, s);
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
      Scatter(elements, count, s, a);
    });
  }

 private:
  typedef T Unaligned __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));

  // Lane l of vector e becomes lane e of vector l: the halves of the vectors zipped, once for each bit of a lane's
  // number.
  static void Transpose(Vec* v) {
    constexpr int kHalf = kLanes / 2;
    Mask low, high;
    for (int l = 0; l < kLanes; ++l) {
      low[l] = l / 2 + (l % 2 ? kLanes : 0);
      high[l] = low[l] + kHalf;
    }
    for (int stage = 1; stage < kLanes; stage *= 2) {
      Vec zipped[kLanes];
      for (int i = 0; i < kHalf; ++i) {
        zipped[2 * i] = __builtin_shuffle(v[i], v[i + kHalf], low);
        zipped[2 * i + 1] = __builtin_shuffle(v[i], v[i + kHalf], high);
      }
      for (int i = 0; i < kLanes; ++i) v[i] = zipped[i];
    }
  }

  // Where blocks of kLanes of the elements begin: the last one overlaps the one before.
  template <class F>
  static void ForEachBlock(int64_t elements, F f) {
    for (int64_t e = 0; e + kLanes <= elements; e += kLanes) f(e);
    if (elements % kLanes != 0) f(elements - kLanes);
  }

  // Lanes behind the last matrix hold it again.
  static void Gather(int64_t elements, int64_t count, const T* a, Vec* s) {
    const auto of = [=](int64_t lane) { return a + std::min(lane, count - 1) * elements; };
    if (elements < kLanes) {
      for (int64_t e = 0; e < elements; ++e)
        for (int l = 0; l < kLanes; ++l) s[e][l] = of(l)[e];
      return;
    }
    ForEachBlock(elements, [=](int64_t e) {
      Vec v[kLanes];
      for (int l = 0; l < kLanes; ++l) v[l] = *reinterpret_cast<const Unaligned*>(of(l) + e);
      Transpose(v);
      for (int l = 0; l < kLanes; ++l) s[e + l] = v[l];
    });
  }
  static void Scatter(int64_t elements, int64_t count, const Vec* s, T* a) {
    if (elements < kLanes) {
      for (int64_t e = 0; e < elements; ++e)
        for (int64_t l = 0; l < count; ++l) a[l * elements + e] = s[e][l];
      return;
    }
    ForEachBlock(elements, [=](int64_t e) {
      Vec v[kLanes];
      for (int l = 0; l < kLanes; ++l) v[l] = s[e + l];
      Transpose(v);
      for (int64_t l = 0; l < count; ++l) *reinterpret_cast<Unaligned*>(a + l * elements + e) = v[l];
    });
  }

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
