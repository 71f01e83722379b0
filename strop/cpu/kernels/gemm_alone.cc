// Products whose tasks read, and pack, for themselves what they multiply.
#include <algorithm>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_fetching.h"

namespace strop::cpu {
namespace {

// How B is read, and with it the rest.
//   Blocked: A and B are packed in blocks.
//   Direct: B is read where it lies, a few rows at a time: there are few rows of A, or few terms of a sum, so that
//     packing it would be much of the work, or B is small enough for the cache and dense (then rows of A are read where
//     they lie, too). Elements of another type are converted in strips on the way.
//   Strips: as Direct, with B read along its rows, a few of them at a time: there are so few rows of A that memory is
//     all there is to wait for, or tiles would read B no better (MostStripRows).
//   Dots: few rows of A, and B is contiguous along k.
enum class Strategy : uint8_t { Blocked, Direct, Strips, Dots };

template <class T>
class RealGemm final : public Gemm {
 public:
  RealGemm(const GemmProblem& p, const GemmIsa& isa)
      : p_(p),
        micro_(MicroOf<T>(isa, p.a.type, p.b.type)),
        typed_(p.b.type == ElementTypeOf<T>() && micro_.group == 1),
        strategy_(StrategyOn(isa)) {
    // Rows that meet in the same lines of the cache would be gone again before they are written.
    fetches_c_ = p.batch * p.m * p.n * Bytes(p.c.type) > kCachedBytes && !MeetInSets(p.c.row_stride * Bytes(p.c.type));
    switch (strategy_) {
      case Strategy::Blocked: PlanBlocked(); break;
      case Strategy::Direct: PlanDirect(); break;
      case Strategy::Strips: PlanStrips(); break;
      case Strategy::Dots: PlanDots(); break;
    }
    down_ = CeilDiv(p.m, block_.mb);
    unit_ = strategy_ == Strategy::Dots ? kDotUnit : micro_.nr;
    across_ = EvenTasks(CeilDiv(p.n, block_.nb), p.batch * down_, CeilDiv(p.n, unit_));
    num_tasks_ = p.batch * down_ * across_;
    constexpr const char* kHow[] = {"packed", "B where it lies", "B where it lies, row by row", "dot products"};
    tiles_ = StrCat(kHow[static_cast<int>(strategy_)], ", blocks of ", block_.mb, "x", block_.nb);
    if (block_.kb > 0 && block_.kb < p.k) StrAppend(tiles_, ", k by ", block_.kb);
    if (strategy_ == Strategy::Blocked || strategy_ == Strategy::Direct)
      StrAppend(tiles_, ", ", micro_.mr, "x", micro_.nr, " in registers");
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (int64_t task = begin; task < end; ++task) {
      // Small products take not much longer than divisions.
      const bool whole = down_ * across_ == 1;
      const int64_t batch = whole ? task : task / (down_ * across_);
      const int64_t down = whole ? 0 : task / across_ % down_, across = whole ? 0 : task % across_;
      const uint8_t* pa = static_cast<const uint8_t*>(call.a) + p_.Offset(p_.a, batch) * Bytes(p_.a.type);
      const uint8_t* pb = static_cast<const uint8_t*>(call.b) + p_.Offset(p_.b, batch) * Bytes(p_.b.type);
      StoreTarget target{p_.c.type, static_cast<uint8_t*>(call.c) + p_.Offset(p_.c, batch) * Bytes(p_.c.type),
                         p_.c.row_stride, p_.c.col_stride};
      const int64_t units = CeilDiv(p_.n, unit_), n0 = across * units / across_ * unit_;
      const int64_t cols = std::min((across + 1) * units / across_ * unit_, p_.n) - n0;
      const int64_t m0 = down * block_.mb, rows = std::min(block_.mb, p_.m - m0);
      switch (strategy_) {
        case Strategy::Blocked: Blocked(pa, pb, target, m0, rows, n0, cols, scratch); break;
        case Strategy::Direct: Direct(pa, pb, target, m0, rows, n0, cols, scratch); break;
        case Strategy::Strips: Strips(pa, pb, target, n0, cols, scratch); break;
        case Strategy::Dots: Dots(pa, pb, target, n0, cols, scratch); break;
      }
    }
  }

