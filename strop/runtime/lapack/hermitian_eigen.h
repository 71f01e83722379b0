// Eigenvalues and eigenvectors of one symmetric or Hermitian matrix that is not small, by several threads: reduced to
// tridiagonal form (tridiagonal_form.h; by the library's hetrd where it is complex), then tridiagonal_eigen.h, then
// reflector_product.h.
#pragma once
#include "strop/runtime/lapack/reflector_product.h"
#include "strop/runtime/lapack/scaling.h"
#include "strop/runtime/lapack/scratch_parts.h"
#include "strop/runtime/lapack/tridiagonal_eigen.h"
#include "strop/runtime/lapack/tridiagonal_form.h"

namespace strop::lapack {

template <class T>
class HermitianEigen {
  using R = Real<T>;

 public:
  // Smaller ones are as fast by the library's own.
  static constexpr Int kLeast = 25;

  // Whether the library has what this needs, and may be called by several threads.
  bool Bind(const Site& site, Int n) {
    n_ = n;
    if (!middle_.Bind(site, n) || !product_.Bind(site)) return false;
    if constexpr (!kIsComplex<T>) return form_.Bind(site, n);
    reduce_ = site.Other<ReduceFn>("sytrd", "hetrd");
    if (!reduce_) return false;
    T none{}, answer{};
    R rnone{};
    Int info = 0;
    const Int query = -1;
    reduce_("L", &n_, &none, &n_, &rnone, &rnone, &none, &answer, &query, &info, 1);
    return site.WorkSize(answer, info, &lwork_).ok();
  }
  // The scratch memory: eigenvectors of the tridiagonal matrix, vectors, reflectors that are not left in the matrix,
  // then what is needed one after another.
  size_t BytesNeeded() const {
    const int64_t n = n_, reduction = kIsComplex<T> ? ScratchBytes<T>(lwork_) : ScratchBytes<R>(form_.WorkElements()),
                  inner = std::max({ScratchBytes<R>(middle_.RealElements()) + ScratchBytes<Int>(middle_.IntElements()),
                                    reduction, ScratchBytes<T>(PreparedElements()) + ScratchBytes<T>(PanelElements())});
    return static_cast<size_t>(ScratchBytes<R>(n * n) + 2 * ScratchBytes<R>(n) + ScratchBytes<T>(n) +
                               ScratchBytes<Int>(n) + CopyBytes() + inner);
  }

  // a, of which the lower triangle is read, -> eigenvectors; w -> eigenvalues, ascending. info > 0 where an iteration
  // fails. False, and nothing done, for a matrix with an infinity or NaN.
  bool Solve(T* a, R* w, Int* info, char* scratch, ThreadPool* pool) const {
    const int64_t n = n_;
    ScratchParts parts{scratch};
    R *q, *d, *e;
    T* tau;
    Int* order;
    parts.Take(&q, n * n), parts.Take(&d, n), parts.Take(&e, n), parts.Take(&tau, n), parts.Take(&order, n);

    constexpr int64_t kReals = sizeof(T) / sizeof(R);
    LargestExponent<R> largest;
    const auto lower = [&](Int j) { return reinterpret_cast<R*>(a + j + j * n); };
    for (Int j = 0; j < n_; ++j) largest.Add(lower(j), kReals * (n_ - j));
    const int outer = largest.OfExtremes();
    if (outer == kNoExponent) return false;
    for (Int j = 0; j < n_; ++j) ScaleBy(-outer, lower(j), kReals * (n_ - j));

    *info = 0;
    const typename ReflectorProduct<T>::Reflectors reflectors =
        Reduce(a, d, e, tau, parts.next, parts.next + CopyBytes(), info, pool);
    parts.next += CopyBytes();
    LargestExponent<R> of_middle;
    of_middle.Add(d, n), of_middle.Add(e, n - 1);
    const int inner = of_middle.Get();
    ScaleBy(-inner, d, n), ScaleBy(-inner, e, n - 1);
    R* const reals = reinterpret_cast<R*>(parts.next);
    Int* const ints = reinterpret_cast<Int*>(parts.next + ScratchBytes<R>(middle_.RealElements()));
    if (!middle_.Solve(d, e, q, order, reals, ints, pool)) *info = 1;
    for (Int i = 0; i < n_; ++i) w[i] = d[order[i] - 1];
    ScaleBy(outer + inner, w, n);

    T *prepared, *panels;
    parts.Take(&prepared, PreparedElements()), parts.Take(&panels, PanelElements());
    product_.Prepare(reflectors, prepared, pool);
    const Int each = product_.PartOf(n_);
    product_.InParallel((n_ + each - 1) / each, pool, [&](int64_t p) {
      const Int first = static_cast<Int>(p) * each, count = std::min(each, n_ - first);
      for (Int j = first; j < first + count; ++j) std::copy_n(q + (order[j] - 1) * n, n, a + j * n);
      product_.FromLeft(reflectors, prepared, count, a + 1 + first * n, n_, panels + int64_t{first} * product_.kBlock);
    });
    return true;
  }

 private:
  using ReduceFn = void(const char* triangle, const Int* n, T* a, const Int* lda, R* diagonal, R* off_diagonal, T* tau,
                        T* work, const Int* lwork, Int* info, size_t);

  int64_t CopyBytes() const { return kIsComplex<T> ? 0 : ScratchBytes<R>(form_.CopyElements()); }
  typename ReflectorProduct<T>::Reflectors Reduce(T* a, R* d, R* e, T* tau, char* copy, char* work, Int* info,
                                                  ThreadPool* pool) const {
    if constexpr (kIsComplex<T>) {
      reduce_("L", &n_, a, &n_, d, e, tau, reinterpret_cast<T*>(work), &lwork_, info, 1);
      return {n_ - 1, n_ - 1, a + 1, 1, n_, false, tau};
    } else {
      R* const left = reinterpret_cast<R*>(copy);
      form_.Reduce(a, d, e, tau, left, reinterpret_cast<R*>(work), pool);
      return {n_ - 1, n_ - 1, left + 1, 1, form_.stride(), false, tau};
    }
  }

  int64_t PreparedElements() const { return ReflectorProduct<T>::WorkElements(n_ - 1, n_ - 1); }
  int64_t PanelElements() const { return int64_t{n_} * ReflectorProduct<T>::kBlock; }

  Int n_ = 0, lwork_ = 0;
  ReduceFn* reduce_ = nullptr;
  TridiagonalForm<R> form_;
  TridiagonalEigen<R> middle_;
  ReflectorProduct<T> product_;
};

}  // namespace strop::lapack
