// Convolutions of bf16 beside the same in f32: what pairs of bf16 must not lose.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/testing/isas.h"

namespace strop::cpu {
namespace {

struct Case {
  int64_t batch, height, width, in, out, taps, pad;
  bool channels_last = true;
  int64_t groups = 1;
};

// Square windows with the same padding all around; NHWC by HWIO or NCHW by OIHW.
ConvProblem ProblemOf(const Case& t, ElementType type) {
  ConvProblem p;
  p.input_type = p.kernel_type = type;
  p.batch = t.batch, p.in_features = t.in / t.groups, p.out_features = t.out, p.feature_groups = t.groups;
  const int64_t sizes[] = {t.height, t.width};
  int64_t in = t.channels_last ? t.in : 1, out = t.channels_last ? t.out : 1;
  int64_t tap = t.channels_last ? p.in_features * t.out : 1;
  p.spatial.resize(2);
  for (int d : {1, 0}) {
    ConvSpatialDim& s = p.spatial[d];
    s.input = sizes[d], s.kernel = t.taps, s.pad_low = t.pad, s.output = s.input + 2 * t.pad - t.taps + 1;
    s.input_stride = in, s.output_stride = out, s.kernel_stride = tap;
    in *= s.input, out *= s.output, tap *= s.kernel;
  }
  p.input_feature_stride = t.channels_last ? 1 : in, p.output_feature_stride = t.channels_last ? 1 : out;
  p.kernel_in_stride = t.channels_last ? t.out : tap;
  p.kernel_out_stride = t.channels_last ? 1 : tap * p.in_features;
  p.input_batch_stride = t.height * t.width * t.in;
  p.output_batch_stride = p.spatial[0].output * p.spatial[1].output * t.out;
  return p;
}

std::vector<float> Convolve(const Case& t, ElementType type, const void* input, const void* kernel, const GemmIsa& isa,
                            std::string* tiles = nullptr) {
  const ConvProblem p = ProblemOf(t, type);
  const auto conv = *Conv::Create(p, isa);
  if (tiles) *tiles = conv->tiles();
  std::vector<float> output(p.batch * p.output_batch_stride);
  std::vector<uint8_t> scratch(conv->scratch_bytes(), 0xff), shared(conv->shared_bytes(), 0xff);
  ConvCall call{input, kernel, output.data(), 0, shared.data()};
  for (; call.round < conv->rounds(); ++call.round) {
    conv->Prepare(call, 0, conv->prepare_tasks());
    for (int64_t task = conv->num_tasks(); task-- > 0;) conv->Run(call, task, task + 1, scratch.data());
  }
  return output;
}

uint16_t Code(float v) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16); }
float Value(uint16_t code) { return std::bit_cast<float>(static_cast<uint32_t>(code) << 16); }

// Standard normal numbers times `scale`, rounded to bf16.
std::vector<uint16_t> Numbers(int64_t n, float scale, int seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<uint16_t> codes(n);
  for (uint16_t& code : codes) code = Code(normal(rng) * scale);
  return codes;
}

std::vector<float> Widened(const std::vector<uint16_t>& codes) {
  std::vector<float> values;
  for (uint16_t code : codes) values.push_back(Value(code));
  return values;
}

// `scale` is what products are about.
void Compare(const Case& t, const std::vector<uint16_t>& input, const std::vector<uint16_t>& kernel, float scale) {
  const std::vector<float> wide_input = Widened(input), wide_kernel = Widened(kernel);
  const std::vector<float> want = Convolve(t, ElementType::F32, wide_input.data(), wide_kernel.data(), GemmBaseline());
  for (const GemmIsa* isa : AllIsas()) {
    std::string tiles;
    const std::vector<float> got = Convolve(t, ElementType::BF16, input.data(), kernel.data(), *isa, &tiles);
    if (t.out >= 32) {
      EXPECT_EQ(tiles.starts_with("bf16, "), isa->bf16.mr > 0) << tiles;
    }
    for (size_t i = 0; i < want.size(); ++i) {
      if (std::isnan(want[i]) || std::isinf(want[i]))
        ASSERT_TRUE(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]) << isa->name << " at " << i;
      else
        ASSERT_NEAR(got[i], want[i], 1e-4f * scale) << isa->name << " at " << i;
    }
  }
}

const Case kCases[] = {{2, 14, 15, 64, 40, 3, 1},        {1, 30, 31, 34, 70, 5, 2},
                       {3, 20, 20, 37, 64, 3, 1},        {2, 13, 17, 64, 48, 3, 1, false},
                       {1, 33, 20, 21, 96, 3, 0, false}, {2, 12, 18, 64, 96, 3, 1, true, 2},
                       {4, 16, 16, 48, 9, 3, 1}};

int64_t InputSize(const Case& t) { return t.batch * t.height * t.width * t.in; }
int64_t KernelSize(const Case& t) { return t.taps * t.taps * t.in / t.groups * t.out; }

TEST(Bf16Conv, AgreesWithF32) {
  for (const Case& t : kCases) Compare(t, Numbers(InputSize(t), 1, 1), Numbers(KernelSize(t), 1, 2), 30);
}

// Products below the least normal number, of operands that are not.
TEST(Bf16Conv, KeepsSubnormals) {
  for (const Case& t : kCases) {
    const float small = 0x1p-131f;
    Compare(t, Numbers(InputSize(t), 0x1p-61f, 1), Numbers(KernelSize(t), 0x1p-70f, 2), 30 * small);
  }
}

// Infinity times the zeros of padding is NaN.
TEST(Bf16Conv, MultipliesPadding) {
  for (const Case& t : kCases) {
    std::vector<uint16_t> kernel = Numbers(KernelSize(t), 1, 2);
    kernel[kernel.size() / 3] = Code(std::numeric_limits<float>::infinity());
    Compare(t, Numbers(InputSize(t), 1, 1), kernel, 30);
  }
}

}  // namespace
}  // namespace strop::cpu
