// One small real system with lanes along its rows, where side by side (side_by_side_lu.h, side_by_side_cholesky.h) all
// lanes but one would be idle. Every element is what it is there, by the same operations in the same order.
#pragma once
#include <utility>

#include "strop/runtime/lapack/side_by_side.h"

namespace strop::lapack {

template <class T>
class OneSystem {
  using Base = SideBySide<T>;
  using Vec = typename Base::Vec;
  static constexpr int kLanes = Base::kLanes;

 public:
  // As LuSideBySide::Solve. They work in no more memory than that does, aligned as vectors are.
  static void Solve(Int n, Int columns, const T* a, const T* b, T* to, T* work) {
    WithVectors([=] {
      const Rows rows(n, columns, work);
      rows.Clear();
      for (Int i = 0; i < n; ++i) std::copy_n(a + int64_t{i} * n, n, rows.a(i));
      rows.ReadX(b);
      for (Int k = 0; k < n; ++k) {
        Int chosen = k;
        for (Int i = k + 1; i < n; ++i)
          if (std::abs(rows.a(i)[k]) > std::abs(rows.a(chosen)[k])) chosen = i;
        if (chosen != k)
          for (int64_t v = 0; v < rows.length; ++v) std::swap(rows[k][v], rows[chosen][v]);
        const T pivot = rows.a(k)[k], reciprocal = T(1) / pivot;
        const bool multiplies = std::abs(pivot) >= std::numeric_limits<T>::min(), zero = pivot == T(0);
        for (Int i = k + 1; i < n; ++i) {
          const T head = rows.a(i)[k], factor = zero ? head : multiplies ? head * reciprocal : head / pivot;
          for (int64_t v = zero ? rows.of_a : (k + 1) / kLanes; v < rows.length; ++v) rows[i][v] -= factor * rows[k][v];
        }
      }
      for (Int i = n - 1; i >= 0; --i) Unknowns(rows, i, n - 1, i, [&](Int j) { return rows.a(i)[j]; });
      rows.WriteX(to);
    });
  }

  // As CholeskySideBySide::Solve.
  static void SolvePositive(bool lower, bool symmetrize, Int n, Int columns, const T* from, const T* b, T* to,
                            T* work) {
    WithVectors([=] {
      const Rows rows(n, columns, work);
      rows.Clear();
      // The factor's transpose, an upper triangle.
      for (Int i = 0; i < n; ++i) {
        for (Int j = i; j < n; ++j) {
          const T above = from[i * n + j], below = from[j * n + i];
          rows.a(i)[j] = symmetrize ? (above + below) * T(0.5) : lower ? below : above;
        }
      }
      rows.ReadX(b);
      bool failed = false;
      for (Int k = 0; k < n; ++k) {
        const T diagonal = rows.a(k)[k];
        failed |= !(diagonal > T(0));
        const T root = std::sqrt(diagonal), reciprocal = T(1) / root;
        for (int64_t v = k / kLanes; v < rows.of_a; ++v) rows[k][v] *= reciprocal;
        rows.a(k)[k] = root;
        for (Int i = k + 1; i < n; ++i)
          for (int64_t v = i / kLanes; v < rows.of_a; ++v) rows[i][v] -= rows.a(k)[i] * rows[k][v];
      }
      for (Int i = 0; i < n; ++i) Unknowns(rows, i, 0, i, [&](Int k) { return rows.a(k)[i]; });
      for (Int i = n - 1; i >= 0; --i) Unknowns(rows, i, n - 1, i, [&](Int k) { return rows.a(i)[k]; });
      rows.WriteX(to);
      if (failed) std::fill_n(to, int64_t{n} * columns, std::numeric_limits<T>::quiet_NaN());
    });
  }

 private:
  static int64_t VectorsOf(Int elements) { return (elements + kLanes - 1) / kLanes; }

  // Of the matrix, each with that of its right-hand sides behind it.
  struct Rows {
    Rows(Int n, Int columns, T* work)
        : n(n), columns(columns), of_a(VectorsOf(n)), length(of_a + VectorsOf(columns)), work(work) {}
    Vec* operator[](Int i) const { return reinterpret_cast<Vec*>(work) + i * length; }
    T* a(Int i) const { return work + i * length * kLanes; }
    T* x(Int i) const { return a(i) + of_a * kLanes; }
    void Clear() const { std::fill_n(work, n * length * kLanes, T()); }
    // Without b: the unit matrix.
    void ReadX(const T* b) const {
      for (Int i = 0; i < n; ++i) {
        if (b)
          std::copy_n(b + int64_t{i} * columns, columns, x(i));
        else
          x(i)[i] = T(1);
      }
    }
    void WriteX(T* to) const {
      for (Int i = 0; i < n; ++i) std::copy_n(x(i), columns, to + int64_t{i} * columns);
    }
    const Int n, columns;
    const int64_t of_a, length;
    T* const work;
  };

  // Unknowns `i`, from which those from `first` on, up or down to `i`, are taken.
  template <class Factor>
  static void Unknowns(const Rows& rows, Int i, Int first, Int end, const Factor& factor) {
    const Int step = first < end ? 1 : -1;
    for (int64_t v = rows.of_a; v < rows.length; ++v) {
      Vec value = rows[i][v];
      for (Int j = first; j != end; j += step) value -= factor(j) * rows[j][v];
      rows[i][v] = value / rows.a(i)[i];
    }
  }
};

}  // namespace strop::lapack
