// Tall matrices by narrow ones of any layout and element type: layers of few features, and their gradients. B is packed
// once a task, all of it, unless few rows read it, and stays in the cache; rows of A come a few at a time, are read
// where they lie if they can be, or converted once for all columns; what C cannot keep as sums waits for its conversion
// in the first-level cache.
//
// Panels that all tasks share (gemm_panels.h) would copy A for two tiles of columns, and wait for each other before and
// after: of 20000 x 20 by 20 x 20, that is twice the time of the products.
#include <algorithm>
#include <array>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kFewestRows = 256, kMostColumns = 64;
constexpr int64_t kFewestRowsOfBlocks = 32, kMostColumnsOfBlocks = 512;  // of what no panels are shared for
constexpr int64_t kBlock = 256;             // along k, whose products are summed in registers
constexpr int64_t kPiecePanels = 8;         // of rows, that are converted together
constexpr int64_t kHeldBytes = 1 << 18;     // of B
constexpr int64_t kTaskProducts = 1 << 20;  // several times what packing B takes
constexpr int64_t kTasks = 32;              // for which products are cut
constexpr int64_t kMostTiles = 64, kMostTileRows = 16;

// Of A: rows where they lie or converted as such, columns one after the other, or neither.
enum class Reading : uint8_t { Rows, Converted, Columns, Packed };

template <class T>
class ThinGemm final : public Gemm {
 public:
  static bool Suits(const GemmProblem& p, const MicroTable<T>& micro, bool instead_of_blocks) {
    const bool fits = instead_of_blocks ? p.m >= kFewestRowsOfBlocks && p.n <= kMostColumnsOfBlocks
                                        : p.m >= kFewestRows && p.n <= std::min(kMostColumns, p.m / 4);
    return fits && micro.indirect[0] && micro.group == 1 &&
           p.k * RoundUp(p.n, micro.nr) * static_cast<int64_t>(sizeof(T)) <= kHeldBytes && PackerOf(micro, p.a.type) &&
           PackerOf(micro, p.b.type);
  }

  ThinGemm(const GemmProblem& p, const MicroTable<T>& micro) : p_(p), micro_(micro) {
    const int64_t bytes = sizeof(T);
    kb_ = CeilDiv(p.k, CeilDiv(p.k, kBlock));
    for (int64_t j = 0; j < p.n; j += micro.nr) {
      const int64_t some = std::min<int64_t>(micro.nr, p.n - j);
      tiles_of_b_[num_tiles_++] = {j, some, TileKernelsOf<T>(micro, 1, some).width, cols_};
      cols_ += tiles_of_b_[num_tiles_ - 1].width;
    }
    const bool apart = !MeetInSets(p.a.row_stride * Bytes(p.a.type));
    if (p.a.col_stride == 1) reading_ = p.a.type == ElementTypeOf<T>() && apart ? Reading::Rows : Reading::Converted;
    if (p.a.col_stride != 1 && p.a.row_stride == 1 && micro.runs[0][0]) reading_ = Reading::Columns;
    piece_ = kPiecePanels * micro.mr;
    const int64_t cuts = std::clamp<int64_t>(p.m * p.n * p.k / kTaskProducts, 1, CeilDiv(kTasks, p.batch));
    mb_ = RoundUp(CeilDiv(p.m, cuts), micro.mr);
    down_ = CeilDiv(p.m, mb_);
    num_tasks_ = p.batch * down_;
    // Packing would be much of the work for few rows.
    b_in_place_ = p.b.type == ElementTypeOf<T>() && p.b.col_stride == 1 && cols_ == p.n &&
                  mb_ <= kPiecePanels * micro.mr && !MeetInSets(p.b.row_stride * bytes);
    scratch_bytes_ = ((b_in_place_ ? 0 : p.k * cols_) + piece_ * cols_) * bytes + 2 * kCarverSlack;
    if (reading_ != Reading::Rows) scratch_bytes_ += piece_ * kb_ * bytes + kCarverSlack;
    constexpr const char* kHow[] = {"rows of A where they lie", "rows of A converted", "columns of A", "A packed"};
    tiles_ = StrCat("thin, ", kHow[static_cast<int>(reading_)], ", ", b_in_place_ ? "B where it lies, " : "", mb_,
                    " rows a task, ", micro.mr, "x", tiles_of_b_[0].width, " in registers");
  }

