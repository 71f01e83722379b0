// GEMM against the definition, over types, strides and awkward sizes; and the same bits whatever the grouping of tasks.
#include "strop/cpu/kernels/gemm.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <complex>
#include <random>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_rows.h"
#include "strop/cpu/kernels/half.h"
#include "strop/cpu/testing/gemm_matrices.h"
#include "strop/types/literal.h"

namespace strop::cpu {
namespace {

struct Case {
  int64_t batch, m, n, k;
  ElementType a, b, c;
  bool ta, tb, tc;
  int64_t heads = 0;  // that lie inside of rows, one beside the other: two batch dimensions
};

// All rows at once, and as few as divide them.
std::vector<int64_t> RowsAtATime(int64_t m) {
  if (m < 2) return {};
  int64_t few = 2;
  while (m % few != 0) ++few;
  return {few, m};
}

void CheckRows(const GemmProblem& p, int64_t rows, const GemmIsa& isa, const Literal& a, const Literal& b,
               const Literal& want) {
  if (p.n == 0 || p.k == 0) return;
  const auto gemm = RowGemm::Create(p, rows, isa);
  if (gemm.status().code() == StatusCode::kUnimplemented) return;
  ASSERT_TRUE(gemm.ok()) << gemm.status().ToString();
  std::vector<uint8_t> packed((*gemm)->packed_bytes()), scratch((*gemm)->scratch_bytes());
  Literal c = *Literal::Zeros(want.shape());
  const auto at = [&](const StridedMatrix& x, const Literal& whole, int64_t batch, int64_t row) {
    return const_cast<uint8_t*>(whole.bytes().data()) + (p.Offset(x, batch) + row * x.row_stride) * Bytes(x.type);
  };
  for (int64_t n = 0; n < p.batch; ++n) {
    if (!packed.empty()) (*gemm)->Pack(at(p.b, b, n, 0), packed.data());
    for (int64_t i = 0; i < p.m; i += rows) {
      uint8_t* to = c.mutable_bytes().data() + (at(p.c, c, n, i) - c.bytes().data());
      (*gemm)->Run(at(p.a, a, n, i), at(p.b, b, n, 0), packed.data(), to, scratch.data());
    }
  }
  EXPECT_TRUE(c == want) << isa.name << " " << rows << " rows of " << p.m << "x" << p.n << "x" << p.k << " "
                         << Name(p.a.type) << " " << Name(p.b.type) << " " << Name(p.c.type);
}

// The terms a block at a time, each of which adds to what is there (RowGemm::To::kAdd): all at once, and as few as
// divide them.
void CheckSums(const GemmProblem& p, int64_t terms, const GemmIsa& isa, const Literal& a, const Literal& b,
               const Literal& want) {
  if (p.m == 0 || p.n == 0 || p.c.type != GemmAccumulator(p.a.type, p.b.type, p.c.type)) return;
  GemmProblem some = p;
  some.k = terms;
  const auto gemm = RowGemm::Create(some, p.m, isa);
  if (gemm.status().code() == StatusCode::kUnimplemented) return;
  ASSERT_TRUE(gemm.ok()) << gemm.status().ToString();
  std::vector<uint8_t> packed((*gemm)->packed_bytes()), scratch((*gemm)->scratch_bytes());
  Literal c = *Literal::Zeros(want.shape());
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t k = 0; k < p.k; k += terms) {
      const uint8_t* from = a.bytes().data() + (p.Offset(p.a, n) + k * p.a.col_stride) * Bytes(p.a.type);
      const uint8_t* by = b.bytes().data() + (p.Offset(p.b, n) + k * p.b.row_stride) * Bytes(p.b.type);
      (*gemm)->Pack(by, packed.data());
      (*gemm)->Run(from, by, packed.data(), c.mutable_bytes().data() + p.Offset(p.c, n) * Bytes(p.c.type),
                   scratch.data(), 0, k == 0 ? RowGemm::To::kSet : RowGemm::To::kAdd);
    }
  EXPECT_TRUE(c == want) << isa.name << " " << terms << " terms of " << p.m << "x" << p.n << "x" << p.k << " "
                         << Name(p.a.type) << " " << Name(p.b.type) << " " << Name(p.c.type);
}

void Check(const Case& t) {
  std::mt19937 rng(7);
  Literal a = RandomMatrix(t.a, t.batch, t.m, t.k, rng), b = RandomMatrix(t.b, t.batch, t.k, t.n, rng);
  Literal c = *Literal::Zeros(Shape::Array(t.c, {t.batch, t.m, t.n}));
  GemmProblem p;
  p.batch = t.batch, p.m = t.m, p.n = t.n, p.k = t.k;
  p.inner_batch = t.heads;
  p.a = Strides(t.a, t.m, t.k, t.ta, t.heads);
  p.b = Strides(t.b, t.k, t.n, t.tb, t.heads);
  p.c = Strides(t.c, t.m, t.n, t.tc, t.heads);
  auto at = [&p](const StridedMatrix& s, int64_t batch, int64_t r, int64_t col) {
    return p.Offset(s, batch) + r * s.row_stride + col * s.col_stride;
  };
  std::vector<std::complex<double>> av(a.num_elements()), bv(b.num_elements());
  for (size_t i = 0; i < av.size(); ++i) av[i] = a.GetComplex(i);
  for (size_t i = 0; i < bv.size(); ++i) bv[i] = b.GetComplex(i);
  Literal want = *Literal::Zeros(c.shape());
  for (int64_t n = 0; n < t.batch; ++n)
    for (int64_t i = 0; i < t.m; ++i)
      for (int64_t j = 0; j < t.n; ++j) {
        double real = 0, imag = 0;
        for (int64_t k = 0; k < t.k; ++k) {
          const std::complex<double> x = av[at(p.a, n, i, k)], y = bv[at(p.b, n, k, j)];
          real += x.real() * y.real() - x.imag() * y.imag();
          imag += x.real() * y.imag() + x.imag() * y.real();
        }
        want.SetComplex(at(p.c, n, i, j), {real, imag});
      }
  for (const GemmIsa* isa : AllIsas()) {
    auto gemm = Gemm::Create(p, *isa);
    ASSERT_TRUE(gemm.ok()) << gemm.status().ToString();
    std::vector<uint8_t> scratch((*gemm)->scratch_bytes()), shared((*gemm)->shared_bytes());
    (*gemm)->RunAll(a.bytes().data(), b.bytes().data(), c.mutable_bytes().data(), shared.data(), scratch.data());
    EXPECT_TRUE(c == want) << isa->name << " " << Name(t.a) << " " << Name(t.b) << " " << Name(t.c) << " " << t.m << "x"
                           << t.n << "x" << t.k << " " << t.ta << t.tb << t.tc;
    // Tasks one by one, backwards.
    Literal again = *Literal::Zeros(c.shape());
    GemmCall call{a.bytes().data(), b.bytes().data(), again.mutable_bytes().data(), 0, shared.data()};
    for (; call.round < (*gemm)->rounds(); ++call.round) {
      for (int64_t task = (*gemm)->prepare_tasks(); task-- > 0;) (*gemm)->Prepare(call, task, task + 1);
      for (int64_t task = (*gemm)->num_tasks(); task-- > 0;) (*gemm)->Run(call, task, task + 1, scratch.data());
    }
    EXPECT_TRUE(again == c);
    for (int64_t rows : RowsAtATime(t.m)) CheckRows(p, rows, *isa, a, b, want);
    for (int64_t terms : RowsAtATime(t.k)) CheckSums(p, terms, *isa, a, b, want);
    if (t.batch != 1 || t.k == 0) continue;
    auto split = SplitGemm::Create(p, *isa);
    ASSERT_TRUE(split.ok()) << split.status().ToString();
    Literal parts = *Literal::Zeros(c.shape());
    ASSERT_TRUE((*split)->Run(a.bytes().data(), b.bytes().data(), parts.mutable_bytes().data(), nullptr).ok());
    EXPECT_TRUE(parts == want) << "split " << isa->name << " " << t.m << "x" << t.n << "x" << t.k;
  }
}

TEST(Gemm, Types) {
  using enum ElementType;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{
           {F32, F32, F32}, {F64, F64, F64},    {BF16, BF16, F32}, {BF16, BF16, BF16},
           {F16, F16, F16}, {S8, S8, S32},      {U8, S8, S32},     {S32, S32, S32},
           {S64, S64, S64}, {U32, U32, U32},    {S8, BF16, BF16},  {F8E4M3FN, F8E4M3FN, F32},
           {C64, C64, C64}, {C128, C128, C128}, {S4, S4, S32},     {F32, F64, F64},
           {S8, U8, S32},   {U8, U8, S32},      {U8, U8, U32},     {S4, U4, S32},
           {S16, S8, S32},  {S16, S16, S32},    {S8, S8, S8},      {S8, S8, F32},
           {U8, F16, F32},  {S8, S8, S64},      {Pred, S8, S32},   {U16, U16, S32},
           {U16, U16, U16}, {U16, S8, U8},      {S16, U16, S8},    {U32, U16, U32},
           {U64, U32, S64}, {U32, U32, S64},    {U16, U16, U64},   {BF16, F32, F32},
           {F16, F16, F32}, {F16, BF16, BF16}})
    for (int bits = 0; bits < 8; ++bits)
      Check({2, 19, 37, 23, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
}

TEST(Gemm, TallByNarrow) {
  using enum ElementType;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{
           {F32, F32, F32}, {F64, F64, F64}, {BF16, BF16, BF16}, {F16, F16, F16}, {BF16, F32, F32}, {F16, F16, F32}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{300, 20, 20},
                                                              {289, 5, 40},
                                                              {1030, 8, 70},
                                                              {700, 48, 33},
                                                              {400, 17, 300},
                                                              {2000, 16, 1024},
                                                              {600, 64, 100}})
      for (int bits = 0; bits < 8; ++bits)
        Check({1, m, n, k, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  auto thin = Gemm::Create({1, 2000, 20, 40, {F32, 40, 1}, {F32, 1, 40}, {F32, 20, 1}});
  ASSERT_TRUE(thin.ok());
  EXPECT_TRUE((*thin)->tiles().starts_with("thin, rows of A where they lie")) << (*thin)->tiles();
}

TEST(Gemm, Sizes) {
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                            {1, 100, 50},
                                                            {100, 1, 50},
                                                            {3, 70, 300},
                                                            {12, 32, 256},
                                                            {13, 33, 257},
                                                            {145, 513, 8},
                                                            {150, 100, 600},
                                                            {5, 5, 0},
                                                            {0, 5, 7},
                                                            {5, 0, 7},
                                                            {2, 3, 1000},
                                                            {7, 1000, 9}})
    for (int bits = 0; bits < 8; ++bits)
      Check({1, m, n, k, ElementType::F32, ElementType::F32, ElementType::F32, (bits & 1) != 0, (bits & 2) != 0,
             (bits & 4) != 0});
}

// Each way of reading B: few rows and few columns, contiguous either way, tails of every kind.
TEST(Gemm, SkinnyAndSmall) {
  using enum ElementType;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{
           {F32, F32, F32}, {F64, F64, F64}, {BF16, BF16, BF16}, {F16, F16, F32}, {S8, U8, S32}, {S32, S32, S32}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 300, 101},
                                                              {1, 1, 1000},
                                                              {300, 1, 101},
                                                              {3, 65, 77},
                                                              {65, 3, 77},
                                                              {8, 129, 530},
                                                              {12, 16, 33},
                                                              {13, 8, 8},
                                                              {6, 6, 6},
                                                              {40, 50, 60},
                                                              {25, 130, 70},
                                                              {36, 47, 129},
                                                              {300, 16, 16},
                                                              {523, 64, 61},
                                                              {101, 15, 1024},
                                                              {64, 64, 1}})
      for (int bits = 0; bits < 8; ++bits)
        Check({2, m, n, k, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
}

// Up to four rows of A by so much that it may come from memory, whose short rows are read one by one.
TEST(Gemm, FewRowsOfLargeMatrices) {
  using enum ElementType;
  int layout = 0;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{
           {F32, F32, F32}, {F64, F64, F64}, {BF16, BF16, BF16}, {F16, F16, F32}, {S32, S32, S32}})
    for (auto [m, n, k] :
         std::vector<std::array<int64_t, 3>>{{1, 256, 1030}, {2, 1000, 523}, {3, 133, 1300}, {4, 517, 600}})
      Check({1, m, n, k, a, b, c, (layout++ & 1) != 0, false, (layout & 2) != 0});
}

