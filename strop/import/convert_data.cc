// Ops that move data: broadcast, slices, pad, reshape, gather, scatter, and their forms with shapes as operands, which
// are imported where the operands are constants or the result type settles them.
#include <algorithm>
#include <array>
#include <numeric>

#include "strop/import/convert.h"

namespace strop {
namespace {

bool HasUnbounded(const Shape& shape) {
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape.is_unbounded(i)) return true;
  return false;
}

}  // namespace

Status EmitDynamic(OpImport& op) {
  const bool moves = op.hlo_op() != Op::Convolution && op.hlo_op() != Op::Iota;
  if (moves && op.operand(0)->shape().type() != op.shape().type())
    return op.Invalid("operand and result have the element types ", Name(op.operand(0)->shape().type()), " and ",
                      Name(op.shape().type()));
  CustomCallAttrs attrs;
  attrs.target = std::string(op.mlir().name);
  std::vector<MlirNamedAttr> parameters;
  for (const MlirNamedAttr& a : op.mlir().attrs)
    if (a.name.find('.') == a.name.npos) parameters.push_back(a);
  STROP_ASSIGN(const MlirAttr* dict, op.module().mlir().Dict(std::move(parameters)));
  attrs.opaque = PrintAttr(*dict);
  return op.Emit(Op::CustomCall, op.operands(), std::move(attrs));
}

Status CheckShapeOperand(const OpImport& op, int64_t i) {
  const Shape& shape = op.operand(i)->shape();
  const Shape& result = op.shape();
  if (!shape.IsArray() || shape.rank() != 1 || shape.is_unbounded(0))
    return op.Invalid("operand ", i, " must be a static vector, but is ", shape);
  if (shape.dim(0) != result.rank())
    return op.Invalid("operand ", i, " gives ", shape.dim(0), " dimensions for the result ", result);
  std::optional<std::vector<int64_t>> dims = FoldIntegers(*op.mlir().operands[i]);
  for (int64_t d = 0; dims && d < result.rank(); ++d) {
    if ((*dims)[d] < 0 || (!result.is_unbounded(d) && !result.is_dynamic(d) && (*dims)[d] != result.dim(d))) {
      return op.Invalid("the result is ", result, ", but operand ", i, " gives it the dimensions [", Join(*dims, ","),
                        "]");
    }
  }
  return OkStatus();
}

// MLIR's i1 is one bit and HLO's pred a byte: where bits become a wider element, or come from one, they are gathered
// from and spread over its bits by arithmetic. Everything else is the op of HLO.
Status ConvertBitcastConvert(OpImport& op) {
  Instruction* operand = op.operand(0);
  const Shape& from = operand->shape();
  const Shape& to = op.shape();
  const bool gathers = from.type() == ElementType::Pred;
  const Shape& bits = gathers ? from : to;
  const Shape& wide = gathers ? to : from;
  const bool plain = !from.IsArray() || !to.IsArray() || !from.IsStatic() || !to.IsStatic() ||
                     (gathers == (to.type() == ElementType::Pred)) || bits.rank() != wide.rank() + 1 ||
                     bits.dim(wide.rank()) != Bits(wide.type()) || IsComplex(wide.type());
  if (plain) return op.Emit(Op::BitcastConvert, op.operands(), DefaultAttrs(Op::BitcastConvert));
  Builder& b = op.b();
  const ElementType word = UnsignedOf(Bits(wide.type()));
  const int64_t last = wide.rank();
  Instruction* place = b.Iota(bits.WithType(word), last);
  if (gathers) {
    Instruction* shifted = b.Make(Op::ShiftLeft, {b.Convert(operand, word), place});
    Instruction* words = b.Reduce(shifted, b.Scalar(word, 0), {last}, op.Sum(word));
    return op.SetResult(wide.type() == word ? words : b.BitcastConvert(words, wide.type()));
  }
  Instruction* words = wide.type() == word ? operand : b.BitcastConvert(operand, word);
  Dims kept(last);
  std::iota(kept.begin(), kept.end(), 0);
  Instruction* spread = b.Broadcast(words, bits.dims(), kept);
  Instruction* shifted = b.Make(Op::ShiftRightLogical, {spread, place});
  Instruction* lowest = b.Make(Op::And, {shifted, b.Splat(word, 1, bits.dims())});
  return op.SetResult(b.Compare(lowest, b.Splat(word, 0, bits.dims()), CompareDirection::Ne));
}

