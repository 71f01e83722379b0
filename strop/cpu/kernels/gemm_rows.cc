#include "strop/cpu/kernels/gemm_rows.h"

#include <algorithm>
#include <cstdlib>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_zeros.h"

namespace strop::cpu {
namespace {

constexpr int64_t kNearBytes = 1 << 17;  // of B, that are read again for each panel of rows
constexpr int64_t kBlockBytes = 1024;    // along k, of a column of B: a panel of it stays in the first-level cache

// Panels hold units of T (gemm_micro.h): elements, or pairs of bf16.
template <class T>
class RealRowGemm final : public RowGemm {
 public:
  RealRowGemm(const GemmProblem& p, int64_t rows, const MicroTable<T>& micro, const WantedColumns& wanted)
      : p_(p), rows_(rows), micro_(micro), wanted_(wanted), units_(CeilDiv(p.k, micro.group)) {
    const int64_t mr = micro_.mr, nr = micro_.nr;
    kb_ = std::min<int64_t>(units_, kBlockBytes / static_cast<int64_t>(sizeof(T)));
    cols_ = RoundUp(p.n, nr);
    panels_ = CeilDiv(rows, mr);
    const ElementType unit = micro_.group == 1 ? ElementTypeOf<T>() : ElementType::BF16;
    const bool lie = micro_.indirect[0] && p.a.col_stride == 1 && p.k % micro_.group == 0;
    reads_a_ = lie && p.a.type == unit;
    converts_a_ =
        lie && !reads_a_ && micro_.group == 1 && p.a.row_stride == p.k && units_ == kb_ && PackerOf(micro_, p.a.type);
    // Dense rows of whole panels.
    reads_b_ =
        micro_.group == 1 && p.b.type == unit && p.b.col_stride == 1 && p.b.row_stride < 2 * p.n && p.n % nr == 0;
    direct_ = HoldsSums<T>(p.c.type) && p.c.col_stride == 1;
    const int64_t bytes = sizeof(T);
    stores_rows_ = !HoldsSums<T>(p.c.type) && p.c.col_stride == 1 && units_ == kb_ && wanted_.step == 0 &&
                   std::max(kb_, mr) * cols_ * bytes <= kNearBytes;
    packed_bytes_ = sizeof(Finite) + (reads_b_ ? 0 : cols_ * units_ * bytes) + 2 * kCarverSlack;
    scratch_bytes_ = (reads_a_ ? 0 : rows * kb_ * bytes) + mr * (stores_rows_ ? cols_ : nr) * bytes +
                     (KeepsSums() ? rows * cols_ * bytes : 0) + panels_ * static_cast<int64_t>(sizeof(Extent)) +
                     4 * kCarverSlack;
    tiles_ = StrCat(rows, "x", p.n, reads_b_ ? " by rhs where it lies" : " by packed rhs", ", ", CeilDiv(rows, panels_),
                    "x", nr, " in registers", micro_.group == 1 ? "" : ", 2 products an instruction", Wanted());
  }

  void Pack(const void* b, void* packed) const override {
    Carver carver(packed);
    *carver.Take<Finite>(1) = Finite::kUnknown;
    if (reads_b_) return;
    T* to = carver.Take<T>(cols_ * units_);
    // As memory lies: rows of B are read whole where its columns are neighbours.
    const int64_t piece = p_.b.col_stride == 1 ? kStrip : kb_;
    for (int64_t k0 = 0; k0 < units_; k0 += kb_) {
      const int64_t kc = std::min(kb_, units_ - k0);
      for (int64_t u = 0; u < kc; u += piece)
        for (int64_t j = 0; j < p_.n; j += micro_.nr)
          PackStrided<T>(micro_, p_.b.type, static_cast<const uint8_t*>(b),
                         j * p_.b.col_stride + Element(k0 + u) * p_.b.row_stride, p_.b.col_stride, p_.b.row_stride,
                         std::min<int64_t>(micro_.nr, p_.n - j), Elements(k0 + u, std::min(piece, kc - u)), micro_.nr,
                         to + k0 * cols_ + j * kc + u * micro_.nr);
    }
  }

