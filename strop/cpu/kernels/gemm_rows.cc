#include "strop/cpu/kernels/gemm_rows.h"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_zeros.h"

namespace strop::cpu {
namespace {

constexpr int64_t kNearBytes = 1 << 17;  // of B, that are read again for each panel of rows
constexpr int64_t kBlockBytes = 1024;    // along k, of a column of B: a panel of it stays in the first-level cache
constexpr int64_t kThirdUnits = 96, kMostThirdUnits = 144;  // the same of numbers in three parts; of one block
constexpr int64_t kLeastOfThirds = 64;                      // rows, columns and terms, that pay for taking them apart

// Panels hold units of T (gemm_micro.h): elements, pairs of bf16, or bytes in fours.
template <class T>
class RealRowGemm final : public RowGemm {
 public:
  // `whole`: of numbers in three parts, what multiplies them as they are.
  RealRowGemm(const GemmProblem& p, int64_t rows, const MicroTable<T>& micro, const WantedColumns& wanted,
              const MicroTable<T>* whole = nullptr)
      : p_(p), rows_(rows), micro_(micro), whole_(whole), wanted_(wanted), units_(micro.Units(p.k)) {
    const int64_t mr = micro_.mr, nr = micro_.nr;
    kb_ = std::min<int64_t>(units_, kBlockBytes / static_cast<int64_t>(sizeof(T)));
    if (whole_) kb_ = units_ <= kMostThirdUnits ? units_ : kThirdUnits;
    cols_ = p.n / nr * nr + (p.n % nr > 0 ? WidthOf(p.n % nr) : 0);
    // Squares are whole ones, whether their rows are there or not.
    const EvenPanels panels(rows, mr);
    panels_ = panels.count;
    for (int64_t n = 0; n <= panels_; ++n)
      first_rows_.push_back(micro_.step > 1 ? std::min(n * mr, rows) : panels.First(n));
    const ElementType unit = micro_.group == 1 ? ElementTypeOf<T>() : ElementType::BF16;
    const bool lie = micro_.indirect[0] && p.a.col_stride == 1 && p.k % micro_.group == 0;
    reads_a_ = lie && p.a.type == unit;
    converts_a_ = lie && !reads_a_ && micro_.group == 1 && PackerOf(micro_, p.a.type);
    // Dense rows of whole tiles.
    reads_b_ = micro_.group == 1 && p.b.type == unit && p.b.col_stride == 1 && p.b.row_stride < 2 * p.n &&
               (p.n % nr == 0 || WidthOf(p.n % nr) == p.n % nr);
    direct_ = HoldsSums<T>(p.c.type) && p.c.col_stride == 1;
    const int64_t bytes = sizeof(T);
    // Kernels that take steps write bf16 themselves.
    direct_halves_ = micro_.step > 1 && !whole_ && std::is_same_v<T, float> && p.c.type == ElementType::BF16 &&
                     p.c.col_stride == 1 && units_ == kb_;
    stores_rows_ = !direct_halves_ && !whole_ && !HoldsSums<T>(p.c.type) && p.c.col_stride == 1 && units_ == kb_ &&
                   wanted_.step == 0 && std::max(kb_, mr) * cols_ * bytes <= kNearBytes;
    reads_columns_ =
        !lie && p.a.row_stride == 1 && !whole_ && !direct_halves_ && units_ == kb_ && kb_ * cols_ * bytes <= kNearBytes;
    packed_bytes_ = sizeof(Finite) + (reads_b_ ? 0 : cols_ * units_ * bytes) + 2 * kCarverSlack;
    scratch_bytes_ = (reads_a_ ? 0 : HeldRows() * kb_ * bytes) + mr * (stores_rows_ ? cols_ : nr) * bytes +
                     (KeepsSums() ? rows * cols_ * bytes : 0) + panels_ * static_cast<int64_t>(sizeof(Extent)) +
                     rows * static_cast<int64_t>(sizeof(T*)) + 6 * kCarverSlack;
    if constexpr (std::is_same_v<T, float>) {
      if (whole_) scratch_bytes_ += kSideUnits * micro_.step * bytes + RepairBytes(*whole_, p.k);
    }
    tiles_ = StrCat(whole_ ? "in three parts of bf16, " : "", rows, "x", p.n,
                    reads_b_ ? " by rhs where it lies" : " by packed rhs", ", ", CeilDiv(rows, panels_), "x", nr,
                    " in registers",
                    micro_.step > 1    ? ", squares of 16x16 an instruction"
                    : micro_.group > 1 ? ", 2 products an instruction"
                                       : "",
                    Wanted());
  }

