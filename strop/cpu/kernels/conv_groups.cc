// Convolutions of many groups of few features that lie side by side (NHWC; ResNeXt): patches are read where they lie,
// as in conv_indirect.cc, and a tile of positions is multiplied with the kernels of one group after the other, so that
// what lies side by side in memory is read together and the addresses of the taps are the same for all groups.
//
// Planes (conv_planar.cc) would spend more time on copies than on products (8x28x28x256 by 3x3 in 32 groups ran at half
// of the processor's peak), and a product of matrices a group at a time reads pixels in pieces, and fills its tables
// for one panel of columns: 512 features in 32 groups ran at a fifth.
#include <algorithm>
#include <span>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_fetch.h"
#include "strop/cpu/kernels/conv_patch_tables.h"
#include "strop/cpu/kernels/conv_positions.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSumElements = 256;        // summed in registers before they are added to what was before
constexpr int64_t kCachedWeights = 3 << 15;  // elements, of the groups of a task
constexpr int64_t kTaskProducts = 1 << 20;   // of a task, at least
constexpr int64_t kEnoughTasks = 32;
constexpr int64_t kLeastFeatures = 4;  // of a tap
constexpr int64_t kManyGroups = 16;
constexpr int64_t kLeastProducts = 1 << 19;

template <class T>
class GroupsConv final : public Conv {
 public:
  // Of what SuitsGroups().
  GroupsConv(const ConvProblem& p, const MicroTable<T>& micro, int width)
      : p_(p),
        micro_(micro),
        positions_(p_),
        features_(p.out_features / p.feature_groups),
        kernel_(width),
        width_(micro.lanes << width >> 1),
        pairs_(features_ == width_ && (width == 0 || !micro.group_indirect[0][width - 1])),
        tables_(p_, positions_, std::min<int>(micro.mr, kGroupRows), RowsATask()),
        fetcher_(p_, positions_, Positions(), std::min<int>(micro.mr, kGroupRows),
                 GroupsATask() == p.feature_groups ? p.in_features * p.feature_groups : 0) {
    const int64_t rows = RowsATask();
    down_ = CeilDiv(Positions(), rows);
    rows_ = CeilDiv(Positions(), down_);
    across_ = CeilDiv(p.feature_groups, GroupsATask());
    num_tasks_ = down_ * across_;
    prepare_tasks_ = p.feature_groups;
    flags_at_ = RoundUp(p.feature_groups * GroupElements() * kSize + kCarverSlack, 64);
    shared_bytes_ = flags_at_ + prepare_tasks_;
    scratch_bytes_ =
        2 * kCarverSlack + rows_ * (positions_.taps().count * static_cast<int64_t>(sizeof(T*)) + sizeof(PositionTile));
    tiles_ = StrCat("groups, patches where they lie, ", rows_, " positions of ", GroupsATask(), " groups a task, ",
                    std::min<int>(micro.mr, kGroupRows), "x", width_, " in registers");
  }

