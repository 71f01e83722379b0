#include "strop/cpu/kernels/sort.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "strop/cpu/kernels/merge_sort.h"
#include "strop/cpu/kernels/partition_sort.h"
#include "strop/cpu/kernels/short_sort.h"
#include "strop/cpu/kernels/top_k.h"

namespace strop::cpu {
namespace {

// Elements of any type, with many ties and all special values.
std::vector<uint8_t> RandomElements(ElementType type, int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<uint8_t> bytes(n * Bytes(type));
  for (int64_t i = 0; i < n; ++i) {
    uint8_t* p = bytes.data() + i * Bytes(type);
    if (IsFloat(type) && Bytes(type) >= 4) {
      static constexpr float kSpecial[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 1e-42f, -1e-42f};
      float f =
          random() % 4 ? static_cast<float>(static_cast<int32_t>(random() % 2001) - 1000) : kSpecial[random() % 8];
      double d = f;
      if (type == ElementType::F32)
        std::memcpy(p, &f, 4);
      else
        std::memcpy(p, &d, 8);
    } else {
      uint64_t bits = random() | uint64_t{random()} << 32;
      if (IsPred(type)) bits &= 1;
      if (IsSubByte(type))
        bits = IsSigned(type) ? bits % (1 << Bits(type)) - (1 << (Bits(type) - 1)) : bits % (1 << Bits(type));
      std::memcpy(p, &bits, Bytes(type));
    }
  }
  return bytes;
}

double Value(ElementType type, const uint8_t* p);

// NaNs with different payloads have an order among themselves in total order, which Value() does not show.
void ClearSmallNans(ElementType type, std::vector<uint8_t>& bytes) {
  const size_t width = static_cast<size_t>(Bytes(type));
  for (size_t at = 0; width <= 2 && at < bytes.size(); at += width)
    if (std::isnan(Value(type, &bytes[at]))) std::memset(&bytes[at], 0, width);
}

double Value(ElementType type, const uint8_t* p) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, Bytes(type));
  if (type == ElementType::F32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (type == ElementType::F64) return std::bit_cast<double>(bits);
  if (IsFloat(type)) return DecodeFloat(type, bits & ((uint64_t{1} << Bits(type)) - 1));
  int unused = 64 - 8 * Bytes(type);
  return IsSigned(type) ? static_cast<double>(static_cast<int64_t>(bits << unused) >> unused)
                        : static_cast<double>(bits);
}

// The order as the header states it, from values and signs. (Integers of 64 bits compare as double here: the random
// ones differ by far more than its precision.)
bool Before(ElementType type, KeyOrder order, bool descending, const uint8_t* a, const uint8_t* b) {
  double x = Value(type, a), y = Value(type, b);
  bool nan_x = std::isnan(x), nan_y = std::isnan(y);
  if (order == KeyOrder::kIeee && (nan_x || nan_y)) return !nan_x && nan_y;
  if (descending) {
    std::swap(x, y);
    std::swap(nan_x, nan_y);
  }
  if (order == KeyOrder::kTotal) {
    auto rank = [](double v) {
      return std::isnan(v) ? (std::signbit(v) ? -2 : 2) : std::isinf(v) ? (v < 0 ? -1 : 1) : 0;
    };
    if (rank(x) != rank(y)) return rank(x) < rank(y);
    if (x == 0 && y == 0) return std::signbit(x) && !std::signbit(y);
    return x < y;
  }
  if (nan_x || nan_y) return !nan_x && nan_y;
  return x < y;
}

constexpr ElementType kKeyTypes[] = {
    ElementType::Pred,     ElementType::S8,        ElementType::U8,  ElementType::S4,  ElementType::S16,
    ElementType::U16,      ElementType::S32,       ElementType::U32, ElementType::S64, ElementType::U64,
    ElementType::F16,      ElementType::BF16,      ElementType::F32, ElementType::F64, ElementType::F8E5M2,
    ElementType::F8E4M3FN, ElementType::F8E4M3FNUZ};

// Sorts [outer][n][inner] of a type together with its positions and compares with std::stable_sort.
void CheckSort(ElementType type, KeyOrder order, bool descending, SortShape shape, ThreadPool* pool) {
  int64_t total = shape.outer * shape.n * shape.inner, bytes = Bytes(type);
  std::vector<uint8_t> keys = RandomElements(type, total, static_cast<uint32_t>(total) + 7);
  if (order == KeyOrder::kTotal) ClearSmallNans(type, keys);
  std::vector<uint8_t> alone = keys, together = keys;
  std::vector<int64_t> positions(total);
  std::iota(positions.begin(), positions.end(), 0);
  std::vector<uint8_t> expected(keys.size());
  std::vector<int64_t> expected_positions(total);
  for (int64_t o = 0; o < shape.outer; ++o) {
    for (int64_t i = 0; i < shape.inner; ++i) {
      std::vector<int64_t> at(shape.n);
      for (int64_t r = 0; r < shape.n; ++r) at[r] = (o * shape.n + r) * shape.inner + i;
      std::vector<int64_t> sorted = at;
      std::stable_sort(sorted.begin(), sorted.end(), [&](int64_t a, int64_t b) {
        return Before(type, order, descending, &keys[a * bytes], &keys[b * bytes]);
      });
      for (int64_t r = 0; r < shape.n; ++r) {
        std::memcpy(&expected[at[r] * bytes], &keys[sorted[r] * bytes], bytes);
        expected_positions[at[r]] = sorted[r];
      }
    }
  }
  std::string what = StrCat(Name(type), " order ", order, descending ? " descending " : " ", shape.outer, "x", shape.n,
                            "x", shape.inner);
  SortOperand one[] = {{alone.data(), bytes}};
  SortKey key{.operand = 0, .type = type, .order = order, .descending = descending};
  ASSERT_TRUE(SortByKey(shape, one, key, pool).ok()) << what;
  EXPECT_TRUE(alone == expected) << what;
  SortOperand two[] = {{positions.data(), 8}, {together.data(), bytes}};
  key.operand = 1;
  ASSERT_TRUE(SortByKey(shape, two, key, pool).ok()) << what;
  EXPECT_TRUE(together == expected) << what;
  EXPECT_TRUE(positions == expected_positions) << what;
}

TEST(SortByKey, AllTypesAndOrders) {
  for (ElementType type : kKeyTypes) {
    for (KeyOrder order : {KeyOrder::kIeee, KeyOrder::kTotal, KeyOrder::kNumpy}) {
      for (bool descending : {false, true}) {
        CheckSort(type, order, descending, {2, 37, 3}, nullptr);
        CheckSort(type, order, descending, {1, 3000, 1}, nullptr);
      }
    }
  }
}

TEST(SortByKey, ShapesAndThreads) {
  ThreadPool pool(3);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    for (SortShape shape : {SortShape{1, 1, 1},
                            {0, 5, 1},
                            {3, 0, 2},
                            {5, 2, 1},
                            {100, 100, 1},
                            {7, 1000, 20},
                            {1, 32771, 3},
                            {1, 400000, 1},
                            {1, 262144, 2},
                            {1, 2, 50}}) {
      CheckSort(ElementType::F32, KeyOrder::kNumpy, false, shape, threads);
      if (shape.n >= 100000) continue;
      CheckSort(ElementType::S64, KeyOrder::kIeee, true, shape, threads);
      CheckSort(ElementType::BF16, KeyOrder::kTotal, false, shape, threads);
    }
  }
}

