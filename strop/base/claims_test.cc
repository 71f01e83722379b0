#include "strop/base/claims.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace strop {
namespace {

using Runs = std::vector<std::pair<int64_t, int64_t>>;

// Do the runs cover [0, tasks) once?
void ExpectWhole(Runs runs, int64_t tasks) {
  std::sort(runs.begin(), runs.end());
  int64_t next = 0;
  for (const auto& [begin, end] : runs) {
    ASSERT_EQ(begin, next);
    ASSERT_LT(begin, end);
    next = end;
  }
  EXPECT_EQ(next, tasks);
}

TEST(Claims, EachTaskOnce) {
  for (int threads : {1, 2, 3, 7, 16, 40})
    for (int64_t tasks : {0, 1, 2, 5, 16, 17, 1000}) {
      Claims claims(tasks, threads);
      std::mutex mutex;
      Runs runs;
      std::vector<std::thread> workers;
      for (int t = 0; t < threads; ++t)
        workers.emplace_back([&, t] {
          claims.Work(t, [&](int64_t begin, int64_t end) {
            std::lock_guard<std::mutex> lock(mutex);
            runs.emplace_back(begin, end);
          });
        });
      for (std::thread& worker : workers) worker.join();
      ExpectWhole(runs, tasks);
    }
}

// One thread does the work of all if no other comes: its own first, from the front.
TEST(Claims, OneDoesAll) {
  for (int thread : {0, 1, 2, 5}) {
    Claims claims(100, 3);
    Runs runs;
    claims.Work(thread, [&](int64_t begin, int64_t end) { runs.emplace_back(begin, end); });
    EXPECT_EQ(runs[0].first, 100 * (thread % 3) / 3);
    ExpectWhole(runs, 100);
    claims.Work(0, [](int64_t, int64_t) { FAIL() << "none is left"; });
  }
}

// Runs become shorter, so that whoever comes late finds some.
TEST(Claims, LongRunsFirst) {
  Claims claims(4096, 2);
  Runs runs;
  claims.Work(0, [&](int64_t begin, int64_t end) { runs.emplace_back(begin, end); });
  EXPECT_EQ(runs[0], (std::pair<int64_t, int64_t>(0, 512)));
  EXPECT_EQ(runs.back().second - runs.back().first, 1);
}

TEST(Claims, MoreThanThirtyTwoBits) {
  const int64_t tasks = (int64_t{1} << 40) + 7;
  Claims claims(tasks, 3);
  Runs runs;
  claims.Work(1, [&](int64_t begin, int64_t end) { runs.emplace_back(begin, end); });
  ExpectWhole(runs, tasks);
}

}  // namespace
}  // namespace strop