Status ConvertBroadcast(OpImport& op) {
  STROP_ASSIGN(Dims sizes, op.Ints("broadcast_sizes"));
  DimensionsAttrs attrs;
  for (int64_t i = 0; i < op.operand(0)->shape().rank(); ++i)
    attrs.dimensions.push_back(static_cast<int64_t>(sizes.size()) + i);
  return op.Emit(Op::Broadcast, op.operands(), attrs);
}

// HLO's broadcast wants equal sizes and ascending dimensions: sizes of 1 that expand are reshaped away first, and
// dimensions that are out of order are transposed.
Status ConvertBroadcastInDim(OpImport& op) {
  STROP_ASSIGN(Dims dims, op.Ints("broadcast_dimensions"));
  Instruction* operand = op.operand(0);
  const Shape& result = op.shape();
  if (!operand->shape().IsArray()) return op.Invalid("the operand must be an array");
  if (op.operand_count() == 2) STROP_TRY(CheckShapeOperand(op, 1));
  int64_t rank = operand->shape().rank();
  if (static_cast<int64_t>(dims.size()) != rank) {
    return op.Invalid("broadcast_dimensions has ", dims.size(), " entries for an operand of rank ", rank,
                      " (broadcast_in_dim_c2)");
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= result.rank())
      return op.Invalid("broadcast dimension ", dims[i], " is no dimension of ", result, " (broadcast_in_dim_c3)");
    if (std::count(dims.begin(), dims.end(), dims[i]) > 1)
      return op.Invalid("broadcast dimension ", dims[i], " is given twice (broadcast_in_dim_c4)");
  }
  for (std::string_view hint : {"known_expanding_dimensions", "known_nonexpanding_dimensions"}) {
    STROP_ASSIGN(Dims hinted, op.Ints(hint, Dims{}));
    for (int64_t d : hinted)
      if (d < 0 || d >= rank) return op.Invalid(hint, ": ", d, " is no dimension of ", operand->shape());
  }
  if (HasUnbounded(result))
    return op.operand_count() == 2 ? EmitDynamic(op) : op.Unsupported("a result of the dynamic shape ", result);
  if (!std::ranges::is_sorted(dims)) {
    Dims order(dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](int64_t i) { return dims[i]; });
    operand = op.b().Transpose(operand, order);
    if (!operand) return op.At(op.b().status());
    std::ranges::sort(dims);
  }
  Int64Vector kept;
  Dims kept_dims;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t from = operand->shape().dim(i), to = result.dim(dims[i]);
    if (from == 1 && to != 1 && !operand->shape().is_dynamic(i)) continue;
    if (from != to && from != kUnboundedSize) {
      return op.Invalid("operand dimension ", i, " of size ", from, " cannot become size ", to,
                        " (broadcast_in_dim_c5)");
    }
    kept.push_back(from);
    kept_dims.push_back(dims[i]);
  }
  if (static_cast<int64_t>(kept.size()) < rank) operand = op.b().Reshape(operand, kept);
  if (op.operand_count() == 2 && !result.IsStatic() && HasKnownShapes(op)) {
    Instruction* largest = op.b().Broadcast(operand, result.dims(), kept_dims);
    return SetBoundedResult(op, largest, [&](int64_t d) { return SizeAt(op, 1, d); });
  }
  return op.Emit(Op::Broadcast, {operand}, DimensionsAttrs{std::move(kept_dims)});
}

Status ConvertConcatenate(OpImport& op) {
  STROP_ASSIGN(int64_t dimension, op.Int("dimension"));
  return op.Emit(Op::Concatenate, op.operands(), DimensionsAttrs{{dimension}});
}

Status ConvertWithDimensions(OpImport& op) {
  DimensionsAttrs attrs;
  STROP_ASSIGN(attrs.dimensions, op.Ints("dimensions"));
  return op.Emit(op.hlo_op(), op.operands(), attrs);
}

Status ConvertTranspose(OpImport& op) {
  DimensionsAttrs attrs;
  STROP_ASSIGN(attrs.dimensions, op.Ints("permutation"));
  return op.Emit(Op::Transpose, op.operands(), attrs);
}

