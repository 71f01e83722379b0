#include "strop/capi/function.h"

#include <gtest/gtest.h>

namespace strop {
namespace {

constexpr std::string_view kSumAndDifference = R"(HloModule sum_and_difference
ENTRY main {
  a = f32[3] parameter(0)
  b = f32[3] parameter(1)
  sum = f32[3] add(a, b)
  difference = f32[3] subtract(a, b)
  ROOT both = (f32[3], f32[3]) tuple(sum, difference)
})";

Literal Vector(std::vector<float> values) { return Literal::Vector<float>(values); }

class FunctionTest : public testing::TestWithParam<std::string_view> {};

TEST_P(FunctionTest, RunsAndReturnsATuple) {
  Result<Function> function = Function::Compile(kSumAndDifference, GetParam());
  ASSERT_TRUE(function.ok()) << function.status().ToString();
  EXPECT_EQ(function->num_parameters(), 2);
  EXPECT_EQ(function->result_shape().ToString(), "(f32[3], f32[3])");
  Result<Literal> result = function->Run({{Vector({1, 2, 3}), Vector({10, 20, 30})}});
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  EXPECT_EQ(result->element(0), Vector({11, 22, 33}));
  EXPECT_EQ(result->element(1), Vector({-9, -18, -27}));
}

INSTANTIATE_TEST_SUITE_P(Backends, FunctionTest, testing::Values("cpu", "null"));

TEST(Function, CpuCompilesEverything) {
  EXPECT_EQ(Function::Compile(kSumAndDifference)->interpreted_instructions(), 0);
}

TEST(Function, RefusesWrongArguments) {
  Result<Function> function = Function::Compile(kSumAndDifference);
  ASSERT_TRUE(function.ok()) << function.status().ToString();
  EXPECT_EQ(function->Run({}).status().message(), "the program takes 2 arguments, 0 were given");
  EXPECT_EQ(function->Run({{Vector({1, 2, 3}), Vector({1})}}).status().message(),
            "argument 1 has shape f32[1], the program takes f32[3]");
}

TEST(Function, RefusesWrongProgramsAndBackends) {
  EXPECT_EQ(Function::Compile("").status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Function::Compile("HloModule m\nENTRY main { ROOT a = f32[ parameter(0) }").status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Function::Compile(kSumAndDifference, "cpuu").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace strop
