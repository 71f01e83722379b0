// Products and convolutions of f32 in three parts of bf16 (GemmIsa::thirds), in plain C++ on every machine.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/half.h"
#include "strop/cpu/testing/isas.h"

namespace strop::cpu {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

struct Matrices {
  GemmProblem p;
  std::vector<float> a, b;
  float& A(int64_t i, int64_t k) { return a[static_cast<size_t>(i * p.a.row_stride + k * p.a.col_stride)]; }
  float& B(int64_t k, int64_t j) { return b[static_cast<size_t>(k * p.b.row_stride + j * p.b.col_stride)]; }
};

Matrices Make(int64_t m, int64_t n, int64_t k, bool a_turned, bool b_turned, float scale) {
  Matrices x;
  x.p.m = m, x.p.n = n, x.p.k = k;
  x.p.a = {ElementType::F32, a_turned ? 1 : k, a_turned ? m : 1, 0};
  x.p.b = {ElementType::F32, b_turned ? 1 : n, b_turned ? k : 1, 0};
  x.p.c = {ElementType::F32, n, 1, 0};
  std::mt19937 rng(7);
  std::normal_distribution<float> normal(0, scale);
  x.a.resize(static_cast<size_t>(m * k)), x.b.resize(static_cast<size_t>(k * n));
  for (float& v : x.a) v = normal(rng);
  for (float& v : x.b) v = normal(rng);
  return x;
}

std::vector<float> Multiply(const Matrices& x, const GemmIsa& isa) {
  const auto gemm = *Gemm::Create(x.p, isa);
  EXPECT_TRUE(isa.thirds.mr == 0 || gemm->tiles().starts_with("in three parts of bf16")) << gemm->tiles();
  std::vector<float> c(static_cast<size_t>(x.p.m * x.p.n), 7);
  std::vector<uint8_t> scratch(static_cast<size_t>(gemm->scratch_bytes()), 0xff);
  std::vector<uint8_t> shared(static_cast<size_t>(gemm->shared_bytes()), 0xff);
  gemm->RunAll(x.a.data(), x.b.data(), c.data(), shared.data(), scratch.data());
  return c;
}

// The root of the mean square of errors by the sums of absolute products; sums that are no numbers have to be the same.
double Error(Matrices& x, const std::vector<float>& c) {
  double sum = 0;
  for (int64_t i = 0; i < x.p.m; ++i)
    for (int64_t j = 0; j < x.p.n; ++j) {
      double exact = 0, size = 0;
      for (int64_t k = 0; k < x.p.k; ++k) {
        const double product = static_cast<double>(x.A(i, k)) * x.B(k, j);
        exact += product, size += std::abs(product);
      }
      const double got = c[static_cast<size_t>(i * x.p.n + j)];
      if (std::isfinite(exact) && std::abs(exact) <= std::numeric_limits<float>::max()) {
        const double error = (got - exact) / std::max(size, 0x1p-126);
        sum += error * error;
      } else {
        EXPECT_TRUE(std::isnan(exact) ? std::isnan(got) : std::isinf(got) && (got > 0) == (exact > 0))
            << i << " " << j << ": " << got << ", not " << exact;
      }
    }
  return std::sqrt(sum / static_cast<double>(x.p.m * x.p.n));
}

// Errors are no larger than those of sums by multiply-adds, one term after the other.
TEST(GemmThirds, AreAsExactAsMultiplyAdds) {
  for (const bool a_turned : {false, true})
    for (const bool b_turned : {false, true})
      for (const auto& [m, n, k] :
           std::vector<std::array<int64_t, 3>>{{180, 400, 330}, {126, 1100, 140}, {95, 400, 500}}) {
        Matrices x = Make(m, n, k, a_turned, b_turned, 1);
        for (const GemmIsa* isa : AllIsas()) {
          if (isa->thirds.mr == 0) continue;
          GemmIsa vectors = GemmBaseline();
          const double by_parts = Error(x, Multiply(x, *isa)), by_vectors = Error(x, Multiply(x, vectors));
          EXPECT_LE(by_parts, isa->name == std::string_view("steps") ? 2 * by_vectors : by_vectors)
              << isa->name << " " << m << "x" << n << "x" << k;
        }
      }
}

// Products that f32 does not tell from zero, sums of subnormal numbers, and large ones: nothing is flushed, and nothing
// that f32 can hold is lost.
TEST(GemmThirds, KeepAllMagnitudes) {
  for (const auto& [scale_a, scale_b] : std::vector<std::array<float, 2>>{{0x1p-140f, 1},
                                                                          {0x1p-140f, 0x1p100f},
                                                                          {0x1p-70f, 0x1p-70f},
                                                                          {0x1p-60f, 0x1p-75f},
                                                                          {0x1p-80f, 0x1p-90f},
                                                                          {0x1p60f, 0x1p60f},
                                                                          {0x1p120f, 0x1p-120f},
                                                                          {0x1p116f, 1},
                                                                          {0x1p100f, 0x1p18f}}) {
    Matrices x = Make(200, 410, 254, false, false, 1);
    for (float& v : x.a) v *= scale_a;
    for (float& v : x.b) v *= scale_b;
    for (const GemmIsa* isa : AllIsas()) {
      if (isa->thirds.mr == 0) continue;
      EXPECT_LE(Error(x, Multiply(x, *isa)), 0x1p-22) << isa->name << " " << scale_a << " " << scale_b;
    }
  }
}

// Whole numbers whose sums f32 holds are exact.
TEST(GemmThirds, WholeNumbersAreExact) {
  Matrices x = Make(200, 410, 254, false, true, 300);
  for (float& v : x.a) v = std::round(v);
  for (float& v : x.b) v = std::round(v * 0.1f);
  for (const GemmIsa* isa : AllIsas()) {
    if (isa->thirds.mr > 0) {
      EXPECT_EQ(Error(x, Multiply(x, *isa)), 0) << isa->name;
    }
  }
}

// Halves, and halves by f32, whose products f32 holds: in every layout as f32 has them.
TEST(GemmThirds, HalvesAreTakenApartToo) {
  using enum ElementType;
  for (const auto& [a, b] : std::vector<std::array<ElementType, 2>>{{F16, F16}, {BF16, F32}, {F32, F16}})
    for (int turned = 0; turned < 4; ++turned) {
      Matrices x = Make(200, 410, 254, (turned & 1) != 0, (turned & 2) != 0, 40);
      const auto halves = [](std::vector<float>& numbers, ElementType type) {
        std::vector<uint16_t> codes;
        for (float& v : numbers) {
          v = std::round(v);
          codes.push_back(type == F16 ? FloatToHalf(v) : FloatToBf16(v));
          if (type != F32) v = type == F16 ? HalfToFloat(codes.back()) : Bf16ToFloat(codes.back());
        }
        return codes;
      };
      const std::vector<uint16_t> a_codes = halves(x.a, a), b_codes = halves(x.b, b);
      GemmProblem p = x.p;
      p.a.type = a, p.b.type = b;
      for (const GemmIsa* isa : AllIsas()) {
        if (isa->thirds.mr == 0) continue;
        const auto gemm = *Gemm::Create(p, *isa);
        EXPECT_NE(gemm->tiles().find("in three parts of bf16"), std::string::npos) << gemm->tiles();
        std::vector<float> c(static_cast<size_t>(p.m * p.n), 7);
        std::vector<uint8_t> scratch(static_cast<size_t>(gemm->scratch_bytes()), 0xff);
        std::vector<uint8_t> shared(static_cast<size_t>(gemm->shared_bytes()), 0xff);
        const void* const from[] = {a == F32 ? static_cast<const void*>(x.a.data()) : a_codes.data(),
                                    b == F32 ? static_cast<const void*>(x.b.data()) : b_codes.data()};
        gemm->RunAll(from[0], from[1], c.data(), shared.data(), scratch.data());
        EXPECT_EQ(Error(x, c), 0) << isa->name << " " << Name(a) << " " << Name(b) << " " << turned;
      }
    }
}

// Rows and columns of what is no number make such sums; the others are what they are without.
TEST(GemmThirds, WhatIsNoNumberStaysInItsRow) {
  Matrices x = Make(200, 410, 254, false, false, 1);
  Matrices wild = x;
  wild.A(3, 17) = kInfinity, wild.A(77, 100) = kNan, wild.A(149, 189) = -kInfinity, wild.A(31, 5) = 1e38f;
  wild.B(17, 9) = 0, wild.B(20, 169) = kInfinity, wild.B(5, 40) = 1e38f, wild.B(5, 41) = 1e-9f;
  for (const GemmIsa* isa : AllIsas()) {
    if (isa->thirds.mr == 0) continue;
    const std::vector<float> without = Multiply(x, *isa), with = Multiply(wild, *isa);
    EXPECT_LE(Error(wild, with), 0x1p-22) << isa->name;
    for (int64_t i = 0; i < x.p.m; ++i)
      for (int64_t j = 0; j < x.p.n; ++j) {
        if (i == 3 || i == 77 || i == 149 || i == 31 || j == 9 || j == 169 || j == 40 || j == 41) continue;
        ASSERT_EQ(with[static_cast<size_t>(i * x.p.n + j)], without[static_cast<size_t>(i * x.p.n + j)])
            << i << " " << j;
      }
  }
}

// Many products, each by rows: the same, in blocks along k and in one, with and without columns that fill squares.
TEST(GemmThirds, ProductsOfABatch) {
  for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{64, 96, 64}, {90, 64, 200}, {120, 78, 128}}) {
    GemmProblem p;
    p.batch = 16, p.m = m, p.n = n, p.k = k;
    p.a = {ElementType::F32, k, 1, m * k}, p.b = {ElementType::F32, n, 1, k * n}, p.c = {ElementType::F32, n, 1, m * n};
    std::mt19937 rng(11);
    std::vector<float> a(static_cast<size_t>(16 * m * k)), b(static_cast<size_t>(16 * k * n));
    for (float& v : a) v = static_cast<float>(static_cast<int>(rng() % 513) - 256);
    for (float& v : b) v = static_cast<float>(static_cast<int>(rng() % 9) - 4);
    a[static_cast<size_t>(3 * m * k + 5)] = kInfinity, b[static_cast<size_t>(7 * k * n + 11)] = kNan;
    std::vector<float> want;
    for (const GemmIsa* isa : AllIsas()) {
      const auto gemm = *Gemm::Create(p, *isa);
      EXPECT_EQ(gemm->tiles().find("in three parts of bf16") != std::string::npos, isa->thirds.mr > 0) << gemm->tiles();
      std::vector<float> c(static_cast<size_t>(16 * m * n), 7);
      std::vector<uint8_t> scratch(static_cast<size_t>(gemm->scratch_bytes()), 0xff);
      gemm->RunAll(a.data(), b.data(), c.data(), nullptr, scratch.data());
      if (want.empty()) want = c;
      int64_t wrong = 0;
      for (size_t i = 0; i < c.size(); ++i) wrong += std::isnan(want[i]) ? !std::isnan(c[i]) : want[i] != c[i];
      EXPECT_EQ(wrong, 0) << isa->name << " " << m << "x" << n << "x" << k << ", " << gemm->tiles();
    }
  }
}

