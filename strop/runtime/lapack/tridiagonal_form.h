// A real symmetric matrix reduced to tridiagonal form by reflectors, by several threads if it is large.
//
// As LAPACK's sytrd has it (Dongarra, Hammarling and Sorensen 1989): columns are taken in panels; inside of one only
// the column at hand is brought up to date, and what the panel's reflectors mean for the rest, a product of rank twice
// the panel's width, follows behind it. Half of the operations are products of the rest with a vector. How things are
// cut follows from the order alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "strop/runtime/lapack/column_kernels.h"
#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/reflector.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class R>
class TridiagonalForm {
 public:
  // Whether the library has what this needs, and may be called by several threads. `n` > 0.
  bool Bind(const Site& site, Int n) {
    library_ = &site.library();
    multiply_ = site.OtherOfReals<Multiply>("gemm");
    n_ = n;
    stride_ = static_cast<Int>(kernels_->RoundUp(n) + kernels_->lanes);
    return library_->concurrent() && multiply_;
  }
  // The elements of vector k of the reflectors, H(k), are behind row k + 1 of column k; so far apart are columns.
  Int stride() const { return stride_; }
  // The copy that the reflectors are left in, 64-byte aligned, and what else is needed.
  int64_t CopyElements() const { return int64_t{stride_} * (n_ + kernels_->lanes); }
  int64_t WorkElements() const { return int64_t{stride_} * (3 * kPanel + kMostParts); }

  // The lower triangle of a -> diagonal d, e next to it, reflectors in `copy`, tau of n - 1.
  void Reduce(const R* from, R* d, R* e, R* tau, R* copy, R* work, ThreadPool* pool) const {
    Copy(from, copy);
    Panel p = {copy, work, work + int64_t{kPanel} * stride_, work + int64_t{2 * kPanel} * stride_,
               work + int64_t{3 * kPanel} * stride_};
    std::fill_n(work, WorkElements(), R(0));
    for (Int first = 0; first < n_ - 1; first += kPanel) {
      const Int width = std::min(kPanel, n_ - 1 - first);
      for (Int i = 0; i < width; ++i) Column(first, i, p, d, e, tau, pool);
      UpdateRest(first, width, p, pool);
    }
    d[n_ - 1] = At(copy, n_ - 1)[n_ - 1];
  }