  void Run(const GemmCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (int64_t packed = -1; begin < end; ++begin) {
      const int64_t product = begin / down_;
      if (product != packed && !b_in_place_) PackB(At(call.b, p_.b, p_.Offset(p_.b, product)), scratch);
      packed = product;
      RunTask(call, product, begin % down_ * mb_, scratch);
    }
  }

 private:
  struct Tile {
    int64_t column, columns, width, at;  // of C; as it is packed, and where in a row of sums
  };

  static const uint8_t* At(const void* data, const StridedMatrix& m, int64_t element) {
    return static_cast<const uint8_t*>(data) + element * Bytes(m.type);
  }

  // Blocks along k, and in each the tiles side by side.
  void PackB(const uint8_t* b, void* scratch) const {
    T* const to = Carver(scratch).Take<T>(p_.k * cols_);
    for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
      const int64_t kc = std::min(kb_, p_.k - k0);
      for (int64_t t = 0; t < num_tiles_; ++t) {
        const Tile& tile = tiles_of_b_[t];
        PackStrided<T>(micro_, p_.b.type, b, k0 * p_.b.row_stride + tile.column * p_.b.col_stride, p_.b.col_stride,
                       p_.b.row_stride, tile.columns, kc, tile.width, to + k0 * cols_ + tile.at * kc);
      }
    }
  }

  void RunTask(const GemmCall& call, int64_t product, int64_t m0, void* scratch) const {
    Carver carver(scratch);
    const T* const b = b_in_place_ ? reinterpret_cast<const T*>(At(call.b, p_.b, p_.Offset(p_.b, product)))
                                   : carver.Take<T>(p_.k * cols_);
    T* const sums = carver.Take<T>(piece_ * cols_);
    T* const a_rows = reading_ == Reading::Rows ? nullptr : carver.Take<T>(piece_ * kb_);
    const uint8_t* const a = At(call.a, p_.a, p_.Offset(p_.a, product));
    const StoreTarget c{p_.c.type, const_cast<uint8_t*>(At(call.c, p_.c, p_.Offset(p_.c, product))), p_.c.row_stride,
                        p_.c.col_stride};
    for (const int64_t end = std::min(m0 + mb_, p_.m); m0 < end; m0 += piece_)
      RunPiece(At(a, p_.a, m0 * p_.a.row_stride), b, c, m0, std::min(piece_, end - m0), m0 + piece_ >= end, a_rows,
               sums);
  }

  // `last`: of a task.
  void RunPiece(const uint8_t* a, const T* b, const StoreTarget& c, int64_t m0, int64_t rows, bool last, T* a_rows,
                T* sums) const {
    const bool direct = DirectStride<T>(c, m0, rows) >= 0 && (cols_ == p_.n || Spills());
    T* const to = direct ? AddressIn<T>(c, m0, 0) : sums;
    const int64_t stride = direct ? c.row_stride : cols_;
    const EvenPanels panels(rows, micro_.mr);
    for (int64_t k0 = 0; k0 < p_.k; k0 += kb_) {
      const int64_t kc = std::min(kb_, p_.k - k0);
      const uint8_t* const from = At(a, p_.a, k0 * p_.a.col_stride);
      if (reading_ == Reading::Converted)
        PackStrided<T>(micro_, p_.a.type, from, 0, 1, p_.a.row_stride, kc, rows, kc, a_rows);
      if (reading_ == Reading::Columns)
        PackStrided<T>(micro_, p_.a.type, from, 0, 1, p_.a.col_stride, rows, kc, piece_, a_rows);
      for (int64_t n = 0; n < panels.count; ++n) {
        const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
        if (reading_ == Reading::Packed)
          PackStrided<T>(micro_, p_.a.type, from, i * p_.a.row_stride, p_.a.row_stride, p_.a.col_stride, height, kc,
                         height, a_rows, true);
        if (direct && cols_ != p_.n && last && n + 1 == panels.count) {  // what follows is another task's
          MultiplyPanel(from, a_rows, i, height, kc, b, sums, cols_, false);
          StoreTile<T>(c, m0 + i, 0, height, p_.n, sums, cols_, false);
        } else {
          MultiplyPanel(from, a_rows, i, height, kc, b + k0 * BStep(), to + i * stride, stride, k0 > 0);
        }
      }
    }
    // Tiles but for the last one are whole: columns lie in a row of sums as they do in C.
    if (!direct) StoreTile<T>(c, m0, 0, rows, p_.n, sums, cols_, false);
  }

  int64_t BStep() const { return b_in_place_ ? p_.b.row_stride : cols_; }

  // Are rows of C dense and summed at once? What a last tile is filled up with may then be written over the beginning
  // of the next row, which comes later, and no further.
  bool Spills() const {
    return p_.k <= kb_ && p_.c.row_stride == p_.n && cols_ <= 2 * p_.n && reading_ != Reading::Columns;
  }

  // c[r][j] = (accumulate ? c[r][j] : 0) + the sums of a block along k, for all tiles: the last one first (Spills).
  void MultiplyPanel(const uint8_t* a, const T* a_rows, int64_t i, int64_t height, int64_t kc, const T* b, T* c,
                     int64_t c_stride, bool accumulate) const {
    const T* rows[kMostTileRows];
    if (reading_ == Reading::Rows)
      for (int64_t r = 0; r < height; ++r) rows[r] = reinterpret_cast<const T*>(a) + (i + r) * p_.a.row_stride;
    else if (reading_ == Reading::Converted)
      for (int64_t r = 0; r < height; ++r) rows[r] = a_rows + (i + r) * kc;
    for (int64_t t = num_tiles_; t-- > 0;) {
      const Tile& tile = tiles_of_b_[t];
      const TileKernels<T> kernels = TileKernelsOf<T>(micro_, height, tile.columns);
      const T* const panel = b_in_place_ ? b + tile.column : b + tile.at * kc;
      const int64_t step = b_in_place_ ? p_.b.row_stride : tile.width;
      if (reading_ == Reading::Columns) {
        const ProductRun run{0, 0, kc};
        micro_.runs[height - 1][tile.columns > micro_.lanes](&run, 1, a_rows + i, piece_, panel, step, tile.columns,
                                                             c + tile.at, c_stride, accumulate);
      } else if (reading_ == Reading::Packed)
        kernels.kernel(kc, a_rows, panel, step, c + tile.at, c_stride, accumulate);
      else
        kernels.indirect(1, kc, rows, panel, step, c + tile.at, c_stride, accumulate);
    }
  }

  const GemmProblem p_;
  const MicroTable<T>& micro_;
  Reading reading_ = Reading::Packed;
  bool b_in_place_ = false;
  std::array<Tile, kMostTiles> tiles_of_b_;
  int64_t num_tiles_ = 0, cols_ = 0;  // with what tiles are filled up with
  int64_t kb_ = 1, piece_ = 1;        // of a block
  int64_t mb_ = 1, down_ = 1;
};

}  // namespace

template <class T>
std::shared_ptr<const Gemm> MakeThinGemm(const GemmProblem& p, const GemmIsa& isa, bool instead_of_blocks) {
  const MicroTable<T>& micro = MicroOf<T>(isa);
  if (isa.bf16.mr > 0 && p.a.type == ElementType::BF16 && p.b.type == ElementType::BF16) return nullptr;  // in pairs
  if (!ThinGemm<T>::Suits(p, micro, instead_of_blocks)) return nullptr;
  return std::make_shared<ThinGemm<T>>(p, micro);
}
template std::shared_ptr<const Gemm> MakeThinGemm<float>(const GemmProblem&, const GemmIsa&, bool);
template std::shared_ptr<const Gemm> MakeThinGemm<double>(const GemmProblem&, const GemmIsa&, bool);

}  // namespace strop::cpu
