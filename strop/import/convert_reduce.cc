// Ops that apply a function to elements: map, reduce, windows, sort, top-k, scan.
#include <optional>

#include "strop/import/convert.h"

namespace strop {

// reduce and map: dimensions and one function
Status ConvertReduceLike(OpImport& op) {
  DimensionsAttrs attrs;
  STROP_ASSIGN(attrs.dimensions, op.Ints("dimensions"));
  Computation* called[1];
  if (op.hlo_op() == Op::Map) {
    STROP_ASSIGN(called[0], op.Function(0, "mapped"));
  } else {
    STROP_ASSIGN(called[0], op.Reducer(0, op.operand_count() / 2));
  }
  return op.Emit(op.hlo_op(), op.operands(), std::move(attrs), called);
}

namespace {

// window={...} from the attributes, which are ones and zeros where they are missing.
Result<WindowAttrs> WindowOf(const OpImport& op, const Shape& operand, bool dilations) {
  size_t n = static_cast<size_t>(operand.IsArray() ? operand.rank() : 0);
  STROP_TRY(op.CheckPairs("padding"));
  STROP_ASSIGN(Dims sizes, op.Ints("window_dimensions"));
  STROP_ASSIGN(Dims strides, op.Ints("window_strides", Dims(n, 1)));
  STROP_ASSIGN(Dims base, op.Ints("base_dilations", Dims(n, 1)));
  STROP_ASSIGN(Dims window, op.Ints("window_dilations", Dims(n, 1)));
  STROP_ASSIGN(Dims padding, op.Ints("padding", Dims(2 * n, 0)));
  for (auto [name, values] : {std::pair<std::string_view, const Dims*>{"window_dimensions", &sizes},
                              {"window_strides", &strides},
                              {"base_dilations", &base},
                              {"window_dilations", &window}}) {
    if (values->size() != n) return op.Invalid(name, " has ", values->size(), " entries for an operand of rank ", n);
  }
  if (padding.size() != 2 * n) return op.Invalid("padding has ", padding.size(), " entries for an operand of rank ", n);
  WindowAttrs attrs;
  for (size_t i = 0; i < n; ++i) {
    WindowDim d;
    d.size = sizes[i];
    d.stride = strides[i];
    d.pad_low = padding[2 * i];
    d.pad_high = padding[2 * i + 1];
    if (dilations) {
      d.base_dilation = base[i];
      d.window_dilation = window[i];
    }
    attrs.window.dims.push_back(d);
  }
  return attrs;
}

}  // namespace

Status ConvertReduceWindow(OpImport& op) {
  STROP_ASSIGN(WindowAttrs attrs, WindowOf(op, op.operand(0)->shape(), true));
  STROP_ASSIGN(Computation * reducer, op.Reducer(0, op.operand_count() / 2));
  Computation* called[] = {reducer};
  return op.Emit(Op::ReduceWindow, op.operands(), std::move(attrs), called);
}

Status ConvertSelectAndScatter(OpImport& op) {
  STROP_ASSIGN(WindowAttrs attrs, WindowOf(op, op.operand(0)->shape(), false));
  STROP_ASSIGN(Computation * select, op.Function(0, "select"));
  STROP_ASSIGN(Computation * scatter, op.Function(1, "scatter"));
  Computation* called[] = {select, scatter};
  return op.Emit(Op::SelectAndScatter, op.operands(), std::move(attrs), called);
}

Status ConvertSort(OpImport& op) {
  SortAttrs attrs;
  STROP_ASSIGN(int64_t dimension, op.Int("dimension", -1));
  int64_t rank = op.operand(0)->shape().rank();
  if (dimension < -rank || dimension >= rank)
    return op.Invalid("dimension ", dimension, " is no dimension of ", op.operand(0)->shape(), " (sort_c4)");
  attrs.dimensions = {dimension < 0 ? dimension + rank : dimension};
  STROP_ASSIGN(attrs.is_stable, op.Bool("is_stable"));
  STROP_ASSIGN(Computation * comparator, op.Function(0, "comparator"));
  Computation* called[] = {comparator};
  return op.Emit(Op::Sort, op.operands(), std::move(attrs), called);
}

// Compares values, as the total order has floats, and ignores their positions.
Computation* ByValue(OpImport& op, ElementType type, bool largest) {
  Computation*& comparator = op.module().helpers()[StrCat(largest ? "top_k " : "bottom_k ", Name(type))];
  if (comparator) return comparator;
  comparator = op.module().module().AddComputation(largest ? "descending" : "ascending");
  Instruction* a = comparator->AddParameter(0, Shape::Scalar(type));
  Instruction* b = comparator->AddParameter(1, Shape::Scalar(type));
  comparator->AddParameter(2, Shape::Scalar(ElementType::S32));
  comparator->AddParameter(3, Shape::Scalar(ElementType::S32));
  CompareAttrs before{largest ? CompareDirection::Gt : CompareDirection::Lt,
                      IsFloat(type) ? CompareOrder::TotalOrder : CompareOrder::Default};
  comparator->set_root(comparator->Add(Op::Compare, Shape::Scalar(ElementType::Pred), {a, b}, before));
  return comparator;
}

// chlo.top_k, and mhlo.topk, which may ask for the smallest: a stable sort of (value, index) in descending order, cut
// to k. NaNs are first among floats, as the total order has them, equal values by ascending index.
Status ConvertChloTopK(OpImport& op) {
  STROP_ASSIGN(int64_t k, op.Int("k"));
  STROP_ASSIGN(bool largest, op.Bool("largest", true));
  Instruction* values = op.operand(0);
  const Shape& shape = values->shape();
  if (!shape.IsArray() || shape.rank() < 1) return op.Invalid("the operand must have rank 1 or more");
  int64_t last = shape.rank() - 1;
  if (!shape.IsStatic()) return EmitDynamic(op);
  if (k < 0 || k > shape.dim(last))
    return op.Invalid("k = ", k, " is more than the ", shape.dim(last), " elements of the last dimension");
  Computation* comparator = ByValue(op, shape.type(), largest);
  Instruction* indices = op.b().Iota(shape.WithType(ElementType::S32), last);
  Instruction* operands[] = {values, indices};
  Computation* called[] = {comparator};
  Instruction* sorted = op.b().Make(Op::Sort, operands, SortAttrs{{last}, true}, called, nullptr);
  Instruction* results[2];
  for (int64_t i = 0; i < 2; ++i) {
    results[i] = op.b().GetTupleElement(sorted, i);
    Dims start(shape.rank(), 0), limit(shape.dims().begin(), shape.dims().end()), stride(shape.rank(), 1);
    limit[last] = k;
    results[i] = op.b().Slice(results[i], start, limit, stride);
  }
  return op.SetResults(results);
}

// Is it value > other value, or value < other value, of floats?
std::optional<bool> ComparesValues(const Computation& comparator) {
  const Instruction& root = *comparator.root();
  if (root.op() != Op::Compare || comparator.parameter_count() != 4 || !IsFloat(root.operand(0)->shape().type()) ||
      root.operand(0) != comparator.parameter(0) || root.operand(1) != comparator.parameter(1) ||
      comparator.parameter(2)->shape().type() != ElementType::S32)
    return std::nullopt;
  switch (root.attrs<CompareAttrs>().direction) {
    case CompareDirection::Gt: return true;
    case CompareDirection::Lt: return false;
    default: return std::nullopt;
  }
}

// custom_call @ApproxTopK(inputs..., initial values...): the best along reduction_dim in the order of the comparator,
// as many as the result holds. Exact here, which is a recall of 1. A plain comparison of floats says nothing of NaN:
// the order of top_k is one of those that it allows.
Status ConvertApproxTopK(OpImport& op) {
  const MlirAttr* config = op.attr("mhlo.backend_config");
  const MlirAttr* dim = config ? config->Find("reduction_dim") : nullptr;
  const MlirAttr* called = op.attr("called_computations");
  if (!dim || dim->kind != MlirAttrKind::Integer || !called || called->elements.size() != 1)
    return op.Invalid("ApproxTopK needs reduction_dim and one comparator");
  const int64_t n = op.operand_count() / 2, d = dim->as_int();
  if (n == 0 || op.operand_count() % 2 != 0 || static_cast<int64_t>(op.shapes().size()) != n)
    return op.Invalid("ApproxTopK has ", op.operand_count(), " operands and ", op.shapes().size(), " results");
  STROP_ASSIGN(Computation * comparator, op.module().Callee(called->elements[0]->text, op.mlir()));
  for (int64_t i = 0; i < n; ++i) {
    const Shape &in = op.operand(i)->shape(), &out = op.shape(i);
    if (!in.IsArray() || !in.IsStatic() || !out.IsArray() || d < 0 || d >= in.rank() || out.rank() != in.rank() ||
        out.dim(d) > in.dim(d))
      return op.Invalid("ApproxTopK of ", in, " along dimension ", d, " to ", out);
  }
  if (const std::optional<bool> largest = n == 2 ? ComparesValues(*comparator) : std::nullopt)
    comparator = ByValue(op, op.operand(0)->shape().type(), *largest);
  Computation* comparators[] = {comparator};
  Instruction* sorted = op.b().Make(Op::Sort, op.operands().first(n), SortAttrs{{d}, true}, comparators, nullptr);
  STROP_TRY(op.At(op.b().status()));
  std::vector<Instruction*> results;
  for (int64_t i = 0; i < n; ++i) {
    Instruction* all = n == 1 ? sorted : op.b().GetTupleElement(sorted, i);
    const Shape& in = op.operand(i)->shape();
    Dims start(in.rank(), 0), limit(in.dims().begin(), in.dims().end()), stride(in.rank(), 1);
    limit[d] = op.shape(i).dim(d);
    results.push_back(op.b().Slice(all, start, limit, stride));
  }
  return op.SetResults(results);
}

// chlo.scan(inputs) inits(carries): (x, carry) -> (y, carry) along one dimension
Status ConvertChloScan(OpImport& op) {
  STROP_ASSIGN(Dims segments, op.Ints("operandSegmentSizes"));
  if (segments.size() != 2 || segments[0] < 0 || segments[1] < 0 || segments[0] + segments[1] != op.operand_count()) {
    return op.Invalid("operandSegmentSizes does not fit ", op.operand_count(), " operands");
  }
  ScanAttrs attrs;
  STROP_ASSIGN(int64_t dimension, op.Int("dimension"));
  attrs.dimensions = {dimension};
  attrs.num_carries = segments[1];
  STROP_ASSIGN(attrs.is_reverse, op.Bool("is_reverse"));
  if (const MlirAttr* associative = op.attr("is_associative"); associative && associative->kind == MlirAttrKind::Bool) {
    attrs.is_associative.text = associative->bits ? "true" : "false";
  }
  STROP_ASSIGN(Computation * body, op.Function(0, "scan_body"));
  if (body->parameter_count() != op.operand_count())
    return op.Invalid("the body takes ", body->parameter_count(), " values for ", op.operand_count(), " operands");
  STROP_ASSIGN(int64_t size, op.Int("scan_dim_size", -1));
  for (int64_t i = 0; i < op.operand_count(); ++i) {
    // A carry arrives as it is, an input without the dimension that is walked along.
    Shape shape = op.operand(i)->shape().WithoutLayout();
    if (i < segments[0]) {
      if (!shape.IsArray() || dimension < 0 || dimension >= shape.rank())
        return op.Invalid("dimension ", dimension, " is no dimension of ", shape);
      if (size >= 0 && shape.dim(dimension) != size)
        return op.Invalid("operand ", i, " is ", shape, ", but scan_dim_size is ", size);
      Int64Vector dims;
      for (int64_t d = 0; d < shape.rank(); ++d) {
        if (d != dimension) dims.push_back(shape.dim(d));
      }
      shape = Shape::Array(shape.type(), std::move(dims));
    }
    if (!body->parameter(i)->shape().Compatible(shape))
      return op.Invalid("the body takes ", body->parameter(i)->shape(), " for operand ", i, ", which gives ", shape);
  }
  Computation* called[] = {body};
  return op.Emit(Op::Scan, op.operands(), std::move(attrs), called);
}

}  // namespace strop