// Columns that end in half of a vector: in panels for all, and where B lies.
TEST(Gemm, HalvesOfVectors) {
  for (ElementType type : {ElementType::F32, ElementType::F64})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{601, 56, 140},
                                                              {590, 40, 190},
                                                              {230, 24, 130},
                                                              {70, 8, 40},
                                                              {301, 20, 61},
                                                              {200, 37, 31},
                                                              {11, 88, 90},
                                                              {605, 52, 151}})
      for (int bits = 0; bits < 8; ++bits)
        Check({1, m, n, k, type, type, type, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
}

// Each way of multiplying complex matrices: few rows by B as it lies either way, small ones, blocks, panels for all;
// one operand real; results that lie along columns.
TEST(Gemm, Complex) {
  using enum ElementType;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{
           {C64, C64, C64}, {C128, C128, C128}, {F32, C64, C64}, {C64, F32, C64}, {C64, C128, C128}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 300, 101},
                                                              {2, 130, 601},
                                                              {300, 1, 101},
                                                              {3, 3, 3},
                                                              {1, 70, 9},
                                                              {9, 21, 17},
                                                              {24, 25, 26},
                                                              {61, 150, 300},
                                                              {130, 140, 150},
                                                              {5, 70, 60},
                                                              {41, 3, 90},
                                                              {4, 5, 0}})
      for (int bits = 0; bits < 8; ++bits)
        Check({2, m, n, k, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  for (ElementType type : {C64, C128})
    for (bool turned : {false, true}) Check({1, 7, 9, 1100, type, type, type, false, false, turned});
  EXPECT_TRUE(SplitGemm::Suits({1, 17, 40, 9000, {C64, 9000, 1}, {C64, 40, 1}, {C64, 40, 1}}));
}

// Sums that are long for what comes of them are cut; longer ones where products are fast.
TEST(Gemm, LongSums) {
  using enum ElementType;
  for (ElementType type : {F32, F64, BF16, S8})
    for (bool turned : {false, true})
      Check({1, 100, 97, 3300, type, type, type == S8 ? S32 : type, turned, !turned, false});
  EXPECT_TRUE(SplitGemm::Suits({1, 128, 128, 2048, {F32, 2048, 1}, {F32, 128, 1}, {F32, 128, 1}}));
  EXPECT_FALSE(SplitGemm::Suits({1, 128, 128, 2048, {BF16, 2048, 1}, {BF16, 128, 1}, {F32, 128, 1}}));
  EXPECT_TRUE(SplitGemm::Suits({1, 128, 128, 8192, {BF16, 8192, 1}, {BF16, 128, 1}, {F32, 128, 1}}));
  EXPECT_FALSE(SplitGemm::Suits({1, 500, 100, 10000, {F32, 10000, 1}, {F32, 100, 1}, {F32, 100, 1}}));
}

// Operands that are fetched ahead of time: strips of B where it lies, C before it is written, what is packed next.
TEST(Gemm, FetchesAhead) {
  using enum ElementType;
  Check({1, 20, 701, 403, F32, F32, F32, false, false, false});
  Check({2, 29, 401, 355, F64, F64, F64, true, false, true});
  Check({40, 120, 121, 20, F32, F32, F32, false, false, false});
  int layout = 0;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{
           {F32, F32, F32}, {F64, F64, F64}, {BF16, BF16, F32}, {S8, S8, S32}, {F16, F16, F16}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{61, 1203, 300}, {101, 107, 1100}})
      for (int turn = 0; turn < 2; ++turn, layout += 3)
        Check({1, m, n, k, a, b, c, (layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0});
}

// Columns of large matrices become panels while those before them are multiplied: with blocks along k, columns that
// fill no tile, tiles enough to copy a row seldom and too few.
TEST(Gemm, CopiesColumnsMeanwhile) {
  using enum ElementType;
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
           {50, 1030, 1100}, {130, 1400, 900}, {61, 3000, 400}, {48, 331, 1700}, {101, 260, 2600}}) {
    Check({1, m, n, k, F32, F32, F32, false, false, false});
    Check({2, m, n, k / 2, F64, F64, F64, true, false, false});
  }
  const auto copies = *Gemm::Create({1, 50, 1030, 1100, {F32, 1100, 1}, {F32, 1030, 1}, {F32, 1030, 1}});
  EXPECT_EQ(copies->tiles().find("while others are multiplied") != std::string::npos,
            !HasNarrowVectors(BestGemmIsa().f32))
      << copies->tiles();
}

