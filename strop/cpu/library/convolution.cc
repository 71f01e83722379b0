// convolution -> the library's Conv: dimension labels and row-major shapes become strides.
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

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

}  // namespace

Decision SupportsConvolution(const Instruction& convolution) {
  Result<ConvProblem> problem = ProblemOf(convolution);
  if (!problem.ok()) return Decision::No(problem.status().message());
  if (problem->spatial.size() > 8) return Decision::No("more than 8 spatial dimensions");
  return Decision::Yes();
}

Result<CompiledKernel> MakeConvolution(const KernelSpec& spec) {
  STROP_ASSIGN(ConvProblem problem, ProblemOf(*spec.instruction));
  return FromRecipe(RecipeOf(kConvolutionRecipe, problem));
}

}  // namespace strop::cpu
