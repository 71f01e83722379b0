#include "strop/cpu/kernels/conv_indirect.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/conv_fetch.h"
#include "strop/cpu/kernels/conv_patch_tables.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSumElements = 256;   // summed in registers before they are added to what was before
constexpr int64_t kHeldElements = 320;  // the same, where the first-level cache holds their weights
constexpr int64_t kLeastFeatures = 12;  // of a tap
constexpr int64_t kFewPositions = 200;
constexpr int64_t kFewTiles = 2;           // of positions, for which packing does not pay
constexpr int64_t kSmallKernel = 1 << 17;  // elements
constexpr int64_t kCachedBytes = 1 << 20;  // that may still lie in the second-level cache
constexpr int64_t kColumnPanels = 9;       // of positions, a task
constexpr int64_t kEnoughColumns = 16;     // tasks, without cutting positions

// Can features be read as whole units, pairs of bf16 for one?
bool LieInUnits(const ConvProblem& p, int group) {
  bool whole = p.in_features % group == 0 && p.input_batch_stride % group == 0;
  for (const ConvSpatialDim& d : p.spatial) whole &= d.input_stride % group == 0;
  return whole;
}

// The same convolution where an element of the input is a unit.
ConvProblem InUnits(ConvProblem p, int group) {
  p.in_features /= group;
  p.input_batch_stride /= group;
  for (ConvSpatialDim& d : p.spatial) d.input_stride /= group;
  return p;
}

int64_t TapsAtOnce(const ConvProblem& p) { return std::max<int64_t>(kSumElements / p.in_features, 1); }

// What is summed in registers: some taps with all of their features, or some features of a tap.
struct Piece {
  int64_t tap, taps, feature, features;
};

// Of narrow vectors, of which a panel of features is read twice as often, pieces that the first-level cache holds, as
// even as they can be. Patches are larger: all taps of some features, then of the next ones.
std::vector<Piece> PiecesOf(const ConvProblem& p, int64_t taps, bool narrow) {
  int64_t at_once = TapsAtOnce(p), features = p.in_features;
  if (narrow) {
    features = CeilDiv(features, CeilDiv(features, kHeldElements));
    at_once = features < p.in_features ? 1 : std::max<int64_t>(kHeldElements / features, 1);
    at_once = CeilDiv(taps, CeilDiv(taps, at_once));
  }
  std::vector<Piece> pieces;
  for (int64_t f = 0; f < p.in_features; f += features)
    for (int64_t tap = 0; tap < taps; tap += at_once)
      pieces.push_back({tap, std::min(at_once, taps - tap), f, std::min(features, p.in_features - f)});
  return pieces;
}

// c[r][j] = (accumulate ? c[r][j] : 0) + the sum of a piece. patches[tap][r] are where all features of a tap lie;
// b are the weights of the piece.
template <class T>
void MultiplyPiece(IndirectKernel<T> kernel, const Piece& piece, int64_t rows, const T* const* patches, const T* b,
                   int64_t b_stride, T* c, int64_t c_stride, bool accumulate) {
  patches += piece.tap * rows;
  if (piece.feature == 0) return kernel(piece.taps, piece.features, patches, b, b_stride, c, c_stride, accumulate);
  const T* at[ConvPositions::kMostVectors];
  for (int64_t r = 0; r < rows; ++r) at[r] = patches[r] ? patches[r] + piece.feature : nullptr;
  kernel(1, piece.features, at, b, b_stride, c, c_stride, accumulate);
}

// Where row r of a tile is written, its r-th position; `offsets` is memory for as many.
StoreTarget TargetOfTile(const StoreTarget& c, int64_t m0, const PositionTile& tile, int64_t* offsets) {
  StoreTarget target = c;
  target.first_row = 0;
  if (c.rows) {
    for (int64_t r = 0; r < tile.count; ++r) offsets[r] = c.rows[m0 + tile.first + r * tile.step - c.first_row];
    target.rows = offsets;
  } else {
    target.data += (m0 + tile.first) * c.row_stride * Bytes(c.type);
    target.row_stride *= tile.step;
  }
  return target;
}

PanelProblem IndirectProblem(PanelProblem problem, const ConvSpatialDim* row) {
  problem.whole_k = true;
  problem.row = row ? row->output : 1;
  return problem;
}

