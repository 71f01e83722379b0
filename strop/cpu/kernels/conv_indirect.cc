#include "strop/cpu/kernels/conv_indirect.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "strop/cpu/kernels/conv_fetch.h"
#include "strop/cpu/kernels/conv_patch_tables.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSumElements = 256;   // summed in registers before they are added to what was before
constexpr int64_t kLeastFeatures = 12;  // of a tap
constexpr int64_t kFewPositions = 200;
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
        taps_(product_->taps().count) {
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
  // A tile of sums, and where each tap of each position of a task is.
  int64_t TileBytes() const { return RoundUp(micro_.mr * micro_.nr * static_cast<int64_t>(sizeof(T)), 64); }
  int64_t TableBytes() const {
    const int64_t position = taps_ * static_cast<int64_t>(sizeof(T*)) + sizeof(PositionTile);
    return TileBytes() + RoundUp(position * panels_.per_task(), 64) + 64;
  }

  void Task(const ConvCall& call, int64_t task, void* scratch) const {
    const ConvOperands<T> operands(*product_, call);
    const auto [product, m0, rows, n0, cols] = panels_.PartOf(call.round, task);
    if (rows == 0) return;
    const int64_t nr = micro_.nr, features = p_.in_features, taps_at_once = TapsAtOnce(p_);
    T* sums = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(scratch) + 63) / 64 * 64);
    const T** table = reinterpret_cast<const T**>(reinterpret_cast<uint8_t*>(sums) + TileBytes());
    PositionTile* tiles = reinterpret_cast<PositionTile*>(table + taps_ * panels_.per_task());
    const StoreTarget c = operands.Target(product, m0, rows, static_cast<uint8_t*>(scratch) + TableBytes());
    const T* input = static_cast<const T*>(call.input) + product_->InputOffset(product) / micro_.group;
    const int64_t count = tables_.Cut(m0, rows, tiles);
    const uint8_t* flags = Flags(call);
    const bool skips = std::all_of(flags, flags + this->prepare_tasks_, [](uint8_t finite) { return finite != 0; });
    const auto block = [&](const PositionTile& tile, const T* const* patches, int64_t j) {
      const int64_t width = std::min(nr, cols - j);
      const TileKernels<T> kernels = TileKernelsOf<T>(micro_, tile.count, width);
      const IndirectKernel<T> kernel = kernels.indirect;
      int64_t offsets[kMostRows];
      const StoreTarget target = TargetOfTile(c, m0, tile, offsets);
      const int64_t direct = width == kernels.width ? DirectStride<T>(target, 0, tile.count) : -1;
      T* to = direct >= 0 ? AddressIn<T>(target, 0, n0 + j) : sums;
      if (direct >= 0 && fetches_c_) FetchRows<true>(to, direct, tile.count, width);
      if (direct < 0 && p_.output_feature_stride > 1 && HoldsSums<T>(c.type))
        FetchColumns(target, tile.count, n0 + j, width);
      const T* b = panels_.SharedPanel(call.shared, task, j);
      for (int64_t tap = 0; tap < taps_; tap += taps_at_once)
        kernel(std::min(taps_at_once, taps_ - tap), features, patches + tap * tile.count, b + tap * features * nr, nr,
               to, direct >= 0 ? direct : nr, tap > 0);
      if (direct < 0) StoreTile<T>(target, 0, n0 + j, tile.count, width, sums, nr, false);
    };
    // A kernel that the second-level cache holds is gone through for each panel of positions, whose patches then stay
    // in the first; of a larger one, each panel is read once a task.
    Dealer dealer(m0, rows, std::span(tiles, count));
    if (product_->k() * cols <= kSmallKernel) {
      for (const PositionTile& tile : std::span(tiles, count)) {
        tables_.Fill(m0, tile, input, skips, table);
        const auto [begin, end] = dealer.Next(tile);
        for (int64_t j = 0; j < cols; j += nr) {
          block(tile, table, j);
          fetcher_.Fetch(input, begin, end, j / nr, CeilDiv(cols, nr));
        }
      }
    } else {
      const T** at = table;
      for (int64_t i = 0; i < count; at += tiles[i++].count * taps_) tables_.Fill(m0, tiles[i], input, skips, at);
      for (int64_t j = 0; j < cols; j += nr) {
        at = table;
        for (const PositionTile& tile : std::span(tiles, count)) {
          block(tile, at, j);
          at += tile.count * taps_;
          if (j > 0) continue;
          const auto [begin, end] = dealer.Next(tile);
          fetcher_.Fetch(input, begin, end, 0, 1);
        }
      }
    }
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
        in_place_(ReadsKernel()),
        across_(CeilDiv(product_->features(), micro_.nr)),
        down_(CeilDiv(product_->count(), MostRows())),
        rows_(CeilDiv(product_->count(), down_)),
        tables_(p_, product_->positions(), micro_.mr, rows_) {
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
    bool reads = p_.kernel_type == ElementTypeOf<T>() && p_.kernel_out_stride == 1;
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
  bool spreads_taps() const { return product_->weights().spreads_taps(); }
  int64_t PackedTaps() const { return spreads_taps() ? taps_.count : TapsAtOnce(p_); }

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
      for (int64_t tap = 0, taps; tap < taps_.count; tap += taps) {
        taps = std::min(TapsAtOnce(p_), taps_.count - tap);
        const T* b = spreads_taps() ? packed + tap * features * nr : packed;
        int64_t b_stride = nr;
        if (in_place_ && cols == nr) {
          b = static_cast<const T*>(call.kernel) + taps_.kernel_offset[tap] + product * product_->features() + n0;
          b_stride = p_.kernel_in_stride;
        } else if (!spreads_taps()) {
          operands.PackB(product, n0, cols, tap * features, taps * features, nr, packed);
        }
        const T** at = table;
        for (const PositionTile& tile : std::span(tiles, count)) {
          micro_.indirect[tile.count - 1](taps, features, at + tap * tile.count, b, b_stride, sums + tile.first * nr,
                                          tile.step * nr, tap > 0);
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
  const bool in_place_;
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
