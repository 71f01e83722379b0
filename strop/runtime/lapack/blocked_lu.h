// LU of one matrix that is not small, by several threads if it is large.
//
// Each block of columns is factored by the library (getrf), and what lies right of it is updated in parts: rows
// swapped, the block of U solved for, the rest multiplied (gemm). The next block is one of these parts, and is
// factored as soon as it is updated, while other threads are at the other parts. How columns are cut follows from the
// sizes alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"
#include "strop/runtime/lapack/substitution.h"

namespace strop::lapack {

template <class T>
class BlockedLu {
 public:
  // Smaller matrices are as fast by the library's own.
  static constexpr Int kLeast = kIsComplex<T> ? 256 : 48;
  // Smaller ones are no work for several threads.
  static constexpr Int kShared = 96;

  // Whether the library has what this needs, and may be called by several threads.
  bool Bind(const Site& site) {
    library_ = &site.library();
    factor_ = site.Other<Factor>("getrf", "getrf");
    swap_ = site.Other<Swap>("laswp", "laswp");
    solve_ = site.Other<Solve>("trsm", "trsm");
    multiply_ = site.Other<Multiply>("gemm", "gemm");
    return library_->concurrent() && factor_ && swap_ && solve_ && multiply_ && HasRoom();
  }

  void Lu(Int m, Int n, T* a, Int* pivots, Int* info, ThreadPool* pool) const {
    const Int k = std::min(m, n), block = BlockOf(k);
    if (k < kShared) pool = nullptr;
    *info = 0;
    FactorPanel(0, std::min(block, k), m, a, pivots, info);
    for (Int j = 0; j < k; j += block) {
      const Int width = std::min(block, k - j), right = n - j - width;
      // Part 0 is the next block, if there is one; the others are of the columns behind it.
      const Int next = std::min({block, right, k - j - width}), behind = right - next;
      const Int each = std::clamp<Int>((behind / kParts + kColumns - 1) / kColumns * kColumns, kColumns, kMostColumns);
      const Int parts = 1 + (behind + each - 1) / each;
      const auto part = [&](int64_t p) {
        if (p > 0) {
          const Int first = static_cast<Int>(p - 1) * each;
          return Update(j, width, m, j + width + next + first, std::min(each, behind - first), a, pivots);
        }
        if (next == 0) return;
        Update(j, width, m, j + width, next, a, pivots);
        FactorPanel(j + width, next, m, a, pivots, info);
      };
      RunInParallel(*library_, parts, pool, part);
    }
    // Columns that were left behind have their rows swapped at the end.
    RunInParallel(*library_, (k - 1) / block, pool, [&](int64_t p) {
      const Int first = static_cast<Int>(p) * block;
      for (Int j = first + block; j < k; j += block) SwapRows(j, std::min(block, k - j), m, first, block, a, pivots);
    });
    for (Int i = block; i < k; ++i) pivots[i] += i / block * block;
  }

 private:
  static constexpr Int kParts = 8, kColumns = 16, kMostColumns = 256;
  // The largest triangle that is solved with in one go, and what that works in (blocks of up to eight rows, panels of
  // up to 64 columns).
  static constexpr Int kTriangle = 64, kPackedElements = (kTriangle + 8) * (kTriangle + 16) / 2,
                       kPanelElements = (kTriangle + 8) * 64;

  // Narrow blocks leave less to one thread; products with wide ones are faster.
  static Int BlockOf(Int k) {
    constexpr Int kNarrow = kIsComplex<T> ? 0 : 600;
    return k <= kNarrow ? 32 : std::clamp<Int>(k / 8 / 32 * 32, 64, 256);
  }

  using Factor = void(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);
  using Swap = void(const Int* n, T* a, const Int* lda, const Int* first, const Int* last, const Int* pivots,
                    const Int* step);
  using Solve = void(const char* side, const char* triangle, const char* trans, const char* diagonal, const Int* m,
                     const Int* n, const T* alpha, const T* a, const Int* lda, T* b, const Int* ldb, size_t, size_t,
                     size_t, size_t);
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const T* alpha, const T* a, const Int* lda, const T* b, const Int* ldb, const T* beta, T* c,
                        const Int* ldc, size_t, size_t);