  void Run(const void* a, const void* b, void* packed, void* c, void* scratch, int64_t first) const override {
    const int64_t nr = micro_.nr;
    Carver carver(scratch);
    T* a_panels = reads_a_ ? nullptr : carver.Take<T>(rows_ * kb_);
    T* tile = carver.Take<T>(micro_.mr * (stores_rows_ ? cols_ : nr));
    T* sums = KeepsSums() ? carver.Take<T>(rows_ * cols_) : nullptr;
    Extent* needed = carver.Take<Extent>(panels_);
    Carver packed_carver(packed);
    Finite* finite = packed_carver.Take<Finite>(1);
    const T* from = reads_b_ ? static_cast<const T*>(b) : packed_carver.Take<T>(0);
    const StoreTarget target{p_.c.type, static_cast<uint8_t*>(c), p_.c.row_stride, p_.c.col_stride};
    for (int64_t k0 = 0; k0 < units_; k0 += kb_) {
      const int64_t kc = std::min(kb_, units_ - k0);
      if (converts_a_)
        PackStrided<T>(micro_, p_.a.type, static_cast<const uint8_t*>(a), 0, 1, 0, rows_ * p_.k, 1, rows_ * p_.k,
                       a_panels);
      else if (!reads_a_)
        PackA(a, k0, kc, a_panels);
      for (int64_t n = 0; n < panels_; ++n) needed[n] = Needed(a, a_panels, n, k0, kc, from, *finite);
      if (stores_rows_) return StoreRows(a, a_panels, kc, needed, from, target, tile);
      for (int64_t j = 0; j < p_.n; j += nr) {
        const T* panel = reads_b_ ? from + k0 * p_.b.row_stride + j : from + k0 * cols_ + j * kc;
        const int64_t stride = reads_b_ ? p_.b.row_stride : nr, width = std::min(nr, p_.n - j);
        for (int64_t n = 0; n < panels_; ++n) {
          const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
          if (!IsWanted(first + i, height, j, width)) continue;
          T *to = tile, *const sum = sums ? sums + i * cols_ + j : nullptr;
          int64_t distance = nr;
          if (sum) {
            to = sum;
            distance = cols_;
          } else if (direct_ && width == nr) {
            to = static_cast<T*>(c) + i * p_.c.row_stride + j;
            distance = p_.c.row_stride;
          }
          Multiply(a, a_panels, i, height, k0, kc, needed[n], panel, stride, to, distance, to != tile && k0 > 0);
          if (to == tile) StoreTile<T>(target, i, j, height, width, tile, nr, k0 > 0);
        }
      }
    }
    if (sums) StoreTile<T>(target, 0, 0, rows_, p_.n, sums, cols_, false);
  }

 private:
  static constexpr int64_t kStrip = 8;  // units of B along k that the cache holds at distances of pages

  // Panels of all columns, whose rows are converted whole.
  void StoreRows(const void* a, const T* a_panels, int64_t kc, const Extent* needed, const T* b,
                 const StoreTarget& target, T* tile) const {
    for (int64_t n = 0; n < panels_; ++n) {
      const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
      for (int64_t j = 0; j < p_.n; j += micro_.nr)
        Multiply(a, a_panels, i, height, 0, kc, needed[n], reads_b_ ? b + j : b + j * kc,
                 reads_b_ ? p_.b.row_stride : micro_.nr, tile + j, cols_, false);
      StoreTile<T>(target, i, 0, height, p_.n, tile, cols_, false);
    }
  }

