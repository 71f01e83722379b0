// Singular values, eigenvalues and Schur forms. A matrix with a NaN or an infinity is not handed to the iterations for
// general matrices, which might not end: its results are NaN and info names the argument, as jaxlib has it.
#include <algorithm>
#include <cmath>
#include <limits>

#include "strop/runtime/lapack/routines.h"

namespace strop::lapack {
namespace {

constexpr auto kS32 = ElementType::S32;
constexpr double kWidestBlock = 256;

template <class T>
bool AllFinite(const T* data, int64_t n) {
  return std::all_of(data, data + n, [](T x) { return std::isfinite(std::real(x)) && std::isfinite(std::imag(x)); });
}
template <class T>
void FillNaN(T* data, int64_t n) {
  std::fill_n(data, n, T(std::numeric_limits<Real<T>>::quiet_NaN()));
}

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
    if (mode_ == 'N') {
      std::fill_n(u, u_elements, T());
      std::fill_n(vt, vt_elements, T());
    }
    Decompose(At<T>(f.results[0], i, int64_t{m_} * n_), At<Real<T>>(f.results[1], i, k_), u, vt, scratch.At<T>(work_),
              lwork_, scratch.At<Real<T>>(rwork_), scratch.At<Int>(iwork_), At<Int>(f.results[4], i, 1));
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
  size_t work_ = 0, rwork_ = 0, iwork_ = 0;
  Fn* fn_ = nullptr;
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
    work_ = Reserve<T>(lwork_);
    rwork_ = Reserve<Real<T>>(lrwork_);
    iwork_ = Reserve<Int>(liwork_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    Decompose(At<T>(f.results[0], i, int64_t{n_} * n_), At<Real<T>>(f.results[1], i, n_), scratch.At<T>(work_), lwork_,
              scratch.At<Real<T>>(rwork_), lrwork_, scratch.At<Int>(iwork_), liwork_, At<Int>(f.results[2], i, 1));
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
  size_t work_ = 0, rwork_ = 0, iwork_ = 0;
  Fn* fn_ = nullptr;
};

template <class T>
class GeevOf final : public Routine {
  using Complex = std::complex<Real<T>>;
  using RealFn = void(const char* left, const char* right, const Int* n, T* a, const Int* lda, T* wr, T* wi, T* vl,
                      const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* lwork, Int* info, size_t, size_t);
  using ComplexFn = void(const char* left, const char* right, const Int* n, T* a, const Int* lda, T* w, T* vl,
                         const Int* ldvl, T* vr, const Int* ldvr, T* work, const Int* lwork, Real<T>* rwork, Int* info,
                         size_t, size_t);
  using Fn = std::conditional_t<kIsComplex<T>, ComplexFn, RealFn>;
  static constexpr size_t kParts = kIsComplex<T> ? 1 : 2;  // results that hold the eigenvalues

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, kParts + 3));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Letter("compute_left", "NV", &left_));
    STROP_TRY(site.Letter("compute_right", "NV", &right_));
    for (size_t k = 0; k < kParts; ++k) STROP_TRY(site.Output(k, ElementTypeOf<T>(), {n_}));
    STROP_TRY(site.Output(kParts, ElementTypeOf<Complex>(), {n_, n_}));
    STROP_TRY(site.Output(kParts + 1, ElementTypeOf<Complex>(), {n_, n_}));
    STROP_TRY(site.Output(kParts + 2, kS32, {}));
    empty_ = n_ == 0;
    flops_ = 25.0 * n_ * n_ * n_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Fits(kWidestBlock * (kWidestBlock + n_)));
    T none{}, answer{};
    Real<T> rnone{};
    Int info = 0;
    Decompose(&none, &none, &none, &none, &none, &answer, -1, &rnone, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    const int64_t elements = int64_t{n_} * n_;
    a_ = Reserve<T>(elements);
    vl_ = Reserve<T>(elements);
    vr_ = Reserve<T>(elements);
    work_ = Reserve<T>(lwork_);
    rwork_ = Reserve<Real<T>>(2 * int64_t{n_});
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * n_;
    T* wr = At<T>(f.results[0], i, n_);
    T* wi = At<T>(f.results[kParts - 1], i, n_);
    Complex* left = At<Complex>(f.results[kParts], i, elements);
    Complex* right = At<Complex>(f.results[kParts + 1], i, elements);
    Int* info = At<Int>(f.results[kParts + 2], i, 1);
    T* a = scratch.At<T>(a_);
    std::copy_n(At<T>(f.operands[0], i, elements), elements, a);
    *info = -4;
    if (AllFinite(a, elements))
      Decompose(a, wr, wi, scratch.At<T>(vl_), scratch.At<T>(vr_), scratch.At<T>(work_), lwork_,
                scratch.At<Real<T>>(rwork_), info);
    if (*info != 0) {
      FillNaN(wr, n_);
      FillNaN(wi, n_);
    }
    Unpack(left_ == 'V', *info, wi, scratch.At<T>(vl_), left);
    Unpack(right_ == 'V', *info, wi, scratch.At<T>(vr_), right);
  }
  // Zeros if the vectors were not asked for, NaN if there are none. A pair of conjugate vectors of a real matrix comes
  // as one column of real and one of imaginary parts.
  void Unpack(bool computed, Int info, const T* imaginary, const T* packed, Complex* vectors) const {
    const int64_t elements = int64_t{n_} * n_;
    if (!computed) {
      std::fill_n(vectors, elements, Complex());
    } else if (info != 0) {
      FillNaN(vectors, elements);
    } else if constexpr (kIsComplex<T>) {
      std::copy_n(packed, elements, vectors);
    } else {
      for (int64_t j = 0; j < n_; ++j) {
        const T* re = packed + j * n_;
        Complex* v = vectors + j * n_;
        const bool pair = imaginary[j] != 0 && j + 1 < n_;
        for (int64_t k = 0; k < n_; ++k) v[k] = Complex(re[k], pair ? re[n_ + k] : T(0));
        if (!pair) continue;
        for (int64_t k = 0; k < n_; ++k) v[n_ + k] = std::conj(v[k]);
        ++j;
      }
    }
  }
  void Decompose(T* a, T* wr, T* wi, T* vl, T* vr, T* work, Int lwork, Real<T>* rwork, Int* info) const {
    if constexpr (kIsComplex<T>)
      fn_(&left_, &right_, &n_, a, &n_, wr, vl, &n_, vr, &n_, work, &lwork, rwork, info, 1, 1);
    else
      fn_(&left_, &right_, &n_, a, &n_, wr, wi, vl, &n_, vr, &n_, work, &lwork, info, 1, 1);
  }

  Int n_ = 0, lwork_ = 0;
  char left_ = 0, right_ = 0;
  size_t a_ = 0, vl_ = 0, vr_ = 0, work_ = 0, rwork_ = 0;
  Fn* fn_ = nullptr;
};