// A line a lane: blocks of all lines, of some and of few, whose lines may belong to several outer indices.
TEST(SortByKey, ShortLines) {
  for (ElementType type : kKeyTypes)
    for (KeyOrder order : {KeyOrder::kIeee, KeyOrder::kTotal, KeyOrder::kNumpy})
      for (SortShape shape :
           {SortShape{3, 4, 1}, {4, 2, 1}, {9, 3, 1}, {75, 5, 1}, {13, 7, 3}, {1, 16, 70}, {2, 64, 33}}) {
        CheckSort(type, order, false, shape, nullptr);
        CheckSort(type, order, true, shape, nullptr);
      }
  ThreadPool pool(3);
  CheckSort(ElementType::F32, KeyOrder::kNumpy, false, {20000, 3, 1}, &pool);
  CheckSort(ElementType::U8, KeyOrder::kIeee, true, {3000, 31, 1}, &pool);
}

TEST(SortByKey, ShortLinesOfManyOperands) {
  constexpr int64_t kLines = 45, kLength = 6, kTotal = kLines * kLength;
  std::mt19937 random(3);
  std::vector<uint8_t> bytes(kTotal);
  std::vector<uint16_t> keys(kTotal), halves(kTotal);
  std::vector<int32_t> words(kTotal);
  std::vector<WideItem> pairs(kTotal);
  for (int64_t i = 0; i < kTotal; ++i) {
    keys[i] = random() % 4;
    bytes[i] = static_cast<uint8_t>(i * 3), halves[i] = static_cast<uint16_t>(i * 5),
    words[i] = static_cast<int32_t>(-i);
    pairs[i] = {static_cast<uint64_t>(i), ~static_cast<uint64_t>(i)};
  }
  const std::vector<uint16_t> old = keys;
  SortOperand operands[] = {
      {bytes.data(), 1}, {halves.data(), 2}, {keys.data(), 2}, {words.data(), 4}, {pairs.data(), 16}};
  ASSERT_TRUE(SortByKey({kLines, kLength, 1}, operands, {.operand = 2, .type = ElementType::S16}, nullptr).ok());
  for (int64_t line = 0; line < kLines; ++line) {
    std::vector<int64_t> order(kLength);
    std::iota(order.begin(), order.end(), line * kLength);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return old[a] < old[b]; });
    for (int64_t r = 0; r < kLength; ++r) {
      const int64_t from = order[r], to = line * kLength + r;
      ASSERT_EQ(keys[to], old[from]);
      ASSERT_EQ(bytes[to], static_cast<uint8_t>(from * 3));
      ASSERT_EQ(halves[to], static_cast<uint16_t>(from * 5));
      ASSERT_EQ(words[to], -from);
      ASSERT_EQ(pairs[to].key, static_cast<uint64_t>(from));
      ASSERT_EQ(pairs[to].position, ~static_cast<uint64_t>(from));
    }
  }
}

