// LU factorisations with partial pivoting of small real matrices side by side, and the systems that they solve.
#pragma once
#include "strop/runtime/lapack/one_system.h"

namespace strop::lapack {

template <class T>
class LuSideBySide {
  using Base = SideBySide<T>;
  using Lanes = typename Base::Lanes;
  using Vec = typename Base::Vec;
  using Mask = typename Base::Mask;
  using Integer = typename Base::Integer;

 public:
  static constexpr int kLanes = Base::kLanes;

  // Elements of T that the functions below work in, aligned as vectors are.
  static int64_t FactorWork(Int m, Int n) { return int64_t{m} * n * kLanes; }
  static int64_t SolveWork(Int n, Int columns) { return int64_t{n} * (n + columns) * kLanes; }

  // `count` <= kLanes matrices of m rows and n columns, row by row; pivots and info as getrf has them. `from` and `to`
  // may be the same. Orders that are common are compiled for themselves: their loops are short.
  static void Factor(Int m, Int n, int64_t count, const T* from, T* to, Int* pivots, Int* info, T* work) {
    if (m != n) return FactorOf<0>(m, n, count, from, to, pivots, info, work);
    switch (n) {
      case 2: return FactorOf<2>(m, n, count, from, to, pivots, info, work);
      case 3: return FactorOf<3>(m, n, count, from, to, pivots, info, work);
      case 4: return FactorOf<4>(m, n, count, from, to, pivots, info, work);
      case 5: return FactorOf<5>(m, n, count, from, to, pivots, info, work);
      case 6: return FactorOf<6>(m, n, count, from, to, pivots, info, work);
      case 8: return FactorOf<8>(m, n, count, from, to, pivots, info, work);
      default: return FactorOf<0>(m, n, count, from, to, pivots, info, work);
    }
  }

  // a x = b for `count` <= kLanes systems of n equations with so many right-hand sides, all row by row. Without b the
  // right-hand sides are the unit matrix. A pivot that is zero divides, as in a triangular solve.
  static void Solve(Int n, Int columns, int64_t count, const T* a, const T* b, T* x, T* work) {
    if (count == 1) return OneSystem<T>::Solve(n, columns, a, b, x, work);
    switch (n) {
      case 2: return SolveOf<2>(n, columns, count, a, b, x, work);
      case 3: return SolveOf<3>(n, columns, count, a, b, x, work);
      case 4: return SolveOf<4>(n, columns, count, a, b, x, work);
      case 5: return SolveOf<5>(n, columns, count, a, b, x, work);
      case 6: return SolveOf<6>(n, columns, count, a, b, x, work);
      case 8: return SolveOf<8>(n, columns, count, a, b, x, work);
      default: return SolveOf<0>(n, columns, count, a, b, x, work);
    }
  }

 private:
  // Rows behind each other, `length` elements each.
  struct Rows {
    Vec* s = nullptr;
    Int length = 0;
    Vec* operator[](Int row) const { return s + int64_t{row} * length; }
  };

  template <Int kOrder>
  static void FactorOf(Int rows, Int columns, int64_t count, const T* from, T* to, Int* pivots, Int* info, T* work) {
    WithVectors([=] {
      const Int m = kOrder > 0 ? kOrder : rows, n = kOrder > 0 ? kOrder : columns;
      const Rows a{reinterpret_cast<Vec*>(work), n};
      Lanes::Gather(int64_t{m} * n, count, from, a.s);
      const Int steps = std::min(m, n);
      Mask first_zero{}, chosen = Pivot(a, m);
      for (Int k = 0; k < steps; ++k) {
        for (int64_t l = 0; l < count; ++l) pivots[l * steps + k] = static_cast<Int>(chosen[l]) + 1;
        const Exchanges exchanges(k, chosen);
        exchanges.Apply(a, k, 0);
        const Mask zero = a[k][k] == Vec{};
        first_zero = (first_zero == 0) & zero ? Mask{} + (k + 1) : first_zero;
        chosen = Eliminate(a, Rows{}, m, k, zero);
      }
      for (int64_t l = 0; l < count; ++l) info[l] = static_cast<Int>(first_zero[l]);
      Lanes::Scatter(int64_t{m} * n, count, a.s, to);
    });
  }

  template <Int kOrder>
  static void SolveOf(Int order, Int columns, int64_t count, const T* a, const T* b, T* to, T* work) {
    WithVectors([=] {
      const Int n = kOrder > 0 ? kOrder : order;
      const Rows rows{reinterpret_cast<Vec*>(work), n};
      const Rows x{rows.s + int64_t{n} * n, columns};
      Lanes::Gather(int64_t{n} * n, count, a, rows.s);
      if (b) {
        Lanes::Gather(int64_t{n} * columns, count, b, x.s);
      } else {
        for (Int i = 0; i < n; ++i)
          for (Int c = 0; c < columns; ++c) x[i][c] = Vec{} + T(i == c);
      }
      Mask chosen = Pivot(rows, n);
      for (Int k = 0; k < n; ++k) {
        const Exchanges exchanges(k, chosen);
        exchanges.Apply(rows, k, k);
        exchanges.Apply(x, k, 0);
        chosen = Eliminate(rows, x, n, k, rows[k][k] == Vec{});
      }
      Substitute(rows, n, columns, x);
      Lanes::Scatter(int64_t{n} * columns, count, x.s, to);
    });
  }

