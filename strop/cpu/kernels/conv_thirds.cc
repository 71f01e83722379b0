// Convolutions of f32 by instructions that multiply bf16 (GemmIsa::thirds).
//
// A task takes the part of an image that it needs apart once, into lines that the instruction reads, in memory of its
// own: [step][remainders of the stride][position][line], with the padding around. So the windows of positions that
// follow each other lie at one distance for every tap, and nothing is gathered. Along rows these positions go on
// through the padding: what is computed there is not stored. Steps are 32 features of a tap, those of all taps before
// the next features, since neighbouring taps read the same lines. Sums of all tiles of a task go through blocks of a
// few of them, whose weights stay in the first-level cache meanwhile.
#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "strop/base/host_limits.h"
#include "strop/cpu/kernels/conv_panels.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kLeastFeatures = 32;   // of the output: an image is taken apart for all of them
constexpr int64_t kMostTaps = 128;       // gradients of kernels have more
constexpr int64_t kLeastPositions = 12;  // of an image
constexpr int64_t kManyPositions = 96;   // of all: weights are taken apart for them
constexpr int64_t kOwnTiles = 24;        // of a task that packs its weights for itself, whatever others do
// That sums go through at a time; of wide windows, which read more lines, fewer.
constexpr int64_t kBlockSteps = 4, kWideWindow = 4, kStepsOfWide = 3;
constexpr int64_t kSums = 1 << 18;        // of a task, that the second-level cache holds
constexpr int64_t kImageUnits = 1 << 18;  // of what it takes apart, the same
constexpr int64_t kTasksOfProcessor = 4;
constexpr int64_t kWeightyOfProcessor = 1;   // where weights are more than the images
constexpr int64_t kTaskProducts = 1 << 22;   // at least
constexpr int64_t kLeastProducts = 1 << 24;  // of all
constexpr int64_t kPrepareSteps = 16;        // of a panel of weights, packed by a task
constexpr int kDims = 3;

// A dimension of the image as its windows read it.
struct Side {
  int64_t outputs = 1, input = 1, stride = 1, pad = 0;
  std::vector<int64_t> remainder, column;  // by tap: which of `remainders`, and how many columns further
  std::vector<int64_t> remainders;         // of the stride, that taps read
  int64_t reach = 0;                       // columns behind the last output's own

  explicit Side(const ConvSpatialDim& d = {}) : outputs(d.output), input(d.input), stride(d.stride), pad(d.pad_low) {
    for (int64_t w = 0; w < d.kernel; ++w) {
      const int64_t at = (d.reversal ? d.kernel - 1 - w : w) * d.window_dilation, rest = at % stride;
      const auto found = std::find(remainders.begin(), remainders.end(), rest);
      remainder.push_back(found - remainders.begin());
      if (found == remainders.end()) remainders.push_back(rest);
      column.push_back(at / stride);
      reach = std::max(reach, at / stride);
    }
  }
  int64_t num_remainders() const { return static_cast<int64_t>(remainders.size()); }
};

