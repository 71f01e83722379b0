// Scans against the definition, over shapes with and without segments.
#include "strop/cpu/kernels/scan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

struct Shape3 {
  int64_t outer, n, inner;
};
constexpr Shape3 kShapes[] = {{1, 1, 1}, {3, 7, 1},     {19, 65, 1},  {1, 9000, 1},   {1, 200001, 1},
                              {2, 5, 3}, {1, 300, 700}, {4, 1000, 2}, {1, 12345, 17}, {0, 5, 4}};

template <class T>
void Check(const ScanProblem& p, T tolerance) {
  std::mt19937 random(7);
  const int64_t size = p.outer * p.n * p.inner;
  std::vector<T> in(size), out(size), alone(size);
  for (T& v : in) v = static_cast<T>(random() % 5) - 2;
  T initial = p.combine == CombineKind::kMultiply ? 1 : 0;
  ThreadPool pool(3);
  RunScan(p, in.data(), &initial, out.data(), &pool);
  RunScan(p, in.data(), &initial, alone.data(), nullptr);
  EXPECT_EQ(out, alone);
  for (int64_t o = 0; o < p.outer; ++o)
    for (int64_t v = 0; v < p.inner; ++v) {
      T sum = initial;
      for (int64_t i = 0; i < p.n; ++i) {
        const int64_t at = (o * p.n + (p.reverse ? p.n - 1 - i : i)) * p.inner + v;
        if (p.combine == CombineKind::kAdd) sum += in[at];
        if (p.combine == CombineKind::kMaximum) sum = std::max(sum, in[at]);
        ASSERT_LE(std::abs(static_cast<double>(out[at] - sum)), tolerance) << o << " " << i << " " << v;
      }
    }
}

TEST(ScanTest, Sums) {
  for (const Shape3& s : kShapes)
    for (bool reverse : {false, true}) {
      Check<float>({ElementType::F32, CombineKind::kAdd, reverse, s.outer, s.n, s.inner}, 0);  // small integers: exact
      Check<int32_t>({ElementType::S32, CombineKind::kAdd, reverse, s.outer, s.n, s.inner}, 0);
    }
}

TEST(ScanTest, SumsOfComplexNumbers) {
  std::mt19937 random(5);
  for (const Shape3& s : kShapes)
    for (bool reverse : {false, true}) {
      const int64_t size = s.outer * s.n * s.inner;
      std::vector<std::complex<float>> in(size), out(size), alone(size);
      for (std::complex<float>& v : in) v = {random() % 5 - 2.0f, random() % 9 - 4.0f};
      const std::complex<float> none = 0;
      const ScanProblem problem = {ElementType::C64, CombineKind::kAdd, reverse, s.outer, s.n, s.inner};
      ThreadPool pool(3);
      RunScan(problem, in.data(), &none, out.data(), &pool);
      RunScan(problem, in.data(), &none, alone.data(), nullptr);
      EXPECT_EQ(out, alone);
      for (int64_t o = 0; o < s.outer; ++o)
        for (int64_t v = 0; v < s.inner; ++v) {
          std::complex<float> sum = 0;
          for (int64_t i = 0; i < s.n; ++i) {
            const int64_t at = (o * s.n + (reverse ? s.n - 1 - i : i)) * s.inner + v;
            ASSERT_EQ(out[at], sum += in[at]) << o << " " << i << " " << v;
          }
        }
    }
}

// Errors of long sums grow with the length of blocks, not of lines: one after the other these would be off by 2e-6 of
// the greatest and more.
TEST(ScanTest, LongSumsAreAddedByBlocks) {
  std::mt19937 random(9);
  std::normal_distribution<float> normal;
  for (const Shape3& s : {Shape3{1, 1 << 20, 1}, Shape3{40, 60000, 1}, Shape3{1, 60000, 700}}) {
    const int64_t size = s.outer * s.n * s.inner;
    std::vector<float> in(size), out(size);
    for (float& v : in) v = normal(random);
    const float none = 0;
    ThreadPool pool(2);
    RunScan({ElementType::F32, CombineKind::kAdd, false, s.outer, s.n, s.inner}, in.data(), &none, out.data(), &pool);
    for (int64_t line = 0; line < std::min<int64_t>(s.outer * s.inner, 5); ++line) {
      const int64_t first = line / s.inner * s.n * s.inner + line % s.inner;
      double sum = 0, greatest = 0, error = 0;
      for (int64_t i = 0; i < s.n; ++i) {
        sum += in[first + i * s.inner];
        greatest = std::max(greatest, std::abs(sum));
        error = std::max(error, std::abs(out[first + i * s.inner] - sum));
      }
      EXPECT_LE(error, 8e-7 * greatest) << "line " << line << " of " << s.outer << "x" << s.n << "x" << s.inner;
    }
  }
}