Status ConvertReshape(OpImport& op) {
  if (HasUnbounded(op.shape())) return op.Unsupported("a result of the dynamic shape ", op.shape());
  return op.Emit(Op::Reshape, op.operands(), ReshapeAttrs{});
}

Status ConvertDynamicReshape(OpImport& op) {
  const Shape& result = op.shape();
  STROP_TRY(CheckShapeOperand(op, 1));
  if (result.IsStatic()) return op.Emit(Op::Reshape, {op.operand(0)}, ReshapeAttrs{});
  if (HasUnbounded(result)) return EmitDynamic(op);
  // HLO takes the sizes as scalars.
  std::vector<Instruction*> operands = {op.operand(0)};
  for (int64_t i = 0; i < result.rank(); ++i) {
    Instruction* size = op.b().Slice(op.operand(1), {i}, {i + 1}, {1});
    operands.push_back(op.b().Convert(op.b().Reshape(size, {}), ElementType::S32));
  }
  return op.Emit(Op::DynamicReshape, operands, NoAttrs{});
}

namespace {

// Three numbers for each dimension: start, limit and stride of a slice; low, high and interior padding.
using Triple = std::array<Dims, 3>;

Result<Triple> ReadTriple(const OpImport& op, std::array<std::string_view, 3> names) {
  Triple out;
  for (size_t i = 0; i < 3; ++i) {
    STROP_ASSIGN(out[i], op.Ints(names[i]));
  }
  return out;
}

// Of the operands from `first` on, if all are constant.
std::optional<Triple> FoldTriple(const OpImport& op, size_t first) {
  Triple out;
  for (size_t i = 0; i < 3; ++i) {
    std::optional<Dims> folded = FoldIntegers(*op.mlir().operands[first + i]);
    if (!folded) return std::nullopt;
    out[i] = std::move(*folded);
  }
  return out;
}

Status EmitSlice(OpImport& op, const Triple& bounds) {
  const auto& [starts, limits, strides] = bounds;
  if (starts.size() != limits.size() || starts.size() != strides.size()) {
    return op.Invalid("start_indices, limit_indices and strides have ", starts.size(), ", ", limits.size(), " and ",
                      strides.size(), " entries (slice_c2)");
  }
  SliceAttrs attrs;
  for (size_t i = 0; i < starts.size(); ++i) attrs.slice.push_back({starts[i], limits[i], strides[i]});
  return op.Emit(Op::Slice, {op.operand(0)}, std::move(attrs));
}

Status EmitPad(OpImport& op, const Triple& amounts) {
  const auto& [low, high, interior] = amounts;
  if (low.size() != high.size() || low.size() != interior.size()) {
    return op.Invalid("low, high and interior padding have ", low.size(), ", ", high.size(), " and ", interior.size(),
                      " entries (pad_c2)");
  }
  PadAttrs attrs;
  for (size_t i = 0; i < low.size(); ++i) attrs.padding.push_back({low[i], high[i], interior[i]});
  return op.Emit(Op::Pad, {op.operand(0), op.operand(1)}, std::move(attrs));
}

}  // namespace

Status ConvertSlice(OpImport& op) {
  STROP_ASSIGN(Triple bounds, ReadTriple(op, {"start_indices", "limit_indices", "strides"}));
  return EmitSlice(op, bounds);
}

// With constant bounds a slice; with constant strides of one and a static result a dynamic slice, which starts where
// this one does (a program may not read outside of the operand).
Status ConvertRealDynamicSlice(OpImport& op) {
  if (std::optional<Triple> bounds = FoldTriple(op, 1)) return EmitSlice(op, *bounds);
  std::optional<Dims> strides = FoldIntegers(*op.mlir().operands[3]);
  if (!HasKnownShapes(op)) return EmitDynamic(op);
  if (!op.shape().IsStatic() || !strides || std::ranges::any_of(*strides, [](int64_t s) { return s != 1; }))
    return EmitSliceByData(op);
  std::vector<Instruction*> operands = {op.operand(0)};
  for (int64_t i = 0; i < op.shape().rank(); ++i) {
    operands.push_back(op.b().Reshape(op.b().Slice(op.operand(1), {i}, {i + 1}, {1}), {}));
  }
  const Int64Vector& sizes = op.shape().dims();
  return op.Emit(Op::DynamicSlice, operands, DynamicSliceAttrs{Dims(sizes.begin(), sizes.end())});
}

