// Singular values, and eigenvalues of symmetric and Hermitian matrices.
#include <algorithm>

#include "strop/runtime/executable.h"
#include "strop/runtime/lapack/general_svd.h"
#include "strop/runtime/lapack/hermitian_eigen.h"
#include "strop/runtime/lapack/routines.h"

namespace strop::lapack {
namespace {

constexpr auto kS32 = ElementType::S32;
constexpr double kWidestBlock = 256;
constexpr Int kNotFinite = -4;  // the argument that has an infinity or NaN

// gesdd and gesvd: what they have in common.
template <class T, bool kDivideAndConquer>
class SvdOf : public Routine {
  using RealDivide = void(const char* mode, const Int* m, const Int* n, T* a, const Int* lda, T* s, T* u,
                          const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, Int* iwork, Int* info,
                          size_t);
  using ComplexDivide = void(const char* mode, const Int* m, const Int* n, T* a, const Int* lda, Real<T>* s, T* u,
                             const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, Real<T>* rwork,
                             Int* iwork, Int* info, size_t);
  using RealQr = void(const char* mode_u, const char* mode_vt, const Int* m, const Int* n, T* a, const Int* lda, T* s,
                      T* u, const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork, Int* info, size_t,
                      size_t);
  using ComplexQr = void(const char* mode_u, const char* mode_vt, const Int* m, const Int* n, T* a, const Int* lda,
                         Real<T>* s, T* u, const Int* ldu, T* vt, const Int* ldvt, T* work, const Int* lwork,
                         Real<T>* rwork, Int* info, size_t, size_t);
  using Fn = std::conditional_t<kDivideAndConquer, std::conditional_t<kIsComplex<T>, ComplexDivide, RealDivide>,
                                std::conditional_t<kIsComplex<T>, ComplexQr, RealQr>>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 5));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    STROP_TRY(site.Letter("mode", "ASN", &mode_));
    batch_ = site.batch();
    k_ = std::min(m_, n_);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<Real<T>>(), {k_}));
    STROP_TRY(BindVectors(site));
    STROP_TRY(site.Output(4, kS32, {}));
    Carry(0, 0, int64_t{m_} * n_, sizeof(T));
    empty_ = k_ == 0;
    flops_ = 10.0 * m_ * n_ * k_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    const double k = k_, longer = std::max(m_, n_);
    STROP_TRY(site.Fits(8 * k * k + kWidestBlock * (k + longer)));
    // Complex vectors need this many real numbers; the query does not say.
    double reals = 5 * k;
    if (kDivideAndConquer && mode_ != 'N') reals = std::max(5 * k * k + 5 * k, 2 * longer * k + 2 * k * k + k);
    if (kDivideAndConquer && mode_ == 'N') reals = 7 * k;
    T none{}, answer{};
    Real<T> rnone{};
    Int inone = 0, info = 0;
    if (kIsComplex<T>) STROP_TRY(site.Fits(reals));
    Decompose(&none, &rnone, &none, &none, &answer, -1, &rnone, &inone, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    if (kIsComplex<T>) rwork_ = Reserve<Real<T>>(static_cast<int64_t>(reals));
    iwork_ = Reserve<Int>(8 * int64_t{k_});
    if constexpr (kDivideAndConquer && !kIsComplex<T>) {
      in_parts_ = mode_ != 'N' && GeneralSvd<T>::Suits(m_, n_) && parts_.Bind(site, m_, n_, mode_ == 'A');
      if (in_parts_) parts_scratch_ = Reserve<char>(static_cast<int64_t>(parts_.BytesNeeded()));
    }
    return OkStatus();
  }
  // Without vectors (mode N) the two results exist all the same, of full or reduced size, and are zeros.
  Status BindVectors(Site& site) {
    u_columns_ = mode_ == 'A' ? m_ : k_;
    vt_rows_ = mode_ == 'A' ? n_ : k_;
    auto check = [&] {
      STROP_TRY(site.Output(2, ElementTypeOf<T>(), {m_, u_columns_}));
      return site.Output(3, ElementTypeOf<T>(), {vt_rows_, n_});
    };
    Status status = check();
    if (status.ok() || mode_ != 'N') return status;
    u_columns_ = m_;
    vt_rows_ = n_;
    return check();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t u_elements = int64_t{m_} * u_columns_, vt_elements = int64_t{vt_rows_} * n_;
    T* u = At<T>(f.results[2], i, u_elements);
    T* vt = At<T>(f.results[3], i, vt_elements);
    T* a = At<T>(f.results[0], i, int64_t{m_} * n_);
    Real<T>* s = At<Real<T>>(f.results[1], i, k_);
    Int* info = At<Int>(f.results[4], i, 1);
    if constexpr (kDivideAndConquer && !kIsComplex<T>)
      if (in_parts_) {
        if (parts_.Solve(a, s, u, vt, info, scratch.At<char>(parts_scratch_), f.run.pool)) return;
        *info = kNotFinite;
        FillNaN(s, k_), FillNaN(u, u_elements), FillNaN(vt, vt_elements);
        return;
      }
    if (mode_ == 'N') {
      std::fill_n(u, u_elements, T());
      std::fill_n(vt, vt_elements, T());
    }
    Decompose(a, s, u, vt, scratch.At<T>(work_), lwork_, scratch.At<Real<T>>(rwork_), scratch.At<Int>(iwork_), info);
  }
  // The vectors of a matrix without elements are those of the identity.
  void SolveEmpty(const CustomCallFrame& f) const override {
    if (mode_ != 'A') return;
    FillIdentities(static_cast<T*>(f.results[2]), m_);
    FillIdentities(static_cast<T*>(f.results[3]), n_);
  }
  void FillIdentities(T* data, int64_t n) const {
    for (int64_t i = 0; i < batch_; ++i)
      for (int64_t j = 0; j < n; ++j) data[i * n * n + j * (n + 1)] = T(1);
  }

  void Decompose(T* a, Real<T>* s, T* u, T* vt, T* work, Int lwork, Real<T>* rwork, Int* iwork, Int* info) const {
    if constexpr (kDivideAndConquer && kIsComplex<T>)
      fn_(&mode_, &m_, &n_, a, &m_, s, u, &m_, vt, &vt_rows_, work, &lwork, rwork, iwork, info, 1);
    else if constexpr (kDivideAndConquer)
      fn_(&mode_, &m_, &n_, a, &m_, s, u, &m_, vt, &vt_rows_, work, &lwork, iwork, info, 1);
    else if constexpr (kIsComplex<T>)
      fn_(&mode_, &mode_, &m_, &n_, a, &m_, s, u, &m_, vt, &vt_rows_, work, &lwork, rwork, info, 1, 1);
    else
      fn_(&mode_, &mode_, &m_, &n_, a, &m_, s, u, &m_, vt, &vt_rows_, work, &lwork, info, 1, 1);
  }

  Int m_ = 0, n_ = 0, k_ = 0, u_columns_ = 0, vt_rows_ = 0, lwork_ = 0;
  int64_t batch_ = 0;
  char mode_ = 0;
  size_t work_ = 0, rwork_ = 0, iwork_ = 0, parts_scratch_ = 0;
  Fn* fn_ = nullptr;
  bool in_parts_ = false;
  GeneralSvd<Real<T>> parts_;
};
template <class T>
using GesddOf = SvdOf<T, true>;
template <class T>
using GesvdOf = SvdOf<T, false>;