// The kernel is packed once for all tasks, of which each owns some positions.
template <class T>
class IndirectConv final : public PanelConv<T> {
 public:
  explicit IndirectConv(std::shared_ptr<const ConvProduct<T>> product)
      : product_(std::move(product)),
        micro_(product_->micro()),
        p_(InUnits(product_->problem(), micro_.group)),
        positions_(p_),
        panels_(IndirectProblem(product_->ForPanels(), product_->positions().ReachingRow()), micro_),
        tables_(p_, positions_, micro_.mr, panels_.per_task()),
        fetcher_(p_, positions_, product_->count(), micro_.mr, p_.in_features),
        taps_(product_->taps().count),
        pieces_(PiecesOf(p_, taps_, HasNarrowVectors(micro_))),
        stores_late_(HasNarrowVectors(micro_) && p_.output_feature_stride != 1),
        holds_(stores_late_ || (HasNarrowVectors(micro_) && pieces_.size() > 1 && pieces_.front().taps > 1)) {
    const int64_t elements = product_->count() * product_->features() * product_->groups();
    fetches_c_ = elements * static_cast<int64_t>(sizeof(T)) > kCachedBytes;
    this->num_tasks_ = panels_.num_tasks();
    this->scratch_bytes_ = panels_.scratch_bytes() + TableBytes();
    this->rounds_ = panels_.rounds();
    this->prepare_tasks_ = panels_.prepare_tasks();
    flags_at_ = RoundUp(panels_.shared_bytes(), 64);
    this->shared_bytes_ = flags_at_ + this->prepare_tasks_;
    this->tiles_ = product_->ToString() + "patches where they lie, " + panels_.ToString();
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    for (; begin < end; ++begin) {
      bool finite = true;
      panels_.Prepare(ConvOperands<T>(*product_, call, &finite), call.round, begin, begin + 1, call.shared);
      Flags(call)[begin] = finite;
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) Task(call, begin, scratch);
  }

  typename Panels<T>::Part PartOf(int64_t round, int64_t task) const override { return panels_.PartOf(round, task); }

 private:
  static constexpr int kMostRows = ConvPositions::kMostVectors;

  // One for each task of Prepare: are all weights finite that it packed?
  uint8_t* Flags(const ConvCall& call) const { return static_cast<uint8_t*>(call.shared) + flags_at_; }
  // Sums of a tile or of all of a task, and where each tap of each position of a task is.
  int64_t TileBytes() const {
    const int64_t rows = holds_ ? panels_.per_task() : micro_.mr;
    return RoundUp(rows * micro_.nr * static_cast<int64_t>(sizeof(T)), 64);
  }
  int64_t TableBytes() const {
    const int64_t position = taps_ * static_cast<int64_t>(sizeof(T*)) + sizeof(PositionTile);
    return TileBytes() + RoundUp(position * panels_.per_task(), 64) + 64;
  }