  // Are both operands packed?
  bool blocked() const { return strategy_ == Strategy::Blocked; }
  // Is B read where it lies, tile by tile, because there are few rows or sums of few terms?
  bool few_rows_or_terms() const {
    return strategy_ == Strategy::Direct && (HasFewRows() ? !streams_b_ : HasShortSums());
  }

 private:
  Strategy StrategyOn(const GemmIsa& isa) const {
    const bool has_rows = p_.b.col_stride == 1 && p_.k > 0;
    const bool dots = AreDots(p_, p_.m, isa) && p_.b.row_stride == 1 && p_.k > 0 && (p_.b.col_stride != 1 || p_.n == 1);
    if (dots && DotOf()) return Strategy::Dots;
    if (has_rows && StripOf()) return Strategy::Strips;
    if (has_rows && (typed_ ? HasFewRows() : p_.m <= micro_.mr)) return Strategy::Direct;
    if (has_rows && (HasShortSums() || HasSmallB())) return Strategy::Direct;
    return Strategy::Blocked;
  }

  bool HasFewRows() const { return p_.m <= kFewPanels * micro_.mr; }
  bool HasSmallB() const { return typed_ && p_.k * p_.n <= kSmall && p_.b.row_stride < 2 * p_.n; }
  int64_t BytesOfB() const { return p_.k * p_.n * Bytes(p_.b.type); }
  int64_t BytesOfColumn() const { return std::max<int64_t>(1, p_.k * Bytes(p_.b.type)); }  // of B

  void PlanBlocked() {
    block_ = ChooseBlocks(p_.m, p_.n, p_.k, micro_.mr, micro_.nr, sizeof(T), p_.batch);
    if (p_.b.col_stride == 1) block_.pack_rows = 8;  // as memory lies
    scratch_bytes_ = BlockScratchBytes(block_, micro_.mr, micro_.nr, sizeof(T));
  }

  void PlanDirect() {
    if (HasFewRows())
      PlanFewRows();
    else if (HasShortSums())
      PlanShortSums();
    else
      PlanSmallB();
    const int64_t rows = std::min(block_.mb, p_.m);
    const int64_t elements = rows * block_.kb + block_.pack_rows * micro_.nr + rows * block_.nb;
    scratch_bytes_ = elements * static_cast<int64_t>(sizeof(T)) + 3 * kCarverSlack;
  }

  // Tasks of half a megabyte of B, or of as many products.
  void PlanFewRows() {
    const int64_t mr = micro_.mr, bytes = sizeof(T);
    const int64_t products = CeilDiv(kDirectTask, p_.m * p_.k), columns = (int64_t{1} << 19) / BytesOfColumn();
    int64_t across = std::max({CeilDiv(p_.n, 16), std::min(columns, products), kRowBytes / Bytes(p_.b.type)});
    // (A fast last cache: 32 rows by 768x2048 in 522 us, streamed 612; by 4096x4096 in 5.9 ms and 6.9.)
    const bool cached = HasFastLastCache() || BytesOfB() <= kCachedBytes / 2;
    streams_b_ = typed_ && (p_.m <= mr ? BytesOfB() > kLeastStreamedBytes : !cached);
    if (streams_b_)  // whose sums stay in the first-level cache, for two threads if that is worth while
      across = std::min(std::clamp(kStripBytes / (p_.m * bytes), kRowBytes / bytes, kPageBytes / bytes),
                        std::max(CeilDiv(p_.n, 2), products));
    // Of a B that no cache has kept, rows are read on and on, some at a time; otherwise they are packed first.
    const bool far =
        streams_b_ && p_.m > mr && p_.n >= kLeastFarColumns && BytesOfB() > kFarBytes && !HasNarrowVectors(micro_);
    if (far) across = CeilDiv(p_.n, RoundUp(CeilDiv(p_.n, kFarColumns), kFarTasks));
    block_.mb = RoundUp(p_.m, mr);
    block_.nb = std::min<int64_t>(RoundUp(across, (far ? 1 : 4) * micro_.nr), RoundUp(p_.n, micro_.nr));
    block_.kb = std::min<int64_t>(512, p_.k);
    // Eight rows at a distance of pages are what the cache holds. The more rows of A, the more it costs to add to C
    // instead of to registers.
    block_.pack_rows = far || (streams_b_ && p_.m <= mr) ? kStreamedRowsOfB : typed_ || cached ? 64 : 8;
    fetches_b_ = !cached;
    if (typed_ && p_.m > mr && !far) packing_ = FetchingKernelsOf(micro_).packing;
  }