  // A task packs the kernel of a group: [panel][tap][in_feature][width_].
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    const Taps& taps = positions_.taps();
    const PackPanel<T> pack = PackerOf(micro_, ElementTypeOf<T>());
    for (int64_t group = begin; group < end; ++group) {
      T* const panels = Weights(call, group);
      T* to = panels;
      for (int64_t f = 0; f < features_; f += width_)
        for (int64_t tap = 0; tap < taps.count; ++tap, to += p_.in_features * width_)
          pack(static_cast<const T*>(call.kernel) + (group * features_ + f) * p_.kernel_out_stride +
                   taps.kernel_offset[tap],
               p_.kernel_out_stride, p_.kernel_in_stride, width_, p_.in_features, width_, to);
      Flags(call)[group] = micro_.all_finite(to - panels, panels);
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) Task(call, begin, scratch);
  }

 private:
  static constexpr int64_t kSize = sizeof(T);

  int64_t Positions() const {
    int64_t positions = 1;
    for (const ConvPositions::Dim& d : positions_.dims()) positions *= d.size;
    return positions;
  }
  int64_t GroupElements() const {  // of packed weights
    return RoundUp(positions_.taps().count * p_.in_features * features_, 16) + kPanelSlack;
  }
  int64_t GroupsATask() const {
    const int64_t most = std::clamp<int64_t>(kCachedWeights / GroupElements(), 1, p_.feature_groups);
    return CeilDiv(p_.feature_groups, CeilDiv(p_.feature_groups, most));
  }
  int64_t RowsATask() const {
    const int64_t products = positions_.taps().count * p_.in_features * features_ * GroupsATask();
    const int64_t even = CeilDiv(Positions() * CeilDiv(p_.feature_groups, GroupsATask()), kEnoughTasks);
    return RoundUp(std::max(CeilDiv(kTaskProducts, products), even), kGroupRows);
  }
  T* Weights(const ConvCall& call, int64_t group) const {
    return Carver(call.shared).Take<T>(0) + group * GroupElements();
  }
  // One for each group: are all of its weights finite?
  uint8_t* Flags(const ConvCall& call) const { return static_cast<uint8_t*>(call.shared) + flags_at_; }

  void Task(const ConvCall& call, int64_t task, void* scratch) const {
    const int64_t first_group = task / down_ * GroupsATask();
    const int64_t groups = std::min(GroupsATask(), p_.feature_groups - first_group);
    const int64_t m0 = task % down_ * rows_, rows = std::min(rows_, Positions() - m0);
    const int64_t taps = positions_.taps().count;
    Carver carver(scratch);
    const T** table = carver.Take<const T*>(rows_ * taps);
    PositionTile* tiles = carver.Take<PositionTile>(rows_);
    const uint8_t* flags = Flags(call) + first_group;
    const bool skips = std::all_of(flags, flags + groups, [](uint8_t finite) { return finite != 0; });
    const int64_t count = tables_.Cut(m0, rows, tiles);
    const T* input = static_cast<const T*>(call.input);
    Dealer dealer(m0, rows, std::span(tiles, count));
    for (const PositionTile& tile : std::span(tiles, count)) {
      tables_.Fill(m0, tile, input, skips, table);
      const auto [begin, end] = dealer.Next(tile);
      for (int64_t g = 0; g < groups;) {
        const bool pair = pairs_ && g + 1 < groups;
        Multiply(call, m0, tile, table, first_group + g, pair);
        for (const int64_t next = g + 1 + pair; g < next; ++g) fetcher_.Fetch(input, begin, end, g, groups);
      }
    }
  }

  void Multiply(const ConvCall& call, int64_t m0, const PositionTile& tile, const T* const* table, int64_t group,
                bool pair) const {
    const int64_t taps = positions_.taps().count, stride = positions_.dims().back().stride;
    const int64_t at_once = std::max<int64_t>(kSumElements / p_.in_features, 1);
    const GroupKernel<T> kernel =
        pair ? micro_.group_pairs[tile.count - 1] : micro_.group_indirect[tile.count - 1][kernel_];
    const T* weights = Weights(call, group);
    T* to = static_cast<T*>(call.output) + (m0 + tile.first) * stride + group * features_;
    for (int64_t f = 0; f < features_; f += width_, to += width_)
      for (int64_t tap = 0; tap < taps; tap += at_once) {
        const int64_t parts = std::min(at_once, taps - tap);
        kernel(parts, p_.in_features, table + tap * tile.count, group * p_.in_features, weights, GroupElements(), to,
               stride * tile.step, tap > 0);
        weights += parts * p_.in_features * width_;
      }
  }

  const ConvProblem p_;
  const MicroTable<T>& micro_;
  const ConvPositions positions_;
  const int64_t features_;  // of a group
  const int kernel_;        // by its width
  const int64_t width_;     // of a panel
  const bool pairs_;        // groups are multiplied two at a time: sums of one alone would wait for each other
  const PatchTables<T> tables_;
  const InputFetcher<T> fetcher_;
  int64_t down_ = 1, rows_ = 1, across_ = 1;
  int64_t flags_at_ = 0;  // in the shared memory, behind the weights
};

// Do all positions of the output lie at one distance?
bool IsEven(const ConvProblem& p) {
  int64_t stride = p.out_features;
  for (size_t d = p.spatial.size(); d-- > 0;) {
    if (p.spatial[d].output_stride != stride) return false;
    stride *= p.spatial[d].output;
  }
  return p.batch == 1 || p.output_batch_stride == stride;
}

template <class T>
std::shared_ptr<const Conv> MakeOf(const ConvProblem& p, const GemmIsa& isa) {
  const MicroTable<T>& micro = MicroOf<T>(isa);
  const int64_t features = p.out_features / p.feature_groups;
  // Of wide groups, unless they are many, the rows of registers are better filled one group at a time.
  if (features >= micro.nr && p.feature_groups < kManyGroups) return nullptr;
  for (int width = kGroupWidths; width-- > 0;)
    if (micro.group_indirect[0][width] && features % (micro.lanes << width >> 1) == 0)
      return std::make_shared<GroupsConv<T>>(p, micro, width);
  return nullptr;
}

}  // namespace

std::shared_ptr<const Conv> MakeGroupsConv(const ConvProblem& p, const GemmIsa& isa) {
  if (p.input_type != p.kernel_type || p.input_type != p.output_type || p.feature_groups < 2 || p.spatial.empty() ||
      p.input_feature_stride != 1 || p.output_feature_stride != 1 || p.in_features < kLeastFeatures || !IsEven(p))
    return nullptr;
  int64_t products = p.batch * p.out_features * p.in_features;
  for (const ConvSpatialDim& d : p.spatial) products *= d.output * d.kernel;
  if (products < kLeastProducts) return nullptr;
  switch (p.input_type) {
    case ElementType::F32: return MakeOf<float>(p, isa);
    case ElementType::F64: return MakeOf<double>(p, isa);
    default: return nullptr;
  }
}

}  // namespace strop::cpu
