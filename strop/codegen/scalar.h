// Scalar semantics: one expression per elementwise op, over a ScalarBuilder. Any code generator (vectors on a CPU, PTX,
// a vendor's own) that supplies the primitives of the concept gets every elementwise op of HLO for every element type.
//
//   adding an op: a row in ir/ops.def and, here, its expression. Forgetting it is a compile error that names it:
//   "implicit instantiation of undefined template strop::Scalar<strop::Op::Cosh>".
//
// Primitives are typed by their operands (V knows its ElementType) and obey HLO: floats of less than 32 bits round
// after each of them, integers wrap, division by zero is defined.
#pragma once
#include <concepts>
#include <span>

#include "strop/ir/attrs.h"
#include "strop/ir/op.h"

namespace strop {

// The functions that a builder approximates; each has an ULP bound in math/README.md.
enum class MathFunction : uint8_t {
  kAcos,
  kAcosh,
  kAsin,
  kAsinh,
  kAtan,
  kAtanh,
  kCbrt,
  kCos,
  kCosh,
  kErf,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kLogistic,
  kRsqrt,
  kSin,
  kSinh,
  kSqrt,
  kTan,
  kTanh,
};

// One use of an op: what the expressions may ask besides the operands.
struct ScalarOp {
  Op op = Op::kEnd;
  ElementType result = ElementType::Invalid;
  const Attrs* attrs = nullptr;
  bool unrounded = false;   // as f32 has it; of f32, as exact as bf16 needs (ir/unrounded.h)
  bool by_inverse = false;  // a quotient for bf16, of numbers by one divisor
  template <class A>
  const A& as() const {
    return attrs->get<A>();
  }
};

template <class B>
concept ScalarBuilder = requires(B b, typename B::Value v, ElementType t, MathFunction f, CompareDirection d,
                                 CompareOrder o, const ReducePrecisionAttrs& p) {
  { b.Add(v, v) } -> std::same_as<typename B::Value>;
  { b.Sub(v, v) } -> std::same_as<typename B::Value>;
  { b.Mul(v, v) } -> std::same_as<typename B::Value>;
  { b.Div(v, v) } -> std::same_as<typename B::Value>;
  { b.Rem(v, v) } -> std::same_as<typename B::Value>;  // sign of the dividend
  { b.MulHi(v, v) } -> std::same_as<typename B::Value>;
  { b.Min(v, v) } -> std::same_as<typename B::Value>;  // NaN if either is
  { b.Max(v, v) } -> std::same_as<typename B::Value>;
  { b.And(v, v) } -> std::same_as<typename B::Value>;
  { b.Or(v, v) } -> std::same_as<typename B::Value>;
  { b.Xor(v, v) } -> std::same_as<typename B::Value>;
  { b.ShiftLeft(v, v) } -> std::same_as<typename B::Value>;
  { b.ShiftRight(v, v, /*arithmetic=*/true) } -> std::same_as<typename B::Value>;
  { b.Pow(v, v) } -> std::same_as<typename B::Value>;
  { b.Atan2(v, v) } -> std::same_as<typename B::Value>;
  { b.Neg(v) } -> std::same_as<typename B::Value>;
  { b.Abs(v) } -> std::same_as<typename B::Value>;  // complex: the real magnitude
  { b.Not(v) } -> std::same_as<typename B::Value>;
  { b.Sign(v) } -> std::same_as<typename B::Value>;
  { b.Floor(v) } -> std::same_as<typename B::Value>;
  { b.Ceil(v) } -> std::same_as<typename B::Value>;
  { b.RoundEven(v) } -> std::same_as<typename B::Value>;
  { b.RoundAway(v) } -> std::same_as<typename B::Value>;
  { b.PopulationCount(v) } -> std::same_as<typename B::Value>;
  { b.LeadingZeros(v) } -> std::same_as<typename B::Value>;
  { b.IsFinite(v) } -> std::same_as<typename B::Value>;
  { b.Real(v) } -> std::same_as<typename B::Value>;
  { b.Imag(v) } -> std::same_as<typename B::Value>;
  { b.Complex(v, v) } -> std::same_as<typename B::Value>;
  { b.Math(f, v) } -> std::same_as<typename B::Value>;
  { b.Compare(d, o, v, v) } -> std::same_as<typename B::Value>;
  { b.Select(v, v, v) } -> std::same_as<typename B::Value>;
  { b.Convert(v, t) } -> std::same_as<typename B::Value>;
  { b.StochasticConvert(v, v, t) } -> std::same_as<typename B::Value>;
  { b.ReducePrecision(v, p) } -> std::same_as<typename B::Value>;
};

template <Op O>
struct Scalar;  // deliberately undefined: an elementwise op without semantics does not compile

#define STROP_SCALAR(OP, ...)                                                                                       \
  template <>                                                                                                       \
  struct Scalar<Op::OP> {                                                                                           \
    static auto Emit(auto& b, [[maybe_unused]] const ScalarOp& op, [[maybe_unused]] auto x) { return __VA_ARGS__; } \
  };

STROP_SCALAR(Abs, b.Abs(x[0]))
STROP_SCALAR(Acos, b.Math(MathFunction::kAcos, x[0]))
STROP_SCALAR(Acosh, b.Math(MathFunction::kAcosh, x[0]))
STROP_SCALAR(Add, b.Add(x[0], x[1]))
STROP_SCALAR(And, b.And(x[0], x[1]))
STROP_SCALAR(Asin, b.Math(MathFunction::kAsin, x[0]))
STROP_SCALAR(Asinh, b.Math(MathFunction::kAsinh, x[0]))
STROP_SCALAR(Atan, b.Math(MathFunction::kAtan, x[0]))
STROP_SCALAR(Atan2, b.Atan2(x[0], x[1]))
STROP_SCALAR(Atanh, b.Math(MathFunction::kAtanh, x[0]))
STROP_SCALAR(Cbrt, b.Math(MathFunction::kCbrt, x[0]))
STROP_SCALAR(Ceil, b.Ceil(x[0]))
STROP_SCALAR(Clamp, b.Min(b.Max(x[1], x[0]), x[2]))
STROP_SCALAR(Clz, b.LeadingZeros(x[0]))
STROP_SCALAR(Compare, b.Compare(op.as<CompareAttrs>().direction, op.as<CompareAttrs>().order, x[0], x[1]))
STROP_SCALAR(Complex, b.Complex(x[0], x[1]))
STROP_SCALAR(Convert, b.Convert(x[0], op.result))
STROP_SCALAR(Cos, b.Math(MathFunction::kCos, x[0]))
STROP_SCALAR(Cosh, b.Math(MathFunction::kCosh, x[0]))
STROP_SCALAR(Divide, b.Div(x[0], x[1]))
STROP_SCALAR(Erf, b.Math(MathFunction::kErf, x[0]))
STROP_SCALAR(Exp, b.Math(MathFunction::kExp, x[0]))
STROP_SCALAR(Expm1, b.Math(MathFunction::kExpm1, x[0]))
STROP_SCALAR(Floor, b.Floor(x[0]))
STROP_SCALAR(Imag, b.Imag(x[0]))
STROP_SCALAR(IsFinite, b.IsFinite(x[0]))
STROP_SCALAR(Log, b.Math(MathFunction::kLog, x[0]))
STROP_SCALAR(Log1p, b.Math(MathFunction::kLog1p, x[0]))
STROP_SCALAR(Logistic, b.Math(MathFunction::kLogistic, x[0]))
STROP_SCALAR(Maximum, b.Max(x[0], x[1]))
STROP_SCALAR(Minimum, b.Min(x[0], x[1]))
STROP_SCALAR(Mulhi, b.MulHi(x[0], x[1]))
STROP_SCALAR(Multiply, b.Mul(x[0], x[1]))
STROP_SCALAR(Negate, b.Neg(x[0]))
STROP_SCALAR(Not, b.Not(x[0]))
STROP_SCALAR(Or, b.Or(x[0], x[1]))
STROP_SCALAR(PopulationCount, b.PopulationCount(x[0]))
STROP_SCALAR(Power, b.Pow(x[0], x[1]))
STROP_SCALAR(Real, b.Real(x[0]))
STROP_SCALAR(ReducePrecision, b.ReducePrecision(x[0], op.as<ReducePrecisionAttrs>()))
STROP_SCALAR(Remainder, b.Rem(x[0], x[1]))
STROP_SCALAR(RoundNearestAfz, b.RoundAway(x[0]))
STROP_SCALAR(RoundNearestEven, b.RoundEven(x[0]))
STROP_SCALAR(Rsqrt, b.Math(MathFunction::kRsqrt, x[0]))
STROP_SCALAR(Select, b.Select(x[0], x[1], x[2]))
STROP_SCALAR(ShiftLeft, b.ShiftLeft(x[0], x[1]))
STROP_SCALAR(ShiftRightArithmetic, b.ShiftRight(x[0], x[1], true))
STROP_SCALAR(ShiftRightLogical, b.ShiftRight(x[0], x[1], false))
STROP_SCALAR(Sign, b.Sign(x[0]))
STROP_SCALAR(Sin, b.Math(MathFunction::kSin, x[0]))
STROP_SCALAR(Sinh, b.Math(MathFunction::kSinh, x[0]))
STROP_SCALAR(Sqrt, b.Math(MathFunction::kSqrt, x[0]))
STROP_SCALAR(StochasticConvert, b.StochasticConvert(x[0], x[1], op.result))
STROP_SCALAR(Subtract, b.Sub(x[0], x[1]))
STROP_SCALAR(Tan, b.Math(MathFunction::kTan, x[0]))
STROP_SCALAR(Tanh, b.Math(MathFunction::kTanh, x[0]))
STROP_SCALAR(Xor, b.Xor(x[0], x[1]))

#undef STROP_SCALAR

// The op's expression over `x`, its operands. The op must be elementwise.
template <ScalarBuilder B>
typename B::Value EmitScalar(B& b, const ScalarOp& op, std::span<const typename B::Value> x) {
  using EmitFn = typename B::Value (*)(B&, const ScalarOp&, std::span<const typename B::Value>);
  static constexpr auto kTable = [] {
    std::array<EmitFn, kNumOps> table{};
    ForEachOp<kElementwise>([&]<Op O> {
      table[static_cast<size_t>(O)] = [](B& builder, const ScalarOp& o, std::span<const typename B::Value> v) {
        return Scalar<O>::Emit(builder, o, v);
      };
    });
    return table;
  }();
  return kTable[static_cast<size_t>(op.op)](b, op, x);
}

}  // namespace strop
