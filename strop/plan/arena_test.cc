// Offsets: nothing that is alive together overlaps, and gaps that an order leaves are closed by another.
#include <gtest/gtest.h>

#include <random>

#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

void AddValue(Graph& g, int64_t size, int64_t begin, int64_t end) {
  const int32_t v = g.NewValue(size, nullptr, begin, -1);
  g.values[v].end = end;
}

bool Overlap(const Graph& g, size_t a, size_t b) {
  const Value &x = g.values[a], &y = g.values[b];
  const int64_t at_x = g.groups[x.group].offset, at_y = g.groups[y.group].offset;
  return x.begin <= y.end && y.begin <= x.end && at_x < at_y + y.size && at_y < at_x + x.size;
}

// The first goes where the third will not fit; placed by size, they need no more than is alive.
TEST(Arena, ClosesGaps) {
  Graph g;
  AddValue(g, 64, 0, 1);
  AddValue(g, 64, 0, 3);
  AddValue(g, 128, 2, 3);
  EXPECT_EQ(AssignArena(g, 64), 192);
}

TEST(Arena, NothingOverlaps) {
  std::mt19937 random(1);
  for (int n = 0; n < 50; ++n) {
    Graph g;
    int64_t all = 0;
    for (int k = 0; k < 60; ++k) {
      const int64_t begin = static_cast<int64_t>(random() % 100), size = 1 + static_cast<int64_t>(random() % 1000);
      AddValue(g, size, begin, begin + static_cast<int64_t>(random() % 20));
      all += (size + 63) / 64 * 64;
    }
    const int64_t bytes = AssignArena(g, 64);
    EXPECT_LT(bytes, all);
    for (size_t a = 0; a < g.values.size(); ++a) {
      EXPECT_EQ(g.groups[g.values[a].group].offset % 64, 0);
      EXPECT_LE(g.groups[g.values[a].group].offset + g.values[a].size, bytes);
      for (size_t b = 0; b < a; ++b) EXPECT_FALSE(Overlap(g, a, b)) << a << " and " << b;
    }
  }
}

}  // namespace
}  // namespace strop::plan_internal
