#include "strop/cpu/kernels/gemm_kept.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "strop/cpu/testing/gemm_matrices.h"

namespace strop::cpu {
namespace {

// Memory that begins at a line of the cache.
class Lines {
 public:
  explicit Lines(int64_t bytes) : bytes_(static_cast<size_t>(bytes) + 64) {}
  void* data() { return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(bytes_.data()) + 63) / 64 * 64); }

 private:
  std::vector<uint8_t> bytes_;
};

GemmProblem ProblemOf(ElementType type, ElementType out, int64_t batch, int64_t m, int64_t n, int64_t k, int turned) {
  GemmProblem p;
  p.batch = batch, p.m = m, p.n = n, p.k = k;
  p.a = Strides(type, m, k, (turned & 1) != 0);
  p.b = Strides(type, k, n, (turned & 2) != 0);
  p.c = Strides(out, m, n, (turned & 4) != 0);
  return p;
}

// The same as the product that keeps nothing, call after call, and the same on every processor.
TEST(KeptGemm, MultipliesByWhatItKeeps) {
  using enum ElementType;
  std::mt19937 rng(7);
  int kept_products = 0;
  for (auto [type, out] : std::vector<std::array<ElementType, 2>>{{F32, F32}, {F64, F64}, {F32, BF16}})
    for (auto [batch, m, n, k] : std::vector<std::array<int64_t, 4>>{{1, 1, 64, 100},
                                                                     {1, 2, 200, 60},
                                                                     {1, 3, 100, 64},
                                                                     {1, 4, 256, 40},
                                                                     {1, 5, 33, 200},
                                                                     {1, 7, 100, 130},
                                                                     {1, 8, 256, 64},
                                                                     {1, 8, 17, 300},
                                                                     {3, 6, 40, 50},
                                                                     {1, 12, 24, 65},
                                                                     {1, 37, 45, 300},
                                                                     {1, 8, 50, 1024}})
      for (int turned = 0; turned < 8; ++turned) {
        const GemmProblem p = ProblemOf(type, out, batch, m, n, k, turned);
        const Literal b = RandomMatrix(type, batch, k, n, rng);
        Literal want = *Literal::Zeros(Shape::Array(out, {batch, m, n})), c = want;
        for (const GemmIsa* isa : AllIsas()) {
          const std::shared_ptr<const KeptGemm> kept = KeptGemm::Create(p, *isa);
          if (!kept) continue;
          ++kept_products;
          const auto gemm = *Gemm::Create(p, *isa);
          Lines room(kept->kept_bytes()), scratch(std::max(kept->scratch_bytes(), gemm->scratch_bytes())),
              shared(gemm->shared_bytes());
          kept->Keep(b.bytes().data(), room.data());
          for (int call = 0; call < 2; ++call) {
            const Literal a = RandomMatrix(type, batch, m, k, rng);
            gemm->RunAll(a.bytes().data(), b.bytes().data(), want.mutable_bytes().data(), shared.data(),
                         scratch.data());
            kept->Run(a.bytes().data(), room.data(), c.mutable_bytes().data(), scratch.data());
            EXPECT_TRUE(c == want) << isa->name << " " << Name(out) << " " << m << "x" << n << "x" << k << " "
                                   << turned;
          }
        }
      }
  EXPECT_GT(kept_products, 100);
}

// Long sums are in levels.
TEST(KeptGemm, IsAsExactAsTheProductWhereItLies) {
  constexpr int64_t kM = 8, kN = 64, kK = 4000;
  const GemmProblem p = ProblemOf(ElementType::F32, ElementType::F32, 1, kM, kN, kK, 0);
  std::vector<float> a(kM * kK, 0.1f), b(kK * kN, 1.0f), c(kM * kN);
  const std::shared_ptr<const KeptGemm> gemm = KeptGemm::Create(p);
  ASSERT_TRUE(gemm);
  Lines kept(gemm->kept_bytes()), scratch(gemm->scratch_bytes());
  gemm->Keep(b.data(), kept.data());
  gemm->Run(a.data(), kept.data(), c.data(), scratch.data());
  for (float sum : c) EXPECT_NEAR(sum, kK * static_cast<double>(0.1f), 1e-3);
}

TEST(KeptGemm, LeavesOthersToGemm) {
  using enum ElementType;
  EXPECT_FALSE(KeptGemm::Create(ProblemOf(BF16, F32, 1, 8, 256, 256, 0)));  // types
  EXPECT_FALSE(KeptGemm::Create(ProblemOf(S32, S32, 1, 8, 256, 256, 0)));
  EXPECT_FALSE(KeptGemm::Create(ProblemOf(F32, F32, 1, 8, 16, 16, 0)));      // small
  EXPECT_FALSE(KeptGemm::Create(ProblemOf(F32, F32, 1, 4, 256, 256, 2)));    // dot products
  EXPECT_FALSE(KeptGemm::Create(ProblemOf(F32, F32, 1, 8, 2048, 2048, 0)));  // too large to be kept
  EXPECT_FALSE(KeptGemm::Create(ProblemOf(F32, F32, 1, 8, 256, 0, 0)));
}

}  // namespace
}  // namespace strop::cpu
