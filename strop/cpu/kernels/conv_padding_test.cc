// Weights that are not finite: infinity times the zeros of padding is NaN, whatever tile a position is in.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv.h"

namespace strop::cpu {
namespace {

struct Case {
  int64_t batch, height, width, in, out, taps, pad, dilation;
  int64_t groups = 1;
};

enum class KernelOrder { HWIO, HWOI, OIHW };

// Of images with their features side by side; windows and padding are the same both ways.
ConvProblem ProblemOf(const Case& t, KernelOrder order, ElementType type) {
  ConvProblem p;
  p.input_type = p.kernel_type = p.output_type = type;
  p.batch = t.batch, p.in_features = t.in / t.groups, p.out_features = t.out, p.feature_groups = t.groups;
  const int64_t all_taps = t.taps * t.taps, tap = order == KernelOrder::OIHW ? 1 : p.in_features * t.out;
  p.kernel_in_stride = order == KernelOrder::HWIO ? t.out : order == KernelOrder::HWOI ? 1 : all_taps;
  p.kernel_out_stride = order == KernelOrder::HWIO   ? 1
                        : order == KernelOrder::HWOI ? p.in_features
                                                     : p.in_features * all_taps;
  p.input_feature_stride = p.output_feature_stride = 1;
  int64_t in = t.in, out = t.out;
  p.spatial.resize(2);
  for (int d : {1, 0}) {
    ConvSpatialDim& s = p.spatial[d];
    s.input = d == 0 ? t.height : t.width;
    s.kernel = t.taps, s.pad_low = t.pad, s.window_dilation = t.dilation;
    s.output = s.input + 2 * t.pad - (t.taps - 1) * t.dilation;
    s.input_stride = in, s.output_stride = out, s.kernel_stride = d == 0 ? tap * t.taps : tap;
    in *= s.input, out *= s.output;
  }
  p.input_batch_stride = in, p.output_batch_stride = out;
  return p;
}

int64_t GroupOf(const ConvProblem& p, int64_t feature) { return feature / (p.out_features / p.feature_groups); }

template <class T>
std::vector<T> Reference(const ConvProblem& p, const std::vector<T>& input, const std::vector<T>& kernel) {
  std::vector<T> output(p.batch * p.output_batch_stride);
  const ConvSpatialDim &down = p.spatial[0], &row = p.spatial[1];
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t y = 0; y < down.output; ++y)
      for (int64_t x = 0; x < row.output; ++x) {
        T* sums = output.data() + n * p.output_batch_stride + y * down.output_stride + x * row.output_stride;
        for (int64_t tap = 0; tap < down.kernel * row.kernel; ++tap) {
          const int64_t v = tap / row.kernel, w = tap % row.kernel;
          const int64_t at_y = y + v * down.window_dilation - down.pad_low;
          const int64_t at_x = x + w * row.window_dilation - row.pad_low;
          const bool inside = at_y >= 0 && at_y < down.input && at_x >= 0 && at_x < row.input;
          const int64_t from = n * p.input_batch_stride + at_y * down.input_stride + at_x * row.input_stride;
          const T* weights = kernel.data() + v * down.kernel_stride + w * row.kernel_stride;
          for (int64_t c = 0; c < p.in_features; ++c)
            for (int64_t f = 0; f < p.out_features; ++f)
              sums[f] += (inside ? input[from + GroupOf(p, f) * p.in_features + c] : T(0)) *
                         weights[c * p.kernel_in_stride + f * p.kernel_out_stride];
        }
      }
  return output;
}

template <class T>
std::vector<T> Convolve(const Conv& conv, const std::vector<T>& input, const std::vector<T>& kernel, int64_t outputs) {
  std::vector<T> output(outputs);
  // What lies there before does not matter.
  std::vector<uint8_t> scratch(conv.scratch_bytes(), 0xff), shared(conv.shared_bytes(), 0xff);
  ConvCall call{input.data(), kernel.data(), output.data(), 0, shared.data()};
  for (; call.round < conv.rounds(); ++call.round) {
    for (int64_t task = conv.prepare_tasks(); task-- > 0;) conv.Prepare(call, task, task + 1);
    for (int64_t task = conv.num_tasks(); task-- > 0;) conv.Run(call, task, task + 1, scratch.data());
  }
  return output;
}

template <class T>
void Check(const Case& t, KernelOrder order, std::string_view way = "patches where they lie") {
  constexpr std::string_view kParts = "in three parts of bf16";  // where processors have them
  const ConvProblem p = ProblemOf(t, order, ElementTypeOf<T>());
  std::mt19937 rng(5);
  std::vector<T> input(p.batch * p.input_batch_stride), kernel(t.taps * t.taps * p.in_features * t.out);
  for (T& x : input) x = static_cast<T>(static_cast<int>(rng() % 5) - 2);
  for (T& x : kernel) x = static_cast<T>(static_cast<int>(rng() % 5) - 2);
  const auto weight = [&](int64_t tap, int64_t in, int64_t out) -> T& {
    return kernel[tap / t.taps * p.spatial[0].kernel_stride + tap % t.taps * p.spatial[1].kernel_stride +
                  in * p.kernel_in_stride + out * p.kernel_out_stride];
  };
  constexpr T kInfinity = std::numeric_limits<T>::infinity(), kNan = std::numeric_limits<T>::quiet_NaN();
  const GemmIsa* isas[kMostGemmIsas];
  const int count = GemmIsas(isas);
  for (int64_t tap = -1; tap < t.taps * t.taps; ++tap) {
    const std::vector<T> finite = kernel;
    if (tap >= 0) {
      weight(tap, p.in_features - 1, 0) = -kInfinity;
      weight(tap, 0, t.out - 1) = kInfinity;
      weight(tap, 1, t.out / 2) = kNan;
    }
    const std::vector<T> want = Reference(p, input, kernel);
    for (int isa = 0; isa < count; ++isa) {
      auto conv = Conv::Create(p, *isas[isa]);
      ASSERT_TRUE(conv.ok()) << conv.status().ToString();
      const std::string& tiles = (*conv)->tiles();
      EXPECT_TRUE(tiles.find(way) != std::string::npos || tiles.starts_with(kParts)) << tiles;
      const std::vector<T> got = Convolve(**conv, input, kernel, static_cast<int64_t>(want.size()));
      int64_t wrong = 0;
      for (size_t i = 0; i < want.size(); ++i) wrong += std::isnan(want[i]) ? !std::isnan(got[i]) : want[i] != got[i];
      EXPECT_EQ(wrong, 0) << isas[isa]->name << " tap " << tap << ", " << (*conv)->tiles();
    }
    kernel = finite;
  }
}

TEST(ConvPadding, InfiniteWeightsOfPanels) {
  for (const Case& t :
       {Case{2, 14, 15, 36, 40, 3, 1, 1}, Case{1, 18, 18, 32, 50, 3, 3, 3}, Case{1, 15, 16, 34, 33, 5, 2, 1}})
    for (KernelOrder order : {KernelOrder::HWIO, KernelOrder::HWOI, KernelOrder::OIHW}) {
      Check<float>(t, order);
      Check<double>(t, order);
    }
}

// Of a kernel that is gone through panel by panel.
TEST(ConvPadding, InfiniteWeightsOfLargeKernels) { Check<float>({3, 9, 8, 61, 240, 3, 1, 1}, KernelOrder::HWIO); }

TEST(ConvPadding, InfiniteWeightsOfLines) {
  for (KernelOrder order : {KernelOrder::HWIO, KernelOrder::HWOI, KernelOrder::OIHW})
    Check<float>({2, 14, 15, 16, 40, 3, 1, 1}, order, "lines of windows");
}

TEST(ConvPadding, InfiniteWeightsOfGroups) {
  for (KernelOrder order : {KernelOrder::HWIO, KernelOrder::HWOI, KernelOrder::OIHW}) {
    Check<float>({2, 13, 16, 128, 128, 3, 1, 1, 16}, order);
    Check<double>({2, 18, 17, 64, 128, 3, 2, 2, 16}, order);
  }
}

// In the last ones some taps meet no position at all.
TEST(ConvPadding, InfiniteWeightsByColumns) {
  for (const Case& t : {Case{1, 7, 7, 40, 96, 3, 1, 1}, Case{2, 9, 10, 20, 100, 3, 2, 2},
                        Case{3, 1, 1, 24, 96, 3, 1, 1}, Case{1, 4, 5, 16, 130, 3, 6, 6}})
    for (KernelOrder order : {KernelOrder::HWIO, KernelOrder::HWOI, KernelOrder::OIHW}) {
      Check<float>(t, order);
      Check<double>(t, order);
    }
}

}  // namespace
}  // namespace strop::cpu
