// Convolutions of single points: a product of matrices, of which nothing has to be gathered. Where features are planes
// (NCHW), a product an image,
//
//   output[image][out feature][position] = kernel[out feature][in feature] * input[image][in feature][position]
//
// (Planes with a window of one element ran at half of the processor's peak: each was copied to be read once.) Where
// features lie side by side (NHWC), one product of all positions,
//
//   output[position][out feature] = input[position][in feature] * kernel[in feature][out feature]
//
// (3 features to 16 at 4x56x56 positions took 107 us by way of planes, now 30; 32 to 32 at 16x14x14, gathered, 131
// and 70.)
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

class PointsConv final : public Conv {
 public:
  // Is the kernel the left side of the product?
  PointsConv(std::shared_ptr<const Gemm> product, bool kernel_first, std::string_view what)
      : product_(std::move(product)), kernel_first_(kernel_first) {
    num_tasks_ = product_->num_tasks();
    scratch_bytes_ = product_->scratch_bytes();
    rounds_ = product_->rounds();
    prepare_tasks_ = product_->prepare_tasks();
    shared_bytes_ = product_->shared_bytes();
    tiles_ = StrCat(what, ", ", product_->tiles());
  }
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    product_->Prepare(CallOf(call), begin, end);
  }
  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    product_->Run(CallOf(call), begin, end, scratch);
  }

 private:
  GemmCall CallOf(const ConvCall& call) const {
    const void *const a = kernel_first_ ? call.kernel : call.input, *const b = kernel_first_ ? call.input : call.kernel;
    return {a, b, call.output, call.round, call.shared};
  }
  std::shared_ptr<const Gemm> product_;
  const bool kernel_first_;
};

constexpr int64_t kLeastFeatures = 16;  // in planes
// Of neighbours: where features are few, and where they are not. More are multiplied as fast where patches are read in
// place, or faster if the product had to pack them.
constexpr int64_t kMostWeights = 1 << 13, kMostOfMany = 1 << 11;
constexpr int64_t kFewPositions = 200;
constexpr int64_t kFewColumns = 4;  // that planes fill vectors with, and products of f32 do not

std::shared_ptr<const Conv> Make(const GemmProblem& product, const GemmIsa& isa, bool kernel_first,
                                 std::string_view what) {
  Result<std::shared_ptr<const Gemm>> gemm = Gemm::Create(product, isa);
  return gemm.ok() ? std::make_shared<PointsConv>(*std::move(gemm), kernel_first, what) : nullptr;
}

// Of narrow vectors, patches in place are read twice as often. Packed once they are as good as where they lie if they
// are read often, and better if those of neighbours meet in the first-level cache, or weights are most of what is read.
bool PaysToPack(const ConvProblem& p) {
  int64_t positions = p.batch;
  for (const ConvSpatialDim& d : p.spatial) positions *= d.output;
  return p.out_features >= p.in_features || positions <= kFewPositions ||
         MeetInSets(p.in_features * Bytes(p.input_type));
}

// Features side by side, and all positions at one distance: one product.
std::shared_ptr<const Conv> MakeOfNeighbours(const ConvProblem& p, const GemmIsa& isa) {
  if (p.input_feature_stride != 1 || p.output_feature_stride != 1 || p.in_features == 0 || p.out_features == 0)
    return nullptr;
  if (p.out_features > 1 && p.out_features <= kFewColumns && p.input_type == ElementType::F32) return nullptr;
  const int64_t weights = p.in_features * p.out_features;
  const bool many = p.in_features >= kLeastFeatures && p.out_features >= kLeastFeatures;
  const bool packs = many && HasNarrowVectors(isa.f32) && PaysToPack(p);
  if (!packs && (many ? weights > kMostOfMany || p.kernel_out_stride != 1 : weights > kMostWeights)) return nullptr;
  int64_t positions = 1, input = 0, output = 0;
  const auto add = [&](int64_t size, int64_t input_stride, int64_t output_stride) {
    if (size == 1) return true;
    if (positions == 1) input = input_stride, output = output_stride;
    if (input_stride != input * positions || output_stride != output * positions) return false;
    positions *= size;
    return true;
  };
  for (size_t d = p.spatial.size(); d-- > 0;)
    if (!add(p.spatial[d].input, p.spatial[d].input_stride, p.spatial[d].output_stride)) return nullptr;
  if (!add(p.batch, p.input_batch_stride, p.output_batch_stride) || positions < 2) return nullptr;
  GemmProblem product;
  product.m = positions, product.n = p.out_features, product.k = p.in_features;
  product.a = {p.input_type, input, 1};
  product.b = {p.kernel_type, p.kernel_in_stride, p.kernel_out_stride};
  product.c = {p.output_type, output, 1};
  return Make(product, isa, false, "a product of all positions");
}

}  // namespace

std::shared_ptr<const Conv> MakePointsConv(const ConvProblem& p, const GemmIsa& isa) {
  const bool floats =
      p.input_type == p.output_type && (p.input_type == ElementType::F32 || p.input_type == ElementType::F64);
  const bool bytes = p.input_type == ElementType::S8 && p.output_type == ElementType::S32;
  if (p.input_type != p.kernel_type || (!floats && !bytes)) return nullptr;
  if (p.feature_groups != 1 || p.batch_groups != 1 || p.batch == 0) return nullptr;
  for (const ConvSpatialDim& s : p.spatial)
    if (s.kernel != 1 || s.stride != 1 || s.pad_low != 0 || s.base_dilation != 1 || s.output != s.input) return nullptr;
  if (std::shared_ptr<const Conv> conv = MakeOfNeighbours(p, isa)) return conv;
  if (!floats || p.in_features < kLeastFeatures || p.out_features < kLeastFeatures) return nullptr;
  int64_t positions = 1;
  for (size_t d = p.spatial.size(); d-- > 0;) {
    const ConvSpatialDim& s = p.spatial[d];
    if (s.input != 1 && (s.input_stride != positions || s.output_stride != positions)) return nullptr;
    positions *= s.input;
  }
  if (positions < 2) return nullptr;
  GemmProblem product;
  product.batch = p.batch, product.m = p.out_features, product.n = positions, product.k = p.in_features;
  product.a = {p.kernel_type, p.kernel_out_stride, p.kernel_in_stride, 0};
  product.b = {p.input_type, p.input_feature_stride, 1, p.input_batch_stride};
  product.c = {p.output_type, p.output_feature_stride, 1, p.output_batch_stride};
  return Make(product, isa, true, "a product an image");
}

}  // namespace strop::cpu
