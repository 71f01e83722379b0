// GEMM against the definition, over types, strides and awkward sizes; and the same bits whatever the grouping of tasks.
#include "strop/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "strop/cpu/kernels/half.h"
#include "strop/types/literal.h"

namespace strop::cpu {
namespace {

struct Case {
  int64_t batch, m, n, k;
  ElementType a, b, c;
  bool ta, tb, tc;
};

Literal RandomMatrix(ElementType type, int64_t batch, int64_t rows, int64_t cols, std::mt19937& rng) {
  Literal l = *Literal::Zeros(Shape::Array(type, {batch, rows, cols}));
  for (int64_t i = 0; i < l.num_elements(); ++i) {
    double v = static_cast<int>(rng() % 17) - 8;  // small integers: exact in every type and order
    if (IsUnsigned(type) || IsPred(type)) v = std::fabs(v);
    l.SetComplex(i, {v, IsComplex(type) ? static_cast<double>(rng() % 5) - 2 : 0.0});
  }
  return l;
}

StridedMatrix Strides(ElementType type, int64_t rows, int64_t cols, bool transposed) {
  if (transposed) return {type, 1, rows, rows * cols};
  return {type, cols, 1, rows * cols};
}

void Check(const Case& t) {
  std::mt19937 rng(7);
  Literal a = RandomMatrix(t.a, t.batch, t.m, t.k, rng), b = RandomMatrix(t.b, t.batch, t.k, t.n, rng);
  Literal c = *Literal::Zeros(Shape::Array(t.c, {t.batch, t.m, t.n}));
  GemmProblem p;
  p.batch = t.batch, p.m = t.m, p.n = t.n, p.k = t.k;
  p.a = Strides(t.a, t.m, t.k, t.ta);
  p.b = Strides(t.b, t.k, t.n, t.tb);
  p.c = Strides(t.c, t.m, t.n, t.tc);
  auto gemm = Gemm::Create(p);
  ASSERT_TRUE(gemm.ok()) << gemm.status().ToString();
  std::vector<uint8_t> scratch((*gemm)->scratch_bytes());
  (*gemm)->Run(a.bytes().data(), b.bytes().data(), c.mutable_bytes().data(), 0, (*gemm)->num_tasks(), scratch.data());
  auto at = [](const StridedMatrix& s, int64_t batch, int64_t r, int64_t col) {
    return batch * s.batch_stride + r * s.row_stride + col * s.col_stride;
  };
  Literal want = *Literal::Zeros(c.shape());
  for (int64_t n = 0; n < t.batch; ++n)
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t j = 0; j < t.n; ++j) {
        std::complex<double> sum = 0;
        for (int64_t k = 0; k < t.k; ++k) sum += a.GetComplex(at(p.a, n, i, k)) * b.GetComplex(at(p.b, n, k, j));
        want.SetComplex(at(p.c, n, i, j), sum);
      }
  EXPECT_TRUE(c == want) << Name(t.a) << " " << Name(t.c) << " " << t.m << "x" << t.n << "x" << t.k << " " << t.ta
                         << t.tb << t.tc;
  // Tasks one by one, backwards.
  Literal again = *Literal::Zeros(c.shape());
  for (int64_t task = (*gemm)->num_tasks(); task-- > 0;)
    (*gemm)->Run(a.bytes().data(), b.bytes().data(), again.mutable_bytes().data(), task, task + 1, scratch.data());
  EXPECT_TRUE(again == c);
}

TEST(Gemm, Types) {
  using enum ElementType;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{{F32, F32, F32},
                                                                {F64, F64, F64},
                                                                {BF16, BF16, F32},
                                                                {BF16, BF16, BF16},
                                                                {F16, F16, F16},
                                                                {S8, S8, S32},
                                                                {U8, S8, S32},
                                                                {S32, S32, S32},
                                                                {S64, S64, S64},
                                                                {U32, U32, U32},
                                                                {S8, BF16, BF16},
                                                                {F8E4M3FN, F8E4M3FN, F32},
                                                                {C64, C64, C64},
                                                                {C128, C128, C128},
                                                                {S4, S4, S32},
                                                                {F32, F64, F64}})
    for (int bits = 0; bits < 8; ++bits)
      Check({2, 19, 37, 23, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
}

TEST(Gemm, Sizes) {
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                            {1, 100, 50},
                                                            {100, 1, 50},
                                                            {3, 70, 300},
                                                            {12, 32, 256},
                                                            {13, 33, 257},
                                                            {145, 513, 20},
                                                            {300, 200, 700},
                                                            {5, 5, 0},
                                                            {2, 3, 1000},
                                                            {7, 1000, 9}})
    for (int bits = 0; bits < 8; ++bits)
      Check({1, m, n, k, ElementType::F32, ElementType::F32, ElementType::F32, (bits & 1) != 0, (bits & 2) != 0,
             (bits & 4) != 0});
}

TEST(Gemm, RefusesWhatHasNoProduct) {
  GemmProblem p;
  p.a.type = p.b.type = p.c.type = ElementType::Token;
  EXPECT_FALSE(Gemm::Create(p).ok());
}

TEST(Half, AgreesWithTheFormat) {
  for (uint32_t code = 0; code < 65536; ++code) {
    const double exact = DecodeFloat(ElementType::F16, code);
    const float value = HalfToFloat(static_cast<uint16_t>(code));
    ASSERT_TRUE(std::isnan(exact) ? std::isnan(value) : value == exact && std::signbit(value) == std::signbit(exact));
    // Each value, its neighbours, and the middle to the next value.
    for (uint32_t bits :
         {std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(value) + 1, std::bit_cast<uint32_t>(value) - 1,
          std::bit_cast<uint32_t>(value) + 0x1000, std::bit_cast<uint32_t>(value) + 0x1001}) {
      const float f = std::bit_cast<float>(bits);
      const uint16_t half = FloatToHalf(f);
      if (std::isnan(f))
        ASSERT_TRUE((half & 0x7fff) > 0x7c00) << bits;
      else
        ASSERT_EQ(half, EncodeFloat(ElementType::F16, f)) << bits;
    }
  }
}

}  // namespace
}  // namespace strop::cpu
