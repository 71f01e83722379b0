// Complex products as real ones. A row of a complex matrix is a row of twice as many real numbers, and so
//   [re im] of C, m x 2n  =  [re im] of A, m x 2k,  times  B', 2k x 2n,
// where every number x + iy of B is the block (x y / -y x) of B'. A is read and C written as they lie; B' exists in
// packed panels alone. So complex products are cut, packed and multiplied like real ones of the doubled sizes.
//
// With so few rows that B is read once, nothing is packed: then the parts of A are rows of their own, by B where it
// lies, and their products are put together afterwards.
#include <algorithm>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_panels.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSmallProducts = 1 << 15;  // of real numbers, as the next ones
constexpr int64_t kTaskProducts = 1 << 18;   // of a task of small ones
constexpr int64_t kRowTask = 1 << 19;        // of a task of few rows
constexpr int64_t kRowBytes = 4096;          // of B's rows, at least, that a task of few rows reads
constexpr int64_t kMostRowsOfStrips = 6, kTwoRows = 2;
constexpr int64_t kLeastStripProducts = 1 << 11;  // of real numbers; below, packing B is as little work
constexpr int64_t kRowBlock = 512;                // along k, of few rows

enum class Way : uint8_t { Blocks, Panels, Small, Strips, Dots };

// A complex or real matrix, part by part.
template <class T>
class Parts {
 public:
  Parts(const GemmProblem& p, const StridedMatrix& m, const void* data, int64_t product)
      : type_(m.type), typed_(Typed(m)), data_(data), offset_(p.Offset(m, product)) {}
  static bool Typed(const StridedMatrix& m) { return IsComplex(m.type) && ComplexPart(m.type) == ElementTypeOf<T>(); }

  // Of a typed one: the real part of element i; the other one follows.
  const T* At(int64_t i) const { return static_cast<const T*>(data_) + 2 * (offset_ + i); }
  // Of any one.
  void Load(int64_t i, T& re, T& im) const {
    if (typed_) {
      re = At(i)[0], im = At(i)[1];
      return;
    }
    const bool complex = IsComplex(type_);
    const ElementType part = complex ? ComplexPart(type_) : type_;
    const int64_t at = complex ? 2 * (offset_ + i) : offset_ + i;
    re = LoadAs<T>(part, data_, at);
    im = complex ? LoadAs<T>(part, data_, at + 1) : T(0);
  }

 private:
  ElementType type_;
  bool typed_;
  const void* data_;
  int64_t offset_;
};

// The numbers of a product as panels hold them: `first`, `k0` and `kc` count real numbers and are even.
template <class T>
class ComplexOperands final : public PanelOperands<T> {
 public:
  ComplexOperands(const GemmProblem& p, const MicroTable<T>& micro, const GemmCall& call)
      : p_(p), micro_(micro), call_(call) {}

  void PackA(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
             T* dst) const override {
    const StridedMatrix& a = p_.a;
    const Parts<T> parts(p_, a, call_.a, product);
    if (Parts<T>::Typed(a) && a.col_stride == 1)
      return PackStrided<T>(micro_, ElementTypeOf<T>(), static_cast<const uint8_t*>(call_.a),
                            2 * (p_.Offset(a, product) + first * a.row_stride) + k0, 2 * a.row_stride, 1, count, kc,
                            width, dst, true);
    ForEach(a, parts, first, count, a.row_stride, k0 / 2, kc / 2, a.col_stride, [&](int64_t k, int64_t v, T re, T im) {
      dst[2 * k * width + v] = re;
      dst[(2 * k + 1) * width + v] = im;
    });
    for (int64_t k = 0; k < kc; ++k) std::fill(dst + k * width + count, dst + (k + 1) * width, T(0));
  }

