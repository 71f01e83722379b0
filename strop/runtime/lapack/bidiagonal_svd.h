// Singular values and vectors of a real upper bidiagonal matrix, by several threads.
//
// Divide and conquer (Gu and Eisenstat 1995) as LAPACK's bdsdc has it: the matrix is cut at rows that are left out,
// down to leaves, each solved by QR iterations (lasdq), and neighbours are merged with the row between them, level by
// level. Of a merge the library finds what deflates (lasd2) and the roots of the secular equation (lasd4); all but the
// former is cut into parts that several threads take, and of a level with many merges each is a part. How things are
// cut follows from the order alone.
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
class BidiagonalSvd {
 public:
  // Whether the library has what this needs, and may be called by several threads. `n` > 0.
  bool Bind(const Site& site, Int n) {
    library_ = &site.library();
    iterate_ = site.OtherOfReals<Iterate>("lasdq");
    deflate_ = site.OtherOfReals<Deflate>("lasd2");
    root_ = site.OtherOfReals<Root>("lasd4");
    multiply_ = site.OtherOfReals<Multiply>("gemm");
    n_ = n;
    levels_.assign(1, {Node{0, n, 0}});
    while (levels_.back().front().size > kLeaf) {
      std::vector<Node> below;
      for (const Node& node : levels_.back()) {
        below.push_back({node.first, node.upper(), 1});
        below.push_back({node.first + node.upper() + 1, node.lower(), node.extra});
      }
      levels_.push_back(std::move(below));
    }
    return library_->concurrent() && iterate_ && deflate_ && root_ && multiply_;
  }
  int64_t RealElements() const { return int64_t{n_ + 1} * (4 * n_ + kVectors); }
  int64_t IntElements() const { return 4 * int64_t{n_}; }

  // d, the diagonal -> singular values, e, next to it -> destroyed. Columns of u and rows of vt (both of n columns,
  // `stride` apart) -> their vectors, in this order; order[i] is the one-based place of the i-th smallest. No element
  // may be larger than about 1. False if an iteration fails.
  bool Solve(R* d, R* e, R* u, R* vt, Int stride, Int* order, R* reals, Int* ints, ThreadPool* pool) const {
    constexpr R kLeastOfDiagonal = std::numeric_limits<R>::epsilon();
    const bool zero = std::all_of(d, d + n_, [](R x) { return x == R(0); }) &&
                      std::all_of(e, e + n_ - 1, [](R x) { return x == R(0); });
    for (Int i = 0; i < n_; ++i)
      if (!zero && std::abs(d[i]) < kLeastOfDiagonal) d[i] = std::copysign(kLeastOfDiagonal, d[i]);
    for (R* q : {u, vt})
      for (Int j = 0; j < n_; ++j) {
        std::fill_n(q + int64_t{j} * stride, n_, R(0));
        q[j + int64_t{j} * stride] = R(1);
      }
    const std::vector<Node>& leaves = levels_.back();
    std::vector<char> failed(leaves.size(), 0);
    const auto in_parallel = [&](const std::vector<Node>& nodes, ThreadPool* threads, const auto& solve) {
      RunInParallel(*library_, static_cast<int64_t>(nodes.size()), threads, [&](int64_t k) {
        const size_t index = static_cast<size_t>(k);
        if (!solve(nodes[index])) failed[index] = 1;
      });
    };
    in_parallel(leaves, pool, [&](const Node& leaf) {
      const Int f = leaf.first, columns = leaf.columns(), none = 0;
      const int64_t corner = f + int64_t{f} * stride;
      Int info = 0;
      iterate_("U", &leaf.extra, &leaf.size, &columns, &leaf.size, &none, d + f, e + f, vt + corner, &stride,
               u + corner, &stride, u + corner, &stride, reals + int64_t{f} * n_, &info, 1);
      for (Int j = 0; j < leaf.size; ++j) order[f + j] = j + 1;
      SortPlaces(d + f, leaf.size, order + f);
      return info == 0;
    });
    for (size_t level = levels_.size() - 1; level-- > 0;) {
      const std::vector<Node>& nodes = levels_[level];
      const bool each_alone = pool && static_cast<int>(nodes.size()) >= pool->num_threads();
      in_parallel(nodes, each_alone ? pool : nullptr, [&](const Node& node) {
        Merge merge(*this, node, stride, d, u, vt, order, reals, ints);
        return merge.Run(e, each_alone ? nullptr : pool);
      });
    }
    SortPlaces(d, n_, order);
    return std::all_of(failed.begin(), failed.end(), [](char f) { return f == 0; });
  }

