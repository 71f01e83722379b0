// Products whose operands begin or end with zeros, which are left out, unless they meet what is not finite.
#include "strop/cpu/kernels/gemm_zeros.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/kernels/gemm_rows.h"
#include "strop/cpu/testing/gemm_matrices.h"

namespace strop::cpu {
namespace {

// Which elements are other than zero, by row and column, of so many rows and columns.
using Pattern = std::function<bool(int64_t i, int64_t j, int64_t rows, int64_t cols)>;

struct NamedPattern {
  const char* name;
  Pattern pattern;
};

const std::vector<NamedPattern>& Patterns() {
  static const auto* const kPatterns = new std::vector<NamedPattern>{
      {"lower triangle", [](int64_t i, int64_t j, int64_t rows, int64_t cols) { return j * rows <= i * cols; }},
      {"upper triangle", [](int64_t i, int64_t j, int64_t rows, int64_t cols) { return j * rows >= i * cols; }},
      {"band", [](int64_t i, int64_t j, int64_t rows,
                  int64_t cols) { return std::abs(j * rows - i * cols) < 5 * std::max(rows, cols); }},
      {"blocks", [](int64_t i, int64_t j, int64_t rows, int64_t cols) { return i * 4 / rows == j * 4 / cols; }},
      {"some rows", [](int64_t i, int64_t, int64_t, int64_t) { return i / 20 % 2 == 0; }},
      {"some columns", [](int64_t, int64_t j, int64_t, int64_t cols) { return j > cols / 2 && j < cols / 2 + 9; }},
      {"nothing", [](int64_t, int64_t, int64_t, int64_t) { return false; }},
      {"everything", [](int64_t, int64_t, int64_t, int64_t) { return true; }},
  };
  return *kPatterns;
}

struct Product {
  GemmProblem p;
  Literal a, b, want;
  std::string name;
};

int64_t At(const GemmProblem& p, const StridedMatrix& x, int64_t n, int64_t row, int64_t col) {
  return p.Offset(x, n) + row * x.row_stride + col * x.col_stride;
}

std::vector<double> Numbers(const Literal& x) {
  std::vector<double> numbers(x.num_elements());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = x.GetComplex(static_cast<int64_t>(i)).real();
  return numbers;
}

// Whole numbers, so that sums are exact in any order; `wild` puts infinities and NaN into the operand that is full.
Product MakeProduct(ElementType type, std::array<int64_t, 4> size, bool ta, bool tb, const NamedPattern& zeros,
                    bool of_a, bool wild) {
  const auto [batch, m, n, k] = size;
  std::mt19937 rng(11);
  Product x;
  x.p.batch = batch, x.p.m = m, x.p.n = n, x.p.k = k;
  x.p.a = Strides(type, m, k, ta), x.p.b = Strides(type, k, n, tb), x.p.c = Strides(type, m, n, false);
  x.a = RandomMatrix(type, batch, m, k, rng), x.b = RandomMatrix(type, batch, k, n, rng);
  x.name = StrCat(Name(type), " ", batch, "x", m, "x", n, "x", k, ta ? " A turned" : "", tb ? " B turned" : "", ", ",
                  zeros.name, of_a ? " of A" : " of B", wild ? ", wild" : "");
  Literal &sparse = of_a ? x.a : x.b, &full = of_a ? x.b : x.a;
  const StridedMatrix &s = of_a ? x.p.a : x.p.b, &f = of_a ? x.p.b : x.p.a;
  const int64_t rows = of_a ? m : k, cols = of_a ? k : n;
  for (int64_t l = 0; l < batch; ++l)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j)
        if (!zeros.pattern(i, j, rows, cols))
          sparse.SetComplex(At(x.p, s, l, i, j), (i + j) % 5 == 0 && IsFloat(type) ? -0.0 : 0.0);
  if (wild) {
    const double inf = std::numeric_limits<double>::infinity();
    full.SetComplex(At(x.p, f, 0, 3, 2), inf);
    full.SetComplex(At(x.p, f, 0, (of_a ? k : m) - 2, 1), std::nan(""));
  }
  x.want = *Literal::Zeros(Shape::Array(type, {batch, m, n}));
  const std::vector<double> av = Numbers(x.a), bv = Numbers(x.b);
  for (int64_t l = 0; l < batch; ++l)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t q = 0; q < k; ++q) sum += av[At(x.p, x.p.a, l, i, q)] * bv[At(x.p, x.p.b, l, q, j)];
        x.want.SetComplex(At(x.p, x.p.c, l, i, j), sum);
      }
  return x;
}

void ExpectSame(const Literal& c, const Product& x, const GemmIsa& isa, const char* way) {
  for (int64_t i = 0; i < c.num_elements(); ++i) {
    const double got = c.GetComplex(i).real(), want = x.want.GetComplex(i).real();
    ASSERT_TRUE(got == want || (std::isnan(got) && std::isnan(want)))
        << isa.name << ", " << way << ", " << x.name << ": " << got << " instead of " << want << " at " << i;
  }
}

void CheckRows(const Product& x, const GemmIsa& isa) {
  const int64_t rows = x.p.m / 5;
  const auto gemm = RowGemm::Create(x.p, rows, isa);
  if (!gemm.ok()) return;
  std::vector<uint8_t> packed((*gemm)->packed_bytes()), scratch((*gemm)->scratch_bytes());
  Literal c = *Literal::Zeros(x.want.shape());
  const auto at = [&](const StridedMatrix& m, const Literal& whole, int64_t batch, int64_t row) {
    return const_cast<uint8_t*>(whole.bytes().data()) + At(x.p, m, batch, row, 0) * Bytes(m.type);
  };
  for (int64_t n = 0; n < x.p.batch; ++n) {
    (*gemm)->Pack(at(x.p.b, x.b, n, 0), packed.data());
    for (int64_t i = 0; i < x.p.m; i += rows)
      (*gemm)->Run(at(x.p.a, x.a, n, i), at(x.p.b, x.b, n, 0), packed.data(), at(x.p.c, c, n, i), scratch.data());
  }
  ExpectSame(c, x, isa, "by rows");
}