  void PlanShortSums() {
    const int64_t mr = micro_.mr;
    packs_strips_ = MeetInSets(p_.b.row_stride * static_cast<int64_t>(sizeof(T)));
    block_.nb = RoundUp(CeilDiv(p_.n, CeilDiv(p_.n, kBriefColumns)), micro_.nr);
    const int64_t down = CeilDiv(kBriefTasks, CeilDiv(p_.n, block_.nb));
    block_.mb = std::min(RoundUp(std::max(CeilDiv(p_.m, down), kBriefRows), mr), RoundUp(p_.m, mr));
    block_.kb = block_.pack_rows = p_.k;
  }

  // Tasks of half a million products.
  void PlanSmallB() {
    a_in_place_ = micro_.indirect[0] && p_.a.type == ElementTypeOf<T>() && p_.a.col_stride == 1 &&
                  !MeetInSets(p_.a.row_stride * static_cast<int64_t>(sizeof(T)));
    const int64_t least = (int64_t{1} << 19) / (p_.n * p_.k);
    block_.mb = std::clamp(CeilDiv(p_.m, 16), least, std::max(least, kDirectPanels / p_.k));
    // Of an even number of rows: panels may be short, but all tasks the same.
    block_.mb = CeilDiv(p_.m, CeilDiv(p_.m, block_.mb));
    block_.nb = RoundUp(p_.n, micro_.nr);
    block_.kb = block_.pack_rows = p_.k;
  }

  void PlanStrips() {
    block_.mb = p_.m;
    block_.kb = std::min<int64_t>(p_.k, p_.m <= kMemoryRows ? 512 : 128);
    const int64_t columns = std::max((int64_t{1} << 19) / BytesOfColumn(), CeilDiv(kDirectTask, p_.m * p_.k));
    const int64_t sums_bytes = p_.m > kFewStripRows ? kStripBytes / 2 : kStripBytes;
    const int64_t cached = std::max<int64_t>(sums_bytes / (p_.m * static_cast<int64_t>(sizeof(T))), micro_.nr);
    block_.nb = std::min({RoundUp(std::max({CeilDiv(p_.n, 16), columns, kPageBytes / Bytes(p_.b.type)}), micro_.nr),
                          cached, RoundUp(p_.n, micro_.lanes)});
    scratch_bytes_ = p_.m * (block_.kb + 2 * (block_.nb + kLine)) * static_cast<int64_t>(sizeof(T)) + 3 * kCarverSlack;
  }

  void PlanDots() {
    block_.mb = p_.m;
    block_.nb = std::min(RoundUp(std::max<int64_t>(1, (int64_t{1} << 19) / BytesOfColumn()), 4), p_.n);
    fetches_b_ = BytesOfColumn() <= kFetchedColumnBytes && p_.b.col_stride >= 2 * p_.k;
    // Four at a time are none either; those that the last cache holds come sooner without being asked for.
    fetches_b_ |= BytesOfColumn() <= kShortColumnBytes && p_.n * BytesOfColumn() >= kFromAfar;
    scratch_bytes_ = p_.m * ((p_.k + kDotColumns) * static_cast<int64_t>(sizeof(T)) + kCarverSlack) + 2 * kCarverSlack;
    if (micro_.group > 1) scratch_bytes_ += p_.m * p_.k * Bytes(p_.a.type) + kCarverSlack;  // see Turned
  }

