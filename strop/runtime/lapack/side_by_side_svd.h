// Singular values and vectors of small square matrices side by side, by Jacobi's rotations from one side (Golub and Van
// Loan, "Matrix Computations", 8.6.3): columns are turned in pairs until all of them are orthogonal; then they are the
// left vectors times the singular values. Every lane decides for itself whether it rotates, as in side_by_side_eigen.h.
#pragma once
#include <algorithm>
#include <numeric>

#include "strop/runtime/lapack/side_by_side.h"

namespace strop::lapack {

template <class T>
class SvdSideBySide {
  using Base = SideBySide<T>;
  using Lanes = typename Base::Lanes;
  using Vec = typename Base::Vec;
  using Mask = typename Base::Mask;

 public:
  static constexpr int kLanes = Base::kLanes;
  static constexpr Int kMaxOrder = 32;
  static int64_t Work(Int n) { return (2 * int64_t{n} * n + n) * kLanes; }

  // a = u s vt, row by row; `values` descend. Without vectors, `u` is null. `info`: 0; 1 for a matrix that holds what
  // is not finite, whose results are NaN; 2 for one whose rotations did not end.
  static void Decompose(Int n, int64_t count, const T* from, T* u, T* values, T* vt, Int* info, T* work) {
    WithVectors([=] {
      // Rows of these are columns of a, and of the rotations' product.
      Vec* const a = reinterpret_cast<Vec*>(work);
      Vec *const v = a + int64_t{n} * n, *const norms = v + int64_t{n} * n;
      Lanes::Gather(int64_t{n} * n, count, from, a);
      for (Int i = 0; i < n; ++i)
        for (Int j = i + 1; j < n; ++j) std::swap(a[i * n + j], a[j * n + i]);
      Mask bad;
      const Vec unit = Scale(a, n, bad);
      for (Int i = 0; u && i < n; ++i)
        for (Int j = 0; j < n; ++j) v[i * n + j] = Vec{} + T(i == j);
      Mask open{};
      for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
        open = Sweep(a, u ? v : nullptr, n);
        if (!Base::Any(open)) break;
      }
      for (Int i = 0; i < n; ++i) {
        const Vec squares = Dot(a + i * n, a + i * n, n);
        norms[i] = squares > Vec{} + kTiny ? Base::Root(squares) : Vec{};
        norms[i] = bad ? Vec{} + std::numeric_limits<T>::quiet_NaN() : norms[i];
      }
      for (int64_t l = 0; l < count; ++l) {
        info[l] = bad[l] ? 1 : open[l] ? 2 : 0;
        Store(a, v, norms, unit[l], n, l, u ? u + l * n * n : nullptr, values + l * n, u ? vt + l * n * n : nullptr);
      }
    });
  }

 private:
  static constexpr int kMostSweeps = 40;
  // The square of a column that is zero beside the largest element, which is about one; far from where squares of
  // others lose digits.
  static constexpr T kTiny = sizeof(T) == 4 ? T(1e-30) : T(1e-250);
  static constexpr T kSteep = sizeof(T) == 4 ? T(1e6) : T(1e12);  // whose square has no room for one beside it

  // Divides by a power of two, of the order of the largest element, and returns that.
  static Vec Scale(Vec* a, Int n, Mask& bad) {
    Vec largest{}, not_finite{};
    for (Int e = 0; e < n * n; ++e) {
      const Vec x = Base::Magnitude(a[e]);
      largest = x > largest ? x : largest;
      not_finite += x * T(0);
    }
    bad = not_finite != not_finite;
    const Vec unit = Base::PowerBelow(largest, bad), inverse = T(1) / unit;
    for (Int e = 0; e < n * n; ++e) a[e] *= inverse;
    return unit;
  }

  static Vec Dot(const Vec* x, const Vec* y, Int n) {
    Vec sum = x[0] * y[0];
    for (Int r = 1; r < n; ++r) sum += x[r] * y[r];
    return sum;
  }

