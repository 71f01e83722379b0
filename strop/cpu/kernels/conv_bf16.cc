// Convolutions of bf16 by the instruction that multiplies pairs, as Bf16Gemm's products: where the exponents of input
// and kernel tell that a subnormal number could come of it, which that instruction would flush, tasks multiply in f32.
#include <algorithm>

#include "strop/cpu/kernels/conv_dense.h"
#include "strop/cpu/kernels/conv_panels.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kLeastFeatures = 16;  // of a tap: below, what fills up units costs too much

class Bf16Conv final : public Conv {
 public:
  Bf16Conv(std::shared_ptr<const PanelConv<float>> pairs, std::shared_ptr<const ConvProduct<float>> singles,
           const GemmIsa& isa)
      : pairs_(std::move(pairs)),
        singles_(std::move(singles)),
        isa_(isa),
        input_(DenseInputElements(singles_->problem())),
        kernel_(DenseKernelElements(singles_->problem())) {
    scans_of_input_ = CeilDiv(input_, ExponentScan::kPiece);
    scans_ = scans_of_input_ + CeilDiv(kernel_, ExponentScan::kPiece);
    num_tasks_ = pairs_->num_tasks();
    rounds_ = pairs_->rounds();
    prepare_tasks_ = scans_ + pairs_->prepare_tasks();
    shared_bytes_ = ExponentBytes() + pairs_->shared_bytes();
    block_ = ChooseBlocks(singles_->m(), singles_->n(), singles_->k(), isa.f32.mr, isa.f32.nr, sizeof(float),
                          singles_->groups() * singles_->outer());
    int64_t rows = 0;
    for (int64_t round = 0; round < rounds_; ++round)
      for (int64_t task = 0; task < num_tasks_; ++task) rows = std::max(rows, pairs_->PartOf(round, task).rows);
    rows_bytes_ = RoundUp(rows * static_cast<int64_t>(sizeof(int64_t)), 64);
    scratch_bytes_ = std::max(pairs_->scratch_bytes(),
                              rows_bytes_ + BlockScratchBytes(block_, isa.f32.mr, isa.f32.nr, sizeof(float)));
    tiles_ = StrCat("bf16, ", pairs_->tiles());
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    for (; begin < std::min(end, scans_); ++begin)
      if (call.round == 0) static_cast<int*>(call.shared)[begin] = Scan(call, begin);
    if (begin < end) pairs_->Prepare(Inner(call), begin - scans_, end - scans_);
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const int* exponents = static_cast<const int*>(call.shared);
    const int input = *std::min_element(exponents, exponents + scans_of_input_);
    const int kernel = *std::min_element(exponents + scans_of_input_, exponents + scans_);
    if (NoSubnormals(input, kernel))
      pairs_->Run(Inner(call), begin, end, scratch);
    else
      for (; begin < end; ++begin) RunInF32(call, pairs_->PartOf(call.round, begin), scratch);
  }

 private:
  int64_t ExponentBytes() const { return RoundUp(scans_ * static_cast<int64_t>(sizeof(int)), 64); }
  ConvCall Inner(const ConvCall& call) const {
    ConvCall inner = call;
    inner.shared = static_cast<uint8_t*>(call.shared) + ExponentBytes();
    return inner;
  }

  int Scan(const ConvCall& call, int64_t task) const {
    const bool of_kernel = task >= scans_of_input_;
    if (of_kernel) task -= scans_of_input_;
    const uint16_t* codes = static_cast<const uint16_t*>(of_kernel ? call.kernel : call.input);
    const int64_t first = task * ExponentScan::kPiece;
    return isa_.least_exponent(std::min(ExponentScan::kPiece, (of_kernel ? kernel_ : input_) - first), codes + first);
  }

  void RunInF32(const ConvCall& call, const Panels<float>::Part& part, void* scratch) const {
    if (part.rows == 0 || part.cols == 0) return;
    const ConvOperands<float> operands(*singles_, call);
    const auto pack_a = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
      operands.PackA(part.product, first, count, k0, kc, width, dst);
    };
    const auto pack_b = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, float* dst) {
      operands.PackB(part.product, first, count, k0, kc, width, dst);
    };
    const StoreTarget target = operands.Target(part.product, part.m0, part.rows, scratch);
    void* const memory = static_cast<uint8_t*>(scratch) + rows_bytes_;
    for (int64_t i = 0; i < part.rows; i += block_.mb)
      for (int64_t j = 0; j < part.cols; j += block_.nb)
        RunBlock<float>(isa_.f32, block_, part.m0 + i, std::min(block_.mb, part.rows - i), part.n0 + j,
                        std::min(block_.nb, part.cols - j), singles_->k(), pack_a, pack_b, target, memory);
  }

  const std::shared_ptr<const PanelConv<float>> pairs_;
  const std::shared_ptr<const ConvProduct<float>> singles_;
  const GemmIsa& isa_;
  const int64_t input_, kernel_;            // elements
  int64_t scans_ = 0, scans_of_input_ = 0;  // the first tasks of Prepare
  BlockShape block_;                        // of f32
  int64_t rows_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const Conv> MakeBf16Conv(const ConvProblem& p, const GemmIsa& isa) {
  if (isa.bf16.mr == 0 || p.input_type != ElementType::BF16 || p.kernel_type != ElementType::BF16) return nullptr;
  if (p.in_features < kLeastFeatures || DenseInputElements(p) == 0 || DenseKernelElements(p) == 0) return nullptr;
  auto product = std::make_shared<const ConvProduct<float>>(p, isa.bf16);
  auto singles = std::make_shared<const ConvProduct<float>>(p, isa.f32);
  if (singles->swapped() != product->swapped()) return nullptr;
  std::shared_ptr<const PanelConv<float>> pairs = MakeIndirectPanels<float>(product);
  if (!pairs) pairs = MakeGatheredPanels<float>(product);
  return pairs ? std::make_shared<Bf16Conv>(std::move(pairs), std::move(singles), isa) : nullptr;
}

}  // namespace strop::cpu
