// Convolutions of bf16 and f16 by way of f32: all threads write both operands down as f32 first, a convolution of f32
// follows, whose result is rounded at the end. For those that have a way of their own only in f32: there, gathering
// halves element by element takes several times as long as the copies, which are as large as the operands.
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/conv_dense.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that a task converts
constexpr int64_t kMostBytes = int64_t{256} << 20;

bool IsHalf(ElementType type) { return type == ElementType::BF16 || type == ElementType::F16; }

class WidenedConv final : public Conv {
 public:
  WidenedConv(const ConvProblem& p, std::shared_ptr<const Conv> inner, const GemmIsa& isa)
      : p_(p),
        isa_(isa),
        inner_(std::move(inner)),
        input_(DenseInputElements(p)),
        kernel_(DenseKernelElements(p)),
        output_(p.output_type == ElementType::F32 ? 0 : DenseOutputElements(p)) {
    scratch_bytes_ = inner_->scratch_bytes();
    num_tasks_ = inner_->num_tasks();
    rounds_ = inner_->rounds() + 1 + (output_ > 0);
    prepare_tasks_ = std::max({Pieces(input_) + Pieces(kernel_), inner_->prepare_tasks(), Pieces(output_)});
    shared_bytes_ = Place(nullptr).end - static_cast<uint8_t*>(nullptr) + inner_->shared_bytes();
    tiles_ = StrCat("widened, ", inner_->tiles());
  }

  // Rounds: the copies; those of the convolution; the result.
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    const Places at = Place(call.shared);
    if (call.round == 0) {
      const int64_t of_input = Pieces(input_), all = of_input + Pieces(kernel_);
      for (; begin < std::min(end, all); ++begin) {
        if (begin < of_input)
          Widen(p_.input_type, call.input, input_, begin, at.input);
        else
          Widen(p_.kernel_type, call.kernel, kernel_, begin - of_input, at.kernel);
      }
    } else if (call.round <= inner_->rounds()) {
      if (begin < inner_->prepare_tasks())
        inner_->Prepare(Inner(call, at), begin, std::min(end, inner_->prepare_tasks()));
    } else {
      for (; begin < std::min(end, Pieces(output_)); ++begin) Narrow(at.output, begin, call.output);
    }
  }
  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    if (call.round == 0 || call.round > inner_->rounds()) return;
    inner_->Run(Inner(call, Place(call.shared)), begin, end, scratch);
  }

 private:
  struct Places {
    float *input, *kernel, *output;
    uint8_t* end;  // where what the convolution shares begins
  };
  static int64_t Pieces(int64_t elements) { return CeilDiv(elements, kPiece); }

  Places Place(void* shared) const {
    uint8_t* at = static_cast<uint8_t*>(shared);
    const auto take = [&](int64_t elements) {
      float* const taken = reinterpret_cast<float*>(at);
      at += RoundUp(elements * static_cast<int64_t>(sizeof(float)) + kPanelSlack, 64);
      return taken;
    };
    float *const input = take(input_), *const kernel = take(kernel_), *const output = take(output_);
    return {input, kernel, output, at};
  }
  ConvCall Inner(const ConvCall& call, const Places& at) const {
    return {at.input, at.kernel, output_ > 0 ? at.output : call.output, call.round - 1, at.end};
  }

  // By the packer, as rows of a matrix, but for the end of a piece: packing may write beyond what it packs.
  void Widen(ElementType type, const void* from, int64_t elements, int64_t piece, float* to) const {
    constexpr int64_t kRow = 64;
    const int64_t first = piece * kPiece, count = std::min(kPiece, elements - first);
    const int64_t rows = std::max<int64_t>(count / kRow - 1, 0);
    const auto* data = static_cast<const uint8_t*>(from);
    if (rows > 0) PackStrided<float>(isa_.f32, type, data, first, 1, kRow, kRow, rows, kRow, to + first);
    for (int64_t i = first + rows * kRow; i < first + count; ++i) to[i] = LoadAs<float>(type, from, i);
  }
  void Narrow(const float* from, int64_t piece, void* to) const {
    const int64_t first = piece * kPiece;
    const auto store = p_.output_type == ElementType::BF16 ? isa_.store_bf16 : isa_.store_f16;
    store(std::min(kPiece, output_ - first), from + first, static_cast<uint16_t*>(to) + first);
  }

  const ConvProblem p_;
  const GemmIsa& isa_;
  const std::shared_ptr<const Conv> inner_;
  const int64_t input_, kernel_, output_;  // elements; of output 0 if it is f32
};