 private:
  static constexpr Int kLeaf = 20, kVectors = 4;

  using Iterate = void(const char* triangle, const Int* extra, const Int* n, const Int* columns_vt, const Int* rows_u,
                       const Int* columns_c, R* d, R* e, R* vt, const Int* ldvt, R* u, const Int* ldu, R* c,
                       const Int* ldc, R* work, Int* info, size_t);
  using Deflate = void(const Int* nl, const Int* nr, const Int* extra, Int* k, R* d, R* z, const R* alpha,
                       const R* beta, R* u, const Int* ldu, R* vt, const Int* ldvt, R* dsigma, R* u2, const Int* ldu2,
                       R* vt2, const Int* ldvt2, Int* idxp, Int* idx, Int* idxc, Int* idxq, Int* coltyp, Int* info);
  using Root = void(const Int* n, const Int* i, const R* d, const R* z, R* delta, const R* rho, R* sigma, R* work,
                    Int* info);
  using Multiply = void(const char* trans_a, const char* trans_b, const Int* m, const Int* n, const Int* k,
                        const R* alpha, const R* a, const Int* lda, const R* b, const Int* ldb, const R* beta, R* c,
                        const Int* ldc, size_t, size_t);

  // Rows [first, first + size), and `extra` (0 or 1) more columns than rows. Above and below the row in the middle are
  // those of the next level.
  struct Node {
    Int first, size, extra;
    Int columns() const { return size + extra; }
    Int upper() const { return size / 2; }
    Int lower() const { return size - upper() - 1; }
  };

  class Merge {
   public:
    Merge(const BidiagonalSvd& all, const Node& node, Int stride, R* d, R* u, R* vt, Int* order, R* reals, Int* ints)
        : all_(all),
          node_(node),
          stride_(stride),
          rows_(node.size),
          columns_(node.columns()),
          upper_(node.upper()),
          lower_(node.lower()) {
      // What belongs to a node is where its rows are: of matrices columns() * columns() elements at most.
      const int64_t f = node.first, n = all.n_ + 1, elements = n * all.n_;
      d_ = d + f;
      u_ = u + f + f * stride;
      vt_ = vt + f + f * stride;
      order_ = order + f;
      u2_ = reals + f * n;
      vt2_ = u2_ + elements;
      left_ = vt2_ + elements;
      right_ = left_ + elements;
      R* vectors = reals + 4 * elements + f * kVectors;
      for (R** v : {&z_, &poles_, &weights_}) *v = vectors, vectors += columns_;
      ints_ = ints + 4 * f;
    }

    bool Run(const R* e, ThreadPool* pool) {
      R alpha = d_[upper_], beta = e[node_.first + upper_];
      d_[upper_] = R(0);
      R largest = std::max(std::abs(alpha), std::abs(beta));
      for (Int i = 0; i < rows_; ++i) largest = std::max(largest, std::abs(d_[i]));
      int exponent = 0;
      std::frexp(largest, &exponent);
      const auto scaled = [](R x, int by) { return std::ldexp(x, by); };
      for (Int i = 0; i < rows_; ++i) d_[i] = scaled(d_[i], -exponent);
      alpha = scaled(alpha, -exponent), beta = scaled(beta, -exponent);
      Int info = 0, *types = ints_ + 3 * rows_;
      groups_ = ints_ + 2 * rows_;
      all_.deflate_(&upper_, &lower_, &node_.extra, &k_, d_, z_, &alpha, &beta, u_, &stride_, vt_, &stride_, poles_,
                    u2_, &rows_, vt2_, &columns_, ints_, ints_ + rows_, groups_, order_, types, &info);
      for (int t = 0; t < 3; ++t) of_type_[t] = types[t];
      if (info != 0 || !Conquer(pool)) return false;
      for (Int i = 0; i < rows_; ++i) d_[i] = scaled(d_[i], exponent);
      OrderMerged(d_, k_, rows_, order_);
      return true;
    }