TEST(ScanTest, Maxima) {
  for (const Shape3& s : kShapes)
    Check<double>({ElementType::F64, CombineKind::kMaximum, false, s.outer, s.n, s.inner}, 0);
}

// Every type has vectors of its own length, and lines end inside them.
TEST(ScanTest, AllWidths) {
  for (const Shape3& s :
       {Shape3{3, 1, 1}, Shape3{3, 31, 1}, Shape3{2, 32, 1}, Shape3{5, 67, 1}, Shape3{130, 3, 1}, Shape3{70, 15, 1}})
    for (bool reverse : {false, true}) {
      Check<int8_t>({ElementType::S8, CombineKind::kMaximum, reverse, s.outer, s.n, s.inner}, 0);
      Check<uint16_t>({ElementType::U16, CombineKind::kMaximum, reverse, s.outer, s.n, s.inner}, 0);
      Check<int64_t>({ElementType::S64, CombineKind::kAdd, reverse, s.outer, s.n, s.inner}, 0);
      Check<double>({ElementType::F64, CombineKind::kAdd, reverse, s.outer, s.n, s.inner}, 0);
    }
}

// Floats of 16 bits are what the sums of floats round to, NaN and the largest ones, too.
TEST(ScanTest, HalvesAreRoundedSumsOfFloats) {
  std::mt19937 random(3);
  for (ElementType type : {ElementType::F16, ElementType::BF16})
    for (const Shape3& s : {Shape3{3, 67, 1}, Shape3{2, 41, 19}}) {
      const int64_t size = s.outer * s.n * s.inner;
      std::vector<uint16_t> in(size), out(size);
      std::vector<float> wide(size), sums(size);
      for (int64_t i = 0; i < size; ++i) {
        StoreAs<float>(type, in.data(), i, static_cast<float>(static_cast<int>(random() % 2001) - 900) * 0.37f);
        wide[i] = LoadAs<float>(type, in.data(), i);
      }
      in[5] = type == ElementType::F16 ? 0x7c01 : 0x7f81;  // a signalling NaN
      wide[5] = NAN;
      const uint16_t zero = 0;
      const float none = 0;
      RunScan({type, CombineKind::kAdd, false, s.outer, s.n, s.inner}, in.data(), &zero, out.data(), nullptr);
      RunScan({ElementType::F32, CombineKind::kAdd, false, s.outer, s.n, s.inner}, wide.data(), &none, sums.data(),
              nullptr);
      for (int64_t i = 0; i < size; ++i) {
        uint16_t rounded;
        StoreAs<float>(type, &rounded, 0, sums[i]);
        const float got = LoadAs<float>(type, out.data(), i);
        if (std::isnan(sums[i]))
          EXPECT_TRUE(std::isnan(got)) << i;
        else
          EXPECT_EQ(got, LoadAs<float>(type, &rounded, 0)) << i;
      }
    }
}

