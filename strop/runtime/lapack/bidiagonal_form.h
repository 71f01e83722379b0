// A real matrix with no more columns than rows reduced to upper bidiagonal form by reflectors from both sides, by
// several threads if it is large.
//
// As LAPACK's gebrd has it (Dongarra, Hammarling and Sorensen 1989): columns and rows are taken in panels; inside of
// one only those at hand are brought up to date, and what the panel's reflectors mean for the rest, a product of rank
// twice the panel's width, follows behind it. Half of the operations are products of the rest with a vector. How things
// are cut follows from the sizes alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/runtime/lapack/column_kernels.h"
#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/reflector.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class R>
class BidiagonalForm {
 public:
  // Whether the library has what this needs, and may be called by several threads. 0 < n <= m.
  bool Bind(const Site& site, Int m, Int n) {
    library_ = &site.library();
    multiply_ = site.OtherOfReals<Multiply>("gemm");
    m_ = m, n_ = n;
    const int64_t lanes = kernels_->lanes;
    rows_ = static_cast<Int>(kernels_->RoundUp(m) + lanes), columns_ = static_cast<Int>(kernels_->RoundUp(n) + lanes);
    return library_->concurrent() && multiply_;
  }
  // How far apart columns of a copy are, and vectors of the reflectors from the right.
  Int stride() const { return rows_; }
  Int right_stride() const { return columns_; }
  // 64-byte aligned: a copy of the matrix, in which the reflectors from the left are left (those of column j behind its
  // element j); those from the right, a column each (of row j behind element j + 1); and what else is needed.
  int64_t CopyElements() const { return int64_t{rows_} * (n_ + kernels_->lanes); }
  int64_t RightElements() const { return int64_t{columns_} * n_; }
  int64_t WorkElements() const { return 2 * int64_t{kPanel} * (rows_ + columns_); }

  // The matrix in `a` -> its diagonal d, e next to it (n - 1), reflectors in `a` and `right`, tau of each.
  void Reduce(R* a, R* right, R* d, R* e, R* tau_left, R* tau_right, R* work, ThreadPool* pool) const {
    std::fill_n(work, WorkElements(), R(0));
    R* const small = work + 2 * int64_t{kPanel} * rows_;
    const Panel p = {a, work, work + int64_t{kPanel} * rows_, small, small + int64_t{kPanel} * columns_, right};
    for (Int first = 0; first < n_; first += kPanel) {
      const Int width = std::min(kPanel, n_ - first);
      for (Int i = 0; i < width; ++i) {
        const Int j = first + i;
        Column(j, i, p, d + j, tau_left + j, pool);
        if (j + 1 < n_) Row(j, i, p, e + j, tau_right + j, pool);
      }
      tau_right[n_ - 1] = R(0);
      UpdateRest(first + width, p, pool);
    }
  }