  // The row of the first of the largest elements of a column seen so far, in each lane.
  struct Largest {
    Vec magnitude;
    Mask row;
    Largest(Vec first, Int at) : magnitude(Base::Magnitude(first)), row(Mask{} + at) {}
    void Add(Vec x, Int at) {
      const Vec other = Base::Magnitude(x);
      const Mask larger = other > magnitude;
      row = larger ? Mask{} + at : row;
      magnitude = larger ? other : magnitude;
    }
  };
  static Mask Pivot(const Rows& a, Int m) {
    Largest largest(a[0][0], 0);
    for (Int i = 1; i < m; ++i) largest.Add(a[i][0], i);
    return largest.row;
  }

  // The rows that some lanes exchange with row k.
  struct Exchanges {
    int count = 0;
    Int rows[kLanes];
    Mask here[kLanes];

    Exchanges(Int k, Mask chosen) {
      if (!Base::Any(chosen != Mask{} + k)) return;
      const uint64_t any = Base::Union((Mask{} + 1) << chosen) & ~(uint64_t{1} << k);
      for (uint64_t left = any; left != 0; left &= left - 1) {
        rows[count] = static_cast<Int>(__builtin_ctzll(left));
        here[count] = chosen == static_cast<Integer>(rows[count]);
        ++count;
      }
    }
    // From column `first` on.
    void Apply(const Rows& a, Int k, Int first) const {
      if (count == 0) return;
      for (Int j = first; j < a.length; ++j) {
        const Vec above = a[k][j];
        Vec pivot = above;
        for (int r = 0; r < count; ++r) {
          Vec& below = a[rows[r]][j];
          const Vec x = below;
          pivot = here[r] ? x : pivot;
          below = here[r] ? above : x;
        }
        a[k][j] = pivot;
      }
    }
  };

  // Multipliers in column k, and what row k times them leaves of the rows below, and of their right-hand sides; gives
  // the pivots of the next column. Multipliers are what is below the pivot, by it, or by its reciprocal where that has
  // all digits. Of columns whose pivot is zero nothing is taken.
  static Mask Eliminate(const Rows& a, const Rows& x, Int m, Int k, Mask zero) {
    const Vec* by = a[k];
    const Vec pivot = by[k], reciprocal = T(1) / pivot;
    const Mask multiplies = Base::HasReciprocal(pivot);
    const bool all = !Base::Any(~multiplies), more = k + 1 < a.length;
    Largest largest(Vec{}, k + 1);
    for (Int i = k + 1; i < m; ++i) {
      Vec* to = a[i];
      Vec factor = to[k] * reciprocal;
      if (all) {
        for (Int j = k + 1; j < a.length; ++j) to[j] -= factor * by[j];
      } else {
        factor = multiplies ? factor : to[k] / pivot;
        factor = zero ? to[k] : factor;
        for (Int j = k + 1; j < a.length; ++j) to[j] = zero ? to[j] : to[j] - factor * by[j];
      }
      to[k] = factor;
      for (Int c = 0; c < x.length; ++c) x[i][c] -= factor * x[k][c];
      if (!more) continue;
      if (i == k + 1)
        largest = Largest(to[k + 1], i);
      else
        largest.Add(to[k + 1], i);
    }
    return largest.row;
  }

  // The upper triangle's unknowns, from the last on.
  static void Substitute(const Rows& rows, Int n, Int columns, const Rows& x) {
    for (Int i = n - 1; i >= 0; --i) {
      const Vec* row = rows[i];
      constexpr int kTogether = 4;
      Int c = 0;
      for (; c + kTogether <= columns; c += kTogether) Unknowns<kTogether>(row, n, i, c, x);
      for (; c < columns; ++c) Unknowns<1>(row, n, i, c, x);
    }
  }
  template <int kCount>
  static void Unknowns(const Vec* row, Int n, Int i, Int c, const Rows& x) {
    Vec value[kCount];
    for (int v = 0; v < kCount; ++v) value[v] = x[i][c + v];
    for (Int j = n - 1; j > i; --j)
      for (int v = 0; v < kCount; ++v) value[v] -= row[j] * x[j][c + v];
    for (int v = 0; v < kCount; ++v) x[i][c + v] = value[v] / row[i];
  }
};

}  // namespace strop::lapack
