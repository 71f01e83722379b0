// Elementwise ops, constants and iota.
#include "strop/import/convert.h"

namespace strop {
namespace {

// #stablehlo.result_accuracy<ulps = 2, mode = ...>
Result<ResultAccuracy> AccuracyOf(const OpImport& op) {
  ResultAccuracy accuracy;
  const MlirAttr* a = op.attr("result_accuracy");
  if (!a) return accuracy;
  STROP_TRY(op.StructAttr("result_accuracy", "stablehlo.result_accuracy"));
  const MlirAttr* mode = a->Find("mode");
  if (mode && mode->text == "HIGHEST") accuracy.mode = ResultAccuracy::Mode::Highest;
  if (mode && mode->text == "TOLERANCE") accuracy.mode = ResultAccuracy::Mode::Tolerance;
  for (auto [name, value] : {std::pair<std::string_view, double*>{"atol", &accuracy.atol}, {"rtol", &accuracy.rtol}}) {
    const MlirAttr* number = a->Find(name);
    if (number && number->kind == MlirAttrKind::Float) *value = FloatValue(*number);
  }
  accuracy.ulps = op.FieldInt(*a, "ulps");
  bool tolerances = accuracy.atol != 0 || accuracy.rtol != 0 || accuracy.ulps != 0;
  if (accuracy.mode != ResultAccuracy::Mode::Tolerance && tolerances)
    return op.Invalid("result_accuracy has tolerances, but its mode is ", mode ? mode->text : "DEFAULT");
  if (!(accuracy.atol >= 0 && accuracy.rtol >= 0 && accuracy.ulps >= 0))
    return op.Invalid("result_accuracy has tolerances that are negative or no numbers");
  return accuracy;
}

// A scalar where the op wants the dimensions of `like`.
Instruction* Spread(OpImport& op, Instruction* value, const Shape& like) {
  if (!value || !value->shape().IsScalar() || !like.IsArray() || like.rank() == 0) return value;
  Shape shape = like.WithType(value->shape().type());
  return op.Add(Op::Broadcast, shape, {&value, 1}, DimensionsAttrs{});
}

}  // namespace

Status ConvertElementwise(OpImport& op) {
  Attrs attrs = DefaultAttrs(op.hlo_op());
  if (AccuracyAttrs* accuracy = attrs.get_if<AccuracyAttrs>()) {
    STROP_ASSIGN(accuracy->result_accuracy, AccuracyOf(op));
  }
  return op.Emit(op.hlo_op(), op.operands(), std::move(attrs));
}

Status ConvertDirect(OpImport& op) { return op.Emit(op.hlo_op(), op.operands(), DefaultAttrs(op.hlo_op())); }

Status ConvertIdentity(OpImport& op) {
  if (op.operand_count() != static_cast<int64_t>(op.shapes().size()))
    return op.Unsupported("a cast that changes the number of values");
  return op.SetResults(op.operands());
}

Status ConvertClamp(OpImport& op) {
  Instruction* low = Spread(op, op.operand(0), op.shape());
  Instruction* high = Spread(op, op.operand(2), op.shape());
  return op.Emit(Op::Clamp, {low, op.operand(1), high});
}

Status ConvertSelect(OpImport& op) {
  return op.Emit(Op::Select, {Spread(op, op.operand(0), op.shape()), op.operand(1), op.operand(2)});
}

Status ConvertCompare(OpImport& op) {
  CompareAttrs attrs;
  STROP_ASSIGN(std::string_view direction, op.EnumMember("comparison_direction"));
  constexpr std::pair<std::string_view, CompareDirection> kDirections[] = {
      {"EQ", CompareDirection::Eq}, {"NE", CompareDirection::Ne}, {"GE", CompareDirection::Ge},
      {"GT", CompareDirection::Gt}, {"LE", CompareDirection::Le}, {"LT", CompareDirection::Lt}};
  for (auto [name, value] : kDirections) {
    if (name == direction) attrs.direction = value;
  }
  STROP_ASSIGN(std::string_view order, op.EnumMember("compare_type", "NOTYPE"));
  ElementType type = op.operand(0)->shape().type();
  CompareOrder natural = IsFloat(type) || IsComplex(type) ? CompareOrder::Float
                         : IsSigned(type)                 ? CompareOrder::Signed
                                                          : CompareOrder::Unsigned;
  CompareOrder given = order == "FLOAT"        ? CompareOrder::Float
                       : order == "TOTALORDER" ? CompareOrder::TotalOrder
                       : order == "SIGNED"     ? CompareOrder::Signed
                       : order == "UNSIGNED"   ? CompareOrder::Unsigned
                                               : CompareOrder::Default;
  attrs.order = given == natural ? CompareOrder::Default : given;
  return op.Emit(Op::Compare, op.operands(), attrs);
}

Status ConvertReducePrecision(OpImport& op) {
  ReducePrecisionAttrs attrs;
  STROP_ASSIGN(attrs.exponent_bits, op.Int("exponent_bits"));
  STROP_ASSIGN(attrs.mantissa_bits, op.Int("mantissa_bits"));
  return op.Emit(Op::ReducePrecision, op.operands(), attrs);
}

// One value for all elements becomes a scalar constant and a broadcast: it may have more elements than memory.
Status ConvertConstant(OpImport& op) {
  const MlirAttr* value = op.attr("value");
  if (!value) return op.Invalid("attribute 'value' is missing");
  if (value->kind == MlirAttrKind::Dense && value->splat && op.shape().IsArray() && op.shape().rank() > 0 &&
      op.shape().num_elements() > 0) {
    MlirAttr scalar = *value;
    MlirType type = *value->type;
    type.dims = {};
    type.encoding = nullptr;
    scalar.type = &type;
    scalar.splat = false;
    Result<Literal> literal = LiteralOf(scalar);
    if (!literal.ok()) return op.At(std::move(literal).status());
    Instruction* constant = op.b().Constant(*std::move(literal));
    return op.Emit(Op::Broadcast, {constant}, DimensionsAttrs{});
  }
  Result<Literal> literal = LiteralOf(*value);
  if (!literal.ok()) return op.At(std::move(literal).status());
  return op.SetResult(op.b().Constant(*std::move(literal)));
}

// iota, and dynamic_iota whose result type says the shape
Status ConvertIota(OpImport& op) {
  if (op.operand_count() == 1) STROP_TRY(CheckShapeOperand(op, 0));
  IotaAttrs attrs;
  STROP_ASSIGN(attrs.dimension, op.Int("iota_dimension"));
  if (attrs.dimension < 0 || attrs.dimension >= op.shape().rank()) {
    return op.Invalid("iota_dimension ", attrs.dimension, " is no dimension of ", op.shape(), " (iota_c1)");
  }
  if (op.shape().IsStatic()) return op.Emit(Op::Iota, {}, attrs);
  if (op.operand_count() == 1 && !HasKnownShapes(op)) return EmitDynamic(op);
  if (op.operand_count() == 1) {
    Instruction* largest = op.b().Iota(Shape::Array(op.shape().type(), op.shape().dims()), attrs.dimension);
    return SetBoundedResult(op, largest, [&](int64_t d) { return SizeAt(op, 0, d); });
  }
  return op.Unsupported("a result of the dynamic shape ", op.shape());
}

}  // namespace strop
