// Cholesky's factor of one real matrix that is not small, by several threads if it is large.
//
// The lower triangle is taken in blocks of columns, from the left. Of each block the triangle on the diagonal is
// factored by the library (potrf); then what lies below is solved for, strip by strip; then what lies right of it is
// updated, block column by block column, among which the next triangle is updated and factored first. How things are
// cut follows from the order alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"
#include "strop/runtime/lapack/substitution.h"

namespace strop::lapack {

template <class T>
class BlockedCholesky {
 public:
  // Smaller matrices are as fast by the library's own.
  static constexpr Int kLeast = 96;

  // Whether the library has what this needs, and may be called by several threads.
  bool Bind(const Site& site) {
    library_ = &site.library();
    factor_ = site.Other<Factor>("potrf", "potrf");
    square_ = site.Other<Square>("syrk", "syrk");
    multiply_ = site.Other<Multiply>("gemm", "gemm");
    return library_->concurrent() && factor_ && square_ && multiply_ && kernels_->blocks(kBlock) <= kMostBlocks &&
           kernels_->rows <= kMostRows && kernels_->width <= kMostWidth;
  }

  // The lower triangle of a -> its factor; the other one is neither read nor written. info: the first order of which
  // the matrix is not positive definite, or 0.
  void Cholesky(Int n, T* a, Int* info, ThreadPool* pool) const {
    alignas(64) T packed[kMostBlocks * (kMostBlocks + 1) / 2 * kMostRows * kMostRows];
    const auto at = [=](Int i, Int j) { return a + i + int64_t{j} * n; };
    *info = 0;
    FactorDiagonal(n, 0, at(0, 0), info, packed);
    for (Int j = 0; *info == 0 && j + kBlock < n; j += kBlock) {
      const Int next = j + kBlock, rest = n - next, blocks = (rest + kBlock - 1) / kBlock;
      RunInParallel(*library_, (rest + kernels_->width - 1) / kernels_->width, pool, [&](int64_t strip) {
        const Int first = next + static_cast<Int>(strip) * kernels_->width,
                  count = std::min(n - first, kernels_->width);
        alignas(64) T panel[kMostBlocks * kMostRows * kMostWidth];
        kernels_->solve(Triangle(kBlock, packed), count, at(first, j), n, 1, panel);
      });
      // Part 0 is the next triangle, part 1 what lies below it, the others are the other block columns.
      RunInParallel(*library_, blocks + 1, pool, [&](int64_t part) {
        const Int first = next + kBlock * static_cast<Int>(std::max<int64_t>(part - 1, 0)),
                  size = std::min(kBlock, n - first), below = n - first - size;
        const T one(1), minus(-1);
        if (part != 1) square_("L", "N", &size, &kBlock, &minus, at(first, j), &n, &one, at(first, first), &n, 1, 1);
        if (part != 0 && below > 0)
          multiply_("N", "T", &below, &size, &kBlock, &minus, at(first + size, j), &n, at(first, j), &n, &one,
                    at(first + size, first), &n, 1, 1);
        if (part == 0) FactorDiagonal(n, next, at(next, next), info, packed);
      });
    }
  }

 private:
  static constexpr Int kBlock = 64, kMostBlocks = 22, kMostRows = 6, kMostWidth = 64;
  using Factor = void(const char* triangle, const Int* n, T* a, const Int* lda, Int* info, size_t);
  using Square = void(const char* triangle, const char* trans, const Int* n, const Int* k, const T* alpha, const T* a,
                      const Int* lda, const T* beta, T* c, const Int* ldc, size_t, size_t);
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const T* alpha, const T* a, const Int* lda, const T* b, const Int* ldb, const T* beta, T* c,
                        const Int* ldc, size_t, size_t);

  static SubstitutionTriangle<T> Triangle(Int size, const T* packed) {
    return {.size = size, .at = packed, .packed = true};
  }
  // The triangle at row and column j, and its factor for those who solve with it.
  void FactorDiagonal(Int n, Int j, T* a, Int* info, T* packed) const {
    const Int size = std::min(kBlock, n - j);
    Int failed = 0;
    factor_("L", &size, a, &n, &failed, 1);
    if (failed > 0) *info = j + failed;
    if (size == kBlock)
      kernels_->pack({.size = size, .at = a, .row_stride = 1, .column_stride = n}, 0, kernels_->blocks(size), packed);
  }

  const SubstitutionKernels<T>* kernels_ = &BestSubstitution<T>();
  const Library* library_ = nullptr;
  Factor* factor_ = nullptr;
  Square* square_ = nullptr;
  Multiply* multiply_ = nullptr;
};

}  // namespace strop::lapack