  void Pack(const void* b, void* packed) const override {
    Carver carver(packed);
    *carver.Take<Finite>(1) = Finite::kUnknown;
    if (reads_b_) return;
    T* to = carver.Take<T>(cols_ * units_);
    // As memory lies: rows of B are read whole where its columns are neighbours.
    const int64_t piece = p_.b.col_stride == 1 ? std::max<int64_t>(kStrip, micro_.step) : kb_;
    for (int64_t k0 = 0; k0 < units_; k0 += kb_) {
      const int64_t kc = std::min(kb_, units_ - k0);
      for (int64_t u = 0; u < kc; u += piece)
        for (int64_t j = 0; j < p_.n; j += micro_.nr) {
          const int64_t some = std::min<int64_t>(micro_.nr, p_.n - j), width = WidthOf(some);
          PackStrided<T>(micro_, p_.b.type, static_cast<const uint8_t*>(b),
                         j * p_.b.col_stride + Element(k0 + u) * p_.b.row_stride, p_.b.col_stride, p_.b.row_stride,
                         some, Elements(k0 + u, std::min(piece, kc - u)), width, to + k0 * cols_ + j * kc + u * width);
        }
    }
  }

  void Run(const void* a, const void* b, void* packed, void* c, void* scratch, int64_t first, To to) const override {
    const int64_t nr = micro_.nr;
    const KernelScope kernels(micro_);
    const bool adds = to == To::kAdd;
    Carver carver(scratch);
    LeftRows left;  // followed by a tile, which is more than what kernels may read beyond panels
    left.panels = reads_a_ ? nullptr : carver.Take<T>(HeldRows() * kb_);
    left.lines = reads_a_ || converts_a_ ? carver.Take<const T*>(rows_) : nullptr;
    T* tile = carver.Take<T>(micro_.mr * (stores_rows_ ? cols_ : nr));
    T* sums = KeepsSums() ? carver.Take<T>(rows_ * cols_) : nullptr;
    left.needed = carver.Take<Extent>(panels_);
    void* const repair = carver.Take<uint8_t>(0);
    Carver packed_carver(packed);
    Finite* finite = packed_carver.Take<Finite>(1);
    const T* from = reads_b_ ? static_cast<const T*>(b) : packed_carver.Take<T>(0);
    const StoreTarget target{p_.c.type, static_cast<uint8_t*>(c), p_.c.row_stride, p_.c.col_stride};
    for (int64_t k0 = 0; k0 < units_; k0 += kb_) {
      left.kc = std::min(kb_, units_ - k0);
      if (stores_rows_) return StoreRows(a, left, from, *finite, target, tile);
      if (reads_columns_) return MultiplyColumns(a, left, from, *finite, target, first, tile, adds);
      ReadA(a, k0, 0, panels_, left);
      for (int64_t n = 0; n < panels_; ++n) left.needed[n] = Needed(left, n, from, *finite);
      for (int64_t j = 0; j < p_.n; j += nr) {
        const T* panel = reads_b_ ? from + k0 * p_.b.row_stride + j : from + k0 * cols_ + j * left.kc;
        const int64_t some = std::min(nr, p_.n - j), width = WidthOf(some);
        const int64_t stride = reads_b_ ? p_.b.row_stride : width;
        for (int64_t n = 0; n < panels_; ++n) {
          const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
          if (!IsWanted(first + i, height, j, some)) continue;
          if (whole_) {
            const RowTile at = {i, height, j, some, k0};
            MultiplyParts(at, TileOf(left, n, left.kc, panel, stride), {a, b, c}, target, sums, tile, repair, adds);
            continue;
          }
          if (direct_halves_ && some == width) {
            StepTile<T> tile = TileOf(left, n, left.kc, panel, stride);
            tile.to = static_cast<uint16_t*>(c) + i * p_.c.row_stride + j;
            tile.stride = p_.c.row_stride, tile.halves = true;
            micro_.steps[width == nr](tile);
            continue;
          }
          T *to = tile, *const sum = sums ? sums + i * cols_ + j : nullptr;
          int64_t distance = nr;
          if (sum) {
            to = sum;
            distance = cols_;
          } else if (direct_ && some == width) {
            to = static_cast<T*>(c) + i * p_.c.row_stride + j;
            distance = p_.c.row_stride;
          }
          const bool more = k0 > 0 || (adds && !sum);
          Multiply(left, n, panel, stride, some, to, distance, to != tile && more);
          if (to == tile) StoreTile<T>(target, i, j, height, some, tile, nr, more);
        }
      }
    }
    if (sums && !whole_) StoreTile<T>(target, 0, 0, rows_, p_.n, sums, cols_, adds);
  }