  void Task(const ConvCall& call, int64_t task, void* scratch) const {
    const ConvOperands<T> operands(*product_, call);
    const auto [product, m0, rows, n0, cols] = panels_.PartOf(call.round, task);
    if (rows == 0) return;
    const int64_t nr = micro_.nr;
    T* sums = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(scratch) + 63) / 64 * 64);
    const T** table = reinterpret_cast<const T**>(reinterpret_cast<uint8_t*>(sums) + TileBytes());
    PositionTile* tiles = reinterpret_cast<PositionTile*>(table + taps_ * panels_.per_task());
    const StoreTarget c = operands.Target(product, m0, rows, static_cast<uint8_t*>(scratch) + TableBytes());
    const T* input = static_cast<const T*>(call.input) + product_->InputOffset(product) / micro_.group;
    const int64_t count = tables_.Cut(m0, rows, tiles);
    const uint8_t* flags = Flags(call);
    const bool skips = std::all_of(flags, flags + this->prepare_tasks_, [](uint8_t finite) { return finite != 0; });
    // Some pieces of the sums of a tile, which are kept at `kept` if the output does not hold them.
    const auto block = [&](const PositionTile& tile, const T* const* patches, int64_t j, std::span<const Piece> pieces,
                           T* kept) {
      const bool first = &pieces.front() == &pieces_.front(), last = &pieces.back() == &pieces_.back();
      const int64_t width = std::min(nr, cols - j);
      const TileKernels<T> kernels = TileKernelsOf<T>(micro_, tile.count, width);
      int64_t offsets[kMostRows];
      const StoreTarget target = TargetOfTile(c, m0, tile, offsets);
      const int64_t direct = width == kernels.width && !stores_late_ ? DirectStride<T>(target, 0, tile.count) : -1;
      T* to = direct >= 0 ? AddressIn<T>(target, 0, n0 + j) : kept;
      const int64_t stride = direct >= 0 ? direct : holds_ ? nr * tile.step : nr;
      if (first && direct >= 0 && fetches_c_) FetchRows<true>(to, direct, tile.count, width);
      if (first && direct < 0 && p_.output_feature_stride > 1 && HoldsSums<T>(c.type))
        FetchColumns(target, tile.count, n0 + j, width);
      const T* b = panels_.SharedPanel(call.shared, task, j);
      for (const Piece& piece : pieces)
        MultiplyPiece(kernels.indirect, piece, tile.count, patches,
                      b + (piece.tap * p_.in_features + piece.feature) * nr, nr, to, stride,
                      &piece != &pieces_.front());
      if (last && direct < 0 && !stores_late_) StoreTile<T>(target, 0, n0 + j, tile.count, width, kept, stride, false);
    };
    // A kernel that the second-level cache holds is gone through for each panel of positions, whose patches then stay
    // in the first; of a larger one, each panel is read once a task, or each of its pieces.
    Dealer dealer(m0, rows, std::span(tiles, count));
    if (product_->k() * cols <= kSmallKernel && !holds_) {
      for (const PositionTile& tile : std::span(tiles, count)) {
        tables_.Fill(m0, tile, input, skips, table);
        const auto [begin, end] = dealer.Next(tile);
        for (int64_t j = 0; j < cols; j += nr) {
          block(tile, table, j, pieces_, sums);
          fetcher_.Fetch(input, begin, end, j / nr, CeilDiv(cols, nr));
        }
      }
      return;
    }
    const T** at = table;
    for (int64_t i = 0; i < count; at += tiles[i++].count * taps_) tables_.Fill(m0, tiles[i], input, skips, at);
    const std::span<const Piece> all(pieces_);
    const size_t at_once = holds_ ? 1 : all.size();
    for (int64_t j = 0; j < cols; j += nr) {
      for (size_t piece = 0; piece < all.size(); piece += at_once) {
        at = table;
        for (const PositionTile& tile : std::span(tiles, count)) {
          block(tile, at, j, all.subspan(piece, at_once), holds_ ? sums + tile.first * nr : sums);
          at += tile.count * taps_;
          if (j > 0 || piece > 0) continue;
          const auto [begin, end] = dealer.Next(tile);
          fetcher_.Fetch(input, begin, end, 0, 1);
        }
      }
      if (stores_late_) StoreColumns(c, m0, rows, n0 + j, std::min(nr, cols - j), sums);
    }
  }

  // Sums of all positions of a task, by features: pieces, because positions of several rows do not follow each other.
  void StoreColumns(const StoreTarget& c, int64_t row, int64_t rows, int64_t col, int64_t cols, const T* sums) const {
    constexpr int64_t kRows = 64;
    for (int64_t i = 0; i < rows; i += kRows)
      StoreTile<T>(c, row + i, col, std::min(kRows, rows - i), cols, sums + i * micro_.nr, micro_.nr, false);
  }

  // Features that lie apart: a line or two of memory each, for all of which a store would wait.
  static void FetchColumns(const StoreTarget& c, int64_t rows, int64_t col, int64_t cols) {
    for (int64_t row : {int64_t{0}, rows - 1})
      FetchRows<true>(AddressIn<T>(c, row, 0) + col * c.col_stride, c.col_stride, cols, 1);
  }

  const std::shared_ptr<const ConvProduct<T>> product_;
  const MicroTable<T>& micro_;
  const ConvProblem p_;  // in units
  const ConvPositions positions_;
  const Panels<T> panels_;
  const PatchTables<T> tables_;
  const InputFetcher<T> fetcher_;
  const int64_t taps_;
  const std::vector<Piece> pieces_;
  const bool stores_late_;  // all positions of a task, whose features lie apart
  // Taps read the same patches again while the first-level cache has them: of one alone, going through all positions
  // would only read patches more often.
  const bool holds_;  // a piece of a panel of weights, for all positions of a task
  bool fetches_c_ = false;
  int64_t flags_at_ = 0;  // in the shared memory, behind the panels
};