Status ConvertDynamicSlice(OpImport& op) {
  DynamicSliceAttrs attrs;
  STROP_ASSIGN(attrs.sizes, op.Ints("slice_sizes"));
  return op.Emit(Op::DynamicSlice, op.operands(), std::move(attrs));
}

Status ConvertPad(OpImport& op) {
  STROP_ASSIGN(Triple amounts, ReadTriple(op, {"edge_padding_low", "edge_padding_high", "interior_padding"}));
  return EmitPad(op, amounts);
}

Status ConvertDynamicPad(OpImport& op) {
  for (int64_t i = 2; i < 5; ++i) {
    const Shape& padding = op.operand(i)->shape();
    if (padding.rank() != 1 || (!padding.is_unbounded(0) && padding.dim(0) != op.operand(0)->shape().rank()))
      return op.Invalid("operand ", i, " must have a number for each dimension of ", op.operand(0)->shape(),
                        ", but is ", padding, " (dynamic_pad_c2)");
  }
  std::optional<Triple> amounts = FoldTriple(op, 2);
  if (amounts) return EmitPad(op, *amounts);
  return HasKnownShapes(op) ? EmitPadByData(op) : EmitDynamic(op);
}

Status ConvertGetDimensionSize(OpImport& op) {
  STROP_ASSIGN(int64_t dimension, op.Int("dimension"));
  const Shape& operand = op.operand(0)->shape();
  if (!operand.IsArray() || dimension < 0 || dimension >= operand.rank()) {
    return op.Invalid("dimension ", dimension, " is no dimension of ", operand, " (get_dimension_size_c1)");
  }
  if (!operand.is_dynamic(dimension) && !operand.is_unbounded(dimension)) {
    return op.SetResult(op.b().Constant(Literal::ScalarOfInt(op.shape().type(), operand.dim(dimension))));
  }
  return op.Emit(Op::GetDimensionSize, op.operands(), DimensionsAttrs{{dimension}});
}

Status ConvertSetDimensionSize(OpImport& op) {
  STROP_ASSIGN(int64_t dimension, op.Int("dimension"));
  return op.Emit(Op::SetDimensionSize, op.operands(), DimensionsAttrs{{dimension}});
}

namespace {

Result<GatherAttrs> GatherNumbers(const OpImport& op) {
  STROP_ASSIGN(const MlirAttr* numbers, op.StructAttr("dimension_numbers", "stablehlo.gather"));
  GatherAttrs attrs;
  STROP_TRY(op.ReadFields(*numbers, {{"offset_dims", &attrs.offset_dims},
                                     {"collapsed_slice_dims", &attrs.collapsed_slice_dims},
                                     {"start_index_map", &attrs.start_index_map},
                                     {"operand_batching_dims", &attrs.operand_batching_dims},
                                     {"start_indices_batching_dims", &attrs.start_indices_batching_dims}}));
  attrs.index_vector_dim = op.FieldInt(*numbers, "index_vector_dim");
  STROP_ASSIGN(attrs.indices_are_sorted, op.Bool("indices_are_sorted"));
  return attrs;
}

// The slice sizes are not known before the program runs: what does not depend on them is checked with the operand's
// own.
Status CheckGatherNumbers(OpImport& op, GatherAttrs attrs) {
  const Shape& operand = op.operand(0)->shape();
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const bool dropped =
        std::ranges::count(attrs.collapsed_slice_dims, i) || std::ranges::count(attrs.operand_batching_dims, i);
    attrs.slice_sizes.push_back(dropped ? 1 : operand.dim(i));
  }
  const Shape* operands[] = {&operand, &op.operand(1)->shape()};
  Result<Shape> inferred = InferShape(Op::Gather, operands, attrs, {}, nullptr);
  if (!inferred.ok()) return op.At(std::move(inferred).status());
  bool fits = inferred->rank() == op.shape().rank();
  for (int64_t i = 0; fits && i < inferred->rank(); ++i) {
    const int64_t a = inferred->dim(i), b = op.shape().dim(i);
    fits = std::ranges::count(attrs.offset_dims, i) || a == kUnboundedSize || b == kUnboundedSize || a == b;
  }
  if (!fits)
    return op.Invalid("the result is ", op.shape(), ", but the operands give ", *inferred, " (dynamic_gather_c22)");
  return OkStatus();
}

}  // namespace