 private:
  static constexpr int64_t kSideUnits = 16;  // rows of a square
  struct RowTile {
    int64_t row, rows, col, cols, k0;
  };

  // A tile of numbers in parts by a block along k. `sums` are those of the blocks before, unless there is only one.
  void MultiplyParts(const RowTile& at, StepTile<T> tile, const GemmCall& call, const StoreTarget& target, T* sums,
                     T* buffer, void* repair, bool adds) const {
    const int64_t width = WidthOf(at.cols);
    tile.ends = at.k0 + kb_ >= units_;
    T* const kept = sums ? sums + at.row * cols_ + at.col : nullptr;
    if (at.k0 > 0) tile.before = kept, tile.before_stride = cols_;
    const bool direct = direct_ && at.cols == width && !adds;
    if (!tile.ends)
      tile.to = kept, tile.stride = cols_;
    else if (direct)
      tile.to = static_cast<T*>(call.c) + at.row * p_.c.row_stride + at.col, tile.stride = p_.c.row_stride;
    else
      tile.to = buffer, tile.stride = width;
    const bool numbers = micro_.steps[width == micro_.nr](tile);
    if constexpr (std::is_same_v<T, float>) {
      if (!numbers) Repair(at, call, static_cast<float*>(tile.to), tile.stride, repair);
    }
    if (tile.ends && !direct) StoreTile<T>(target, at.row, at.col, at.rows, at.cols, buffer, width, adds);
  }

  void Repair(const RowTile& at, const GemmCall& call, float* sums, int64_t stride, void* memory) const {
    const auto pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
      PackStrided<float>(*whole_, p_.a.type, static_cast<const uint8_t*>(call.a),
                         (at.row + first) * p_.a.row_stride + k0 * p_.a.col_stride, p_.a.row_stride, p_.a.col_stride,
                         count, kc, width, dst, true);
    };
    const auto pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
      PackStrided<float>(*whole_, p_.b.type, static_cast<const uint8_t*>(call.b),
                         (at.col + first) * p_.b.col_stride + k0 * p_.b.row_stride, p_.b.col_stride, p_.b.row_stride,
                         count, kc, width, dst);
    };
    RepairSums(*whole_, at.rows, at.cols, p_.k, pack_a, pack_b, sums, stride, memory);
  }

  static constexpr int64_t kStrip = 8;  // units of B along k that the cache holds at distances of pages

  // A block of A along k, in panels, or in rows.
  struct LeftRows {
    T* At(int64_t row) const { return panels + (row - first) * kc; }

    int64_t kc = 0, first = 0;  // units of a row; the first row in `panels`
    T* panels = nullptr;
    const T** lines = nullptr;
    Extent* needed = nullptr;  // of each panel
  };

  // Panels of all columns, whose rows are converted whole.
  void StoreRows(const void* a, LeftRows& left, const T* b, Finite& finite, const StoreTarget& target, T* tile) const {
    for (int64_t n = 0; n < panels_; ++n) {
      ReadA(a, 0, n, n + 1, left);
      left.needed[n] = Needed(left, n, b, finite);
      const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
      for (int64_t j = 0; j < p_.n; j += micro_.nr) {
        const int64_t some = std::min<int64_t>(micro_.nr, p_.n - j);
        Multiply(left, n, reads_b_ ? b + j : b + j * left.kc, reads_b_ ? p_.b.row_stride : WidthOf(some), some,
                 tile + j, cols_, false);
      }
      StoreTile<T>(target, i, 0, height, p_.n, tile, cols_, false);
    }
  }

