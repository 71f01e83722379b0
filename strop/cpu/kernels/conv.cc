#include "strop/cpu/kernels/conv.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <optional>
#include <span>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/conv_tiles.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_panels.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

// ---- implicit GEMM
// ------------------------------------------------------------------------------------------------------

// Where the taps of a dimension find their input: [output][tap], in elements; kOutside in padding and dilation holes.
// Sums of offsets with a kOutside among them stay negative.
constexpr int64_t kOutside = -(int64_t{1} << 56);
constexpr int64_t kLargestTable = int64_t{1} << 20;
constexpr int64_t kSumElements = 256;  // summed in registers before they are added to what was before

class DimOffsets {
 public:
  explicit DimOffsets(const ConvSpatialDim& d) : dim_(d) {
    if (d.output > kLargestTable / std::max<int64_t>(1, d.kernel)) return;  // computed at each use
    for (int64_t o = 0; o < d.output; ++o)
      for (int64_t w = 0; w < d.kernel; ++w) table_.push_back(Compute(o, w));
  }
  int64_t At(int64_t o, int64_t w) const { return table_.empty() ? Compute(o, w) : table_[o * dim_.kernel + w]; }

 private:
  int64_t Compute(int64_t o, int64_t w) const {
    const int64_t i = InputIndex(dim_, o, w);
    return i < 0 ? kOutside : i * dim_.input_stride;
  }
  ConvSpatialDim dim_;
  std::vector<int64_t> table_;
};

// The rows of the product are the output positions of all images, in the order in which they lie in memory, so that
// neighbours read neighbours. Where a group has few features the roles are swapped, and positions are the columns: then
// they must lie at a constant distance, and the outer dimensions that do not fit are a loop around.
template <class T>
class GemmConv final : public Conv {
 public:
  GemmConv(const ConvProblem& p, const MicroTable<T>& micro) : p_(p), taps_(p), micro_(micro) {
    groups_ = std::max(p.feature_groups, p.batch_groups);
    features_ = p.out_features / groups_;
    rank_ = static_cast<int>(p.spatial.size());
    dims_.push_back({p.batch, p.output_batch_stride, 0});
    for (int d = 0; d < rank_; ++d) {
      dims_.push_back({p.spatial[d].output, p.spatial[d].output_stride, d + 1});
      offsets_.emplace_back(p.spatial[d]);
    }
    FindInside();
    // Dimensions of one element have no distance: they go first, out of the way.
    std::stable_sort(dims_.begin(), dims_.end(), [](const Dim& a, const Dim& b) {
      return (a.size == 1 ? INT64_MAX : a.stride) > (b.size == 1 ? INT64_MAX : b.stride);
    });
    int64_t all = 1;
    for (const Dim& d : dims_) all *= d.size;
    swapped_ = features_ < micro_.nr / 2 && all >= features_;
    first_merged_ = static_cast<int>(dims_.size()) - 1;
    while (first_merged_ > 0 &&
           (dims_[first_merged_ - 1].size == 1 ||
            dims_[first_merged_ - 1].stride == dims_[first_merged_].stride * dims_[first_merged_].size))
      --first_merged_;
    even_ = first_merged_ == 0;
    if (!swapped_) first_merged_ = 0;
    for (int d = 0; d < static_cast<int>(dims_.size()); ++d) (d < first_merged_ ? outer_ : positions_) *= dims_[d].size;
    // Units do not reach over taps: the features of a tap are rounded up to whole ones.
    tap_k_ = CeilDiv(p.in_features, micro_.group) * micro_.group;
    k_ = taps_.count * tap_k_;
    for (int64_t tap = 0; tap < taps_.count; ++tap) {
      int64_t offset = 0;
      for (int d = 0; d < rank_; ++d) {
        const ConvSpatialDim& s = p.spatial[d];
        const int64_t w = taps_.index[tap * rank_ + d];
        offset += (s.reversal ? s.kernel - 1 - w : w) * s.window_dilation * s.input_stride;
      }
      tap_offsets_.push_back(offset);
    }
    // Taps that follow each other in a row of the kernel read neighbours, all features of one after those of the other.
    const ConvSpatialDim* row = rank_ > 0 ? &p.spatial.back() : nullptr;
    if (row && p.in_features % micro_.group == 0 && p.input_feature_stride == 1 && row->input_stride == p.in_features &&
        row->window_dilation == 1 && row->base_dilation == 1 && !row->reversal)
      row_taps_ = row->kernel;
    spread_taps_ = SpreadsTaps();
    const int64_t m = swapped_ ? features_ : positions_, n = swapped_ ? positions_ : features_;
    PanelProblem problem;
    problem.batch = groups_, problem.outer = outer_, problem.m = m, problem.n = n, problem.k = k_;
    problem.c = p.output_type;
    problem.shared = swapped_ ? SharedOperand::A : SharedOperand::B;
    (swapped_ ? problem.a_across : problem.b_across) = p.kernel_out_stride == 1;
    problem.bias = PackSourceOf(a_type()) == PackSource::S8 ? micro_.bias : 0;
    problem.target_bytes_per_row = swapped_ ? 0 : static_cast<int64_t>(sizeof(int64_t));
    tiles_ = StrCat("implicit product of ", m, "x", n, "x", k_, swapped_ ? ", features down, " : ", ");
    // Features side by side in memory are read where they lie, a tap at a time: nothing is packed but the kernel.
    indirect_ = !swapped_ && micro_.indirect[0] && p.input_type == ElementTypeOf<T>() && p.input_feature_stride == 1 &&
                p.in_features >= kLeastIndirect;
    if (indirect_ && k_ > 0 && positions_ <= kFewPositions && n >= 2 * micro_.nr) {
      LayByColumns();
      return;
    }
    problem.whole_k = indirect_;
    problem.row = indirect_ && RowOfPositions() ? RowOfPositions()->output : 1;
    if (k_ > 0 && Panels<T>::Suits(problem)) {
      panels_.emplace(problem, micro_);
      if (indirect_) {
        tiles_ += "patches where they lie, ";
        zeros_.resize(static_cast<size_t>(p.in_features));
        SetTiles(panels_->per_task());
        SetFetches();
      }
      num_tasks_ = panels_->num_tasks();
      scratch_bytes_ = panels_->scratch_bytes() + (indirect_ ? TableBytes() : 0);
      rounds_ = panels_->rounds();
      prepare_tasks_ = panels_->prepare_tasks();
      shared_bytes_ = panels_->shared_bytes();
      if (indirect_) {
        flags_at_ = RoundUp(shared_bytes_, 64);
        shared_bytes_ = flags_at_ + prepare_tasks_;
      }
      tiles_ += panels_->ToString();
      return;
    }
    block_ = ChooseBlocks(m, n, k_, micro_.mr, micro_.nr, sizeof(T), groups_ * outer_);
    down_ = CeilDiv(m, block_.mb);
    across_ = CeilDiv(n, block_.nb);
    num_tasks_ = groups_ * outer_ * down_ * across_;
    rows_bytes_ = swapped_ ? 0 : (block_.mb * static_cast<int64_t>(sizeof(int64_t)) + 63) / 64 * 64;
    scratch_bytes_ = rows_bytes_ + BlockScratchBytes(block_, micro_.mr, micro_.nr, sizeof(T));
    StrAppend(tiles_, "blocks of ", block_.mb, "x", block_.nb, ", ", micro_.mr, "x", micro_.nr, " in registers");
  }

