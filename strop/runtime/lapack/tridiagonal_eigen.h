// Eigenvalues and eigenvectors of a real symmetric tridiagonal matrix, by several threads.
//
// Divide and conquer (Cuppen 1981; Gu and Eisenstat 1995) as LAPACK's stedc has it: the matrix is cut into leaves, each
// solved by QR iterations (steqr), and neighbours are merged, level by level. Of a merge the library finds what
// deflates (laed2) and the roots of the secular equation (laed4); all but the former is cut into parts that several
// threads take, and of a level with many merges each is a part. How things are cut follows from the order alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "strop/base/isa.h"
#include "strop/runtime/lapack/divide_and_conquer.h"
#include "strop/runtime/lapack/in_parallel.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class R>
class TridiagonalEigen {
 public:
  // Whether the library has what this needs, and may be called by several threads. `n` > 0.
  bool Bind(const Site& site, Int n) {
    library_ = &site.library();
    iterate_ = site.OtherOfReals<Iterate>("steqr");
    deflate_ = site.OtherOfReals<Deflate>("laed2");
    root_ = site.OtherOfReals<Root>("laed4");
    multiply_ = site.OtherOfReals<Multiply>("gemm");
    n_ = n;
    levels_ = 0;
    while (n >> levels_ > kLeaf) ++levels_;
    return library_->concurrent() && iterate_ && deflate_ && root_ && multiply_;
  }
  int64_t RealElements() const { return int64_t{n_} * (2 * n_ + kVectors + kParts); }
  int64_t IntElements() const { return 4 * int64_t{n_}; }

  // d, the diagonal -> eigenvalues, e, next to it -> destroyed. q -> eigenvectors of eigenvalues in this order;
  // order[i] is the one-based place of the i-th smallest. No element may be larger than about 1. False if an iteration
  // fails.
  bool Solve(R* d, R* e, R* q, Int* order, R* reals, Int* ints, ThreadPool* pool) const {
    for (Int node = 1; node < 1 << levels_; ++node) {
      const Int cut = Boundary(levels_, node);
      d[cut - 1] -= std::abs(e[cut - 1]);
      d[cut] -= std::abs(e[cut - 1]);
    }
    std::vector<char> failed(size_t{1} << levels_, 0);
    RunInParallel(*library_, int64_t{1} << levels_, pool, [&](int64_t leaf) {
      const Int first = Boundary(levels_, leaf), size = Boundary(levels_, leaf + 1) - first;
      for (Int j = first; j < first + size; ++j) std::fill_n(q + int64_t{j} * n_, n_, R(0));
      Int info = 0;
      R* const work = reals + int64_t{first} * n_;  // 2 size - 2 elements
      iterate_("I", &size, d + first, e + first, q + first + int64_t{first} * n_, &n_, work, &info, 1);
      for (Int j = 0; j < size; ++j) order[first + j] = j + 1;
      if (info != 0) failed[static_cast<size_t>(leaf)] = 1;
    });
    for (int level = levels_ - 1; level >= 0; --level) {
      const int64_t nodes = int64_t{1} << level;
      const bool each_alone = pool && nodes >= pool->num_threads();
      RunInParallel(*library_, nodes, each_alone ? pool : nullptr, [&](int64_t node) {
        Merge merge(*this, level, node, d, q, order, reals, ints);
        if (!merge.Run(e, each_alone ? nullptr : pool)) failed[static_cast<size_t>(node)] = 1;
      });
    }
    SortPlaces(d, n_, order);
    return std::all_of(failed.begin(), failed.end(), [](char f) { return f == 0; });
  }

 private:
  static constexpr Int kLeaf = 20, kVectors = 4;
  static constexpr int64_t kParts = MergeParts::kMost;

