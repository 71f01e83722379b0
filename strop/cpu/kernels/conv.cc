#include "strop/cpu/kernels/conv.h"

#include <algorithm>
#include <optional>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_indirect.h"
#include "strop/cpu/kernels/conv_panels.h"
#include "strop/cpu/kernels/conv_product.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

// The implicit product whose patches are gathered while panels are packed: with one operand packed for all tasks where
// that pays, else by blocks, each of which packs what it multiplies.
template <class T>
class GemmConv final : public PanelConv<T> {
 public:
  explicit GemmConv(std::shared_ptr<const ConvProduct<T>> product) : product_(std::move(product)) {
    const ConvProduct<T>& c = *product_;
    const MicroTable<T>& micro = c.micro();
    this->tiles_ = c.ToString();
    const PanelProblem problem = c.ForPanels();
    if (c.k() > 0 && Panels<T>::Suits(problem)) {
      panels_.emplace(problem, micro);
      this->num_tasks_ = panels_->num_tasks();
      this->scratch_bytes_ = panels_->scratch_bytes();
      this->rounds_ = panels_->rounds();
      this->prepare_tasks_ = panels_->prepare_tasks();
      this->shared_bytes_ = panels_->shared_bytes();
      this->tiles_ += panels_->ToString();
      return;
    }
    block_ = ChooseBlocks(c.m(), c.n(), c.k(), micro.mr, micro.nr, sizeof(T), c.groups() * c.outer());
    down_ = CeilDiv(c.m(), block_.mb);
    across_ = CeilDiv(c.n(), block_.nb);
    this->num_tasks_ = c.groups() * c.outer() * down_ * across_;
    rows_bytes_ = c.swapped() ? 0 : RoundUp(block_.mb * static_cast<int64_t>(sizeof(int64_t)), 64);
    this->scratch_bytes_ = rows_bytes_ + BlockScratchBytes(block_, micro.mr, micro.nr, sizeof(T));
    StrAppend(this->tiles_, "blocks of ", block_.mb, "x", block_.nb, ", ", micro.mr, "x", micro.nr, " in registers");
  }

  // Can it do without the blocks, which know of no bias?
  bool has_panels() const { return panels_.has_value(); }
  typename Panels<T>::Part PartOf(int64_t round, int64_t task) const override { return panels_->PartOf(round, task); }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    if (panels_) panels_->Prepare(ConvOperands<T>(*product_, call), call.round, begin, end, call.shared);
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const ConvOperands<T> operands(*product_, call);
    if (panels_) return panels_->Run(operands, call.round, begin, end, call.shared, scratch);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t across = task % across_, down = task / across_ % down_;
      Block(operands, task / across_ / down_, down, across, scratch);
    }
  }

 private:
  void Block(const ConvOperands<T>& operands, int64_t product, int64_t down, int64_t across, void* scratch) const {
    PackFn<T> pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      operands.PackA(product, first, count, k0, kc, width, dst);
    };
    PackFn<T> pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      operands.PackB(product, first, count, k0, kc, width, dst);
    };
    const int64_t m = product_->m(), n = product_->n();
    const int64_t m0 = down * block_.mb, n0 = across * block_.nb, rows = std::min(block_.mb, m - m0);
    const StoreTarget target = operands.Target(product, m0, rows, scratch);
    RunBlock<T>(product_->micro(), block_, m0, rows, n0, std::min(block_.nb, n - n0), product_->k(), pack_a, pack_b,
                target, static_cast<uint8_t*>(scratch) + rows_bytes_);
  }

  const std::shared_ptr<const ConvProduct<T>> product_;
  std::optional<Panels<T>> panels_;  // instead of blocks
  BlockShape block_;
  int64_t down_ = 1, across_ = 1, rows_bytes_ = 0;
};

// Four bytes at once; null if that does not suit.
std::shared_ptr<const Conv> MakeOfBytes(const ConvProblem& p, const GemmIsa& isa) {
  const PackSource input = PackSourceOf(p.input_type), kernel = PackSourceOf(p.kernel_type);
  for (const bool swapped : {false, true}) {
    const MicroTable<int32_t>* micro = MicroOfBytes(isa, swapped ? kernel : input, swapped ? input : kernel);
    if (!micro) continue;
    auto product = std::make_shared<ConvProduct<int32_t>>(p, *micro);
    if (product->swapped() != swapped) continue;
    auto conv = std::make_shared<GemmConv<int32_t>>(std::move(product));
    if (conv->has_panels()) return conv;
  }
  return nullptr;
}

template <class T>
std::shared_ptr<const Conv> Make(const ConvProblem& p, const GemmIsa& isa) {
  if constexpr (std::is_same_v<T, int32_t>) {
    if (std::shared_ptr<const Conv> conv = MakeOfBytes(p, isa)) return conv;
  }
  auto product = std::make_shared<ConvProduct<T>>(p, MicroOf<T>(isa, p.input_type, p.kernel_type));
  if constexpr (std::is_floating_point_v<T>) {
    if (std::shared_ptr<const Conv> conv = MakeIndirectConv<T>(product)) return conv;
  }
  return std::make_shared<GemmConv<T>>(std::move(product));
}

}  // namespace

template <class T>
std::shared_ptr<const PanelConv<T>> MakeGatheredPanels(std::shared_ptr<const ConvProduct<T>> product) {
  auto conv = std::make_shared<GemmConv<T>>(std::move(product));
  return conv->has_panels() ? conv : nullptr;
}

template std::shared_ptr<const PanelConv<float>> MakeGatheredPanels<float>(std::shared_ptr<const ConvProduct<float>>);

Result<std::shared_ptr<const Conv>> MakeProductConv(const ConvProblem& p, const GemmIsa& isa) {
  if (const int dilated = DilatedDim(p); dilated >= 0) return MakePhasedConv(p, dilated, isa, &MakeProductConv);
  return Make<float>(p, isa);
}

Result<std::shared_ptr<const Conv>> Conv::Create(const ConvProblem& p, const GemmIsa& isa) {
  if (p.spatial.size() > 8)
    return Unimplemented("convolution with ", p.spatial.size(), " spatial dimensions; at most 8");
  if (std::shared_ptr<const Conv> conv = MakeLinesConv(p, isa)) return conv;
  if (std::shared_ptr<const Conv> conv = MakeWidenedConv(p, isa)) return conv;
  if (std::shared_ptr<const Conv> conv = MakePointsConv(p, isa)) return conv;
  if (std::shared_ptr<const Conv> conv = MakeThirdsConv(p, isa)) return conv;
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
  if (std::shared_ptr<const Conv> conv = MakeGroupsConv(p, isa)) return conv;
  if (SumsOverImages(p)) return MakeKernelGradientConv(p, isa);
  if (std::shared_ptr<const Conv> conv = MakeBf16Conv(p, isa)) return conv;
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
