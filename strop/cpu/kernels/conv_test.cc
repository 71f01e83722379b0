// Convolution against its definition: layouts, groups, strides, dilations, padding, reversal, types.
#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/gemm_blocks.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>

#include "strop/cpu/testing/isas.h"
#include "strop/types/literal.h"

namespace strop::cpu {
namespace {

struct Dim {
  int64_t input, kernel, stride = 1, low = 0, high = 0, base = 1, window = 1;
  bool reversal = false;
};

struct Case {
  int64_t batch, in, out;  // features: all of the input, all of the output
  int64_t feature_groups = 1, batch_groups = 1;
  std::vector<Dim> dims;
  ElementType type = ElementType::F32, result = ElementType::F32;
};

Literal Random(ElementType type, int64_t n, std::mt19937& rng) {
  Literal l = *Literal::Zeros(Shape::Array(type, {n}));
  const bool byte = type == ElementType::S8 || type == ElementType::U8;
  for (int64_t i = 0; i < n; ++i)
    l.SetInt(i, byte ? static_cast<int64_t>(rng() % 256) - 128 * (type == ElementType::S8)
                     : static_cast<int64_t>(rng() % 5) - 2);
  return l;
}

enum class Order {
  ChannelsFirst,
  ChannelsLast,
  BatchLast,
  KernelGradient,
  KernelGradientFirst,
  InputGradient,
  InputGradientFirst,
  RowsApart,  // the first spatial dimension, N C, the others
};

void Check(const Case& t, Order order) {
  const bool channels_last = order == Order::ChannelsLast || order == Order::InputGradient,
             batch_last = order == Order::BatchLast, gradient = order == Order::KernelGradient;
  ConvProblem p;
  p.input_type = t.type;
  p.kernel_type = t.type == ElementType::U8 ? ElementType::S8 : t.type;
  p.output_type = t.result;
  p.batch = t.batch / t.batch_groups;
  p.in_features = t.in / t.feature_groups;
  p.out_features = t.out;
  p.feature_groups = t.feature_groups;
  p.batch_groups = t.batch_groups;
  int64_t input_n = 1, kernel_n = 1, output_n = 1;
  for (const Dim& d : t.dims) {
    ConvSpatialDim s;
    s.input = d.input, s.kernel = d.kernel, s.stride = d.stride, s.pad_low = d.low;
    s.base_dilation = d.base, s.window_dilation = d.window, s.reversal = d.reversal;
    const int64_t dilated = (d.input - 1) * d.base + 1 + d.low + d.high, window = (d.kernel - 1) * d.window + 1;
    s.output = dilated < window ? 0 : (dilated - window) / d.stride + 1;
    p.spatial.push_back(s);
    input_n *= s.input, kernel_n *= s.kernel, output_n *= s.output;
  }
  // N C spatial / O I spatial, or N spatial C / spatial I O, or spatial C N / spatial I O, or C spatial N / I spatial
  // O.
  int64_t is = channels_last ? t.in : 1, ks = channels_last ? p.in_features * t.out : 1, os = channels_last ? t.out : 1;
  if (batch_last) is = t.in * t.batch, ks = p.in_features * t.out, os = t.out * p.batch;
  if (gradient) is = t.batch, ks = t.out, os = t.out * p.batch;
  for (size_t d = p.spatial.size(); d-- > 0;) {
    p.spatial[d].input_stride = is, p.spatial[d].kernel_stride = ks, p.spatial[d].output_stride = os;
    is *= p.spatial[d].input, ks *= p.spatial[d].kernel, os *= p.spatial[d].output;
  }
  p.input_batch_stride = input_n * t.in, p.output_batch_stride = output_n * t.out;
  p.input_feature_stride = channels_last ? 1 : input_n, p.output_feature_stride = channels_last ? 1 : output_n;
  p.kernel_in_stride = channels_last || batch_last ? t.out : kernel_n,
  p.kernel_out_stride = channels_last || batch_last ? 1 : kernel_n * p.in_features;
  if (batch_last) {
    p.input_batch_stride = p.output_batch_stride = 1;
    p.input_feature_stride = t.batch, p.output_feature_stride = p.batch;
  }
  if (gradient) {
    p.input_batch_stride = p.output_feature_stride = p.kernel_out_stride = 1;
    p.output_batch_stride = t.out;
    p.input_feature_stride = t.batch * input_n, p.kernel_in_stride = t.out * kernel_n;
  }
  if (order == Order::KernelGradientFirst) {
    p.input_batch_stride = input_n, p.input_feature_stride = t.batch * input_n;
    p.kernel_in_stride = t.out * kernel_n, p.kernel_out_stride = kernel_n;
    p.output_batch_stride = output_n, p.output_feature_stride = t.batch * output_n;
  }
  if (order == Order::RowsApart) {
    const int64_t row = input_n / p.spatial[0].input;
    p.input_feature_stride = row, p.input_batch_stride = row * t.in;
    p.spatial[0].input_stride = row * t.in * t.batch;
  }
  if (order == Order::InputGradient) p.kernel_in_stride = 1, p.kernel_out_stride = p.in_features;
  if (order == Order::InputGradientFirst) p.kernel_in_stride = kernel_n * t.out, p.kernel_out_stride = kernel_n;
  std::mt19937 rng(3);
  Literal input = Random(t.type, t.batch * t.in * input_n, rng),
          kernel = Random(p.kernel_type, t.out * p.in_features * kernel_n, rng);
  Literal output = *Literal::Zeros(Shape::Array(t.result, {p.batch * t.out * output_n})), want = output;
  const int64_t groups = std::max(t.feature_groups, t.batch_groups);
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t f = 0; f < t.out; ++f)
      for (int64_t o = 0; o < output_n; ++o) {
        const int64_t group = f / (t.out / groups);
        int64_t sum = 0;
        for (int64_t w = 0; w < kernel_n; ++w) {
          int64_t ro = o, rw = w, io = 0, ko = 0, oo = 0;
          bool inside = true;
          for (size_t d = p.spatial.size(); d-- > 0;) {
            const ConvSpatialDim& s = p.spatial[d];
            int64_t od = ro % s.output, wd = rw % s.kernel;
            ro /= s.output, rw /= s.kernel;
            int64_t at = od * s.stride + (s.reversal ? s.kernel - 1 - wd : wd) * s.window_dilation - s.pad_low;
            if (at < 0 || at % s.base_dilation || at / s.base_dilation >= s.input) inside = false;
            io += at / s.base_dilation * s.input_stride, ko += wd * s.kernel_stride, oo += od * s.output_stride;
          }
          (void)oo;
          if (!inside) continue;
          for (int64_t c = 0; c < p.in_features; ++c) {
            int64_t nn = t.batch_groups > 1 ? group * p.batch + n : n;
            int64_t cc = t.feature_groups > 1 ? group * p.in_features + c : c;
            sum += input.GetInt(nn * p.input_batch_stride + cc * p.input_feature_stride + io) *
                   kernel.GetInt(f * p.kernel_out_stride + c * p.kernel_in_stride + ko);
          }
        }
        int64_t ro = o, oo = 0;
        for (size_t d = p.spatial.size(); d-- > 0;) {
          oo += ro % p.spatial[d].output * p.spatial[d].output_stride;
          ro /= p.spatial[d].output;
        }
        want.SetInt(n * p.output_batch_stride + f * p.output_feature_stride + oo, sum);
      }
  for (const GemmIsa* isa : AllIsas()) {
    auto conv = Conv::Create(p, *isa);
    ASSERT_TRUE(conv.ok()) << conv.status().ToString();
    std::vector<uint8_t> scratch((*conv)->scratch_bytes()), shared((*conv)->shared_bytes());
    ConvCall call{input.bytes().data(), kernel.bytes().data(), output.mutable_bytes().data(), 0, shared.data()};
    for (; call.round < (*conv)->rounds(); ++call.round) {
      for (int64_t task = (*conv)->prepare_tasks(); task-- > 0;) (*conv)->Prepare(call, task, task + 1);
      for (int64_t task = (*conv)->num_tasks(); task-- > 0;) (*conv)->Run(call, task, task + 1, scratch.data());
    }
    EXPECT_TRUE(output == want) << isa->name << " " << t.batch << " " << t.in << " " << t.out << " order "
                                << static_cast<int>(order) << " " << Name(t.type) << " " << Name(t.result);
  }
}

TEST(Conv, AgreesWithTheDefinition) {
  const std::vector<Case> cases = {
      {2, 3, 5, 1, 1, {{9, 3, 1, 1, 1}, {8, 3, 2, 0, 1}}},
      {1, 1, 6, 1, 1, {{28, 5}, {28, 5}}},
      {3, 20, 40, 1, 1, {{7, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}},
      {2, 4, 6, 1, 1, {{6, 3, 1, 2, 2, 2}, {5, 2, 1, 1, 1, 3, 2, true}}},
      {2, 8, 12, 4, 1, {{6, 3, 1, 1, 1}}},
      {2, 6, 6, 6, 1, {{6, 3, 1, 1, 1}, {9, 3, 1, 1, 1}}},
      {2, 40, 40, 40, 1, {{6, 3, 2, 1, 1}, {9, 3, 2, 1, 0}}},
      {6, 4, 6, 1, 3, {{6, 3}, {5, 3}}},
      {2, 3, 4, 1, 1, {{4, 2}, {5, 3}, {4, 2, 2}}},
      {2, 3, 4, 1, 1, {}},
      {16, 3, 6, 1, 1, {{24, 20, 1, 0, 0}, {24, 20, 1, 0, 0}}},
      {2, 3, 5, 1, 1, {{9, 3, 1, -1, -2}, {8, 3, 1, -1, 0}}},
      {2, 3, 40, 1, 1, {{5, 4, 1, 2, 2, 2}, {6, 3, 1, 1, 1, 3, 1, true}}},
      {2, 5, 7, 1, 1, {{4, 1, 1, 0, 2, 3}, {6, 3, 2, 1, 1, 2}}},
      {2, 6, 6, 6, 1, {{6, 3, 1, 2, 1, 2}}},
      {40, 5, 30, 1, 1, {{6, 4}, {7, 5}}},
      {2, 3, 50, 1, 1, {{9, 3}}, ElementType::S8, ElementType::S32},
      {2, 3, 50, 1, 1, {{9, 3}}, ElementType::BF16, ElementType::F32},
      {2, 6, 6, 6, 1, {{6, 3}}, ElementType::F64, ElementType::F64},
  };
  for (const Case& c : cases) {
    using enum ElementType;
    for (auto [type, result] : std::vector<std::pair<ElementType, ElementType>>{
             {F32, F32}, {BF16, BF16}, {F16, F32}, {S8, S32}, {S32, S32}, {F8E5M2, F32}}) {
      Case typed = c;
      typed.type = type, typed.result = result;
      for (Order order : {Order::ChannelsFirst, Order::ChannelsLast, Order::BatchLast}) Check(typed, order);
    }
    for (Order order : {Order::ChannelsFirst, Order::ChannelsLast, Order::BatchLast}) Check(c, order);
  }
}

// Inputs with more holes than elements: hundreds of parts, taps that are dilated too, outputs that see no tap.
TEST(Conv, DilatedInputs) {
  using enum ElementType;
  for (Case c : std::vector<Case>{{2, 5, 3, 1, 1, {{7, 50, 1, 49, 49, 20}}},
                                  {1, 3, 40, 1, 1, {{9, 3, 1, 4, 5, 6, 4}}},
                                  {2, 4, 6, 2, 1, {{5, 4, 1, 9, 7, 4, 6}, {6, 3, 1, 2, 2, 3, 3, true}}},
                                  {1, 6, 6, 6, 1, {{8, 3, 1, 2, 3, 4, 2, true}, {5, 3, 1, 1, 1, 3, 2}}},
                                  {2, 8, 5, 1, 1, {{11, 5, 1, -3, -2, 3, 2}, {4, 2, 1, 6, 1, 2, 5}}},
                                  {1, 4, 1, 1, 1, {{9, 400, 1, 399, 319, 160}}}})
    for (auto [type, result] : {std::pair{F32, F32}, {BF16, BF16}, {S8, S32}})
      for (Order order : {Order::ChannelsFirst, Order::ChannelsLast}) {
        c.type = type, c.result = result;
        Check(c, order);
      }
}

// Images of 20x20 with 40 features, by 3x3 to 48. Input features are that far apart: side by side, or in planes.
ConvProblem Images(ElementType type, int64_t feature_stride) {
  constexpr int64_t kFeatures = 40;  // more than go by lines
  ConvProblem p;
  p.input_type = p.kernel_type = p.output_type = type;
  p.batch = 2, p.in_features = kFeatures, p.out_features = 48;
  p.input_feature_stride = feature_stride, p.input_batch_stride = kFeatures * 400;
  p.kernel_in_stride = 48, p.kernel_out_stride = 1, p.output_batch_stride = 48 * 400, p.output_feature_stride = 1;
  const int64_t pixel = feature_stride == 1 ? kFeatures : 1;
  for (int64_t row : {1, 0}) {
    ConvSpatialDim d;
    d.input = d.output = 20, d.kernel = 3, d.pad_low = 1;
    d.input_stride = (row ? 20 : 1) * pixel, d.output_stride = (row ? 20 : 1) * 48;
    d.kernel_stride = (row ? 3 : 1) * kFeatures * 48;
    p.spatial.push_back(d);
  }
  return p;
}

// What all threads share may end where memory ends.
TEST(Conv, StaysInSharedMemory) {
  for (ElementType type : {ElementType::F32, ElementType::BF16, ElementType::F16}) {
    const auto conv = *Conv::Create(Images(type, 1));
    constexpr int64_t kPage = 4096;
    const int64_t bytes = (conv->shared_bytes() + 63) / 64 * 64, pages = (bytes + kPage - 1) / kPage * kPage;
    void* const memory = mmap(nullptr, pages + kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    uint8_t* const end = static_cast<uint8_t*>(memory) + pages;
    ASSERT_EQ(mprotect(end, kPage, PROT_NONE), 0);
    const std::vector<float> input(2 * 40 * 400, 0), kernel(9 * 40 * 48, 0);
    std::vector<float> output(2 * 48 * 400, 1);
    for (int64_t round = 0; round < conv->rounds(); ++round)
      conv->Prepare({input.data(), kernel.data(), output.data(), round, end - bytes}, 0, conv->prepare_tasks());
    munmap(memory, pages + kPage);
  }
}

// Features side by side are one product of all positions.
TEST(Conv, PointsOfNeighbours) {
  ConvProblem p = Images(ElementType::F32, 1);
  p.in_features = 5;
  p.input_batch_stride = 5 * 400;
  for (ConvSpatialDim& d : p.spatial) d.kernel = 1, d.pad_low = 0, d.input_stride = d.input_stride / 40 * 5;
  EXPECT_TRUE((*Conv::Create(p))->tiles().starts_with("a product of all positions, "));
  p.input_batch_stride += 5;
  EXPECT_FALSE((*Conv::Create(p))->tiles().starts_with("a product of all positions, "));
}

// Halves for which f32 has a better way: gradients of kernels, depthwise ones, planes, holes; in f16, all, and in bf16
// where no instruction multiplies pairs.
TEST(Conv, WidensHalves) {
  using enum ElementType;
  const auto is_widened = [](ElementType type, int64_t feature_stride) {
    return (*Conv::Create(Images(type, feature_stride)))->tiles().starts_with("widened, ");
  };
  EXPECT_TRUE(is_widened(F16, 1));
  EXPECT_TRUE(is_widened(F16, 400));
  EXPECT_EQ(is_widened(BF16, 400), BestGemmIsa().bf16.mr == 0);  // pairs of bf16 make up for gathering windows
  EXPECT_EQ(is_widened(BF16, 1), BestGemmIsa().bf16.mr == 0);
  EXPECT_FALSE(is_widened(F32, 400));
  for (ElementType type : {BF16, F16})
    for (ElementType result : {type, F32}) {
      Check({20, 18, 34, 1, 1, {{9, 9, 1, 1, 1}, {8, 8, 1, 1, 1}}, type, result}, Order::KernelGradient);
      Check({20, 3, 40, 1, 1, {{10, 10, 1, 1, 1}, {7, 7, 1, 1, 1}}, type, result}, Order::KernelGradientFirst);
      Check({2, 37, 37, 37, 1, {{7, 3, 1, 1, 1}, {30, 5, 1, 3, 1}}, type, result}, Order::ChannelsLast);
      Check({2, 20, 33, 1, 1, {{9, 3, 1, 1, 1}, {13, 3, 2, 1, 1}}, type, result}, Order::ChannelsFirst);
      Check({1, 20, 40, 1, 1, {{9, 4, 1, 2, 2, 2}, {7, 4, 1, 1, 1, 2}}, type, result}, Order::InputGradient);
      Check({1, 20, 24, 1, 1, {{17, 3, 1, 1, 1}, {11, 3, 1, 1, 1}}, type, result}, Order::ChannelsLast);
    }
}

// Large enough for panels that all tasks share: few features and many, groups, holes in the input.
TEST(Conv, SharesPanels) {
  using enum ElementType;
  int turn = 0;
  for (Case c : std::vector<Case>{{2, 19, 70, 1, 1, {{25, 3, 1, 1, 1}, {22, 3, 1, 1, 1}}},
                                  {3, 70, 9, 1, 1, {{25, 3, 1, 1, 1}, {40, 3, 2, 1, 0}}},
                                  {2, 16, 40, 1, 1, {{30, 3, 1, 1, 1}, {31, 3, 1, 1, 1}}},
                                  {4, 60, 96, 2, 1, {{18, 3, 1, 1, 1}, {17, 3, 1, 0, 2}}},
                                  {2, 40, 70, 1, 1, {{17, 3, 1, 2, 2, 2}, {15, 3, 1, 1, 1, 2}}}})
    for (auto [type, result] : {std::pair{F32, F32}, {S8, S32}, {BF16, BF16}, {U8, S32}}) {
      constexpr Order kOrders[] = {Order::ChannelsFirst, Order::ChannelsLast, Order::BatchLast};
      c.type = type, c.result = result;
      Check(c, kOrders[turn++ % 3]);
      if (type == F32 || type == S8) Check(c, kOrders[turn % 3]);
    }
}

// Patches that are read where they lie: windows that find nothing but padding, in part and as a whole; sums in several
// pieces; an input and an output that are asked for ahead of time; narrow and short panels.
TEST(Conv, ReadsPatchesWhereTheyLie) {
  using enum ElementType;
  for (Case c : std::vector<Case>{{2, 37, 40, 1, 1, {{14, 3, 1, 5, 5}, {15, 3, 1, 1, 1}}},
                                  {1, 80, 70, 1, 1, {{9, 3, 1, 1, 2}, {5, 3, 1, 2, 2}, {7, 3, 1, 1, 1}}},
                                  {3, 65, 33, 1, 1, {{90, 1, 1, 1, 0}, {31, 1}}},
                                  {2, 24, 100, 1, 1, {{61, 5, 2, 3, 3, 1, 2}, {20, 3, 1, -1, 2}}},
                                  {2, 140, 48, 2, 1, {{301, 5, 1, 2, 2, 1, 3}}},
                                  {5, 32, 70, 1, 1, {{28, 5, 1, 2, 2}, {14, 5, 1, 2, 2}}},
                                  {2, 64, 40, 1, 1, {{20, 3, 1, 4, 4, 1, 4}, {16, 3, 1, 4, 4, 1, 4}}},
                                  {3, 24, 80, 1, 1, {{23, 4, 1, 2, 2, 2}, {21, 5, 1, 3, 3, 2}}},
                                  {1, 20, 64, 1, 1, {{12, 3, 1, 1, 1}, {10, 3, 1, 1, 1}, {9, 3, 1, 1, 1}}},
                                  {9, 40, 32, 1, 1, {{8, 3, 1, 1, 1, 1, 1, true}, {8, 3, 1, 1, 1, 1, 1, true}}}})
    for (auto [type, result] : {std::pair{F32, F32}, {F64, F64}, {BF16, BF16}, {BF16, F32}}) {
      c.type = type, c.result = result;
      Check(c, Order::ChannelsLast);
    }
}

// Sums over images: long and short rows, more rows and columns than registers hold, strides, groups, padding around
// all.
TEST(Conv, KernelGradients) {
  for (Case c : std::vector<Case>{{40, 3, 70, 1, 1, {{20, 20, 1, 1, 1}, {30, 30, 1, 1, 1}}},
                                  {13, 2, 32, 1, 1, {{17, 9, 1, 0, 1, 1, 2}, {21, 11, 1, 1, 1, 1, 2}}},
                                  {12, 3, 24, 1, 3, {{9, 9, 1, 1, 1}, {200, 201, 2, 2, 2}}},
                                  {64, 2, 80, 1, 1, {{2, 2, 1, 1, 1}, {2, 2, 1, 1, 1}}},
                                  {5, 70, 9, 1, 1, {{3, 2, 1, 3, 3}}},
                                  {12, 4, 40, 1, 1, {{1, 1}, {6, 6}, {40, 40}}}})
    for (ElementType type : {ElementType::F32, ElementType::F64, ElementType::BF16}) {
      c.type = c.result = type;
      Check(c, Order::KernelGradient);
    }
}

// The same of images whose channels lie apart, or are fewer than rows of registers, which taps are merged with; down to
// windows of one element and a channel or two.
TEST(Conv, KernelGradientsFromPanels) {
  for (Case c : std::vector<Case>{{40, 3, 70, 1, 1, {{10, 10, 1, 1, 1}, {20, 20, 1, 1, 1}}},
                                  {64, 4, 64, 1, 1, {{7, 7, 1, 1, 1}, {7, 7, 1, 1, 1}}},
                                  {13, 2, 32, 1, 1, {{17, 9, 1, 0, 1, 1, 2}, {21, 11, 1, 1, 1, 1, 2}}},
                                  {3, 2, 40, 1, 1, {{61, 31, 1, 3, 3, 1, 2}, {63, 32, 1, 3, 3, 1, 2}}},
                                  {1, 3, 33, 1, 1, {{30, 30, 1, 1, 1}, {28, 28, 1, 5, 5}}},
                                  {3, 2, 32, 1, 1, {{20, 18}, {20, 9, 1, -1, -1, 1, 2}}},
                                  {13, 2, 33, 1, 1, {{3, 3, 1, 1, 1}, {500, 499, 1, 1, 1}}},
                                  {30, 2, 35, 1, 1, {{9, 9, 1, 9, 0}, {10, 10, 1, 9, 1}}},
                                  {24, 3, 33, 1, 1, {{14, 7, 1, 0, -1, 1, 2}, {14, 7, 1, 0, -1, 1, 2}}},
                                  {16, 4, 40, 1, 1, {{4, 3, 1, 1, 1}, {5, 4, 2, 1, 1}, {6, 5, 1, 1, 1}}},
                                  {5, 3, 36, 1, 1, {{400, 395, 1, 1, 1}}},
                                  {1, 3, 40, 1, 1, {{20, 20}, {30, 30}}},
                                  {3, 4, 33, 1, 1, {{16, 16}, {9, 9}}},
                                  {2, 2, 40, 1, 1, {{19, 10, 1, 0, 0, 1, 2}, {21, 11, 1, 0, 0, 1, 2}}}})
    for (auto [type, order] : {std::pair{ElementType::F32, Order::KernelGradientFirst},
                               {ElementType::F32, Order::ChannelsLast},
                               {ElementType::F64, Order::ChannelsFirst}}) {
      c.type = c.result = type;
      Check(c, order);
    }
}

// Few features a group: planes, cut into tasks; and windows larger than the output.
TEST(Conv, CopiesToPlanes) {
  using enum ElementType;
  for (const Case& c : std::vector<Case>{{2, 3, 33, 1, 1, {{61, 7, 2, 3, 3}, {70, 7, 2, 2, 3}}},
                                         {1, 2, 9, 1, 1, {{300, 3, 1, 1, 1}, {290, 5, 1, 2, 2}}},
                                         {2, 40, 6, 1, 1, {{40, 5, 1, 4, 4}, {19, 5, 1, 4, 4, 1, 1, true}}},
                                         {2, 40, 60, 20, 1, {{21, 3, 1, 1, 1}, {18, 3, 3, 1, 1, 1, 2}}},
                                         {3, 10, 7, 1, 1, {{5, 3, 2}, {9, 3, 1, 1, 1}, {17, 2, 1, 0, 1}}},
                                         {1, 5, 4, 1, 1, {{5000, 9, 3, 4, 4}}},
                                         {4, 9, 4, 1, 1, {{30, 28, 1, 2, 2}, {31, 28, 1, -1, 2, 1, 1, true}}},
                                         {3, 20, 10, 1, 1, {{33, 16, 1, 1, 1, 1, 2}, {32, 15, 2, 1, 0, 1, 2}}},
                                         {60, 5, 60, 1, 30, {{17, 15, 1, 1, 1}, {19, 17, 1, 1, 1}}},
                                         {2, 3, 4, 1, 1, {{6, 5}, {4, 4, 1, 1, 1}, {23, 21, 1, 1, 0}}},
                                         {1, 4, 6, 1, 1, {{1, 1}, {9000, 5, 1, 2, 2}}},
                                         {1, 6, 5, 1, 1, {{3, 1}, {4000, 21, 1, 20, 0, 1, 2}}},
                                         {3, 7, 2, 1, 1, {{70, 65, 1, 3, 1}}}})
    for (auto [type, result, order] : {std::tuple{F32, F32, Order::ChannelsLast},
                                       {F64, F64, Order::ChannelsFirst},
                                       {BF16, BF16, Order::BatchLast}}) {
      Case typed = c;
      typed.type = type, typed.result = result;
      Check(typed, order);
    }
}

// Many groups of few features side by side: half vectors, whole ones and several, an odd number of groups, windows that
// find nothing but padding, sums in several pieces, more weights than a task holds.
TEST(Conv, GroupsOfFewFeatures) {
  using enum ElementType;
  for (Case c : std::vector<Case>{{2, 72, 72, 9, 1, {{14, 3, 1, 1, 1}, {15, 3, 1, 1, 1}}},
                                  {1, 100, 80, 5, 1, {{33, 3, 2, 1, 1}, {40, 3, 1, 2, 2, 1, 2}}},
                                  {2, 96, 288, 6, 1, {{9, 3, 1, 4, 4, 1, 4}, {12, 3, 1, 1, 1, 1, 1, true}}},
                                  {3, 64, 128, 4, 1, {{30, 5, 1, 2, 2}, {4, 1}}},
                                  {1, 512, 512, 16, 1, {{4, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
                                  {2, 128, 128, 16, 1, {{5, 3}, {4, 2, 1, 1, 1}, {9, 3, 1, 1, 1}}},
                                  {1, 128, 128, 16, 1, {{46, 3, 1, 1, 1}, {46, 3, 1, 1, 1}}}})
    for (ElementType type : {F32, F64}) {
      c.type = c.result = type;
      for (Order order : {Order::ChannelsLast, Order::InputGradient}) Check(c, order);
    }
}

// Depthwise with contiguous channels, and the gradient of its kernel in several parts.
TEST(Conv, DepthwiseChannels) {
  for (ElementType type : {ElementType::F32, ElementType::F64}) {
    Case c{2, 37, 37, 37, 1, {{7, 3, 1, 1, 1}, {30, 5, 1, 3, 1}}, type, type};
    Check(c, Order::ChannelsLast);
    c.dims = {{9, 3, 2, 1, 1}, {11, 2, 3, 0, 1, 1, 2, true}};
    Check(c, Order::ChannelsLast);
    c.dims = {{3, 5, 1, 3, 9}};
    Check(c, Order::ChannelsLast);
    c = {83, 3, 83, 1, 83, {{40, 38, 1, 1, 1}, {30, 29, 1, 1, 0}}, type, type};
    Check(c, Order::KernelGradient);
    c.dims = {{9, 5, 1, 1, 0, 1, 2}, {3, 2, 1, 1, 1}, {200, 199, 1, 0, 1}};
    Check(c, Order::KernelGradient);
  }
}

// Images that lie feature by feature: strides, dilations, reversal, groups, one to three dimensions, several tasks an
// image.
TEST(Conv, ImagesOfPlanes) {
  for (Case c : std::vector<Case>{{1, 20, 13, 1, 1, {{70, 3, 1, 1, 1}, {72, 3, 1, 1, 1}}},
                                  {2, 3, 30, 1, 1, {{31, 7, 2, 3, 3}, {34, 7, 2, 2, 3}}},
                                  {2, 12, 18, 3, 1, {{9, 3, 3, 1, 1, 1, 2}, {40, 3, 1, 2, 2, 1, 2, true}}},
                                  {2, 5, 9, 1, 1, {{200, 5, 1, 2, 2}}},
                                  {1, 4, 3, 1, 1, {{6, 3, 1, 1, 1}, {7, 2, 2, 1, 1}, {20, 3, 1, 1, -2}}},
                                  {1, 6, 6, 6, 1, {{20, 3, 1, 1, 1}, {21, 3, 1, 1, 1}}},
                                  {2, 2, 25, 1, 1, {{12, 3, 1, 1, 1, 2}, {13, 4, 1, 2, 2, 2}}}})
    for (ElementType type : {ElementType::F32, ElementType::F64}) {
      c.type = c.result = type;
      for (Order order : {Order::ChannelsFirst, Order::ChannelsLast, Order::BatchLast}) Check(c, order);
    }
}

// Few positions and many features: by columns, with the kernel where it lies or transposed.
TEST(Conv, FewPositions) {
  for (Case c : std::vector<Case>{{1, 40, 96, 1, 1, {{7, 3, 1, 1, 1}, {7, 3, 1, 1, 1}}},
                                  {2, 38, 150, 2, 1, {{5, 3, 2, 1, 1}, {5, 3, 1, 1, 1, 1, 1, true}}},
                                  {2, 300, 70, 1, 1, {{1, 1}, {3, 1}}},
                                  {1, 40, 96, 1, 1, {{5, 1, 1, 0, 1, 2}, {5, 1, 1, 0, 1, 2}}},
                                  {1, 350, 70, 1, 1, {{6, 3, 1, 1, 1}, {5, 3, 1, 1, 1}}},
                                  {3, 17, 80, 1, 1, {{8, 3, 1, 1, 1}, {7, 3, 1, 1, 1, 1, 2}}}})
    for (ElementType type : {ElementType::F32, ElementType::F64}) {
      c.type = c.result = type;
      for (Order order : {Order::ChannelsLast, Order::InputGradient}) Check(c, order);
    }
}

// More features than are summed at once where vectors are narrow, and sums that the output does not hold meanwhile.
TEST(Conv, SumsInPieces) {
  for (const Case& c : std::vector<Case>{{1, 350, 33, 1, 1, {{15, 2, 1, 1, 0}, {15, 2, 1, 0, 1}}},
                                         {3, 352, 34, 1, 1, {{9, 2, 1, 1, 0}, {8, 2, 1, 0, 1}}}})
    for (Order order : {Order::ChannelsLast, Order::InputGradient, Order::ChannelsFirst}) Check(c, order);
}

// Planes that are copied with the features side by side, kernels by columns and shared.
TEST(Conv, CopiesFeaturesTogether) {
  for (Case c : std::vector<Case>{{2, 48, 40, 1, 1, {{9, 3, 1, 1, 1}, {7, 3, 2, 1, 1, 1, 1, true}}},
                                  {3, 32, 70, 1, 1, {{15, 3, 1, 1, 1}, {17, 3, 1, 1, 2}}},
                                  {2, 64, 33, 1, 1, {{18, 1, 2}, {17, 1, 2}}},
                                  {1, 80, 36, 1, 1, {{70, 4, 1, 1, 2, 1, 2}}},
                                  {2, 32, 40, 1, 1, {{8, 3, 1, 1, 2, 2, 1, true}, {7, 3, 1, 1, 1, 2, 1, true}}},
                                  {1, 48, 33, 1, 1, {{9, 1, 1, 0, 1, 2}, {5, 4, 1, 3, 2, 3, 1, true}}},
                                  {1, 16, 520, 1, 1, {{9, 3, 1, 1, 1}, {8, 3, 1, 1, 1}}},
                                  {4, 32, 64, 1, 1, {{22, 3, 1, 1, 1}, {20, 3, 1, 1, 1}}},
                                  {6, 32, 33, 1, 1, {{28, 3, 1, 1, 1}, {28, 3, 1, 1, 1}}}})
    for (Order order : {Order::ChannelsFirst, Order::InputGradientFirst, Order::RowsApart}) Check(c, order);
}

// Rows of the window as runs: where they lie, with padding, with less than nothing of it, beyond the input's end; in
// one, two and three dimensions; few positions.
TEST(Conv, Runs) {
  for (const Case& c : std::vector<Case>{{2, 3, 40, 1, 1, {{32, 4, 4}, {28, 4, 4}}},
                                         {2, 3, 64, 1, 1, {{41, 7, 2, 2, 3}, {47, 7, 2, 2, 3}}},
                                         {1, 3, 33, 1, 1, {{30, 5, 4, -1, 2}, {50, 11, 4, -2, 5}}},
                                         {3, 2, 70, 1, 1, {{19, 3, 1, 1, 1, 1, 2}, {40, 8, 3, 4, -3}}},
                                         {2, 12, 32, 1, 1, {{200, 9, 4, 4, 4}}},
                                         {1, 1, 48, 1, 1, {{9, 3, 2, 1, 1}, {11, 3, 1, 1, 1}, {64, 16, 8, 8, 8}}},
                                         {1, 3, 96, 1, 1, {{16, 8, 8}, {16, 8, 8}}},
                                         {1, 3, 96, 1, 1, {{4, 2, 2}, {6, 8, 8, 8, 9}}}})
    Check(c, Order::ChannelsLast);
}

// Lines in which the rows of the window alternate: features of all counts into whole and broken vectors, sums in
// blocks, rows taken together and cut, nothing but padding, in one, two and three dimensions, of halves and of rows
// that lie apart.
TEST(Conv, LinesOfWindows) {
  using enum ElementType;
  for (Case c : std::vector<Case>{{2, 3, 40, 1, 1, {{32, 3, 1, 1, 1}, {28, 3, 1, 1, 1}}},
                                  {3, 1, 64, 1, 1, {{11, 5, 1, 2, 2}, {9, 5, 1, 2, 2}}},
                                  {2, 2, 67, 1, 1, {{7, 3, 2, -1, 3}, {31, 4, 3, 2, 3}}},
                                  {1, 4, 32, 1, 1, {{5, 2, 1, 7, 7}, {6, 3, 1, 9, 9}}},
                                  {1, 5, 33, 1, 1, {{12, 3, 1, 1, 1, 1, 2, true}, {13, 3, 1, 1, 1, 1, 1, true}}},
                                  {2, 16, 48, 1, 1, {{9, 5, 1, 2, 2}, {10, 5, 1, 2, 2}}},
                                  {2, 1, 35, 1, 1, {{5000, 10, 5, 3, -2}}},
                                  {1, 3, 32, 1, 1, {{6, 3, 1, 1, 1}, {4, 2, 1}, {5, 3, 2, 1, 1}}},
                                  {1, 2, 32, 1, 1, {{1, 1}, {900, 7, 2, 3, 3}}}})
    for (auto [type, result] : {std::pair{F32, F32}, {BF16, BF16}, {F16, F32}})
      for (Order order : {Order::ChannelsLast, Order::InputGradient, Order::RowsApart, Order::BatchLast}) {
        c.type = type, c.result = result;
        Check(c, order);
      }
}

// One element a window: a product of matrices.
TEST(Conv, Points) {
  for (Case c : std::vector<Case>{{3, 20, 17, 1, 1, {{9, 1}, {7, 1}}},
                                  {1, 130, 70, 1, 1, {{600, 1}}},
                                  {3, 3, 17, 1, 1, {{9, 1}, {1, 1}, {7, 1}}},
                                  {2, 40, 1, 1, 1, {{50, 1}, {30, 1}}},
                                  {1, 1, 5, 1, 1, {{1, 1}, {300, 1}}}})
    for (auto [type, result] : {std::pair{ElementType::F32, ElementType::F32},
                                {ElementType::F64, ElementType::F64},
                                {ElementType::S8, ElementType::S32}})
      for (Order order : {Order::ChannelsFirst, Order::InputGradientFirst, Order::ChannelsLast}) {
        c.type = type, c.result = result;
        Check(c, order);
      }
}

TEST(Conv, RefusesComplex) {
  ConvProblem p;
  p.input_type = p.kernel_type = p.output_type = ElementType::C64;
  EXPECT_EQ(Conv::Create(p).status().code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace strop::cpu
