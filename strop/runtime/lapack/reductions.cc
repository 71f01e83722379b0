// Reductions to Hessenberg and tridiagonal form, and solves with triangular and tridiagonal matrices.
#include <algorithm>

#include "strop/runtime/lapack/routines.h"

namespace strop::lapack {
namespace {

constexpr auto kS32 = ElementType::S32;
constexpr double kWidestBlock = 256;

template <class T>
class GehrdOf final : public Routine {
  using Fn = void(const Int* n, const Int* low, const Int* high, T* a, const Int* lda, T* tau, T* work,
                  const Int* lwork, Int* info);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 3));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<T>(), {std::max(n_ - 1, 0)}));
    STROP_TRY(site.Output(2, kS32, {}));
    Carry(0, 0, int64_t{n_} * n_, sizeof(T));
    empty_ = n_ == 0;
    flops_ = 10.0 / 3 * n_ * n_ * n_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Number("low", 1, n_, &low_));
    STROP_TRY(site.Number("high", low_, n_, &high_));
    STROP_TRY(site.Fits(kWidestBlock * (kWidestBlock + n_)));
    T none{}, answer{};
    Int info = 0;
    const Int query = -1;
    fn_(&n_, &low_, &high_, &none, &n_, &none, &answer, &query, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    fn_(&n_, &low_, &high_, At<T>(f.results[0], i, int64_t{n_} * n_), &n_, At<T>(f.results[1], i, n_ - 1),
        scratch.At<T>(work_), &lwork_, At<Int>(f.results[2], i, 1));
  }

  Int n_ = 0, low_ = 1, high_ = 1, lwork_ = 0;
  size_t work_ = 0;
  Fn* fn_ = nullptr;
};

template <class T>
class SytrdOf final : public Routine {
  using Fn = void(const char* triangle, const Int* n, T* a, const Int* lda, Real<T>* diagonal, Real<T>* off_diagonal,
                  T* tau, T* work, const Int* lwork, Int* info, size_t);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 5));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    const int64_t off = std::max(n_ - 1, 0);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<Real<T>>(), {n_}));
    STROP_TRY(site.Output(2, ElementTypeOf<Real<T>>(), {off}));
    STROP_TRY(site.Output(3, ElementTypeOf<T>(), {off}));
    STROP_TRY(site.Output(4, kS32, {}));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    Carry(0, 0, int64_t{n_} * n_, sizeof(T));
    empty_ = n_ == 0;
    flops_ = 4.0 / 3 * n_ * n_ * n_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Fits(kWidestBlock * n_));
    T none{}, answer{};
    Real<T> rnone{};
    Int info = 0;
    const Int query = -1;
    fn_(&triangle_, &n_, &none, &n_, &rnone, &rnone, &none, &answer, &query, &info, 1);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    fn_(&triangle_, &n_, At<T>(f.results[0], i, int64_t{n_} * n_), &n_, At<Real<T>>(f.results[1], i, n_),
        At<Real<T>>(f.results[2], i, n_ - 1), At<T>(f.results[3], i, n_ - 1), scratch.At<T>(work_), &lwork_,
        At<Int>(f.results[4], i, 1), 1);
  }

  Int n_ = 0, lwork_ = 0;
  char triangle_ = 0;
  size_t work_ = 0;
  Fn* fn_ = nullptr;
};

template <class T>
class TrsmOf final : public Routine {
  using Fn = void(const char* side, const char* triangle, const char* trans, const char* diagonal, const Int* m,
                  const Int* n, const T* alpha, const T* a, const Int* lda, T* b, const Int* ldb, size_t, size_t,
                  size_t, size_t);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(2, 1));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &k_));
    STROP_TRY(site.Matrix(1, ElementTypeOf<T>(), &m_, &n_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Letter("side", "LR", &side_));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    STROP_TRY(site.Letter("trans_x", "NTC", &trans_));
    STROP_TRY(site.Letter("diag", "NU", &diagonal_));
    if (k_ != (side_ == 'L' ? m_ : n_))
      return site.Error(
          StrCat("a ", k_, " x ", k_, " matrix does not apply to ", m_, " x ", n_, " on side ", std::string(1, side_)));
    Carry(1, 0, int64_t{m_} * n_, sizeof(T));
    empty_ = m_ == 0 || n_ == 0;
    flops_ = 1.0 * m_ * n_ * k_;
    return site.Function(&fn_);
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch&) const override {
    const T one(1);
    fn_(&side_, &triangle_, &trans_, &diagonal_, &m_, &n_, &one, At<T>(f.operands[0], i, int64_t{k_} * k_), &k_,
        At<T>(f.results[0], i, int64_t{m_} * n_), &m_, 1, 1, 1, 1);
  }

  Int k_ = 0, m_ = 0, n_ = 0;
  char side_ = 0, triangle_ = 0, trans_ = 0, diagonal_ = 0;
  Fn* fn_ = nullptr;
};

template <class T>
class GtsvOf final : public Routine {
  using Fn = void(const Int* n, const Int* columns, T* lower, T* diagonal, T* upper, T* b, const Int* ldb, Int* info);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(4, 5));
    STROP_TRY(site.Matrices(3, ElementTypeOf<T>(), &n_, &columns_));
    for (size_t k = 0; k < 3; ++k) {
      STROP_TRY(site.Operand(k, ElementTypeOf<T>(), {n_}));
      STROP_TRY(site.Output(k, ElementTypeOf<T>(), {n_}));
      Carry(k, k, n_, sizeof(T));
    }
    STROP_TRY(site.Output(3, ElementTypeOf<T>(), {n_, columns_}));
    STROP_TRY(site.Output(4, kS32, {}));
    Carry(3, 3, int64_t{n_} * columns_, sizeof(T));
    empty_ = n_ == 0 || columns_ == 0;
    flops_ = 5.0 * n_ * (1.0 + columns_);
    return site.Function(&fn_);
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch&) const override {
    // The first element of the lower diagonal is not there; LAPACK's vector begins with the second.
    fn_(&n_, &columns_, At<T>(f.results[0], i, n_) + 1, At<T>(f.results[1], i, n_), At<T>(f.results[2], i, n_),
        At<T>(f.results[3], i, int64_t{n_} * columns_), &n_, At<Int>(f.results[4], i, 1));
  }

  Int n_ = 0, columns_ = 0;
  Fn* fn_ = nullptr;
};

}  // namespace

Makers Gehrd() { return AllTypes<GehrdOf>(); }
Makers Sytrd() { return AllTypes<SytrdOf>(); }
Makers Trsm() { return AllTypes<TrsmOf>(); }
Makers Gtsv() { return AllTypes<GtsvOf>(); }

}  // namespace strop::lapack