  using Iterate = void(const char* vectors, const Int* n, R* d, R* e, R* z, const Int* ldz, R* work, Int* info, size_t);
  using Deflate = void(Int* k, const Int* n, const Int* n1, R* d, R* q, const Int* ldq, Int* indxq, R* rho, R* z,
                       R* dlamda, R* w, R* q2, Int* indx, Int* indxc, Int* indxp, Int* coltyp, Int* info);
  using Root = void(const Int* n, const Int* i, const R* d, const R* z, R* delta, const R* rho, R* lambda, Int* info);
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const R* alpha, const R* a, const Int* lda, const R* b, const Int* ldb, const R* beta, R* c,
                        const Int* ldc, size_t, size_t);

  // Where the node of this number begins if there are 2^level.
  Int Boundary(int level, int64_t node) const { return static_cast<Int>((int64_t{n_} * node) >> level); }

  // Of the two nodes of the next level that one is made of.
  class Merge {
   public:
    Merge(const TridiagonalEigen& all, int level, int64_t node, R* d, R* q, Int* order, R* reals, Int* ints)
        : all_(all),
          n_(all.n_),
          first_(all.Boundary(level, node)),
          size_(all.Boundary(level, node + 1) - first_),
          upper_(all.Boundary(level + 1, 2 * node + 1) - first_) {
      const int64_t elements = int64_t{n_} * n_;
      d_ = d + first_;
      q_ = q + first_ + int64_t{first_} * n_;
      order_ = order + first_;
      q2_ = reals + int64_t{first_} * n_;
      roots_ = q2_ + elements;
      R* vectors = reals + 2 * elements + int64_t{first_} * (kVectors + kParts);
      for (R** v : {&z_, &poles_, &w_, &weights_}) *v = vectors, vectors += size_;
      spare_ = vectors;
      ints_ = ints + 4 * int64_t{first_};
    }

    bool Run(const R* e, ThreadPool* pool) {
      R rho = e[first_ + upper_ - 1];
      for (Int i = 0; i < size_; ++i) z_[i] = q_[(i < upper_ ? upper_ - 1 : upper_) + int64_t{i} * n_];
      Int info = 0, *groups = ints_ + size_, *types = ints_ + 3 * size_;
      all_.deflate_(&k_, &size_, &upper_, d_, q_, &n_, order_, &rho, z_, poles_, w_, q2_, ints_, groups,
                    ints_ + 2 * size_, types, &info);
      for (int t = 0; t < 3; ++t) of_type_[t] = types[t];
      if (k_ == 0) {  // nothing is left, and all is in order
        for (Int i = 0; i < size_; ++i) order_[i] = i + 1;
        return info == 0;
      }
      if (!Conquer(rho, groups, pool)) return false;
      OrderMerged(d_, k_, size_, order_);
      return info == 0;
    }

   private:
    // roots_ holds the distances of every root, a column each, to the poles, and then the vectors.
    R* Column(Int j) const { return roots_ + int64_t{j} * k_; }

    bool Conquer(R rho, const Int* groups, ThreadPool* pool) {
      const MergeParts parts(k_);
      if (size_ < 2 * kLeaf) pool = nullptr;
      bool failed[MergeParts::kMost] = {};
      const auto in_parts = [&](const auto& part) { parts.Run(*all_.library_, pool, part); };
      in_parts([&](Int begin, Int end, int64_t p) {
        for (Int j = begin; j < end; ++j) {
          const Int one_based = j + 1;
          Int info = 0;
          all_.root_(&k_, &one_based, poles_, w_, Column(j), &rho, d_ + j, &info);
          failed[p] |= info != 0;
        }
      });
      if (std::any_of(failed, failed + parts.count(), [](bool f) { return f; })) return false;
      if (k_ > 2) in_parts([&](Int begin, Int end, int64_t) { Weigh(begin, end); });
      in_parts([&](Int begin, Int end, int64_t p) {
        R* spare = spare_ + p * size_;
        for (Int j = begin; j < end; ++j) MakeVector(Column(j), groups, spare);
        MakeColumns(begin, end - begin);
      });
      return true;
    }

    // The weights of poles [begin, end) of which these are the very roots (Gu and Eisenstat).
    void Weigh(Int begin, Int end) {
      WithVectors([=, this] {
        for (Int i = begin; i < end; ++i) weights_[i] = Column(i)[i];
        for (Int j = 0; j < k_; ++j) {
          const R* column = Column(j);
          const R pole = poles_[j];
          const auto up_to = [=, this](Int from, Int to) {
            for (Int i = from; i < to; ++i) weights_[i] *= column[i] / (poles_[i] - pole);
          };
          up_to(begin, std::clamp(j, begin, end));
          up_to(std::clamp(j + 1, begin, end), end);
        }
        for (Int i = begin; i < end; ++i) weights_[i] = std::copysign(std::sqrt(-weights_[i]), w_[i]);
      });
    }

    // The eigenvector of the root whose distances are in `column`, its elements by the columns they are for.
    void MakeVector(R* column, const Int* groups, R* spare) const {
      R norm(1);
      if (k_ <= 2) {
        std::copy_n(column, k_, spare);  // laed4 has made the vector
      } else {
        WithVectors([=, this, &norm] {
          constexpr Int kLanes = 8;
          double squares[kLanes] = {};  // of which those of floats might overflow
          const auto element = [=, this](Int i, double* square) {
            const R x = weights_[i] / column[i];
            spare[i] = x;
            *square += static_cast<double>(x) * x;
          };
          Int i = 0;
          for (; i + kLanes <= k_; i += kLanes)
            for (Int l = 0; l < kLanes; ++l) element(i + l, squares + l);
          for (; i < k_; ++i) element(i, squares);
          double sum(0);
          for (double square : squares) sum += square;
          norm = static_cast<R>(std::sqrt(sum));
        });
      }
      for (Int i = 0; i < k_; ++i) column[i] = spare[groups[i] - 1] / norm;
    }

    // Eigenvectors [first, first + columns) of the whole: those of the parts times those of the merge.
    void MakeColumns(Int first, Int columns) const {
      const Int lower = size_ - upper_, n12 = of_type_[0] + of_type_[1], n23 = of_type_[1] + of_type_[2];
      R* top = q_ + int64_t{first} * n_;
      Multiply(upper_, columns, n12, q2_, Column(first), top);
      Multiply(lower, columns, n23, q2_ + int64_t{upper_} * n12, Column(first) + of_type_[0], top + upper_);
    }
    void Multiply(Int rows, Int columns, Int depth, const R* a, const R* b, R* c) const {
      const R one(1), zero(0);
      if (depth > 0) {
        all_.multiply_("N", "N", &rows, &columns, &depth, &one, a, &rows, b, &k_, &zero, c, &n_, 1, 1);
        return;
      }
      for (Int j = 0; j < columns; ++j) std::fill_n(c + int64_t{j} * n_, rows, R(0));
    }

    const TridiagonalEigen& all_;
    const Int n_, first_, size_, upper_;
    R *d_, *q_, *q2_, *roots_, *z_, *poles_, *w_, *weights_, *spare_;
    Int *order_, *ints_;
    Int k_ = 0, of_type_[3] = {};
  };

  const Library* library_ = nullptr;
  Iterate* iterate_ = nullptr;
  Deflate* deflate_ = nullptr;
  Root* root_ = nullptr;
  Multiply* multiply_ = nullptr;
  Int n_ = 0;
  int levels_ = 0;
};

}  // namespace strop::lapack
