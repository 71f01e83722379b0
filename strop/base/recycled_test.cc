#include "strop/base/recycled.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace strop {
namespace {

struct Small final : Recycled<Small> {
  int64_t values[5] = {1, 2, 3, 4, 5};
};

using Many = std::vector<std::unique_ptr<Small>>;

Many MakeMany(size_t n) {
  Many made(n);
  for (auto& small : made) small = std::make_unique<Small>();
  return made;
}

TEST(Recycled, GivesMemoryOutAgain) {
  if (!STROP_RECYCLES) GTEST_SKIP() << "sanitizers see each object's own memory";
  const void* first = std::make_unique<Small>().get();
  const auto again = std::make_unique<Small>();
  EXPECT_EQ(again.get(), first);
  EXPECT_EQ(again->values[4], 5);
}

// More than a thread keeps, all alive at once, each with memory of its own.
TEST(Recycled, KeepsSome) {
  for (int turn = 0; turn < 3; ++turn) {
    const Many made = MakeMany(1000);
    std::set<const void*> places;
    for (const auto& small : made) places.insert(small.get());
    EXPECT_EQ(places.size(), made.size());
  }
}

// Made on one thread, destroyed on others that end, and after their thread's kept objects are gone.
TEST(Recycled, CrossesThreads) {
  for (int turn = 0; turn < 20; ++turn) {
    Many made = MakeMany(300);
    std::thread([gone = std::move(made)]() mutable {
      gone.clear();
      static thread_local Many until_the_end;
      until_the_end = MakeMany(10);
    }).join();
  }
}

}  // namespace
}  // namespace strop