TEST(ShortSort, Network) {
  uint8_t rows[kShortLine][kShortLines] = {};
  for (int64_t n = 0; n <= 14; ++n)
    for (int code = 0; code < 1 << n; code += kShortLines) {
      for (int64_t r = 0; r < n; ++r)
        for (int l = 0; l < kShortLines; ++l) rows[r][l] = (code + l) >> r & 1;
      SortRows<kShortLines>(rows, n);
      for (int64_t r = 1; r < n; ++r)
        for (int l = 0; l < kShortLines; ++l) ASSERT_LE(rows[r - 1][l], rows[r][l]) << n << " " << code + l;
    }
  std::mt19937 random(4);
  for (int64_t n = 2; n <= kShortLine; ++n)
    for (int trial = 0; trial < 20; ++trial) {
      for (int64_t r = 0; r < n; ++r)
        for (int l = 0; l < kShortLines; ++l) rows[r][l] = static_cast<uint8_t>(random());
      SortRows<kShortLines>(rows, n);
      for (int64_t r = 1; r < n; ++r)
        for (int l = 0; l < kShortLines; ++l) ASSERT_LE(rows[r - 1][l], rows[r][l]) << n;
    }
}

// Zeros and ones in every order tell whether a network of minima and maxima sorts anything.
TEST(MergeSort, Network) {
  for (int64_t n = 0; n <= kNetworkItems; ++n)
    for (int code = 0; code < 1 << n; ++code) {
      std::vector<uint16_t> items(static_cast<size_t>(n)), sorted(items);
      for (int64_t i = 0; i < n; ++i) items[static_cast<size_t>(i)] = code >> i & 1;
      SortByNetwork(items.data(), sorted.data(), n);
      std::sort(items.begin(), items.end());
      EXPECT_TRUE(sorted == items) << n << " " << code;
    }
}