  // Each element of B is read for a tile's few steps only: packing it would cost more than its rows being apart.
  bool HasShortSums() const {
    const int64_t bytes = sizeof(T);
    return typed_ && p_.k <= kFewTerms && p_.n >= kBriefColumns && p_.m * p_.k * bytes <= kBriefBytes &&
           p_.m * p_.n * p_.k >= kLeastBrief;
  }
  static constexpr int64_t kDotUnit = 4;
  static constexpr int64_t kFewPanels = 3;   // of rows of A
  static constexpr int64_t kFewTerms = 128;  // of a sum
  // Of a task of short sums: columns, rows at least, and how many tasks there should be.
  static constexpr int64_t kBriefColumns = 256, kBriefRows = 96, kBriefTasks = 16;
  static constexpr int64_t kBriefBytes = 1 << 19;  // of A, which each column of tasks packs
  static constexpr int64_t kLeastBrief = 1 << 22;  // products
  static constexpr int64_t kMostRows = 16;         // of a panel
  static constexpr int64_t kRowBytes = 1024;       // of B's rows, at least, that a task reads
  // Of a strip's rows where memory is waited for: shorter ones miss the translation cache each.
  static constexpr int64_t kPageBytes = 4096;
  static constexpr int64_t kStripBytes = 1 << 15;  // of C, that stay in the first-level cache
  static constexpr int64_t kLine = 64 / sizeof(T);
  static constexpr int64_t kFarBytes = int64_t{4} << 20;
  static constexpr int64_t kFarColumns = 1024, kLeastFarColumns = 2048, kFarTasks = 4;
  static constexpr int64_t kStreamedRowsOfB = 16;  // at a time, by more rows of A
  static constexpr int64_t kDirectTask = 1 << 19;  // products of a task of few rows: several times what a thread costs
  static constexpr int64_t kSmall = 1 << 14;       // elements of a small B
  static constexpr int64_t kDirectPanels = 1 << 15;  // of the rows of A that go with it

  static constexpr int64_t kCachedBytes = 1 << 21;  // of C, that may still lie in the second-level cache

  static constexpr int64_t kDotColumns = 64;  // whose sums are stored at a time
  // Short columns that lie apart are no stream that a processor knows: they are asked for so many before their turn.
  static constexpr int64_t kFetchedColumnBytes = 1024, kColumnsAhead = 12;
  static constexpr int64_t kShortColumnBytes = 2048, kFromAfar = int64_t{16} << 20;

  DotKernel<T> DotOf() const {
    const PackSource source = PackSourceOf(p_.b.type);
    return source == PackSource::None ? nullptr : micro_.dot[static_cast<int>(source)];
  }

  void PackA(const uint8_t* a, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) const {
    PackStrided<T>(micro_, p_.a.type, a, first * p_.a.row_stride + k0 * p_.a.col_stride, p_.a.row_stride,
                   p_.a.col_stride, count, kc, width, dst);
  }
  void PackB(const uint8_t* b, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) const {
    PackStrided<T>(micro_, p_.b.type, b, first * p_.b.col_stride + k0 * p_.b.row_stride, p_.b.col_stride,
                   p_.b.row_stride, count, kc, width, dst);
  }

  void Blocked(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t m0, int64_t rows, int64_t n0,
               int64_t cols, void* scratch) const {
    PackFn<T> pack_a = [this, a](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackA(a, first, count, k0, kc, width, dst);
    };
    PackFn<T> pack_b = [this, b](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackB(b, first, count, k0, kc, width, dst);
    };
    RunBlock<T>(micro_, block_, m0, rows, n0, cols, p_.k, pack_a, pack_b, c, scratch);
  }