 private:
  static constexpr Int kPanel = 32;
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const R* alpha, const R* a, const Int* lda, const R* b, const Int* ldb, const R* beta, R* c,
                        const Int* ldc, size_t, size_t);
  // The matrix; of a panel its reflectors from the left and what those from the right are multiplied with, by the rows
  // of the matrix; what the former are multiplied with and the latter, by its columns: the rest is less v y^T + x u^T.
  struct Panel {
    R *a, *v, *x, *y, *u, *right;
  };

  template <class E>
  E* Rows(E* matrix, Int column) const {
    return matrix + int64_t{column} * rows_;
  }
  template <class E>
  E* Columns(E* matrix, Int column) const {
    return matrix + int64_t{column} * columns_;
  }
  int64_t VectorOf(Int row) const { return row / kernels_->lanes * kernels_->lanes; }

  // The element `at` of to, which ends at `end`, less what `count` vectors with these factors are.
  void Subtract(Int at, Int end, Int count, const R* vectors, Int stride, const R* factors, Int step, R* to) const {
    R negative[kPanel] = {};
    for (Int k = 0; k < count; ++k) negative[k] = -factors[int64_t{k} * step];
    kernels_->add_product(at, end, count, vectors, stride, negative, to);
  }
  // The reflector of from[at ...] -> vector[at ...], 1 first.
  R Reflect(Int at, Int end, const R* from, R* vector, R* tau) const {
    std::fill(vector + VectorOf(at), vector + at + 1, R(0));
    std::copy(from + at + 1, from + end, vector + at + 1);
    const R beta = MakeReflector(from[at], kernels_->dot(at, end, vector, vector), end - at - 1, vector + at + 1, tau);
    vector[at] = R(1);
    return beta;
  }

  // Column j, the panel's i, and what its reflector is multiplied with.
  void Column(Int j, Int i, const Panel& p, R* d, R* tau, ThreadPool* pool) const {
    R *column = Rows(p.a, j), *v = Rows(p.v, i), *y = Columns(p.y, i), sums[kPanel];
    Subtract(j, m_, i, p.v, rows_, p.y + j, columns_, column);
    Subtract(j, m_, i, p.x, rows_, p.u + j, columns_, column);
    *d = Reflect(j, m_, column, v, tau);
    std::copy(v + j, v + m_, column + j);
    const Int next = j + 1;
    std::fill(y + VectorOf(next), y + columns_, R(0));
    if (*tau == R(0) || next == n_) return;
    InStrips(next, n_, m_ - j, pool, [&](Int begin, Int end) {
      R found[kStrip + kMostLanes];
      kernels_->dots(j, m_, end - begin, Rows(p.a, begin), rows_, v, found);
      std::copy_n(found, end - begin, y + begin);
    });
    kernels_->dots(j, m_, i, p.v, rows_, v, sums);
    Subtract(next, n_, i, p.y, columns_, sums, 1, y);
    kernels_->dots(j, m_, i, p.x, rows_, v, sums);
    Subtract(next, n_, i, p.u, columns_, sums, 1, y);
    for (Int k = next; k < n_; ++k) y[k] *= *tau;
  }

  // Row j, behind the diagonal.
  void Row(Int j, Int i, const Panel& p, R* e, R* tau, ThreadPool* pool) const {
    const Int next = j + 1;
    R *u = Columns(p.u, i), *x = Rows(p.x, i), sums[kPanel], *row = Columns(p.right, j);
    std::fill(row + VectorOf(next), row + next, R(0));
    for (Int k = next; k < n_; ++k) row[k] = Rows(p.a, k)[j];
    std::fill(row + n_, row + columns_, R(0));
    Subtract(next, n_, i + 1, p.y, columns_, p.v + j, rows_, row);
    Subtract(next, n_, i, p.u, columns_, p.x + j, rows_, row);
    *e = Reflect(next, n_, row, u, tau);
    std::copy(u + next, u + n_, row + next);
    std::fill(x + VectorOf(next), x + rows_, R(0));
    if (*tau == R(0) || next == m_) return;
    InStrips(next, m_, n_ - next, pool, [&](Int begin, Int end) {
      kernels_->add_product(begin, end, n_ - next, Rows(p.a, next), rows_, u + next, x);
    });
    kernels_->dots(next, n_, i + 1, p.y, columns_, u, sums);
    Subtract(next, m_, i + 1, p.v, rows_, sums, 1, x);
    kernels_->dots(next, n_, i, p.u, columns_, u, sums);
    Subtract(next, m_, i, p.x, rows_, sums, 1, x);
    for (Int k = next; k < m_; ++k) x[k] *= *tau;
  }

  // strip(b, e) for [begin, end) in strips that begin at vectors; on several threads if they are worth it.
  template <class Fn>
  void InStrips(Int begin, Int end, Int length, ThreadPool* pool, const Fn& strip) const {
    constexpr int64_t kShared = int64_t{1} << 17;
    const Int first = static_cast<Int>(VectorOf(begin));
    if (int64_t{end - begin} * length < kShared) pool = nullptr;
    RunInParallel(*library_, (end - first + kStrip - 1) / kStrip, pool, [&](int64_t s) {
      const Int at = first + static_cast<Int>(s) * kStrip;
      strip(std::max(at, begin), std::min(at + kStrip, end));
    });
  }

  void UpdateRest(Int begin, const Panel& p, ThreadPool* pool) const {
    constexpr Int kColumns = 64, kDepth = 2 * kPanel;
    if (begin >= n_) return;
    RunInParallel(*library_, (n_ - begin + kColumns - 1) / kColumns, pool, [&](int64_t part) {
      const Int at = begin + static_cast<Int>(part) * kColumns, rows = m_ - begin, count = std::min(kColumns, n_ - at);
      const R one(1), minus(-1);
      multiply_("N", "T", &rows, &count, &kDepth, &minus, p.v + begin, &rows_, p.y + at, &columns_, &one,
                Rows(p.a, at) + begin, &rows_, 1, 1);
    });
  }

  static constexpr Int kStrip = 128, kMostLanes = 16;
  const ColumnKernels<R>* kernels_ = &BestColumnKernels<R>();
  const Library* library_ = nullptr;
  Multiply* multiply_ = nullptr;
  Int m_ = 0, n_ = 0, rows_ = 0, columns_ = 0;
};

}  // namespace strop::lapack
