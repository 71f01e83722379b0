// GEMM at the edges: what lies behind its operands, and how different processors' tiles are cut.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "strop/cpu/kernels/gemm_blocks.h"
#include "strop/cpu/testing/gemm_matrices.h"

namespace strop::cpu {
namespace {

// Bytes that end where memory does: touching what follows is a fault.
class AtTheEnd {
 public:
  explicit AtTheEnd(size_t bytes) : page_(static_cast<size_t>(sysconf(_SC_PAGESIZE))), whole_(RoundUp(bytes) + page_) {
    base_ = static_cast<uint8_t*>(mmap(nullptr, whole_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_EQ(mprotect(base_ + whole_ - page_, page_, PROT_NONE), 0);
    data_ = base_ + whole_ - page_ - bytes;
  }
  AtTheEnd(const AtTheEnd&) = delete;
  AtTheEnd& operator=(const AtTheEnd&) = delete;
  ~AtTheEnd() { munmap(base_, whole_); }
  uint8_t* data() { return data_; }

 private:
  size_t RoundUp(size_t bytes) const { return (bytes + page_ - 1) / page_ * page_; }
  size_t page_, whole_;
  uint8_t *base_, *data_;
};

// Vectors that are not full, of each number of elements.
TEST(Gemm, TouchesNothingBehindItsOperands) {
  using enum ElementType;
  std::mt19937 rng(3);
  const auto check = [&](ElementType type, ElementType sum, int64_t m, int64_t n, int64_t k, bool ta, bool tb) {
    GemmProblem p;
    p.m = m, p.n = n, p.k = k;
    p.a = Strides(type, m, k, ta), p.b = Strides(type, k, n, tb), p.c = Strides(sum, m, n, false);
    const Literal a = RandomMatrix(type, 1, m, k, rng), b = RandomMatrix(type, 1, k, n, rng);
    AtTheEnd a_end(a.bytes().size()), b_end(b.bytes().size());
    std::copy(a.bytes().begin(), a.bytes().end(), a_end.data());
    std::copy(b.bytes().begin(), b.bytes().end(), b_end.data());
    Literal want = *Literal::Zeros(Shape::Array(sum, {m, n}));
    for (const GemmIsa* isa : AllIsas()) {
      const auto gemm = Gemm::Create(p, *isa);
      std::vector<uint8_t> scratch((*gemm)->scratch_bytes()), shared((*gemm)->shared_bytes());
      AtTheEnd c_end(want.bytes().size());
      (*gemm)->RunAll(a_end.data(), b_end.data(), c_end.data(), shared.data(), scratch.data());
      if (isa == AllIsas().front()) std::copy_n(c_end.data(), want.bytes().size(), want.mutable_bytes().begin());
      EXPECT_TRUE(std::equal(want.bytes().begin(), want.bytes().end(), c_end.data()))
          << isa->name << " " << Name(type) << " " << m << "x" << n << "x" << k << " " << ta << tb;
    }
  };
  for (auto [type, sum] : std::vector<std::array<ElementType, 2>>{
           {F32, F32}, {F64, F64}, {BF16, F32}, {F16, F16}, {S8, S32}, {U8, S32}, {S16, S32}, {S32, S32}, {S64, S64}})
    for (int64_t rest = 1; rest <= 17; ++rest)
      for (int bits = 0; bits < 4; ++bits)
        for (auto [m, n, k] : std::vector<std::array<int64_t, 3>>{
                 {1, rest, 9}, {3, 40 + rest, 33}, {7, 9, rest}, {rest, 33, 40}, {50 + rest, 37, 16 + rest}})
          check(type, sum, m, n, k, (bits & 1) != 0, (bits & 2) != 0);
}

// Tiles of narrow vectors are soon done: sums that grow a hundred products at a time would be read and written again
// for a tenth of the time.
TEST(Gemm, NarrowTilesTakeLongBlocks) {
  using enum ElementType;
  GemmProblem few;
  few.m = 128, few.n = 3072, few.k = 768;
  few.a = Strides(F32, 128, 768, false), few.b = Strides(F32, 768, 3072, false), few.c = Strides(F32, 128, 3072, false);
  for (const GemmIsa& isa : IsasOfVectors()) {
    if (std::string_view(isa.name).starts_with("avx512")) continue;
    const std::string tiles = (*Gemm::Create(few, isa))->tiles();
    EXPECT_EQ(tiles.find("k by 128"), std::string::npos) << isa.name << ": " << tiles;
    EXPECT_NE(tiles.find("column by column"), std::string::npos) << isa.name << ": " << tiles;
  }
}

// Middling squares deal out columns where vectors are narrow, with enough tasks for several threads.
TEST(Gemm, NarrowTilesDealOutColumns) {
  using enum ElementType;
  for (const int64_t size : {256, 512, 1000}) {
    GemmProblem p;
    p.m = p.n = p.k = size;
    p.a = p.b = p.c = Strides(F32, size, size, false);
    for (const GemmIsa& isa : IsasOfVectors()) {
      const auto gemm = *Gemm::Create(p, isa);
      if (!std::string_view(isa.name).starts_with("avx512")) {
        EXPECT_NE(gemm->tiles().find("columns a task"), std::string::npos) << isa.name << ": " << gemm->tiles();
      }
      EXPECT_GE(gemm->num_tasks(), 8) << isa.name << ": " << gemm->tiles();
    }
  }
}

// Panels that no cache of a core holds are asked for ahead, where vectors are narrow; sums stay what they are.
TEST(Gemm, FetchesTheNextColumnOfALargeMatrix) {
  using enum ElementType;
  constexpr int64_t kM = 200, kN = 1030, kK = 1100;
  std::mt19937 rng(5);
  for (const ElementType type : {F32, F64}) {
    GemmProblem p;
    p.m = kM, p.n = kN, p.k = kK;
    p.a = Strides(type, kM, kK, true), p.b = Strides(type, kK, kN, false), p.c = Strides(type, kM, kN, false);
    const Literal a = RandomMatrix(type, 1, kM, kK, rng), b = RandomMatrix(type, 1, kK, kN, rng);
    Literal want = *Literal::Zeros(Shape::Array(type, {kM, kN})), c = want;
    for (const GemmIsa* isa : AllIsas()) {
      const auto gemm = *Gemm::Create(p, *isa);
      EXPECT_EQ(gemm->tiles().find("the next column ahead") != std::string::npos, isa->name == std::string_view("avx2"))
          << isa->name << ": " << gemm->tiles();
      std::vector<uint8_t> scratch(gemm->scratch_bytes() + 64), shared(gemm->shared_bytes() + 64);
      gemm->RunAll(a.bytes().data(), b.bytes().data(), c.mutable_bytes().data(), shared.data(), scratch.data());
      if (isa == AllIsas().front()) want = c;
      EXPECT_TRUE(c == want) << isa->name;
    }
  }
}

// Rows of A that are packed in two rounds, the second of which has a single panel, whose tiles pack the columns that
// they are multiplied with: no tile is left that would copy those of the next block.
TEST(Gemm, CopiesColumnsForASinglePanelOfRows) {
  constexpr int64_t kM = 200, kN = 560, kK = 12500;
  std::mt19937 rng(6);
  GemmProblem p;
  p.m = kM, p.n = kN, p.k = kK;
  const ElementType type = ElementType::F64;
  p.a = Strides(type, kM, kK, false), p.b = Strides(type, kK, kN, false), p.c = Strides(type, kM, kN, false);
  const Literal a = RandomMatrix(type, 1, kM, kK, rng), b = RandomMatrix(type, 1, kK, kN, rng);
  Literal want = *Literal::Zeros(Shape::Array(type, {kM, kN})), c = want;
  for (const GemmIsa* isa : {AllIsas().front(), &BestGemmIsa()}) {
    const auto gemm = *Gemm::Create(p, *isa);
    std::vector<uint8_t> scratch(gemm->scratch_bytes() + 64), shared(gemm->shared_bytes() + 64);
    gemm->RunAll(a.bytes().data(), b.bytes().data(), c.mutable_bytes().data(), shared.data(), scratch.data());
    if (isa == AllIsas().front()) want = c;
    for (int64_t i = 0; i < kM * kN; ++i)
      ASSERT_NEAR(c.GetComplex(i).real(), want.GetComplex(i).real(), 1e-9 * kK) << gemm->tiles() << " at " << i;
    if (!HasNarrowVectors(isa->f64)) {
      EXPECT_NE(gemm->tiles().find("2 rounds"), std::string::npos) << gemm->tiles();
      EXPECT_NE(gemm->tiles().find("while others are multiplied"), std::string::npos) << gemm->tiles();
    }
  }
}

}  // namespace
}  // namespace strop::cpu