  // Columns of A that are its rows in memory: a panel of them is turned while it is near, and multiplied by all of B.
  void MultiplyColumns(const void* a, LeftRows& left, const T* b, Finite& finite, const StoreTarget& target,
                       int64_t first, T* tile, bool adds) const {
    for (int64_t n = 0; n < panels_; ++n) {
      ReadA(a, 0, n, n + 1, left);
      left.needed[n] = Needed(left, n, b, finite);
      const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
      for (int64_t j = 0; j < p_.n; j += micro_.nr) {
        const int64_t some = std::min<int64_t>(micro_.nr, p_.n - j), width = WidthOf(some);
        if (!IsWanted(first + i, height, j, some)) continue;
        const bool direct = direct_ && some == width;
        T* to = direct ? static_cast<T*>(static_cast<void*>(target.data)) + i * p_.c.row_stride + j : tile;
        Multiply(left, n, reads_b_ ? b + j : b + j * left.kc, reads_b_ ? p_.b.row_stride : width, some, to,
                 direct ? p_.c.row_stride : micro_.nr, direct && adds);
        if (!direct) StoreTile<T>(target, i, j, height, some, tile, micro_.nr, adds);
      }
    }
  }

  // Of A, at a time.
  int64_t HeldRows() const { return stores_rows_ || reads_columns_ ? std::min<int64_t>(micro_.mr, rows_) : rows_; }
  // Partial sums that C cannot hold.
  bool KeepsSums() const { return (whole_ || !HoldsSums<T>(p_.c.type)) && units_ > kb_; }
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
  int64_t FirstRow(int64_t panel) const { return first_rows_[static_cast<size_t>(panel)]; }
  // Of the inner kernels that compute so many columns.
  int64_t WidthOf(int64_t columns) const { return TileKernelsOf<T>(micro_, 1, columns).width; }
  int64_t Element(int64_t unit) const { return whole_ ? unit / micro_.step * micro_.Quantum() : unit * micro_.group; }
  // How many elements `count` units hold from `unit` on: the last one may be short.
  int64_t Elements(int64_t unit, int64_t count) const { return std::min(Element(count), p_.k - Element(unit)); }

  // The panels [begin, end).
  void ReadA(const void* a, int64_t k0, int64_t begin, int64_t end, LeftRows& left) const {
    const int64_t bytes = Bytes(p_.a.type), line_bytes = p_.a.row_stride * bytes, last = FirstRow(end);
    const uint8_t* const from = static_cast<const uint8_t*>(a) + Element(k0) * p_.a.col_stride * bytes;
    left.first = FirstRow(begin);
    const auto convert = [&](int64_t row, int64_t count) {
      PackStrided<T>(micro_, p_.a.type, from + row * line_bytes, 0, 1, 0, count, 1, count, left.At(row));
    };
    const bool dense = left.kc == p_.a.row_stride;
    if (converts_a_ && dense) convert(left.first, (last - left.first) * left.kc);
    for (int64_t i = left.first; i < last && left.lines; ++i) {
      if (converts_a_ && !dense) convert(i, left.kc);
      left.lines[i] = converts_a_ ? left.At(i) : reinterpret_cast<const T*>(from + i * line_bytes);
    }
    for (int64_t n = begin; n < end && !left.lines; ++n) {
      const int64_t i = FirstRow(n), height = FirstRow(n + 1) - i;
      PackStrided<T>(micro_, p_.a.type, from + i * line_bytes, 0, p_.a.row_stride, p_.a.col_stride, height,
                     Elements(k0, left.kc), height, left.At(i), true);
    }
  }