template <class Item, class Make>
void CheckMergeSort(const Make& make) {
  std::mt19937_64 random(5);
  for (int64_t n = 0; n <= 1100; n += n < 70 ? 1 : 37) {
    std::vector<Item> items(static_cast<size_t>(n)), spare(items);
    for (size_t i = 0; i < items.size(); ++i) items[i] = make(random(), i);
    std::vector<Item> expected = items;
    std::stable_sort(expected.begin(), expected.end());
    MergeSort(items.data(), spare.data(), n);
    EXPECT_TRUE(n == 0 || std::memcmp(items.data(), expected.data(), expected.size() * sizeof(Item)) == 0) << n;
  }
}

TEST(MergeSort, AgreesWithTheLibrary) {
  CheckMergeSort<uint8_t>([](uint64_t bits, size_t) { return static_cast<uint8_t>(bits); });
  CheckMergeSort<uint16_t>([](uint64_t bits, size_t) { return static_cast<uint16_t>(bits | 0xff00); });
  CheckMergeSort<uint32_t>([](uint64_t bits, size_t) { return static_cast<uint32_t>(bits); });
  CheckMergeSort<uint64_t>([](uint64_t bits, size_t) { return bits; });
  CheckMergeSort<WideItem>([](uint64_t bits, size_t i) { return WideItem{bits % 5 - 2, i}; });
}

// The other operand's elements, and not positions, go with the keys.
TEST(SortByKey, Pairs) {
  ThreadPool pool(2);
  std::mt19937 random(5);
  for (bool specials : {false, true}) {
    for (SortShape shape : {SortShape{3, 700, 1}, {2, 600, 5}, {1, 40000, 1}, {1, 33000, 2}}) {
      for (size_t of_key : {0, 1}) {
        const int64_t total = shape.outer * shape.n * shape.inner;
        std::vector<float> keys(total);
        std::vector<int32_t> values(total);
        std::vector<uint16_t> short_values(total);
        for (int64_t i = 0; i < total; ++i) {
          keys[i] = static_cast<float>(random() % 200) - 99.5f;
          if (specials && random() % 50 == 0) keys[i] = random() % 2 ? -0.0f : NAN;
          values[i] = static_cast<int32_t>(i) - 1000;
          short_values[i] = static_cast<uint16_t>(i * 7);
        }
        std::vector<float> want = keys, again = keys;
        std::vector<int32_t> want_values = values;
        std::vector<uint16_t> want_short = short_values;
        for (int64_t line = 0; line < shape.outer * shape.inner; ++line) {
          const auto at = [&](int64_t r) {
            return (line / shape.inner * shape.n + r) * shape.inner + line % shape.inner;
          };
          std::vector<int64_t> order(shape.n);
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
            const float x = keys[at(a)], y = keys[at(b)];
            return std::isnan(y) ? !std::isnan(x) : x < y;
          });
          for (int64_t r = 0; r < shape.n; ++r) {
            want[at(r)] = keys[at(order[r])];
            want_values[at(r)] = values[at(order[r])];
            want_short[at(r)] = short_values[at(order[r])];
          }
        }
        const SortKey key{.operand = static_cast<int64_t>(of_key), .order = KeyOrder::kNumpy};
        SortOperand operands[2], short_operands[2];
        operands[of_key] = {keys.data(), 4}, operands[1 - of_key] = {values.data(), 4};
        short_operands[of_key] = {again.data(), 4}, short_operands[1 - of_key] = {short_values.data(), 2};
        ASSERT_TRUE(SortByKey(shape, operands, key, &pool).ok());
        ASSERT_TRUE(SortByKey(shape, short_operands, key, nullptr).ok());
        EXPECT_EQ(std::memcmp(keys.data(), want.data(), total * sizeof(float)), 0);
        EXPECT_EQ(std::memcmp(again.data(), want.data(), total * sizeof(float)), 0);
        EXPECT_EQ(values, want_values);
        EXPECT_EQ(short_values, want_short);
      }
    }
  }
}

