// Small real matrices of a batch, side by side in the lanes of vectors: factorisations that lie row by row, and what
// programs make of them in one go. No library is called. Passes write these calls (passes/lapack_rows.cc,
// passes/lapack_fuser.cc).
#include "strop/runtime/executable.h"
#include "strop/runtime/lapack/routines.h"
#include "strop/runtime/lapack/side_by_side_cholesky.h"
#include "strop/runtime/lapack/side_by_side_eigen.h"
#include "strop/runtime/lapack/side_by_side_lu.h"
#include "strop/runtime/lapack/side_by_side_qr.h"
#include "strop/runtime/lapack/side_by_side_svd.h"

namespace strop::lapack {
namespace {

constexpr auto kS32 = ElementType::S32;

// What the routines below have in common.
template <class T>
class RowsRoutine : public Routine {
 public:
  void Solve(int64_t, const CustomCallFrame&, const Scratch&) const final {}

 protected:
  RowsRoutine() { together_ = SideBySide<T>::kLanes; }
  static Status Fits(const Site& site, Int m, Int n) {
    if (int64_t{m} * n <= SideBySide<T>::kMaxElements) return OkStatus();
    return site.Error(StrCat("is for small matrices, not for ", m, " x ", n));
  }
  static Status FitsOrder(const Site& site, Int n, Int most = SideBySide<T>::kMaxOrder) {
    if (n <= most) return OkStatus();
    return site.Error(StrCat("is for small matrices, not for those of order ", n));
  }
  // What `steps` vector operations cost, turning so many elements into lanes and back, and the divisions and roots of
  // so many columns, which wait for each other; about 20 a nanosecond.
  void Costs(double steps, double elements, double columns) { flops_ = steps + 4 * elements + 34 * columns; }
};

template <class T>
class GetrfRowsOf final : public RowsRoutine<T> {
  using Lu = LuSideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 3));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    k_ = std::min(m_, n_);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, kS32, {k_}));
    STROP_TRY(site.Output(2, kS32, {}));
    STROP_TRY(this->FitsOrder(site, std::max(m_, n_)));
    this->empty_ = k_ == 0;
    this->Costs(1.0 * m_ * n_ * k_, 1.0 * m_ * n_, k_);
    work_ = this->template Reserve<T>(Lu::FactorWork(m_, n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{m_} * n_;
    Lu::Factor(m_, n_, count, this->template At<T>(f.operands[0], first, elements),
               this->template At<T>(f.results[0], first, elements), this->template At<Int>(f.results[1], first, k_),
               this->template At<Int>(f.results[2], first, 1), scratch.At<T>(work_));
  }

  Int m_ = 0, n_ = 0, k_ = 0;
  size_t work_ = 0;
};

template <class T>
class GesvRowsOf final : public RowsRoutine<T> {
  using Lu = LuSideBySide<T>;

  Status Bind(Site& site) override {
    inverts_ = site.operands() == 1;
    STROP_TRY(site.Arity(inverts_ ? 1 : 2, 1));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    Int rows = n_;
    columns_ = n_;
    if (!inverts_) STROP_TRY(site.Matrix(1, ElementTypeOf<T>(), &rows, &columns_));
    if (rows != n_) return site.Error(StrCat(n_, " equations do not have right-hand sides of ", rows));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, columns_}));
    STROP_TRY(this->FitsOrder(site, n_));
    this->empty_ = n_ == 0 || columns_ == 0;
    this->Costs(1.0 * n_ * n_ * (n_ + 2.0 * columns_), 1.0 * n_ * (n_ + 2.0 * columns_),
                n_ * (columns_ < 4 ? 2.0 : 4.0));
    work_ = this->template Reserve<T>(Lu::SolveWork(n_, columns_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * columns_;
    Lu::Solve(n_, columns_, count, this->template At<T>(f.operands[0], first, int64_t{n_} * n_),
              inverts_ ? nullptr : this->template At<T>(f.operands[1], first, elements),
              this->template At<T>(f.results[0], first, elements), scratch.At<T>(work_));
  }

  Int n_ = 0, columns_ = 0;
  bool inverts_ = false;
  size_t work_ = 0;
};