// Multiply-adds for each element that is converted.
int64_t WorkAnElement(const ConvProblem& p, int64_t elements) {
  double work = static_cast<double>(p.batch) * static_cast<double>(p.in_features * p.out_features);
  for (const ConvSpatialDim& d : p.spatial)
    work *= static_cast<double>(d.output * d.kernel) / static_cast<double>(d.base_dilation);
  return static_cast<int64_t>(work / static_cast<double>(elements));
}

// Sums over the positions of images, as in the gradient of a kernel: what is summed over never lies together.
bool SumsOverPositions(const ConvProblem& p) {
  int64_t taps = 1, outputs = 1;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation != 1) return false;
    taps *= d.kernel, outputs *= d.output;
  }
  return taps > 1 && taps >= outputs && (p.input_feature_stride != 1 || p.in_features == 1);
}

bool IsWindow(const ConvProblem& p) {
  return std::any_of(p.spatial.begin(), p.spatial.end(), [](const ConvSpatialDim& d) { return d.kernel > 1; });
}

// Has f32 a better way, and how much work makes up for the copies?
bool Suits(const ConvProblem& p, const ConvProblem& wide, const GemmIsa& isa, int64_t work) {
  constexpr int64_t kOfGradient = 4, kOfHalves = 16, kOfWideHalves = 60, kOfPlanes = 32, kOfHoles = 48,
                    kLeastFeatures = 16;
  constexpr int64_t kLeastOfPairs = 33;  // features, of which pairs of bf16 make up for gathering them
  if (IsDepthwiseByRows(wide) || IsDepthwiseGradient(wide)) return true;
  if (p.feature_groups > 1 || p.batch_groups > 1) return false;
  if (SumsOverPositions(p)) return work >= kOfGradient;
  if (p.in_features < kLeastFeatures) return false;
  for (const ConvSpatialDim& d : p.spatial)
    if (d.base_dilation != 1) return work >= kOfHoles;
  if (p.input_feature_stride != 1) {
    const bool pairs = p.input_type == ElementType::BF16 && isa.bf16.mr > 0 && p.out_features >= kLeastOfPairs;
    return work >= kOfPlanes && !(pairs && IsWindow(p));
  }
  // Pairs of bf16 may be multiplied by one instruction, f16 are not.
  const bool as_f32 = p.input_type == ElementType::F16 || isa.bf16.mr == 0;
  const bool narrow = HasNarrowVectors(isa.f32) || p.input_type == ElementType::F16;
  return as_f32 && p.out_features >= kLeastFeatures && work >= (narrow ? kOfHalves : kOfWideHalves);
}

}  // namespace

std::shared_ptr<const Conv> MakeWidenedConv(const ConvProblem& p, const GemmIsa& isa) {
  if (!IsHalf(p.input_type) || !IsHalf(p.kernel_type) || (!IsHalf(p.output_type) && p.output_type != ElementType::F32))
    return nullptr;
  const int64_t input = DenseInputElements(p), kernel = DenseKernelElements(p), output = DenseOutputElements(p);
  if (input == 0 || kernel == 0 || output == 0) return nullptr;
  if (input > kMostBytes || kernel > kMostBytes || output > kMostBytes ||
      (input + kernel + output) * static_cast<int64_t>(sizeof(float)) > kMostBytes)
    return nullptr;
  ConvProblem wide = p;
  wide.input_type = wide.kernel_type = wide.output_type = ElementType::F32;
  if (!Suits(p, wide, isa, WorkAnElement(p, input + kernel + output))) return nullptr;
  Result<std::shared_ptr<const Conv>> inner = Conv::Create(wide, isa);
  return inner.ok() ? std::make_shared<WidenedConv>(p, *std::move(inner), isa) : nullptr;
}

}  // namespace strop::cpu
