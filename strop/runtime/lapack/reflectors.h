// QR of one large matrix, and Q of its reflectors, with trailing columns cut into parts that several threads take.
//
// LAPACK's own drivers factor the last 128 columns one by one, and all on one thread. Here each block of columns is
// factored by recursion (geqrt3), and the block reflector that it makes, I - V T V^H, is applied to what lies right of
// it (larfb), part by part. How columns are cut follows from the sizes alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class T>
class Reflectors {
 public:
  static constexpr Int kBlock = 32;
  // Fewer reflectors are as fast by the library's driver.
  static constexpr Int kLeast = 96;

  // Whether the library has what this needs, and may be called by several threads.
  bool Bind(const Site& site) {
    concurrent_ = site.library().concurrent();
    library_ = &site.library();
    factor_ = site.Other<Factor>("geqrt3", "geqrt3");
    form_ = site.Other<Form>("org2r", "ung2r");
    triangle_ = site.Other<Triangle>("larft", "larft");
    apply_ = site.Other<Apply>("larfb", "larfb");
    return factor_ && form_ && triangle_ && apply_;
  }
  static int64_t WorkElements(Int columns) { return int64_t{kBlock} * (columns + kBlock); }

  // a -> reflectors and r, tau.
  void Qr(Int m, Int n, T* a, T* tau, T* work, ThreadPool* pool) const {
    const Int k = std::min(m, n);
    T* t = work + int64_t{kBlock} * n;
    for (Int j = 0; j < k; j += kBlock) {
      const Int width = std::min(kBlock, k - j), rows = m - j;
      T* panel = a + j + int64_t{j} * m;
      Int info = 0;
      factor_(&rows, &width, panel, &m, t, &kBlock, &info);
      for (Int i = 0; i < width; ++i) tau[j + i] = t[i * (kBlock + 1)];
      ApplyTo(kIsComplex<T> ? 'C' : 'T', rows, width, n - j - width, m, panel, t, work, pool);
    }
  }

  // The first k columns of a, reflectors, -> q of n columns, k > 0.
  void Q(Int m, Int n, Int k, T* a, const T* tau, T* work, ThreadPool* pool) const {
    T* t = work + int64_t{kBlock} * n;
    for (Int j = k; j < n; ++j) {
      std::fill_n(a + int64_t{j} * m, m, T(0));
      a[j + int64_t{j} * m] = T(1);
    }
    for (Int j = (k - 1) / kBlock * kBlock; j >= 0; j -= kBlock) {
      const Int width = std::min(kBlock, k - j), rows = m - j;
      T* panel = a + j + int64_t{j} * m;
      triangle_("F", "C", &rows, &width, panel, &m, tau + j, t, &kBlock, 1, 1);
      ApplyTo('N', rows, width, n - j - width, m, panel, t, work, pool);
      Int info = 0;
      form_(&rows, &width, &width, panel, &m, tau + j, work, &info);
      for (Int i = j; i < j + width; ++i) std::fill_n(a + int64_t{i} * m, j, T(0));
    }
  }

 private:
  using Factor = void(const Int* m, const Int* n, T* a, const Int* lda, T* t, const Int* ldt, Int* info);
  using Form = void(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau, T* work, Int* info);
  using Triangle = void(const char* direction, const char* stored, const Int* n, const Int* k, T* v, const Int* ldv,
                        const T* tau, T* t, const Int* ldt, size_t, size_t);
  using Apply = void(const char* side, const char* trans, const char* direction, const char* stored, const Int* m,
                     const Int* n, const Int* k, const T* v, const Int* ldv, const T* t, const Int* ldt, T* c,
                     const Int* ldc, T* work, const Int* ldwork, size_t, size_t, size_t, size_t);

  // The block reflector of `panel` on the `columns` right of it.
  void ApplyTo(char trans, Int rows, Int width, Int columns, Int m, T* panel, const T* t, T* work,
               ThreadPool* pool) const {
    if (columns <= 0) return;
    constexpr double kFlopsPerPart = 4e5;
    constexpr Int kMostParts = 16, kLeastColumns = 16;
    const double flops = 4.0 * rows * width * columns;
    const Int parts = std::clamp<Int>(static_cast<Int>(flops / kFlopsPerPart), 1, kMostParts);
    const Int each = std::max(kLeastColumns, (columns + parts - 1) / parts);
    RunInParallel(*library_, (columns + each - 1) / each, concurrent_ ? pool : nullptr, [&](int64_t p) {
      const Int first = static_cast<Int>(p) * each, count = std::min(each, columns - first);
      apply_("L", &trans, "F", "C", &rows, &count, &width, panel, &m, t, &kBlock, panel + int64_t{width + first} * m,
             &m, work + int64_t{first} * kBlock, &count, 1, 1, 1, 1);
    });
  }

  const Library* library_ = nullptr;
  bool concurrent_ = false;
  Factor* factor_ = nullptr;
  Form* form_ = nullptr;
  Triangle* triangle_ = nullptr;
  Apply* apply_ = nullptr;
};

}  // namespace strop::lapack