  // The units that are to be multiplied with rows of a panel.
  Extent Needed(const LeftRows& left, int64_t panel, const T* b, Finite& finite) const {
    const Extent all{0, static_cast<int32_t>(left.kc)};
    if (!FindsZeros(micro_)) return all;
    const int64_t i = FirstRow(panel), height = FirstRow(panel + 1) - i;
    const Extent extent =
        left.lines ? ExtentOfRows(left.lines + i, height, left.kc) : ExtentOfPanel(left.At(i), left.kc, height);
    return IsShort(extent, left.kc) && IsFiniteB(b, finite) ? extent : all;
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

  void Multiply(const LeftRows& left, int64_t panel, const T* b, int64_t b_stride, int64_t columns, T* c,
                int64_t c_stride, bool accumulate) const {
    Extent needed = left.needed[panel];
    if (needed.size() == 0 && accumulate) return;
    if (needed.size() == 0) needed = {0, 1};  // zeros, which have to be written
    const int64_t i = FirstRow(panel), height = FirstRow(panel + 1) - i;
    if (micro_.step > 1) {
      StepTile<T> tile = TileOf(left, panel, needed.size(), b, b_stride);
      if (accumulate) tile.before = c, tile.before_stride = c_stride;
      tile.to = c, tile.stride = c_stride;
      micro_.steps[columns > micro_.nr / 2](tile);
      return;
    }
    const TileKernels<T> kernels = TileKernelsOf<T>(micro_, height, columns);
    b += needed.first * b_stride;
    if (!left.lines) {
      kernels.kernel(needed.size(), left.At(i) + needed.first * height, b, b_stride, c, c_stride, accumulate);
      return;
    }
    const T* const* lines = left.lines + i;
    const T* later[kMostRows];
    for (int64_t r = 0; r < height && needed.first > 0; ++r) later[r] = lines[r] + needed.first;
    kernels.indirect(1, needed.size(), needed.first > 0 ? later : lines, b, b_stride, c, c_stride, accumulate);
  }

  // Where kernels take steps: a panel of rows by one of columns, to nowhere yet.
  StepTile<T> TileOf(const LeftRows& left, int64_t panel, int64_t units, const T* b, int64_t b_stride) const {
    const int64_t i = FirstRow(panel);
    return {.rows = FirstRow(panel + 1) - i, .units = units, .a = left.At(i), .b = b, .b_stride = b_stride};
  }

  static constexpr int64_t kMostRows = 16;

  const GemmProblem p_;
  const int64_t rows_;
  const MicroTable<T>& micro_;
  const MicroTable<T>* const whole_;  // null: nothing is in parts
  const WantedColumns wanted_;
  const int64_t units_;  // along k
  int64_t kb_ = 0, cols_ = 0, panels_ = 0;
  std::vector<int64_t> first_rows_;              // of panels
  bool reads_a_ = false, reads_b_ = false;       // where they lie
  bool converts_a_ = false;                      // row by row
  bool direct_ = false, direct_halves_ = false;  // inner kernels write to C
  bool stores_rows_ = false;                     // of a panel, once its sums are there
  bool reads_columns_ = false;                   // of A, a panel at a time
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

  void Run(const void* a, const void* b, void* packed, void* c, void* scratch, int64_t first, To to) const override {
    Head& head = *static_cast<Head*>(packed);
    if (NoSubnormals(scan_a_.Least(least_, static_cast<const uint16_t*>(a)), head.least)) {
      pairs_.Run(a, b, At(packed, kHead), c, scratch, first, to);
      return;
    }
    void* const singles = At(packed, singles_at_);
    if (!head.has_singles) singles_.Pack(b, singles);
    head.has_singles = true;
    singles_.Run(a, b, singles, c, scratch, first, to);
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
      if (isa.thirds.mr > 0 && p.a.type == ElementType::F32 && p.b.type == ElementType::F32 &&
          std::min({rows, p.n, p.k}) >= kLeastOfThirds)
        return std::shared_ptr<const RowGemm>(
            std::make_shared<RealRowGemm<float>>(p, rows, isa.thirds, wanted, &isa.f32));
      return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<float>>(p, rows, isa.f32, wanted));
    case ElementType::F64:
      return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<double>>(p, rows, isa.f64, wanted));
    case ElementType::S32:
      if (const MicroTable<int32_t>* micro = MicroOfBytes(isa, PackSourceOf(p.a.type), PackSourceOf(p.b.type));
          micro && micro->step > 1)
        return std::shared_ptr<const RowGemm>(std::make_shared<RealRowGemm<int32_t>>(p, rows, *micro, wanted));
      [[fallthrough]];
    default: return Unimplemented("rows of a dot of ", Name(p.a.type), " and ", Name(p.b.type), " to ", Name(p.c.type));
  }
}

}  // namespace strop::cpu
