#include "strop/cpu/kernels/rng.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

namespace strop::cpu {
namespace {

uint32_t Crc32(const std::vector<uint8_t>& bytes) {
  uint32_t crc = ~0u;
  for (uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

struct Golden {
  RngAlgorithm algorithm;
  ElementType type;
  int state_words;
  std::vector<int64_t> dims;
  uint32_t crc;
  uint64_t low, high;
};

// What XLA:CPU gives for the state {0x0123456789abcdef, 0xfffffffffffffffd, 0x55}: crc32 of the bytes, words 1 and 2 of
// the new state (measured with jaxlib 0.10.2).
const Golden kGolden[] = {
    {RngAlgorithm::kThreeFry, ElementType::U8, 2, {}, 0x29d6a3e8, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U16, 2, {}, 0xfc9f34af, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U32, 2, {}, 0x4919b4c5, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U64, 2, {}, 0x7619fa9a, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U8, 2, {7}, 0xb32d1cd8, 0x1u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U16, 2, {7}, 0xa67084c8, 0x1u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U32, 2, {7}, 0x2bde3266, 0x1u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U64, 2, {7}, 0x0b62c39e, 0x4u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U8, 2, {4, 6}, 0x26715801, 0x9u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U32, 2, {4, 6}, 0x49cbd9fd, 0x9u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U64, 2, {4, 6}, 0xbef36a70, 0x15u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U8, 2, {3, 5}, 0x05789d39, 0x6u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U32, 2, {3, 5}, 0x8202e4ee, 0x6u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U64, 2, {3, 5}, 0x98ead5a0, 0xcu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U8, 2, {5, 3, 4}, 0x0675582e, 0x1bu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U32, 2, {5, 3, 4}, 0xb7a39a27, 0x1bu, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U64, 2, {5, 3, 4}, 0x56a6e7bd, 0x39u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U8, 2, {3, 2001}, 0xf068832c, 0xbb8u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U16, 2, {3, 2001}, 0x10ee3e53, 0xbb8u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U32, 2, {3, 2001}, 0x9913f9c3, 0xbb8u, 0x0u},
    {RngAlgorithm::kThreeFry, ElementType::U64, 2, {3, 2001}, 0x3dbcc36b, 0x1770u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U8, 2, {}, 0x01d41b76, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U16, 2, {}, 0x34606797, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U32, 2, {}, 0x9bab29a6, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U64, 2, {}, 0x8c5676a1, 0xfffffffffffffffeu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U8, 2, {7}, 0x23ce7733, 0xffffffffffffffffu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U16, 2, {7}, 0x4bb07be6, 0xffffffffffffffffu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U32, 2, {7}, 0x048a58d6, 0xffffffffffffffffu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U64, 2, {7}, 0x5028fba1, 0x1u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U32, 2, {4, 6}, 0xbc5a6742, 0x3u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U64, 2, {4, 6}, 0xc3bcd0d7, 0x9u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U8, 2, {3, 5}, 0xecd3e4ef, 0x1u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U32, 2, {3, 5}, 0x778dd6a9, 0x1u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U64, 2, {3, 5}, 0x458fd642, 0x5u, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U32, 2, {5, 3, 4}, 0x5a5abcab, 0xcu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U64, 2, {5, 3, 4}, 0x64a12515, 0x1bu, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U8, 2, {3, 2001}, 0x4a972fd4, 0x5dau, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U16, 2, {3, 2001}, 0xafd370be, 0x5dau, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U32, 2, {3, 2001}, 0x83e52c0b, 0x5dau, 0x0u},
    {RngAlgorithm::kPhilox, ElementType::U64, 2, {3, 2001}, 0x06a0f7bc, 0xbb7u, 0x0u},
    {RngAlgorithm::kDefault, ElementType::U8, 2, {7}, 0x23ce7733, 0xffffffffffffffffu, 0x0u},
    {RngAlgorithm::kDefault, ElementType::U16, 2, {7}, 0x4bb07be6, 0xffffffffffffffffu, 0x0u},
    {RngAlgorithm::kDefault, ElementType::U32, 2, {7}, 0x048a58d6, 0xffffffffffffffffu, 0x0u},
    {RngAlgorithm::kDefault, ElementType::U64, 2, {7}, 0x5028fba1, 0x1u, 0x0u},
};

TEST(RngBitGenerator, BitsAreXlas) {
  ThreadPool pool(3);
  for (const Golden& golden : kGolden) {
    for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
      std::vector<uint64_t> state = {0x0123456789abcdef, 0xfffffffffffffffd, 0x55}, next(golden.state_words);
      state.resize(golden.state_words);
      int64_t n = 1;
      for (int64_t d : golden.dims) n *= d;
      std::vector<uint8_t> out(n * Bytes(golden.type));
      ASSERT_TRUE(RngBitGenerator(golden.algorithm, golden.type, golden.dims, state, next, out.data(), threads).ok());
      std::string what = StrCat(golden.algorithm, " ", Name(golden.type), "[", Join(golden.dims, ","), "]");
      EXPECT_EQ(Crc32(out), golden.crc) << what;
      EXPECT_EQ(next[0], state[0]) << what;
      EXPECT_EQ(next[1], golden.low) << what;
      EXPECT_EQ(golden.state_words == 3 ? next[2] : 0, golden.high) << what;
    }
  }
}

TEST(RngBitGenerator, SameBitsWithAnyNumberOfThreads) {
  std::vector<int64_t> dims = {3, 50001};
  ThreadPool pool(4);
  for (RngAlgorithm algorithm : {RngAlgorithm::kThreeFry, RngAlgorithm::kPhilox}) {
    for (ElementType type : {ElementType::U8, ElementType::U32, ElementType::U64}) {
      std::vector<uint64_t> state = {7, 9}, next(2);
      std::vector<uint8_t> a(3 * 50001 * Bytes(type)), b(a.size());
      ASSERT_TRUE(RngBitGenerator(algorithm, type, dims, state, next, a.data(), nullptr).ok());
      ASSERT_TRUE(RngBitGenerator(algorithm, type, dims, state, next, b.data(), &pool).ok());
      EXPECT_EQ(a, b);
    }
  }
}

TEST(RngBitGenerator, SubByteTypesStayInRange) {
  std::vector<uint64_t> state = {7, 9};
  std::vector<int8_t> out(1000);
  std::vector<int64_t> dims = {1000};
  int seen = 0;
  ASSERT_TRUE(RngBitGenerator(RngAlgorithm::kPhilox, ElementType::S4, dims, state, state, out.data(), nullptr).ok());
  for (int8_t v : out) {
    ASSERT_GE(v, -8);
    ASSERT_LE(v, 7);
    seen |= 1 << (v + 8);
  }
  EXPECT_EQ(seen, 0xffff);
}

TEST(RngBitGenerator, Refusals) {
  std::vector<uint64_t> state = {1, 2, 3};
  uint32_t out;
  EXPECT_EQ(RngBitGenerator(RngAlgorithm::kThreeFry, ElementType::U32, {}, state, state, &out, nullptr).code(),
            StatusCode::kInvalidArgument);
  state.resize(2);
  EXPECT_EQ(RngBitGenerator(RngAlgorithm::kPhilox, ElementType::C64, {}, state, state, &out, nullptr).code(),
            StatusCode::kUnimplemented);
}

template <class T>
std::vector<T> Uniform(ElementType type, T low, T high, int64_t n, ThreadPool* pool = nullptr) {
  std::vector<T> out(n);
  std::array<uint64_t, 2> counter = {5, 0};
  EXPECT_TRUE(RngUniform(type, counter, n, &low, &high, out.data(), pool).ok());
  return out;
}

TEST(RngUniform, RangesAndMeans) {
  double sum = 0;
  for (float v : Uniform<float>(ElementType::F32, -1, 3, 100000)) {
    ASSERT_GE(v, -1);
    ASSERT_LT(v, 3);
    sum += v;
  }
  EXPECT_NEAR(sum / 100000, 1, 0.02);
  int counts[7] = {};
  for (int32_t v : Uniform<int32_t>(ElementType::S32, -3, 4, 70000)) {
    ASSERT_GE(v, -3);
    ASSERT_LT(v, 4);
    ++counts[v + 3];
  }
  for (int count : counts) EXPECT_NEAR(count, 10000, 500);
  for (int64_t v : Uniform<int64_t>(ElementType::S64, INT64_MIN, INT64_MAX, 100)) ASSERT_LT(v, INT64_MAX);
  EXPECT_EQ(Uniform<uint8_t>(ElementType::U8, 9, 9, 1)[0], 9);
  for (uint16_t v : Uniform<uint16_t>(ElementType::BF16, 0, 0x3f80, 5000))
    ASSERT_LT(DecodeFloat(ElementType::BF16, v), 1);
  int heads = 0;
  for (uint8_t v : Uniform<uint8_t>(ElementType::Pred, 0, 1, 10000)) heads += v;
  EXPECT_NEAR(heads, 5000, 300);
}

TEST(RngUniform, SameBitsWithAnyNumberOfThreads) {
  ThreadPool pool(3);
  EXPECT_EQ(Uniform<double>(ElementType::F64, 0, 1, 50001), Uniform<double>(ElementType::F64, 0, 1, 50001, &pool));
}

TEST(RngNormal, Moments) {
  ThreadPool pool(3);
  for (int64_t n : {100001, 1}) {
    std::vector<double> out(n), again(n);
    std::array<uint64_t, 2> counter = {UINT64_MAX - 3, 1};
    double mu = 2, sigma = 3;
    ASSERT_TRUE(RngNormal(ElementType::F64, counter, n, &mu, &sigma, out.data(), nullptr).ok());
    ASSERT_TRUE(RngNormal(ElementType::F64, counter, n, &mu, &sigma, again.data(), &pool).ok());
    EXPECT_EQ(out, again);
    if (n == 1) continue;
    double sum = 0, squares = 0, cubes = 0;
    for (double v : out) {
      double z = (v - mu) / sigma;
      sum += z;
      squares += z * z;
      cubes += z * z * z;
    }
    EXPECT_NEAR(sum / n, 0, 0.02);
    EXPECT_NEAR(squares / n, 1, 0.02);
    EXPECT_NEAR(cubes / n, 0, 0.06);
  }
  float f = 0;
  std::array<uint64_t, 2> counter = {0, 0};
  EXPECT_EQ(RngNormal(ElementType::S32, counter, 1, &f, &f, &f, nullptr).code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace strop::cpu