  void PackB(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
             T* dst) const override {
    const StridedMatrix& b = p_.b;
    const Parts<T> parts(p_, b, call_.b, product);
    if (Parts<T>::Typed(b) && b.col_stride == 1)
      PackRows(parts.At(k0 / 2 * b.row_stride + first / 2), 2 * b.row_stride, count, kc, width, dst);
    else
      ForEach(b, parts, first / 2, count / 2, b.col_stride, k0 / 2, kc / 2, b.row_stride,
              [&](int64_t k, int64_t v, T re, T im) {
                T* const to = dst + 2 * (k * width + v);
                to[0] = re, to[1] = im;
                to[width] = -im, to[width + 1] = re;
              });
    for (int64_t k = 0; k < kc; ++k) std::fill(dst + k * width + count, dst + (k + 1) * width, T(0));
  }

  StoreTarget Target(int64_t product, int64_t, int64_t, void*) const override {
    T* c = static_cast<T*>(call_.c) + 2 * p_.Offset(p_.c, product);
    return {ElementTypeOf<T>(), reinterpret_cast<uint8_t*>(c), 2 * p_.c.row_stride, 1};
  }

 private:
  // Of B where it lies in rows: each of them, and what i times it is.
  static void PackRows(const T* from, int64_t k_stride, int64_t count, int64_t kc, int64_t width, T* dst) {
    for (int64_t k = 0; k < kc; k += 2, from += k_stride, dst += 2 * width) {
      T* const turned = dst + width;
      for (int64_t v = 0; v < count; v += 2) {
        dst[v] = from[v], dst[v + 1] = from[v + 1];
        turned[v] = -from[v + 1], turned[v + 1] = from[v];
      }
    }
  }

  // Vectors [first, first + count), elements [k0, k0 + kc), all of them complex numbers.
  template <class Put>
  static void ForEach(const StridedMatrix& m, const Parts<T>& parts, int64_t first, int64_t count,
                      int64_t vector_stride, int64_t k0, int64_t kc, int64_t k_stride, const Put& put) {
    for (int64_t k = 0; k < kc; ++k) {
      const int64_t at = (k0 + k) * k_stride + first * vector_stride;
      if (Parts<T>::Typed(m)) {
        const T* from = parts.At(at);
        if (vector_stride == 1)
          for (int64_t v = 0; v < count; ++v) put(k, v, from[2 * v], from[2 * v + 1]);
        else
          for (int64_t v = 0; v < count; ++v, from += 2 * vector_stride) put(k, v, from[0], from[1]);
        continue;
      }
      for (int64_t v = 0; v < count; ++v) {
        T re, im;
        parts.Load(at + v * vector_stride, re, im);
        put(k, v, re, im);
      }
    }
  }

  const GemmProblem& p_;
  const MicroTable<T>& micro_;
  const GemmCall& call_;
};

template <class T>
PanelProblem PanelProblemOf(const GemmProblem& p) {
  PanelProblem problem;
  problem.batch = p.batch, problem.m = p.m, problem.n = 2 * p.n, problem.k = 2 * p.k;
  problem.c = ElementTypeOf<T>();
  problem.a_across = p.a.row_stride == 1;
  problem.b_across = p.b.col_stride == 1;
  return problem;
}

