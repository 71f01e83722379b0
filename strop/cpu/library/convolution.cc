// convolution -> the library's Conv: dimension labels and row-major shapes become strides.
#include <algorithm>

#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/library/library.h"

namespace strop::cpu {
namespace {

Result<ConvProblem> ProblemOf(const Instruction& conv) {
  const ConvolutionAttrs& a = conv.attrs<ConvolutionAttrs>();
  const ConvDimLabels& l = a.dim_labels;
  const Shape& input = conv.operand(0)->shape();
  const Shape& kernel = conv.operand(1)->shape();
  const Shape& output = conv.shape();
  if (conv.operand_count() != 2) return Unimplemented("sparse convolution");
  if (!l.input_unknown.empty() || !l.kernel_unknown.empty() || !l.output_unknown.empty())
    return Unimplemented("convolution with dimensions that have no label");
  for (const Shape* s : {&input, &kernel, &output})
    if (IsComplex(s->type()) || IsPred(s->type()))
      return Unimplemented("convolution of ", Name(input.type()), " and ", Name(kernel.type()), " to ",
                           Name(output.type()));
  const Int64Vector is = input.Strides(), ks = kernel.Strides(), os = output.Strides();
  ConvProblem p;
  p.input_type = input.type();
  p.kernel_type = kernel.type();
  p.output_type = output.type();
  p.batch = output.dim(l.output_batch);
  p.in_features = kernel.dim(l.kernel_input_feature);
  p.out_features = kernel.dim(l.kernel_output_feature);
  p.feature_groups = a.feature_group_count;
  p.batch_groups = a.batch_group_count;
  p.input_batch_stride = is[l.input_batch];
  p.input_feature_stride = is[l.input_feature];
  p.kernel_in_stride = ks[l.kernel_input_feature];
  p.kernel_out_stride = ks[l.kernel_output_feature];
  p.output_batch_stride = os[l.output_batch];
  p.output_feature_stride = os[l.output_feature];
  for (size_t d = 0; d < l.input_spatial.size(); ++d) {
    const WindowDim w = d < a.window.dims.size() ? a.window.dims[d] : WindowDim{};
    ConvSpatialDim s;
    s.input = input.dim(l.input_spatial[d]);
    s.kernel = kernel.dim(l.kernel_spatial[d]);
    s.output = output.dim(l.output_spatial[d]);
    s.stride = w.stride;
    s.pad_low = w.pad_low;
    s.base_dilation = w.base_dilation;
    s.window_dilation = w.window_dilation;
    s.reversal = w.reversal;
    s.input_stride = is[l.input_spatial[d]];
    s.kernel_stride = ks[l.kernel_spatial[d]];
    s.output_stride = os[l.output_spatial[d]];
    p.spatial.push_back(s);
  }
  return p;
}

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

}  // namespace

Decision SupportsConvolution(const Instruction& convolution) {
  Result<ConvProblem> problem = ProblemOf(convolution);
  if (!problem.ok()) return Decision::No(problem.status().message());
  if (problem->spatial.size() > 8) return Decision::No("more than 8 spatial dimensions");
  return Decision::Yes();
}

Result<CompiledKernel> MakeConvolution(const KernelSpec& spec) {
  STROP_ASSIGN(ConvProblem problem, ProblemOf(*spec.instruction));
  STROP_ASSIGN(std::shared_ptr<const Conv> conv, Conv::Create(problem));
  KernelStep step;
  step.num_tasks = conv->num_tasks();
  step.scratch_bytes = conv->scratch_bytes();
  step.rounds = conv->rounds();
  step.prepare_tasks = conv->prepare_tasks();
  step.shared_bytes = conv->shared_bytes();
  CompiledKernel kernel;
  kernel.tiles = conv->tiles();
  step.library = std::make_shared<ConvolutionTasks>(std::move(conv));
  kernel.body = std::move(step);
  return kernel;
}

}  // namespace strop::cpu