template <class T>
class PotrfRowsOf final : public RowsRoutine<T> {
  using Cholesky = CholeskySideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 2));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, kS32, {}));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    STROP_TRY(this->FitsOrder(site, n_));
    this->empty_ = n_ == 0;
    this->Costs(1.0 * n_ * n_ * n_ / 3, 1.0 * n_ * n_, n_);
    work_ = this->template Reserve<T>(Cholesky::Work(n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * n_;
    Cholesky::Factor(triangle_ == 'L', n_, count, this->template At<T>(f.operands[0], first, elements),
                     this->template At<T>(f.results[0], first, elements),
                     this->template At<Int>(f.results[1], first, 1), scratch.At<T>(work_));
  }

  Int n_ = 0;
  char triangle_ = 0;
  size_t work_ = 0;
};

template <class T>
class CholeskyRowsOf final : public RowsRoutine<T> {
  using Cholesky = CholeskySideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 1));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    STROP_TRY(site.Flag("symmetrize", &symmetrize_));
    STROP_TRY(this->FitsOrder(site, n_));
    this->empty_ = n_ == 0;
    this->Costs(1.0 * n_ * n_ * n_ / 3, 1.0 * n_ * n_, n_);
    work_ = this->template Reserve<T>(Cholesky::Work(n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * n_;
    Cholesky::CleanFactor(triangle_ == 'L', symmetrize_, n_, count,
                          this->template At<T>(f.operands[0], first, elements),
                          this->template At<T>(f.results[0], first, elements), scratch.At<T>(work_));
  }

  Int n_ = 0;
  char triangle_ = 0;
  bool symmetrize_ = false;
  size_t work_ = 0;
};

template <class T>
class PosvRowsOf final : public RowsRoutine<T> {
  using Cholesky = CholeskySideBySide<T>;

  Status Bind(Site& site) override {
    Int rows = 0;
    STROP_TRY(site.Arity(2, 1));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Matrix(1, ElementTypeOf<T>(), &rows, &columns_));
    if (rows != n_) return site.Error(StrCat(n_, " equations do not have right-hand sides of ", rows));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, columns_}));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    STROP_TRY(site.Flag("symmetrize", &symmetrize_));
    STROP_TRY(this->FitsOrder(site, n_));
    this->empty_ = n_ == 0 || columns_ == 0;
    this->Costs(1.0 * n_ * n_ * (n_ / 3.0 + 2.0 * columns_), 1.0 * n_ * (n_ + 2.0 * columns_),
                n_ * (columns_ < 4 ? 2.0 : 4.0));
    work_ = this->template Reserve<T>(Cholesky::Work(n_, columns_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * columns_;
    Cholesky::Solve(triangle_ == 'L', symmetrize_, n_, columns_, count,
                    this->template At<T>(f.operands[0], first, int64_t{n_} * n_),
                    this->template At<T>(f.operands[1], first, elements),
                    this->template At<T>(f.results[0], first, elements), scratch.At<T>(work_));
  }

  Int n_ = 0, columns_ = 0;
  char triangle_ = 0;
  bool symmetrize_ = false;
  size_t work_ = 0;
};

template <class T>
class GeqrfRowsOf final : public RowsRoutine<T> {
  using Qr = QrSideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 2));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    k_ = std::min(m_, n_);
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<T>(), {k_}));
    STROP_TRY(this->Fits(site, m_, n_));
    this->empty_ = k_ == 0;
    this->Costs(2.0 * m_ * n_ * k_, 1.0 * m_ * n_, k_);
    work_ = this->template Reserve<T>(Qr::Work(m_, n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{m_} * n_;
    Qr::Factor(m_, n_, count, this->template At<T>(f.operands[0], first, elements),
               this->template At<T>(f.results[0], first, elements), this->template At<T>(f.results[1], first, k_),
               scratch.At<T>(work_));
  }

  Int m_ = 0, n_ = 0, k_ = 0;
  size_t work_ = 0;
};

template <class T>
class OrgqrRowsOf final : public RowsRoutine<T> {
  using Qr = QrSideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(2, 1));
    STROP_TRY(site.Matrices(0, ElementTypeOf<T>(), &m_, &n_));
    STROP_TRY(site.Vector(1, ElementTypeOf<T>(), &k_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {m_, n_}));
    if (m_ < n_ || n_ < k_)
      return site.Error(StrCat("makes ", n_, " columns of length ", m_, " from ", k_, " reflectors"));
    STROP_TRY(this->Fits(site, m_, n_));
    this->empty_ = n_ == 0;
    this->Costs(2.0 * m_ * n_ * k_, 1.0 * m_ * n_, k_);
    work_ = this->template Reserve<T>(Qr::Work(m_, n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{m_} * n_;
    Qr::Q(m_, n_, k_, count, this->template At<T>(f.operands[0], first, elements),
          this->template At<T>(f.operands[1], first, k_), this->template At<T>(f.results[0], first, elements),
          scratch.At<T>(work_));
  }

  Int m_ = 0, n_ = 0, k_ = 0;
  size_t work_ = 0;
};

