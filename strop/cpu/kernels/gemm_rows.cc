#include "strop/cpu/kernels/gemm_rows.h"

#include <algorithm>

#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kBlockBytes = 1024;  // along k, of a column of B: a panel of it stays in the first-level cache

template <class T>
class RealRowGemm final : public RowGemm {
 public:
  RealRowGemm(const GemmProblem& p, int64_t rows, const GemmIsa& isa)
      : p_(p), rows_(rows), micro_(MicroOf<T>(isa, p.a.type, p.b.type)) {
    const int64_t mr = micro_.mr, nr = micro_.nr;
    kb_ = std::min<int64_t>(p.k, kBlockBytes / static_cast<int64_t>(sizeof(T)));
    cols_ = RoundUp(p.n, nr);
    panels_ = CeilDiv(rows, mr);
    reads_a_ = micro_.indirect[0] != nullptr && p.a.type == ElementTypeOf<T>() && p.a.col_stride == 1;
    // Dense rows of whole panels.
    reads_b_ = p.b.type == ElementTypeOf<T>() && p.b.col_stride == 1 && p.b.row_stride < 2 * p.n && p.n % nr == 0;
    direct_ = HoldsSums<T>(p.c.type) && p.c.col_stride == 1;
    const int64_t bytes = sizeof(T);
    if (!reads_b_) packed_bytes_ = cols_ * p.k * bytes + kCarverSlack;
    scratch_bytes_ = (reads_a_ ? 0 : rows * kb_ * bytes) + mr * nr * bytes + (KeepsSums() ? rows * cols_ * bytes : 0) +
                     3 * kCarverSlack;
    tiles_ = StrCat(rows, "x", p.n, reads_b_ ? " by rhs where it lies" : " by packed rhs", ", ", CeilDiv(rows, panels_),
                    "x", nr, " in registers");
  }

  void Pack(const void* b, void* packed) const override {
    T* to = Carver(packed).Take<T>(cols_ * p_.k);
    // As memory lies: rows of B are read whole where its columns are neighbours.
    const int64_t piece = p_.b.col_stride == 1 ? kStrip : kb_;
    for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
      const int64_t kc = std::min(kb_, p_.k - k0);
      for (int64_t p = 0; p < kc; p += piece)
        for (int64_t j = 0; j < p_.n; j += micro_.nr)
          PackStrided<T>(micro_, p_.b.type, static_cast<const uint8_t*>(b),
                         j * p_.b.col_stride + (k0 + p) * p_.b.row_stride, p_.b.col_stride, p_.b.row_stride,
                         std::min<int64_t>(micro_.nr, p_.n - j), std::min(piece, kc - p), micro_.nr,
                         to + k0 * cols_ + j * kc + p * micro_.nr);
    }
  }

  void Run(const void* a, const void* b, const void* packed, void* c, void* scratch) const override {
    const int64_t nr = micro_.nr;
    Carver carver(scratch);
    T* a_panels = reads_a_ ? nullptr : carver.Take<T>(rows_ * kb_);
    T* tile = carver.Take<T>(micro_.mr * nr);
    T* sums = KeepsSums() ? carver.Take<T>(rows_ * cols_) : nullptr;
    const T* from = reads_b_ ? static_cast<const T*>(b) : Carver(const_cast<void*>(packed)).template Take<T>(0);
    const StoreTarget target{p_.c.type, static_cast<uint8_t*>(c), p_.c.row_stride, p_.c.col_stride};
    for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
      const int64_t kc = std::min(kb_, p_.k - k0);
      if (!reads_a_) PackA(a, k0, kc, a_panels);
      for (int64_t j = 0; j < p_.n; j += nr) {
        const T* panel = reads_b_ ? from + k0 * p_.b.row_stride + j : from + k0 * cols_ + j * kc;
        const int64_t stride = reads_b_ ? p_.b.row_stride : nr, width = std::min(nr, p_.n - j);
        for (int64_t n = 0; n < panels_; ++n) {
          const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
          T *to = tile, *const sum = sums ? sums + i * cols_ + j : nullptr;
          int64_t distance = nr;
          if (sum) {
            to = sum;
            distance = cols_;
          } else if (direct_ && width == nr) {
            to = static_cast<T*>(c) + i * p_.c.row_stride + j;
            distance = p_.c.row_stride;
          }
          Multiply(a, a_panels, i, height, k0, kc, panel, stride, to, distance, to != tile && k0 > 0);
          if (to == tile) StoreTile<T>(target, i, j, height, width, tile, nr, k0 > 0);
        }
      }
    }
    if (sums) StoreTile<T>(target, 0, 0, rows_, p_.n, sums, cols_, false);
  }

 private:
  static constexpr int64_t kStrip = 8;  // rows of B that the cache holds at distances of pages

  // Partial sums that C cannot hold.
  bool KeepsSums() const { return !HoldsSums<T>(p_.c.type) && p_.k > kb_; }
  // Of a panel; they are as even as they can be.
  int64_t FirstRow(int64_t panel) const { return rows_ * panel / panels_; }

  void PackA(const void* a, int64_t k0, int64_t kc, T* to) const {
    for (int64_t n = 0; n < panels_; ++n) {
      const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
      PackStrided<T>(micro_, p_.a.type, static_cast<const uint8_t*>(a), i * p_.a.row_stride + k0 * p_.a.col_stride,
                     p_.a.row_stride, p_.a.col_stride, height, kc, height, to + i * kc);
    }
  }

  void Multiply(const void* a, const T* a_panels, int64_t i, int64_t height, int64_t k0, int64_t kc, const T* b,
                int64_t b_stride, T* c, int64_t c_stride, bool accumulate) const {
    if (!reads_a_) {
      micro_.kernel[height - 1](kc, a_panels + i * kc, b, b_stride, c, c_stride, accumulate);
      return;
    }
    const T* rows[16];
    for (int64_t r = 0; r < height; ++r) rows[r] = static_cast<const T*>(a) + (i + r) * p_.a.row_stride + k0;
    micro_.indirect[height - 1](1, kc, rows, b, b_stride, c, c_stride, accumulate);
  }

  const GemmProblem p_;
  const int64_t rows_;
  const MicroTable<T>& micro_;
  int64_t kb_ = 0, cols_ = 0, panels_ = 0;
  bool reads_a_ = false, reads_b_ = false;  // where they lie
  bool direct_ = false;                     // inner kernels write to C
};

}  // namespace

Result<std::shared_ptr<const RowGemm>> RowGemm::Create(const GemmProblem& p, int64_t rows, const GemmIsa& isa) {
  switch (GemmAccumulator(p.a.type, p.b.type, p.c.type)) {
    case ElementType::F32: return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<float>>(p, rows, isa));
    case ElementType::F64: return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<double>>(p, rows, isa));
    default: return Unimplemented("rows of a dot of ", Name(p.a.type), " and ", Name(p.b.type), " to ", Name(p.c.type));
  }
}

}  // namespace strop::cpu