TEST(SortByKey, KeysWithoutSpecialsAlone) {
  ThreadPool pool(2);
  std::mt19937 random(1);
  for (int64_t n : {10, 1000, 20000, 300000, 1100000}) {
    std::vector<float> v(n);
    for (float& f : v) f = static_cast<float>(random() % 1000) - 500.5f;
    std::vector<float> expected = v;
    std::sort(expected.begin(), expected.end(), std::greater<>());
    SortOperand operand[] = {{v.data(), 4}};
    ASSERT_TRUE(SortByKey({1, n, 1}, operand, {.order = KeyOrder::kNumpy, .descending = true}, &pool).ok());
    EXPECT_EQ(v, expected);
  }
}

// Keys that the two highest digits tell apart, or seem to: those that agree in these are put in order all the same.
TEST(SortByKey, SpreadOutKeys) {
  ThreadPool pool(2);
  std::mt19937 random(9);
  for (int64_t n : {600, 5000, 40000, 150000}) {
    for (int kind = 0; kind < 4; ++kind) {
      std::vector<uint32_t> keys(n), values(n);
      for (int64_t i = 0; i < n; ++i) {
        keys[i] = static_cast<uint32_t>(random());
        if (kind == 1) keys[i] &= ~uint32_t{0xfff};
        // A cluster that few samples fall into, in descending order below the digits that are looked at.
        if (kind == 2 && i % 5 == 1) keys[i] = 0x12345000u + static_cast<uint32_t>((n - i) & 0x3ff);
        if (kind == 3 && i % 7 == 1) keys[i] = static_cast<uint32_t>(i * 11);
        values[i] = static_cast<uint32_t>(i) * 3;
      }
      std::vector<int64_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return keys[a] < keys[b]; });
      for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
        std::vector<uint32_t> sorted = keys, with = values, alone = keys;
        SortOperand pair[] = {{sorted.data(), 4}, {with.data(), 4}}, one[] = {{alone.data(), 4}};
        ASSERT_TRUE(SortByKey({1, n, 1}, pair, {.type = ElementType::U32}, threads).ok());
        ASSERT_TRUE(SortByKey({1, n, 1}, one, {.type = ElementType::U32}, threads).ok());
        EXPECT_EQ(alone, sorted);
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(sorted[i], keys[order[i]]) << n << " " << kind << " " << i;
          ASSERT_EQ(with[i], values[order[i]]) << n << " " << kind << " " << i;
        }
      }
    }
  }
}

// Keys of every shape, in parts: groups of one digit that are dealt out again, twice over; of keys that are all equal;
// lines in order.
uint64_t ShapedKey(int kind, int64_t i, int64_t n, int bits, std::mt19937_64& random) {
  const uint64_t any = random() >> (64 - bits), high = any << (bits / 2);
  switch (kind) {
    case 0: return any;
    case 1: return 77;
    case 2: return random() % 2 ? any : uint64_t{5};
    case 3: return static_cast<uint64_t>(i) / 3;
    case 4: return static_cast<uint64_t>(n - i);
    case 5: return random() % 13;
    case 6: return random() % 8 ? random() % 50000 : high;  // nearly all in the lowest digit
    case 7: return random() % 8 ? 3 * (random() % 8 ? 100 + i % 4 : any % 60000) : any;  // and of it in one of that
    default: return any >> random() % bits;                                              // few of the highest digits
  }
}