  void Direct(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t m0, int64_t rows, int64_t n0,
              int64_t cols, void* scratch) const {
    const int64_t nr = micro_.nr, group = micro_.group;
    const EvenPanels panels(rows, micro_.mr);
    Carver carver(scratch);
    T* a_panels = carver.Take<T>(rows * block_.kb);
    T* strip = carver.Take<T>(block_.pack_rows * nr);
    T* sums = carver.Take<T>(rows * RoundUp(cols, nr));
    const int64_t direct = DirectStride<T>(c, m0, rows);
    // Where rows of B are read a few at a time, the sums of a block along k are added to what was before.
    const bool adds = streams_b_ && HoldsSums<T>(c.type), in_c = direct >= 0 && !adds;
    // Of a last tile that is wider than its columns the sums are kept, too.
    const int64_t last = (cols - 1) / nr * nr;
    const bool whole = cols - last == TileKernelsOf<T>(micro_, 1, cols - last).width;
    const int64_t sums_from = !in_c ? 0 : whole ? cols : last, sums_stride = RoundUp(cols - sums_from, nr);
    for (int64_t k0 = 0; k0 < p_.k; k0 += block_.kb) {
      const int64_t kc = std::min(block_.kb, p_.k - k0), a_units = CeilDiv(kc, group);
      for (int64_t n = 0; n < panels.count && !a_in_place_; ++n) {
        const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
        PackA(a, m0 + i, height, k0, kc, height, a_panels + i * a_units);
      }
      for (int64_t p = 0; p < kc; p += block_.pack_rows) {
        const int64_t piece = std::min(block_.pack_rows, kc - p), units = CeilDiv(piece, group);
        for (int64_t j = 0; j < cols; j += nr) {
          const int64_t width = TileKernelsOf<T>(micro_, 1, std::min(nr, cols - j)).width;
          const T* panel = strip;
          int64_t panel_stride = width;
          const bool in_place = typed_ && cols - j >= width && !packs_strips_;
          const bool packs = packing_ && in_place && width == nr && panels.count > 1;
          if (in_place) {
            panel = reinterpret_cast<const T*>(b) + (k0 + p) * p_.b.row_stride + n0 + j;
            panel_stride = p_.b.row_stride;
            // The next strip comes from memory meanwhile: the rows are too far apart for the processor to see it
            // coming.
            if (fetches_b_ && !packs && k0 + p + piece < p_.k)
              FetchRows<false>(panel + piece * panel_stride, panel_stride, std::min(piece, p_.k - k0 - p - piece),
                               width);
          } else {
            PackB(b, n0 + j, std::min(width, cols - j), k0 + p, piece, width, strip);
          }
          const bool in_sums = j >= sums_from;
          T* const to = in_sums ? sums + j - sums_from : AddressIn<T>(c, m0, n0 + j);
          const int64_t stride = in_sums ? sums_stride : direct;
          for (int64_t n = 0; n < panels.count; ++n) {
            const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
            const TileKernels<T> kernels = TileKernelsOf<T>(micro_, height, width);
            if (a_in_place_) {
              const T* lines[kMostRows];
              for (int64_t r = 0; r < height; ++r)
                lines[r] = reinterpret_cast<const T*>(a) + (m0 + i + r) * p_.a.row_stride + k0 + p;
              kernels.indirect(1, piece, lines, panel, panel_stride, to + i * stride, stride, (adds ? p : k0 + p) > 0);
              continue;
            }
            if (fetches_c_ && !in_sums && k0 + p == 0) FetchRows<true>(to + i * stride, stride, height, width);
            const T* const a_panel = a_panels + i * a_units + p / group * height;
            const bool accumulate = (adds ? p : k0 + p) > 0;
            if (packs && n == 0) {
              packing_[height - 1](units, a_panel, panel, panel_stride, strip, to + i * stride, stride, accumulate);
              panel = strip, panel_stride = width;
              continue;
            }
            kernels.kernel(units, a_panel, panel, panel_stride, to + i * stride, stride, accumulate);
          }
        }
      }
      if (adds) StoreTile<T>(c, m0, n0, rows, cols, sums, sums_stride, k0 > 0);
    }
    if (!adds && sums_from < cols)
      StoreTile<T>(c, m0, n0 + sums_from, rows, cols - sums_from, sums, sums_stride, false);
  }