  // Partial sums that C cannot hold.
  bool KeepsSums() const { return !HoldsSums<T>(p_.c.type) && units_ > kb_; }
  // Of `height` rows of the product, is any of `width` columns?
  bool IsWanted(int64_t row, int64_t height, int64_t column, int64_t width) const {
    if (wanted_.step == 0) return true;
    return column + width > row / wanted_.step + wanted_.first &&
           column <= (row + height - 1) / wanted_.step + wanted_.last;
  }
  std::string Wanted() const {
    if (wanted_.step == 0) return "";
    const std::string row = wanted_.step == 1 ? "i" : StrCat("i / ", wanted_.step);
    const auto end = [&](int64_t by) { return by == 0 ? row : StrCat(row, by < 0 ? " - " : " + ", std::abs(by)); };
    std::string text = ", of row i columns";
    if (wanted_.first > -p_.n) StrAppend(text, " from ", end(wanted_.first));
    if (wanted_.last < p_.n) StrAppend(text, " to ", end(wanted_.last));
    return text;
  }
  // Of a panel; they are as even as they can be.
  int64_t FirstRow(int64_t panel) const { return rows_ * panel / panels_; }
  int64_t Element(int64_t unit) const { return unit * micro_.group; }
  // How many elements `count` units hold from `unit` on: the last one may be short.
  int64_t Elements(int64_t unit, int64_t count) const { return std::min(Element(count), p_.k - Element(unit)); }

  void PackA(const void* a, int64_t k0, int64_t kc, T* to) const {
    for (int64_t n = 0; n < panels_; ++n) {
      const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
      PackStrided<T>(micro_, p_.a.type, static_cast<const uint8_t*>(a),
                     i * p_.a.row_stride + Element(k0) * p_.a.col_stride, p_.a.row_stride, p_.a.col_stride, height,
                     Elements(k0, kc), height, to + i * kc, true);
    }
  }

  // Where rows of A lie, as they are or converted.
  void RowsOfA(const void* a, const T* converted, int64_t i, int64_t height, int64_t unit, const T** rows) const {
    if (converts_a_) {
      for (int64_t r = 0; r < height; ++r) rows[r] = converted + (i + r) * p_.k + unit;
      return;
    }
    const uint8_t* const bytes = static_cast<const uint8_t*>(a);
    for (int64_t r = 0; r < height; ++r)
      rows[r] = reinterpret_cast<const T*>(bytes + ((i + r) * p_.a.row_stride + Element(unit)) * Bytes(p_.a.type));
  }

  // The units of [k0, k0 + kc) that are to be multiplied with rows of a panel.
  Extent Needed(const void* a, const T* a_panels, int64_t panel, int64_t k0, int64_t kc, const T* b,
                Finite& finite) const {
    const Extent all{0, static_cast<int32_t>(kc)};
    if (!FindsZeros(micro_)) return all;
    const int64_t i = FirstRow(panel), height = FirstRow(panel + 1) - i;
    const T* rows[kMostRows];
    const bool in_rows = reads_a_ || converts_a_;
    if (in_rows) RowsOfA(a, a_panels, i, height, k0, rows);
    const Extent extent = in_rows ? ExtentOfRows(rows, height, kc) : ExtentOfPanel(a_panels + i * kc, kc, height);
    return IsShort(extent, kc) && IsFiniteB(b, finite) ? extent : all;
  }

  bool IsFiniteB(const T* b, Finite& finite) const {
    if (finite == Finite::kUnknown) {
      bool all = true;
      if (reads_b_)
        for (int64_t k = 0; k < p_.k && all; ++k) all = micro_.all_finite(p_.n, b + k * p_.b.row_stride);
      else
        all = micro_.all_finite(cols_ * units_, b);
      finite = all ? Finite::kYes : Finite::kNo;
    }
    return finite == Finite::kYes;
  }

  void Multiply(const void* a, const T* a_panels, int64_t i, int64_t height, int64_t k0, int64_t kc, Extent needed,
                const T* b, int64_t b_stride, T* c, int64_t c_stride, bool accumulate) const {
    if (needed.size() == 0 && accumulate) return;
    if (needed.size() == 0) needed = {0, 1};  // zeros, which have to be written
    b += needed.first * b_stride;
    if (!reads_a_ && !converts_a_) {
      micro_.kernel[height - 1](needed.size(), a_panels + i * kc + needed.first * height, b, b_stride, c, c_stride,
                                accumulate);
      return;
    }
    const T* rows[kMostRows];
    RowsOfA(a, a_panels, i, height, k0 + needed.first, rows);
    micro_.indirect[height - 1](1, needed.size(), rows, b, b_stride, c, c_stride, accumulate);
  }