// What all tasks share comes from the outer cache, the next column ahead; of more than that has, tasks are as large as
// the second-level cache allows, and k is cut.
TEST(Gemm, SharedPanelsFromAfar) {
  using enum ElementType;
  Check({1, 390, 500, 1060, F32, F32, F32, false, false, false});
  Check({1, 390, 480, 1110, F64, F64, F64, false, true, false});
  const auto far = *Gemm::Create({1, 390, 480, 1110, {F64, 1110, 1}, {F64, 480, 1}, {F64, 480, 1}});
  if (!HasNarrowVectors(BestGemmIsa().f64)) {
    EXPECT_NE(far->tiles().find("k by 556"), std::string::npos) << far->tiles();
  }
}

// More rows by long columns, of either side: dot products where vectors are wide.
TEST(Gemm, DotsOfMoreRows) {
  using enum ElementType;
  Check({1, 17, 19, 4096, F32, F32, F32, false, true, false});
  Check({1, 40, 19, 4096, F32, F32, F32, false, true, false});
  Check({1, 14, 25, 2100, F64, F64, F64, false, true, false});
  const bool narrow = HasNarrowVectors(BestGemmIsa().f32);
  const auto dots = *Gemm::Create({1, 17, 19, 4096, {F32, 4096, 1}, {F32, 1, 4096}, {F32, 19, 1}});
  EXPECT_EQ(dots->tiles().starts_with("dot products"), !narrow) << dots->tiles();
}