Status ConvertGather(OpImport& op) {
  STROP_ASSIGN(GatherAttrs attrs, GatherNumbers(op));
  STROP_ASSIGN(attrs.slice_sizes, op.Ints("slice_sizes"));
  return op.Emit(Op::Gather, op.operands(), std::move(attrs));
}

Status ConvertDynamicGather(OpImport& op) {
  STROP_ASSIGN(GatherAttrs attrs, GatherNumbers(op));
  std::optional<std::vector<int64_t>> sizes = FoldIntegers(*op.mlir().operands[2]);
  if (!sizes) {
    STROP_TRY(CheckGatherNumbers(op, attrs));
    return HasKnownShapes(op) && op.shape().IsStatic() ? EmitGatherByData(op, std::move(attrs)) : EmitDynamic(op);
  }
  attrs.slice_sizes = *std::move(sizes);
  return op.Emit(Op::Gather, {op.operand(0), op.operand(1)}, std::move(attrs));
}

Status ConvertScatter(OpImport& op) {
  STROP_ASSIGN(const MlirAttr* numbers, op.StructAttr("scatter_dimension_numbers", "stablehlo.scatter"));
  if (op.operand_count() % 2 != 1 || op.operand_count() < 3)
    return op.Invalid("has ", op.operand_count(), " operands; expected n inputs, the indices and n updates");
  ScatterAttrs attrs;
  STROP_TRY(op.ReadFields(*numbers, {{"update_window_dims", &attrs.update_window_dims},
                                     {"inserted_window_dims", &attrs.inserted_window_dims},
                                     {"scatter_dims_to_operand_dims", &attrs.scatter_dims_to_operand_dims},
                                     {"input_batching_dims", &attrs.input_batching_dims},
                                     {"scatter_indices_batching_dims", &attrs.scatter_indices_batching_dims}}));
  attrs.index_vector_dim = op.FieldInt(*numbers, "index_vector_dim");
  STROP_ASSIGN(attrs.indices_are_sorted, op.Bool("indices_are_sorted"));
  STROP_ASSIGN(attrs.unique_indices, op.Bool("unique_indices"));
  STROP_ASSIGN(Computation * update, op.Function(0, "update_computation"));
  Computation* called[] = {update};
  return op.Emit(Op::Scatter, op.operands(), std::move(attrs), called);
}

// result[batch..., i..., rest...] = operand[batch..., index[batch..., i...], rest...] along `dim`
Status ConvertTorchIndexSelect(OpImport& op) {
  STROP_ASSIGN(int64_t dim, op.Int("dim"));
  STROP_ASSIGN(int64_t batch, op.Int("batch_dims"));
  const Shape& operand = op.operand(0)->shape();
  const Shape& index = op.operand(1)->shape();
  if (dim < 0) dim += operand.rank();
  if (batch < 0) batch += index.rank();
  if (dim < 0 || dim >= operand.rank() || batch < 0 || batch > dim || batch > index.rank()) {
    return op.Invalid("dim = ", dim, " and batch_dims = ", batch, " do not fit ", operand, " and ", index);
  }
  GatherAttrs attrs;
  for (int64_t i = 0; i < operand.rank(); ++i) attrs.slice_sizes.push_back(i < batch || i == dim ? 1 : operand.dim(i));
  for (int64_t i = 0; i < batch; ++i) {
    attrs.operand_batching_dims.push_back(i);
    attrs.start_indices_batching_dims.push_back(i);
  }
  attrs.collapsed_slice_dims = {dim};
  attrs.start_index_map = {dim};
  attrs.index_vector_dim = index.rank();
  // The result's order is batch, the operand's dimensions before dim, the index's, the operand's after dim.
  for (int64_t i = batch; i < dim; ++i) attrs.offset_dims.push_back(i);
  for (int64_t i = dim + 1; i < operand.rank(); ++i) attrs.offset_dims.push_back(i - 1 + index.rank() - batch);
  return op.Emit(Op::Gather, op.operands(), std::move(attrs));
}

}  // namespace strop