   private:
    R* U(Int j) const { return u_ + int64_t{j} * stride_; }
    R* Vt(Int j) const { return vt_ + int64_t{j} * stride_; }

    bool Conquer(ThreadPool* pool) {
      if (k_ == 1) {
        d_[0] = std::abs(z_[0]);
        for (Int j = 0; j < columns_; ++j) Vt(j)[0] = vt2_[int64_t{j} * columns_];
        for (Int i = 0; i < rows_; ++i) U(0)[i] = z_[0] > R(0) ? u2_[i] : -u2_[i];
        return true;
      }
      const MergeParts parts(k_);
      if (rows_ < 2 * kLeaf) pool = nullptr;
      bool failed[MergeParts::kMost] = {};
      const auto in_parts = [&](const auto& part) { parts.Run(*all_.library_, pool, part); };
      std::copy_n(z_, k_, weights_);
      R rho(0);
      for (Int i = 0; i < k_; ++i) rho += z_[i] * z_[i];
      const R norm = std::sqrt(rho);
      for (Int i = 0; i < k_; ++i) z_[i] /= norm;
      // Of every root: its differences from the poles, and its sums with them, a column each.
      in_parts([&](Int begin, Int end, int64_t p) {
        for (Int j = begin; j < end; ++j) {
          const Int one_based = j + 1;
          Int info = 0;
          all_.root_(&k_, &one_based, poles_, z_, U(j), &rho, d_ + j, Vt(j), &info);
          failed[p] |= info != 0;
        }
      });
      if (std::any_of(failed, failed + parts.count(), [](bool f) { return f; })) return false;
      in_parts([&](Int begin, Int end, int64_t) { Weigh(begin, end); });
      // The row in the middle is among the upper ones when rows below are multiplied.
      const Int first_below = of_type_[0];
      if (k_ > 2 && first_below > 0)
        for (Int j = upper_ + 1; j < columns_; ++j)
          vt2_[first_below + int64_t{j} * columns_] = vt2_[int64_t{j} * columns_];
      in_parts([&](Int begin, Int end, int64_t) {
        for (Int j = begin; j < end; ++j) MakeVectors(j);
      });
      in_parts([&](Int begin, Int end, int64_t) {
        MakeLeft(begin, end - begin);
        MakeRight(begin, end - begin);
      });
      return true;
    }

    // The weights of poles [begin, end) of which these are the very roots (Gu and Eisenstat).
    void Weigh(Int begin, Int end) {
      WithVectors([=, this] {
        const R *last = U(k_ - 1), *last_sum = Vt(k_ - 1);
        for (Int i = begin; i < end; ++i) z_[i] = last[i] * last_sum[i];
        for (Int j = 0; j + 1 < k_; ++j) {
          const R *difference = U(j), *sum = Vt(j);
          // Root j is paired with pole j for poles behind it, else with the next one.
          const auto up_to = [=, this](Int from, Int to, R pole) {
            for (Int i = from; i < to; ++i) z_[i] *= difference[i] * sum[i] / (poles_[i] - pole) / (poles_[i] + pole);
          };
          const Int middle = std::clamp(j + 1, begin, end);
          up_to(begin, middle, poles_[j + 1]);
          up_to(middle, end, poles_[j]);
        }
        for (Int i = begin; i < end; ++i) z_[i] = std::copysign(std::sqrt(std::abs(z_[i])), weights_[i]);
      });
    }