// Equal columns have equal products, also those that are left when registers have their rows: what is multiplied once
// for several lanes could be rounded before it is added.
TEST(Gemm, ShortDotsAreAlike) {
  std::mt19937 rng(11);
  std::normal_distribution<float> normal;
  for (int64_t k : {16, 40, 48, 64, 128})
    for (int64_t n : {5, 24, 27, 57}) {
      std::vector<float> x(k), b(n * k), c(n);
      for (float& v : x) v = normal(rng);
      for (int64_t i = 0; i < k; ++i) b[i] = normal(rng);
      for (int64_t j = 1; j < n; ++j) std::copy_n(b.begin(), k, b.begin() + j * k);
      const ElementType f32 = ElementType::F32;
      for (const GemmIsa* isa : AllIsas()) {
        // Others add up a column that is left in another order.
        if (!std::string_view(isa->name).starts_with("avx") || k > 8 * isa->f32.lanes) continue;
        const auto gemm = *Gemm::Create({1, 1, n, k, {f32, k, 1}, {f32, 1, k}, {f32, n, 1}}, *isa);
        std::vector<uint8_t> scratch(gemm->scratch_bytes()), shared(gemm->shared_bytes());
        gemm->RunAll(x.data(), b.data(), c.data(), shared.data(), scratch.data());
        for (int64_t j = 1; j < n; ++j) EXPECT_EQ(c[j], c[0]) << isa->name << " " << n << "x" << k << " at " << j;
      }
    }
}