template <class T>
class GeesOf final : public Routine {
  using Select = Int (*)(const T*, const T*);
  using RealFn = void(const char* mode, const char* sort, Select select, const Int* n, T* a, const Int* lda, Int* count,
                      T* wr, T* wi, T* vs, const Int* ldvs, T* work, const Int* lwork, Int* bwork, Int* info, size_t,
                      size_t);
  using ComplexFn = void(const char* mode, const char* sort, Select select, const Int* n, T* a, const Int* lda,
                         Int* count, T* w, T* vs, const Int* ldvs, T* work, const Int* lwork, Real<T>* rwork,
                         Int* bwork, Int* info, size_t, size_t);
  using Fn = std::conditional_t<kIsComplex<T>, ComplexFn, RealFn>;
  static constexpr size_t kParts = kIsComplex<T> ? 1 : 2;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, kParts + 4));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    char sort = 0;
    STROP_TRY(site.Letter("mode", "NV", &mode_));
    STROP_TRY(site.Letter("sort", "NS", &sort));
    if (sort != 'N') return Unimplemented("LAPACK's Schur form with the eigenvalues sorted");
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<T>(), {n_, n_}));
    for (size_t k = 0; k < kParts; ++k) STROP_TRY(site.Output(2 + k, ElementTypeOf<T>(), {n_}));
    STROP_TRY(site.Output(2 + kParts, kS32, {}));
    STROP_TRY(site.Output(3 + kParts, kS32, {}));
    Carry(0, 0, int64_t{n_} * n_, sizeof(T));
    empty_ = n_ == 0;
    flops_ = 25.0 * n_ * n_ * n_;
    STROP_TRY(site.Function(&fn_));
    if (empty_) return OkStatus();
    STROP_TRY(site.Fits(kWidestBlock * (kWidestBlock + n_)));
    T none{}, answer{};
    Real<T> rnone{};
    Int count = 0, info = 0;
    Decompose(&none, &count, &none, &none, &none, &answer, -1, &rnone, &info);
    STROP_TRY(site.WorkSize(answer, info, &lwork_));
    work_ = Reserve<T>(lwork_);
    rwork_ = Reserve<Real<T>>(n_);
    return OkStatus();
  }
  void Solve(int64_t i, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * n_;
    T* a = At<T>(f.results[0], i, elements);
    T* vectors = At<T>(f.results[1], i, elements);
    T* wr = At<T>(f.results[2], i, n_);
    T* wi = At<T>(f.results[1 + kParts], i, n_);
    Int* count = At<Int>(f.results[2 + kParts], i, 1);
    Int* info = At<Int>(f.results[3 + kParts], i, 1);
    *count = 0;
    if (mode_ == 'N') std::fill_n(vectors, elements, T());
    if (AllFinite(a, elements)) {
      Decompose(a, count, wr, wi, vectors, scratch.At<T>(work_), lwork_, scratch.At<Real<T>>(rwork_), info);
      return;
    }
    *info = -5;
    FillNaN(a, elements);
    FillNaN(wr, n_);
    FillNaN(wi, n_);
    if (mode_ == 'V') FillNaN(vectors, elements);
  }
  void Decompose(T* a, Int* count, T* wr, T* wi, T* vectors, T* work, Int lwork, Real<T>* rwork, Int* info) const {
    const char unsorted = 'N';  // neither a function that selects nor its marks are used
    if constexpr (kIsComplex<T>)
      fn_(&mode_, &unsorted, nullptr, &n_, a, &n_, count, wr, vectors, &n_, work, &lwork, rwork, nullptr, info, 1, 1);
    else
      fn_(&mode_, &unsorted, nullptr, &n_, a, &n_, count, wr, wi, vectors, &n_, work, &lwork, nullptr, info, 1, 1);
  }

  Int n_ = 0, lwork_ = 0;
  char mode_ = 0;
  size_t work_ = 0, rwork_ = 0;
  Fn* fn_ = nullptr;
};

}  // namespace

Makers Gesdd() { return AllTypes<GesddOf>(); }
Makers Gesvd() { return AllTypes<GesvdOf>(); }
Makers Syevd() { return AllTypes<SyevdOf>(); }
Makers Geev() { return AllTypes<GeevOf>(); }
Makers Gees() { return AllTypes<GeesOf>(); }

}  // namespace strop::lapack