template <class T>
class SyevdOf final : public Routine {
  using RealFn = void(const char* mode, const char* triangle, const Int* n, T* a, const Int* lda, T* w, T* work,
                      const Int* lwork, Int* iwork, const Int* liwork, Int* info, size_t, size_t);
  using ComplexFn = void(const char* mode, const char* triangle, const Int* n, T* a, const Int* lda, Real<T>* w,
                         T* work, const Int* lwork, Real<T>* rwork, const Int* lrwork, Int* iwork, const Int* liwork,
                         Int* info, size_t, size_t);
  using Fn = std::conditional_t<kIsComplex<T>, ComplexFn, RealFn>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 3));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    STROP_TRY(site.Letter("mode", "NV", &mode_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<Real<T>>(), {n_}));
    STROP_TRY(site.Output(2, kS32, {}));
    Carry(0, 0, int64_t{n_} * n_, sizeof(T));
    empty_ = n_ == 0;
    flops_ = 9.0 * n_ * n_ * n_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Fits(2.0 * n_ * n_ + kWidestBlock * n_));
    T none{}, answer{};
    Real<T> rnone{}, ranswer{};
    Int info = 0;
    liwork_ = -1;
    Int ianswer = 0;
    Decompose(&none, &rnone, &answer, -1, &ranswer, -1, &ianswer, -1, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    if (kIsComplex<T>) STROP_TRY(site.WorkSize(ranswer, info, &lrwork_));
    liwork_ = std::max(ianswer, 1);
    in_parts_ = mode_ == 'V' && triangle_ == 'L' && n_ >= HermitianEigen<T>::kLeast && parts_.Bind(site, n_);
    if (in_parts_) parts_scratch_ = Reserve<char>(static_cast<int64_t>(parts_.BytesNeeded()));
    work_ = Reserve<T>(lwork_);
    rwork_ = Reserve<Real<T>>(lrwork_);
    iwork_ = Reserve<Int>(liwork_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    T* a = At<T>(f.results[0], i, int64_t{n_} * n_);
    Real<T>* w = At<Real<T>>(f.results[1], i, n_);
    Int* info = At<Int>(f.results[2], i, 1);
    if (in_parts_) {
      if (parts_.Solve(a, w, info, scratch.At<char>(parts_scratch_), f.run.pool)) return;
      *info = kNotFinite;
      FillNaN(a, int64_t{n_} * n_), FillNaN(w, n_);
      return;
    }
    Decompose(a, w, scratch.At<T>(work_), lwork_, scratch.At<Real<T>>(rwork_), lrwork_, scratch.At<Int>(iwork_),
              liwork_, info);
  }
  void Decompose(T* a, Real<T>* w, T* work, Int lwork, Real<T>* rwork, Int lrwork, Int* iwork, Int liwork,
                 Int* info) const {
    if constexpr (kIsComplex<T>)
      fn_(&mode_, &triangle_, &n_, a, &n_, w, work, &lwork, rwork, &lrwork, iwork, &liwork, info, 1, 1);
    else
      fn_(&mode_, &triangle_, &n_, a, &n_, w, work, &lwork, iwork, &liwork, info, 1, 1);
  }

  Int n_ = 0, lwork_ = 0, lrwork_ = 0, liwork_ = 0;
  char mode_ = 0, triangle_ = 0;
  size_t work_ = 0, rwork_ = 0, iwork_ = 0, parts_scratch_ = 0;
  Fn* fn_ = nullptr;
  bool in_parts_ = false;
  HermitianEigen<T> parts_;
};

}  // namespace

Makers Gesdd() { return AllTypes<GesddOf>(); }
Makers Gesvd() { return AllTypes<GesvdOf>(); }
Makers Syevd() { return AllTypes<SyevdOf>(); }

}  // namespace strop::lapack