// The heads of attention: two batch dimensions in each way of multiplying.
TEST(Gemm, TwoBatchDimensions) {
  using enum ElementType;
  for (auto [a, b, c] :
       std::vector<std::array<ElementType, 3>>{{F32, F32, F32}, {BF16, BF16, BF16}, {S8, S8, S32}, {C64, C64, C64}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{7, 9, 5}, {1, 40, 33}, {10, 70, 33}, {50, 60, 70}})
      for (int bits = 0; bits < 8; ++bits)
        Check({6, m, n, k, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, 3});
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{{F32, F32, F32}, {BF16, BF16, BF16}, {S8, S8, S32}})
    Check({4, 165, 163, 157, a, b, c, false, true, false, 2});  // panels for all
}

// Tiles of operands that the caches hold: each way of reading either one (rows of A a page apart are packed, as are
// those of B), several blocks of k, tasks of rows and of columns, results that are not written where they belong at
// once.
TEST(Gemm, Tiles) {
  using enum ElementType;
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{37, 50, 1000},
                                                            {101, 48, 300},
                                                            {41, 90, 1024},
                                                            {39, 1024, 70},
                                                            {1024, 45, 41},
                                                            {13, 200, 230},
                                                            {290, 70, 66}})
    for (int bits = 0; bits < 8; ++bits)
      for (ElementType type : {F32, F64})
        Check({1 + bits % 2, m, n, k, type, type, bits < 6 ? type : BF16, (bits & 1) != 0, (bits & 2) != 0,
               (bits & 4) != 0});
}

// Sums of few terms: B where it lies, and packed strip by strip where its rows meet in the cache; a last tile that is
// not whole, and results of another type.
TEST(Gemm, ShortSums) {
  using enum ElementType;
  int layout = 0;
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{67, 1205, 57}, {101, 1024, 64}, {60, 610, 120}})
    for (auto [type, result] : {std::pair{F32, F32}, {F64, F64}, {S32, S32}, {F32, BF16}})
      Check({1 + layout % 2, m, n, k, type, type, result, (layout & 1) != 0, false, (layout++ & 2) != 0});
  const auto brief = *Gemm::Create({1, 200, 3000, 40, {F32, 40, 1}, {F32, 3000, 1}, {F32, 3000, 1}});
  EXPECT_TRUE(brief->tiles().starts_with("B where it lies, blocks of ")) << brief->tiles();
}

// Rows that matrices from memory are read by, some of them at a time, with sums apart from those before.
TEST(Gemm, StreamedRows) {
  using enum ElementType;
  int layout = 0;
  for (ElementType type : {F32, F64, BF16})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{5, 1100, 1001}, {12, 900, 1300}, {35, 1045, 530}})
      for (int turn = 0; turn < 2; ++turn, ++layout)
        Check({1, m, n, k, type, type, turn == 0 ? type : BF16, (layout & 1) != 0, false, (layout & 2) != 0});
}