struct Window {
  int64_t batch, size[3], in, out, kernel, stride, dilation, pad;
  bool reversal, channels_first;
  int rank;
};

// Convolutions: the same numbers by parts as by vectors, of small whole numbers, in every layout; and what is no number
// where f32 has it.
void CheckWindow(const Window& t) {
  ConvProblem p;
  p.batch = t.batch, p.in_features = t.in, p.out_features = t.out;
  int64_t input = 1, output = 1, taps = 1;
  for (int d = 0; d < t.rank; ++d) {
    ConvSpatialDim s;
    s.input = t.size[d], s.kernel = t.kernel, s.stride = t.stride, s.window_dilation = t.dilation, s.pad_low = t.pad;
    s.reversal = t.reversal;
    s.output = (s.input + 2 * t.pad - (t.kernel - 1) * t.dilation - 1) / t.stride + 1;
    p.spatial.push_back(s);
    input *= s.input, output *= s.output, taps *= s.kernel;
  }
  int64_t in_stride = t.channels_first ? 1 : t.in, out_stride = t.channels_first ? 1 : t.out, tap = t.in * t.out;
  for (int d = t.rank; d-- > 0;) {
    ConvSpatialDim& s = p.spatial[static_cast<size_t>(d)];
    s.input_stride = in_stride, s.output_stride = out_stride, s.kernel_stride = tap;
    in_stride *= s.input, out_stride *= s.output, tap *= s.kernel;
  }
  p.input_batch_stride = input * t.in, p.output_batch_stride = output * t.out;
  p.input_feature_stride = t.channels_first ? input : 1, p.output_feature_stride = t.channels_first ? output : 1;
  p.kernel_in_stride = t.out, p.kernel_out_stride = 1;
  std::mt19937 rng(3);
  std::vector<float> x(static_cast<size_t>(t.batch * input * t.in)), w(static_cast<size_t>(taps * t.in * t.out));
  for (float& v : x) v = static_cast<float>(static_cast<int>(rng() % 513) - 256);
  for (float& v : w) v = static_cast<float>(static_cast<int>(rng() % 9) - 4);
  const auto convolve = [&](const GemmIsa& isa) {
    const auto conv = *Conv::Create(p, isa);
    EXPECT_EQ(conv->tiles().starts_with("in three parts of bf16"), isa.thirds.mr > 0) << conv->tiles();
    std::vector<float> y(static_cast<size_t>(t.batch * output * t.out), 7);
    std::vector<uint8_t> scratch(static_cast<size_t>(conv->scratch_bytes()), 0xff);
    std::vector<uint8_t> shared(static_cast<size_t>(conv->shared_bytes()), 0xff);
    ConvCall call{x.data(), w.data(), y.data(), 0, shared.data()};
    for (; call.round < conv->rounds(); ++call.round) {
      for (int64_t task = conv->prepare_tasks(); task-- > 0;) conv->Prepare(call, task, task + 1);
      for (int64_t task = conv->num_tasks(); task-- > 0;) conv->Run(call, task, task + 1, scratch.data());
    }
    return y;
  };
  for (const bool wild : {false, true}) {
    if (wild) x[x.size() / 3] = kInfinity, x[x.size() / 2] = kNan;
    const std::vector<float> want = convolve(GemmBaseline());
    for (const GemmIsa* isa : AllIsas()) {
      if (isa->thirds.mr == 0) continue;
      const std::vector<float> got = convolve(*isa);
      int64_t wrong = 0;
      for (size_t i = 0; i < want.size(); ++i) wrong += std::isnan(want[i]) ? !std::isnan(got[i]) : want[i] != got[i];
      EXPECT_EQ(wrong, 0) << isa->name << (wild ? ", wild, " : ", ") << (*Conv::Create(p, *isa))->tiles();
    }
  }
}

TEST(GemmThirds, Convolve) {
  CheckWindow({6, {15, 13, 0}, 48, 40, 3, 1, 1, 1, false, false, 2});
  CheckWindow({12, {17, 17, 0}, 64, 33, 3, 2, 1, 1, false, false, 2});
  CheckWindow({2, {20, 19, 0}, 50, 70, 3, 1, 2, 2, true, false, 2});
  CheckWindow({8, {24, 26, 0}, 60, 36, 5, 3, 2, 4, false, true, 2});
  CheckWindow({2, {64, 63, 0}, 64, 128, 1, 2, 1, 0, false, true, 2});
  CheckWindow({3, {300, 0, 0}, 64, 50, 7, 1, 1, 0, false, false, 1});
  CheckWindow({5, {700, 0, 0}, 62, 64, 4, 3, 1, 2, false, true, 1});
  CheckWindow({1, {7, 9, 8}, 48, 64, 3, 1, 1, 1, false, false, 3});
  CheckWindow({4, {16, 15, 14}, 48, 48, 2, 2, 1, 0, false, true, 3});
  CheckWindow({12, {7, 7, 0}, 96, 320, 3, 1, 1, 1, false, false, 2});  // weights are more than images
}

}  // namespace
}  // namespace strop::cpu
