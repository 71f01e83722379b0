// Singular values and vectors of one real matrix that is not small and not far from square, by several threads: reduced
// to bidiagonal form (bidiagonal_form.h), then bidiagonal_svd.h, then reflector_product.h from both sides. A matrix
// with more columns than rows is transposed first.
#pragma once
#include "strop/runtime/lapack/bidiagonal_form.h"
#include "strop/runtime/lapack/bidiagonal_svd.h"
#include "strop/runtime/lapack/reflector_product.h"
#include "strop/runtime/lapack/scaling.h"
#include "strop/runtime/lapack/scratch_parts.h"

namespace strop::lapack {

template <class R>
class GeneralSvd {
 public:
  // Smaller ones are as fast by the library's own; of those longer than 5/3 of their width QR comes first there.
  static bool Suits(Int m, Int n) {
    return std::min(m, n) >= 24 && 3 * int64_t{std::max(m, n)} <= 5 * int64_t{std::min(m, n)};
  }

  // Whether the library has what this needs, and may be called by several threads. `full`: u and vt are square.
  bool Bind(const Site& site, Int m, Int n, bool full) {
    transposed_ = m < n;
    rows_ = std::max(m, n), n_ = std::min(m, n);
    left_columns_ = full ? rows_ : n_;
    return form_.Bind(site, rows_, n_) && middle_.Bind(site, n_) && product_.Bind(site);
  }
  // The scratch memory: the reflectors, the vectors of the bidiagonal matrix, what is transposed at the end, short
  // vectors, then what is needed one after another.
  size_t BytesNeeded() const {
    const int64_t n = n_;
    const int64_t inner = std::max(
        {ScratchBytes<R>(form_.WorkElements()),
         ScratchBytes<R>(middle_.RealElements()) + ScratchBytes<Int>(middle_.IntElements()),
         ScratchBytes<R>(LeftElements()) + ScratchBytes<R>(RightElements()) + ScratchBytes<R>(PanelElements())});
    const int64_t apart = transposed_ ? ScratchBytes<R>(int64_t{rows_} * left_columns_) + ScratchBytes<R>(n * n) : 0;
    return static_cast<size_t>(ScratchBytes<R>(form_.CopyElements()) + ScratchBytes<R>(form_.RightElements()) +
                               2 * ScratchBytes<R>(n * n) + apart + 4 * ScratchBytes<R>(n) + ScratchBytes<Int>(n) +
                               inner);
  }