  static constexpr int64_t kMostRows = 16;

  const GemmProblem p_;
  const int64_t rows_;
  const MicroTable<T>& micro_;
  const WantedColumns wanted_;
  const int64_t units_;  // along k
  int64_t kb_ = 0, cols_ = 0, panels_ = 0;
  bool reads_a_ = false, reads_b_ = false;  // where they lie
  bool converts_a_ = false;                 // all of them at once
  bool direct_ = false;                     // inner kernels write to C
  bool stores_rows_ = false;                // of a panel, once its sums are there
};

// Pairs of bf16 where no subnormal number can come of the rows (NoSubnormals), f32 where one can. Each block of rows
// decides for itself; what B needs in f32 is packed when the first block asks for it.
class Bf16RowGemm final : public RowGemm {
 public:
  Bf16RowGemm(const GemmProblem& p, int64_t rows, const GemmIsa& isa, const WantedColumns& wanted)
      : least_(isa.least_exponent),
        scan_a_(p.a, rows, p.k),
        scan_b_(p.b, p.k, p.n),
        pairs_(p, rows, isa.bf16, wanted),
        singles_(p, rows, isa.f32, wanted) {
    singles_at_ = kHead + RoundUp(pairs_.packed_bytes(), 64);
    packed_bytes_ = singles_at_ + singles_.packed_bytes();
    scratch_bytes_ = std::max(pairs_.scratch_bytes(), singles_.scratch_bytes());
    tiles_ = pairs_.tiles();
  }

  void Pack(const void* b, void* packed) const override {
    *static_cast<Head*>(packed) = {scan_b_.Least(least_, static_cast<const uint16_t*>(b)), false};
    pairs_.Pack(b, At(packed, kHead));
  }

  void Run(const void* a, const void* b, void* packed, void* c, void* scratch, int64_t first) const override {
    Head& head = *static_cast<Head*>(packed);
    if (NoSubnormals(scan_a_.Least(least_, static_cast<const uint16_t*>(a)), head.least)) {
      pairs_.Run(a, b, At(packed, kHead), c, scratch, first);
      return;
    }
    void* const singles = At(packed, singles_at_);
    if (!head.has_singles) singles_.Pack(b, singles);
    head.has_singles = true;
    singles_.Run(a, b, singles, c, scratch, first);
  }

 private:
  struct Head {
    int least;         // exponent of B
    bool has_singles;  // B is packed in f32, too
  };
  static constexpr int64_t kHead = 64;
  static void* At(void* packed, int64_t offset) { return static_cast<uint8_t*>(packed) + offset; }

  int (*const least_)(int64_t n, const uint16_t* codes);
  const ExponentScan scan_a_, scan_b_;
  const RealRowGemm<float> pairs_, singles_;
  int64_t singles_at_ = 0;
};

}  // namespace

Result<std::shared_ptr<const RowGemm>> RowGemm::Create(const GemmProblem& p, int64_t rows, const GemmIsa& isa,
                                                       const WantedColumns& wanted) {
  switch (GemmAccumulator(p.a.type, p.b.type, p.c.type)) {
    case ElementType::F32:
      if (isa.bf16.mr > 0 && p.a.type == ElementType::BF16 && p.b.type == ElementType::BF16)
        return std::shared_ptr<const RowGemm>(std::make_shared<Bf16RowGemm>(p, rows, isa, wanted));
      return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<float>>(p, rows, isa.f32, wanted));
    case ElementType::F64:
      return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<double>>(p, rows, isa.f64, wanted));
    default: return Unimplemented("rows of a dot of ", Name(p.a.type), " and ", Name(p.b.type), " to ", Name(p.c.type));
  }
}

}  // namespace strop::cpu
