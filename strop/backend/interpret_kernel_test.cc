// The fallback kernel: what it keeps from run to run.
#include <gtest/gtest.h>

#include <vector>

#include "strop/backend/backend.h"
#include "strop/ir/builder.h"

namespace strop {
namespace {

TEST(InterpretKernel, RandomNumbersGoOn) {
  Module m("m");
  Builder b(m.AddComputation("main"));
  const Shape scalar = Shape::Scalar(ElementType::F32), shape = Shape::Array(ElementType::F32, {4});
  Instruction* low = b.Parameter(0, scalar);
  Instruction* high = b.Parameter(1, scalar);
  const RngAttrs uniform{RngDistribution::Uniform};
  Instruction* first = b.MakeWithShape(Op::Rng, shape, {low, high}, uniform);
  Instruction* second = b.MakeWithShape(Op::Rng, shape, {low, high}, uniform);
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  std::vector<std::vector<float>> drawn;
  for (const Instruction* rng : {first, second}) {
    const CompiledKernel kernel = InterpretKernel(KernelSpec{rng, {-1}});
    const auto& step = std::get<HostStep>(kernel.body);
    EXPECT_TRUE(step.interpreted);
    for (int run = 0; run < 2; ++run) {
      float from = 2, to = 3;
      std::vector<float> out(4, -1.0f);
      void* args[] = {&from, &to, out.data()};
      ASSERT_TRUE(step.fn(HostCall{args, RunArgs{}, StepInfo{}}).ok());
      for (float x : out) EXPECT_TRUE(x >= 2 && x < 3) << x;
      for (const std::vector<float>& other : drawn) EXPECT_NE(out, other);
      drawn.push_back(out);
    }
  }
}

}  // namespace
}  // namespace strop
