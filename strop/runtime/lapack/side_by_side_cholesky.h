// Cholesky factorisations of small real matrices side by side.
#pragma once
#include "strop/runtime/lapack/one_system.h"

namespace strop::lapack {

template <class T>
class CholeskySideBySide {
  using Base = SideBySide<T>;
  using Lanes = typename Base::Lanes;
  using Vec = typename Base::Vec;
  using Mask = typename Base::Mask;

 public:
  static constexpr int kLanes = Base::kLanes;
  static int64_t Work(Int n, Int columns = 0) { return int64_t{n} * (n + columns) * kLanes; }

  // The named triangle of symmetric matrices, row by row, becomes their factor, as potrf has it: what the columns
  // before contribute is subtracted in their order. A matrix that is not positive definite has the number of the first
  // column that shows it in info, and nothing of use in its triangle. `from` and `to` may be the same.
  static void Factor(bool lower, Int n, int64_t count, const T* from, T* to, Int* info, T* work) {
    WithVectors([=] {
      const Triangle a(lower, n, work);
      Lanes::Gather(int64_t{n} * n, count, from, a.s);
      const Mask failed = FactorLanes(a);
      for (int64_t l = 0; l < count; ++l) info[l] = static_cast<Int>(failed[l]);
      Lanes::Scatter(int64_t{n} * n, count, a.s, to);
    });
  }

  // The same with zeros in the other triangle, and NaN in that of a matrix that is not positive definite.
  // `symmetrize`: of the mean of a matrix and its transpose.
  static void CleanFactor(bool lower, bool symmetrize, Int n, int64_t count, const T* from, T* to, T* work) {
    WithVectors([=] {
      const Triangle a(lower, n, work);
      Lanes::Gather(int64_t{n} * n, count, from, a.s);
      if (symmetrize) Symmetrize(a);
      const Mask failed = FactorLanes(a);
      const Vec none = Vec{} + std::numeric_limits<T>::quiet_NaN();
      const bool any = Base::Any(failed);
      for (Int j = 0; j < n; ++j) {
        for (Int i = j; any && i < n; ++i) a(i, j) = failed != 0 ? none : a(i, j);
        for (Int i = 0; i < j; ++i) a(i, j) = Vec{};
      }
      Lanes::Scatter(int64_t{n} * n, count, a.s, to);
    });
  }

  // a x = b for systems with so many right-hand sides, by that factor; NaN where it is.
  static void Solve(bool lower, bool symmetrize, Int n, Int columns, int64_t count, const T* from, const T* b, T* to,
                    T* work) {
    if (count == 1) return OneSystem<T>::SolvePositive(lower, symmetrize, n, columns, from, b, to, work);
    WithVectors([=] {
      const Triangle a(lower, n, work);
      Vec* x = a.s + int64_t{n} * n;
      Lanes::Gather(int64_t{n} * n, count, from, a.s);
      Lanes::Gather(int64_t{n} * columns, count, b, x);
      if (symmetrize) Symmetrize(a);
      const Mask failed = FactorLanes(a);
      for (Int c = 0; c < columns; ++c) Substitute(a, x + c, columns);
      if (Base::Any(failed)) {
        const Vec none = Vec{} + std::numeric_limits<T>::quiet_NaN();
        for (int64_t e = 0; e < int64_t{n} * columns; ++e) x[e] = failed != 0 ? none : x[e];
      }
      Lanes::Scatter(int64_t{n} * columns, count, x, to);
    });
  }

 private:
  // The lower triangle, or the upper one's transpose.
  struct Triangle {
    Triangle(bool lower, Int n, T* work)
        : s(reinterpret_cast<Vec*>(work)), n(n), row(lower ? n : 1), column(lower ? 1 : n) {}
    Vec& operator()(Int i, Int j) const { return s[i * row + j * column]; }
    Vec* s;
    Int n;
    int64_t row, column;
  };

  // The column that fails, from one on, or 0.
  static Mask FactorLanes(const Triangle& a) {
    const Int n = a.n;
    Mask failed{};
    for (Int j = 0; j < n; ++j) {
      constexpr int kRows = 4;
      Int i = j;
      for (; i + kRows <= n; i += kRows) Reduce<kRows>(a, i, j);
      for (; i < n; ++i) Reduce<1>(a, i, j);
      const Vec diagonal = a(j, j);
      const Mask bad = ~(diagonal > Vec{});  // NaN too
      failed = (failed == 0) & bad ? Mask{} + (j + 1) : failed;
      const Vec root = Base::Root(diagonal), reciprocal = T(1) / root;
      a(j, j) = root;
      for (Int r = j + 1; r < n; ++r) a(r, j) *= reciprocal;
    }
    return failed;
  }

  static void Symmetrize(const Triangle& a) {
    for (Int j = 0; j < a.n; ++j)
      for (Int i = j; i < a.n; ++i) a(i, j) = (a(i, j) + a(j, i)) * T(0.5);
  }

  // By the triangle, and by its transpose. Unknown i is at x[i * stride].
  static void Substitute(const Triangle& a, Vec* x, int64_t stride) {
    for (Int i = 0; i < a.n; ++i) {
      Vec value = x[i * stride];
      for (Int k = 0; k < i; ++k) value -= a(i, k) * x[k * stride];
      x[i * stride] = value / a(i, i);
    }
    for (Int i = a.n - 1; i >= 0; --i) {
      Vec value = x[i * stride];
      for (Int k = a.n - 1; k > i; --k) value -= a(k, i) * x[k * stride];
      x[i * stride] = value / a(i, i);
    }
  }

  // What the columns before column j leave of kRows rows of it, from row i on.
  template <int kRows>
  static void Reduce(const Triangle& a, Int i, Int j) {
    Vec sum[kRows];
    for (int r = 0; r < kRows; ++r) sum[r] = a(i + r, j);
    for (Int k = 0; k < j; ++k) {
      const Vec factor = a(j, k);
      for (int r = 0; r < kRows; ++r) sum[r] -= a(i + r, k) * factor;
    }
    for (int r = 0; r < kRows; ++r) a(i + r, j) = sum[r];
  }
};

}  // namespace strop::lapack
