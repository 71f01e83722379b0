// Ops with numbers that are known only when the program runs, but whose result has a known shape, or one with bounds:
// they become ops of HLO that compute their indices. A bounded result is made as large as its bounds and then told its
// size. Where nothing bounds the result's shape, EmitDynamic keeps the op as it is, to be verified and printed.
#include <algorithm>

#include "strop/import/convert.h"

namespace strop {
namespace {

constexpr ElementType kIndex = ElementType::S64;

// Number `i` of a vector as a scalar index.
Instruction* Number(Builder& b, Instruction* vector, int64_t i) {
  return b.Convert(b.Reshape(b.Slice(vector, {i}, {i + 1}, {1}), {}), kIndex);
}

// result[.., i, ..] = array[.., positions[i], ..] along `dimension`; positions outside are moved inside.
Instruction* Take(Builder& b, Instruction* array, int64_t dimension, Instruction* positions) {
  GatherAttrs attrs;
  for (int64_t d = 0; d < array->shape().rank(); ++d) {
    attrs.slice_sizes.push_back(d == dimension ? 1 : array->shape().dim(d));
    if (d != dimension) attrs.offset_dims.push_back(d);
  }
  attrs.collapsed_slice_dims = {dimension};
  attrs.start_index_map = {dimension};
  attrs.index_vector_dim = 1;
  return b.Make(Op::Gather, {array, positions}, std::move(attrs));
}

// 0, 1, ..., n - 1, each combined with a scalar.
Instruction* Combine(Builder& b, Op op, Instruction* vector, Instruction* scalar) {
  return b.Make(op, {vector, b.Broadcast(scalar, vector->shape().dims(), {})});
}

Status CheckRank(const OpImport& op) {
  const Shape &operand = op.operand(0)->shape(), &result = op.shape();
  if (operand.rank() != result.rank() || operand.type() != result.type())
    return op.Invalid("the operand ", operand, " cannot become ", result);
  return OkStatus();
}

}  // namespace

bool HasKnownShapes(const OpImport& op) {
  for (int64_t d = 0; d < op.shape().rank(); ++d)
    if (op.shape().is_unbounded(d)) return false;
  for (const Instruction* operand : op.operands())
    if (!operand->shape().IsStatic()) return false;
  return true;
}

Status SetBoundedResult(OpImport& op, Instruction* value, const std::function<Instruction*(int64_t)>& size) {
  Builder& b = op.b();
  STROP_TRY(op.At(b.status()));
  Shape shape = value->shape();
  for (int64_t d = 0; d < op.shape().rank(); ++d) {
    if (!op.shape().is_dynamic(d)) continue;
    shape.set_dynamic(d, true);
    Instruction* now = b.Convert(size(d), ElementType::S32);
    value = b.MakeWithShape(Op::SetDimensionSize, shape, {value, now}, DimensionsAttrs{{d}});
  }
  return op.SetResult(value);
}

Instruction* SizeAt(OpImport& op, int64_t operand, int64_t d) { return Number(op.b(), op.operand(operand), d); }

// Element i of dimension d is start[d] + i * stride[d].
Status EmitSliceByData(OpImport& op) {
  STROP_TRY(CheckRank(op));
  Builder& b = op.b();
  Instruction* value = op.operand(0);
  if (op.shape().num_elements() > 0 && value->shape().num_elements() == 0)
    return op.Invalid("the operand ", value->shape(), " has no elements for ", op.shape());
  for (int64_t d = 0; d < op.shape().rank(); ++d) {
    if (value->shape().num_elements() == 0) break;
    Instruction* steps = b.Iota(Shape::Array(kIndex, {op.shape().dim(d)}), 0);
    Instruction* positions = Combine(b, Op::Multiply, steps, Number(b, op.operand(3), d));
    value = Take(b, value, d, Combine(b, Op::Add, positions, Number(b, op.operand(1), d)));
  }
  if (value->shape().dims() != op.shape().dims()) value = b.Splat(op.shape().type(), 0, op.shape().dims());
  // As many steps as begin before the limit.
  return SetBoundedResult(op, value, [&](int64_t d) {
    Instruction* stride = Number(b, op.operand(3), d);
    Instruction* length = b.Make(Op::Subtract, {Number(b, op.operand(2), d), Number(b, op.operand(1), d)});
    Instruction* last = b.Make(Op::Subtract, {stride, b.Scalar(kIndex, 1)});
    return b.Make(Op::Divide, {b.Make(Op::Add, {length, last}), stride});
  });
}

// Element i of dimension d is element (i - low[d]) / (interior[d] + 1), where that is one, else the padding.
Status EmitPadByData(OpImport& op) {
  STROP_TRY(CheckRank(op));
  Builder& b = op.b();
  const Int64Vector& dims = op.shape().dims();
  Instruction* value = op.operand(0);
  const Shape operand = value->shape();
  auto size = [&](int64_t d) {
    const int64_t n = operand.dim(d);
    Instruction* edges = b.Make(Op::Add, {Number(b, op.operand(2), d), Number(b, op.operand(3), d)});
    Instruction* holes = b.Make(Op::Multiply, {Number(b, op.operand(4), d),
                                               b.Scalar(kIndex, static_cast<double>(std::max<int64_t>(n - 1, 0)))});
    return b.Make(Op::Add, {b.Make(Op::Add, {edges, holes}), b.Scalar(kIndex, static_cast<double>(n))});
  };
  if (operand.num_elements() == 0 || op.shape().num_elements() == 0)
    return SetBoundedResult(op, b.Broadcast(op.operand(1), dims, {}), size);
  for (int64_t d = 0; d < op.shape().rank(); ++d) {
    const int64_t size = value->shape().dim(d);
    const Int64Vector line = {op.shape().dim(d)};
    Instruction* from_low =
        Combine(b, Op::Subtract, b.Iota(Shape::Array(kIndex, line), 0), Number(b, op.operand(2), d));
    Instruction* step = b.Make(Op::Add, {Number(b, op.operand(4), d), b.Scalar(kIndex, 1)});
    Instruction* position = Combine(b, Op::Divide, from_low, step);
    Instruction* rest = Combine(b, Op::Remainder, from_low, step);
    Instruction* inside = b.Make(Op::And, {b.Compare(from_low, b.Splat(kIndex, 0, line), CompareDirection::Ge),
                                           b.Compare(rest, b.Splat(kIndex, 0, line), CompareDirection::Eq)});
    Instruction* end = b.Splat(kIndex, static_cast<double>(size), line);
    inside = b.Make(Op::And, {inside, b.Compare(position, end, CompareDirection::Lt)});
    value = Take(b, value, d, position);
    const Int64Vector taken = value->shape().dims();
    value = b.Make(Op::Select, {b.Broadcast(inside, taken, {d}), value, b.Broadcast(op.operand(1), taken, {})});
  }
  return SetBoundedResult(op, value, size);
}

// The input with the low padding that `padding` (one row a spatial dimension: low, high) tells, dilated, and cut to
// what the windows of the result meet: a convolution of it needs no padding. `window` loses what has been done.
Result<Instruction*> PadInputByData(OpImport& op, const ConvDimLabels& labels, Instruction* padding, Window& window) {
  Builder& b = op.b();
  Instruction* input = op.operand(0);
  const Shape& result = op.shape();
  const size_t rank = static_cast<size_t>(input->shape().rank());
  PadAttrs margins;
  margins.padding.resize(rank);
  DynamicSliceAttrs cut;
  cut.sizes = Dims(input->shape().dims().begin(), input->shape().dims().end());
  std::vector<Instruction*> operands = {nullptr};
  for (size_t d = 0; d < rank; ++d) operands.push_back(b.Scalar(kIndex, 0));
  for (size_t i = 0; i < window.dims.size(); ++i) {
    const int64_t d = labels.input_spatial[i], out = labels.output_spatial[i];
    if (d < 0 || d >= input->shape().rank() || out < 0 || out >= result.rank())
      return op.Invalid("dimension_numbers do not fit ", input->shape(), " and ", result);
    WindowDim& w = window.dims[i];
    // Windows meet so many positions, from low before the first element on; a margin as long on both sides holds all
    // of them wherever they begin.
    const int64_t reach = w.size > 0 ? (w.size - 1) * w.window_dilation + 1 : 0;
    const int64_t met = result.dim(out) > 0 ? (result.dim(out) - 1) * w.stride + reach : 0;
    if (met < 0 || met > INT32_MAX) return op.Invalid("windows reach over ", met, " positions");
    margins.padding[static_cast<size_t>(d)] = {met, met, w.base_dilation - 1};
    cut.sizes[static_cast<size_t>(d)] = met;
    Instruction* row = b.Slice(padding, {static_cast<int64_t>(i), 0}, {static_cast<int64_t>(i) + 1, 1}, {1, 1});
    Instruction* low = b.Convert(b.Reshape(row, {}), kIndex);
    operands[static_cast<size_t>(d) + 1] = b.Make(Op::Subtract, {b.Scalar(kIndex, static_cast<double>(met)), low});
    w.pad_low = w.pad_high = 0;
    w.base_dilation = 1;
  }
  operands[0] = b.Make(Op::Pad, {input, b.Scalar(input->shape().type(), 0)}, std::move(margins));
  return b.Make(Op::DynamicSlice, std::span<Instruction* const>(operands), std::move(cut), {}, nullptr);
}

// Slice sizes that the result's offset dimensions tell.
Status EmitGatherByData(OpImport& op, GatherAttrs attrs) {
  size_t next = 0;
  attrs.slice_sizes.clear();
  const Shape& operand = op.operand(0)->shape();
  auto has = [](const Dims& list, int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); };
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const bool dropped = has(attrs.collapsed_slice_dims, d) || has(attrs.operand_batching_dims, d);
    if (!dropped && (next >= attrs.offset_dims.size() || attrs.offset_dims[next] >= op.shape().rank()))
      return op.Invalid("offset_dims do not fit ", op.shape());
    attrs.slice_sizes.push_back(dropped ? 1 : op.shape().dim(attrs.offset_dims[next++]));
  }
  return op.Emit(Op::Gather, {op.operand(0), op.operand(1)}, std::move(attrs));
}

}  // namespace strop