void Check(const Product& x) {
  for (const GemmIsa* isa : AllIsas()) {
    const auto gemm = Gemm::Create(x.p, *isa);
    ASSERT_TRUE(gemm.ok()) << gemm.status().ToString();
    std::vector<uint8_t> scratch((*gemm)->scratch_bytes()), shared((*gemm)->shared_bytes());
    Literal c = *Literal::Zeros(x.want.shape());
    (*gemm)->RunAll(x.a.bytes().data(), x.b.bytes().data(), c.mutable_bytes().data(), shared.data(), scratch.data());
    ExpectSame(c, x, *isa, (*gemm)->tiles().c_str());
    CheckRows(x, *isa);
  }
}

// Panels for all tasks (rows dealt out, and columns), blocks that pack for themselves, and rows of a band.
TEST(GemmZeros, AreLeftOutUnlessTheyMeetWhatIsNotFinite) {
  constexpr ElementType kTypes[] = {ElementType::F32, ElementType::F64, ElementType::BF16, ElementType::F32,
                                    ElementType::S32};
  int number = 0;
  for (const std::array<int64_t, 4>& size :
       std::vector<std::array<int64_t, 4>>{{1, 360, 80, 150}, {1, 65, 300, 220}, {16, 25, 35, 70}, {1, 125, 30, 1300}})
    for (const NamedPattern& zeros : Patterns())
      for (bool of_a : {true, false})
        for (int layout = 0; layout < 4; ++layout, ++number) {
          const ElementType type = kTypes[number % std::size(kTypes)];
          const bool wild = IsFloat(type) && number % 3 == 0;
          Check(MakeProduct(type, size, (layout & 1) != 0, (layout & 2) != 0, zeros, of_a, wild));
        }
}

// Rows that wide vectors read where they lie, and no panel of them.
TEST(GemmZeros, OfRowsInPlace) {
  constexpr std::array<int64_t, 4> kSize = {1, 390, 520, 400};
  for (const NamedPattern& zeros : Patterns())
    for (bool of_a : {true, false})
      for (bool wild : {true, false}) Check(MakeProduct(ElementType::F32, kSize, false, false, zeros, of_a, wild));
  const Product x = MakeProduct(ElementType::F32, kSize, false, false, Patterns().front(), true, false);
  for (const GemmIsa& isa : IsasOfVectors())
    EXPECT_EQ((*Gemm::Create(x.p, isa))->tiles().find("lhs where it lies") != std::string::npos,
              !HasNarrowVectors(isa.f32))
        << isa.name;
}

// Tiles that leave out zeros copy the next block's columns all the same.
TEST(GemmZeros, OfColumnsThatAreCopied) {
  for (const NamedPattern& zeros : Patterns())
    for (bool of_a : {true, false})
      Check(MakeProduct(ElementType::F32, {1, 65, 500, 900}, false, false, zeros, of_a, of_a));
}

TEST(GemmZeros, ExtentsEndWhereNumbersDo) {
  for (int64_t units : {1, 7, 33, 100})
    for (int64_t width : {1, 6, 16})
      for (int64_t first = 0; first <= units; first += 5)
        for (int64_t end = first; end <= units; end += 3) {
          std::vector<float> panel(units * width, -0.0f);
          for (int64_t u = first; u < end; ++u) panel[u * width + u % width] = 1e-45f;
          const Extent extent = ExtentOfPanel(panel.data(), units, width);
          EXPECT_EQ(extent.size(), end - first);
          EXPECT_TRUE(first == end || extent.first == first);
          std::vector<float> lines(3 * units);
          if (first < end) lines[first] = 2, lines[2 * units + end - 1] = 3;
          const float* rows[] = {&lines[0], &lines[units], &lines[2 * units]};
          const Extent of_rows = ExtentOfRows(rows, 3, units);
          EXPECT_EQ(of_rows.size(), end - first);
          EXPECT_TRUE(first == end || of_rows.first == first);
        }
}

TEST(GemmZeros, WhatIsNeededDependsOnTheOther) {
  const MicroTable<float>& micro = BestGemmIsa().f32;
  std::vector<float> x(20 * 6), y(30 * 16, 1);
  for (int64_t i = 8 * 6; i < 11 * 6; ++i) x[i] = 2;
  const auto needed = [&](const std::vector<float>& mine, const std::vector<float>& theirs, int64_t from) {
    PanelNote of_mine{ExtentOfPanel(mine.data(), 20, 6)}, of_theirs{ExtentOfPanel(theirs.data(), 30, 16)};
    const Extent units =
        NeededOf<float>(micro, {mine.data(), 20, 6, &of_mine}, {theirs.data(), 30, 16, &of_theirs}, from);
    return std::array<int32_t, 2>{units.first, units.end};
  };
  using Units = std::array<int32_t, 2>;
  EXPECT_EQ(needed(x, y, 0), (Units{8, 11}));
  y[17] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(needed(x, y, 0), (Units{0, 20}));
  std::fill(y.begin() + 14 * 16, y.end(), 0.f);  // of the units from 5 on, nine are left
  std::fill(x.begin(), x.end(), 3.f);
  EXPECT_EQ(needed(x, y, 5), (Units{0, 9}));
  x[0] = std::nanf("");
  EXPECT_EQ(needed(x, y, 5), (Units{0, 20}));
}

}  // namespace
}  // namespace strop::cpu