class ThirdsConv final : public Conv {
 public:
  ThirdsConv(const ConvProblem& p, std::shared_ptr<const ConvProduct<float>> whole, const GemmIsa& isa)
      : p_(p),
        micro_(isa.thirds),
        taps_(p_),
        whole_(std::move(whole)),
        weights_(p_, taps_, micro_, RoundUp(p.in_features, micro_.Quantum()), false),
        tap_steps_(CeilDiv(p.in_features, micro_.Quantum())),
        steps_(taps_.count * tap_steps_),
        panels_(CeilDiv(p.out_features, micro_.nr)),
        run_(static_cast<int>(p.spatial.size()) - 1),
        block_steps_(p.spatial.back().kernel >= kWideWindow ? kStepsOfWide : kBlockSteps) {
    for (size_t d = 0; d < p_.spatial.size(); ++d) sides_[d] = Side(p_.spatial[d]);
    Cut();
    packs_own_ = groups_ == 1 || Tiles(rows_) * images_ >= kOwnTiles;
    if (!packs_own_) {
      prepare_tasks_ = panels_ * CeilDiv(steps_, kPrepareSteps);
      shared_bytes_ = panels_ * PanelUnits() * kUnit + kCarverSlack;
    }
    num_tasks_ = groups_ * across_;
    scratch_bytes_ = (ImageUnits(rows_) * images_ + TileSums(rows_) * images_ * PanelsOfTask()) * kUnit +
                     (kStep * micro_.mr + 2 * block_steps_ * StepUnits()) * kUnit + RepairBytes(isa.f32, whole_->k()) +
                     6 * kCarverSlack;
    tiles_ = StrCat("in three parts of bf16, windows of images taken apart, ", images_, "x", rows_,
                    " rows a task, features by ", PanelsOfTask() * micro_.nr);
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    const int64_t pieces = CeilDiv(steps_, kPrepareSteps);
    for (; begin < end; ++begin) {
      const int64_t panel = begin / pieces, step = begin % pieces * kPrepareSteps;
      PackWeights(call, panel, step, std::min(kPrepareSteps, steps_ - step),
                  Weights(call) + panel * PanelUnits() + StepUnits() * step);
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const KernelScope kernels(micro_);
    for (; begin < end; ++begin) {
      const int64_t group = begin / across_, part = begin % across_;
      Task(call, group * units_ / groups_, (group + 1) * units_ / groups_, part * panels_ / across_,
           (part + 1) * panels_ / across_, scratch);
    }
  }

 private:
  static constexpr int64_t kUnit = sizeof(float);
  static constexpr int64_t kStep = 48;  // units of a line, and of a step of a panel

  // Rows [row, row + rows) of an image's output, along the first dimension.
  struct Unit {
    int64_t image, row, rows;
  };
  Unit UnitAt(int64_t unit) const {
    const int64_t n = unit % cuts_, begin = n * sides_[0].outputs / cuts_, end = (n + 1) * sides_[0].outputs / cuts_;
    return {unit / cuts_, begin, end - begin};
  }

  void PackWeights(const ConvCall& call, int64_t panel, int64_t step, int64_t steps, float* to) const {
    const int64_t first = panel * micro_.nr, quantum = micro_.Quantum();
    for (const int64_t end = step + steps; step < end; ++step, to += StepUnits())
      weights_.Pack(static_cast<const uint8_t*>(call.kernel), first * p_.kernel_out_stride,
                    std::min<int64_t>(micro_.nr, p_.out_features - first),
                    (step % taps_.count * tap_steps_ + step / taps_.count) * quantum, quantum, micro_.nr, to);
  }

  int64_t StepUnits() const { return kStep * micro_.nr; }
  int64_t PanelUnits() const { return steps_ * StepUnits(); }
  int64_t PanelsOfTask() const { return CeilDiv(panels_, across_); }
  float* Weights(const ConvCall& call) const { return Carver(call.shared).Take<float>(0); }
  // Columns of the lines of a unit of so many rows, by dimension.
  int64_t Columns(int d, int64_t rows) const { return (d == 0 ? rows : sides_[d].outputs) + sides_[d].reach; }
  int64_t Plane(int64_t rows) const { return Columns(0, rows) * Columns(1, rows) * Columns(2, rows); }
  int64_t Planes() const {
    return sides_[0].num_remainders() * sides_[1].num_remainders() * sides_[2].num_remainders();
  }
  int64_t ImageUnits(int64_t rows) const { return tap_steps_ * Planes() * Plane(rows) * kStep; }
  // Positions from the first to the last one, with those between that are none.
  int64_t Positions(int64_t rows) const {
    return ((rows - 1) * Columns(1, rows) + sides_[1].outputs - 1) * Columns(2, rows) + sides_[2].outputs;
  }
  int64_t Tiles(int64_t rows) const { return CeilDiv(Positions(rows), micro_.mr); }
  int64_t TileSums(int64_t rows) const { return Tiles(rows) * micro_.mr * micro_.nr; }  // of a panel of features

  // Where weights are more than the images, features are dealt out; else parts of images, or some of them.
  void Cut() {
    static const int64_t cpus = UsableCpus();
    const int64_t outputs = sides_[0].outputs;
    const int64_t products = Positions(outputs) * p_.batch * p_.out_features * steps_ * micro_.Quantum();
    int64_t tasks = std::clamp<int64_t>(products / kTaskProducts, 1, kTasksOfProcessor * cpus);
    const bool weighty = panels_ * PanelUnits() > ImageUnits(outputs) * p_.batch;
    if (weighty) across_ = tasks = std::min({tasks, kWeightyOfProcessor * cpus, panels_});
    const auto fits = [&](int64_t rows, int64_t images) {
      return images * TileSums(rows) * PanelsOfTask() <= kSums && images * ImageUnits(rows) <= kImageUnits;
    };
    while (!fits(1, 1) && across_ < panels_) ++across_;
    cuts_ = std::clamp<int64_t>(CeilDiv(CeilDiv(tasks, across_), p_.batch), 1, outputs);
    while (cuts_ < outputs && !fits(CeilDiv(outputs, cuts_), 1)) ++cuts_;
    rows_ = CeilDiv(outputs, cuts_);
    units_ = cuts_ * p_.batch;
    images_ = std::max<int64_t>(units_ * across_ / tasks, 1);
    while (images_ > 1 && !fits(rows_, images_)) --images_;
    groups_ = CeilDiv(units_, images_);
    groups_ = std::min(RoundUp(groups_ * across_, cpus) / across_, units_);
    images_ = CeilDiv(units_, groups_);
  }

  // Lines of the unit, from `lines` on.
  void TakeApart(const ConvCall& call, const Unit& unit, float* lines) const {
    const int run = run_;
    const int64_t plane = Plane(unit.rows), columns = Columns(run, unit.rows), step_units = Planes() * plane * kStep;
    const float* const image = static_cast<const float*>(call.input) + unit.image * p_.input_batch_stride;
    int64_t lengths[kDims] = {1, 1, 1};  // what is gone through in front of a run: remainders, and columns
    for (int d = 0; d < run; ++d) lengths[d] = Columns(d, unit.rows);
    for (int64_t r = 0; r < Planes(); ++r) {
      const int64_t rest[kDims] = {r / sides_[2].num_remainders() / sides_[1].num_remainders(),
                                   r / sides_[2].num_remainders() % sides_[1].num_remainders(),
                                   r % sides_[2].num_remainders()};
      float* to = lines + r * plane * kStep;
      for (int64_t n = 0; n < lengths[0] * lengths[1]; ++n, to += columns * kStep) {
        const int64_t at[kDims] = {n / lengths[1], n % lengths[1], 0};
        const float* from = image;
        bool inside = true;
        for (int d = 0; d < run; ++d) {
          const int64_t i = InputAt(d, unit, at[d], rest[d]);
          inside = inside && i >= 0 && i < sides_[d].input;
          from += i * p_.spatial[d].input_stride;
        }
        TakeRowApart(from, unit, run, rest[run], inside ? columns : 0, columns, step_units, to);
      }
    }
  }

  // Of the unit's columns: which element of the input one is.
  int64_t InputAt(int d, const Unit& unit, int64_t column, int64_t rest) const {
    const Side& side = sides_[d];
    return ((d == 0 ? unit.row : 0) + column) * side.stride + side.remainders[rest] - side.pad;
  }

  // The first `inside` of the columns of a row, as far as they are elements of the input; zeros otherwise.
  void TakeRowApart(const float* row, const Unit& unit, int d, int64_t rest, int64_t inside, int64_t columns,
                    int64_t step_units, float* to) const {
    const Side& side = sides_[d];
    const int64_t first = InputAt(d, unit, 0, rest);
    const int64_t begin = std::clamp<int64_t>(CeilDiv(std::max<int64_t>(-first, 0), side.stride), 0, inside);
    const int64_t end =
        std::clamp<int64_t>(CeilDiv(std::max<int64_t>(side.input - first, 0), side.stride), begin, inside);
    const int64_t distance = p_.spatial[d].input_stride;
    const auto pack = micro_.pack_a[static_cast<int>(PackSource::F32)];
    for (int64_t s = 0; s < tap_steps_; ++s, to += step_units) {
      const int64_t feature = s * micro_.Quantum(), some = std::min(micro_.Quantum(), p_.in_features - feature);
      std::memset(to, 0, begin * kStep * kUnit);
      if (end > begin)
        pack(row + (first + begin * side.stride) * distance + feature * p_.input_feature_stride, side.stride * distance,
             p_.input_feature_stride, end - begin, some, end - begin, to + begin * kStep);
      std::memset(to + end * kStep, 0, (columns - end) * kStep * kUnit);
    }
  }

  // Where each step's lines lie, from those of a window's first position on.
  void Offsets(int64_t rows, std::vector<int64_t>& offsets) const {
    const int64_t plane = Plane(rows), x1 = Columns(1, rows), x2 = Columns(2, rows);
    offsets.resize(steps_);
    const size_t rank = p_.spatial.size();
    for (int64_t tap = 0; tap < taps_.count; ++tap) {
      int64_t w[kDims] = {};
      for (size_t d = 0; d < rank; ++d) w[d] = taps_.index[tap * rank + d];
      int64_t r = 0;
      for (int d = 0; d < kDims; ++d) r = r * sides_[d].num_remainders() + sides_[d].remainder[w[d]];
      const int64_t at =
          r * plane + (sides_[0].column[w[0]] * x1 + sides_[1].column[w[1]]) * x2 + sides_[2].column[w[2]];
      for (int64_t s = 0; s < tap_steps_; ++s) offsets[s * taps_.count + tap] = (s * Planes() * plane + at) * kStep;
    }
  }

  void Task(const ConvCall& call, int64_t begin, int64_t end, int64_t first_panel, int64_t end_panel,
            void* scratch) const {
    Carver carver(scratch);
    // Behind the lines there may be some that are read and mean nothing.
    float* const lines = carver.Take<float>(ImageUnits(rows_) * images_ + kStep * micro_.mr);
    float* const sums = carver.Take<float>(TileSums(rows_) * images_ * PanelsOfTask());
    float* own = carver.Take<float>(block_steps_ * StepUnits());
    float* next = carver.Take<float>(block_steps_ * StepUnits());
    void* const repair = carver.Take<uint8_t>(0);
    for (int64_t u = begin; u < end; ++u) TakeApart(call, UnitAt(u), lines + (u - begin) * ImageUnits(rows_));
    std::vector<int64_t> offsets;
    int64_t rows = 0;
    Block block = {0, first_panel};
    if (packs_own_) PackWeights(call, block.panel, block.step, StepsOf(block), own);
    while (block.step < steps_) {
      Block after = {block.step, block.panel + 1};
      if (after.panel == end_panel) after = {block.step + block_steps_, first_panel};
      const float* weights = packs_own_ ? own : Weights(call) + block.panel * PanelUnits() + block.step * StepUnits();
      // The next weights are packed meanwhile.
      const float* first_rows[kBlockSteps];
      PackAhead packs;
      if (packs_own_ && after.step < steps_) packs = AheadOf(call, after, first_rows, next);
      const int64_t units_to_pack = packs.count;
      int64_t tile = 0, tiles = 0;
      for (int64_t u = begin; u < end; ++u) tiles += Tiles(UnitAt(u).rows);
      for (int64_t u = begin; u < end; ++u) {
        const Unit unit = UnitAt(u);
        if (unit.rows != rows) Offsets(rows = unit.rows, offsets);
        const auto share = [&](int64_t n) {
          packs.first = units_to_pack * (tile + n) / tiles;
          packs.count = units_to_pack * (tile + n + 1) / tiles - packs.first;
          return packs;
        };
        Multiply(call, unit, block, offsets, weights, lines + (u - begin) * ImageUnits(rows_),
                 sums + ((block.panel - first_panel) * images_ + u - begin) * TileSums(rows_), share, repair);
        tile += Tiles(unit.rows);
      }
      if (packs_own_ && after.step < steps_) {
        if (units_to_pack == 0) PackWeights(call, after.panel, after.step, StepsOf(after), next);
        std::swap(own, next);
      }
      block = after;
    }
  }

  // Steps from `step` on, by a panel of features.
  struct Block {
    int64_t step, panel;
  };
  int64_t StepsOf(const Block& block) const { return std::min(block_steps_, steps_ - block.step); }

  // The weights of a block as kernels pack them meanwhile: of whole steps and panels, whose features are neighbours.
  PackAhead AheadOf(const ConvCall& call, const Block& block, const float** first_rows, float* to) const {
    const int64_t nr = micro_.nr, quantum = micro_.Quantum();
    if (p_.kernel_out_stride != 1 || p_.in_features % quantum != 0 || (block.panel + 1) * nr > p_.out_features)
      return {};
    PackAhead packs;
    packs.num_steps = StepsOf(block), packs.row_stride = p_.kernel_in_stride, packs.to = to, packs.steps = first_rows;
    packs.count = packs.num_steps * quantum / 2;
    for (int64_t s = 0; s < packs.num_steps; ++s) {
      const int64_t tap = (block.step + s) % taps_.count, feature = (block.step + s) / taps_.count * quantum;
      first_rows[s] = static_cast<const float*>(call.kernel) + taps_.kernel_offset[static_cast<size_t>(tap)] +
                      feature * p_.kernel_in_stride + block.panel * nr;
    }
    return packs;
  }

  // All tiles of a unit by a block of a panel of weights.
  template <class Share>
  void Multiply(const ConvCall& call, const Unit& unit, const Block& block, const std::vector<int64_t>& offsets,
                const float* weights, const float* lines, float* sums, const Share& share, void* repair) const {
    const int64_t nr = micro_.nr, mr = micro_.mr, positions = Positions(unit.rows), step = block.step;
    const int64_t features = std::min(nr, p_.out_features - block.panel * nr);
    const bool wide = features > nr / 2, last = step + block_steps_ >= steps_;
    StepTile<float> tile;
    tile.units = StepsOf(block) * kStep;
    tile.a_stride = kStep, tile.a_offsets = offsets.data() + step;
    tile.b = weights, tile.b_stride = nr;
    tile.stride = tile.before_stride = wide ? nr : nr / 2;
    tile.ends = last;
    for (int64_t q = 0; q < positions; q += mr, sums += mr * nr) {
      tile.rows = std::min(mr, positions - q);
      tile.a = lines + q * kStep;
      tile.before = step > 0 ? sums : nullptr;
      tile.to = sums;
      tile.packs = share(q / mr);
      const bool numbers = micro_.steps[wide](tile);
      if (last) Store(call, unit, q, tile.rows, block.panel * nr, features, numbers, sums, tile.stride, repair);
    }
  }

  // Runs of positions, of those from q on that are some.
  void Store(const ConvCall& call, const Unit& unit, int64_t q, int64_t rows, int64_t feature, int64_t features,
             bool numbers, float* sums, int64_t stride, void* repair) const {
    const int64_t x1 = Columns(1, unit.rows), x2 = Columns(2, unit.rows);
    const int run = run_;
    const int64_t columns = run == 0 ? rows + 1 : Columns(run, unit.rows);  // of a run, as positions go on
    for (int64_t r = 0, n; r < rows; r += n) {
      const int64_t at[kDims] = {(q + r) / x2 / x1, (q + r) / x2 % x1, (q + r) % x2};
      n = run == 0 ? rows - r : std::min(rows - r, columns - at[run]);
      bool inside = true;
      for (int d = 1; d < run; ++d) inside = inside && at[d] < sides_[d].outputs;
      const int64_t some = !inside ? 0 : run == 0 ? n : std::min(n, sides_[run].outputs - at[run]);
      if (some <= 0) continue;
      if (!numbers) Repair(call, unit, at, some, feature, features, sums + r * stride, stride, repair);
      int64_t offset = unit.image * p_.output_batch_stride;
      for (int d = 0; d <= run; ++d) offset += ((d == 0 ? unit.row : 0) + at[d]) * p_.spatial[d].output_stride;
      const StoreTarget target{p_.output_type, static_cast<uint8_t*>(call.output) + offset * Bytes(p_.output_type),
                               p_.spatial[run].output_stride, p_.output_feature_stride};
      StoreTile<float>(target, 0, feature, some, features, sums + r * stride, stride, false);
    }
  }

  // As the implicit product of f32 has them: at once if it numbers positions along a run as they follow each other.
  void Repair(const ConvCall& call, const Unit& unit, const int64_t (&at)[kDims], int64_t positions, int64_t feature,
              int64_t features, float* sums, int64_t stride, void* memory) const {
    const ConvOperands<float> operands(*whole_, call);
    const std::vector<ConvPositions::Dim>& dims = whole_->positions().dims();
    const int64_t together = dims.back().slot == run_ + 1 ? positions : 1;
    for (int64_t i = 0; i < positions; i += together, sums += together * stride) {
      int64_t position = 0;
      for (const ConvPositions::Dim& dim : dims) {
        const int d = dim.slot - 1;
        const int64_t index = d < 0 ? unit.image : at[d] + (d == 0 ? unit.row : 0) + (d == run_ ? i : 0);
        position = position * dim.size + index;
      }
      const auto pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
        operands.PackA(0, position + first, count, k0, kc, width, dst);
      };
      const auto pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
        operands.PackB(0, feature + first, count, k0, kc, width, dst);
      };
      RepairSums(whole_->micro(), together, features, whole_->k(), pack_a, pack_b, sums, stride, memory);
    }
  }

 public:
  // Do images that are cut come to so little that the second-level cache holds what a task takes apart?
  bool fits() const { return ImageUnits(rows_) * images_ <= 2 * kImageUnits; }

 private:
  const ConvProblem p_;
  const MicroTable<float>& micro_;
  const Taps taps_;
  const std::shared_ptr<const ConvProduct<float>> whole_;  // in f32
  const WeightPacker<float> weights_;
  const int64_t tap_steps_, steps_, panels_;  // steps of a tap, and of a window; panels of features
  const int run_;                             // the last dimension, along which positions follow each other
  const int64_t block_steps_;
  std::array<Side, kDims> sides_;
  int64_t cuts_ = 1, rows_ = 1;  // of an image, along its first dimension: into units
  int64_t units_ = 1;            // of all images
  int64_t images_ = 1;           // units of a task, at most
  int64_t groups_ = 1;           // of units: tasks of a part of the features
  int64_t across_ = 1;           // parts of the features
  bool packs_own_ = false;       // each task does, its weights
};

}  // namespace