 private:
  static constexpr Int kPanel = 32, kMostParts = 8;
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const R* alpha, const R* a, const Int* lda, const R* b, const Int* ldb, const R* beta, R* c,
                        const Int* ldc, size_t, size_t);
  // The matrix, and of a panel its reflectors, what they are multiplied with, and its reflectors again; rows are those
  // of the matrix.
  struct Panel {
    R *a, *v, *w, *v_again, *parts;
  };

  template <class E>
  E* At(E* matrix, Int column) const {
    return matrix + int64_t{column} * stride_;
  }
  int64_t VectorOf(Int row) const { return row / kernels_->lanes * kernels_->lanes; }

  void Copy(const R* from, R* to) const {
    for (Int j = 0; j < n_; ++j, from += n_) {
      R* column = At(to, j);
      std::fill(column + VectorOf(j), column + j, R(0));
      std::copy(from + j, from + n_, column + j);
      std::fill(column + n_, column + stride_, R(0));
    }
    std::fill_n(At(to, n_), int64_t{stride_} * kernels_->lanes, R(0));
  }

  // Reflector i of the panel that begins at column `first`.
  void Column(Int first, Int i, const Panel& p, R* d, R* e, R* tau, ThreadPool* pool) const {
    const Int j = first + i, below = j + 1;
    R *column = At(p.a, j), *v = At(p.v, i), *w = At(p.w, i);
    R factors[kPanel] = {}, sums[kPanel];
    const auto add = [&](Int begin, const R* columns, R* to) {
      kernels_->add_product(begin, n_, i, columns, stride_, factors, to);
    };
    for (Int k = 0; k < i; ++k) factors[k] = -At(p.w, k)[j];
    add(j, p.v, column);
    for (Int k = 0; k < i; ++k) factors[k] = -At(p.v, k)[j];
    add(j, p.w, column);
    d[j] = column[j];

    std::fill(v + VectorOf(below), v + below + 1, R(0));
    std::copy(column + below + 1, column + n_, v + below + 1);
    const R squares = kernels_->dot(below, n_, v, v);
    e[j] = MakeReflector(column[below], squares, n_ - below - 1, v + below + 1, tau + j);
    v[below] = R(1);
    std::copy(v + below, v + n_, column + below);
    std::copy(v + VectorOf(below), v + n_, At(p.v_again, i) + VectorOf(below));

    std::fill(w + VectorOf(below), w + stride_, R(0));
    if (tau[j] == R(0)) return;
    AddSymmetric(below, p, v, w, pool);
    const auto subtract = [&](const R* of, const R* times) {
      kernels_->dots(below, n_, i, of, stride_, v, sums);
      for (Int k = 0; k < i; ++k) factors[k] = -sums[k];
      add(below, times, w);
    };
    subtract(p.w, p.v);
    subtract(p.v, p.w);
    const R alpha = R(-0.5) * tau[j] * kernels_->dot(below, n_, w, v) * tau[j];
    for (int64_t k = VectorOf(below); k < n_; ++k) w[k] = tau[j] * w[k] + alpha * v[k];
  }

  // w += a v, of the matrix from row and column `first` on.
  void AddSymmetric(Int first, const Panel& p, const R* v, R* w, ThreadPool* pool) const {
    constexpr Int kShared = 512;
    const Int order = n_ - first;
    if (order < kShared) return kernels_->add_symmetric(first, n_, n_, p.a, stride_, v, w);
    const Int parts = std::min(order / (kShared / 2), kMostParts);
    const auto cut = [&](int64_t part) {
      if (part == parts) return int64_t{n_};
      const double share = 1 - std::sqrt(1 - static_cast<double>(part) / parts);
      return first + VectorOf(static_cast<Int>(share * order));
    };
    const int64_t top = VectorOf(first);
    RunInParallel(*library_, parts, pool, [&](int64_t part) {
      R* sums = At(p.parts, static_cast<Int>(part));
      std::fill(sums + top, sums + stride_, R(0));
      kernels_->add_symmetric(cut(part), cut(part + 1), n_, p.a, stride_, v, sums);
    });
    for (Int part = 0; part < parts; ++part) {
      const R* sums = At(p.parts, part);
      for (int64_t k = top; k < n_; ++k) w[k] += sums[k];
    }
  }

  // What lies behind the panel, less v w^T + w v^T.
  void UpdateRest(Int first, Int width, const Panel& p, ThreadPool* pool) const {
    const Int begin = first + width, columns = n_ - begin;
    if (width < kPanel) {  // the last column, and of it one element
      R* last = At(p.a, n_ - 1) + n_ - 1;
      for (Int k = 0; k < width; ++k) *last -= R(2) * At(p.v, k)[n_ - 1] * At(p.w, k)[n_ - 1];
      return;
    }
    constexpr Int kColumns = 64, kDepth = 2 * kPanel;
    RunInParallel(*library_, (columns + kColumns - 1) / kColumns, pool, [&](int64_t part) {
      const Int at = begin + static_cast<Int>(part) * kColumns, rows = n_ - at, count = std::min(kColumns, rows);
      const R one(1), minus(-1);
      multiply_("N", "T", &rows, &count, &kDepth, &minus, p.v + at, &stride_, p.w + at, &stride_, &one,
                At(p.a, at) + at, &stride_, 1, 1);
    });
  }

  const ColumnKernels<R>* kernels_ = &BestColumnKernels<R>();
  const Library* library_ = nullptr;
  Multiply* multiply_ = nullptr;
  Int n_ = 0, stride_ = 0;
};

}  // namespace strop::lapack