// Few positions: packing the kernel would be most of the work. A task owns a panel of features, whose part of the
// kernel it reads where it lies, or packs for itself if features are not contiguous, a few taps at a time.
template <class T>
class ColumnsConv final : public Conv {
 public:
  explicit ColumnsConv(std::shared_ptr<const ConvProduct<T>> product)
      : product_(std::move(product)),
        p_(product_->problem()),
        taps_(product_->taps()),
        micro_(product_->micro()),
        pieces_(PiecesOf(p_, taps_.count, HasNarrowVectors(micro_))),
        in_place_(ReadsKernel()),
        across_(CeilDiv(product_->features(), micro_.nr)),
        down_(CeilDiv(product_->count(), MostRows())),
        rows_(CeilDiv(product_->count(), down_)),
        tables_(p_, product_->positions(), micro_.mr, rows_) {
    fetches_ =
        HasNarrowVectors(micro_) && !in_place_ && p_.kernel_out_stride == 1 && p_.kernel_type == ElementTypeOf<T>();
    num_tasks_ = product_->groups() * down_ * across_;
    scratch_bytes_ = 5 * kCarverSlack + rows_ * static_cast<int64_t>(sizeof(PositionTile)) +
                     rows_ * static_cast<int64_t>(sizeof(int64_t)) +
                     rows_ * taps_.count * static_cast<int64_t>(sizeof(T*)) +
                     (PackedTaps() * p_.in_features + rows_) * micro_.nr * static_cast<int64_t>(sizeof(T));
    tiles_ = StrCat(product_->ToString(), "patches where they lie, ", in_place_ ? "and the kernel, " : "", rows_, "x",
                    micro_.nr, " a task, ", micro_.mr, "x", micro_.nr, " in registers");
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) Task(call, begin, scratch);
  }

 private:
  bool ReadsKernel() const {
    // Narrow vectors would read lines that lie apart, and meet in the first-level cache, for each tile again.
    bool reads = p_.kernel_type == ElementTypeOf<T>() && p_.kernel_out_stride == 1 &&
                 (!HasNarrowVectors(micro_) || product_->count() <= kFewTiles * micro_.mr);
    for (int64_t tap = 0; tap < taps_.count; ++tap)
      reads &= taps_.kernel_offset[tap] == tap * p_.in_features * p_.kernel_in_stride;
    return reads;
  }
  // Of a task. What is packed should serve all positions.
  int64_t MostRows() const {
    const int64_t panels = CeilDiv(product_->count(), micro_.mr);
    const bool whole = !in_place_ && product_->groups() * across_ >= kEnoughColumns;
    return CeilDiv(panels, whole ? 1 : CeilDiv(panels, kColumnPanels)) * micro_.mr;
  }
  // Asks for the `part`th of `parts` of the weights of a piece, or of the first one of the next task: packing would
  // wait for each of their lines.
  void FetchNext(const ConvCall& call, size_t next, int64_t task, int64_t part, int64_t parts) const {
    if (next == pieces_.size()) next = 0, ++task;
    if (task == num_tasks_) return;
    const Piece& piece = pieces_[next];
    const T* from =
        static_cast<const T*>(call.kernel) + task / across_ / down_ * product_->features() + task % across_ * micro_.nr;
    const int64_t elements = piece.taps * piece.features;
    for (int64_t i = elements * part / parts; i < elements * (part + 1) / parts; ++i)
      FetchRows<false>(from + taps_.kernel_offset[piece.tap + i / piece.features] +
                           (piece.feature + i % piece.features) * p_.kernel_in_stride,
                       0, 1, 1);
  }
  bool spreads_taps() const { return product_->weights().spreads_taps(); }
  int64_t PackedTaps() const { return spreads_taps() ? taps_.count : pieces_.front().taps; }

  void Task(const ConvCall& call, int64_t task, void* scratch) const {
    const ConvOperands<T> operands(*product_, call);
    const int64_t nr = micro_.nr, features = p_.in_features;
    const int64_t n0 = task % across_ * nr, m0 = task / across_ % down_ * rows_;
    const int64_t product = task / across_ / down_;
    const int64_t rows = std::min(rows_, product_->count() - m0), cols = std::min(nr, product_->features() - n0);
    Carver carver(scratch);
    int64_t* offsets = carver.Take<int64_t>(rows_);
    const T** table = carver.Take<const T*>(rows_ * taps_.count);
    T* packed = carver.Take<T>(PackedTaps() * features * nr);
    T* sums = carver.Take<T>(rows_ * nr);
    PositionTile* tiles = carver.Take<PositionTile>(rows_);
    const StoreTarget c = operands.Target(product, m0, rows, offsets);
    const T* input = static_cast<const T*>(call.input) + product_->InputOffset(product);
    const int64_t count = tables_.Cut(m0, rows, tiles);
    // Returns whether taps were left out.
    const auto multiply = [&](bool skips) {
      const bool skipped = tables_.FillAll(m0, std::span(tiles, count), input, skips, table);
      if (spreads_taps()) operands.PackB(product, n0, cols, 0, product_->k(), nr, packed);
      for (const Piece& piece : pieces_) {
        const int64_t k0 = piece.tap * features + piece.feature;
        const T* b = spreads_taps() ? packed + k0 * nr : packed;
        int64_t b_stride = nr;
        if (in_place_ && cols == nr) {
          b = static_cast<const T*>(call.kernel) + taps_.kernel_offset[piece.tap] +
              piece.feature * p_.kernel_in_stride + product * product_->features() + n0;
          b_stride = p_.kernel_in_stride;
        } else if (!spreads_taps()) {
          operands.PackB(product, n0, cols, k0, piece.taps * piece.features, nr, packed);
        }
        const T** at = table;
        int64_t done = 0;
        for (const PositionTile& tile : std::span(tiles, count)) {
          if (fetches_) FetchNext(call, &piece - pieces_.data() + 1, task, done++, count);
          MultiplyPiece(micro_.indirect[tile.count - 1], piece, tile.count, at, b, b_stride, sums + tile.first * nr,
                        tile.step * nr, &piece != &pieces_.front());
          at += tile.count * taps_.count;
        }
      }
      return skipped;
    };
    // A weight that is not finite makes such sums of whatever it is multiplied with.
    if (multiply(true) && !micro_.all_finite(rows * nr, sums)) multiply(false);
    StoreTile<T>(c, m0, n0, rows, cols, sums, nr, false);
  }

  const std::shared_ptr<const ConvProduct<T>> product_;
  const ConvProblem& p_;
  const Taps& taps_;
  const MicroTable<T>& micro_;
  const std::vector<Piece> pieces_;
  const bool in_place_;
  bool fetches_ = false;
  const int64_t across_, down_, rows_;  // tasks; positions of one
  const PatchTables<T> tables_;
};

}  // namespace

