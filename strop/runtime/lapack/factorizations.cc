// LU, Cholesky and QR. Fortran passes the lengths of letters behind the arguments; they are given for every letter.
#include <algorithm>
#include <variant>

#include "strop/runtime/executable.h"
#include "strop/runtime/lapack/blocked_cholesky.h"
#include "strop/runtime/lapack/blocked_lu.h"
#include "strop/runtime/lapack/reflectors.h"
#include "strop/runtime/lapack/routines.h"
#include "strop/runtime/lapack/small_lu.h"

namespace strop::lapack {
namespace {

constexpr auto kS32 = ElementType::S32;
// Workspaces are a multiple, at most this, of one dimension.
constexpr double kWidestBlock = 256;

template <class T>
class GetrfOf final : public Routine {
  using Fn = void(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, Int* info);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 3));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    k_ = std::min(m_, n_);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, kS32, {k_}));
    STROP_TRY(site.Output(2, kS32, {}));
    Carry(0, 0, int64_t{m_} * n_, sizeof(T));
    empty_ = k_ == 0;
    flops_ = 1.0 * m_ * n_ * k_;
    return site.Function(&fn_);
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch&) const override {
    T* a = At<T>(f.results[0], i, int64_t{m_} * n_);
    Int* pivots = At<Int>(f.results[1], i, k_);
    Int* info = At<Int>(f.results[2], i, 1);
    if (std::max(m_, n_) <= kSmallLu<T>)
      SmallLu(m_, n_, a, pivots, info);
    else
      fn_(&m_, &n_, a, &m_, pivots, info);
  }

  Int m_ = 0, n_ = 0, k_ = 0;
  Fn* fn_ = nullptr;
};

// The same of a matrix that lies row by row.
template <class T>
class GetrfByRowsOf final : public Routine {
  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 3));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    k_ = std::min(m_, n_);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, kS32, {k_}));
    STROP_TRY(site.Output(2, kS32, {}));
    empty_ = k_ == 0;
    flops_ = 1.0 * m_ * n_ * k_;
    work_ = Reserve<T>(BlockedLu<T>::WorkElements(m_, n_));
    return blocked_.Bind(site);
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{m_} * n_;
    blocked_.Lu(m_, n_, At<T>(f.operands[0], i, elements), At<T>(f.results[0], i, elements),
                At<Int>(f.results[1], i, k_), At<Int>(f.results[2], i, 1), scratch.At<T>(work_), f.run.pool);
  }

  Int m_ = 0, n_ = 0, k_ = 0;
  size_t work_ = 0;
  BlockedLu<T> blocked_;
};

template <class T>
class PotrfOf final : public Routine {
  using Fn = void(const char* triangle, const Int* n, T* a, const Int* lda, Int* info, size_t);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 2));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, kS32, {}));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    Carry(0, 0, int64_t{n_} * n_, sizeof(T));
    empty_ = n_ == 0;
    flops_ = 1.0 * n_ * n_ * n_ / 3;
    if constexpr (!kIsComplex<T>)
      in_parts_ = triangle_ == 'L' && n_ >= BlockedCholesky<T>::kLeast && blocked_.Bind(site);
    return site.Function(&fn_);
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch&) const override {
    T* a = At<T>(f.results[0], i, int64_t{n_} * n_);
    Int* info = At<Int>(f.results[1], i, 1);
    if constexpr (!kIsComplex<T>)
      if (in_parts_) return blocked_.Cholesky(n_, a, info, f.run.pool);
    fn_(&triangle_, &n_, a, &n_, info, 1);
  }

  Int n_ = 0;
  char triangle_ = 0;
  Fn* fn_ = nullptr;
  bool in_parts_ = false;
  std::conditional_t<kIsComplex<T>, std::monostate, BlockedCholesky<T>> blocked_;
};

