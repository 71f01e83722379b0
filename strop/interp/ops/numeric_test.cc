// Linear algebra, Fourier transforms, batch normalisation, random bits, quantisation, checks.
#include <cmath>

#include "strop/interp/ops/fixture.h"

namespace strop::interp {
namespace {

constexpr ElementType kF32 = ElementType::F32;
constexpr ElementType kF64 = ElementType::F64;

class NumericTest : public OpTest {
 protected:
  static void ExpectNear(const Literal& got, const Literal& want, double tolerance) {
    ASSERT_TRUE(got.shape().Compatible(want.shape())) << got.shape().ToString();
    for (int64_t i = 0; i < got.num_elements(); ++i)
      EXPECT_NEAR(std::abs(got.GetComplex(i) - want.GetComplex(i)), 0, tolerance) << i;
  }
};

TEST_F(NumericTest, Cholesky) {
  const Literal a = Array(kF64, {2, 2}, {4, 99, 2, 5});  // the upper triangle is not read
  ExpectNear(Eval(Op::Cholesky, {a}, CholeskyAttrs{true}), Array(kF64, {2, 2}, {2, 0, 1, 2}), 1e-15);
  ExpectNear(Eval(Op::Cholesky, {Array(kF64, {2, 2}, {4, 2, 99, 5})}, CholeskyAttrs{false}),
             Array(kF64, {2, 2}, {2, 1, 0, 2}), 1e-15);
  EXPECT_TRUE(std::isnan(Eval(Op::Cholesky, {Array(kF64, {1, 1}, {-1})}, CholeskyAttrs{true}).GetDouble(0)));
}

TEST_F(NumericTest, TriangularSolveInAllForms) {
  const Literal lower = Array(kF64, {2, 2}, {2, 77, 3, 4}), b = Array(kF64, {2, 2}, {2, 4, 11, 18});
  TriangularSolveAttrs a{.left_side = true, .lower = true};
  ExpectNear(Eval(Op::TriangularSolve, {lower, b}, a), Array(kF64, {2, 2}, {1, 2, 2, 3}), 1e-15);
  a.transpose_a = TransposeA::Transpose;  // [[2,3],[0,4]] x = b
  ExpectNear(Eval(Op::TriangularSolve, {lower, Array(kF64, {2, 1}, {8, 8})}, a), Array(kF64, {2, 1}, {1, 2}), 1e-15);
  a = {.left_side = false, .lower = true};  // x L = b
  ExpectNear(Eval(Op::TriangularSolve, {lower, Array(kF64, {1, 2}, {8, 8})}, a), Array(kF64, {1, 2}, {1, 2}), 1e-15);
  a = {.left_side = true, .lower = true, .unit_diagonal = true};
  ExpectNear(Eval(Op::TriangularSolve, {lower, Array(kF64, {2, 1}, {1, 5})}, a), Array(kF64, {2, 1}, {1, 2}), 1e-15);
  const Literal imaginary =
      ComplexVector(ElementType::C128, {{0, 1}}).WithShape(Shape::Array(ElementType::C128, {1, 1}));
  a = {.left_side = true, .lower = true, .transpose_a = TransposeA::Adjoint};
  ExpectNear(Eval(Op::TriangularSolve, {imaginary, imaginary}, a), Array(ElementType::C128, {1, 1}, {-1}), 1e-15);
}

TEST_F(NumericTest, Fft) {
  const ElementType c = ElementType::C128;
  ExpectNear(Eval(Op::Fft, {Vector(c, {1, 2, 3, 4})}, FftAttrs{FftType::Fft, {4}}),
             ComplexVector(c, {{10, 0}, {-2, 2}, {-2, 0}, {-2, -2}}), 1e-14);
  for (int64_t n : {1, 2, 3, 5, 6, 7, 12, 17}) {  // there and back
    Literal x = *Literal::Zeros(Shape::Array(c, {2, n}));
    for (int64_t i = 0; i < 2 * n; ++i)
      x.SetComplex(i, {std::sin(static_cast<double>(i)), std::cos(3.0 * static_cast<double>(i))});
    const Literal y = Eval(Op::Fft, {x}, FftAttrs{FftType::Fft, {2, n}});
    ExpectNear(Eval(Op::Fft, {y}, FftAttrs{FftType::Ifft, {2, n}}), x, 1e-14);
    Literal r = *Literal::Zeros(Shape::Array(kF64, {2, n}));
    for (int64_t i = 0; i < 2 * n; ++i) r.SetDouble(i, std::sin(static_cast<double>(i)));
    const Literal half = Eval(Op::Fft, {r}, FftAttrs{FftType::Rfft, {2, n}});
    EXPECT_EQ(half.shape().dim(1), n / 2 + 1);
    ExpectNear(Eval(Op::Fft, {half}, FftAttrs{FftType::Irfft, {2, n}}), r, 1e-14);
  }
}

TEST_F(NumericTest, BatchNorm) {
  const BatchNormAttrs a{0.0f, 1};
  const Literal x = Array(kF32, {2, 2}, {1, 10, 3, 30}), scale = Vector(kF32, {2, 1}), offset = Vector(kF32, {0, 5});
  const Literal y = Eval(Op::BatchNormTraining, {x, scale, offset}, a);
  EXPECT_EQ(y.element(0), Array(kF32, {2, 2}, {-2, 4, 2, 6}));
  EXPECT_EQ(y.element(1), Vector(kF32, {2, 20}));
  EXPECT_EQ(y.element(2), Vector(kF32, {1, 100}));
  EXPECT_EQ(Eval(Op::BatchNormInference, {x, scale, offset, y.element(1), y.element(2)}, a), y.element(0));
  const Literal g =
      Eval(Op::BatchNormGrad, {x, scale, y.element(1), y.element(2), Array(kF32, {2, 2}, {1, 0, 0, 0})}, a);
  EXPECT_EQ(g.element(0), Array(kF32, {2, 2}, {0, 0, 0, 0}));  // two points: normalised values cannot change
  EXPECT_EQ(g.element(1), Vector(kF32, {-1, 0}));
  EXPECT_EQ(g.element(2), Vector(kF32, {1, 0}));
}

// Golden values: jax.lax.rng_bit_generator on XLA:CPU (jax 0.10.2).
TEST_F(NumericTest, RandomBitsAreXlas) {
  const Literal key2 = Integers(ElementType::U64, {1, 2}), key3 = Integers(ElementType::U64, {1, 2, 3});
  auto bits = [&](const Literal& key, RngAlgorithm algorithm, ElementType type, Int64Vector dims) {
    const Shape shape = Shape::Tuple({key.shape(), Shape::Array(type, std::move(dims))});
    return EvalTo(shape, Op::RngBitGenerator, {key}, RngBitGeneratorAttrs{algorithm});
  };
  Literal r = bits(key3, RngAlgorithm::Philox, ElementType::U32, {5});
  EXPECT_EQ(r.element(1), Integers(ElementType::U32, {4031113034, 1366700262, 495645701, 3051723414, 89414891}));
  EXPECT_EQ(r.element(0), Integers(ElementType::U64, {1, 4, 3}));
  r = bits(key2, RngAlgorithm::Default, ElementType::U64, {3});
  EXPECT_EQ(r.element(1),
            Integers(ElementType::U64, {-6217012678377560247, 3437131457114678231, -4981128782594628610}));
  EXPECT_EQ(r.element(0), Integers(ElementType::U64, {1, 4}));
  r = bits(key2, RngAlgorithm::ThreeFry, ElementType::U32, {3, 2});
  EXPECT_EQ(r.element(1),
            Array(ElementType::U32, {3, 2}, {43444564, 2150618427, 3979645651, 3745730563, 1672743891, 4240503393}));
  r = bits(key2, RngAlgorithm::ThreeFry, ElementType::U8, {3});
  EXPECT_EQ(r.element(1), Integers(ElementType::U8, {84, 59, 211}));
  EXPECT_EQ(r.element(0), Integers(ElementType::U64, {1, 4}));
  r = bits(key2, RngAlgorithm::ThreeFry, ElementType::U64, {2});
  EXPECT_EQ(r.element(1), Integers(ElementType::U64, {-9209908263526143660, -2358953802017238317}));
}

TEST_F(NumericTest, RngStaysInsideItsBounds) {
  const Shape shape = Shape::Array(ElementType::BF16, {1000});
  const Literal low = Array(ElementType::BF16, {}, {1}), high = Array(ElementType::BF16, {}, {2});
  const Literal x = EvalTo(shape, Op::Rng, {low, high}, RngAttrs{RngDistribution::Uniform});
  double sum = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_GE(x.GetDouble(i), 1);
    ASSERT_LT(x.GetDouble(i), 2);
    sum += x.GetDouble(i);
  }
  EXPECT_NEAR(sum / 1000, 1.5, 0.05);
  EXPECT_FALSE(EvalTo(shape, Op::Rng, {low, high}, RngAttrs{RngDistribution::Uniform}) == x)
      << "the generator moves on";
  const Literal n = EvalTo(Shape::Array(kF32, {4000}), Op::Rng, {Literal::Scalar<float>(3), Literal::Scalar<float>(2)},
                           RngAttrs{RngDistribution::Normal});
  double mean = 0, square = 0;
  for (int64_t i = 0; i < 4000; ++i) mean += n.GetDouble(i) / 4000, square += n.GetDouble(i) * n.GetDouble(i) / 4000;
  EXPECT_NEAR(mean, 3, 0.15);
  EXPECT_NEAR(square - mean * mean, 4, 0.4);
}

TEST_F(NumericTest, QuantizesAsInE04) {
  CustomCallAttrs a;
  a.target = "stablehlo.uniform_quantize";
  a.opaque =
      "{scale=[0.00391965],zero_point=[-128],storage_type=si8,expressed_type=f32,storage_min=-128,storage_max=127}";
  const Literal x = Vector(kF32, {-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1});
  const Literal q = EvalTo(Shape::Array(kF32, {9}), Op::CustomCall, {x}, a);
  EXPECT_EQ(q, Vector(kF32, {-128, -128, -128, -128, -128, -64, 0, 63, 127}));
  a.target = "mhlo.uniform_dequantize";
  ExpectNear(EvalTo(Shape::Array(kF32, {9}), Op::CustomCall, {q}, a),
             Vector(kF32, {0, 0, 0, 0, 0, .2508576, .5017152, .7486531, .9995107}), 1e-6);
  a.target = "stablehlo.uniform_quantize";  // -1.55 / 0.1 is -15.5 and goes to -15 or -16: the reciprocal decides
  a.opaque = "{scale=[0.1],zero_point=[0],storage_min=-128,storage_max=127}";
  EXPECT_EQ(EvalTo(Shape::Array(kF32, {1}), Op::CustomCall, {Vector(kF32, {-1.55})}, a), Vector(kF32, {-16}));
  a.opaque = "{scale=[a]}";
  const Shape shape = Shape::Array(kF32, {9});
  EXPECT_EQ(TryEval(Op::CustomCall, {x}, a, {}, &shape).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(NumericTest, Checks) {
  const Shape nothing = Shape::Tuple({});
  auto check = [&](std::string target, std::string text, double x, double y, ElementType t = kF32) {
    CustomCallAttrs a;
    a.target = std::move(target);
    a.opaque = std::move(text);
    EvalTo(nothing, Op::CustomCall, {Vector(t, {x}), Vector(t, {y})}, a);
    return interpreter_.checks().back().passed;
  };
  EXPECT_TRUE(check("check.expect_eq", "", 0, -0.0));
  EXPECT_FALSE(check("check.expect_eq", "", NAN, NAN));
  EXPECT_TRUE(check("check.expect_almost_eq", "", NAN, NAN));
  EXPECT_FALSE(check("check.expect_almost_eq", "", INFINITY, 1e38));
  EXPECT_TRUE(check("check.expect_almost_eq", "{tolerance = 1.0e-1 : f64}", 5, 5.05));
  EXPECT_FALSE(check("check.expect_almost_eq", "", 5, 5.05));
  EXPECT_TRUE(check("check.expect_close", "", 1, 1 + 3 * std::ldexp(1, -23)));
  EXPECT_FALSE(check("check.expect_close", "", 1, 1 + 4 * std::ldexp(1, -23)));
  EXPECT_TRUE(
      check("check.expect_close", "{max_ulp_difference = 2 : ui64}", std::ldexp(1, -149), -std::ldexp(1, -149)));
  EXPECT_FALSE(
      check("check.expect_close", "{max_ulp_difference = 1 : ui64}", std::ldexp(1, -149), -std::ldexp(1, -149)));
  EXPECT_FALSE(check("check.expect_close", "{min_ulp_difference = 1 : ui64}", 1, 1));
  EXPECT_EQ(interpreter_.checks().back().message, "element 0 is 1, expected 1");
}

TEST_F(NumericTest, UnknownCustomCallIsNamed) {
  CustomCallAttrs a;
  a.target = "nobody";
  const Shape shape = Shape::Array(kF32, {1});
  const Status status = TryEval(Op::CustomCall, {Vector(kF32, {1})}, a, {}, &shape).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_NE(status.message().find("nobody"), std::string::npos);
  interpreter_.options().custom_call = [](const Instruction&, std::span<const Literal> operands, Literal* result) {
    *result = operands[0];
    return OkStatus();
  };
  EXPECT_EQ(EvalTo(shape, Op::CustomCall, {Vector(kF32, {1})}, a), Vector(kF32, {1}));
}

}  // namespace
}  // namespace strop::interp
