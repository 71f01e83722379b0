#include "strop/base/status.h"

#include <gtest/gtest.h>

namespace strop {
namespace {

Result<int> Half(int v) {
  if (v % 2) return InvalidArgument("half: ", v, " is odd");
  return v / 2;
}
Result<int> Quarter(int v) {
  STROP_ASSIGN(int half, Half(v));
  return Half(half);
}

TEST(Status, ResultPropagates) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status().message(), "half: 3 is odd");
}

TEST(Status, FirstLocationWinsAndNotesAccumulate) {
  Status s = InvalidArgument("bad").At("a.py:3").At("b.py:4").Note("while testing");
  EXPECT_EQ(s.ToString(), "InvalidArgument: bad [at a.py:3]\n  note: while testing");
  EXPECT_EQ(OkStatus().ToString(), "Ok");
}

TEST(Strings, EscapesRoundTrip) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(CUnescape(CEscape(all)), all);
  EXPECT_EQ(CUnescape("\\"), std::nullopt);
  EXPECT_EQ(CUnescape("\\q"), std::nullopt);
}

TEST(Strings, NearestFindsTypos) {
  EXPECT_EQ(Nearest("tanspose", {"transpose", "reshape"}), "transpose");
  EXPECT_EQ(Nearest("zzz", {"transpose", "reshape"}), "");
}

}  // namespace
}  // namespace strop
