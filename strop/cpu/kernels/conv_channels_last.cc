// Convolutions of many features over few positions whose features lie apart in memory (NCHW): the input is copied with
// its features side by side first, by all threads, and convolved as such.
//
// Planes (conv_planar.cc) of 7x7 or 14x14 positions leave each task all of a kernel that is larger than the input, and
// the task little to multiply it with: 4x512x7x7 by 512x512x3x3 ran at 8 % of the processor's peak. The copy is a
// hundredth of the work.
#include <cstring>

#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostPositions = 4096;  // of all images
constexpr int64_t kFewPositions = 1024;   // for which it pays whatever is multiplied
constexpr int64_t kLeastWork = 256;       // multiplications
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

class ChannelsLastConv final : public Conv {
 public:
  ChannelsLastConv(const ConvProblem& p, std::shared_ptr<const Conv> product, PackPanel<float> pack)
      : p_(p), pack_(pack), product_(std::move(product)), pixels_(PixelsOf(p)) {
    pieces_ = CeilDiv(pixels_, kPixels);
    copy_tasks_ = p.batch * pieces_;
    copy_bytes_ = RoundUp(p.batch * pixels_ * p.in_features * static_cast<int64_t>(sizeof(float)) + kCarverSlack, 64);
    num_tasks_ = product_->num_tasks();
    scratch_bytes_ = product_->scratch_bytes();
    rounds_ = product_->rounds();
    prepare_tasks_ = copy_tasks_ + product_->prepare_tasks();
    shared_bytes_ = copy_bytes_ + product_->shared_bytes();
    tiles_ = StrCat("features side by side, ", product_->tiles());
  }

  // The product's own tasks pack the kernel, and do not look at the copy yet.
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    for (; begin < std::min(end, copy_tasks_); ++begin)
      if (call.round == 0) Copy(call, begin / pieces_, begin % pieces_ * kPixels);
    if (begin < end) product_->Prepare(Inner(call), begin - copy_tasks_, end - copy_tasks_);
  }
  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    product_->Run(Inner(call), begin, end, scratch);
  }

 private:
  ConvCall Inner(const ConvCall& call) const {
    return {call.shared, call.kernel, call.output, call.round, static_cast<uint8_t*>(call.shared) + copy_bytes_};
  }
  void Copy(const ConvCall& call, int64_t image, int64_t first) const {
    const float* from = static_cast<const float*>(call.input) + image * p_.input_batch_stride + first;
    float* to = static_cast<float*>(call.shared) + (image * pixels_ + first) * p_.in_features;
    pack_(from, p_.input_feature_stride, 1, p_.in_features, std::min(kPixels, pixels_ - first), p_.in_features, to);
  }

  const ConvProblem p_;
  const PackPanel<float> pack_;
  std::shared_ptr<const Conv> product_;
  int64_t pixels_ = 0, pieces_ = 0, copy_tasks_ = 0, copy_bytes_ = 0;
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
  if (positions > kFewPositions && (of_input < kLeastWork || of_output < kLeastWork)) return nullptr;
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