  // Can it do without the blocks, which know of no bias?
  bool has_panels() const { return panels_.has_value(); }
  // The type of what is packed as A, and as B.
  ElementType a_type() const { return swapped_ ? p_.kernel_type : p_.input_type; }
  ElementType b_type() const { return swapped_ ? p_.input_type : p_.kernel_type; }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    if (!panels_) return;
    if (!indirect_) return panels_->Prepare(Operands(*this, call), call.round, begin, end, call.shared);
    for (; begin < end; ++begin) {
      bool finite = true;
      panels_->Prepare(Operands(*this, call, &finite), call.round, begin, begin + 1, call.shared);
      Flags(call)[begin] = finite;
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const Operands operands(*this, call);
    if (block_rows_ > 0) {
      for (; begin < end; ++begin) RunColumns(operands, call, begin, scratch);
      return;
    }
    if (panels_ && indirect_) {
      for (; begin < end; ++begin) RunIndirect(operands, call, begin, scratch);
      return;
    }
    if (panels_) return panels_->Run(operands, call.round, begin, end, call.shared, scratch);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t across = task % across_, down = task / across_ % down_;
      Block(operands, task / across_ / down_, down, across, scratch);
    }
  }

 private:
  struct Dim {
    int64_t size, stride;
    int slot;  // 0: batch; d + 1: spatial dimension d
  };
  static constexpr int kMostVectors = 64;  // of a panel
  static constexpr int64_t kMostRowTaps = 64;
  static constexpr int kPieceElements = 2048;       // of a piece of a panel
  static constexpr int64_t kLeastIndirect = 12;     // features of a tap
  static constexpr int64_t kSmallKernel = 1 << 17;  // elements
  static constexpr int64_t kFewPositions = 200;
  static constexpr int64_t kCachedBytes = 1 << 20;    // that may still lie in the second-level cache
  static constexpr int64_t kFetchedBytes = 48 << 10;  // of the input, ahead; and panels, at most
  static constexpr int64_t kFetchedPanels = 4;
  static constexpr int64_t kSetBytes = 4096;           // of the first-level cache, one way
  static constexpr int64_t kSpreadElements = 1 << 13;  // that are turned at once
  static constexpr int64_t kColumnPanels = 9;          // of positions, a task
  static constexpr int64_t kEnoughColumns = 16;        // tasks, without cutting positions
  using Position = int64_t[10];                        // by slot

  // The matrices of a group and of one of its outer positions: product group * outer_ + outer.
  class Operands final : public PanelOperands<T> {
   public:
    // `finite` becomes false where a weight that is packed is not.
    Operands(const GemmConv& conv, const ConvCall& call, bool* finite = nullptr)
        : conv_(conv), call_(call), finite_(finite) {}
    void PackA(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
               T* dst) const override {
      Pack(conv_.swapped_, product, first, count, k0, kc, width, dst);
    }
    void PackB(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
               T* dst) const override {
      Pack(!conv_.swapped_, product, first, count, k0, kc, width, dst);
    }
    StoreTarget Target(int64_t product, int64_t first_row, int64_t rows, void* memory) const override {
      return conv_.TargetOf(static_cast<uint8_t*>(call_.output), product, first_row, rows,
                            static_cast<int64_t*>(memory));
    }

   private:
    void Pack(bool kernel, int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
              T* dst) const {
      const ConvProblem& p = conv_.p_;
      const int64_t group = product / conv_.outer_, outer = product % conv_.outer_;
      if (kernel) {
        conv_.PackWeights(static_cast<const uint8_t*>(call_.kernel),
                          (group * conv_.features_ + first) * p.kernel_out_stride, count, k0, kc, width, dst);
        if (finite_) *finite_ &= conv_.micro_.all_finite(kc * width, dst);
        return;
      }
      const int64_t offset =
          p.batch_groups > 1 ? group * p.batch * p.input_batch_stride : group * p.in_features * p.input_feature_stride;
      conv_.PackPatches(static_cast<const uint8_t*>(call_.input), offset, outer * conv_.positions_ + first, count, k0,
                        kc, width, dst);
    }
    const GemmConv& conv_;
    const ConvCall& call_;
    bool* finite_;
  };

  // If indirect, one for each task of Prepare: are all weights finite that it packed?
  uint8_t* Flags(const ConvCall& call) const { return static_cast<uint8_t*>(call.shared) + flags_at_; }

  StoreTarget TargetOf(uint8_t* output, int64_t product, int64_t first_row, int64_t rows, int64_t* offsets) const {
    int64_t outer = product % outer_, at = product / outer_ * features_ * p_.output_feature_stride;
    for (int d = first_merged_ - 1; d >= 0; --d) {
      at += outer % dims_[d].size * dims_[d].stride;
      outer /= dims_[d].size;
    }
    StoreTarget target{p_.output_type, output + at * Bytes(p_.output_type), dims_.back().stride,
                       p_.output_feature_stride};
    if (swapped_) {
      std::swap(target.row_stride, target.col_stride);
      return target;
    }
    if (even_) return target;
    for (int64_t r = 0; r < rows; ++r) offsets[r] = OutputOffset(first_row + r);
    target.rows = offsets;
    target.first_row = first_row;
    return target;
  }

  // Of the sums' own type, so that what is packed is what lies there. The taps may be some of those that lie together.
  bool SpreadsTaps() {
    if (micro_.group != 1 || p_.kernel_type != ElementTypeOf<T>() || taps_.count < 2) return false;
    const auto [low, high] = std::ranges::minmax(taps_.kernel_offset);
    tap_low_ = low, tap_span_ = high - low + 1;
    tap_stride_ = std::min(p_.kernel_in_stride, p_.kernel_out_stride);
    return tap_stride_ > 1 && tap_span_ <= tap_stride_ &&
           tap_stride_ * std::max(micro_.nr, micro_.mr) <= kSpreadElements;
  }

  void Block(const Operands& operands, int64_t product, int64_t down, int64_t across, void* scratch) const {
    PackFn<T> pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      operands.PackA(product, first, count, k0, kc, width, dst);
    };
    PackFn<T> pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      operands.PackB(product, first, count, k0, kc, width, dst);
    };
    const int64_t m = swapped_ ? features_ : positions_, n = swapped_ ? positions_ : features_;
    const int64_t m0 = down * block_.mb, n0 = across * block_.nb, rows = std::min(block_.mb, m - m0);
    const StoreTarget target = operands.Target(product, m0, rows, scratch);
    RunBlock<T>(micro_, block_, m0, rows, n0, std::min(block_.nb, n - n0), k_, pack_a, pack_b, target,
                static_cast<uint8_t*>(scratch) + rows_bytes_);
  }

  // A tile of sums, and where each tap of each position of a task is.
  int64_t TileBytes() const { return RoundUp(micro_.mr * micro_.nr * static_cast<int64_t>(sizeof(T)), 64); }
  int64_t TableBytes() const {
    const int64_t position = taps_.count * static_cast<int64_t>(sizeof(T*)) + sizeof(PositionTile);
    return TileBytes() + RoundUp(position * panels_->per_task(), 64) + 64;
  }

  // Rows of registers that read at distances of a page meet in a few lines of the first-level cache: fewer then.
  int64_t HeightAt(int64_t elements) const {
    return elements * static_cast<int64_t>(sizeof(T)) % kSetBytes == 0 ? micro_.mr / 2 : micro_.mr;
  }
  // The dimension along which neighbouring positions lie, if some of their windows reach out of the image; else null.
  const ConvSpatialDim* RowOfPositions() const {
    bool reaches_out = false;
    for (int d = 1; d <= rank_; ++d) reaches_out |= inside_[d].begin > 0 || inside_[d].end < p_.spatial[d - 1].output;
    return reaches_out && dims_.back().slot > 0 ? &p_.spatial[dims_.back().slot - 1] : nullptr;
  }
  // From one position to the next along a dimension, in elements of the input.
  int64_t StepOf(const Dim& dim) const {
    if (dim.slot == 0) return p_.input_batch_stride;
    return p_.spatial[dim.slot - 1].stride * p_.spatial[dim.slot - 1].input_stride;
  }
  void SetTiles(int64_t positions) {
    const ConvSpatialDim* row = RowOfPositions();
    const int64_t height = HeightAt(StepOf(dims_.back()));
    position_tiles_ =
        row ? PositionTiles(*row, positions, height, HeightAt(StepOf(dims_[dims_.size() - 2]))) : PositionTiles(height);
  }

  // Where row r of a tile is written, its r-th position; `offsets` is memory for as many.
  static StoreTarget TargetOfTile(const StoreTarget& c, int64_t m0, const PositionTile& tile, int64_t* offsets) {
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

  void RunIndirect(const Operands& operands, const ConvCall& call, int64_t task, void* scratch) const {
    const auto [product, m0, rows, n0, cols] = panels_->PartOf(call.round, task);
    if (rows == 0) return;
    const int64_t nr = micro_.nr, features = p_.in_features, taps_at_once = TapsAtOnce();
    T* sums = reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(scratch) + 63) / 64 * 64);
    const T** table = reinterpret_cast<const T**>(reinterpret_cast<uint8_t*>(sums) + TileBytes());
    PositionTile* tiles = reinterpret_cast<PositionTile*>(table + taps_.count * panels_->per_task());
    const StoreTarget c = operands.Target(product, m0, rows, static_cast<uint8_t*>(scratch) + TableBytes());
    const T* input = static_cast<const T*>(call.input) + InputOffset(product / outer_);
    const int64_t count = position_tiles_.Cut(m0, rows, tiles);
    const uint8_t* flags = Flags(call);
    const bool skips = std::all_of(flags, flags + prepare_tasks_, [](uint8_t finite) { return finite != 0; });
    const auto block = [&](const PositionTile& tile, const T* const* patches, int64_t j) {
      const int64_t width = std::min(nr, cols - j);
      const bool narrow = width <= nr / 2;
      const IndirectKernel<T> kernel = (narrow ? micro_.narrow_indirect : micro_.indirect)[tile.count - 1];
      int64_t offsets[kMostVectors];
      const StoreTarget target = TargetOfTile(c, m0, tile, offsets);
      const bool whole = width == (narrow ? nr / 2 : nr);
      const int64_t direct = whole ? DirectStride<T>(target, 0, tile.count) : -1;
      T* to = direct >= 0 ? AddressIn<T>(target, 0, n0 + j) : sums;
      if (direct >= 0 && fetches_c_) FetchRows<true>(to, direct, tile.count, width);
      if (direct < 0 && p_.output_feature_stride > 1 && HoldsSums<T>(c.type))
        FetchColumns(target, tile.count, n0 + j, width);
      const T* b = panels_->SharedPanel(call.shared, task, j);
      for (int64_t tap = 0; tap < taps_.count; tap += taps_at_once)
        kernel(std::min(taps_at_once, taps_.count - tap), features, patches + tap * tile.count, b + tap * features * nr,
               nr, to, direct >= 0 ? direct : nr, tap > 0);
      if (direct < 0) StoreTile<T>(target, 0, n0 + j, tile.count, width, sums, nr, false);
    };
    // A kernel that the second-level cache holds is gone through for each panel of positions, whose patches then stay
    // in the first; of a larger one, each panel is read once a task.
    Fetched fetched(m0, rows, std::span(tiles, count));
    if (k_ * cols <= kSmallKernel) {
      for (const PositionTile& tile : std::span(tiles, count)) {
        FillTable(m0, tile, input, skips, table);
        const auto [begin, end] = fetched.Next(tile);
        for (int64_t j = 0; j < cols; j += nr) {
          block(tile, table, j);
          FetchPatches(input, begin, end, j / nr, CeilDiv(cols, nr));
        }
      }
    } else {
      const T** at = table;
      for (int64_t i = 0; i < count; at += tiles[i++].count * taps_.count) FillTable(m0, tiles[i], input, skips, at);
      for (int64_t j = 0; j < cols; j += nr) {
        at = table;
        for (const PositionTile& tile : std::span(tiles, count)) {
          block(tile, at, j);
          at += tile.count * taps_.count;
          if (j > 0) continue;
          const auto [begin, end] = fetched.Next(tile);
          FetchPatches(input, begin, end, 0, 1);
        }
      }
    }
  }

  // Features that lie apart: a line or two of memory each, for all of which a store would wait.
  static void FetchColumns(const StoreTarget& c, int64_t rows, int64_t col, int64_t cols) {
    for (int64_t row : {int64_t{0}, rows - 1})
      FetchRows<true>(AddressIn<T>(c, row, 0) + col * c.col_stride, c.col_stride, cols, 1);
  }

  // Deals the positions of a task to its tiles along rows, which come first and in order.
  class Fetched {
   public:
    Fetched(int64_t m0, int64_t rows, std::span<const PositionTile> tiles) : m0_(m0), rows_(rows) {
      for (const PositionTile& tile : tiles) all_ += tile.step == 1 ? tile.count : 0;
    }
    std::pair<int64_t, int64_t> Next(const PositionTile& tile) {
      if (tile.step != 1) return {0, 0};
      const int64_t begin = done_;
      done_ += tile.count;
      return {m0_ + begin * rows_ / all_, m0_ + done_ * rows_ / all_};
    }

   private:
    int64_t m0_, rows_, all_ = 0, done_ = 0;
  };

  // Asks for the `part`th of `parts` of the input that positions [begin, end) will read and those before did not.
  // Images follow each other as positions do, so that each position takes as much of the input as any.
  void FetchPatches(const T* input, int64_t begin, int64_t end, int64_t part, int64_t parts) const {
    const int64_t elements = fetched_ * (end - begin);
    const int64_t first = begin * fetched_ + fetch_distance_ + elements * part / parts;
    const int64_t last = std::min(first + elements / parts, positions_ * fetched_);
    if (first < last) FetchRows<false>(input + first, 0, 1, last - first);
  }
  void SetFetches() {
    fetches_c_ = positions_ * features_ * groups_ * static_cast<int64_t>(sizeof(T)) > kCachedBytes;
    int64_t elements = p_.in_features;
    for (const ConvSpatialDim& s : p_.spatial) elements *= s.input;
    const bool in_order = p_.batch == 1 || (dims_[0].slot == 0 && p_.input_batch_stride == elements);
    if (groups_ > 1 || outer_ > 1 || !in_order || elements * p_.batch * static_cast<int64_t>(sizeof(T)) <= kCachedBytes)
      return;
    fetched_ = elements * p_.batch / positions_;
    const int64_t panel = fetched_ * micro_.mr * static_cast<int64_t>(sizeof(T));
    if (panel > 0)
      fetch_distance_ = std::clamp<int64_t>(kFetchedBytes / panel, 1, kFetchedPanels) * fetched_ * micro_.mr;
  }

  // Few positions: packing the kernel would be most of the work. A task owns a panel of features, whose part of the
  // kernel it reads where it lies, or packs for itself if features are not contiguous, a few taps at a time.
  void LayByColumns() {
    zeros_.resize(static_cast<size_t>(p_.in_features));
    in_place_ = p_.kernel_type == ElementTypeOf<T>() && p_.kernel_out_stride == 1;
    for (int64_t tap = 0; tap < taps_.count; ++tap)
      in_place_ &= taps_.kernel_offset[tap] == tap * p_.in_features * p_.kernel_in_stride;
    const int64_t panels = CeilDiv(positions_, micro_.mr);
    across_ = CeilDiv(features_, micro_.nr);
    // What is packed should serve all positions.
    const bool whole = !in_place_ && groups_ * across_ >= kEnoughColumns;
    block_rows_ = CeilDiv(panels, whole ? 1 : CeilDiv(panels, kColumnPanels)) * micro_.mr;
    down_ = CeilDiv(positions_, block_rows_);
    block_rows_ = CeilDiv(positions_, down_);
    SetTiles(block_rows_);
    num_tasks_ = groups_ * down_ * across_;
    scratch_bytes_ = 5 * kCarverSlack + block_rows_ * static_cast<int64_t>(sizeof(PositionTile)) +
                     block_rows_ * static_cast<int64_t>(sizeof(int64_t)) +
                     block_rows_ * taps_.count * static_cast<int64_t>(sizeof(T*)) +
                     (PackedTaps() * p_.in_features + block_rows_) * micro_.nr * static_cast<int64_t>(sizeof(T));
    StrAppend(tiles_, "patches where they lie, ", in_place_ ? "and the kernel, " : "", block_rows_, "x", micro_.nr,
              " a task, ", micro_.mr, "x", micro_.nr, " in registers");
  }
  int64_t TapsAtOnce() const { return std::max<int64_t>(kSumElements / p_.in_features, 1); }
  int64_t PackedTaps() const { return spread_taps_ ? taps_.count : TapsAtOnce(); }

  void RunColumns(const Operands& operands, const ConvCall& call, int64_t task, void* scratch) const {
    const int64_t nr = micro_.nr, features = p_.in_features;
    const int64_t n0 = task % across_ * nr, m0 = task / across_ % down_ * block_rows_;
    const int64_t product = task / across_ / down_;
    const int64_t rows = std::min(block_rows_, positions_ - m0), cols = std::min(nr, features_ - n0);
    Carver carver(scratch);
    int64_t* offsets = carver.Take<int64_t>(block_rows_);
    const T** table = carver.Take<const T*>(block_rows_ * taps_.count);
    T* packed = carver.Take<T>(PackedTaps() * features * nr);
    T* sums = carver.Take<T>(block_rows_ * nr);
    PositionTile* tiles = carver.Take<PositionTile>(block_rows_);
    const StoreTarget c = operands.Target(product, m0, rows, offsets);
    const T* input = static_cast<const T*>(call.input) + InputOffset(product);
    const int64_t count = position_tiles_.Cut(m0, rows, tiles);
    // Returns whether taps were left out.
    const auto multiply = [&](bool skips) {
      const bool skipped = FillTables(m0, std::span(tiles, count), input, skips, table);
      if (spread_taps_) operands.PackB(product, n0, cols, 0, k_, nr, packed);
      for (int64_t tap = 0, taps; tap < taps_.count; tap += taps) {
        taps = std::min(TapsAtOnce(), taps_.count - tap);
        const T* b = spread_taps_ ? packed + tap * features * nr : packed;
        int64_t b_stride = nr;
        if (in_place_ && cols == nr) {
          b = static_cast<const T*>(call.kernel) + taps_.kernel_offset[tap] + product * features_ + n0;
          b_stride = p_.kernel_in_stride;
        } else if (!spread_taps_) {
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

  // The tables of all tiles, one after the other; returns whether one leaves out a tap. What all would leave out the
  // last one multiplies, so that each weight meets a position.
  bool FillTables(int64_t m0, std::span<const PositionTile> tiles, const T* input, bool skips, const T** table) const {
    const T** at = table;
    for (const PositionTile& tile : tiles) {
      FillTable(m0, tile, input, skips, at);
      at += tile.count * taps_.count;
    }
    bool skipped = false;
    for (int64_t tap = 0; skips && tap < taps_.count; ++tap) {
      size_t missing = 0;
      at = table;
      for (const PositionTile& tile : tiles) {
        missing += at[tap * tile.count] == nullptr;
        at += tile.count * taps_.count;
      }
      skipped |= missing > 0;
      const int64_t last = tiles.back().count;
      if (missing == tiles.size()) std::fill_n(at - (taps_.count - tap) * last, last, zeros_.data());
    }
    return skipped;
  }

  // table[tap][v]: the features of that tap at the v-th position of the tile. Where all are outside, the first is null
  // if it `skips` such taps.
  void FillTable(int64_t m0, const PositionTile& tile, const T* input, bool skips, const T** table) const {
    if (FillTableOfRow(m0, tile, input, skips, table)) return;
    const int64_t count = tile.count;
    Panel panel;
    Describe(m0 + tile.first, count, panel, tile.step != 1);
    bool all_reach_out = true;
    for (int64_t v = 0; v < count; ++v) {
      const int64_t origin = panel.origin[v];
      const T** to = table + v;
      if (origin >= 0) {
        all_reach_out = false;
        for (int64_t tap = 0; tap < taps_.count; ++tap, to += count) *to = input + origin + tap_offsets_[tap];
        continue;
      }
      // Row by row of the window.
      const int64_t* at = panel.at[v];
      const int64_t row_taps = rank_ > 0 ? p_.spatial.back().kernel : 1;
      for (int64_t tap = 0; tap < taps_.count; tap += row_taps) {
        int64_t row = at[0] * p_.input_batch_stride;
        for (int d = 0; d + 1 < rank_; ++d) row += offsets_[d].At(at[d + 1], taps_.index[tap * rank_ + d]);
        for (int64_t w = 0; w < row_taps; ++w, to += count) {
          const int64_t offset = row + offsets_[rank_ - 1].At(at[rank_], w);
          *to = offset < 0 ? zeros_.data() : input + offset;
        }
      }
    }
    if (!all_reach_out || !skips) return;
    for (int64_t tap = 0; tap < taps_.count; ++tap, table += count)
      if (std::all_of(table, table + count, [&](const T* at) { return at == zeros_.data(); })) *table = nullptr;
  }

  // The same of positions in a row that each find the same of its taps, at one distance; false if they are not.
  bool FillTableOfRow(int64_t m0, const PositionTile& tile, const T* input, bool skips, const T** table) const {
    if (tile.step != 1 || rank_ == 0 || dims_.back().slot != rank_) return false;
    const ConvSpatialDim& s = p_.spatial.back();
    if (s.base_dilation != 1 || s.kernel > kMostRowTaps) return false;
    Position at;
    Decode(m0 + tile.first, at);
    const int64_t distance = s.stride * s.input_stride, reach = (tile.count - 1) * s.stride;
    if (at[rank_] + tile.count > s.output) return false;
    int64_t along[kMostRowTaps];
    for (int64_t w = 0; w < s.kernel; ++w) {
      const int64_t x = at[rank_] * s.stride - s.pad_low + (s.reversal ? s.kernel - 1 - w : w) * s.window_dilation;
      const bool outside = x + reach < 0 || x >= s.input;
      if (!outside && (x < 0 || x + reach >= s.input)) return false;
      along[w] = outside ? kOutside : x * s.input_stride;
    }
    for (int64_t tap = 0; tap < taps_.count; tap += s.kernel) {
      int64_t row = at[0] * p_.input_batch_stride;
      for (int d = 0; d + 1 < rank_; ++d) row += offsets_[d].At(at[d + 1], taps_.index[tap * rank_ + d]);
      for (int64_t w = 0; w < s.kernel; ++w, table += tile.count) {
        if (row + along[w] < 0) {
          std::fill_n(table, tile.count, skips ? nullptr : zeros_.data());
          continue;
        }
        const T* from = input + row + along[w];
        for (int64_t v = 0; v < tile.count; ++v, from += distance) table[v] = from;
      }
    }
    return true;
  }

  int64_t InputOffset(int64_t group) const {
    return p_.batch_groups > 1 ? group * p_.batch * p_.input_batch_stride
                               : group * p_.in_features * p_.input_feature_stride;
  }

  int64_t OutputOffset(int64_t position) const {
    int64_t offset = 0;
    for (size_t d = dims_.size(); d-- > 0;) {
      offset += position % dims_[d].size * dims_[d].stride;
      position /= dims_[d].size;
    }
    return offset;
  }

  void Decode(int64_t position, Position& at) const {
    for (size_t d = dims_.size(); d-- > 0;) {
      at[dims_[d].slot] = position % dims_[d].size;
      position /= dims_[d].size;
    }
  }

  // To the next position of dimension `d` and those outside.
  void Advance(Position& at, size_t d) const {
    for (++d; d-- > 0;) {
      if (++at[dims_[d].slot] < dims_[d].size) return;
      at[dims_[d].slot] = 0;
    }
  }

  // The positions of a panel. Those whose window lies inside the input find each tap at a fixed distance from its
  // origin.
  struct Panel {
    int64_t count = 0, distance = 0;
    bool interior = true, even = true;  // all of them are; and their origins are `distance` apart
    Position at[kMostVectors];
    int64_t origin[kMostVectors];  // negative: not inside
  };

  // Of positions along rows, or down the image.
  void Describe(int64_t first, int64_t count, Panel& panel, bool down = false) const {
    panel.count = count;
    Decode(first, panel.at[0]);
    const int last = dims_.back().slot;
    int64_t others = 0;  // of the dimensions that stay as they are from one position to the next
    for (int64_t v = 0; v < count; ++v) {
      Position& at = panel.at[v];
      if (v > 0) {
        std::memcpy(at, panel.at[v - 1], sizeof(Position));
        Advance(at, dims_.size() - 1 - down);
      }
      if (v == 0 || at[last] == 0 || down) {
        others = 0;
        for (int slot = 0; slot <= rank_; ++slot)
          if (slot != last) others += Origin(slot, at[slot]);
      }
      const int64_t origin = others + Origin(last, at[last]);
      panel.origin[v] = origin;
      panel.interior &= origin >= 0;
      if (v == 1) panel.distance = origin - panel.origin[0];
      panel.even &= v < 2 || origin - panel.origin[v - 1] == panel.distance;
    }
  }

  // Where a window begins along a dimension; kOutside if it does not lie inside.
  int64_t Origin(int slot, int64_t at) const {
    const Inside& inside = inside_[slot];
    return at >= inside.begin && at < inside.end ? inside.origin + at * inside.step : kOutside;
  }
  void FindInside() {
    inside_.push_back({0, p_.batch, 0, p_.input_batch_stride});
    for (const ConvSpatialDim& s : p_.spatial) {
      const int64_t reach = s.input - (s.kernel - 1) * s.window_dilation + s.pad_low;  // windows begin before it
      Inside inside{std::max<int64_t>(CeilDiv(s.pad_low, s.stride), 0), std::max<int64_t>(CeilDiv(reach, s.stride), 0),
                    -s.pad_low * s.input_stride, s.stride * s.input_stride};
      if (s.base_dilation != 1) inside.end = 0;
      inside_.push_back(inside);
    }
  }

  // Where position v finds a tap in the input; negative outside.
  int64_t Offset(const Panel& panel, int64_t v, int64_t tap) const {
    if (panel.origin[v] >= 0) return panel.origin[v] + tap_offsets_[tap];
    const Position& at = panel.at[v];
    int64_t offset = at[0] * p_.input_batch_stride;
    const int64_t* w = taps_.index.data() + tap * rank_;
    for (int d = 0; d < rank_; ++d) offset += offsets_[d].At(at[d + 1], w[d]);
    return offset;
  }

  // dst[k][v]: element k = (tap, in_feature) of the patch of position first + v.
  void PackPatches(const uint8_t* input, int64_t base, int64_t first, int64_t count, int64_t k0, int64_t kc,
                   int64_t width, T* dst) const {
    Panel panel;
    Describe(first, count, panel);
    const PackPanel<T> pack = PackerOf(micro_, p_.input_type, !swapped_);
    for (int64_t k = 0; k < kc;) {
      const int64_t tap = (k0 + k) / tap_k_, feature = (k0 + k) % tap_k_;
      int64_t elements = std::min(tap_k_ - feature, kc - k);
      if (pack && row_taps_ > 1) elements = std::min((row_taps_ - tap % row_taps_) * tap_k_ - feature, kc - k);
      // Pieces that the first-level cache holds; whole units.
      elements = std::min(elements, std::max<int64_t>(16, kPieceElements / count / 16 * 16));
      T* to = dst + k / micro_.group * width;
      if (pack) {
        const int64_t real = row_taps_ > 1 ? elements : std::min(elements, p_.in_features - feature);
        PackTap(pack, input, base, panel, tap, feature, real, width, to);
      } else {
        for (int64_t v = 0; v < width; ++v) {
          const int64_t offset = v < count ? Offset(panel, v, tap) : kOutside;
          const int64_t from = base + offset + feature * p_.input_feature_stride;
          for (int64_t c = 0; c < elements; ++c)
            StoreInPanel(micro_, to, width, c, v,
                         offset < 0 || feature + c >= p_.in_features
                             ? T(0)
                             : LoadAs<T>(p_.input_type, input, from + c * p_.input_feature_stride));
        }
      }
      k += elements;
    }
  }

  // `length` elements from (tap, feature) on, of all positions. Where these lie at one distance, straight from the
  // input; else from a copy, with zeros for what is outside.
  void PackTap(PackPanel<T> pack, const uint8_t* input, int64_t base, const Panel& panel, int64_t tap, int64_t feature,
               int64_t length, int64_t width, T* to) const {
    const int64_t size = Bytes(p_.input_type), stride = p_.input_feature_stride, count = panel.count;
    const int64_t last = tap + (feature + length - 1) / p_.in_features;
    const uint8_t* elements = input + (base + feature * stride) * size;
    int64_t from[kMostVectors];
    from[0] = from[1] = 0;
    bool inside = panel.interior, even = panel.even;
    if (inside && even) {
      from[0] = panel.origin[0] + tap_offsets_[tap];
      from[1] = from[0] + panel.distance;
    } else {
      inside = even = true;
      for (int64_t v = 0; v < count; ++v) {
        from[v] = Offset(panel, v, tap);
        inside &= from[v] >= 0 && (last == tap || Offset(panel, v, last) >= 0);
        even &= v < 2 || from[v] - from[v - 1] == from[1] - from[0];
      }
    }
    if (inside && even)
      return pack(elements + from[0] * size, count > 1 ? from[1] - from[0] : stride, stride, count, length, width, to);
    if (p_.input_type == ElementTypeOf<T>() && micro_.group == 1 && length <= 8 &&
        last == tap) {  // too little for a copy
      const T* typed = reinterpret_cast<const T*>(elements);
      for (int64_t v = 0; v < width; ++v) {
        const bool zero = v >= count || from[v] < 0;
        for (int64_t c = 0; c < length; ++c) to[c * width + v] = zero ? T(0) : typed[from[v] + c * stride];
      }
      return;
    }
    alignas(64) uint8_t copy[kPieceElements * 8 + 16 * kMostVectors * 8];
    if (stride == 1) {
      for (int64_t v = 0; v < count; ++v)
        CopyTaps(input, base, panel, v, from[v], tap, last, feature, length, copy + v * length * size);
      return pack(copy, length, 1, count, length, width, to);
    }
    switch (size) {
      case 1: Gather<uint8_t>(elements, from, count, length, copy); break;
      case 2: Gather<uint16_t>(elements, from, count, length, copy); break;
      case 4: Gather<uint32_t>(elements, from, count, length, copy); break;
      default: Gather<uint64_t>(elements, from, count, length, copy); break;
    }
    pack(copy, 1, count, count, length, width, to);
  }

  // For short runs: GCC writes memcpy as a string instruction here, which takes longer to start than these to copy.
  static void CopyBytes(uint8_t* to, const uint8_t* from, int64_t n) {
    if (n < 16) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i];
      return;
    }
    for (int64_t i = 0; i + 16 < n; i += 16) __builtin_memcpy(to + i, from + i, 16);
    __builtin_memcpy(to + n - 16, from + n - 16, 16);
  }

  // `length` contiguous elements of one position from (tap, feature) on; more than one tap only along a row of taps.
  void CopyTaps(const uint8_t* input, int64_t base, const Panel& panel, int64_t v, int64_t from, int64_t tap,
                int64_t last, int64_t feature, int64_t length, uint8_t* copy) const {
    const int64_t size = Bytes(p_.input_type);
    for (int64_t c = 0; c < length; ++tap, feature = 0) {
      const int64_t n = tap == last ? length - c : std::min(length - c, p_.in_features - feature);
      if (from < 0)
        std::memset(copy + c * size, 0, n * size);
      else
        CopyBytes(copy + c * size, input + (base + from + feature) * size, n * size);
      c += n;
      if (c < length) from = Offset(panel, v, tap + 1);
    }
  }

  // copy[feature][position], by codes.
  template <class Code>
  void Gather(const uint8_t* elements, const int64_t* from, int64_t count, int64_t length, uint8_t* copy) const {
    const Code* codes = reinterpret_cast<const Code*>(elements);
    Code* to = reinterpret_cast<Code*>(copy);
    for (int64_t c = 0; c < length; ++c, codes += p_.input_feature_stride)
      for (int64_t v = 0; v < count; ++v) *to++ = from[v] < 0 ? Code(0) : codes[from[v]];
  }

  void PackWeights(const uint8_t* kernel, int64_t base, int64_t count, int64_t k0, int64_t kc, int64_t width,
                   T* dst) const {
    const PackPanel<T> pack = PackerOf(micro_, p_.kernel_type, swapped_);
    if (pack && spread_taps_ && kc == k_) return PackSpreadWeights(pack, kernel, base, count, width, dst);
    for (int64_t k = 0; k < kc;) {
      const int64_t tap = (k0 + k) / tap_k_, feature = (k0 + k) % tap_k_;
      const int64_t from = base + taps_.kernel_offset[tap] + feature * p_.kernel_in_stride;
      const int64_t elements = std::min(tap_k_ - feature, kc - k), real = std::min(elements, p_.in_features - feature);
      T* to = dst + k / micro_.group * width;
      if (pack) {
        pack(kernel + from * Bytes(p_.kernel_type), p_.kernel_out_stride, p_.kernel_in_stride, count, real, width, to);
      } else {
        for (int64_t c = 0; c < elements; ++c)
          for (int64_t v = 0; v < width; ++v)
            StoreInPanel(micro_, to, width, c, v,
                         v < count && c < real ? LoadAs<T>(p_.kernel_type, kernel,
                                                           from + v * p_.kernel_out_stride + c * p_.kernel_in_stride)
                                               : T(0));
      }
      k += elements;
    }
  }

  // All of the panel. The taps of a feature follow each other in memory, so that no tap alone can be read along
  // anything.
  void PackSpreadWeights(PackPanel<T> pack, const uint8_t* kernel, int64_t base, int64_t count, int64_t width,
                         T* dst) const {
    const T* from = reinterpret_cast<const T*>(kernel) + base + tap_low_;
    if (p_.kernel_in_stride == tap_stride_) return TurnWeights(pack, from, count, width, dst);
    constexpr int64_t kAhead = 8;  // a feature's kernels lie far from the next one's
    alignas(64) T turned[kSpreadElements + kPanelSlack];
    for (int64_t i = 0; i < p_.in_features; ++i, from += p_.kernel_in_stride) {
      if (i + kAhead < p_.in_features) FetchRows<false>(from + kAhead * p_.kernel_in_stride, 0, 1, tap_stride_ * count);
      pack(from, tap_stride_, 1, count, tap_span_, width, turned);
      for (int64_t tap = 0; tap < taps_.count; ++tap)
        std::memcpy(dst + (tap * p_.in_features + i) * width, turned + (taps_.kernel_offset[tap] - tap_low_) * width,
                    width * sizeof(T));
    }
  }
  // Of OIHW: pieces that are contiguous along features and taps are turned, and their rows dealt out.
  void TurnWeights(PackPanel<T> pack, const T* from, int64_t count, int64_t width, T* dst) const {
    alignas(64) T turned[kSpreadElements + kPanelSlack];
    const int64_t most = std::max<int64_t>(kSpreadElements / (tap_stride_ * width), 1);
    for (int64_t first = 0, n; first < p_.in_features; first += n) {
      n = std::min(most, p_.in_features - first);
      pack(from + first * tap_stride_, p_.kernel_out_stride, 1, count, (n - 1) * tap_stride_ + tap_span_, width,
           turned);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t tap = 0; tap < taps_.count; ++tap)
          std::memcpy(dst + (tap * p_.in_features + first + i) * width,
                      turned + (i * tap_stride_ + taps_.kernel_offset[tap] - tap_low_) * width, width * sizeof(T));
    }
  }

  ConvProblem p_;
  Taps taps_;
  const MicroTable<T>& micro_;
  std::optional<Panels<T>> panels_;  // instead of blocks
  BlockShape block_;
  std::vector<Dim> dims_;
  std::vector<DimOffsets> offsets_;
  PositionTiles position_tiles_;      // if indirect
  std::vector<int64_t> tap_offsets_;  // from the origin of a window that lies inside
  int rank_ = 0, first_merged_ = 0;
  int64_t groups_ = 1, features_ = 1, outer_ = 1, positions_ = 1, k_ = 0, tap_k_ = 1, down_ = 1, across_ = 1;
  int64_t row_taps_ = 1, rows_bytes_ = 0;
  int64_t block_rows_ = 0;                    // of a task by columns
  int64_t flags_at_ = 0;                      // in the shared memory, behind the panels
  int64_t fetched_ = 0, fetch_distance_ = 0;  // elements of the input: for each position; ahead of it
  struct Inside {
    int64_t begin, end;  // positions whose windows lie inside
    int64_t origin, step;
  };
  std::vector<Inside> inside_;  // by slot
  bool swapped_ = false, indirect_ = false, in_place_ = false, fetches_c_ = false;
  bool even_ = false;                                    // all positions of the output lie at a constant distance
  bool spread_taps_ = false;                             // the kernel's are what is contiguous in memory
  int64_t tap_stride_ = 0, tap_low_ = 0, tap_span_ = 0;  // then: of neighbouring features; the taps among them
  std::vector<T> zeros_;                                 // what is outside, if indirect
};

