// Generated kernels against the evaluator.
#include "strop/cpu/kernel_compiler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "strop/cpu/testing/differential.h"
#include "strop/interp/interpreter.h"
#include "strop/ir/builder.h"

namespace strop::cpu {
namespace {

TEST(KernelCompiler, ElementwiseFusionOfFloats) {
  Module m("m");
  const Shape shape = Shape::Array(ElementType::F32, {7, 33});
  Differential d(m);
  Builder b(d.body());
  Instruction* x = b.Parameter(0, shape);
  Instruction* y = b.Parameter(1, shape);
  b.Make(Op::Multiply, {b.Make(Op::Add, {x, y}), b.Splat(ElementType::F32, 0.5, shape.dims())});
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  EXPECT_EQ(d.Check(), "");
}

}  // namespace
}  // namespace strop::cpu
