// Plain data as bytes and back, and the hash of large runs of bytes.
#include "strop/base/archive.h"

#include <gtest/gtest.h>

#include <vector>

#include "strop/base/content_hash.h"
#include "strop/base/mutator.h"

namespace strop {

enum class Colour : uint8_t { kRed, kGreen };

struct Point {
  int64_t x = 0;
  std::string name;
  Colour colour = Colour::kRed;
  bool big = false;
  std::vector<std::pair<int32_t, int32_t>> pairs;
};
template <class Archive>
void Fields(Archive& a, Point& p) {
  a(p.x, p.name, p.big, p.pairs);
  a.Enum(p.colour, Colour::kGreen);
}

namespace {

std::string Written() {
  ByteWriter out;
  out(std::vector<Point>{{-7, "left", Colour::kGreen, true, {{1, 2}, {3, 4}}}, {}}, uint16_t{9});
  return out.Take();
}

TEST(Archive, GivesBackWhatWasWritten) {
  const std::string bytes = Written();
  ByteReader in(bytes);
  std::vector<Point> points;
  uint16_t nine = 0;
  in(points, nine);
  ASSERT_TRUE(in.Finish("points").ok());
  ASSERT_EQ(points.size(), 2u);
  EXPECT_EQ(points[0].x, -7);
  EXPECT_EQ(points[0].name, "left");
  EXPECT_EQ(points[0].colour, Colour::kGreen);
  EXPECT_TRUE(points[0].big);
  EXPECT_EQ(points[0].pairs[1].second, 4);
  EXPECT_EQ(nine, 9);
}

TEST(Archive, RefusesWhatIsTooShortTooLongOrOutOfRange) {
  const std::string bytes = Written();
  for (size_t size = 0; size < bytes.size(); ++size) {
    ByteReader in(std::string_view(bytes).substr(0, size));
    std::vector<Point> points;
    uint16_t nine;
    in(points, nine);
    EXPECT_NE(in.Finish("points").message().find("where points should be"), std::string::npos);
  }
  ByteReader in(bytes);
  uint16_t first;
  in(first);
  EXPECT_NE(in.Finish("a number").message().find("too many after a number"), std::string::npos);
  ByteReader third("\x02");
  Colour colour = Colour::kGreen;
  third.Enum(colour, Colour::kGreen);
  EXPECT_TRUE(third.failed());
}

// A count that bytes only claim allocates nothing.
TEST(Archive, MutatedBytes) {
  const std::string bytes = Written();
  Mutator mutate;
  for (int n = 0; n < 20000; ++n) {
    const std::string bad = mutate(bytes);
    ByteReader in(bad);
    std::vector<Point> points;
    uint16_t nine;
    in(points, nine);
    EXPECT_LE(points.size(), bad.size());
  }
}

// Values of the reference implementation.
TEST(ContentHash, KnownValues) {
  EXPECT_EQ(ContentHash(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(ContentHash("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(ContentHash("abc"), 0x44BC2CF5AD770999u);
  EXPECT_EQ(ContentHash("Nobody inspects the spammish repetition"), 0xFBCEA83C8A378BF1u);
}

}  // namespace
}  // namespace strop