// Four bytes at once; null if that does not suit.
std::shared_ptr<const Conv> MakeOfBytes(const ConvProblem& p, const GemmIsa& isa) {
  const auto is_byte = [](ElementType type) {
    return PackSourceOf(type) == PackSource::S8 || PackSourceOf(type) == PackSource::U8;
  };
  if (isa.quads.mr == 0 || !is_byte(p.input_type) || !is_byte(p.kernel_type)) return nullptr;
  auto conv = std::make_shared<GemmConv<int32_t>>(p, isa.quads);
  const bool fits = conv->has_panels() && PackSourceOf(conv->b_type()) == PackSource::S8;
  return fits ? conv : nullptr;
}

template <class T>
std::shared_ptr<const Conv> Make(const ConvProblem& p, const GemmIsa& isa) {
  if constexpr (std::is_same_v<T, int32_t>) {
    if (std::shared_ptr<const Conv> conv = MakeOfBytes(p, isa)) return conv;
  }
  return std::make_shared<GemmConv<T>>(p, MicroOf<T>(isa, p.input_type, p.kernel_type));
}

}  // namespace

Result<std::shared_ptr<const Conv>> MakeProductConv(const ConvProblem& p, const GemmIsa& isa) {
  if (const int dilated = DilatedDim(p); dilated >= 0) return MakePhasedConv(p, dilated, isa, &MakeProductConv);
  return Make<float>(p, isa);
}

