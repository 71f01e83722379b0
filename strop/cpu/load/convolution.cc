// Convolutions (kernels/conv.h).
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

class ConvolutionTasks final : public TaskKernel {
 public:
  explicit ConvolutionTasks(std::shared_ptr<const Conv> conv) : conv_(std::move(conv)) {}
  void Prepare(const TaskCall& call, int64_t begin, int64_t end) const override {
    conv_->Prepare(Bind(call), begin, end);
  }
  void Run(const TaskCall& call, int64_t begin, int64_t end, void* scratch) const override {
    conv_->Run(Bind(call), begin, end, scratch);
  }

 private:
  static ConvCall Bind(const TaskCall& call) {
    return {call.args[0], call.args[1], call.args[2], call.round, call.shared};
  }
  std::shared_ptr<const Conv> conv_;
};

Result<MadeStep> MakeConvolution(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const ConvProblem problem, ReadProblem<ConvProblem>(fields, kConvolutionRecipe));
  STROP_ASSIGN(std::shared_ptr<const Conv> conv, Conv::Create(problem));
  KernelStep step;
  step.num_tasks = conv->num_tasks();
  step.scratch_bytes = conv->scratch_bytes();
  step.rounds = conv->rounds();
  step.prepare_tasks = conv->prepare_tasks();
  step.shared_bytes = conv->shared_bytes();
  std::string tiles = conv->tiles();
  step.library = std::make_shared<ConvolutionTasks>(std::move(conv));
  return MadeStep{std::move(step), std::move(tiles)};
}

}  // namespace

const RecipeKind kConvolutionRecipe = {"convolution", &MakeConvolution};

}  // namespace strop::cpu