template <class T>
std::shared_ptr<const Conv> MakeIndirectConv(std::shared_ptr<const ConvProduct<T>> product) {
  const ConvProblem& p = product->problem();
  if (product->swapped() || !product->micro().indirect[0] || p.input_type != ElementTypeOf<T>() ||
      p.input_feature_stride != 1 || p.in_features < kLeastFeatures || product->k() == 0)
    return nullptr;
  if (product->count() <= kFewPositions && product->n() >= 2 * product->micro().nr)
    return std::make_shared<ColumnsConv<T>>(std::move(product));
  return MakeIndirectPanels<T>(std::move(product));
}

template <class T>
std::shared_ptr<const PanelConv<T>> MakeIndirectPanels(std::shared_ptr<const ConvProduct<T>> product) {
  const ConvProblem& p = product->problem();
  if (product->swapped() || !product->micro().indirect[0] || p.input_feature_stride != 1 ||
      p.in_features < kLeastFeatures || product->k() == 0 || !LieInUnits(p, product->micro().group) ||
      !Panels<T>::Suits(product->ForPanels()))
    return nullptr;
  return std::make_shared<IndirectConv<T>>(std::move(product));
}

template std::shared_ptr<const PanelConv<float>> MakeIndirectPanels<float>(std::shared_ptr<const ConvProduct<float>>);
template std::shared_ptr<const Conv> MakeIndirectConv<float>(std::shared_ptr<const ConvProduct<float>>);
template std::shared_ptr<const Conv> MakeIndirectConv<double>(std::shared_ptr<const ConvProduct<double>>);

}  // namespace strop::cpu