  static bool HasRoom() {
    if constexpr (kIsComplex<T>) {
      return true;
    } else {
      const SubstitutionKernels<T>& kernels = BestSubstitution<T>();
      return kernels.packed_elements(kTriangle) <= kPackedElements &&
             kernels.blocks(kTriangle) * kernels.rows * kernels.width <= kPanelElements;
    }
  }

  // The block at column j, its pivots counted from row j on.
  void FactorPanel(Int j, Int width, Int m, T* a, Int* pivots, Int* info) const {
    const Int rows = m - j;
    Int zero = 0;
    factor_(&rows, &width, a + j + int64_t{j} * m, &m, pivots + j, &zero);
    if (zero > 0 && *info == 0) *info = j + zero;
  }

  void SwapRows(Int j, Int width, Int m, Int first, Int columns, T* a, const Int* pivots) const {
    const Int one = 1;
    swap_(&columns, a + j + int64_t{first} * m, &m, &one, &width, pivots + j, &one);
  }

  // What the block at column j means for `columns` from `first` on.
  void Update(Int j, Int width, Int m, Int first, Int columns, T* a, const Int* pivots) const {
    SwapRows(j, width, m, first, columns, a, pivots);
    const T* panel = a + j + int64_t{j} * m;
    T* top = a + j + int64_t{first} * m;
    SolveUnitLower(width, columns, panel, m, top);
    if (const Int rows = m - j - width; rows > 0) SubtractProduct(rows, columns, width, panel + width, top, m);
  }

  // b := L^-1 b for the triangle `l`, with ones on its diagonal; both by columns that lie `stride` apart.
  void SolveUnitLower(Int size, Int columns, const T* l, Int stride, T* b) const {
    if constexpr (!kIsComplex<T>) {
      if (size <= kTriangle) return Substitute(size, columns, l, stride, b);
      const Int half = (size + 1) / 2;
      SolveUnitLower(half, columns, l, stride, b);
      SubtractProduct(size - half, columns, half, l + half, b, stride);
      SolveUnitLower(size - half, columns, l + half + int64_t{half} * stride, stride, b + half);
    } else {
      const T one(1);
      solve_("L", "L", "N", "U", &size, &columns, &one, l, &stride, b, &stride, 1, 1, 1, 1);
    }
  }

  // For few unknowns: the library's trsm takes seven times as long as its gemm (OpenBLAS 0.3.21, 64 unknowns).
  static void Substitute(Int size, Int columns, const T* l, Int stride, T* b) {
    const SubstitutionKernels<T>& kernels = BestSubstitution<T>();
    alignas(64) T packed[kPackedElements], panel[kPanelElements];
    SubstitutionTriangle<T> triangle = {
        .size = size, .at = l, .row_stride = 1, .column_stride = stride, .unit_diagonal = true};
    kernels.pack(triangle, 0, kernels.blocks(size), packed);
    triangle.at = packed, triangle.packed = true;
    for (Int c = 0; c < columns; c += kernels.width)
      kernels.solve(triangle, std::min<Int>(kernels.width, columns - c), b + int64_t{c} * stride, 1, stride, panel);
  }

  // The `rows` below `b` less `factor` times b.
  void SubtractProduct(Int rows, Int columns, Int depth, const T* factor, T* b, Int stride) const {
    const T one(1), minus(-1);
    multiply_("N", "N", &rows, &columns, &depth, &minus, factor, &stride, b, &stride, &one, b + depth, &stride, 1, 1);
  }

  const Library* library_ = nullptr;
  Factor* factor_ = nullptr;
  Swap* swap_ = nullptr;
  Solve* solve_ = nullptr;
  Multiply* multiply_ = nullptr;
};

}  // namespace strop::lapack