// Long sums of streamed rows are in levels: 0.1, 8192 times.
TEST(Gemm, StreamedSumsAreInLevels) {
  GemmProblem p;
  p.m = 5, p.n = 520, p.k = 8192;
  p.a = {ElementType::F32, p.k, 1, 0}, p.b = {ElementType::F32, p.n, 1, 0}, p.c = {ElementType::F32, p.n, 1, 0};
  ASSERT_FALSE(SplitGemm::Suits(p));
  const std::vector<float> a(p.m * p.k, 1.0f), b(p.k * p.n, 0.1f);
  std::vector<float> c(p.m * p.n);
  for (const GemmIsa* isa : AllIsas()) {
    auto gemm = *Gemm::Create(p, *isa);
    std::vector<uint8_t> scratch(gemm->scratch_bytes()), shared(gemm->shared_bytes());
    gemm->RunAll(a.data(), b.data(), c.data(), shared.data(), scratch.data());
    for (float sum : c) ASSERT_NEAR(sum, 8192 * 0.1f, 4e-6 * 819.2) << isa->name;
  }
}

// Vectors by rows of a few elements, as many at a time as a register has lanes, or fewer; and what is small and of
// other types than its sums.
TEST(Gemm, ShortRowsAndSmallConverted) {
  using enum ElementType;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{{F32, F32, F32},
                                                                {F64, F64, F64},
                                                                {BF16, BF16, BF16},
                                                                {F16, F16, F32},
                                                                {S8, S8, S32},
                                                                {U8, S8, S32},
                                                                {BF16, F32, F32},
                                                                {S32, S32, S32}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
             {1, 37, 4}, {1, 16, 17}, {2, 5, 40}, {1, 103, 128}, {9, 1, 12}, {12, 7, 5}, {20, 17, 9}, {3, 4, 50}})
      for (int bits = 0; bits < 8; ++bits)
        Check({3, m, n, k, a, b, c, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
}

// Long sums of columns by rows, where both lie: one panel of rows and several, short vectors, one and two of them, a
// result that is not written where it belongs at once.
TEST(Gemm, ColumnsByRows) {
  using enum ElementType;
  for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{10, 8, 2000},
                                                            {8, 3, 5000},
                                                            {3, 8, 5000},
                                                            {1, 17, 4000},
                                                            {64, 16, 513},
                                                            {37, 32, 200},
                                                            {96, 5, 511},
                                                            {12, 1, 9000}})
    for (int bits = 0; bits < 8; ++bits)
      for (ElementType type : {F32, F64})
        Check({1 + bits % 2, m, n, k, type, type, bits < 4 ? type : BF16, true, (bits & 2) != 0, (bits & 4) != 0});
}

// What is packed once for all tasks: either operand shared, in one round and in several, each layout, ragged ends.
TEST(Gemm, SharedPanels) {
  using enum ElementType;
  int layout = 0;
  for (auto [a, b, c] : std::vector<std::array<ElementType, 3>>{{F32, F32, F32},
                                                                {F64, F64, F64},
                                                                {BF16, BF16, BF16},
                                                                {F16, F16, F32},
                                                                {S8, S8, S32},
                                                                {U8, S8, S32},
                                                                {S8, U8, F32},
                                                                {U8, U8, S32},
                                                                {S32, S32, S32},
                                                                {S64, S64, S64}})
    for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{{165, 163, 157}, {500, 70, 121}, {45, 800, 119}})
      for (int turn = 0; turn < 2; ++turn, layout += 3)
        Check({m > 400 ? 2 : 1, m, n, k, a, b, c, (layout & 1) != 0, (layout & 2) != 0, (layout & 4) != 0});
  Check({1, 20, 64, 4500, BF16, BF16, BF16, false, false, false});  // several blocks of k, sums kept beside C
  Check({1, 20, 64, 4500, F32, F32, F32, false, true, false});
  // Pairs of bf16 where they lie: in several blocks and pieces of k, of a batch, to f32.
  Check({1, 150, 64, 4602, BF16, BF16, BF16, false, false, false});
  Check({2, 165, 163, 158, BF16, BF16, F32, false, true, false});
  Check({1, 400, 70, 1030, BF16, BF16, BF16, false, false, true});
  // With columns dealt out, none of them packed for all.
  Check({2, 77, 530, 158, BF16, BF16, BF16, false, false, false});
  Check({1, 29, 520, 4602, BF16, BF16, F32, false, true, false});
  Check({1, 20, 64, 9000, S8, S8, S32, false, true, false});
  Check({1, 64, 20, 9000, S8, S8, F32, true, false, false});
  Check({2, 14, 2200, 2100, F32, F32, F32, false, true, false});  // a batch is a round
  Check({1, 14, 2500, 1700, F32, F32, F32, false, true, false});  // so is a part of B
}