  static void Rotate(Vec* x, Vec* y, Int n, Vec cosine, Vec sine) {
    for (Int r = 0; r < n; ++r) {
      const Vec old = x[r];
      x[r] = cosine * old - sine * y[r];
      y[r] = sine * old + cosine * y[r];
    }
  }

  // A rotation for every pair of columns that is not orthogonal; the lanes that had one.
  static Mask Sweep(Vec* a, Vec* v, Int n) {
    const Vec one = Vec{} + T(1);
    Mask open{};
    for (Int p = 0; p + 1 < n; ++p)
      for (Int q = p + 1; q < n; ++q) {
        const Vec alpha = Dot(a + p * n, a + p * n, n), beta = Dot(a + q * n, a + q * n, n);
        const Vec gamma = Dot(a + p * n, a + q * n, n);
        const Vec least = Base::Root(alpha) * Base::Root(beta) * (2 * std::numeric_limits<T>::epsilon());
        const Mask rotates = (Base::Magnitude(gamma) > least) & (alpha > Vec{} + kTiny) & (beta > Vec{} + kTiny);
        if (!Base::Any(rotates)) continue;
        open |= rotates;
        const Vec zeta = (beta - alpha) / (rotates ? gamma + gamma : one), steepness = Base::Magnitude(zeta);
        const Mask steep = steepness > Vec{} + kSteep;
        const Vec plain = steep ? one : zeta;
        const Vec length = steep ? steepness + steepness : steepness + Base::Root(plain * plain + T(1));
        const Vec tangent = rotates ? (zeta >= Vec{} ? one : -one) / length : Vec{};
        const Vec cosine = T(1) / Base::Root(tangent * tangent + T(1));
        Rotate(a + p * n, a + q * n, n, cosine, tangent * cosine);
        if (v) Rotate(v + p * n, v + q * n, n, cosine, tangent * cosine);
      }
    return open;
  }

  // Of one lane, in the order of its values.
  static void Store(const Vec* a, const Vec* v, const Vec* norms, T unit, Int n, int64_t lane, T* u, T* values, T* vt) {
    Int order[kMaxOrder];
    std::iota(order, order + n, 0);
    std::stable_sort(order, order + n, [&](Int i, Int j) { return norms[i][lane] > norms[j][lane]; });
    for (Int k = 0; k < n; ++k) {
      const Int column = order[k];
      const T norm = norms[column][lane];
      values[k] = norm * unit;
      for (Int r = 0; u && r < n; ++r) {
        u[r * n + k] = norm == T(0) ? T(0) : a[column * n + r][lane] / norm + T(0);
        vt[k * n + r] = (norm == norm ? v[column * n + r][lane] : norm) + T(0);
      }
      if (u && norm == T(0)) Complete(u, n, k);
    }
  }

  // Column k becomes a unit vector orthogonal to those before: what they leave of the axis of which they leave most.
  static void Complete(T* u, Int n, Int k) {
    Int axis = 0;
    T most = -1;
    for (Int r = 0; r < n; ++r) {
      T left = 1;
      for (Int c = 0; c < k; ++c) left -= u[r * n + c] * u[r * n + c];
      if (left > most) most = left, axis = r;
    }
    for (Int r = 0; r < n; ++r) u[r * n + k] = T(r == axis);
    for (int turn = 0; turn < 2; ++turn)
      for (Int c = 0; c < k; ++c) {
        T part = 0;
        for (Int r = 0; r < n; ++r) part += u[r * n + c] * u[r * n + k];
        for (Int r = 0; r < n; ++r) u[r * n + k] -= part * u[r * n + c];
      }
    T squares = 0;
    for (Int r = 0; r < n; ++r) squares += u[r * n + k] * u[r * n + k];
    for (Int r = 0; r < n; ++r) u[r * n + k] /= std::sqrt(squares);
  }
};

}  // namespace strop::lapack
