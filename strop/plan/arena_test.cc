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

bool Apart(const Graph& g, const Group& group, int64_t begin, int64_t end) {
  return group.offset >= end || group.offset + g.values[group.values[0]].size <= begin;
}

TEST(Arena, ScratchMemoryLiesInGapsOrBehind) {
  std::mt19937 random(2);
  int64_t gaps = 0;
  for (int n = 0; n < 50; ++n) {
    Graph g;
    for (int k = 0; k < 60; ++k) {
      const int64_t begin = static_cast<int64_t>(random() % 100), size = 64 * (1 + static_cast<int64_t>(random() % 16));
      AddValue(g, size, begin, begin + static_cast<int64_t>(random() % 20));
    }
    for (int k = 0; k < 30; ++k) {
      ProtoStep step;
      step.is_kernel = k % 4 != 0;
      if (!step.is_kernel) step.region = std::make_shared<Region>();
      step.position = static_cast<int64_t>(random() % 120);
      step.first_position = step.is_kernel ? 0 : step.position - static_cast<int64_t>(random() % 20);
      g.steps.push_back(std::move(step));
    }
    const int64_t bytes = AssignArena(g, 64);
    FindScratch(g);
    for (const ProtoStep& step : g.steps) {
      const auto [behind, gap_at, gap_bytes] = step.scratch;
      const int64_t first = step.is_kernel ? step.position : step.first_position;
      int64_t most = 0;
      for (const Group& group : g.groups) {
        const Value& v = g.values[group.values[0]];
        if (v.end < first || v.begin > step.position) continue;
        most = std::max(most, group.offset + v.size);
        EXPECT_TRUE(Apart(g, group, gap_at, gap_at + gap_bytes)) << step.position;
      }
      EXPECT_GE(behind, most);
      EXPECT_LE(behind, bytes);
      if (step.is_kernel) EXPECT_EQ(behind, most);
      EXPECT_LE(gap_at + gap_bytes, most);
      gaps += gap_bytes > 0;
    }
  }
  EXPECT_GT(gaps, 500);
}

}  // namespace
}  // namespace strop::plan_internal
