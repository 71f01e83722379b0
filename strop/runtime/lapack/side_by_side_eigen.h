// Eigenvalues and eigenvectors of small symmetric matrices side by side, by Jacobi's rotations (Golub and Van Loan,
// "Matrix Computations", 8.5.3, cyclic by rows): each one makes an element off the diagonal zero, and after a few
// sweeps all of them are below the rounding of the largest element. Every lane decides for itself whether it rotates; a
// lane that does not keeps its bits, so that they do not depend on its neighbours.
#pragma once
#include <algorithm>
#include <numeric>

#include "strop/runtime/lapack/side_by_side.h"

namespace strop::lapack {

template <class T>
class EigenSideBySide {
  using Base = SideBySide<T>;
  using Lanes = typename Base::Lanes;
  using Vec = typename Base::Vec;
  using Mask = typename Base::Mask;
  using Integer = typename Base::Integer;

 public:
  static constexpr int kLanes = Base::kLanes;
  static constexpr Int kMaxOrder = 32;  // beyond, LAPACK has fewer operations by more than there are lanes
  static int64_t Work(Int n) { return 2 * int64_t{n} * n * kLanes; }

  // Of symmetric matrices of which a triangle is read, row by row: `values` ascend, the columns of `vectors`, which may
  // be null, belong to them. `info`: 0; 1 for a matrix that holds what is not finite, whose results are NaN; 2 for one
  // whose rotations did not end.
  static void Decompose(bool lower, Int n, int64_t count, const T* from, T* vectors, T* values, Int* info, T* work) {
    WithVectors([=] {
      const Square a{reinterpret_cast<Vec*>(work), n}, v{a.s + int64_t{n} * n, n};
      Lanes::Gather(int64_t{n} * n, count, from, a.s);
      for (Int i = 0; i < n; ++i)
        for (Int j = i; lower && j < n; ++j) a(i, j) = a(j, i);  // rotations see the upper triangle
      Mask bad;
      Vec negligible;
      const Vec unit = Scale(a, bad, negligible);
      for (Int i = 0; vectors && i < n; ++i)
        for (Int j = 0; j < n; ++j) v(i, j) = Vec{} + T(i == j);
      Mask open{};
      for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
        open = Sweep(a, v, vectors != nullptr, negligible);
        if (!Base::Any(open)) break;
      }
      const Vec none = Vec{} + std::numeric_limits<T>::quiet_NaN();
      for (Int i = 0; i < n; ++i) a(i, i) = bad ? none : a(i, i) * unit + T(0);  // no zero with a sign
      for (Int e = 0; vectors && Base::Any(bad) && e < n * n; ++e) v.s[e] = bad ? none : v.s[e];
      for (int64_t l = 0; l < count; ++l) {
        info[l] = bad[l] ? 1 : open[l] ? 2 : 0;
        Store(a, v, l, vectors ? vectors + l * n * n : nullptr, values + l * n);
      }
    });
  }

 private:
  static constexpr int kMostSweeps = 40;

  // Of vectors; rows of v are eigenvectors.
  struct Square {
    Vec& operator()(Int i, Int j) const { return s[int64_t{i} * n + j]; }
    Vec* s;
    Int n;
  };

  // Divides the upper triangle by a power of two, of the order of its largest element, and returns that. `negligible`
  // is what rounds away beside that element.
  static Vec Scale(const Square& a, Mask& bad, Vec& negligible) {
    Vec largest{}, not_finite{};
    for (Int i = 0; i < a.n; ++i)
      for (Int j = i; j < a.n; ++j) {
        const Vec x = Base::Magnitude(a(i, j));
        largest = x > largest ? x : largest;
        not_finite += x * T(0);
      }
    bad = not_finite != not_finite;
    const Vec unit = Base::PowerBelow(largest, bad), inverse = T(1) / unit;
    negligible = largest * inverse * (std::numeric_limits<T>::epsilon() / 8);
    for (Int i = 0; i < a.n; ++i)
      for (Int j = i; j < a.n; ++j) a(i, j) *= inverse;
    return unit;
  }

  // A rotation for every element above the diagonal that is not negligible; the lanes that had one.
  static Mask Sweep(const Square& a, const Square& v, bool vectors, Vec negligible) {
    const Vec one = Vec{} + T(1);
    Mask open{};
    for (Int p = 0; p + 1 < a.n; ++p)
      for (Int q = p + 1; q < a.n; ++q) {
        const Vec apq = a(p, q);
        const Mask rotates = Base::Magnitude(apq) > negligible;
        if (!Base::Any(rotates)) continue;
        open |= rotates;
        const Vec theta = (a(q, q) - a(p, p)) / (rotates ? apq + apq : one);
        const Vec length = Base::Magnitude(theta) + Base::Root(theta * theta + T(1));
        const Vec tangent = rotates ? (theta >= Vec{} ? one : -one) / length : Vec{};
        const Vec cosine = T(1) / Base::Root(tangent * tangent + T(1)), sine = tangent * cosine;
        const Vec tau = sine / (cosine + T(1));
        a(p, p) -= tangent * apq;
        a(q, q) += tangent * apq;
        a(p, q) = rotates ? Vec{} : apq;
        for (Int r = 0; r < p; ++r) Rotate(a(r, p), a(r, q), sine, tau);
        for (Int r = p + 1; r < q; ++r) Rotate(a(p, r), a(r, q), sine, tau);
        for (Int r = q + 1; r < a.n; ++r) Rotate(a(p, r), a(q, r), sine, tau);
        for (Int r = 0; vectors && r < a.n; ++r) Rotate(v(p, r), v(q, r), sine, tau);
      }
    return open;
  }

  static void Rotate(Vec& x, Vec& y, Vec sine, Vec tau) {
    const Vec old = x;
    x -= sine * (y + tau * x);
    y += sine * (old - tau * y);
  }

  // Of one lane, in the order of its values.
  static void Store(const Square& a, const Square& v, int64_t lane, T* vectors, T* values) {
    Int order[kMaxOrder];
    std::iota(order, order + a.n, 0);
    std::stable_sort(order, order + a.n, [&](Int i, Int j) { return a(i, i)[lane] < a(j, j)[lane]; });
    for (Int k = 0; k < a.n; ++k) {
      values[k] = a(order[k], order[k])[lane];
      for (Int r = 0; vectors && r < a.n; ++r) vectors[int64_t{r} * a.n + k] = v(order[k], r)[lane] + T(0);
    }
  }
};

}  // namespace strop::lapack