// Whole squares of A; of 40 rows or 500 terms they would reach beyond it.
TEST(Gemm, SquaresReadRowsWhereTheyLie) {
  using enum ElementType;
  for (ElementType type : {BF16, S8, U8}) {
    const ElementType sums = type == BF16 ? F32 : S32;
    for (bool columns : {false, true}) {
      Check({1, 48, 290, 512, type, type, sums, false, columns, false});
      Check({1, 40, 290, 512, type, type, sums, false, columns, false});
      Check({1, 48, 290, 500, type, type, sums, false, columns, false});
    }
    Check({1, 48, 290, 512, type, type, type == BF16 ? BF16 : S32, false, false, false});
    GemmProblem p;
    p.m = 48, p.n = 290, p.k = 512;
    p.a = {type, p.k, 1}, p.b = {type, p.n, 1}, p.c = {sums, p.n, 1};
    const auto reads = [&](int64_t m) {
      GemmProblem rows = p;
      rows.m = m;
      return (*Gemm::Create(rows, testing::StepIsa()))->tiles().find("lhs where it lies") != std::string::npos;
    };
    EXPECT_TRUE(reads(48));
    EXPECT_FALSE(reads(40));
  }
}

// Packing takes longer on two cores than on one where they write what the other has read.
TEST(Gemm, PairsOfBf16PackNothingForAll) {
  GemmProblem p;
  p.m = p.n = p.k = 512;
  p.a = p.b = p.c = {ElementType::BF16, 512, 1};
  for (const GemmIsa* isa : AllIsas()) {
    if (isa->bf16.mr == 0 || isa->bf16.step > 1) continue;
    EXPECT_EQ((*Gemm::Create(p, *isa))->tiles(),
              "bf16, 64 columns a task, lhs where it lies, 12x32 in registers, 2 products an instruction");
    p.n = 256;  // too few columns for even tasks
    EXPECT_NE((*Gemm::Create(p, *isa))->tiles().find("packed for all"), std::string::npos);
    p.n = 512;
  }
}

// Strides with gaps in both directions.
TEST(Gemm, NothingContiguous) {
  for (ElementType type : {ElementType::F32, ElementType::S8, ElementType::BF16}) {
    std::mt19937 rng(3);
    const ElementType out = type == ElementType::S8 ? ElementType::S32 : ElementType::F32;
    const int64_t m = 20, n = 35, k = 37;
    Literal a = RandomMatrix(type, 1, m, 3 * k, rng), b = RandomMatrix(type, 1, 2 * k, 3 * n, rng);
    Literal c = *Literal::Zeros(Shape::Array(out, {m, n})), want = c;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < k; ++p) sum += a.GetDouble(i * 3 * k + 3 * p) * b.GetDouble(2 * p * 3 * n + 3 * j);
        want.SetDouble(i * n + j, sum);
      }
    GemmProblem p;
    p.m = m, p.n = n, p.k = k;
    p.a = {type, 3 * k, 3, 0}, p.b = {type, 2 * 3 * n, 3, 0}, p.c = {out, n, 1, 0};
    for (const GemmIsa* isa : AllIsas()) {
      auto gemm = *Gemm::Create(p, *isa);
      std::vector<uint8_t> scratch(gemm->scratch_bytes()), shared(gemm->shared_bytes());
      gemm->RunAll(a.bytes().data(), b.bytes().data(), c.mutable_bytes().data(), shared.data(), scratch.data());
      EXPECT_TRUE(c == want) << isa->name << " " << Name(type);
    }
  }
}

// Sums of integers wrap and never saturate.
TEST(Gemm, IntegersWrap) {
  Literal a = *Literal::Zeros(Shape::Array(ElementType::S16, {2})),
          c = *Literal::Zeros(Shape::Array(ElementType::S32, {1}));
  a.SetInt(0, -32768);
  a.SetInt(1, -32768);
  GemmProblem p;
  p.m = p.n = 1, p.k = 2;
  p.a = {ElementType::S16, 2, 1, 0}, p.b = {ElementType::S16, 1, 1, 0}, p.c = {ElementType::S32, 1, 1, 0};
  for (const GemmIsa* isa : AllIsas()) {
    auto gemm = *Gemm::Create(p, *isa);
    std::vector<uint8_t> scratch(gemm->scratch_bytes()), shared(gemm->shared_bytes());
    gemm->RunAll(a.bytes().data(), a.bytes().data(), c.mutable_bytes().data(), shared.data(), scratch.data());
    EXPECT_EQ(c.GetInt(0), -2147483648LL) << isa->name;
  }
}

// Subnormal numbers are kept, as operands and as results.
TEST(Gemm, KeepsSubnormals) {
  GemmProblem p;
  p.m = p.n = 40, p.k = 1;
  p.a = {ElementType::BF16, 1, 1, 0}, p.b = {ElementType::BF16, 40, 1, 0}, p.c = {ElementType::F32, 40, 1, 0};
  std::vector<uint16_t> a(40, 0x0001), b(40, 0x3f80);  // the smallest bf16, and one
  std::vector<float> c(1600);
  for (const GemmIsa* isa : AllIsas()) {
    auto gemm = *Gemm::Create(p, *isa);
    std::vector<uint8_t> scratch(gemm->scratch_bytes()), shared(gemm->shared_bytes());
    gemm->RunAll(a.data(), b.data(), c.data(), shared.data(), scratch.data());
    for (float v : c) ASSERT_EQ(v, 0x1p-133f) << isa->name;
  }
}

