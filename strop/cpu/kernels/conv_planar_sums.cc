// Convolution of few features with windows larger than the output: the gradient of a kernel, whose "window" is the
// gradient of the output and whose "input features" are the images. Lanes run along the rows of the window; a task owns
// a few outputs, which it sums over all images in registers. Images and windows are copied to planes once, by all
// threads together, so that their rows are contiguous whatever the order of the dimensions, and padded. Many groups go
// in rounds.
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_planes.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kRoundBytes = int64_t{8} << 20;  // of planes
constexpr int64_t kMostShared = int64_t{64} << 20;
constexpr int64_t kTogether = 16;  // features copied at a time: a few cache lines where they lie side by side

template <class T>
class PlanarSums final : public Conv {
 public:
  PlanarSums(const ConvProblem& p, const GemmIsa& isa) : p_(p), micro_(MicroOf<T>(isa)) {
    rank_ = static_cast<int>(p.spatial.size());
    features_ = p.out_features / p.batch_groups;
    std::vector<Planes::Dim> images, windows;
    for (const ConvSpatialDim& s : p.spatial) {
      // Neighbours in a plane are those of the window; the outputs are shifts.
      Planes::Dim image{s.input, s.input_stride, -s.pad_low, s.window_dilation, s.kernel, {}};
      for (int64_t o = 0; o < s.output; ++o) image.shifts.push_back(o * s.stride);
      images.push_back(std::move(image));
      windows.push_back({s.kernel, s.reversal ? -s.kernel_stride : s.kernel_stride, 0, 1, s.kernel, {0}});
      if (s.reversal) window_base_ += (s.kernel - 1) * s.kernel_stride;
      positions_ *= s.output;
    }
    images_ = Planes(std::move(images));
    windows_ = Planes(std::move(windows));
    int64_t row_count = 1;
    for (int d = 0; d + 1 < rank_; ++d) row_count *= p.spatial[d].kernel;
    for (int64_t row = 0; row < row_count; ++row) {
      int64_t rest = row, image = 0, window = 0;
      for (int d = rank_ - 1; d-- > 0; rest /= p.spatial[d].kernel) {
        image += rest % p.spatial[d].kernel * images_.pitch(d);
        window += rest % p.spatial[d].kernel * windows_.pitch(d);
      }
      image_rows_.push_back(image);
      window_rows_.push_back(window);
    }
    for (int64_t position = 0; position < positions_; ++position) {
      int64_t rest = position, shift = 0;
      for (int d = rank_; d-- > 0; rest /= p.spatial[d].output)
        shift += images_.ShiftOffset(d, rest % p.spatial[d].output);
      shifts_.push_back(shift);
    }
    int most = kPlanarSums;
    while (!micro_.planar_sums[most - 1][most - 1]) --most;
    // Of a group's outputs: rows are positions of the batch, columns features. All blocks have nearly one size.
    const int64_t rows = p.batch * positions_;
    down_ = CeilDiv(rows, CeilDiv(rows, most));
    across_ = CeilDiv(features_, CeilDiv(features_, most));
    blocks_down_ = CeilDiv(rows, down_);
    blocks_across_ = CeilDiv(features_, across_);
    const int64_t group_bytes = p.in_features * (p.batch * images_.size() + features_ * windows_.size()) * kSize;
    per_round_ = std::clamp<int64_t>(kRoundBytes / group_bytes, 1, p.batch_groups);
    rounds_ = CeilDiv(p.batch_groups, per_round_);
    num_tasks_ = per_round_ * blocks_down_ * blocks_across_;
    // Planes: [in_feature][group of the round][batch], and [in_feature][group of the round][feature].
    image_planes_ = per_round_ * p.batch;
    window_planes_ = per_round_ * features_;
    image_elements_ = p.in_features * image_planes_ * images_.size() + micro_.lanes;
    window_elements_ = p.in_features * window_planes_ * windows_.size() + micro_.lanes;
    image_blocks_ = CeilDiv(image_planes_, kTogether);
    window_blocks_ = CeilDiv(window_planes_, kTogether);
    prepare_tasks_ = p.in_features * (image_blocks_ + window_blocks_);
    temporary_ = std::max(images_.temporary(kTogether), windows_.temporary(kTogether));
    shared_bytes_ = (image_elements_ + window_elements_ + prepare_tasks_ * temporary_) * kSize + 3 * kCarverSlack;
    scratch_bytes_ = kPlanarSums * kPlanarSums * micro_.lanes * kSize + kCarverSlack;
    tiles_ = StrCat("sums along the rows of windows, from planes, ", down_, "x", across_, " in registers");
  }