  // Where nothing is converted, tiles wait for no more than strips do, unless the rows of B meet in the same lines.
  int64_t MostStripRows() const {
    if (!HasNarrowVectors(micro_)) return kFewStripRows;
    if (!typed_) return kMostStripRows;
    return MeetInSets(p_.b.row_stride * static_cast<int64_t>(sizeof(T))) ? kMoreStripRows : kFewStripRows;
  }
  StripKernel<T> StripOf() const {
    const PackSource source = PackSourceOf(p_.b.type);
    if (source == PackSource::None || p_.m > MostStripRows() || micro_.group != 1) return nullptr;
    return micro_.strip[static_cast<int>(source)];
  }

  void Strips(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t n0, int64_t cols, void* scratch) const {
    Carver carver(scratch);
    T* a_panel = carver.Take<T>(p_.m * block_.kb);
    const int64_t size = p_.m * (block_.nb + kLine);
    // Long sums are in levels: those of a block along k are added to what was before.
    T *const sums = carver.Take<T>(size), *const block_sums = p_.k > block_.kb ? carver.Take<T>(size) : nullptr;
    // Many rows of C may meet in the same few lines of the cache; those of the sums do not.
    const int64_t direct = p_.m <= kFewStripRows && !block_sums ? DirectStride<T>(c, 0, p_.m) : -1;
    T* const first = direct >= 0 ? AddressIn<T>(c, 0, n0) : sums;
    const int64_t stride = direct >= 0 ? direct : block_.nb + kLine;
    for (int64_t k0 = 0; k0 < p_.k; k0 += block_.kb) {
      const int64_t kc = std::min(block_.kb, p_.k - k0);
      PackA(a, 0, p_.m, k0, kc, p_.m, a_panel);
      StripOf()(static_cast<int>(p_.m), kc, a_panel, b + (k0 * p_.b.row_stride + n0) * Bytes(p_.b.type),
                p_.b.row_stride, cols, k0 == 0 ? first : block_sums, stride);
      for (int64_t i = 0; i < p_.m && k0 > 0; ++i) AddTerms(sums + i * stride, block_sums + i * stride, cols);
    }
    if (direct < 0) StoreTile<T>(c, 0, n0, p_.m, cols, sums, stride, false);
  }

  // Rows of A, contiguous along k: where they lie, or packed.
  void RowsForDots(const uint8_t* a, Carver& carver, const T** x) const {
    const bool typed = p_.a.type == ElementTypeOf<T>() && micro_.group == 1;
    if (typed && p_.a.col_stride == 1) {
      for (int64_t i = 0; i < p_.m; ++i) x[i] = reinterpret_cast<const T*>(a) + i * p_.a.row_stride;
      return;
    }
    // Where they lie across, the packer is told the other way round: it turns squares of elements at a time. Groups
    // along k are made of turned rows.
    T* const packed = carver.Take<T>(p_.m * p_.k);
    const bool across = p_.a.row_stride == 1 && p_.a.col_stride != 1, turns = across && micro_.group == 1;
    if (turns) PackStrided<T>(micro_, p_.a.type, a, 0, p_.a.col_stride, 1, p_.k, p_.m, p_.k, packed);
    const uint8_t* const turned = across && !turns ? Turned(a, carver) : nullptr;
    const int64_t units = CeilDiv(p_.k, micro_.group);
    for (int64_t i = 0; i < p_.m; ++i) {
      x[i] = packed + i * units;
      if (turned)
        PackStrided<T>(micro_, p_.a.type, turned, i * p_.k, p_.k, 1, 1, p_.k, 1, packed + i * units);
      else if (!turns)
        PackA(a, i, 1, 0, p_.k, 1, packed + i * units);
    }
  }
  // The rows of A one behind the other, as they are.
  const uint8_t* Turned(const uint8_t* a, Carver& carver) const {
    const auto turn = [&]<class Element>(Element* to) {
      const Element* from = reinterpret_cast<const Element*>(a);
      for (int64_t i = 0; i < p_.m; ++i)
        for (int64_t k = 0; k < p_.k; ++k) to[i * p_.k + k] = from[i + k * p_.a.col_stride];
      return reinterpret_cast<const uint8_t*>(to);
    };
    if (Bytes(p_.a.type) == 1) return turn(carver.Take<uint8_t>(p_.m * p_.k));
    return turn(carver.Take<uint16_t>(p_.m * p_.k));
  }