    // Singular vectors j of the merge, in columns j of left_ and right_, by the columns and rows they are for.
    void MakeVectors(Int j) const {
      R *left = U(j), *right = Vt(j), norm_left(0), norm_right(0);
      WithVectors([=, this, &norm_left, &norm_right] {
        constexpr Int kLanes = 8;
        double squares_left[kLanes] = {}, squares_right[kLanes] = {};  // of which those of floats might overflow
        const auto element = [=, this](Int i, Int lane, double* of_left, double* of_right) {
          const R y = z_[i] / left[i] / right[i], x = poles_[i] * y;
          right[i] = y, left[i] = x;
          of_right[lane] += static_cast<double>(y) * y, of_left[lane] += static_cast<double>(x) * x;
        };
        Int i = 0;
        for (; i + kLanes <= k_; i += kLanes)
          for (Int l = 0; l < kLanes; ++l) element(i + l, l, squares_left, squares_right);
        for (; i < k_; ++i) element(i, 0, squares_left, squares_right);
        left[0] = R(-1);  // in the place of zero: the first pole
        double sum_left(1), sum_right(0);
        for (Int l = 0; l < kLanes; ++l) sum_left += squares_left[l], sum_right += squares_right[l];
        norm_left = static_cast<R>(std::sqrt(sum_left)), norm_right = static_cast<R>(std::sqrt(sum_right));
      });
      R *to_left = left_ + int64_t{j} * k_, *to_right = right_ + int64_t{j} * k_;
      for (Int i = 0; i < k_; ++i) {
        const Int from = i == 0 ? 0 : groups_[i] - 1;
        to_left[i] = left[from] / norm_left;
        to_right[i] = right[from] / norm_right;
      }
    }

    // Left singular vectors [first, first + count) of the whole.
    void MakeLeft(Int first, Int count) const {
      R* to = U(first);
      const R* by = left_ + int64_t{first} * k_;
      if (k_ == 2) return Times(rows_, count, k_, u2_, by, R(0), to);
      const Int upper = of_type_[0], both = 1 + upper + of_type_[1];
      const auto column = [&](Int k) { return u2_ + int64_t{k} * rows_; };
      Times(upper_, count, upper, column(1), by + 1, R(0), to);
      if (of_type_[2] > 0) Times(upper_, count, of_type_[2], column(both), by + both, R(1), to);
      for (Int j = 0; j < count; ++j) to[upper_ + int64_t{j} * stride_] = by[int64_t{j} * k_];
      Times(lower_, count, of_type_[1] + of_type_[2], column(1 + upper) + upper_ + 1, by + 1 + upper, R(0),
            to + upper_ + 1);
    }
    // c = a b + beta c.
    void Times(Int rows, Int columns, Int depth, const R* a, const R* b, R beta, R* c) const {
      const R one(1);
      if (depth > 0)
        all_.multiply_("N", "N", &rows, &columns, &depth, &one, a, &rows_, b, &k_, &beta, c, &stride_, 1, 1);
      else
        for (Int j = 0; j < columns; ++j) std::fill_n(c + int64_t{j} * stride_, rows, R(0));
    }

    // Right singular vectors [first, first + count), rows of vt.
    void MakeRight(Int first, Int count) const {
      R* to = vt_ + first;
      R* by = right_ + int64_t{first} * k_;
      const auto times = [&](Int columns, Int depth, Int from, Int column, R beta) {
        const R one(1);
        if (depth > 0 && columns > 0)
          all_.multiply_("T", "N", &count, &columns, &depth, &one, by + from, &k_,
                         vt2_ + from + int64_t{column} * columns_, &columns_, &beta, to + int64_t{column} * stride_,
                         &stride_, 1, 1);
      };
      if (k_ == 2) return times(columns_, k_, 0, 0, R(0));
      const Int upper = of_type_[0], both = 1 + upper + of_type_[1];
      times(upper_ + 1, 1 + upper, 0, 0, R(0));
      times(upper_ + 1, of_type_[2], both, 0, R(1));
      for (Int j = 0; j < count; ++j) by[upper + int64_t{j} * k_] = by[int64_t{j} * k_];
      times(lower_ + node_.extra, 1 + of_type_[1] + of_type_[2], upper, upper_ + 1, R(0));
    }

    const BidiagonalSvd& all_;
    const Node& node_;
    const Int stride_, rows_, columns_, upper_, lower_;
    R *d_, *u_, *vt_, *u2_, *vt2_, *left_, *right_, *z_, *poles_, *weights_;
    Int *order_, *ints_, *groups_ = nullptr;
    Int k_ = 0, of_type_[3] = {};
  };

  const Library* library_ = nullptr;
  Iterate* iterate_ = nullptr;
  Deflate* deflate_ = nullptr;
  Root* root_ = nullptr;
  Multiply* multiply_ = nullptr;
  Int n_ = 0;
  std::vector<std::vector<Node>> levels_;
};

}  // namespace strop::lapack