template <class Item, int kShift, class Make>
void CheckPartitionSort(int key_bits, const Make& make) {
  ThreadPool two(2), three(3);
  std::mt19937_64 random(3);
  for (int kind = 0; kind < 9; ++kind) {
    for (int64_t n : {1, 2, 100, 5000, 70001, 400000}) {
      std::vector<Item> want(n);
      for (int64_t i = 0; i < n; ++i) want[i] = make(ShapedKey(kind, i, n, key_bits, random), i);
      const std::vector<Item> items = want;
      std::stable_sort(want.begin(), want.end(),
                       [](const Item& a, const Item& b) { return KeyOf(a, kShift) < KeyOf(b, kShift); });
      for (ThreadPool* pool : {static_cast<ThreadPool*>(nullptr), &two, &three}) {
        std::vector<Item> sorted = items, spare(n);
        PartitionSort<Item, kShift>(key_bits, pool)
            .Sort(sorted.data(), spare.data(), n, [to = sorted.data()](int64_t i, const Item& item) { to[i] = item; });
        ASSERT_EQ(std::memcmp(sorted.data(), want.data(), n * sizeof(Item)), 0) << kind << " " << n << " " << key_bits;
      }
    }
  }
}

TEST(PartitionSort, KeysOfEveryShape) {
  CheckPartitionSort<uint8_t, 0>(8, [](uint64_t key, int64_t) { return static_cast<uint8_t>(key); });
  CheckPartitionSort<uint16_t, 0>(16, [](uint64_t key, int64_t) { return static_cast<uint16_t>(key); });
  CheckPartitionSort<uint32_t, 0>(32, [](uint64_t key, int64_t) { return static_cast<uint32_t>(key); });
  CheckPartitionSort<uint64_t, 0>(64, [](uint64_t key, int64_t) { return key; });
  CheckPartitionSort<uint64_t, 32>(
      32, [](uint64_t key, int64_t i) { return key << 32 | static_cast<uint32_t>(i * 2654435761); });
  CheckPartitionSort<WideItem, 0>(64, [](uint64_t key, int64_t i) { return WideItem{key, static_cast<uint64_t>(i)}; });
}

// Zeros of both signs and NaNs of all kinds keep their order and their bits, alone and with others beside them.
TEST(SortByKey, TiedElementsKeepTheirOrder) {
  ThreadPool pool(2);
  std::mt19937 random(4);
  for (const SortShape shape : {SortShape{1, 100, 1}, {3, 1000, 1}, {2, 700, 5}, {1, 50000, 1}, {1, 34000, 2}}) {
    for (KeyOrder order : {KeyOrder::kNumpy, KeyOrder::kIeee}) {
      for (const bool descending : {false, true}) {
        const int64_t total = shape.outer * shape.n * shape.inner;
        std::vector<uint32_t> keys(total), values(total);
        for (int64_t i = 0; i < total; ++i) {
          switch (random() % 6) {
            case 0: keys[i] = random() % 2 ? 0x80000000u : 0; break;
            case 1: keys[i] = 0x7f800001u + random() % 1000 + (random() % 2 ? 0x80000000u : 0); break;
            default: keys[i] = std::bit_cast<uint32_t>(static_cast<float>(random() % 2001) - 1000); break;
          }
          values[i] = static_cast<uint32_t>(i);
        }
        std::vector<uint32_t> want = keys, want_values = values, alone = keys;
        for (int64_t line = 0; line < shape.outer * shape.inner; ++line) {
          const auto at = [&](int64_t r) {
            return (line / shape.inner * shape.n + r) * shape.inner + line % shape.inner;
          };
          std::vector<int64_t> from(shape.n);
          std::iota(from.begin(), from.end(), 0);
          std::stable_sort(from.begin(), from.end(), [&](int64_t a, int64_t b) {
            return Before(ElementType::F32, order, descending, reinterpret_cast<const uint8_t*>(&keys[at(a)]),
                          reinterpret_cast<const uint8_t*>(&keys[at(b)]));
          });
          for (int64_t r = 0; r < shape.n; ++r)
            want[at(r)] = keys[at(from[r])], want_values[at(r)] = values[at(from[r])];
        }
        const SortKey key{.order = order, .descending = descending};
        SortOperand pair[] = {{keys.data(), 4}, {values.data(), 4}}, one[] = {{alone.data(), 4}};
        ASSERT_TRUE(SortByKey(shape, pair, key, &pool).ok());
        ASSERT_TRUE(SortByKey(shape, one, key, &pool).ok());
        EXPECT_EQ(keys, want) << shape.n << " " << static_cast<int>(order) << " " << descending;
        EXPECT_EQ(alone, want) << shape.n << " " << static_cast<int>(order) << " " << descending;
        EXPECT_EQ(values, want_values) << shape.n << " " << static_cast<int>(order) << " " << descending;
      }
    }
  }
}

