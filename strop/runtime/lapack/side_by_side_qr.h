// QR factorisations of small real matrices side by side, by Householder's reflectors.
#pragma once
#include "strop/runtime/lapack/side_by_side.h"

namespace strop::lapack {

template <class T>
class QrSideBySide {
  using Base = SideBySide<T>;
  using Lanes = typename Base::Lanes;
  using Vec = typename Base::Vec;
  using Mask = typename Base::Mask;
  using Integer = typename Base::Integer;

 public:
  static constexpr int kLanes = Base::kLanes;
  static int64_t Work(Int m, Int n) { return int64_t{m + 1} * n * kLanes; }

  // Reflectors below the diagonal and R above it, and the reflectors' factors, as geqr2 has them, of `count` <= kLanes
  // matrices of m rows and n columns, row by row. `from` and `to` may be the same.
  static void Factor(Int m, Int n, int64_t count, const T* from, T* to, T* tau, T* work) {
    WithVectors([=] {
      const Matrix a{reinterpret_cast<Vec*>(work), n};
      Vec* factors = a.s + int64_t{m} * n;
      const Int k = std::min(m, n);
      Lanes::Gather(int64_t{m} * n, count, from, a.s);
      for (Int i = 0; i < k; ++i) {
        factors[i] = i + 1 < m ? Reflector(a, m, i) : Vec{};  // a last row has nothing below it
        ReflectColumns(a, m, n, i, factors[i]);
      }
      Lanes::Scatter(int64_t{m} * n, count, a.s, to);
      Lanes::Scatter(k, count, factors, tau);
    });
  }

  // The first n columns of the product of k reflectors, as org2r has it; m >= n >= k.
  static void Q(Int m, Int n, Int k, int64_t count, const T* from, const T* tau, T* to, T* work) {
    WithVectors([=] {
      const Matrix a{reinterpret_cast<Vec*>(work), n};
      Vec* factors = a.s + int64_t{m} * n;
      Lanes::Gather(int64_t{m} * n, count, from, a.s);
      if (k > 0) Lanes::Gather(k, count, tau, factors);
      for (Int j = k; j < n; ++j)
        for (Int r = 0; r < m; ++r) a(r, j) = Vec{} + T(r == j);
      for (Int i = k - 1; i >= 0; --i) {
        ReflectColumns(a, m, n, i, factors[i]);
        for (Int r = i + 1; r < m; ++r) a(r, i) *= -factors[i];
        a(i, i) = T(1) - factors[i];
        for (Int r = 0; r < i; ++r) a(r, i) = Vec{};
      }
      Lanes::Scatter(int64_t{m} * n, count, a.s, to);
    });
  }

 private:
  struct Matrix {
    Vec* s;
    int64_t columns;
    Vec& operator()(Int i, Int j) const { return s[i * columns + j]; }
  };

  // H = 1 - tau v v^T with v = (1, column i below its diagonal), which makes that column (beta, 0 ...): larfg. beta has
  // the sign opposite to the diagonal's element. A column that is zero below the diagonal stays, with tau = 0.
  static Vec Reflector(const Matrix& a, Int m, Int i) {
    const Vec alpha = a(i, i);
    Vec largest = Base::Magnitude(a(i + 1, i)), squares = a(i + 1, i) * a(i + 1, i);
    for (Int r = i + 2; r < m; ++r) {
      const Vec x = a(r, i), magnitude = Base::Magnitude(x);
      largest = magnitude > largest ? magnitude : largest;
      squares += x * x;
    }
    const Mask none = (largest == Vec{}) & (squares == Vec{});  // no NaN either
    const Vec top = Base::Magnitude(alpha);
    largest = top > largest ? top : largest;
    // Squares of these neither overflow nor lose digits that matter.
    constexpr T kLeast = sizeof(T) == 4 ? T(1e-12) : T(1e-120), kMost = sizeof(T) == 4 ? T(1e15) : T(1e140);
    const Mask plain = (largest >= kLeast) & (largest <= kMost);
    Vec norm = Base::Root(alpha * alpha + squares);
    if (Base::Any(~plain)) norm = plain ? norm : ScaledNorm(a, m, i, largest);
    const Vec beta = alpha < Vec{} ? norm : -norm;
    const Vec tau = none ? Vec{} : (beta - alpha) / beta;
    const Vec divisor = alpha - beta, reciprocal = T(1) / divisor;
    const bool multiplies = !Base::Any(~plain);
    for (Int r = i + 1; r < m; ++r) {
      const Vec x = a(r, i);
      Vec scaled = x * reciprocal;
      if (!multiplies) scaled = plain ? scaled : x / divisor;
      a(r, i) = none ? x : scaled;
    }
    a(i, i) = none ? alpha : beta;
    return tau;
  }
  static Vec ScaledNorm(const Matrix& a, Int m, Int i, Vec largest) {
    Vec squares{};
    for (Int r = i; r < m; ++r) {
      const Vec x = a(r, i) / largest;
      squares += x * x;
    }
    return largest * Base::Root(squares);
  }

  // The columns behind column i reflected by it, from row i on.
  static void ReflectColumns(const Matrix& a, Int m, Int n, Int i, Vec tau) {
    constexpr int kTogether = 4;
    Int j = i + 1;
    for (; j + kTogether <= n; j += kTogether) Reflect<kTogether>(a, m, i, j, tau);
    for (; j < n; ++j) Reflect<1>(a, m, i, j, tau);
  }
  template <int kCount>
  static void Reflect(const Matrix& a, Int m, Int i, Int j, Vec tau) {
    Vec sum[kCount];
    for (int c = 0; c < kCount; ++c) sum[c] = a(i, j + c);
    for (Int r = i + 1; r < m; ++r)
      for (int c = 0; c < kCount; ++c) sum[c] += a(r, i) * a(r, j + c);
    for (int c = 0; c < kCount; ++c) {
      sum[c] *= tau;
      a(i, j + c) -= sum[c];
    }
    for (Int r = i + 1; r < m; ++r)
      for (int c = 0; c < kCount; ++c) a(r, j + c) -= a(r, i) * sum[c];
  }
};

}  // namespace strop::lapack
