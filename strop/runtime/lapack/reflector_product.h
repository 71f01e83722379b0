// The unitary matrix that a reduction left as reflectors, times a matrix, by several threads.
//
// LAPACK's drivers (ormtr, ormbr) go through the blocks of reflectors and apply each to the whole matrix. Here every
// block is first made explicit: its vectors V and V T of I - V T V^H (Schreiber and Van Loan 1989), so that applying it
// is two products; and each part of the matrix has all blocks applied to it while it is near. How it is cut follows
// from the sizes alone.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class T>
class ReflectorProduct {
 public:
  // Whether the library has what this needs, and may be called by several threads.
  bool Bind(const Site& site) {
    library_ = &site.library();
    triangle_ = site.Other<Triangle>("larft", "larft");
    multiply_ = site.Other<Multiply>("gemm", "gemm");
    return library_->concurrent() && triangle_ && multiply_;
  }
  // What blocks of `count` reflectors of `order` elements are kept in.
  static int64_t WorkElements(Int order, Int count) {
    return 2 * int64_t{order} * count + int64_t{BlocksOf(count)} * kBlock * kBlock;
  }

  // H(1) H(2) ... H(count), H(i) = I - tau(i) v v^H; v is zero before its element i, which is 1, and the elements
  // behind it are at at[j * step + i * stride], j > i (conjugated if `conjugated`: those of rows).
  struct Reflectors {
    Int order, count;
    const T* at;
    int64_t step, stride;
    bool conjugated;
    const T* tau;
  };
  void Prepare(const Reflectors& r, T* work, ThreadPool* pool) const {
    InParallel(BlocksOf(r.count), pool, [&](int64_t b) { PrepareBlock(r, static_cast<Int>(b), work); });
  }

  // c := H c for the `columns` columns of c, one part of them. Not before Prepare. `panel` is for kBlock * columns.
  void FromLeft(const Reflectors& r, const T* work, Int columns, T* c, Int stride, T* panel) const {
    const T one(1), minus(-1), zero(0);
    for (Int b = BlocksOf(r.count) - 1; b >= 0; --b) {
      const Block k = BlockAt(r, b);
      T* rows = c + k.first;
      multiply_("C", "N", &k.width, &columns, &k.rows, &one, work + k.v, &k.rows, rows, &stride, &zero, panel, &k.width,
                1, 1);
      multiply_("N", "N", &k.rows, &columns, &k.width, &minus, work + k.vt, &k.rows, panel, &k.width, &one, rows,
                &stride, 1, 1);
    }
  }
  // c := c H^H for `rows` rows of c, one part of them. `panel` is for kBlock * rows.
  void AdjointFromRight(const Reflectors& r, const T* work, Int rows, T* c, Int stride, T* panel) const {
    const T one(1), minus(-1), zero(0);
    for (Int b = BlocksOf(r.count) - 1; b >= 0; --b) {
      const Block k = BlockAt(r, b);
      T* columns = c + int64_t{k.first} * stride;
      multiply_("N", "N", &rows, &k.width, &k.rows, &one, columns, &stride, work + k.v, &k.rows, &zero, panel, &rows, 1,
                1);
      multiply_("N", "C", &rows, &k.rows, &k.width, &minus, panel, &rows, work + k.vt, &k.rows, &one, columns, &stride,
                1, 1);
    }
  }
  static constexpr Int kBlock = 32;

  // The width of the parts that `size` columns (or rows) are cut into.
  static Int PartOf(Int size) {
    constexpr Int kLeast = 32, kParts = 16;
    return std::max(kLeast, (size / kParts + 15) / 16 * 16);
  }
  // part(p) for all p, each on a thread with the library to itself.
  template <class Fn>
  void InParallel(int64_t parts, ThreadPool* pool, const Fn& part) const {
    RunInParallel(*library_, parts, pool, part);
  }

 private:
  using Triangle = void(const char* direction, const char* stored, const Int* n, const Int* k, T* v, const Int* ldv,
                        const T* tau, T* t, const Int* ldt, size_t, size_t);
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const T* alpha, const T* a, const Int* lda, const T* b, const Int* ldb, const T* beta, T* c,
                        const Int* ldc, size_t, size_t);
  struct Block {
    Int first, width, rows;
    int64_t v, vt, t;  // where in `work`
  };

  static Int BlocksOf(Int count) { return (count + kBlock - 1) / kBlock; }
  static Block BlockAt(const Reflectors& r, Int b) {
    const Int first = b * kBlock;
    const int64_t column = int64_t{first} * r.order, all = int64_t{r.count} * r.order;
    return {first,        std::min(kBlock, r.count - first),     r.order - first, column,
            all + column, 2 * all + int64_t{b} * kBlock * kBlock};
  }

  void PrepareBlock(const Reflectors& r, Int b, T* work) const {
    const Block k = BlockAt(r, b);
    T *v = work + k.v, *t = work + k.t;
    for (Int i = 0; i < k.width; ++i) {
      T* column = v + int64_t{i} * k.rows;
      const T* from = r.at + k.first * r.step + (k.first + i) * r.stride;
      std::fill_n(column, i, T(0));
      column[i] = T(1);
      for (Int j = i + 1; j < k.rows; ++j) column[j] = from[j * r.step];
      if constexpr (kIsComplex<T>)
        if (r.conjugated)
          for (Int j = i + 1; j < k.rows; ++j) column[j] = std::conj(column[j]);
    }
    triangle_("F", "C", &k.rows, &k.width, v, &k.rows, r.tau + k.first, t, &kBlock, 1, 1);
    // The library leaves what is below the triangle.
    for (Int i = 0; i < k.width; ++i) std::fill(t + i * kBlock + i + 1, t + i * kBlock + k.width, T(0));
    const T one(1), zero(0);
    multiply_("N", "N", &k.rows, &k.width, &k.width, &one, v, &k.rows, t, &kBlock, &zero, work + k.vt, &k.rows, 1, 1);
  }

  const Library* library_ = nullptr;
  Triangle* triangle_ = nullptr;
  Multiply* multiply_ = nullptr;
};

}  // namespace strop::lapack