TEST(SortByKey, Refusals) {
  float f[2];
  SortOperand operand[] = {{f, 8}}, odd[] = {{f, 3}};
  EXPECT_EQ(SortByKey({1, 1, 1}, operand, {.type = ElementType::C64}, nullptr).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(SortByKey({1, 2, 1}, operand, {.type = ElementType::F32}, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SortByKey({1, 2, 1}, operand, {.operand = 1, .type = ElementType::F64}, nullptr).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(SortByKey({1, 2, 1}, odd, {}, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(SortByFunction({1, 2, 1}, operand, nullptr, nullptr, nullptr).code(), StatusCode::kInvalidArgument);
}

// Lexicographic by operand 0, then descending by operand 1.
bool TwoKeys(const void* const* pairs, void*) {
  int32_t a0 = *static_cast<const int32_t*>(pairs[0]), b0 = *static_cast<const int32_t*>(pairs[1]);
  double a1 = *static_cast<const double*>(pairs[2]), b1 = *static_cast<const double*>(pairs[3]);
  return a0 < b0 || (a0 == b0 && a1 > b1);
}

TEST(SortByFunction, TwoKeysStable) {
  ThreadPool pool(3);
  for (ThreadPool* threads : {static_cast<ThreadPool*>(nullptr), &pool}) {
    for (SortShape shape : {SortShape{3, 7, 2}, {1, 5, 1}, {2, 1000, 1}, {1, 50000, 1}, {1, 9000, 3}}) {
      int64_t total = shape.outer * shape.n * shape.inner;
      std::mt19937 random(3);
      std::vector<int32_t> a(total);
      std::vector<double> b(total);
      std::vector<uint8_t> c(total);
      for (int64_t i = 0; i < total; ++i) {
        a[i] = random() % 5;
        b[i] = random() % 7;
        c[i] = static_cast<uint8_t>(random());
      }
      std::vector<int32_t> a0 = a;
      std::vector<double> b0 = b;
      std::vector<uint8_t> c0 = c;
      SortOperand operands[] = {{a.data(), 4}, {b.data(), 8}, {c.data(), 1}};
      ASSERT_TRUE(SortByFunction(shape, operands, TwoKeys, nullptr, threads).ok());
      for (int64_t line = 0; line < shape.outer * shape.inner; ++line) {
        int64_t o = line / shape.inner, i = line % shape.inner;
        std::vector<int64_t> order(shape.n);
        for (int64_t r = 0; r < shape.n; ++r) order[r] = (o * shape.n + r) * shape.inner + i;
        std::vector<int64_t> sorted = order;
        std::stable_sort(sorted.begin(), sorted.end(),
                         [&](int64_t x, int64_t y) { return a0[x] < a0[y] || (a0[x] == a0[y] && b0[x] > b0[y]); });
        for (int64_t r = 0; r < shape.n; ++r) {
          ASSERT_EQ(a[order[r]], a0[sorted[r]]);
          ASSERT_EQ(b[order[r]], b0[sorted[r]]);
          ASSERT_EQ(c[order[r]], c0[sorted[r]]);
        }
      }
    }
  }
}

TEST(SortByFunction, ManyOperandsAndContradictions) {
  constexpr int64_t kLength = 20000;
  std::vector<std::vector<uint16_t>> data(12, std::vector<uint16_t>(kLength));
  std::vector<SortOperand> operands;
  for (auto& v : data) {
    std::iota(v.begin(), v.end(), 0);
    operands.push_back({v.data(), 2});
  }
  // "Always less" is no order; the result must still be a permutation, the same for all operands and thread counts.
  auto always = [](const void* const*, void*) { return true; };
  ThreadPool pool(3);
  ASSERT_TRUE(SortByFunction({1, kLength, 1}, operands, always, nullptr, &pool).ok());
  std::vector<uint16_t> threaded = data[0];
  for (auto& v : data) EXPECT_EQ(v, threaded);
  std::iota(data[0].begin(), data[0].end(), 0);
  ASSERT_TRUE(SortByFunction({1, kLength, 1}, std::span(operands).first(1), always, nullptr, nullptr).ok());
  EXPECT_EQ(data[0], threaded);
  std::sort(threaded.begin(), threaded.end());
  for (int64_t i = 0; i < kLength; ++i) ASSERT_EQ(threaded[i], i);
}

TEST(TopK, AgreesWithAStableSort) {
  ThreadPool pool(3);
  for (ElementType type : kKeyTypes) {
    for (bool largest : {true, false}) {
      for (auto [outer, n, k] : {std::array<int64_t, 3>{3, 50, 5},
                                 {1, 1000, 3},
                                 {2, 1000, 1000},
                                 {1, 7, 7},
                                 {2, 5000, 700},
                                 {1, 70000, 64},
                                 {2, 140000, 100},
                                 {1, 2 * 65536 + 700, 200},  // the last piece is sorted whole
                                 {3, 4096, 1},
                                 {3, 1031, 8},
                                 {38, 16, 2},  // a row a lane
                                 {5, 200, 8},
                                 {6, 300, 20},  // in pieces, what is no better left out
                                 {4, 129, 64},
                                 {7, 70, 17},
                                 {5, 1031, 3},
                                 {2, 200, 31},  // inserted
                                 {1, 256, 32},
                                 {3, 256, 1},
                                 {6, 5, 5},
                                 {30, 3, 1},
                                 {70, 20, 13},  // sorted, a row a lane
                                 {4, 64, 63},
                                 {3, 30, 20},
                                 {4, 9, 0},
                                 {0, 4, 2},
                                 {1, 1, 1}}) {
        if (!largest && n > 5000) continue;  // the same but for the sign of the keys
        int64_t bytes = Bytes(type);
        std::vector<uint8_t> input = RandomElements(type, outer * n, 11), values(outer * k * bytes);
        std::vector<int32_t> indices(outer * k);
        ClearSmallNans(type, input);
        ASSERT_TRUE(TopK(type, largest, outer, n, k, input.data(), values.data(), indices.data(), &pool).ok());
        for (int64_t o = 0; o < outer; ++o) {
          std::vector<int32_t> order(n);
          std::iota(order.begin(), order.end(), 0);
          auto element = [&](int32_t i) { return &input[(o * n + i) * bytes]; };
          std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
            return Before(type, KeyOrder::kTotal, largest, element(a), element(b));
          });
          for (int64_t j = 0; j < k; ++j) {
            ASSERT_EQ(indices[o * k + j], order[j]) << Name(type) << " n " << n << " k " << k << " j " << j;
            ASSERT_EQ(std::memcmp(&values[(o * k + j) * bytes], element(order[j]), bytes), 0);
          }
        }
      }
    }
  }
  float f = 0;
  int32_t i = 0;
  EXPECT_EQ(TopK(ElementType::F32, true, 1, 1, 2, &f, &f, &i, nullptr).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(TopK(ElementType::C64, true, 1, 1, 1, &f, &f, &i, nullptr).code(), StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace strop::cpu
