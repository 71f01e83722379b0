#include "strop/runtime/launch_habit.h"

#include <gtest/gtest.h>

namespace strop {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// How many of `launches` run on the caller's thread, if each takes `run` and the caller goes on for `gone_on`.
int Inline(LaunchHabit& habit, int launches, LaunchHabit::Duration run, LaunchHabit::Duration gone_on) {
  int taken = 0;
  for (int i = 0; i < launches; ++i) {
    if (habit.TakeInline()) {
      ++taken;
      habit.SawInline(run);
    } else {
      habit.SawQueued(run, gone_on);
    }
  }
  return taken;
}

TEST(LaunchHabit, BriefRunsStayWithTheirCaller) {
  LaunchHabit habit;
  EXPECT_EQ(Inline(habit, 1000, microseconds(20), milliseconds(1)), 999);
}

TEST(LaunchHabit, WhoWaitsAtOnceRunsThem) {
  LaunchHabit habit;
  EXPECT_EQ(Inline(habit, 2, milliseconds(5), microseconds(8)), 0);
  EXPECT_EQ(Inline(habit, 33, milliseconds(5), microseconds(8)), 32);
}

TEST(LaunchHabit, WhoGoesOnUsesTheQueue) {
  LaunchHabit habit;
  EXPECT_EQ(Inline(habit, 100, milliseconds(5), milliseconds(1)), 0);
  for (int i = 0; i < 10; ++i) {  // the last of some is waited for
    EXPECT_EQ(Inline(habit, 5, milliseconds(5), milliseconds(1)), 0);
    EXPECT_EQ(Inline(habit, 1, milliseconds(5), microseconds(8)), 0);
  }
}

TEST(LaunchHabit, IsGivenUp) {
  LaunchHabit habit;
  EXPECT_EQ(Inline(habit, 35, milliseconds(5), microseconds(8)), 32);
  EXPECT_LE(Inline(habit, 1000, milliseconds(5), milliseconds(5)), 32);
}

TEST(LaunchHabit, LongRunsUseTheQueue) {
  LaunchHabit habit;
  EXPECT_EQ(Inline(habit, 100, milliseconds(500), microseconds(8)), 0);
}

}  // namespace
}  // namespace strop