std::shared_ptr<const Conv> MakeThirdsConv(const ConvProblem& p, const GemmIsa& isa) {
  if (isa.thirds.mr == 0 || p.input_type != ElementType::F32 || p.kernel_type != ElementType::F32) return nullptr;
  if (p.feature_groups > 1 || p.batch_groups > 1 || p.spatial.size() > kDims || p.spatial.empty()) return nullptr;
  // What fills up the steps of a tap is multiplied as well.
  if (4 * p.in_features < 3 * RoundUp(p.in_features, isa.thirds.Quantum()) || p.out_features < kLeastFeatures)
    return nullptr;
  int64_t taps = 1, positions = 1;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation > 1) return nullptr;
    taps *= d.kernel, positions *= d.output;
  }
  if (taps == 0 || taps > kMostTaps || positions < kLeastPositions || p.batch * positions < kManyPositions)
    return nullptr;
  if (p.batch * positions * p.out_features * taps * p.in_features < kLeastProducts) return nullptr;
  auto whole = std::make_shared<const ConvProduct<float>>(p, isa.f32);
  if (whole->swapped()) return nullptr;
  auto conv = std::make_shared<ThirdsConv>(p, std::move(whole), isa);
  return conv->fits() ? conv : nullptr;
}

}  // namespace strop::cpu
