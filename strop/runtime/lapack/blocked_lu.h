// LU of one matrix that lies row by row and is not small, by several threads if it is large.
//
// The matrix is cut into strips of columns, which are copied to be each in one place. Each block of columns is copied
// out, factored by the library (getrf) and copied back; what lies right of it is updated strip by strip: rows swapped,
// which are contiguous, the block of U solved for, the rest multiplied (gemm, of the transposed matrices, which lie by
// columns). The next block belongs to one of these strips, and is factored as soon as it is updated, while other
// threads are at the other strips. How columns are cut follows from the sizes alone.
#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "strop/base/claims.h"
#include "strop/runtime/lapack/column_kernels.h"
#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"
#include "strop/runtime/lapack/substitution.h"

namespace strop::lapack {

template <class T>
class BlockedLu {
 public:
  // Smaller ones are no work for several threads.
  static constexpr Int kShared = 96;

  // NotFound if the library lacks a routine.
  Status Bind(const Site& site) {
    library_ = &site.library();
    factor_ = site.Other<Factor>("getrf", "getrf");
    solve_ = site.Other<Solve>("trsm", "trsm");
    multiply_ = site.Other<Multiply>("gemm", "gemm");
    if (factor_ && solve_ && multiply_) return OkStatus();
    return NotFound("the LAPACK library ", library_->path(), " lacks getrf, trsm or gemm");
  }
  // What the matrix and a block of columns are copied to.
  static int64_t WorkElements(Int m, Int n) {
    const Int block = BlockOf(std::min(m, n)), strip = StripOf(block);
    return int64_t{m} * ((n + strip - 1) / strip * strip) + int64_t{block} * StrideOf(m);
  }

  // `from`, m rows of n elements, -> its factors in `to`, which may be the same; one-based pivots; info as getrf's.
  void Lu(Int m, Int n, const T* from, T* to, Int* pivots, Int* info, T* work, ThreadPool* pool) const {
    const Int k = std::min(m, n), block = BlockOf(k);
    if (k < kShared || !library_->concurrent()) pool = nullptr;
    *info = 0;
    const Matrix matrix = {m, n, StripOf(block), work, work + WorkElements(m, n) - int64_t{block} * StrideOf(m)};
    ForStrips(matrix, 0, pool, [&](Int first, Int end) {
      for (int64_t i = 0; i < m; ++i) std::copy_n(from + i * n + first, end - first, matrix.At(i, first));
    });
    FactorPanel(matrix, 0, std::min(block, k), pivots, info);
    for (Int j = 0; j < k; j += block) {
      const Int width = std::min(block, k - j), behind = j + width, next = std::min(behind + block, k);
      ForStrips(matrix, behind, pool, [&](Int first, Int end) {
        // The next block, if there is one, is factored as soon as it can be.
        if (first == behind && next > behind) {
          Update(matrix, j, width, first, next - first, pivots);
          FactorPanel(matrix, first, next - first, pivots, info);
          first = next;
        }
        if (first < end) Update(matrix, j, width, first, end - first, pivots);
      });
    }
    ForStrips(matrix, 0, pool, [&](Int first, Int end) {
      for (Int j = first; j < end; j += block) CopyBack(matrix, j, std::min(block, end - j), block, pivots, to);
    });
    for (Int i = block; i < k; ++i) pivots[i] += i / block * block;
  }

 private:
  // The largest triangle that is solved with in one go, and what that works in (blocks of up to eight rows, panels of
  // up to 64 columns).
  static constexpr Int kTriangle = 64, kPackedElements = (kTriangle + 8) * (kTriangle + 16) / 2,
                       kPanelElements = (kTriangle + 8) * 64;

  // Strips lie behind each other, each by its rows, so that no two threads write what the processor fetches together.
  struct Matrix {
    Int m, n, strip;
    T *a, *work;
    T* At(int64_t i, Int j) const { return a + (int64_t{j / strip} * m + i) * strip + j % strip; }
  };

  // Narrow blocks leave less to one thread; products with wide ones are faster.
  static Int BlockOf(Int k) {
    constexpr Int kNarrow = kIsComplex<T> ? 0 : 600;
    return k <= kNarrow ? 32 : std::clamp<Int>(k / 8 / 32 * 32, 64, 256);
  }
  static Int StripOf(Int block) { return std::max<Int>(block, 64); }
  // Columns of the copy of a block begin in different sets of a cache.
  static Int StrideOf(Int m) { return (m + 15) / 16 * 16 + 16; }

  using Factor = void(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);
  using Solve = void(const char* side, const char* triangle, const char* trans, const char* diagonal, const Int* m,
                     const Int* n, const T* alpha, const T* a, const Int* lda, T* b, const Int* ldb, size_t, size_t,
                     size_t, size_t);
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const T* alpha, const T* a, const Int* lda, const T* b, const Int* ldb, const T* beta, T* c,
                        const Int* ldc, size_t, size_t);

  static void Transpose(Int rows, Int columns, const T* from, int64_t stride, T* to, int64_t to_stride) {
    if constexpr (!kIsComplex<T>) return BestColumnKernels<T>().transpose(rows, columns, from, stride, to, to_stride);
    constexpr Int kSquare = 8;
    for (Int j0 = 0; j0 < columns; j0 += kSquare)
      for (Int i0 = 0; i0 < rows; i0 += kSquare)
        for (Int i = i0; i < std::min(i0 + kSquare, rows); ++i)
          for (Int j = j0; j < std::min(j0 + kSquare, columns); ++j) to[j * to_stride + i] = from[i * stride + j];
  }