  // a -> singular values s, descending, columns of u and rows of vt. info > 0 where an iteration fails. False, and
  // nothing done, for a matrix with an infinity or NaN.
  bool Solve(const R* a, R* s, R* u, R* vt, Int* info, char* scratch, ThreadPool* pool) const {
    const int64_t n = n_, rows = rows_;
    LargestExponent<R> largest;
    largest.Add(a, rows * n);
    const int outer = largest.OfExtremes();
    if (outer == kNoExponent) return false;

    ScratchParts parts{scratch};
    R *copy, *right, *ub, *vb, *d, *e, *tau_left, *tau_right, *left_vectors = u, *right_vectors = vt;
    Int* order;
    parts.Take(&copy, form_.CopyElements()), parts.Take(&right, form_.RightElements()), parts.Take(&ub, n * n),
        parts.Take(&vb, n * n);
    for (R** v : {&d, &e, &tau_left, &tau_right}) parts.Take(v, n);
    parts.Take(&order, n);
    if (transposed_) parts.Take(&left_vectors, rows * left_columns_), parts.Take(&right_vectors, n * n);
    Copy(a, -outer, copy);
    form_.Reduce(copy, right, d, e, tau_left, tau_right, reinterpret_cast<R*>(parts.next), pool);
    LargestExponent<R> of_middle;
    of_middle.Add(d, n), of_middle.Add(e, n - 1);
    const int inner = of_middle.Get();
    ScaleBy(-inner, d, n), ScaleBy(-inner, e, n - 1);
    R* const reals = reinterpret_cast<R*>(parts.next);
    Int* const ints = reinterpret_cast<Int*>(parts.next + ScratchBytes<R>(middle_.RealElements()));
    *info = middle_.Solve(d, e, ub, vb, n_, order, reals, ints, pool) ? 0 : 1;
    std::reverse(order, order + n);
    for (Int i = 0; i < n_; ++i) s[i] = d[order[i] - 1];
    ScaleBy(outer + inner, s, n);

    const Reflectors from_left = {rows_, n_, copy, 1, form_.stride(), false, tau_left};
    const Reflectors from_right = {n_ - 1, n_ - 1, right + 1, 1, form_.right_stride(), false, tau_right};
    R *left_blocks, *right_blocks, *panels;
    parts.Take(&left_blocks, LeftElements()), parts.Take(&right_blocks, RightElements()),
        parts.Take(&panels, PanelElements());
    product_.Prepare(from_left, left_blocks, pool);
    product_.Prepare(from_right, right_blocks, pool);
    const Int each_left = product_.PartOf(left_columns_), each_right = product_.PartOf(n_);
    const int64_t lefts = (left_columns_ + each_left - 1) / each_left, rights = (n_ + each_right - 1) / each_right;
    product_.InParallel(lefts + rights, pool, [&](int64_t p) {
      if (p < lefts) {
        const Int first = static_cast<Int>(p) * each_left, count = std::min(each_left, left_columns_ - first);
        R* const to = left_vectors + first * rows;
        for (Int j = 0; j < count; ++j) LeftColumn(first + j, ub, order, to + j * rows);
        product_.FromLeft(from_left, left_blocks, count, to, rows_, panels + int64_t{first} * product_.kBlock);
        if (transposed_) kernels_->transpose(count, rows_, to, rows_, vt + first, left_columns_);
      } else {
        const Int first = static_cast<Int>(p - lefts) * each_right, count = std::min(each_right, n_ - first);
        R *const to = right_vectors + first, *panel = panels + int64_t{left_columns_ + first} * product_.kBlock;
        for (Int j = 0; j < n_; ++j)
          for (Int i = 0; i < count; ++i) to[i + j * n] = vb[order[first + i] - 1 + j * n];
        product_.AdjointFromRight(from_right, right_blocks, count, to + n, n_, panel);
        if (transposed_) kernels_->transpose(n_, count, to, n_, u + first * n, n_);
      }
    });
    return true;
  }

 private:
  using Reflectors = typename ReflectorProduct<R>::Reflectors;

  int64_t LeftElements() const { return ReflectorProduct<R>::WorkElements(rows_, n_); }
  int64_t RightElements() const { return ReflectorProduct<R>::WorkElements(n_ - 1, n_ - 1); }
  int64_t PanelElements() const { return int64_t{left_columns_ + n_} * ReflectorProduct<R>::kBlock; }

  // Column by column, with more rows than columns; zeros where the form wants them.
  void Copy(const R* a, int exponent, R* to) const {
    const int64_t stride = form_.stride();
    std::fill_n(to, form_.CopyElements(), R(0));
    if (transposed_)
      kernels_->transpose(rows_, n_, a, n_, to, stride);
    else
      for (int64_t j = 0; j < n_; ++j) std::copy_n(a + j * rows_, rows_, to + j * stride);
    for (int64_t j = 0; j < n_; ++j) ScaleBy(exponent, to + j * stride, rows_);
  }
  // Left singular vector i of the bidiagonal matrix, with zeros below; behind the last one unit vectors follow.
  void LeftColumn(Int i, const R* ub, const Int* order, R* to) const {
    std::fill_n(to, rows_, R(0));
    if (i < n_)
      std::copy_n(ub + int64_t{order[i] - 1} * n_, n_, to);
    else
      to[i] = R(1);
  }

  const ColumnKernels<R>* kernels_ = &BestColumnKernels<R>();
  Int rows_ = 0, n_ = 0, left_columns_ = 0;
  bool transposed_ = false;
  BidiagonalForm<R> form_;
  BidiagonalSvd<R> middle_;
  ReflectorProduct<R> product_;
};

}  // namespace strop::lapack