template <class T>
class GeqrfOf final : public Routine {
  using Fn = void(const Int* m, const Int* n, T* a, const Int* lda, T* tau, T* work, const Int* lwork, Int* info);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 2));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    k_ = std::min(m_, n_);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<T>(), {k_}));
    Carry(0, 0, int64_t{m_} * n_, sizeof(T));
    empty_ = k_ == 0;
    flops_ = 2.0 * m_ * n_ * k_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    if (k_ >= Reflectors<T>::kLeast && reflectors_.Bind(site)) {
      in_parts_ = true;
      work_ = Reserve<T>(Reflectors<T>::WorkElements(n_));
      return OkStatus();
    }
    STROP_TRY(site.Fits(kWidestBlock * n_));
    T none{}, answer{};
    Int info = 0;
    const Int query = -1;
    fn_(&m_, &n_, &none, &m_, &none, &answer, &query, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    T *a = At<T>(f.results[0], i, int64_t{m_} * n_), *tau = At<T>(f.results[1], i, k_), *work = scratch.At<T>(work_);
    if (in_parts_) return reflectors_.Qr(m_, n_, a, tau, work, f.run.pool);
    Int info = 0;
    fn_(&m_, &n_, a, &m_, tau, work, &lwork_, &info);
  }

  Int m_ = 0, n_ = 0, k_ = 0, lwork_ = 0;
  size_t work_ = 0;
  Fn* fn_ = nullptr;
  bool in_parts_ = false;
  Reflectors<T> reflectors_;
};

template <class T>
class Geqp3Of final : public Routine {
  using RealFn = void(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, T* tau, T* work, const Int* lwork,
                      Int* info);
  using ComplexFn = void(const Int* m, const Int* n, T* a, const Int* lda, Int* pivots, T* tau, T* work,
                         const Int* lwork, Real<T>* rwork, Int* info);
  using Fn = std::conditional_t<kIsComplex<T>, ComplexFn, RealFn>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(2, 3));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    k_ = std::min(m_, n_);
    STROP_TRY(site.Operand(1, kS32, {n_}));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, kS32, {n_}));
    STROP_TRY(site.Output(2, ElementTypeOf<T>(), {k_}));
    Carry(0, 0, int64_t{m_} * n_, sizeof(T));
    Carry(1, 1, n_, sizeof(Int));
    empty_ = k_ == 0;
    flops_ = 4.0 * m_ * n_ * k_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Fits(kWidestBlock * (n_ + 1.0)));
    T none{}, answer{};
    Real<T> rnone{};
    Int pivots = 0, info = 0;
    Factor(&none, &pivots, &none, &answer, -1, &rnone, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    rwork_ = Reserve<Real<T>>(2 * int64_t{n_});
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    Int info = 0;
    Factor(At<T>(f.results[0], i, int64_t{m_} * n_), At<Int>(f.results[1], i, n_), At<T>(f.results[2], i, k_),
           scratch.At<T>(work_), lwork_, scratch.At<Real<T>>(rwork_), &info);
  }
  void Factor(T* a, Int* pivots, T* tau, T* work, Int lwork, Real<T>* rwork, Int* info) const {
    if constexpr (kIsComplex<T>)
      fn_(&m_, &n_, a, &m_, pivots, tau, work, &lwork, rwork, info);
    else
      fn_(&m_, &n_, a, &m_, pivots, tau, work, &lwork, info);
  }

  Int m_ = 0, n_ = 0, k_ = 0, lwork_ = 0;
  size_t work_ = 0, rwork_ = 0;
  Fn* fn_ = nullptr;
};

