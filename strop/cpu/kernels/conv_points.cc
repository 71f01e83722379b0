// Convolutions of single points whose features are planes (NCHW): a product of matrices an image,
//
//   output[image][out feature][position] = kernel[out feature][in feature] * input[image][in feature][position]
//
// of which nothing has to be gathered. (Planes with a window of one element ran at half of the processor's peak: each
// was copied to be read once.)
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

class PointsConv final : public Conv {
 public:
  explicit PointsConv(std::shared_ptr<const Gemm> product) : product_(std::move(product)) {
    num_tasks_ = product_->num_tasks();
    scratch_bytes_ = product_->scratch_bytes();
    rounds_ = product_->rounds();
    prepare_tasks_ = product_->prepare_tasks();
    shared_bytes_ = product_->shared_bytes();
    tiles_ = StrCat("a product an image, ", product_->tiles());
  }
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    product_->Prepare(CallOf(call), begin, end);
  }
  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    product_->Run(CallOf(call), begin, end, scratch);
  }

 private:
  static GemmCall CallOf(const ConvCall& call) {
    return {call.kernel, call.input, call.output, call.round, call.shared};
  }
  std::shared_ptr<const Gemm> product_;
};

}  // namespace

std::shared_ptr<const Conv> MakePointsConv(const ConvProblem& p, const GemmIsa& isa) {
  constexpr int64_t kLeastFeatures = 16;
  if (p.input_type != p.kernel_type || p.input_type != p.output_type ||
      (p.input_type != ElementType::F32 && p.input_type != ElementType::F64))
    return nullptr;
  if (p.feature_groups != 1 || p.batch_groups != 1 || p.in_features < kLeastFeatures || p.out_features < kLeastFeatures)
    return nullptr;
  int64_t positions = 1;
  for (size_t d = p.spatial.size(); d-- > 0;) {
    const ConvSpatialDim& s = p.spatial[d];
    if (s.kernel != 1 || s.stride != 1 || s.pad_low != 0 || s.base_dilation != 1 || s.output != s.input) return nullptr;
    if (s.input != 1 && (s.input_stride != positions || s.output_stride != positions)) return nullptr;
    positions *= s.input;
  }
  if (positions < 2 || p.batch == 0) return nullptr;
  GemmProblem product;
  product.batch = p.batch, product.m = p.out_features, product.n = positions, product.k = p.in_features;
  product.a = {p.kernel_type, p.kernel_out_stride, p.kernel_in_stride, 0};
  product.b = {p.input_type, p.input_feature_stride, 1, p.input_batch_stride};
  product.c = {p.output_type, p.output_feature_stride, 1, p.output_batch_stride};
  Result<std::shared_ptr<const Gemm>> gemm = Gemm::Create(product, isa);
  return gemm.ok() ? std::make_shared<PointsConv>(*std::move(gemm)) : nullptr;
}

}  // namespace strop::cpu
