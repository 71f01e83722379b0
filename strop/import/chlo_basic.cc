// CHLO: broadcasting forms, and the ops that are a few HLO ops.
#include "strop/import/chlo.h"

#include <limits>

namespace strop {

// ---- Chlo
// -------------------------------------------------------------------------------------------------------------

Chlo::Chlo(OpImport& op) : op_(op) {
  Result<std::vector<Instruction*>> operands = BroadcastOperands(op);
  operands_ =
      operands.ok() ? *std::move(operands) : std::vector<Instruction*>(op.operands().begin(), op.operands().end());
  ElementType given = operands_[0]->shape().type();
  type_ = IsFloat(given) && Bits(given) < 32 ? ElementType::F32 : given;
  for (Instruction*& o : operands_) o = op_.b().Convert(o, type_);
  shape_ = op.shape().IsArray() ? op.shape().WithoutLayout() : op.operand(0)->shape();
}

Instruction* Chlo::Num(double value) {
  Instruction* scalar = op_.b().Scalar(type_, value);
  if (shape_.rank() == 0) return scalar;
  return op_.b().MakeWithShape(Op::Broadcast, shape_.WithType(type_), {scalar}, DimensionsAttrs{});
}

Instruction* Chlo::Unary(Op hlo, Instruction* a) { return op_.b().Make(hlo, {a}, DefaultAttrs(hlo)); }
Instruction* Chlo::Binary(Op hlo, Instruction* a, Instruction* b) {
  return op_.b().Make(hlo, {a, b}, DefaultAttrs(hlo));
}
Instruction* Chlo::If(Instruction* pred, Instruction* a, Instruction* b) {
  return op_.b().Make(Op::Select, {pred, a, b});
}

Instruction* Chlo::Polynomial(Instruction* x, std::span<const double> coefficients) {
  Instruction* sum = Num(coefficients[0]);
  for (double c : coefficients.subspan(1)) sum = Add(Mul(sum, x), Num(c));
  return sum;
}

Status Chlo::Return(Instruction* value) {
  STROP_TRY(op_.At(op_.b().status()));
  return op_.SetResult(op_.b().Convert(value, op_.shape().type()));
}

// ---- broadcasting
// -----------------------------------------------------------------------------------------------------

Result<std::vector<Instruction*>> BroadcastOperands(OpImport& op) {
  const Shape& result = op.shape();
  std::vector<Instruction*> out;
  for (Instruction* operand : op.operands()) {
    const Shape& shape = operand->shape();
    if (shape.SameDims(result)) {
      out.push_back(operand);
      continue;
    }
    if (!shape.IsArray() || shape.rank() > result.rank())
      return op.Invalid("operand ", shape, " does not broadcast to ", result);
    Dims dims;
    for (int64_t i = 0; i < shape.rank(); ++i) dims.push_back(result.rank() - shape.rank() + i);
    if (op.attr("broadcast_dimensions") && shape.rank() < result.rank()) {
      STROP_ASSIGN(dims, op.Ints("broadcast_dimensions"));
      if (static_cast<int64_t>(dims.size()) != shape.rank())
        return op.Invalid("broadcast_dimensions does not fit ", shape);
    }
    Int64Vector kept;
    Dims kept_dims;
    for (int64_t i = 0; i < shape.rank(); ++i) {
      if (dims[i] < 0 || dims[i] >= result.rank())
        return op.Invalid("broadcast dimension ", dims[i], " is no dimension of ", result);
      if (shape.dim(i) == 1 && result.dim(dims[i]) != 1) continue;
      if (shape.dim(i) != result.dim(dims[i])) return op.Invalid("operand ", shape, " does not broadcast to ", result);
      kept.push_back(shape.dim(i));
      kept_dims.push_back(dims[i]);
    }
    Instruction* reshaped = op.b().Reshape(operand, kept);
    out.push_back(op.b().MakeWithShape(Op::Broadcast, result.WithoutLayout().WithType(shape.type()), {reshaped},
                                       DimensionsAttrs{kept_dims}));
  }
  return out;
}

Status ConvertChloBroadcast(OpImport& op) {
  if (!op.shape().IsArray() || !op.shape().IsStatic())
    return op.Unsupported("a result of the dynamic shape ", op.shape());
  STROP_ASSIGN(std::vector<Instruction*> operands, BroadcastOperands(op));
  if (op.hlo_op() != Op::Compare) return op.Emit(op.hlo_op(), operands, DefaultAttrs(op.hlo_op()));
  CompareAttrs attrs;
  STROP_ASSIGN(std::string_view direction, op.EnumMember("comparison_direction"));
  STROP_ASSIGN(std::string_view type, op.EnumMember("compare_type", "NOTYPE"));
  attrs.direction = direction == "EQ"   ? CompareDirection::Eq
                    : direction == "NE" ? CompareDirection::Ne
                    : direction == "GE" ? CompareDirection::Ge
                    : direction == "GT" ? CompareDirection::Gt
                    : direction == "LE" ? CompareDirection::Le
                                        : CompareDirection::Lt;
  if (type == "TOTALORDER") attrs.order = CompareOrder::TotalOrder;
  return op.Emit(Op::Compare, operands, attrs);
}

// The value, with the operand's shape.
Status ConvertChloConstantLike(OpImport& op) {
  const MlirAttr* value = op.attr("value");
  if (!value) return op.Invalid("attribute 'value' is missing");
  if (!op.shape().IsArray() || !op.shape().IsStatic())
    return op.Unsupported("a result of the dynamic shape ", op.shape());
  ElementType type = op.shape().type();
  if (value->type) {
    Result<ElementType> given = ElementTypeOf(*value->type);
    if (given.ok() && *given != type) return op.Invalid("the value is ", Name(*given), ", but the result ", op.shape());
  }
  Literal literal;
  if (value->kind == MlirAttrKind::Float) {
    literal = Literal::ScalarOf(type, FloatValue(*value));
  } else if (value->kind == MlirAttrKind::Integer || value->kind == MlirAttrKind::Bool) {
    literal = IsFloat(type) || IsComplex(type) ? Literal::ScalarOf(type, static_cast<double>(value->as_int()))
                                               : Literal::ScalarOfInt(type, value->as_int());
  } else {
    return op.Unsupported("a value of this kind: ", PrintAttr(*value));
  }
  Instruction* constant = op.b().Constant(std::move(literal));
  if (op.shape().rank() == 0) return op.SetResult(constant);
  return op.Emit(Op::Broadcast, {constant}, DimensionsAttrs{});
}

// ---- small decompositions
// ---------------------------------------------------------------------------------------------

Status ConvertChloConj(OpImport& op) {
  Chlo c(op);
  if (!IsComplex(c.type())) return op.SetResult(op.operand(0));
  return op.SetResult(c.Binary(Op::Complex, c.Unary(Op::Real, c.x()), c.Neg(c.Unary(Op::Imag, c.x()))));
}

Status ConvertChloSquare(OpImport& op) {
  Chlo c(op);
  if (!IsComplex(c.type())) return op.SetResult(op.b().Make(Op::Multiply, {op.operand(0), op.operand(0)}));
  // (a + ib)^2 = (a - b)(a + b) + 2abi, which does not overflow where a^2 - b^2 would. Where |a| = |b| the real part is
  // zero, even if the sum overflows.
  Instruction* a = c.Unary(Op::Real, c.x());
  Instruction* b = c.Unary(Op::Imag, c.x());
  Instruction* ab = c.Mul(a, b);
  Instruction* zero = op.b().Splat(ComplexPart(c.type()), 0, c.shape().dims());
  Instruction* equal = c.And(c.Eq(c.Abs(a), c.Abs(b)), c.Unary(Op::IsFinite, a));
  Instruction* real = c.If(equal, zero, c.Mul(c.Sub(a, b), c.Add(a, b)));
  return op.SetResult(c.Binary(Op::Complex, real, c.Add(ab, ab)));
}

Status ConvertChloIsInf(OpImport& op) {
  Instruction* x = op.operand(0);
  const Shape& shape = x->shape();
  if (!IsFloat(shape.type())) return op.Invalid("the operand must be floating-point");
  double infinity = std::numeric_limits<double>::infinity();
  double value = op.mlir().name == "chlo.is_neg_inf" ? -infinity : infinity;
  Instruction* wanted = op.b().Splat(shape.type(), value, shape.dims());
  Instruction* subject = op.mlir().name == "chlo.is_inf" ? op.b().Make(Op::Abs, {x}) : x;
  return op.SetResult(op.b().Compare(subject, wanted, CompareDirection::Eq));
}

// The next number after x toward y, by stepping its bits: away from zero where the signs agree and |y| is larger.
Status ConvertChloNextAfter(OpImport& op) {
  STROP_ASSIGN(std::vector<Instruction*> operands, BroadcastOperands(op));
  ElementType type = op.shape().type();
  if (!IsFloat(type)) return op.Invalid("the operands must be floating-point");
  int bits = Bits(type);
  const ElementType code = UnsignedOf(bits);
  Builder& b = op.b();
  const Int64Vector& dims = op.shape().dims();
  auto num = [&](uint64_t v) {
    Instruction* scalar = b.Constant(Literal::ScalarOfInt(code, static_cast<int64_t>(v)));
    return dims.empty() ? scalar : b.Broadcast(scalar, dims, {});
  };
  auto compare = [&](Instruction* l, Instruction* r, CompareDirection d) { return b.Compare(l, r, d); };
  auto select = [&](Instruction* p, Instruction* t, Instruction* f) { return b.Make(Op::Select, {p, t, f}); };
  Instruction *x = operands[0], *y = operands[1];
  Instruction* xb = b.BitcastConvert(x, code);
  Instruction* yb = b.BitcastConvert(y, code);
  uint64_t sign_bit = uint64_t{1} << (bits - 1);
  Instruction* magnitude = num(sign_bit - 1);
  Instruction* sign = num(sign_bit);
  Instruction* x_abs = b.Make(Op::And, {xb, magnitude});
  Instruction* y_abs = b.Make(Op::And, {yb, magnitude});
  Instruction* x_sign = b.Make(Op::And, {xb, sign});
  Instruction* y_sign = b.Make(Op::And, {yb, sign});
  Instruction* zero = num(0);
  // From zero, the smallest number of y's sign.
  Instruction* from_zero = b.Make(Op::Or, {y_sign, num(1)});
  Instruction* toward_zero =
      b.Make(Op::Or, {compare(x_sign, y_sign, CompareDirection::Ne), compare(x_abs, y_abs, CompareDirection::Gt)});
  Instruction* step = select(toward_zero, num(bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1), num(1));
  Instruction* moved = b.Make(Op::Add, {xb, step});
  Instruction* result = select(compare(x_abs, zero, CompareDirection::Eq), from_zero, moved);
  Instruction* nan = b.Splat(type, std::numeric_limits<double>::quiet_NaN(), dims);
  result = b.BitcastConvert(result, type);
  result = select(b.Compare(x, y, CompareDirection::Eq), y, result);
  Instruction* is_nan = b.Make(Op::Or, {b.Compare(x, x, CompareDirection::Ne), b.Compare(y, y, CompareDirection::Ne)});
  return op.SetResult(select(is_nan, nan, result));
}

}  // namespace strop
