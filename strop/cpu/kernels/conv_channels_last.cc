// Convolutions of many features that lie apart in memory (NCHW): the input is copied with its features side by side
// first, by all threads, and convolved as such.
//
// Planes (conv_planar.cc) of 7x7 or 14x14 positions leave each task all of a kernel that is larger than the input, and
// the task little to multiply it with: 4x512x7x7 by 512x512x3x3 ran at 8 % of the processor's peak. The copy is a
// hundredth of the work. Of larger images, too, the implicit product leaves out what planes waste (padding, the ends of
// rows), a tenth of the time, which is worth copies that come from memory where each element is multiplied often.
#include <cstring>

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
constexpr int64_t kPixels = 64;  // that a task copies
constexpr int64_t kWhole = 16;   // features: what follows a task's pixels is not written by it

// Elements of an image if its pixels follow each other, else 0.
int64_t PixelsOf(const ConvProblem& p) {
  int64_t pixels = 1;
  for (size_t d = p.spatial.size(); d-- > 0;) {
    if (p.spatial[d].input != 1 && p.spatial[d].input_stride != pixels) return 0;
    pixels *= p.spatial[d].input;
  }
  return pixels;
}

class ChannelsLastConv final : public CopiedConv {
 public:
  ChannelsLastConv(const ConvProblem& p, std::shared_ptr<const Conv> product, PackPanel<float> pack)
      : CopiedConv("features side by side", p.batch * CeilDiv(PixelsOf(p), kPixels),
                   p.batch * PixelsOf(p) * p.in_features, std::move(product)),
        p_(p),
        pack_(pack),
        pixels_(PixelsOf(p)) {}

 private:
  void Copy(const ConvCall& call, int64_t task) const override {
    const int64_t pieces = CeilDiv(pixels_, kPixels), image = task / pieces, first = task % pieces * kPixels;
    const float* from = static_cast<const float*>(call.input) + image * p_.input_batch_stride + first;
    float* to = static_cast<float*>(call.shared) + (image * pixels_ + first) * p_.in_features;
    pack_(from, p_.input_feature_stride, 1, p_.in_features, std::min(kPixels, pixels_ - first), p_.in_features, to);
  }

  const ConvProblem p_;
  const PackPanel<float> pack_;
  const int64_t pixels_;
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
  const int64_t pixels = PixelsOf(p);
  if (positions == 0 || positions > kMostPositions || taps == 0 || pixels == 0) return nullptr;
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
  for (ConvSpatialDim& d : copied.spatial) d.input_stride *= p.in_features;
  Result<std::shared_ptr<const Conv>> product = MakeProductConv(copied, isa);
  return product.ok() ? std::make_shared<ChannelsLastConv>(p, *std::move(product), pack) : nullptr;
}

}  // namespace strop::cpu
