// Convolutions of many features that lie apart in memory (NCHW, or transposed otherwise): the input is copied with its
// features side by side first, by all threads, and convolved as such.
//
// Planes (conv_planar.cc) of 7x7 or 14x14 positions leave each task all of a kernel that is larger than the input, and
// the task little to multiply it with: 4x512x7x7 by 512x512x3x3 ran at 8 % of the processor's peak. The copy is a
// hundredth of the work. Of larger images, too, the implicit product leaves out what planes waste (padding, the ends of
// rows), a tenth of the time, which is worth copies that come from memory where each element is multiplied often.
#include <algorithm>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/conv_copied.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostPositions = 1 << 17;  // of all images
constexpr int64_t kCachedPositions = 1 << 13;
constexpr int64_t kFewPositions = 1024;  // for which it pays whatever is multiplied
constexpr int64_t kLeastWork = 256;      // multiplications
constexpr int64_t kMuchWork = 768;       // where the copies come from memory
constexpr int64_t kNarrowWork = 384;     // the same of narrow vectors, which take longer to multiply
constexpr int64_t kLeastFeatures = 32;
constexpr int64_t kPixels = 64;   // that a task copies
constexpr int64_t kLeastRow = 8;  // pixels that follow each other
constexpr int64_t kWhole = 16;    // features: what follows a task's pixels is not written by it

// The pixels of an image as rows of those that follow each other in memory: all of them in one row if images lie as
// planes, rows of their own if features lie between them (a transposed image, or one that was enlarged row by row).
class PixelRows {
 public:
  // In the order in which dimensions lie in memory, the closest first.
  explicit PixelRows(const ConvProblem& p) {
    std::vector<ConvSpatialDim> dims(p.spatial.begin(), p.spatial.end());
    std::ranges::stable_sort(dims, {}, [](const ConvSpatialDim& d) { return d.input_stride; });
    for (const ConvSpatialDim& d : dims) {
      if (d.input == 1) continue;
      if (outer_.empty() && d.input_stride == length_)
        length_ *= d.input;
      else
        outer_.push_back({d.input, d.input_stride});
      count_ *= d.input;
    }
    count_ /= std::max<int64_t>(length_, 1);
  }
  int64_t length() const { return length_; }
  int64_t count() const { return count_; }
  int64_t pixels() const { return length_ * count_; }
  // Elements from the image's first pixel to a row's.
  int64_t At(int64_t row) const {
    int64_t offset = 0;
    for (const auto& [size, stride] : outer_) {
      offset += row % size * stride;
      row /= size;
    }
    return offset;
  }

 private:
  int64_t length_ = 1, count_ = 1;
  std::vector<std::pair<int64_t, int64_t>> outer_;  // sizes and strides
};

class ChannelsLastConv final : public CopiedConv {
 public:
  ChannelsLastConv(const ConvProblem& p, const PixelRows& rows, std::shared_ptr<const Conv> product,
                   PackPanel<float> pack)
      : CopiedConv("features side by side", p.batch * rows.count() * CeilDiv(rows.length(), kPixels),
                   p.batch * rows.pixels() * p.in_features, std::move(product)),
        p_(p),
        pack_(pack),
        rows_(rows) {}

 private:
  void Copy(const ConvCall& call, int64_t task) const override {
    const int64_t pieces = CeilDiv(rows_.length(), kPixels), first = task % pieces * kPixels;
    const int64_t row = task / pieces, image = row / rows_.count();
    const float* from =
        static_cast<const float*>(call.input) + image * p_.input_batch_stride + rows_.At(row % rows_.count()) + first;
    float* to = static_cast<float*>(call.shared) + (row * rows_.length() + first) * p_.in_features;
    pack_(from, p_.input_feature_stride, 1, p_.in_features, std::min(kPixels, rows_.length() - first), p_.in_features,
          to);
  }

  const ConvProblem p_;
  const PackPanel<float> pack_;
  const PixelRows rows_;
};

}  // namespace

std::shared_ptr<const Conv> MakeChannelsLastConv(const ConvProblem& p, const GemmIsa& isa) {
  if (p.input_type != ElementType::F32 || p.kernel_type != ElementType::F32 || p.output_type != ElementType::F32)
    return nullptr;
  if (p.spatial.empty() || p.feature_groups != 1 || p.batch_groups != 1 || p.input_feature_stride == 1) return nullptr;
  if (p.in_features < kLeastFeatures || p.out_features < kLeastFeatures || p.in_features % kWhole != 0) return nullptr;
  int64_t positions = p.batch, taps = 1, holes = 1;
  for (const ConvSpatialDim& d : p.spatial) {
    positions *= d.output;
    taps *= d.kernel;
    holes *= d.base_dilation;
  }
  const PixelRows rows(p);
  const int64_t pixels = rows.pixels();
  if (positions == 0 || positions > kMostPositions || taps == 0 || pixels == 0) return nullptr;
  if (rows.length() < std::min(kLeastRow, pixels)) return nullptr;
  // Multiplications with each element that is copied, and for each that is stored.
  const int64_t of_input = positions * taps * p.out_features / (holes * p.batch * pixels);
  const int64_t of_output = taps * p.in_features / holes;
  const int64_t much = HasNarrowVectors(isa.f32) ? kNarrowWork : kMuchWork;
  const int64_t least = positions > kCachedPositions ? much : kLeastWork;
  if (positions > kFewPositions && std::min(of_input, of_output) < least) return nullptr;
  const PackPanel<float> pack = PackerOf(isa.f32, ElementType::F32);
  if (!pack) return nullptr;
  ConvProblem copied = p;
  copied.input_feature_stride = 1;
  copied.input_batch_stride = pixels * p.in_features;
  std::vector<ConvSpatialDim*> order;  // as the input has them, the closest first
  for (ConvSpatialDim& d : copied.spatial) order.push_back(&d);
  std::ranges::stable_sort(order, {}, [](const ConvSpatialDim* d) { return d->input_stride; });
  int64_t stride = p.in_features;
  for (ConvSpatialDim* d : order) {
    d->input_stride = stride;
    stride *= d->input;
  }
  Result<std::shared_ptr<const Conv>> product = MakeProductConv(copied, isa);
  return product.ok() ? std::make_shared<ChannelsLastConv>(p, rows, *std::move(product), pack) : nullptr;
}

}  // namespace strop::cpu
