// Quantised tensors: HLO has no type for them, so an instruction holds the stored integers and the parameters stay in
// the MLIR types. An op on them is one of these:
//
//   storage     moves elements, or hands values on: imported as it is, on the stored integers
//   quantize    uniform_quantize, uniform_dequantize: spelled out
//   arithmetic  everything else: operands are dequantised, the op works on what they express, results are quantised;
//               large products are those of the integers (quantized_product.h)
//
//   dequantize(q) = (q - zero_point) * scale         quantize(x) = round_even(clamp(x / scale + zero_point, min, max))
//
// which is the order that the StableHLO specification gives. Per-axis parameters are constants of one dimension, spread
// over the others; blockwise ones are refused.
#include <algorithm>
#include <cmath>

#include "strop/import/convert.h"
#include "strop/import/quantized_product.h"

namespace strop {
namespace {

enum class QuantizedUse : uint8_t {
  Arithmetic,         // one scale a tensor
  ArithmeticPerAxis,  // or one for each index of a dimension
  Moves,              // elements of one quantised type
  MovesPerAxis,
  Reduces,  // by a function of its own, whose ops know what to do
  HandsOn,  // any types
  HandsOnOneScale,
  Quantizes,
};

QuantizedUse UseOf(std::string_view op) {
  constexpr std::pair<std::string_view, QuantizedUse> kUses[] = {
      {"stablehlo.add", QuantizedUse::ArithmeticPerAxis},
      {"stablehlo.dot_general", QuantizedUse::ArithmeticPerAxis},
      {"stablehlo.convolution", QuantizedUse::ArithmeticPerAxis},
      {"stablehlo.dynamic_conv", QuantizedUse::ArithmeticPerAxis},
      {"stablehlo.broadcast", QuantizedUse::Moves},
      {"stablehlo.concatenate", QuantizedUse::Moves},
      {"stablehlo.slice", QuantizedUse::Moves},
      {"stablehlo.real_dynamic_slice", QuantizedUse::Moves},
      {"stablehlo.dynamic_slice", QuantizedUse::Moves},
      {"stablehlo.dynamic_update_slice", QuantizedUse::Moves},
      {"stablehlo.pad", QuantizedUse::Moves},
      {"stablehlo.dynamic_pad", QuantizedUse::Moves},
      {"stablehlo.reverse", QuantizedUse::Moves},
      {"stablehlo.gather", QuantizedUse::Moves},
      {"stablehlo.dynamic_gather", QuantizedUse::Moves},
      {"stablehlo.torch_index_select", QuantizedUse::Moves},
      {"stablehlo.all_gather", QuantizedUse::Moves},
      {"stablehlo.all_to_all", QuantizedUse::Moves},
      {"stablehlo.collective_broadcast", QuantizedUse::Moves},
      {"stablehlo.collective_permute", QuantizedUse::Moves},
      {"stablehlo.broadcast_in_dim", QuantizedUse::MovesPerAxis},
      {"stablehlo.dynamic_broadcast_in_dim", QuantizedUse::MovesPerAxis},
      {"stablehlo.reshape", QuantizedUse::MovesPerAxis},
      {"stablehlo.dynamic_reshape", QuantizedUse::MovesPerAxis},
      {"stablehlo.transpose", QuantizedUse::MovesPerAxis},
      {"stablehlo.reduce", QuantizedUse::Reduces},
      {"stablehlo.reduce_window", QuantizedUse::Reduces},
      {"stablehlo.select_and_scatter", QuantizedUse::Reduces},
      {"stablehlo.scatter", QuantizedUse::Reduces},
      {"stablehlo.sort", QuantizedUse::Reduces},
      {"stablehlo.map", QuantizedUse::Reduces},
      {"stablehlo.all_reduce", QuantizedUse::Reduces},
      {"stablehlo.reduce_scatter", QuantizedUse::Reduces},
      {"stablehlo.constant", QuantizedUse::HandsOn},
      {"stablehlo.bitcast_convert", QuantizedUse::HandsOn},
      {"stablehlo.get_dimension_size", QuantizedUse::HandsOn},
      {"stablehlo.set_dimension_size", QuantizedUse::HandsOn},
      {"stablehlo.if", QuantizedUse::HandsOn},
      {"stablehlo.case", QuantizedUse::HandsOn},
      {"stablehlo.while", QuantizedUse::HandsOn},
      {"stablehlo.composite", QuantizedUse::HandsOn},
      {"stablehlo.custom_call", QuantizedUse::HandsOn},
      {"stablehlo.tuple", QuantizedUse::HandsOn},
      {"stablehlo.get_tuple_element", QuantizedUse::HandsOn},
      {"stablehlo.optimization_barrier", QuantizedUse::HandsOnOneScale},
      {"stablehlo.infeed", QuantizedUse::HandsOn},
      {"stablehlo.outfeed", QuantizedUse::HandsOn},
      {"stablehlo.send", QuantizedUse::HandsOn},
      {"stablehlo.recv", QuantizedUse::HandsOn},
      {"func.call", QuantizedUse::HandsOn},
      {"builtin.unrealized_conversion_cast", QuantizedUse::HandsOn},
      {"stablehlo.uniform_quantize", QuantizedUse::Quantizes},
      {"stablehlo.uniform_dequantize", QuantizedUse::Quantizes},
  };
  for (const auto& [name, use] : kUses)
    if (name == op) return use;
  return QuantizedUse::Arithmetic;
}

const MlirType* QuantizedElement(const MlirType& type) {
  const bool tensor = type.kind == MlirTypeKind::Tensor;
  return tensor && type.element()->kind == MlirTypeKind::Quantized ? type.element() : nullptr;
}

// The quantised tensor types among operands and results, operands first.
std::vector<const MlirType*> QuantizedTypes(const MlirOp& op) {
  std::vector<const MlirType*> types;
  for (const MlirValue* v : op.operands)
    if (v && QuantizedElement(*v->type)) types.push_back(v->type);
  for (const MlirValue& v : op.results)
    if (QuantizedElement(*v.type)) types.push_back(v.type);
  return types;
}

bool SameParameters(const MlirQuant& a, const MlirQuant& b) {
  return std::ranges::equal(a.scales, b.scales) && std::ranges::equal(a.zero_points, b.zero_points);
}

// broadcast_in_dim may repeat the one scale of a dimension of size 1.
Status CheckBroadcastAxis(const OpImport& op, const MlirQuant& from, const MlirQuant& to) {
  STROP_ASSIGN(Dims dimensions, op.Ints("broadcast_dimensions"));
  const size_t axis = static_cast<size_t>(from.axis);
  if (axis >= dimensions.size() || dimensions[axis] != to.axis)
    return op.Invalid("the result is quantized along dimension ", to.axis, ", but the operand's dimension ", axis,
                      " becomes another one");
  for (size_t i = 0; i < to.scales.size(); ++i) {
    const size_t j = from.scales.size() == 1 ? 0 : i;
    if (j >= from.scales.size() || to.scales[i] != from.scales[j] || to.zero_points[i] != from.zero_points[j])
      return op.Invalid("scale and zero point ", i, " of the result differ from the operand's");
  }
  return OkStatus();
}

Status CheckMoves(const OpImport& op, const std::vector<const MlirType*>& types) {
  const MlirType& first = *types[0]->element();
  for (const MlirType* t : std::span(types).subspan(1)) {
    const MlirType& element = *t->element();
    if (!SameType(*element.types[0], *first.types[0]) || !SameType(*element.types[1], *first.types[1]) ||
        element.quant->flags != first.quant->flags || (element.quant->axis < 0) != (first.quant->axis < 0))
      return op.Invalid("operands and results have different quantized types");
    if (first.quant->axis >= 0 && op.mlir().name.ends_with("broadcast_in_dim"))
      STROP_TRY(CheckBroadcastAxis(op, *first.quant, *element.quant));
    else if (!SameParameters(*element.quant, *first.quant))
      return op.Invalid("operands and results have different scales or zero points");
  }
  return OkStatus();
}

Status CheckReduces(const OpImport& op, const std::vector<const MlirType*>& types) {
  const MlirType& first = *types[0]->element();
  for (const MlirType* t : types) {
    const MlirType& element = *t->element();
    if (!SameType(*element.types[1], *first.types[1]))
      return op.Invalid("operands and results express ", PrintType(*first.types[1]), " and ",
                        PrintType(*element.types[1]));
    if (!SameParameters(*element.quant, *first.quant))
      return op.Unsupported("operands and results of different scales or zero points");
  }
  return OkStatus();
}

Status CheckArithmetic(const OpImport& op, const std::vector<const MlirType*>& types) {
  const MlirOp& mlir = op.mlir();
  for (const MlirType* t : types)
    if (!SameType(*t->element()->types[1], *types[0]->element()->types[1]))
      return op.Invalid("operands and results express ", PrintType(*types[0]->element()->types[1]), " and ",
                        PrintType(*t->element()->types[1]));
  const bool contraction = mlir.name == "stablehlo.dot_general" || mlir.name == "stablehlo.convolution" ||
                           mlir.name == "stablehlo.dynamic_conv";
  auto quantized = [](const MlirValue& v) { return QuantizedElement(*v.type); };
  if (contraction) {
    const MlirType *lhs = quantized(*mlir.operands[0]), *rhs = quantized(*mlir.operands[1]);
    if (!rhs || !lhs != !quantized(mlir.results[0]))
      return op.Invalid("the right side must be quantized, the left side as the result is");
    if (lhs && (!SameType(*lhs->types[0], *rhs->types[0]) || lhs->quant->flags != rhs->quant->flags))
      return op.Invalid("the two sides are stored as ", PrintType(*lhs->types[0]), " and ", PrintType(*rhs->types[0]));
    if (lhs && lhs->quant->axis >= 0) return op.Invalid("the left side must have one scale");
    return OkStatus();
  }
  const bool adds = mlir.name == "stablehlo.add" || mlir.name.starts_with("chlo.broadcast_");
  for (const MlirValue& result : mlir.results) {
    const MlirType* element = quantized(result);
    const bool number = result.type->IsTensor() && result.type->element()->kind == MlirTypeKind::Float;
    if (number) return op.Invalid("operands are quantized, but a result is not");
    if (adds && element && !SameType(*element->types[0], *types[0]->element()->types[0]))
      return op.Invalid("operands and results are stored as ", PrintType(*types[0]->element()->types[0]), " and ",
                        PrintType(*element->types[0]));
  }
  return OkStatus();
}

// One number a channel, spread over `dims`.
Instruction* Spread(Builder& b, ElementType type, std::span<const double> values, int64_t axis,
                    const Int64Vector& dims) {
  if (axis < 0) return b.Splat(type, values[0], dims);
  Literal literal = *Literal::Zeros(Shape::Array(type, {static_cast<int64_t>(values.size())}));
  for (size_t i = 0; i < values.size(); ++i) literal.SetDouble(static_cast<int64_t>(i), values[i]);
  return b.Broadcast(b.Constant(std::move(literal)), dims, {axis});
}

std::vector<double> Doubles(std::span<const int64_t> values) { return {values.begin(), values.end()}; }

Result<ElementType> Expressed(const MlirType& quantized) { return ElementTypeOf(*quantized.element()->types[1]); }

Result<Instruction*> Dequantize(OpImport& op, Instruction* stored, const MlirType& type) {
  Builder& b = op.b();
  const MlirQuant& q = *type.element()->quant;
  const Int64Vector& dims = stored->shape().dims();
  if (!stored->shape().IsStatic()) return op.Unsupported("a quantized value of the dynamic shape ", stored->shape());
  STROP_ASSIGN(ElementType expressed, Expressed(type));
  const bool zero = std::ranges::all_of(q.zero_points, [](int64_t z) { return z == 0; });
  Instruction* value = stored;
  if (!zero) {
    value = b.Convert(value, Bits(stored->shape().type()) < 32 ? ElementType::S32 : ElementType::S64);
    STROP_TRY(op.At(b.status()));
    value = b.Make(Op::Subtract, {value, Spread(b, value->shape().type(), Doubles(q.zero_points), q.axis, dims)});
  }
  return b.Make(Op::Multiply, {b.Convert(value, expressed), Spread(b, expressed, q.scales, q.axis, dims)});
}

// With `product`, of its sums: the three scales become one factor.
Result<Instruction*> Quantize(OpImport& op, Instruction* value, const MlirType& type,
                              const IntegerProduct* product = nullptr) {
  Builder& b = op.b();
  const MlirQuant& q = *type.element()->quant;
  const Int64Vector& dims = value->shape().dims();
  if (!value->shape().IsStatic()) return op.Unsupported("a quantized value of the dynamic shape ", value->shape());
  STROP_ASSIGN(ElementType storage, ElementTypeOf(*type.element()));
  const ElementType expressed = value->shape().type();
  Instruction* x = nullptr;
  if (product) {
    std::vector<double> factors = product->scales;
    for (double& factor : factors) factor /= q.scales[0];
    x = b.Make(Op::Multiply, {product->sums, Spread(b, expressed, factors, product->dimension, dims)});
  } else {
    x = b.Make(Op::Divide, {value, Spread(b, expressed, q.scales, q.axis, dims)});
  }
  x = b.Make(Op::Add, {x, Spread(b, expressed, Doubles(q.zero_points), q.axis, dims)});
  Instruction* low = b.Splat(expressed, static_cast<double>(q.storage_min), dims);
  Instruction* high = b.Splat(expressed, static_cast<double>(q.storage_max), dims);
  x = b.Make(Op::RoundNearestEven, {b.Make(Op::Clamp, {low, x, high})});
  return b.Convert(x, storage);
}

}  // namespace

bool IsQuantized(const MlirType& type) { return QuantizedElement(type) != nullptr; }

bool TouchesQuantized(const MlirOp& op) {
  for (const MlirValue* v : op.operands)
    if (v && IsQuantized(*v->type)) return true;
  return std::ranges::any_of(op.results, [](const MlirValue& v) { return IsQuantized(*v.type); });
}

Status CheckQuantizedType(const MlirType& tensor) {
  const MlirType& element = *tensor.element();
  const MlirQuant& q = *element.quant;
  auto no = [&](const auto&... why) { return InvalidArgument("type ", PrintType(tensor), ": ", StrCat(why...)); };
  if (q.axis < -1) return Unimplemented("type ", PrintType(tensor), ": blockwise quantization");
  if (element.types[0]->sign == MlirSign::Signed)
    return no("it must be stored as a signless integer, or as an unsigned one");
  if (element.types[1]->kind != MlirTypeKind::Float) return no("what it expresses is no floating-point type");
  STROP_ASSIGN(ElementType expressed, ElementTypeOf(*element.types[1]));
  if (q.scales.empty() || q.scales.size() != q.zero_points.size()) return no("it needs a zero point for each scale");
  for (double scale : q.scales) {
    const double rounded = DecodeFloat(expressed, EncodeFloat(expressed, scale));
    const double smallest = expressed == ElementType::F16   ? 0x1p-14
                            : expressed == ElementType::F64 ? 0x1p-1022
                                                            : 0x1p-126;
    if (!std::isfinite(rounded) || !(rounded >= smallest))
      return no("the scale ", scale, " is out of the range of ", Name(expressed));
  }
  for (int64_t z : q.zero_points)
    if (z < q.storage_min || z > q.storage_max)
      return no("the zero point ", z, " is not between ", q.storage_min, " and ", q.storage_max);
  if (q.axis < 0) return OkStatus();
  if (q.axis >= static_cast<int64_t>(tensor.dims.size())) return no("it has no dimension ", q.axis);
  const int64_t size = tensor.dims[static_cast<size_t>(q.axis)];
  if (size != kMlirDynamic && size != static_cast<int64_t>(q.scales.size()))
    return no(q.scales.size(), " scales for ", size, " indices of dimension ", q.axis);
  return OkStatus();
}

Status OpImport::DequantizeOperands() {
  const QuantizedUse use = UseOf(op_.name);
  const std::vector<const MlirType*> types = QuantizedTypes(op_);
  for (const MlirType* t : types) {
    STROP_TRY(At(CheckQuantizedType(*t)));
    const bool per_axis = t->element()->quant->axis >= 0;
    if (per_axis && (use == QuantizedUse::Arithmetic || use == QuantizedUse::Moves || use == QuantizedUse::Reduces ||
                     use == QuantizedUse::HandsOnOneScale))
      return Invalid("type ", PrintType(*t), ": operands and results must have one scale each");
  }
  if (use == QuantizedUse::Moves || use == QuantizedUse::MovesPerAxis) return CheckMoves(*this, types);
  if (use == QuantizedUse::Reduces) return CheckReduces(*this, types);
  if (use == QuantizedUse::HandsOn || use == QuantizedUse::HandsOnOneScale || use == QuantizedUse::Quantizes)
    return OkStatus();
  STROP_TRY(CheckArithmetic(*this, types));
  for (size_t i = 0; i < operands_.size(); ++i) {
    const MlirType& type = *op_.operands[i]->type;
    stored_.push_back(operands_[i]);
    if (!IsQuantized(type)) continue;
    STROP_ASSIGN(operands_[i], Dequantize(*this, operands_[i], type));
  }
  for (size_t i = 0; i < result_shapes_.size(); ++i) {
    const MlirType& type = *op_.results[i].type;
    if (!IsQuantized(type)) continue;
    STROP_ASSIGN(ElementType expressed, Expressed(type));
    result_shapes_[i] = result_shapes_[i].WithType(expressed);
  }
  quantize_results_ = true;
  return At(builder_.status());
}

Status OpImport::QuantizeResults() {
  if (!quantize_results_) return OkStatus();
  for (const MlirValue& result : op_.results) {
    if (!IsQuantized(*result.type)) continue;
    STROP_ASSIGN(Instruction * value, block_.Value(result, op_));
    std::optional<IntegerProduct> product;
    const bool one_scale = result.type->element()->quant->axis < 0;
    if (one_scale && stored_.size() == 2 &&
        std::ranges::all_of(op_.operands, [](const MlirValue* v) { return IsQuantized(*v->type); }))
      product = MultiplyIntegers(builder_, op_, value, stored_[0], stored_[1]);
    STROP_ASSIGN(Instruction * quantized, Quantize(*this, value, *result.type, product ? &*product : nullptr));
    STROP_TRY(At(builder_.status()));
    block_.Set(result, quantized);
  }
  return OkStatus();
}

// float to quantised, or from one quantised type to another
Status ConvertQuantize(OpImport& op) {
  const MlirType &from = *op.mlir().operands[0]->type, &to = *op.mlir().results[0].type;
  if (!IsQuantized(to)) return op.Invalid("the result must be quantized, not ", PrintType(to));
  Instruction* value = op.operand(0);
  if (IsQuantized(from)) {
    STROP_ASSIGN(value, Dequantize(op, value, from));
  }
  STROP_TRY(op.At(op.b().status()));
  STROP_ASSIGN(ElementType expressed, Expressed(to));
  if (value->shape().type() != expressed)
    return op.Invalid("the result expresses ", Name(expressed), ", but the operand is ", PrintType(from));
  STROP_ASSIGN(value, Quantize(op, value, to));
  return op.SetResult(value);
}

Status ConvertDequantize(OpImport& op) {
  const MlirType& from = *op.mlir().operands[0]->type;
  if (!IsQuantized(from)) return op.Invalid("the operand must be quantized, not ", PrintType(from));
  STROP_ASSIGN(Instruction * value, Dequantize(op, op.operand(0), from));
  return op.SetResult(value);
}

}  // namespace strop
