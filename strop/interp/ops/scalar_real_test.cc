// Floats of every format, special values first; conversions; reduce-precision and stochastic-convert.
#include <cmath>
#include <limits>

#include "strop/interp/ops/fixture.h"
#include "strop/interp/scalar.h"

namespace strop::interp {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

class RealTest : public OpTest {
 protected:
  static std::vector<ElementType> Floats() {
    std::vector<ElementType> out;
    for (int i = 0; i < kNumElementTypes; ++i)
      if (IsArrayType(static_cast<ElementType>(i)) && IsFloat(static_cast<ElementType>(i)))
        out.push_back(static_cast<ElementType>(i));
    return out;
  }
  static bool HasSignAndZero(ElementType t) { return FormatOf(t).has_sign && FormatOf(t).has_zero; }
  double Do(Op op, ElementType t, double a) { return Eval(op, {Vector(t, {a})}).GetDouble(0); }
  double Do(Op op, ElementType t, double a, double b) {
    return Eval(op, {Vector(t, {a}), Vector(t, {b})}).GetDouble(0);
  }
};

TEST_F(RealTest, ArithmeticInEveryFormat) {
  for (ElementType t : Floats()) {
    SCOPED_TRACE(Name(t));
    EXPECT_EQ(Do(Op::Add, t, 1, 1), 2);
    EXPECT_EQ(Do(Op::Multiply, t, 2, 2), 4);
    EXPECT_EQ(Do(Op::Divide, t, 4, 2), 2);
    EXPECT_EQ(Do(Op::Maximum, t, 1, 2), 2);
    EXPECT_EQ(Do(Op::Sqrt, t, 4), 2);
    if (!HasSignAndZero(t)) continue;
    EXPECT_EQ(Do(Op::Subtract, t, 1, 1), 0);
    EXPECT_EQ(Do(Op::Negate, t, 1), -1);
    EXPECT_EQ(Do(Op::Abs, t, -1.5), 1.5);
    EXPECT_EQ(Do(Op::Floor, t, -1.5), -2);
    EXPECT_EQ(Do(Op::Ceil, t, 1.5), 2);
    EXPECT_EQ(Do(Op::RoundNearestEven, t, 0.5), 0);
    EXPECT_EQ(Do(Op::RoundNearestEven, t, 1.5), 2);
    EXPECT_EQ(Do(Op::RoundNearestAfz, t, 0.5), 1);
    EXPECT_EQ(Do(Op::RoundNearestAfz, t, -1.5), -2);
    EXPECT_EQ(Do(Op::Sign, t, -3), -1);
    EXPECT_EQ(Do(Op::Exp, t, 0), 1);
  }
}

TEST_F(RealTest, NanAndInfinity) {
  for (ElementType t : Floats()) {
    SCOPED_TRACE(Name(t));
    if (!FormatOf(t).has_nan) continue;
    for (Op op : {Op::Add, Op::Multiply, Op::Maximum, Op::Minimum, Op::Power})
      EXPECT_TRUE(std::isnan(Do(op, t, kNan, 2))) << Name(op);
    EXPECT_TRUE(std::isnan(Do(Op::Maximum, t, 2, kNan)));
    EXPECT_TRUE(std::isnan(Do(Op::Sign, t, kNan)));
    EXPECT_EQ(Eval(Op::IsFinite, {Vector(t, {1, kNan})}), Integers(ElementType::Pred, {1, 0}));
    if (!FormatOf(t).has_infinity) continue;
    EXPECT_EQ(Do(Op::Log, t, 0), -kInf);
    EXPECT_EQ(Do(Op::Divide, t, -1, 0), -kInf);
    EXPECT_TRUE(std::isnan(Do(Op::Subtract, t, kInf, kInf)));
    EXPECT_EQ(Do(Op::Tanh, t, -kInf), -1);
    EXPECT_EQ(Do(Op::Logistic, t, -kInf), 0);
    EXPECT_EQ(Do(Op::Rsqrt, t, kInf), 0);
    EXPECT_EQ(Do(Op::Exp, t, -kInf), 0);
    EXPECT_TRUE(std::isnan(Do(Op::Sqrt, t, -1)));
  }
}

TEST_F(RealTest, SignsOfZero) {
  const ElementType t = ElementType::F32;
  EXPECT_FALSE(std::signbit(Do(Op::Maximum, t, -0.0, 0.0)));
  EXPECT_TRUE(std::signbit(Do(Op::Minimum, t, 0.0, -0.0)));
  EXPECT_TRUE(std::signbit(Do(Op::Ceil, t, -0.5)));
  EXPECT_TRUE(std::signbit(Do(Op::RoundNearestEven, t, -0.5)));
  EXPECT_TRUE(std::signbit(Do(Op::Sign, t, -0.0)));
  EXPECT_TRUE(std::signbit(Do(Op::Sqrt, t, -0.0)));
  EXPECT_EQ(Do(Op::Rsqrt, t, -0.0), -kInf);
}

TEST_F(RealTest, RoundsOnce) {
  // 1 + 2^-24 lies half way between two floats; adding a little in double must not be lost before rounding.
  EXPECT_EQ(Do(Op::Add, ElementType::F32, 1, std::ldexp(1, -24)), 1);
  EXPECT_EQ(Do(Op::Add, ElementType::F32, 1 + std::ldexp(1, -23), std::ldexp(1, -24)), 1 + std::ldexp(1, -22));
  EXPECT_EQ(Do(Op::Multiply, ElementType::F32, std::ldexp(1, -100), std::ldexp(1, -49)),
            std::ldexp(1, -149));  // subnormal
  EXPECT_EQ(Do(Op::Sqrt, ElementType::F32, std::ldexp(1, -148)), std::ldexp(1, -74));
  EXPECT_EQ(Do(Op::Multiply, ElementType::F16, 65504, 2), kInf);
  EXPECT_TRUE(std::isnan(Do(Op::Multiply, ElementType::F8E4M3FN, 448, 2)));
}

TEST_F(RealTest, FastRoundingAgreesWithTheTypesRoom) {
  for (ElementType t : Floats()) {
    if (Bits(t) > 16) continue;
    SCOPED_TRACE(Name(t));
    uint64_t state = 1;
    for (int i = 0; i < 20000; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // Values of all magnitudes, many of them half way between two codes.
      double v = std::ldexp(static_cast<double>(state >> 50) / 16384 + 0.5, static_cast<int>(state % 60) - 30);
      if (state & 64) v = -v;
      Cell cell = Cell::Real(v);
      uint8_t bytes[2] = {};
      StoreCells(t, &cell, 1, bytes, 0);
      ASSERT_EQ(bytes[0] | bytes[1] << 8, static_cast<int>(EncodeFloat(t, v))) << v;
      const double want = DecodeFloat(t, EncodeFloat(t, v)), got = Normalize(t, cell).re;
      ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << v;
    }
  }
}

TEST_F(RealTest, CompareAndTotalOrder) {
  const Literal a = Vector(ElementType::F32, {kNan, -0.0, 1, -kNan}),
                b = Vector(ElementType::F32, {1, 0.0, kNan, -kInf});
  auto compare = [&](CompareDirection d, CompareOrder o) { return Eval(Op::Compare, {a, b}, CompareAttrs{d, o}); };
  EXPECT_EQ(compare(CompareDirection::Lt, CompareOrder::Default), Integers(ElementType::Pred, {0, 0, 0, 0}));
  EXPECT_EQ(compare(CompareDirection::Ne, CompareOrder::Default), Integers(ElementType::Pred, {1, 0, 1, 1}));
  EXPECT_EQ(compare(CompareDirection::Lt, CompareOrder::TotalOrder), Integers(ElementType::Pred, {0, 1, 1, 1}));
  EXPECT_EQ(compare(CompareDirection::Eq, CompareOrder::TotalOrder), Integers(ElementType::Pred, {0, 0, 0, 0}));
}

TEST_F(RealTest, ClampPropagatesNan) {
  const Literal x = Vector(ElementType::F32, {-5, 0.5, 5, kNan});
  const Literal low = Literal::Scalar<float>(0), high = Literal::Scalar<float>(1);
  const Literal y = Eval(Op::Clamp, {low, x, high});
  EXPECT_EQ(y.GetDouble(0), 0);
  EXPECT_EQ(y.GetDouble(1), 0.5);
  EXPECT_EQ(y.GetDouble(2), 1);
  EXPECT_TRUE(std::isnan(y.GetDouble(3)));
}

TEST_F(RealTest, ConvertSaturates) {
  const Literal x = Vector(ElementType::F64, {kNan, kInf, -kInf, 300.7, -300.7, -1.5, 1.99});
  auto to = [&](ElementType t) { return EvalTo(Shape::Array(t, {7}), Op::Convert, {x}); };
  EXPECT_EQ(to(ElementType::S8), Integers(ElementType::S8, {0, 127, -128, 127, -128, -1, 1}));
  EXPECT_EQ(to(ElementType::U8), Integers(ElementType::U8, {0, 255, 0, 255, 0, 0, 1}));
  EXPECT_EQ(to(ElementType::S4), Integers(ElementType::S4, {0, 7, -8, 7, -8, -1, 1}));
  EXPECT_EQ(to(ElementType::S32), Integers(ElementType::S32, {0, INT32_MAX, INT32_MIN, 300, -300, -1, 1}));
  EXPECT_EQ(to(ElementType::S64), Integers(ElementType::S64, {0, INT64_MAX, INT64_MIN, 300, -300, -1, 1}));
  EXPECT_EQ(to(ElementType::U64), Integers(ElementType::U64, {0, -1, 0, 300, 0, 0, 1}));
  EXPECT_EQ(to(ElementType::Pred), Integers(ElementType::Pred, {1, 1, 1, 1, 1, 1, 1}));
}

TEST_F(RealTest, ConvertFromIntegersRoundsOnce) {
  // 2^53 + 1 + 2^29 rounds to even at 24 bits only if the last bit survives until then.
  const int64_t tricky = (int64_t{1} << 60) + (int64_t{1} << 36) + 1;
  const Literal y =
      EvalTo(Shape::Array(ElementType::F32, {2}), Op::Convert, {Integers(ElementType::S64, {tricky, -tricky})});
  EXPECT_EQ(y.GetDouble(0), static_cast<float>(tricky));
  EXPECT_EQ(y.GetDouble(1), -static_cast<float>(tricky));
  const Literal u = EvalTo(Shape::Array(ElementType::F64, {1}), Op::Convert, {Integers(ElementType::U64, {-1})});
  EXPECT_EQ(u.GetDouble(0), std::ldexp(1, 64));
  EXPECT_EQ(EvalTo(Shape::Array(ElementType::S8, {2}), Op::Convert, {Integers(ElementType::S32, {257, -129})}),
            Integers(ElementType::S8, {1, 127}));
}

TEST_F(RealTest, ConvertEveryPair) {
  for (int i = 0; i < kNumElementTypes; ++i)
    for (int j = 0; j < kNumElementTypes; ++j) {
      const ElementType from = static_cast<ElementType>(i), to = static_cast<ElementType>(j);
      if (!IsArrayType(from) || !IsArrayType(to) || Bits(from) < 2 || Bits(to) < 2) continue;
      SCOPED_TRACE(StrCat(Name(from), " to ", Name(to)));
      if (IsComplex(from) && !IsComplex(to)) continue;  // HLO takes the real part first
      EXPECT_EQ(EvalTo(Shape::Array(to, {1}), Op::Convert, {Vector(from, {1})}).GetDouble(0), 1);
    }
}

TEST_F(RealTest, ReducePrecision) {
  auto reduce = [&](double v, int64_t exponent, int64_t mantissa) {
    return Eval(Op::ReducePrecision, {Vector(ElementType::F32, {v})}, ReducePrecisionAttrs{exponent, mantissa})
        .GetDouble(0);
  };
  EXPECT_EQ(reduce(1 + std::ldexp(1, -11), 5, 10), 1);  // tie to even
  EXPECT_EQ(reduce(1 + 3 * std::ldexp(1, -11), 5, 10), 1 + std::ldexp(1, -9));
  EXPECT_EQ(reduce(65520, 5, 10), kInf);
  EXPECT_EQ(reduce(-70000, 5, 10), -kInf);
  EXPECT_EQ(reduce(1e-5, 5, 10), 0);  // subnormals are flushed
  EXPECT_TRUE(std::signbit(reduce(-1e-5, 5, 10)));
  EXPECT_TRUE(std::isnan(reduce(kNan, 5, 10)));
  EXPECT_EQ(reduce(1e-40, 8, 23), static_cast<float>(1e-40));  // nothing to do
}

TEST_F(RealTest, StochasticConvert) {
  const Literal x = Vector(ElementType::F32, {1.25, 1.25, -1.25, kNan, kInf, 3e9});
  const Literal random = Integers(ElementType::U32, {0x3FFFFFFF, 0x40000000, 0, 0, 0, 0});
  EXPECT_EQ(EvalTo(Shape::Array(ElementType::S32, {6}), Op::StochasticConvert, {x, random}),
            Integers(ElementType::S32, {2, 1, -2, 0, INT32_MAX, INT32_MAX}));
}

TEST_F(RealTest, Functions) {
  const ElementType t = ElementType::F64;
  EXPECT_DOUBLE_EQ(Do(Op::Sin, t, 1), 0.8414709848078965);
  EXPECT_DOUBLE_EQ(Do(Op::Cos, t, 1), 0.5403023058681398);
  EXPECT_DOUBLE_EQ(Do(Op::Tan, t, 1), 1.5574077246549023);
  EXPECT_DOUBLE_EQ(Do(Op::Tanh, t, 0.5), 0.46211715726000973);
  EXPECT_DOUBLE_EQ(Do(Op::Log1p, t, 1e-10), 9.9999999995e-11);
  EXPECT_DOUBLE_EQ(Do(Op::Expm1, t, 1e-10), 1.00000000005e-10);
  EXPECT_DOUBLE_EQ(Do(Op::Logistic, t, 1), 0.7310585786300049);
  EXPECT_DOUBLE_EQ(Do(Op::Cbrt, t, -27), -3);
  EXPECT_DOUBLE_EQ(Do(Op::Erf, t, 0.5), 0.5204998778130465);
  EXPECT_DOUBLE_EQ(Do(Op::Atan2, t, -1, -1), -2.356194490192345);
  EXPECT_DOUBLE_EQ(Do(Op::Remainder, t, -7.5, 2), -1.5);
  EXPECT_DOUBLE_EQ(Do(Op::Power, t, 2, 0.5), 1.4142135623730951);
  EXPECT_EQ(Do(Op::Power, t, 1, kNan), 1);
  EXPECT_EQ(Do(Op::Power, t, 0, -1), kInf);
}

TEST_F(RealTest, ComplexNumbers) {
  for (ElementType t : {ElementType::C64, ElementType::C128}) {
    const double e = t == ElementType::C64 ? 1e-6 : 1e-15;
    const Literal z = ComplexVector(t, {{3, 4}}), w = ComplexVector(t, {{1, -2}});
    auto near = [&](const Literal& got, std::complex<double> want) {
      EXPECT_NEAR(got.GetComplex(0).real(), want.real(), e * std::abs(want));
      EXPECT_NEAR(got.GetComplex(0).imag(), want.imag(), e * std::abs(want));
    };
    near(Eval(Op::Multiply, {z, w}), {11, -2});
    near(Eval(Op::Divide, {z, w}), {-1, 2});
    near(Eval(Op::Sqrt, {z}), {2, 1});
    near(Eval(Op::Abs, {z}), {5, 0});
    near(Eval(Op::Exp, {ComplexVector(t, {{0, M_PI / 2}})}), {0, 1});
    near(Eval(Op::Log, {ComplexVector(t, {{-1, 0}})}), {0, M_PI});
    near(Eval(Op::Sign, {z}), {0.6, 0.8});
    near(Eval(Op::Power, {z, ComplexVector(t, {{2, 0}})}), {-7, 24});
    near(Eval(Op::Expm1, {ComplexVector(t, {{1e-17, 1e-17}})}), {1e-17, 1e-17});
    near(Eval(Op::Log1p, {ComplexVector(t, {{1e-17, 1e-17}})}), {1e-17, 1e-17});
    EXPECT_EQ(Eval(Op::Real, {z}).GetDouble(0), 3);
    EXPECT_EQ(Eval(Op::Imag, {z}).GetDouble(0), 4);
    EXPECT_EQ(Eval(Op::Compare, {z, z}, CompareAttrs{CompareDirection::Eq, {}}), Integers(ElementType::Pred, {1}));
  }
}

TEST_F(RealTest, SelectKeepsNanPayload) {
  const uint32_t signaling = 0x7F800001, quiet = 0x7FC12345;
  Literal a =
      *Literal::FromBytes(Shape::Array(ElementType::F32, {1}), {reinterpret_cast<const uint8_t*>(&signaling), 4});
  Literal b = *Literal::FromBytes(Shape::Array(ElementType::F32, {1}), {reinterpret_cast<const uint8_t*>(&quiet), 4});
  EXPECT_EQ(Eval(Op::Select, {Integers(ElementType::Pred, {1}), a, b}), a);
  EXPECT_EQ(Eval(Op::Select, {Integers(ElementType::Pred, {0}), a, b}), b);
}

}  // namespace
}  // namespace strop::interp