  bool Suits() const {
    // From about a dozen features on a product of matrices is as good where rows fill vectors badly.
    constexpr int64_t kSeveral = 12;
    const int64_t row = p_.spatial[rank_ - 1].kernel;
    return shared_bytes_ <= kMostShared && (features_ < kSeveral || 4 * RoundUp(row, micro_.lanes) <= 5 * row);
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    const Shared shared = Carve(call.shared);
    const int64_t group = call.round * per_round_, groups = std::min(per_round_, p_.batch_groups - group);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t blocks = image_blocks_ + window_blocks_, feature = task / blocks;
      const bool image = task % blocks < image_blocks_;
      const int64_t first = (image ? task % blocks : task % blocks - image_blocks_) * kTogether;
      T* temporary = shared.temporary + task * temporary_;
      if (image) {
        const int64_t stride = p_.input_batch_stride, count = std::min(kTogether, groups * p_.batch - first);
        if (count <= 0) continue;
        images_.Copy(micro_, p_.input_type, call.input,
                     feature * p_.input_feature_stride + (group * p_.batch + first) * stride, stride, count, 0,
                     p_.spatial[0].kernel, shared.images + (feature * image_planes_ + first) * images_.size(),
                     temporary);
      } else {
        const int64_t stride = p_.kernel_out_stride, count = std::min(kTogether, groups * features_ - first);
        if (count <= 0) continue;
        windows_.Copy(micro_, p_.kernel_type, call.kernel,
                      window_base_ + feature * p_.kernel_in_stride + (group * features_ + first) * stride, stride,
                      count, 0, p_.spatial[0].kernel,
                      shared.windows + (feature * window_planes_ + first) * windows_.size(), temporary);
      }
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const Shared shared = Carve(call.shared);
    T* sums = Carver(scratch).Take<T>(kPlanarSums * kPlanarSums * micro_.lanes);
    const PlanarRows lines{static_cast<int64_t>(image_rows_.size()), p_.spatial[rank_ - 1].kernel, image_rows_.data(),
                           window_rows_.data()};
    for (int64_t task = begin; task < end; ++task) {
      const int64_t across = task % blocks_across_, down = task / blocks_across_ % blocks_down_;
      const int64_t in_round = task / blocks_across_ / blocks_down_, group = call.round * per_round_ + in_round;
      if (group >= p_.batch_groups) return;
      const int64_t row0 = down * down_, rows = std::min(down_, p_.batch * positions_ - row0);
      const int64_t feature0 = across * across_, features = std::min(across_, features_ - feature0);
      std::memset(sums, 0, rows * features * micro_.lanes * sizeof(T));
      for (int64_t n = 0; n < p_.in_features; ++n) {
        const T *x[kPlanarSums], *y[kPlanarSums];
        for (int64_t i = 0; i < rows; ++i) {
          const int64_t image = n * image_planes_ + in_round * p_.batch + (row0 + i) / positions_;
          x[i] = shared.images + image * images_.size() + shifts_[(row0 + i) % positions_];
        }
        for (int64_t j = 0; j < features; ++j)
          y[j] = shared.windows + (n * window_planes_ + in_round * features_ + feature0 + j) * windows_.size();
        micro_.planar_sums[rows - 1][features - 1](lines, x, y, sums);
      }
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < features; ++j)
          StoreSum(sums + (i * features + j) * micro_.lanes, row0 + i, group * features_ + feature0 + j,
                   static_cast<uint8_t*>(call.output));
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  struct Shared {
    T *images, *windows, *temporary;
  };
  Shared Carve(void* memory) const {
    Carver carver(memory);
    T* images = carver.Take<T>(image_elements_);
    T* windows = carver.Take<T>(window_elements_);
    return {images, windows, carver.Take<T>(prepare_tasks_ * temporary_)};
  }

  // The sum over lanes, by halves.
  void StoreSum(T* sums, int64_t row, int64_t feature, uint8_t* output) const {
    for (int64_t half = micro_.lanes / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
    int64_t at = row / positions_ * p_.output_batch_stride + feature * p_.output_feature_stride;
    int64_t rest = row % positions_;
    for (int d = rank_; d-- > 0; rest /= p_.spatial[d].output)
      at += rest % p_.spatial[d].output * p_.spatial[d].output_stride;
    StoreTile<T>({p_.output_type, output + at * Bytes(p_.output_type), 1, 1}, 0, 0, 1, 1, sums, 1, false);
  }

  ConvProblem p_;
  const MicroTable<T>& micro_;
  Planes images_, windows_;
  int rank_ = 0;
  int64_t features_ = 1, positions_ = 1, window_base_ = 0;
  int64_t down_ = 1, across_ = 1, blocks_down_ = 1, blocks_across_ = 1;
  int64_t per_round_ = 1, image_planes_ = 0, window_planes_ = 0, image_elements_ = 0, window_elements_ = 0;
  int64_t image_blocks_ = 1, window_blocks_ = 1, temporary_ = 0;
  std::vector<int64_t> image_rows_, window_rows_;  // where the rows of the window are in planes
  std::vector<int64_t> shifts_;                    // of the outputs
};

template <class T>
std::shared_ptr<const Conv> MakeOf(const ConvProblem& p, const GemmIsa& isa) {
  auto conv = std::make_shared<PlanarSums<T>>(p, isa);
  if (!conv->Suits()) return nullptr;
  return conv;
}

}  // namespace

std::shared_ptr<const Conv> MakePlanarSums(const ConvProblem& p, const GemmIsa& isa) {
  constexpr int64_t kFew = 32, kLeastWindow = 8, kMostPositions = 1 << 12;
  if (p.spatial.empty() || p.feature_groups != 1 || p.batch == 0 || p.in_features == 0 || p.out_features == 0)
    return nullptr;
  if (p.out_features / p.batch_groups >= kFew) return nullptr;
  int64_t positions = 1, window = 1;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation != 1 || d.kernel == 0 || d.output == 0 || d.input == 0) return nullptr;
    positions *= d.output;
    window *= d.kernel;
    if (positions > kMostPositions || window > (int64_t{1} << 24)) return nullptr;
  }
  if (window < positions || p.spatial.back().kernel < kLeastWindow) return nullptr;
  switch (GemmAccumulator(p.input_type, p.kernel_type, p.output_type)) {
    case ElementType::F32: return MakeOf<float>(p, isa);
    case ElementType::F64: return MakeOf<double>(p, isa);
    default: return nullptr;
  }
}

}  // namespace strop::cpu