template <class T>
class OrgqrOf final : public Routine {
  using Fn = void(const Int* m, const Int* n, const Int* k, T* a, const Int* lda, const T* tau, T* work,
                  const Int* lwork, Int* info);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(2, 1));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    STROP_TRY(site.Vector(1, ElementTypeOf<T>(), &k_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    if (m_ < n_ || n_ < k_)
      return site.Error(StrCat("makes ", n_, " columns of length ", m_, " from ", k_, " reflectors"));
    Carry(0, 0, int64_t{m_} * n_, sizeof(T));
    empty_ = n_ == 0;
    flops_ = 4.0 * m_ * n_ * k_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    if (k_ >= Reflectors<T>::kLeast && reflectors_.Bind(site)) {
      in_parts_ = true;
      work_ = Reserve<T>(Reflectors<T>::WorkElements(n_));
      return OkStatus();
    }
    STROP_TRY(site.Fits(kWidestBlock * n_));
    T none{}, answer{};
    Int info = 0;
    const Int query = -1;
    fn_(&m_, &n_, &k_, &none, &m_, &none, &answer, &query, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    T *a = At<T>(f.results[0], i, int64_t{m_} * n_), *work = scratch.At<T>(work_);
    const T* tau = At<T>(f.operands[1], i, k_);
    if (in_parts_) return reflectors_.Q(m_, n_, k_, a, tau, work, f.run.pool);
    Int info = 0;
    fn_(&m_, &n_, &k_, a, &m_, tau, work, &lwork_, &info);
  }

  Int m_ = 0, n_ = 0, k_ = 0, lwork_ = 0;
  size_t work_ = 0;
  Fn* fn_ = nullptr;
  bool in_parts_ = false;
  Reflectors<T> reflectors_;
};

template <class T>
class OrmqrOf final : public Routine {
  using Fn = void(const char* side, const char* trans, const Int* m, const Int* n, const Int* k, T* a, const Int* lda,
                  const T* tau, T* c, const Int* ldc, T* work, const Int* lwork, Int* info, size_t, size_t);

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(3, 1));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &rows_, &columns_));
    STROP_TRY(site.Vector(1, ElementTypeOf<T>(), &k_));
    STROP_TRY(site.Matrix(2, ElementTypeOf<T>(), &m_, &n_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    bool left = false, transpose = false;
    STROP_TRY(site.Flag("left", &left));
    STROP_TRY(site.Flag("transpose", &transpose));
    side_ = left ? 'L' : 'R';
    trans_ = !transpose ? 'N' : kIsComplex<T> ? 'C' : 'T';
    if (rows_ != (left ? m_ : n_) || columns_ < k_ || k_ > rows_)
      return site.Error(StrCat(k_, " reflectors in a ", rows_, " x ", columns_, " matrix do not apply to ", m_, " x ",
                               n_, " on the ", left ? "left" : "right"));
    Carry(2, 0, int64_t{m_} * n_, sizeof(T));
    empty_ = m_ == 0 || n_ == 0;
    flops_ = 4.0 * m_ * n_ * k_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Fits(kWidestBlock * (kWidestBlock + (left ? n_ : m_))));
    T none{}, answer{};
    Int info = 0;
    const Int query = -1;
    fn_(&side_, &trans_, &m_, &n_, &k_, &none, &rows_, &none, &none, &m_, &answer, &query, &info, 1, 1);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    a_ = Reserve<T>(int64_t{rows_} * columns_);
    return OkStatus();
  }
  // Some versions write to the reflectors and restore them, so they get a copy: operands are not ours to touch.
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{rows_} * columns_;
    T* a = scratch.At<T>(a_);
    std::copy_n(At<T>(f.operands[0], i, elements), elements, a);
    Int info = 0;
    fn_(&side_, &trans_, &m_, &n_, &k_, a, &rows_, At<T>(f.operands[1], i, k_),
        At<T>(f.results[0], i, int64_t{m_} * n_), &m_, scratch.At<T>(work_), &lwork_, &info, 1, 1);
  }

  Int rows_ = 0, columns_ = 0, k_ = 0, m_ = 0, n_ = 0, lwork_ = 0;
  char side_ = 0, trans_ = 0;
  size_t work_ = 0, a_ = 0;
  Fn* fn_ = nullptr;
};

}  // namespace

Makers Getrf() { return AllTypes<GetrfOf>(); }
Makers GetrfByRows() { return AllTypes<GetrfByRowsOf>(); }
Makers Potrf() { return AllTypes<PotrfOf>(); }
Makers Geqrf() { return AllTypes<GeqrfOf>(); }
Makers Geqp3() { return AllTypes<Geqp3Of>(); }
Makers Orgqr() { return AllTypes<OrgqrOf>(); }
Makers Ormqr() { return AllTypes<OrmqrOf>(); }

}  // namespace strop::lapack