Result<std::shared_ptr<const Conv>> Conv::Create(const ConvProblem& p, const GemmIsa& isa) {
  if (p.spatial.size() > 8)
    return Unimplemented("convolution with ", p.spatial.size(), " spatial dimensions; at most 8");
  if (std::shared_ptr<const Conv> conv = MakePointsConv(p, isa)) return conv;
  if (std::shared_ptr<const Conv> conv = MakeChannelsLastConv(p, isa)) return conv;
  if (const int dilated = DilatedDim(p); dilated >= 0) return MakePhasedConv(p, dilated, isa, &Conv::Create);
  if (IsDepthwiseByRows(p)) return MakeDepthwiseRowsConv(p, isa);
  if (IsDepthwiseGradient(p)) return MakeDepthwiseGradientConv(p, isa);
  if (IsDepthwise(p)) {
    std::shared_ptr<const Conv> planar = p.input_feature_stride > 1 ? MakePlanarConv(p, isa) : nullptr;
    if (planar) return planar;
    return MakeDepthwiseConv(p, isa);
  }
  if (std::shared_ptr<const Conv> conv = MakeRunsConv(p, isa)) return conv;
  if (SumsOverImages(p)) return MakeKernelGradientConv(p, isa);
  if (std::shared_ptr<const Conv> conv = MakePlanarSums(p, isa)) return conv;
  if (std::shared_ptr<const Conv> conv = MakeGradientPanels(p, isa)) return conv;
  if (std::shared_ptr<const Conv> conv = MakePlanarConv(p, isa)) return conv;
  switch (GemmAccumulator(p.input_type, p.kernel_type, p.output_type)) {
    case ElementType::F32: return Make<float>(p, isa);
    case ElementType::F64: return Make<double>(p, isa);
    case ElementType::S32: return Make<int32_t>(p, isa);
    case ElementType::S64: return Make<int64_t>(p, isa);
    default:
      return Unimplemented("convolution of ", Name(p.input_type), " and ", Name(p.kernel_type), " to ",
                           Name(p.output_type));
  }
}

}  // namespace strop::cpu