template <class T>
class ComplexGemm final : public Gemm {
 public:
  ComplexGemm(const GemmProblem& p, const GemmIsa& isa, GemmSharing sharing) : p_(p), micro_(MicroOf<T>(isa)) {
    const int64_t products = 4 * p.m * p.n * p.k, bytes = sizeof(T);
    direct_ = p.c.col_stride == 1;
    way_ = WayOf(sharing, products);
    across_ = down_ = 1;
    switch (way_) {
      case Way::Panels:
        panels_ = std::make_unique<Panels<T>>(PanelProblemOf<T>(p), micro_);
        num_tasks_ = panels_->num_tasks();
        rounds_ = panels_->rounds();
        prepare_tasks_ = panels_->prepare_tasks();
        shared_bytes_ = panels_->shared_bytes();
        scratch_bytes_ = panels_->scratch_bytes();
        tiles_ = StrCat("complex, ", panels_->ToString());
        return;
      case Way::Small:
        products_a_task_ = std::max<int64_t>(kTaskProducts / products, 1);
        num_tasks_ = CeilDiv(p.batch, products_a_task_);
        // Panels of one piece: of all columns of B, and of a row of A each.
        scratch_bytes_ = (2 * p.k * (2 * p.n + p.m) + 2 * p.m * p.n) * bytes + 3 * kCarverSlack;
        tiles_ = StrCat("complex, small, ", products_a_task_, " a task");
        return;
      case Way::Strips:
      case Way::Dots:
        block_.nb = std::max({CeilDiv(p.n, 16), CeilDiv(kRowTask, 4 * p.m * p.k), kRowBytes / (2 * bytes)});
        block_.nb = std::min(RoundUp(block_.nb, micro_.lanes), RoundUp(p.n, 4));
        across_ = CeilDiv(p.n, block_.nb);
        num_tasks_ = p.batch * across_;
        scratch_bytes_ =
            (way_ == Way::Strips ? 2 * kTwoRows * kRowBlock + 8 * p.m * block_.nb : 2 * p.m * (2 * p.k + 16)) * bytes +
            (2 * p.m + 1) * kCarverSlack;
        tiles_ = StrCat("complex, ", way_ == Way::Strips ? "B where it lies" : "dot products", ", blocks of ", p.m, "x",
                        block_.nb);
        return;
      case Way::Blocks:
        block_ = ChooseBlocks(p.m, 2 * p.n, 2 * p.k, micro_.mr, micro_.nr, bytes, p.batch);
        if (p.b.col_stride == 1) block_.pack_rows = 8;  // as memory lies
        down_ = CeilDiv(p.m, block_.mb);
        across_ = CeilDiv(2 * p.n, block_.nb);
        num_tasks_ = p.batch * down_ * across_;
        scratch_bytes_ = RoundUp(BlockScratchBytes(block_, micro_.mr, micro_.nr, bytes), 64) +
                         (direct_ ? 0 : block_.mb * block_.nb * bytes);
        tiles_ = StrCat("complex, blocks of ", block_.mb, "x", block_.nb / 2);
        return;
    }
  }