template <class T>
class SyevdRowsOf final : public RowsRoutine<T> {
  using Eigen = EigenSideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 3));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Letter("uplo", "LU", &triangle_));
    STROP_TRY(site.Letter("mode", "NV", &mode_));
    STROP_TRY(site.Output(0, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<T>(), {n_}));
    STROP_TRY(site.Output(2, kS32, {}));
    STROP_TRY(this->FitsOrder(site, n_, Eigen::kMaxOrder));
    this->empty_ = n_ == 0;
    // About seven sweeps.
    const double rotations = 3.5 * n_ * (n_ - 1);
    this->Costs(rotations * 6 * n_, 2.0 * n_ * n_, rotations * 2);
    work_ = this->template Reserve<T>(Eigen::Work(n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * n_;
    const T* from = this->template At<T>(f.operands[0], first, elements);
    T* vectors = this->template At<T>(f.results[0], first, elements);
    if (mode_ == 'N') std::copy_n(from, count * elements, vectors);  // to be destroyed
    Eigen::Decompose(triangle_ == 'L', n_, count, from, mode_ == 'V' ? vectors : nullptr,
                     this->template At<T>(f.results[1], first, n_), this->template At<Int>(f.results[2], first, 1),
                     scratch.At<T>(work_));
  }

  Int n_ = 0;
  char triangle_ = 0, mode_ = 0;
  size_t work_ = 0;
};

template <class T>
class GesddRowsOf final : public RowsRoutine<T> {
  using Svd = SvdSideBySide<T>;

  Status Bind(Site& site) override {
    STROP_TRY(site.Arity(1, 5));
    STROP_TRY(site.SquareMatrices(0, ElementTypeOf<T>(), &n_));
    STROP_TRY(site.Letter("mode", "ASN", &mode_));
    for (size_t k : {0, 2, 3}) STROP_TRY(site.Output(k, ElementTypeOf<T>(), {n_, n_}));
    STROP_TRY(site.Output(1, ElementTypeOf<T>(), {n_}));
    STROP_TRY(site.Output(4, kS32, {}));
    STROP_TRY(this->FitsOrder(site, n_, Svd::kMaxOrder));
    this->empty_ = n_ == 0;
    // About six sweeps.
    const double rotations = 3.0 * n_ * (n_ - 1);
    this->Costs(rotations * 10 * n_, 3.0 * n_ * n_, rotations * 3);
    work_ = this->template Reserve<T>(Svd::Work(n_));
    return OkStatus();
  }
  void SolveTogether(int64_t first, int64_t count, const CustomCallFrame& f, const Scratch& scratch) const override {
    const int64_t elements = int64_t{n_} * n_;
    const auto matrices = [&](void* data) { return this->template At<T>(data, first, elements); };
    const T* from = matrices(f.operands[0]);
    T *const u = matrices(f.results[2]), *const vt = matrices(f.results[3]);
    std::copy_n(from, count * elements, matrices(f.results[0]));  // to be destroyed
    if (mode_ == 'N') {
      std::fill_n(u, count * elements, T());
      std::fill_n(vt, count * elements, T());
    }
    Svd::Decompose(n_, count, from, mode_ == 'N' ? nullptr : u, this->template At<T>(f.results[1], first, n_), vt,
                   this->template At<Int>(f.results[4], first, 1), scratch.At<T>(work_));
  }

  Int n_ = 0;
  char mode_ = 0;
  size_t work_ = 0;
};

}  // namespace

Makers GetrfRows() { return RealTypes<GetrfRowsOf>(); }
Makers GesvRows() { return RealTypes<GesvRowsOf>(); }
Makers PotrfRows() { return RealTypes<PotrfRowsOf>(); }
Makers CholeskyRows() { return RealTypes<CholeskyRowsOf>(); }
Makers PosvRows() { return RealTypes<PosvRowsOf>(); }
Makers GeqrfRows() { return RealTypes<GeqrfRowsOf>(); }
Makers OrgqrRows() { return RealTypes<OrgqrRowsOf>(); }
Makers SyevdRows() { return RealTypes<SyevdRowsOf>(); }
Makers GesddRows() { return RealTypes<GesddRowsOf>(); }

}  // namespace strop::lapack