// So they are where bf16 pairs would be multiplied by an instruction that flushes them: as operands, as products, as
// what is left of a sum; and numbers as small as may be are still right.
TEST(Gemm, LargeProductsKeepSubnormals) {
  const int64_t m = 165, n = 163, k = 157;
  GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.a = {ElementType::BF16, k, 1, 0}, p.b = {ElementType::BF16, n, 1, 0}, p.c = {ElementType::F32, n, 1, 0};
  const auto bf16 = [](float v) { return static_cast<uint16_t>(std::bit_cast<uint32_t>(v) >> 16); };
  struct Values {
    float a, b;
  };
  for (const auto [x, y] : {Values{0x1p-133f, 1}, Values{0x1p-70f, 0x1p-70f}, Values{0x1.02p-60f, 0x1p-64f},
                            Values{0x1p-60f, 0x1p-52f}, Values{0x1p-60f, 0x1p-66f}}) {
    std::vector<uint16_t> a(m * k), b(k * n, bf16(y));
    for (int64_t i = 0; i < m * k; ++i)
      a[i] = bf16(i % k == 1 || i % k == 5 ? x : i % k == 9 ? -x * 1.9921875f : 0.f);  // nearly cancels
    const float wanted =
        static_cast<float>(static_cast<double>(x) * y * 2 -
                           static_cast<double>(std::bit_cast<float>(uint32_t{bf16(x * 1.9921875f)} << 16)) * y);
    std::vector<float> c(m * n);
    for (const GemmIsa* isa : AllIsas()) {
      auto gemm = *Gemm::Create(p, *isa);
      std::vector<uint8_t> scratch(gemm->scratch_bytes()), shared(gemm->shared_bytes());
      gemm->RunAll(a.data(), b.data(), c.data(), shared.data(), scratch.data());
      for (float v : c) ASSERT_EQ(v, wanted) << isa->name << " " << x << " " << y;
      // Rows 15 at a time, of which the first and the last have nothing that is small.
      std::vector<uint16_t> mixed(a);
      for (int64_t i = 0; i < m; ++i)
        if (i < 15 || i >= 150) std::fill_n(&mixed[i * k], k, bf16(0x1p60f));
      auto rows = *RowGemm::Create(p, 15, *isa);
      std::vector<uint8_t> packed(rows->packed_bytes()), row_scratch(rows->scratch_bytes());
      if (!packed.empty()) rows->Pack(b.data(), packed.data());
      for (int64_t i = 0; i < m; i += 15)
        rows->Run(&mixed[i * k], b.data(), packed.data(), &c[i * n], row_scratch.data());
      for (int64_t i = 0; i < m; ++i)
        ASSERT_EQ(c[i * n + 7], i < 15 || i >= 150 ? static_cast<float>(157 * 0x1p60 * y) : wanted)
            << isa->name << " row " << i << " " << x << " " << y;
    }
  }
}

TEST(Gemm, StoresHalvesAsTheFormatsRound) {
  std::mt19937 rng(5);
  std::vector<float> from(10007);
  for (float& f : from) f = std::bit_cast<float>(static_cast<uint32_t>(rng()));
  for (size_t i = 0; i < 5000; ++i)  // the exponents of f16, and ties
    from[i] = std::bit_cast<float>(static_cast<uint32_t>((rng() % 50 + 96) << 23 | (rng() & 0x807ff000)));
  std::vector<uint16_t> bf16(from.size()), f16(from.size());
  for (const GemmIsa* isa : AllIsas()) {
    isa->store_bf16(static_cast<int64_t>(from.size()), from.data(), bf16.data());
    isa->store_f16(static_cast<int64_t>(from.size()), from.data(), f16.data());
    for (size_t i = 0; i < from.size(); ++i) {
      if (std::isnan(from[i])) {
        ASSERT_TRUE(std::isnan(DecodeFloat(ElementType::BF16, bf16[i])) &&
                    std::isnan(DecodeFloat(ElementType::F16, f16[i])));
        continue;
      }
      ASSERT_EQ(bf16[i], EncodeFloat(ElementType::BF16, from[i])) << isa->name << " " << from[i];
      ASSERT_EQ(f16[i], EncodeFloat(ElementType::F16, from[i])) << isa->name << " " << from[i];
    }
  }
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