  void Prepare(const GemmCall& call, int64_t begin, int64_t end) const override {
    if (panels_) panels_->Prepare(ComplexOperands<T>(p_, micro_, call), call.round, begin, end, call.shared);
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const ComplexOperands<T> operands(p_, micro_, call);
    if (panels_) return panels_->Run(operands, call.round, begin, end, call.shared, scratch);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t product = task / (down_ * across_), down = task / across_ % down_, across = task % across_;
      switch (way_) {
        case Way::Small:
          for (int64_t i = task * products_a_task_; i < std::min((task + 1) * products_a_task_, p_.batch); ++i)
            Small(operands, call, i, scratch);
          break;
        case Way::Strips: Strips(call, product, across * block_.nb, scratch); break;
        case Way::Dots: Dots(call, product, across * block_.nb, scratch); break;
        default: Blocks(operands, call, product, down * block_.mb, across * block_.nb, scratch); break;
      }
    }
  }

 private:
  static constexpr int kOwn = static_cast<int>(std::is_same_v<T, float> ? PackSource::F32 : PackSource::F64);

  Way WayOf(GemmSharing sharing, int64_t products) const {
    if (p_.k == 0) return Way::Blocks;
    if (Parts<T>::Typed(p_.b)) {
      if (p_.b.row_stride == 1 && AreComplexDots(p_, p_.m) && micro_.dot[kOwn]) return Way::Dots;
      if (p_.b.col_stride == 1 && p_.m <= kMostRowsOfStrips &&
          products >= (p_.m <= kTwoRows ? kLeastStripProducts : kSmallProducts) && micro_.strip[kOwn])
        return Way::Strips;
    }
    if (products <= kSmallProducts) return Way::Small;
    const bool shared = sharing == GemmSharing::Allowed && direct_ && Panels<T>::Suits(PanelProblemOf<T>(p_));
    return shared ? Way::Panels : Way::Blocks;
  }

  T* COf(const GemmCall& call, int64_t product) const { return static_cast<T*>(call.c) + 2 * p_.Offset(p_.c, product); }

  // Real numbers [n0, n0 + cols) of rows [m0, m0 + rows) of C, to where its elements lie.
  void Scatter(const T* sums, int64_t stride, T* c, int64_t m0, int64_t rows, int64_t n0, int64_t cols) const {
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t j = 0; j < cols; ++j)
        c[2 * ((m0 + r) * p_.c.row_stride + (n0 + j) / 2 * p_.c.col_stride) + j % 2] = sums[r * stride + j];
  }

  void Blocks(const ComplexOperands<T>& operands, const GemmCall& call, int64_t product, int64_t m0, int64_t n0,
              void* scratch) const {
    const int64_t rows = std::min(block_.mb, p_.m - m0), cols = std::min(block_.nb, 2 * p_.n - n0);
    const PackFn<T> pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      operands.PackA(product, first, count, k0, kc, width, dst);
    };
    const PackFn<T> pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      operands.PackB(product, first, count, k0, kc, width, dst);
    };
    StoreTarget target = operands.Target(product, 0, 0, nullptr);
    const int64_t own = RoundUp(BlockScratchBytes(block_, micro_.mr, micro_.nr, sizeof(T)), 64);
    T* const sums = reinterpret_cast<T*>(static_cast<uint8_t*>(scratch) + own);
    if (!direct_) target = {target.type, reinterpret_cast<uint8_t*>(sums - m0 * block_.nb - n0), block_.nb, 1};
    RunBlock<T>(micro_, block_, m0, rows, n0, cols, 2 * p_.k, pack_a, pack_b, target, scratch);
    if (!direct_) Scatter(sums, block_.nb, COf(call, product), m0, rows, n0, cols);
  }

  void Small(const ComplexOperands<T>& operands, const GemmCall& call, int64_t product, void* scratch) const {
    const int64_t m = p_.m, n = 2 * p_.n, k = 2 * p_.k;
    Carver carver(scratch);
    T* const b = carver.Take<T>(k * n);
    operands.PackB(product, 0, n, 0, k, n, b);
    const T* a = nullptr;
    int64_t a_row = k;
    if (Parts<T>::Typed(p_.a) && p_.a.col_stride == 1) {
      a = Parts<T>(p_, p_.a, call.a, product).At(0);
      a_row = 2 * p_.a.row_stride;
    } else {
      T* const rows = carver.Take<T>(m * k);
      for (int64_t i = 0; i < m; ++i) operands.PackA(product, i, 1, 0, k, 1, rows + i * k);
      a = rows;
    }
    T* const c = direct_ ? COf(call, product) : carver.Take<T>(m * n);
    const int64_t c_stride = direct_ ? 2 * p_.c.row_stride : n;
    MultiplySmall<T>(micro_, m, n, k, a, a_row, 1, b, n, c, c_stride);
    if (!direct_) Scatter(c, n, COf(call, product), 0, m, 0, n);
  }

  void StoreComplex(T* c, int64_t row, int64_t col, T re, T im) const {
    T* const to = c + 2 * (row * p_.c.row_stride + col * p_.c.col_stride);
    to[0] = re, to[1] = im;
  }

  // Rows of A, two at a time: all real parts by the numbers of B, all imaginary parts by them.
  void Strips(const GemmCall& call, int64_t product, int64_t n0, void* scratch) const {
    const int64_t cols = std::min(block_.nb, p_.n - n0), stride = 2 * block_.nb;
    const Parts<T> a(p_, p_.a, call.a, product), b(p_, p_.b, call.b, product);
    Carver carver(scratch);
    T* const panel = carver.Take<T>(2 * kTwoRows * kRowBlock);
    T* const sums = carver.Take<T>(2 * p_.m * stride);
    T* const block = carver.Take<T>(2 * p_.m * stride);
    for (int64_t k0 = 0; k0 < p_.k; k0 += kRowBlock) {
      T* const to = k0 == 0 ? sums : block;
      const int64_t kc = std::min(kRowBlock, p_.k - k0);
      for (int64_t r0 = 0; r0 < p_.m; r0 += kTwoRows) {
        const int64_t rows = std::min(kTwoRows, p_.m - r0);
        for (int64_t k = 0; k < kc; ++k)
          for (int64_t r = 0; r < rows; ++r)
            a.Load((r0 + r) * p_.a.row_stride + (k0 + k) * p_.a.col_stride, panel[2 * (k * rows + r)],
                   panel[2 * (k * rows + r) + 1]);
        micro_.strip[kOwn](static_cast<int>(2 * rows), kc, panel, b.At(k0 * p_.b.row_stride + n0), 2 * p_.b.row_stride,
                           2 * cols, to + 2 * r0 * stride, stride);
      }
      for (int64_t r = 0; r < 2 * p_.m && k0 > 0; ++r)
        for (int64_t j = 0; j < 2 * cols; ++j) sums[r * stride + j] += block[r * stride + j];
    }
    T* const c = COf(call, product);
    for (int64_t r = 0; r < p_.m; ++r) {
      const T *const by_re = sums + 2 * r * stride, *const by_im = by_re + stride;
      for (int64_t j = 0; j < cols; ++j)
        StoreComplex(c, r, n0 + j, by_re[2 * j] - by_im[2 * j + 1], by_re[2 * j + 1] + by_im[2 * j]);
    }
  }

  // Columns of B, which are contiguous, by (re, -im) and by (im, re) of A.
  void Dots(const GemmCall& call, int64_t product, int64_t n0, void* scratch) const {
    constexpr int64_t kColumns = 4;
    const int64_t cols = std::min(block_.nb, p_.n - n0), k = 2 * p_.k;
    const Parts<T> a(p_, p_.a, call.a, product), b(p_, p_.b, call.b, product);
    T* x[2 * kComplexDotRows];
    Carver carver(scratch);
    for (int64_t r = 0; r < p_.m; ++r) {
      T *const of_re = x[2 * r] = carver.Take<T>(k), *const of_im = x[2 * r + 1] = carver.Take<T>(k);
      for (int64_t i = 0; i < p_.k; ++i) {
        T re, im;
        a.Load(r * p_.a.row_stride + i * p_.a.col_stride, re, im);
        of_re[2 * i] = re, of_re[2 * i + 1] = -im;
        of_im[2 * i] = im, of_im[2 * i + 1] = re;
      }
    }
    T* const c = COf(call, product);
    T sums[2 * kComplexDotRows][kColumns];
    for (int64_t j = 0; j < cols; j += kColumns) {
      const int count = static_cast<int>(std::min(kColumns, cols - j));
      const T* const from = b.At((n0 + j) * p_.b.col_stride);
      micro_.dot[kOwn](k, x, static_cast<int>(2 * p_.m), from, 2 * p_.b.col_stride, count, sums[0], kColumns);
      for (int64_t r = 0; r < p_.m; ++r)
        for (int v = 0; v < count; ++v) StoreComplex(c, r, n0 + j + v, sums[2 * r][v], sums[2 * r + 1][v]);
    }
  }

  const GemmProblem p_;
  const MicroTable<T>& micro_;
  Way way_ = Way::Blocks;
  bool direct_ = true;  // rows of C are contiguous
  BlockShape block_;
  int64_t down_ = 1, across_ = 1;
  int64_t products_a_task_ = 1;
  std::unique_ptr<const Panels<T>> panels_;
};

}  // namespace

template <class T>
std::shared_ptr<const Gemm> MakeComplexGemm(const GemmProblem& p, const GemmIsa& isa, GemmSharing sharing) {
  return std::make_shared<ComplexGemm<T>>(p, isa, sharing);
}
template std::shared_ptr<const Gemm> MakeComplexGemm<float>(const GemmProblem&, const GemmIsa&, GemmSharing);
template std::shared_ptr<const Gemm> MakeComplexGemm<double>(const GemmProblem&, const GemmIsa&, GemmSharing);

}  // namespace strop::cpu
