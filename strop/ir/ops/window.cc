// Ops with a window: convolution, reduce-window, select-and-scatter.
#include <algorithm>

#include "strop/ir/ops/infer.h"

namespace strop::infer {

int64_t WindowedSize(int64_t size, const WindowDim& w) {
  const __int128 dilated = size == 0 ? 0 : static_cast<__int128>(size - 1) * w.base_dilation + 1;
  const __int128 padded = dilated + w.pad_low + w.pad_high;
  const __int128 window = static_cast<__int128>(w.size - 1) * w.window_dilation + 1;
  if (padded <= 0 || window > padded) return 0;
  const __int128 count = (padded - window) / w.stride + 1;
  return count > INT64_MAX ? -1 : static_cast<int64_t>(count);
}

Result<Shape> WindowedShape(const Args& args, const Shape& base, const Window& window) {
  const bool pooling = args.op != Op::Convolution;
  if (static_cast<int64_t>(window.dims.size()) != base.rank())
    return args.Violates(pooling ? 4 : 2, "the window has ", window.dims.size(), " dimensions, but must have ",
                         base.rank());
  Shape result = base.WithoutLayout();
  for (int64_t i = 0; i < base.rank(); ++i) {
    const WindowDim& w = window.dims[i];
    if (w.size <= 0)
      return args.Violates(pooling ? 5 : 25, "window sizes must be positive, but dimension ", i, " has ", w.size);
    if (w.stride <= 0)
      return args.Violates(pooling ? 7 : 3, "window strides must be positive, but dimension ", i, " has ", w.stride);
    if (w.base_dilation <= 0)
      return args.Violates(pooling ? 9 : 6, "base dilations must be positive, but dimension ", i, " has ",
                           w.base_dilation);
    if (w.window_dilation <= 0)
      return args.Violates(pooling ? 11 : 8, "window dilations must be positive, but dimension ", i, " has ",
                           w.window_dilation);
    if (base.is_unbounded(i)) continue;
    const int64_t size = WindowedSize(base.dim(i), w);
    if (size < 0) return args.Error("the window of dimension ", i, " gives a size that overflows");
    result.set_dim(i, size);
  }
  return result;
}

// ---- convolution ----------------------------------------------------------------------------------------------------

namespace {

Status CheckConvLabels(const Args& args, const ConvolutionAttrs& a) {
  const ConvDimLabels& d = a.dim_labels;
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  if (lhs.rank() != rhs.rank())
    return args.Violates(1, "both operands must have the same rank, but are ", lhs, " and ", rhs);
  if (lhs.rank() < 2)
    return args.Error("operands must have a batch and a feature dimension, but are ", lhs, " and ", rhs);
  if (!d.input_unknown.empty() || !d.kernel_unknown.empty() || !d.output_unknown.empty())
    return args.Error("dim_labels leave dimensions without a meaning");
  auto check = [&](int count_label, int label, std::string_view what, int64_t first, int64_t second,
                   const Dims& spatial) -> Status {
    if (static_cast<int64_t>(spatial.size()) != lhs.rank() - 2)
      return args.Violates(count_label, "dim_labels of the ", what, " name ", spatial.size(),
                           " spatial dimensions, but the operands have ", lhs.rank() - 2);
    Dims all = spatial;
    all.push_back(first);
    all.push_back(second);
    if (!IsUnique(all) || !InRange(all, lhs.rank()))
      return args.Violates(label, "dim_labels of the ", what, " must name each dimension once, but name ", Braces(all));
    return OkStatus();
  };
  STROP_TRY(check(12, 13, "input", d.input_batch, d.input_feature, d.input_spatial));
  STROP_TRY(check(17, 18, "kernel", d.kernel_input_feature, d.kernel_output_feature, d.kernel_spatial));
  STROP_TRY(check(19, 20, "output", d.output_batch, d.output_feature, d.output_spatial));
  return OkStatus();
}

Status CheckConvGroups(const Args& args, const ConvolutionAttrs& a) {
  const ConvDimLabels& d = a.dim_labels;
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  if (a.feature_group_count <= 0)
    return args.Violates(21, "feature_group_count must be positive, but is ", a.feature_group_count);
  if (a.batch_group_count <= 0)
    return args.Violates(22, "batch_group_count must be positive, but is ", a.batch_group_count);
  if (a.feature_group_count > 1 && a.batch_group_count > 1)
    return args.Violates(23, "feature_group_count and batch_group_count must not both be more than 1, but are ",
                         a.feature_group_count, " and ", a.batch_group_count);
  auto divides = [&](int label, const Shape& shape, int64_t dim, int64_t groups, std::string_view what) -> Status {
    if (shape.is_unbounded(dim) || shape.dim(dim) % groups == 0) return OkStatus();
    return args.Violates(label, what, " ", shape.dim(dim), " is not a multiple of the group count ", groups);
  };
  STROP_TRY(divides(10, lhs, d.input_batch, a.batch_group_count, "the batch size"));
  STROP_TRY(divides(11, lhs, d.input_feature, a.feature_group_count, "the number of input features"));
  STROP_TRY(divides(15, rhs, d.kernel_output_feature, a.batch_group_count, "the number of output features"));
  STROP_TRY(divides(16, rhs, d.kernel_output_feature, a.feature_group_count, "the number of output features"));
  if (!lhs.is_unbounded(d.input_feature) && !rhs.is_unbounded(d.kernel_input_feature) &&
      lhs.dim(d.input_feature) / a.feature_group_count != rhs.dim(d.kernel_input_feature))
    return args.Violates(14, "the kernel ", rhs, " must have ", lhs.dim(d.input_feature) / a.feature_group_count,
                         " input features, as the input ", lhs, " has in each group, but has ",
                         rhs.dim(d.kernel_input_feature));
  return OkStatus();
}

}  // namespace

Result<Shape> Convolution(const Args& args) {
  if (args.operand_count() != 2) return args.Error("expected 2 operands, but got ", args.operand_count());
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<ConvolutionAttrs>();
  const ConvDimLabels& d = a.dim_labels;
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  STROP_TRY(CheckConvLabels(args, a));
  STROP_TRY(CheckConvGroups(args, a));
  STROP_ASSIGN(ElementType type, ContractionType(args));

  const int64_t spatial_rank = lhs.rank() - 2;
  Shape base = Shape::Array(type, Int64Vector(static_cast<size_t>(spatial_rank), 0));
  for (int64_t i = 0; i < spatial_rank; ++i) {
    base.set_dim(i, lhs.dim(d.input_spatial[i]));
    base.set_dynamic(i, lhs.is_dynamic(d.input_spatial[i]));
  }
  STROP_ASSIGN(Shape windowed, WindowedShape(args, base, a.window));
  Shape result = Shape::Array(type, Int64Vector(static_cast<size_t>(lhs.rank()), 0));
  for (int64_t i = 0; i < spatial_rank; ++i) {
    if (!rhs.is_unbounded(d.kernel_spatial[i]) && rhs.dim(d.kernel_spatial[i]) != a.window.dims[i].size)
      return args.Violates(25, "the window's size ", a.window.dims[i].size, " differs from dimension ",
                           d.kernel_spatial[i], " of the kernel ", rhs);
    result.set_dim(d.output_spatial[i], windowed.dim(i));
    result.set_dynamic(d.output_spatial[i], windowed.is_dynamic(i));
  }
  result.set_dim(d.output_batch,
                 lhs.is_unbounded(d.input_batch) ? kUnboundedSize : lhs.dim(d.input_batch) / a.batch_group_count);
  result.set_dynamic(d.output_batch, lhs.is_dynamic(d.input_batch));
  result.set_dim(d.output_feature, rhs.dim(d.kernel_output_feature));
  result.set_dynamic(d.output_feature, rhs.is_dynamic(d.kernel_output_feature));
  return result;
}

// ---- pooling --------------------------------------------------------------------------------------------------------

Result<Shape> ReduceWindow(const Args& args) {
  const int64_t n = args.operand_count() / 2;
  if (n < 1 || args.operand_count() % 2 != 0)
    return args.Violates(1, "needs as many initial values as inputs, but got ", args.operand_count(), " operands");
  STROP_TRY(args.ExpectArrays());
  std::vector<ElementType> inputs, init;
  for (int64_t i = 0; i < n; ++i) {
    if (!DimsAgree(args.operand(i), args.operand(0)))
      return args.Violates(2, "inputs must have the same dimensions, but are ", args.operand(0), " and ",
                           args.operand(i));
    if (!args.operand(n + i).IsScalar())
      return args.Error("initial value ", i, " must be a scalar, but is ", args.operand(n + i));
    if (!TypesAgree(args.operand(n + i).type(), args.operand(i).type(), true))
      return args.Violates(3, "initial value ", args.operand(n + i), " must have the element type of its input ",
                           args.operand(i));
    inputs.push_back(args.operand(i).type());
    init.push_back(args.operand(n + i).type());
  }
  STROP_ASSIGN(Shape windowed, WindowedShape(args, args.operand(0), args.attrs<WindowAttrs>().window));
  STROP_ASSIGN(std::vector<ElementType> types, CheckReducer(args, 0, inputs, init, 13));
  std::vector<Shape> results;
  for (ElementType t : types) results.push_back(windowed.WithType(t));
  return OneOrTuple(std::move(results));
}

Result<Shape> SelectAndScatter(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const Shape& operand = args.operand(0);
  const Shape& source = args.operand(1);
  const Shape& init = args.operand(2);
  if (source.type() != operand.type())
    return args.Violates(1, "the source must have the operand's element type, but is ", source, " for ", operand);
  if (!init.IsScalar() || init.type() != operand.type())
    return args.Violates(3, "the initial value must be a scalar of the operand's element type, but is ", init);
  STROP_ASSIGN(Shape windowed, WindowedShape(args, operand, args.attrs<WindowAttrs>().window));
  if (!DimsAgree(windowed, source))
    return args.Violates(2, "the source must have one element for each window, ", windowed, ", but is ", source);
  STROP_ASSIGN(Signature select, SignatureOf(args, 0));
  const bool two =
      select.parameters.size() == 2 && select.parameters[0]->IsScalar() && select.parameters[1]->IsScalar();
  if (!two || select.parameters[0]->type() != operand.type() || select.parameters[1]->type() != operand.type() ||
      !select.result->IsScalar() || !IsPred(select.result->type()))
    return args.Violates(9, "%", args.called[0]->name(), " must take two ", Name(operand.type()),
                         " scalars and return pred[]");
  const ElementType type = operand.type();
  STROP_ASSIGN(std::vector<ElementType> types, CheckReducer(args, 1, {&type, 1}, {&type, 1}, 10));
  return operand.WithoutLayout().WithType(types[0]);
}

}  // namespace strop::infer
