// Products of f32 and f64 of which packing would be much of the work: long sums with few rows and columns, products and
// batches of middling size, while the caches hold them, and tall matrices by narrow ones of any size. Tiles of C are
// summed in registers over blocks of k, each from operands where they lie:
//   rows of A that are contiguous along k, or its columns, if A lies across;
//   rows of B, but for the tile that its columns end in, or B packed tile by tile, if its columns lie along k.
#include <algorithm>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kBlock = 128;                   // along k, whose products are summed in registers
constexpr int64_t kFewRows = 36, kFewBlock = 64;  // of few rows, whose sums are read and written less often
constexpr int64_t kMostProducts = 1 << 24;        // from here on panels are worth packing (gemm_panels.h),
constexpr int64_t kMostOfSquare = 1 << 26;        // or from here on, of no more than twice as many columns as rows
constexpr int64_t kMostOfTurned = 3 << 24;        // (where columns of B are packed, from here on),
constexpr int64_t kMostOfBatch = 1 << 22;         // or from here on, where many are multiplied or vectors are narrow
constexpr int64_t kHeldBytes = 1 << 19;           // of B
constexpr int64_t kHeldOfSquare = 1 << 20;        // of B, of no more than twice as many columns as rows
constexpr int64_t kTaskBytes = 1 << 21;           // of the factors of a task's sums, where a product is cut
constexpr int64_t kTasks = 16;                    // for which products are cut
constexpr int64_t kRowsForPacking = 48;           // of a task that packs B
constexpr int64_t kRowsBytes = 1 << 18;           // of A, a block along k: they are read again for the next columns

enum class Reading : uint8_t { Packed, Rows, Columns };  // of A

template <class T>
class TilesGemm final : public Gemm {
 public:
  static bool Suits(const GemmProblem& p, const MicroTable<T>& micro) {
    const bool typed = p.a.type == ElementTypeOf<T>() && p.b.type == ElementTypeOf<T>();
    const int64_t products = p.m * p.n * p.k, held = p.k * p.n * static_cast<int64_t>(sizeof(T));
    const bool alone = p.batch == 1 && !HasNarrowVectors(micro);
    const bool small = products < (alone ? kMostProducts : kMostOfBatch) || IsTall(p, micro);
    const bool square = alone && products < (p.b.col_stride == 1 ? kMostOfSquare : kMostOfTurned) &&
                        p.a.col_stride == 1 && p.n <= 2 * p.m && held <= kHeldOfSquare;
    return typed && micro.indirect[0] && micro.runs[0][0] && micro.group == 1 &&
           ((small && held <= kHeldBytes) || square);
  }