  // Of `count` columns of B from `column` on.
  void DotsOf(const T* const* x, const uint8_t* b, int64_t column, int64_t count, T* to, int64_t stride) const {
    const auto at = [&](int64_t j) { return b + (column + j) * p_.b.col_stride * Bytes(p_.b.type); };
    if (HasShortDots(p_, micro_.lanes)) {
      const DotLanesKernel<T> dots = micro_.dot_lanes[static_cast<int>(PackSourceOf(p_.b.type))];
      for (int64_t j = 0; j < count; j += micro_.lanes)
        for (int64_t i = 0; i < p_.m; ++i)
          dots(p_.k, x[i], at(j), p_.b.col_stride, std::min<int64_t>(micro_.lanes, count - j), to + i * stride + j);
      return;
    }
    const DotKernel<T> dot = DotOf();
    for (int64_t j = 0; j < count; j += 4) {
      if (fetches_b_ && column + j + kColumnsAhead + 4 <= p_.n)
        FetchRows<false>(at(j + kColumnsAhead), p_.b.col_stride * Bytes(p_.b.type), 4, p_.k * Bytes(p_.b.type));
      dot(p_.k, x, static_cast<int>(p_.m), at(j), p_.b.col_stride, static_cast<int>(std::min<int64_t>(4, count - j)),
          to + j, stride);
    }
  }

  void Dots(const uint8_t* a, const uint8_t* b, const StoreTarget& c, int64_t n0, int64_t cols, void* scratch) const {
    const T* x[kMostDotRows];
    Carver carver(scratch);
    RowsForDots(a, carver, x);
    const int64_t direct = DirectStride<T>(c, 0, p_.m);
    T* const sums = direct >= 0 ? nullptr : carver.Take<T>(p_.m * kDotColumns);
    for (int64_t j0 = 0; j0 < cols; j0 += kDotColumns) {
      const int64_t some = std::min(kDotColumns, cols - j0);
      T* const to = direct >= 0 ? AddressIn<T>(c, 0, n0 + j0) : sums;
      const int64_t stride = direct >= 0 ? direct : kDotColumns;
      DotsOf(x, b, n0 + j0, some, to, stride);
      if (direct < 0) StoreTile<T>(c, 0, n0 + j0, p_.m, some, sums, kDotColumns, false);
    }
  }

  GemmProblem p_;
  const MicroTable<T>& micro_;
  bool typed_;  // B needs no conversion
  Strategy strategy_;
  bool a_in_place_ = false;                     // A is not packed
  bool fetches_b_ = false, fetches_c_ = false;  // ahead
  bool streams_b_ = false;                      // is read row by row
  bool packs_strips_ = false;                   // of B, for a task's tiles
  const PackingKernel<T>* packing_ = nullptr;   // of B by the first rows; null: the others read it where it lies
  BlockShape block_;
  int64_t down_ = 1, across_ = 1;
  int64_t unit_ = 1;  // of columns, that tasks do not cut
};

}  // namespace

template <class T>
AloneGemm MakeAloneGemm(const GemmProblem& problem, const GemmIsa& isa) {
  auto gemm = std::make_shared<RealGemm<T>>(problem, isa);
  return {gemm, gemm->blocked(), gemm->few_rows_or_terms()};
}
template AloneGemm MakeAloneGemm<float>(const GemmProblem&, const GemmIsa&);
template AloneGemm MakeAloneGemm<double>(const GemmProblem&, const GemmIsa&);
template AloneGemm MakeAloneGemm<int32_t>(const GemmProblem&, const GemmIsa&);
template AloneGemm MakeAloneGemm<int64_t>(const GemmProblem&, const GemmIsa&);

}  // namespace strop::cpu