  // strip(first, end) for columns [begin, n), cut at multiples of the strips' width. Every thread has its own strips,
  // every so manieth, which stay where it has them at hand; those that come first are begun first.
  template <class Fn>
  void ForStrips(const Matrix& x, Int begin, ThreadPool* pool, const Fn& strip) const {
    const Int first = begin / x.strip, end = (x.n + x.strip - 1) / x.strip;
    const Int homes = pool ? Claims::HomesOf(pool->num_threads()) : 1, each = (end - first + homes - 1) / homes;
    RunInParallel(*library_, int64_t{homes} * each, pool, [&](int64_t task) {
      const Int home = static_cast<Int>(task) / each, skipped = (home - first % homes + homes) % homes;
      const Int at = first + skipped + static_cast<Int>(task) % each * homes;
      if (at < end) strip(std::max(begin, at * x.strip), std::min(x.n, (at + 1) * x.strip));
    });
  }

  // The block at column j, its pivots counted from row j on.
  void FactorPanel(const Matrix& x, Int j, Int width, Int* pivots, Int* info) const {
    const Int rows = x.m - j, stride = StrideOf(x.m);
    Transpose(rows, width, x.At(j, j), x.strip, x.work, stride);
    Int zero = 0;
    factor_(&rows, &width, x.work, &stride, pivots + j, &zero);
    if (zero > 0 && *info == 0) *info = j + zero;
    Transpose(width, rows, x.work, stride, x.At(j, j), x.strip);
  }

  static void SwapRows(const Matrix& x, Int j, Int width, Int first, Int columns, const Int* pivots) {
    for (Int i = j; i < j + width; ++i)
      if (const Int other = j + pivots[i] - 1; other != i)
        std::swap_ranges(x.At(i, first), x.At(i, first) + columns, x.At(other, first));
  }

  // Columns [j, j + width) of the result. They were left behind when blocks further right were factored: rows are where
  // those have swapped them to.
  static void CopyBack(const Matrix& x, Int j, Int width, Int block, const Int* pivots, T* to) {
    const Int k = std::min(x.m, x.n), behind = std::min(j + block, k);
    // place[i - behind]: where row i was.
    std::vector<Int> place(static_cast<size_t>(x.m - behind));
    std::iota(place.begin(), place.end(), behind);
    for (Int i = behind; i < k; ++i)
      std::swap(place[static_cast<size_t>(i - behind)],
                place[static_cast<size_t>(i / block * block + pivots[i] - 1 - behind)]);
    for (Int i = 0; i < x.m; ++i)
      std::copy_n(x.At(i < behind ? i : place[static_cast<size_t>(i - behind)], j), width, to + int64_t{i} * x.n + j);
  }

  // What the block at column j means for `columns` from `first` on.
  void Update(const Matrix& x, Int j, Int width, Int first, Int columns, const Int* pivots) const {
    SwapRows(x, j, width, first, columns, pivots);
    T* top = x.At(j, first);
    SolveUnitLower(width, columns, x.At(j, j), x.strip, top);
    const Int below = j + width;
    if (const Int rows = x.m - below; rows > 0) SubtractProduct(rows, columns, width, x.At(below, j), top, x.strip);
  }

  // b := L^-1 b for the triangle `l`, with ones on its diagonal; both by rows that lie `stride` apart.
  void SolveUnitLower(Int size, Int columns, const T* l, Int stride, T* b) const {
    if constexpr (!kIsComplex<T>) {
      if (size <= kTriangle && HasRoom()) return Substitute(size, columns, l, stride, b);
      if (size > kTriangle) {
        const Int half = (size + 1) / 2;
        const int64_t below = int64_t{half} * stride;
        SolveUnitLower(half, columns, l, stride, b);
        SubtractProduct(size - half, columns, half, l + below, b, stride);
        return SolveUnitLower(size - half, columns, l + below + half, stride, b + below);
      }
    }
    const T one(1);
    solve_("R", "U", "N", "U", &columns, &size, &one, l, &stride, b, &stride, 1, 1, 1, 1);
  }

  static bool HasRoom() {
    const SubstitutionKernels<T>& kernels = BestSubstitution<T>();
    return kernels.packed_elements(kTriangle) <= kPackedElements &&
           kernels.blocks(kTriangle) * kernels.rows * kernels.width <= kPanelElements;
  }
  // For few unknowns: the library's trsm takes seven times as long as its gemm (OpenBLAS 0.3.21, 64 unknowns).
  static void Substitute(Int size, Int columns, const T* l, Int stride, T* b) {
    const SubstitutionKernels<T>& kernels = BestSubstitution<T>();
    alignas(64) T packed[kPackedElements], panel[kPanelElements];
    SubstitutionTriangle<T> triangle = {
        .size = size, .at = l, .row_stride = stride, .column_stride = 1, .unit_diagonal = true};
    kernels.pack(triangle, 0, kernels.blocks(size), packed);
    triangle.at = packed, triangle.packed = true;
    for (Int c = 0; c < columns; c += kernels.width)
      kernels.solve(triangle, std::min<Int>(kernels.width, columns - c), b + c, stride, 1, panel);
  }

  // The `rows` that `depth` rows lie above, the first of them b, less `factor` times b; all `stride` apart.
  void SubtractProduct(Int rows, Int columns, Int depth, const T* factor, T* b, Int stride) const {
    const T one(1), minus(-1);
    multiply_("N", "N", &columns, &rows, &depth, &minus, b, &stride, factor, &stride, &one, b + int64_t{depth} * stride,
              &stride, 1, 1);
  }

  const Library* library_ = nullptr;
  Factor* factor_ = nullptr;
  Solve* solve_ = nullptr;
  Multiply* multiply_ = nullptr;
};

}  // namespace strop::lapack