  TilesGemm(const GemmProblem& p, const MicroTable<T>& micro) : p_(p), micro_(micro) {
    const int64_t bytes = sizeof(T), mr = micro.mr, nr = micro.nr;
    // Tiles of narrower vectors are done sooner, and so is a panel of B read: their sums grow for longer.
    const int64_t block = (p.m <= kFewRows ? kFewBlock : kBlock) * (HasNarrowVectors(micro) ? 2 : 1);
    kb_ = CeilDiv(p.k, CeilDiv(p.k, block));
    if (p.a.col_stride == 1 && (p.m == 1 || IsApart(p.a.row_stride)))
      reading_ = Reading::Rows;
    else if (p.a.row_stride == 1 && IsApart(p.a.col_stride))
      reading_ = Reading::Columns;
    reads_b_ = p.b.col_stride == 1 && IsApart(p.b.row_stride);
    Cut();
    const int64_t rows = std::min(mb_, p.m), cols = RoundUp(std::min(nb_, p.n), nr);
    const bool direct = HoldsSums<T>(p.c.type) && p.c.col_stride == 1;
    scratch_bytes_ = (nr * kb_ + mr * nr + (direct ? 0 : rows * cols)) * bytes + 3 * kCarverSlack;
    if (reading_ == Reading::Packed) scratch_bytes_ += rows * kb_ * bytes + kCarverSlack;
    num_tasks_ = p.batch * down_ * across_;
    constexpr const char* kHow[] = {"A packed", "rows of A where they lie", "columns of A where they lie"};
    tiles_ = StrCat(kHow[static_cast<int>(reading_)], reads_b_ ? ", rows of B where they lie" : ", B packed",
                    ", blocks of ", rows, "x", std::min(nb_, p.n), kb_ < p.k ? StrCat(", k by ", kb_) : "", ", ",
                    CeilDiv(rows, CeilDiv(rows, mr)), "x", nr, " in registers");
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) {
      const int64_t product = begin / (down_ * across_), m0 = begin / across_ % down_ * mb_, n0 = begin % across_ * nb_;
      Block(call, product, m0, std::min(mb_, p_.m - m0), n0, std::min(nb_, p_.n - n0), scratch);
    }
  }

 private:
  static bool IsApart(int64_t stride) { return !MeetInSets(stride * static_cast<int64_t>(sizeof(T))); }
  // Rows by so few columns that a panel of A would be read for two tiles at most.
  static bool IsTall(const GemmProblem& p, const MicroTable<T>& micro) {
    return p.n <= 2 * micro.nr && p.a.col_stride == 1 && p.b.col_stride == 1 && IsApart(p.a.row_stride) &&
           IsApart(p.b.row_stride);
  }

  // Rows are cut first: where nothing is packed, no task does what another one does.
  void Cut() {
    const int64_t products = p_.m * p_.n * p_.k, bytes = sizeof(T);
    const int64_t worth = std::clamp<int64_t>(products * bytes / kTaskBytes, 1, CeilDiv(kTasks, p_.batch));
    const int64_t cuts = worth > 1 ? RoundUp(worth, 2) : 1, least = reads_b_ ? CeilDiv(micro_.mr, 2) : kRowsForPacking;
    down_ = std::clamp<int64_t>(p_.m / least, 1, cuts);
    if (p_.n > micro_.nr) down_ = std::max(down_, CeilDiv(p_.m * kb_ * bytes, kRowsBytes));
    mb_ = CeilDiv(p_.m, down_);
    down_ = CeilDiv(p_.m, mb_);
    across_ = std::clamp<int64_t>(p_.n / (2 * micro_.nr), 1, CeilDiv(cuts, down_));
    nb_ = RoundUp(CeilDiv(p_.n, across_), micro_.nr);
    across_ = CeilDiv(p_.n, nb_);
  }

  void Block(const GemmCall& call, int64_t product, int64_t m0, int64_t rows, int64_t n0, int64_t cols,
             void* scratch) const {
    const int64_t nr = micro_.nr;
    const T* const a = static_cast<const T*>(call.a) + p_.Offset(p_.a, product) + m0 * p_.a.row_stride;
    const T* const b = static_cast<const T*>(call.b) + p_.Offset(p_.b, product) + n0 * p_.b.col_stride;
    const StoreTarget c{p_.c.type, static_cast<uint8_t*>(call.c) + p_.Offset(p_.c, product) * Bytes(p_.c.type),
                        p_.c.row_stride, p_.c.col_stride};
    Carver carver(scratch);
    T* const b_tile = carver.Take<T>(nr * kb_);
    T* const tile = carver.Take<T>(micro_.mr * nr);
    const int64_t direct = DirectStride<T>(c, m0, rows), stride = direct >= 0 ? direct : RoundUp(cols, nr);
    T* const sums = direct >= 0 ? AddressIn<T>(c, m0, n0) : carver.Take<T>(rows * stride);
    T* const a_panels = reading_ == Reading::Packed ? carver.Take<T>(rows * kb_) : nullptr;
    const EvenPanels panels(rows, micro_.mr);
    for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
      const int64_t kc = std::min(kb_, p_.k - k0);
      const T* const a_block = a + k0 * p_.a.col_stride;
      for (int64_t n = 0; n < panels.count && a_panels; ++n)
        Pack(p_.a.type, a_block + panels.First(n) * p_.a.row_stride, p_.a.row_stride, p_.a.col_stride,
             panels.First(n + 1) - panels.First(n), kc, panels.First(n + 1) - panels.First(n),
             a_panels + panels.First(n) * kc);
      for (int64_t j = 0; j < cols; j += nr) {
        const int64_t some = std::min(nr, cols - j);
        const int64_t width = reading_ == Reading::Columns ? some : TileKernelsOf<T>(micro_, 1, some).width;
        const T* from = b + k0 * p_.b.row_stride + j * p_.b.col_stride;
        int64_t b_stride = p_.b.row_stride;
        if (!reads_b_ || some < width) {
          b_stride = reading_ == Reading::Columns ? nr : width;
          Pack(p_.b.type, from, p_.b.col_stride, p_.b.row_stride, some, kc, b_stride, b_tile);
          from = b_tile;
        }
        // Where whole tiles would spoil what lies behind them.
        const bool apart = direct >= 0 && some < width;
        for (int64_t n = 0; n < panels.count; ++n) {
          const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
          T* const to = apart ? tile : sums + i * stride + j;
          Multiply(a_panels ? a_panels + i * kc : a_block + i * p_.a.row_stride, height, kc, from, b_stride, some, to,
                   apart ? nr : stride, k0 > 0 && !apart);
          if (apart) StoreTile<T>(c, m0 + i, n0 + j, height, some, tile, nr, k0 > 0);
        }
      }
    }
    if (direct < 0) StoreTile<T>(c, m0, n0, rows, cols, sums, stride, false);
  }

  void Pack(ElementType type, const T* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc,
            int64_t width, T* to) const {
    PackStrided<T>(micro_, type, reinterpret_cast<const uint8_t*>(from), 0, vector_stride, k_stride, count, kc, width,
                   to);
  }

  void Multiply(const T* a, int64_t height, int64_t kc, const T* b, int64_t b_stride, int64_t cols, T* c,
                int64_t c_stride, bool accumulate) const {
    const TileKernels<T> kernels = TileKernelsOf<T>(micro_, height, cols);
    switch (reading_) {
      case Reading::Packed: return kernels.kernel(kc, a, b, b_stride, c, c_stride, accumulate);
      case Reading::Rows: {
        const T* lines[kMostTileRows];
        for (int64_t r = 0; r < height; ++r) lines[r] = a + r * p_.a.row_stride;
        return kernels.indirect(1, kc, lines, b, b_stride, c, c_stride, accumulate);
      }
      case Reading::Columns: {
        const ProductRun run{0, 0, kc};
        return micro_.runs[height - 1][cols > micro_.lanes](&run, 1, a, p_.a.col_stride, b, b_stride, cols, c, c_stride,
                                                            accumulate);
      }
    }
  }

  static constexpr int64_t kMostTileRows = 16;

  const GemmProblem p_;
  const MicroTable<T>& micro_;
  Reading reading_ = Reading::Packed;
  bool reads_b_ = false;              // where they lie
  int64_t kb_ = 0, mb_ = 0, nb_ = 0;  // of a block
  int64_t down_ = 1, across_ = 1;
};

}  // namespace

template <class T>
std::shared_ptr<const Gemm> MakeTilesGemm(const GemmProblem& p, const GemmIsa& isa) {
  const MicroTable<T>& micro = MicroOf<T>(isa, p.a.type, p.b.type);
  if (!TilesGemm<T>::Suits(p, micro)) return nullptr;
  return std::make_shared<TilesGemm<T>>(p, micro);
}
template std::shared_ptr<const Gemm> MakeTilesGemm<float>(const GemmProblem&, const GemmIsa&);
template std::shared_ptr<const Gemm> MakeTilesGemm<double>(const GemmProblem&, const GemmIsa&);

}  // namespace strop::cpu
