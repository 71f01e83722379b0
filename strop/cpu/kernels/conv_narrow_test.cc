// Which way convolutions go where vectors have 32 bytes, and there are 16 of them; the results are conv_test.cc's.
#include <gtest/gtest.h>

#include <string_view>

#include "strop/cpu/kernels/conv.h"

namespace strop::cpu {
namespace {

struct Case {
  int64_t batch, in, out, size, window, stride = 1, groups = 1;
  bool planes = false;
  ElementType type = ElementType::F32;
};

// Square images with half of the window as padding.
ConvProblem ProblemOf(const Case& t) {
  ConvProblem p;
  p.input_type = p.kernel_type = p.output_type = t.type;
  p.batch = t.batch, p.in_features = t.in / t.groups, p.out_features = t.out, p.feature_groups = t.groups;
  const int64_t pad = t.window / 2, output = (t.size + 2 * pad - t.window) / t.stride + 1;
  int64_t is = t.planes ? 1 : t.in, ks = t.planes ? 1 : p.in_features * t.out, os = t.planes ? 1 : t.out;
  p.spatial.resize(2);
  for (int d = 1; d >= 0; --d) {
    ConvSpatialDim& s = p.spatial[d];
    s.input = t.size, s.kernel = t.window, s.output = output, s.stride = t.stride, s.pad_low = pad;
    s.input_stride = is, s.kernel_stride = ks, s.output_stride = os;
    is *= s.input, ks *= s.kernel, os *= s.output;
  }
  p.input_batch_stride = t.size * t.size * t.in, p.output_batch_stride = output * output * t.out;
  p.input_feature_stride = t.planes ? t.size * t.size : 1;
  p.output_feature_stride = t.planes ? output * output : 1;
  p.kernel_in_stride = t.planes ? t.window * t.window : t.out;
  p.kernel_out_stride = t.planes ? t.window * t.window * p.in_features : 1;
  return p;
}

const GemmIsa* Narrow() {
  const GemmIsa* isas[kMostGemmIsas];
  for (int n = GemmIsas(isas); n-- > 0;)
    if (std::string_view(isas[n]->name) == "avx2") return isas[n];
  return nullptr;
}

void Expect(const Case& t, std::string_view what, bool is = true) {
  if (const GemmIsa* const isa = Narrow()) {
    const std::string tiles = (*Conv::Create(ProblemOf(t), *isa))->tiles();
    EXPECT_EQ(tiles.find(what) != std::string::npos, is) << what << " in " << tiles;
  }
}

// Sums of eight features by one vector wait for the weights, each of which is loaded for itself.
TEST(NarrowConv, PlanesFillTheRegisters) {
  Expect({4, 3, 64, 224, 7, 2, 1, true}, "planes of 3 features, 7 of 112 rows a task, 6x16 in registers");
  Expect({8, 20, 64, 56, 3, 1, 1, true}, "4x24 in registers");
}

TEST(NarrowConv, PointsArePacked) {
  Expect({1, 512, 2048, 7, 1}, "a product of all positions");
  Expect({4, 1024, 256, 14, 1}, "a product of all positions");
  Expect({4, 64, 256, 56, 1}, "a product of all positions");
  Expect({4, 256, 64, 56, 1}, "patches where they lie");
}

TEST(NarrowConv, PacksTheKernelForFewPositions) {
  Expect({1, 256, 256, 14, 3}, "and the kernel", false);
  Expect({1, 256, 256, 3, 3}, "and the kernel");
}

TEST(NarrowConv, CopiesPlanes) { Expect({8, 64, 64, 56, 3, 1, 1, true}, "features side by side"); }

// Of few features into many, by lines; of few outputs, and of planes, by planes.
TEST(NarrowConv, LinesOfWindows) {
  Expect({16, 3, 32, 32, 3}, "lines of windows, product of 16384x32x27");
  Expect({1, 32, 32, 28, 3}, "lines of windows");
  Expect({1, 3, 8, 32, 3}, "lines of windows", false);
  Expect({1, 3, 32, 32, 3, 1, 1, true}, "lines of windows", false);
  Expect({1, 64, 64, 28, 3}, "lines of windows", false);
}

TEST(NarrowConv, WidensHalves) {
  Expect({4, 64, 64, 56, 3, 1, 1, false, ElementType::BF16}, "widened");
  Expect({4, 3, 32, 56, 5, 2, 1, false, ElementType::BF16}, "widened", false);
}

}  // namespace
}  // namespace strop::cpu
