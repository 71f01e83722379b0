#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "strop/types/literal.h"
#include "strop/types/sharding.h"

namespace strop {
namespace {

TEST(ElementType, EveryCodeOfEverySmallFloatRoundTrips) {
  for (int n = 0; n < kNumElementTypes; ++n) {
    ElementType t = static_cast<ElementType>(n);
    if (!IsFloat(t) || Bits(t) > 16) continue;
    for (uint64_t code = 0; code < (uint64_t{1} << Bits(t)); ++code) {
      double v = DecodeFloat(t, code);
      uint64_t back = EncodeFloat(t, v);
      if (std::isnan(v))
        EXPECT_TRUE(std::isnan(DecodeFloat(t, back))) << Name(t) << " " << code;
      else
        EXPECT_EQ(back, code) << Name(t) << " " << v;
    }
  }
}

TEST(ElementType, RoundsToNearestEvenAndOverflows) {
  EXPECT_EQ(DecodeFloat(ElementType::BF16, EncodeFloat(ElementType::BF16, 1 + 1.0 / 256)), 1.0);
  EXPECT_EQ(DecodeFloat(ElementType::BF16, EncodeFloat(ElementType::BF16, 1 + 3.0 / 256)), 1 + 4.0 / 256);
  EXPECT_EQ(DecodeFloat(ElementType::F16, EncodeFloat(ElementType::F16, 65519.0)), 65504.0);
  EXPECT_TRUE(std::isinf(DecodeFloat(ElementType::F16, EncodeFloat(ElementType::F16, 65520.0))));
  EXPECT_TRUE(std::isnan(DecodeFloat(ElementType::F8E4M3FN, EncodeFloat(ElementType::F8E4M3FN, 1e6))));
  EXPECT_EQ(DecodeFloat(ElementType::F8E4M3FN, EncodeFloat(ElementType::F8E4M3FN, 448.0)), 448.0);
  EXPECT_EQ(DecodeFloat(ElementType::F4E2M1FN, EncodeFloat(ElementType::F4E2M1FN, 100.0)), 6.0);
  EXPECT_EQ(DecodeFloat(ElementType::F16, EncodeFloat(ElementType::F16, 1e-30)), 0.0);
  EXPECT_EQ(DecodeFloat(ElementType::F16, EncodeFloat(ElementType::F16, std::ldexp(1.0, -24))), std::ldexp(1.0, -24));
}

TEST(Shape, PrintsAsXla) {
  EXPECT_EQ(Shape::Array(ElementType::S8, {1024, 512}).WithDefaultLayout().ToString(true), "s8[1024,512]{1,0}");
  EXPECT_EQ(Shape::Scalar(ElementType::BF16).WithDefaultLayout().ToString(true), "bf16[]");
  Shape d = Shape::Array(ElementType::F32, {2, 3});
  d.set_dynamic(1, true);
  EXPECT_EQ(Shape::Tuple({d, Shape::Token()}).ToString(), "(f32[2,<=3], token[])");
}

TEST(Shape, RefusesWhatDoesNotFit) {
  Shape huge = Shape::Array(ElementType::F32, {int64_t{1} << 40, int64_t{1} << 40});
  EXPECT_FALSE(huge.Validate().ok());
  EXPECT_EQ(huge.num_elements(), INT64_MAX);
  EXPECT_FALSE(Shape::Array(ElementType::F32, {-3}).Validate().ok());
  EXPECT_FALSE(Shape::Array(ElementType::F32, {2, 2}, Layout{{0, 0}, nullptr}).Validate().ok());
  EXPECT_FALSE(Literal::Zeros(huge).ok());
}

TEST(Shape, StridesFollowTheLayout) {
  Shape s = Shape::Array(ElementType::F32, {2, 3}, Layout{{0, 1}, nullptr});
  EXPECT_EQ(s.Strides(), (Int64Vector{1, 2}));
  s.clear_layout();
  EXPECT_EQ(s.Strides(), (Int64Vector{3, 1}));
}

TEST(Literal, ElementsConvert) {
  Literal s4 = *Literal::Zeros(Shape::Array(ElementType::S4, {2}));
  s4.SetInt(0, -3);
  s4.SetInt(1, 9);  // wraps
  EXPECT_EQ(s4.GetInt(0), -3);
  EXPECT_EQ(s4.GetInt(1), -7);
  EXPECT_EQ(s4.ToString(), "{-3, -7}");
  EXPECT_EQ(Literal::ScalarOf(ElementType::F32, 0.1).ToString(), "0.1");
  EXPECT_EQ(Literal::ScalarOf(ElementType::F32, 1e10).ToString(), "1e+10");
  EXPECT_EQ(Literal::Scalar(std::complex<float>(1, -2)).ToString(), "(1, -2)");
  EXPECT_EQ(Literal::Scalar(uint64_t{1} << 63).ToString(), "9223372036854775808");
}

TEST(Literal, CopiesShareUntilWritten) {
  Literal a = Literal::Vector<int32_t>(std::vector<int32_t>{1, 2, 3});
  Literal b = a;
  EXPECT_EQ(a.bytes().data(), b.bytes().data());
  b.SetInt(0, 7);
  EXPECT_EQ(a.GetInt(0), 1);
  EXPECT_FALSE(a == b);
}

}  // namespace
}  // namespace strop
