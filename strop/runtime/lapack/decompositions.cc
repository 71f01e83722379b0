// Eigenvalues of general matrices and Schur forms. A matrix with a NaN or an infinity is not handed to the iterations
// for general matrices, which might not end: its results are NaN and info names the argument, as jaxlib has it.
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

Makers Geev() { return AllTypes<GeevOf>(); }
Makers Gees() { return AllTypes<GeesOf>(); }

}  // namespace strop::lapack
