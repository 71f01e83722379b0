#include "strop/passes/fixed_divisor.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace strop {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class F>
F Quotient(F x, const FixedDivisor<F>& divisor) {
  return std::fma(x, divisor.high, x * divisor.low);
}

template <class F, class Word>
F RandomMantissa(std::mt19937_64& random, Word one) {
  const Word mantissa = (Word{1} << (std::numeric_limits<F>::digits - 1)) - 1;
  return std::bit_cast<F>(static_cast<Word>(one | (static_cast<Word>(random()) & mantissa)));
}

// All mantissas of x: by numbers that programs divide by, and by others.
TEST(FixedDivisor, IsTheQuotientOfEveryFloat) {
  std::vector<float> divisors = {3, -255, 127.5f, 0.229f, 0.224f, 0.225f, 10, 1000, 1e-5f, 1.9999999f, 1.0000001f};
  std::mt19937_64 random(47);
  for (int k = 0; k < 5; ++k) divisors.push_back(RandomMantissa<float>(random, uint32_t{0x3f800000}));
  int found = 0;
  for (const float c : divisors) {
    const auto divisor = FixedDivisorOf(c);
    if (!divisor) continue;
    ++found;
    int wrong = 0;
    for (uint32_t m = 0; m < 1u << 23; ++m) {
      const float x = std::bit_cast<float>(0x3f800000u | m);
      wrong += Quotient(x, *divisor) != x / c;
    }
    EXPECT_EQ(wrong, 0) << c;
  }
  EXPECT_GE(found, 14);
}

// A quotient next to where rounding turns is one in 2^52 or so: of random ones none would be found wrong, but the ones
// that the search tries were, if it did not refuse their divisors.
TEST(FixedDivisor, IsTheQuotientOfDoubles) {
  std::mt19937_64 random(48);
  int found = 0;
  for (int k = 0; k < 20000; ++k) {
    const double c = RandomMantissa<double>(random, uint64_t{0x3ff0000000000000});
    const auto divisor = FixedDivisorOf(c);
    if (!divisor) continue;
    ++found;
    for (int n = 0; n < 20; ++n) {
      const double x = RandomMantissa<double>(random, uint64_t{0x3ff0000000000000});
      ASSERT_EQ(Quotient(x, *divisor), x / c) << x << " / " << c;
    }
  }
  EXPECT_GE(found, 19000);
}

TEST(FixedDivisor, KeepsZerosInfinitiesAndOverflow) {
  for (const float c : {0.3f, -0.3f, 7.f, -7.f}) {
    const auto divisor = FixedDivisorOf(c);
    ASSERT_TRUE(divisor);
    for (const float x : {0.f, -0.f, kInfinity, -kInfinity, 3.4e38f, -3.4e38f, 1e-25f}) {
      EXPECT_EQ(std::bit_cast<uint32_t>(Quotient(x, *divisor)), std::bit_cast<uint32_t>(x / c)) << x << " / " << c;
    }
    EXPECT_TRUE(std::isnan(Quotient(std::numeric_limits<float>::quiet_NaN(), *divisor)));
  }
}

// Where x low is subnormal or zero, less than one unit in the last place.
TEST(FixedDivisor, IsNearTheQuotientOfTheSmallest) {
  std::mt19937_64 random(49);
  for (const float c : {3.f, 0.7f, 255.f, 1e10f}) {
    const auto divisor = FixedDivisorOf(c);
    ASSERT_TRUE(divisor);
    for (int n = 0; n < 100000; ++n) {
      const float x = std::bit_cast<float>(static_cast<uint32_t>(random()) >> 3);
      const auto ours = std::bit_cast<int32_t>(Quotient(x, *divisor)), right = std::bit_cast<int32_t>(x / c);
      ASSERT_LE(std::abs(ours - right), x < 1e-22f ? 1 : 0) << x << " / " << c;
    }
  }
}

TEST(FixedDivisor, RefusesWhatHasNoSuchHalves) {
  for (const float c : {0.f, -0.f, kInfinity, 1.f, -4.f, 0.125f, 1e-20f, 1e20f}) EXPECT_FALSE(FixedDivisorOf(c)) << c;
  EXPECT_FALSE(FixedDivisorOf(std::numeric_limits<double>::quiet_NaN()));
}

}  // namespace
}  // namespace strop