// Lines shorter than a vector, of which many are scanned together: the bits are those of one element after another, of
// zeros and several NaNs, too.
template <class T, class Code>
void CheckShortLines(ElementType type, CombineKind combine, bool reverse) {
  std::mt19937 random(11);
  for (int64_t n : {1, 2, 3, 5, 7, 12, 31})
    for (int64_t outer : {1, 63, 64, 200}) {
      std::vector<Code> in(outer * n), out(outer * n), expected(outer * n);
      for (Code& code : in) {
        const int choice = static_cast<int>(random() % 9);
        StoreAs<T>(type, &code, 0, static_cast<T>(choice < 6 ? (choice - 3) * 0.3f : choice < 7 ? -0.0f : NAN));
        if (choice == 8) code = static_cast<Code>(code | 3);  // another NaN
      }
      Code initial;
      StoreAs<T>(type, &initial, 0, static_cast<T>(combine == CombineKind::kMaximum ? -INFINITY : 0));
      RunScan({type, combine, reverse, outer, n, 1}, in.data(), &initial, out.data(), nullptr);
      for (int64_t o = 0; o < outer; ++o) {
        T sum = LoadAs<T>(type, &initial, 0);
        for (int64_t i = 0; i < n; ++i) {
          const int64_t at = o * n + (reverse ? n - 1 - i : i);
          const T x = LoadAs<T>(type, in.data(), at);
          sum = combine == CombineKind::kMaximum ? Combine<CombineKind::kMaximum>(sum, x)
                                                 : Combine<CombineKind::kAdd>(sum, x);
          StoreAs<T>(type, expected.data(), at, sum);
        }
      }
      for (int64_t i = 0; i < outer * n; ++i) {
        const bool whole = n < static_cast<int64_t>(32 / sizeof(T));  // else sums inside a vector are in another order
        const T a = LoadAs<T>(type, out.data(), i), b = LoadAs<T>(type, expected.data(), i);
        if (whole && combine == CombineKind::kMaximum)
          ASSERT_EQ(out[i], expected[i]) << n << " " << outer << " " << i;
        else if (std::isnan(b))
          ASSERT_TRUE(std::isnan(a)) << n << " " << outer << " " << i;
        else if (whole)
          ASSERT_EQ(a, b) << n << " " << outer << " " << i;
        else
          ASSERT_NEAR(a, b, 0.05 * (1 + std::abs(b))) << n << " " << outer << " " << i;
      }
    }
}

TEST(ScanTest, ShortLinesTogether) {
  for (CombineKind combine : {CombineKind::kAdd, CombineKind::kMaximum})
    for (bool reverse : {false, true}) {
      CheckShortLines<float, uint32_t>(ElementType::F32, combine, reverse);
      CheckShortLines<double, uint64_t>(ElementType::F64, combine, reverse);
      CheckShortLines<float, uint16_t>(ElementType::F16, combine, reverse);
      CheckShortLines<float, uint16_t>(ElementType::BF16, combine, reverse);
    }
}

TEST(ScanTest, ZerosKeepTheirSigns) {
  for (CombineKind combine : {CombineKind::kAdd, CombineKind::kMinimum, CombineKind::kMaximum}) {
    std::vector<float> in(20, -0.0f), out(20);
    if (combine == CombineKind::kMinimum) std::fill(in.begin(), in.begin() + 10, 0.0f);
    if (combine == CombineKind::kMaximum) std::fill(in.begin() + 10, in.end(), 0.0f);
    const float initial = combine == CombineKind::kAdd       ? -0.0f
                          : combine == CombineKind::kMinimum ? INFINITY
                                                             : -INFINITY;
    RunScan({ElementType::F32, combine, false, 1, 20, 1}, in.data(), &initial, out.data(), nullptr);
    for (int i = 0; i < 20; ++i)
      EXPECT_EQ(std::signbit(out[i]), combine == CombineKind::kAdd || (combine == CombineKind::kMinimum) == (i >= 10));
  }
}

TEST(ScanTest, NanStays) {
  std::vector<float> in(20000, 1.0f), out(20000);
  in[5000] = NAN;
  float initial = -INFINITY;
  RunScan({ElementType::F32, CombineKind::kMaximum, false, 1, 20000, 1}, in.data(), &initial, out.data(), nullptr);
  EXPECT_EQ(out[4999], 1.0f);
  EXPECT_TRUE(std::isnan(out[5000]) && std::isnan(out[19999]));
}

TEST(ScanTest, RefusesWhatHasNoMeaning) {
  EXPECT_FALSE(CheckScan({ElementType::F32, CombineKind::kAnd, false, 1, 4, 1}).ok());
  EXPECT_FALSE(CheckScan({ElementType::C64, CombineKind::kMaximum, false, 1, 4, 1}).ok());
}

}  // namespace
}  // namespace strop::cpu
