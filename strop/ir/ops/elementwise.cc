// Elementwise ops: which element types they take, and how the shapes of their operands meet.
#include "strop/ir/ops/infer.h"

namespace strop::infer {
namespace {

// Element kinds that an op accepts as operands.
enum Kinds : uint32_t {
  kP = 1,   // pred
  kS = 2,   // signed integers
  kU = 4,   // unsigned integers
  kF = 8,   // floats
  kC = 16,  // complex
  kInt = kS | kU,
  kReal = kInt | kF,
  kNumber = kReal | kC,
  kAny = kNumber | kP,
};

struct KindTable {
  std::array<uint32_t, kNumOps> row{};
  constexpr uint32_t operator[](Op op) const { return row[static_cast<size_t>(op)]; }
  constexpr void Set(uint32_t kinds, std::initializer_list<Op> ops) {
    for (Op op : ops) row[static_cast<size_t>(op)] = kinds;
  }
  constexpr KindTable() {
    using enum Op;
    Set(kS | kF | kC, {Abs, Sign});
    Set(kF | kC, {Acos,  Acosh,    Asin,  Asinh, Atan, Atanh, Cbrt, Cos,  Cosh, Exp,  Expm1, Log,
                  Log1p, Logistic, Rsqrt, Sin,   Sinh, Sqrt,  Tan,  Tanh, Real, Imag, Atan2});
    Set(kF,
        {Ceil, Erf, Floor, RoundNearestAfz, RoundNearestEven, IsFinite, ReducePrecision, Complex, StochasticConvert});
    Set(kInt, {Clz, PopulationCount, ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Mulhi});
    Set(kInt | kP, {Not, And, Or, Xor});
    Set(kNumber, {Negate, Divide, Power, Remainder, Subtract});
    Set(kAny, {Convert, Add, Multiply, Maximum, Minimum, Compare, Clamp, Select});
  }
  constexpr Op FirstMissing() const {
    for (const OpInfo& info : kOps)
      if ((info.traits & kElementwise) && !row[static_cast<size_t>(info.op)]) return info.op;
    return Op::kEnd;
  }
};
constexpr KindTable kOperandKinds;
STROP_COMPLETE(kOperandKinds);

uint32_t KindBit(ElementType t) {
  switch (Kind(t)) {
    case ElementKind::Pred: return kP;
    case ElementKind::Signed: return kS;
    case ElementKind::Unsigned: return kU;
    case ElementKind::Float: return kF;
    case ElementKind::Complex: return kC;
    case ElementKind::Other: return 0;
  }
  return 0;
}

std::string KindNames(uint32_t kinds) {
  std::vector<std::string_view> names;
  if (kinds & kP) names.push_back("pred");
  if ((kinds & kInt) == kInt)
    names.push_back("integer");
  else if (kinds & kS)
    names.push_back("signed integer");
  if (kinds & kF) names.push_back("floating-point");
  if (kinds & kC) names.push_back("complex");
  return Join(names, ", ");
}

// Dimensions of a and b joined; the element type is a's.
Result<Shape> JoinDims(const Args& args, int constraint, const Shape& a, const Shape& b) {
  if (!DimsAgree(a, b))
    return args.Violates(constraint, "operands must have the same dimensions, but have the shapes ", a, " and ", b);
  Shape joined = a.WithoutLayout();
  for (int64_t i = 0; i < joined.rank(); ++i) Refine(joined, i, b, i);
  return joined;
}

Status ExpectSameType(const Args& args, int constraint, const Shape& a, const Shape& b) {
  if (a.type() == b.type()) return OkStatus();
  return args.Violates(constraint, "operands must have the same element type, but have the shapes ", a, " and ", b);
}

Result<Shape> Unary(const Args& args) {
  Shape shape = args.operand(0).WithoutLayout();
  switch (args.op) {
    case Op::Convert: {
      STROP_ASSIGN(Shape declared, args.Declared());
      if (!declared.IsArray()) return args.Error("the result must be an array, but is ", declared);
      return shape.WithType(declared.type());
    }
    case Op::Abs:
    case Op::Real:
    case Op::Imag: return IsComplex(shape.type()) ? shape.WithType(ComplexPart(shape.type())) : shape;
    case Op::IsFinite: return shape.WithType(ElementType::Pred);
    case Op::ReducePrecision: {
      const auto& attrs = args.attrs<ReducePrecisionAttrs>();
      if (attrs.exponent_bits < 1)
        return args.Violates(2, "exponent_bits must be at least 1, but is ", attrs.exponent_bits);
      if (attrs.mantissa_bits < 0)
        return args.Violates(3, "mantissa_bits must not be negative, but is ", attrs.mantissa_bits);
      return shape;
    }
    default: return shape;
  }
}

Status CheckCompareOrder(const Args& args) {
  const auto& attrs = args.attrs<CompareAttrs>();
  const ElementType type = args.operand(0).type();
  if (IsComplex(type) && attrs.direction != CompareDirection::Eq && attrs.direction != CompareDirection::Ne)
    return args.Error("complex numbers have no order: only EQ and NE compare ", args.operand(0));
  bool fits = true;
  switch (attrs.order) {
    case CompareOrder::Default: break;
    case CompareOrder::Float: fits = IsFloat(type) || IsComplex(type); break;
    case CompareOrder::TotalOrder: fits = !IsComplex(type); break;
    case CompareOrder::Signed: fits = IsSigned(type); break;
    case CompareOrder::Unsigned: fits = IsUnsigned(type) || IsPred(type); break;
  }
  if (!fits) return args.Violates(3, "the comparison type does not fit elements of type ", Name(type));
  return OkStatus();
}

Result<Shape> Binary(const Args& args) {
  const Shape& lhs = args.operand(0);
  const Shape& rhs = args.operand(1);
  if (args.op == Op::StochasticConvert) {
    STROP_ASSIGN(Shape joined, JoinDims(args, 1, lhs, rhs));
    if (!IsUnsigned(rhs.type()) || Bits(rhs.type()) != Bits(lhs.type()))
      return args.Error("the random operand must be unsigned and as wide as ", Name(lhs.type()), ", but is ", rhs);
    STROP_ASSIGN(Shape declared, args.Declared());
    if (!declared.IsArray()) return args.Error("the result must be an array, but is ", declared);
    return joined.WithType(declared.type());
  }
  STROP_TRY(ExpectSameType(args, 1, lhs, rhs));
  STROP_ASSIGN(Shape joined, JoinDims(args, args.op == Op::Compare ? 2 : 1, lhs, rhs));
  switch (args.op) {
    case Op::Compare: STROP_TRY(CheckCompareOrder(args)); return joined.WithType(ElementType::Pred);
    case Op::Complex:
      if (lhs.type() != ElementType::F32 && lhs.type() != ElementType::F64)
        return args.Violates(3, "parts must be f32 or f64, but are ", Name(lhs.type()));
      return joined.WithType(ComplexOf(lhs.type()));
    default: return joined;
  }
}

Result<Shape> Clamp(const Args& args) {
  const Shape& operand = args.operand(1);
  Shape result = operand.WithoutLayout();
  for (int64_t i : {0, 2}) {
    const Shape& bound = args.operand(i);
    if (bound.type() != operand.type())
      return args.Violates(3, "the bounds must have the operand's element type, but are ", args.operand(0), " and ",
                           args.operand(2), " for ", operand);
    if (bound.IsScalar()) continue;
    if (!DimsAgree(bound, operand))
      return args.Violates(i == 0 ? 1 : 2, "a bound must be a scalar or of the operand's shape ", operand, ", but is ",
                           bound);
    for (int64_t d = 0; d < result.rank(); ++d) Refine(result, d, bound, d);
  }
  return result;
}

Result<Shape> Select(const Args& args) {
  const Shape& pred = args.operand(0);
  STROP_TRY(ExpectSameType(args, 2, args.operand(1), args.operand(2)));
  STROP_ASSIGN(Shape result, JoinDims(args, 2, args.operand(1), args.operand(2)));
  if (!IsPred(pred.type())) return args.Error("the first operand must be of type pred, but is ", pred);
  if (pred.IsScalar()) return result;
  if (!DimsAgree(pred, result))
    return args.Violates(1, "the predicate must be a scalar or of the shape of the values ", result, ", but is ", pred);
  return result;
}

}  // namespace

Result<Shape> Elementwise(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const uint32_t kinds = kOperandKinds[args.op];
  const int64_t checked = args.op == Op::Select || args.op == Op::StochasticConvert ? 0 : args.operand_count() - 1;
  for (int64_t i = 0; i <= checked; ++i)
    if (!(KindBit(args.operand(i).type()) & kinds))
      return args.Error("operand ", i, " must be ", KindNames(kinds), ", but is ", args.operand(i));
  if (args.op == Op::Clamp) return Clamp(args);
  if (args.op == Op::Select) return Select(args);
  return args.operand_count() == 1 ? Unary(args) : Binary(args);
}

}  // namespace strop::infer
