// LaunchHabit: whether a program's next execution runs on its caller's thread or on the device's launch queue.
//
// The queue lets the caller go on meanwhile, but costs a hand-over, and one thread more than there are processors while
// all of them compute. What pays depends on the caller: who waits for the results at once gains nothing by the queue.
// That is seen when an execution has ended: how long did the caller go on before somebody waited for it? Executions on
// the caller's thread do not show it, so that every so often one goes through the queue again. docs/adr/0016.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>

namespace strop {

class LaunchHabit {
 public:
  using Duration = std::chrono::nanoseconds;

  // Does the next one run on the caller's thread? Takes it off those of which that is believed.
  bool TakeInline() {
    int left = left_.load(std::memory_order_relaxed);
    if (left == 0) return false;
    left_.store(left - 1, std::memory_order_relaxed);  // of two callers at once one may be lost: it is a guess
    return true;
  }

  // One that ran on the caller's thread. However the caller behaves, it can have lost no more than this.
  void SawInline(Duration run) {
    if (run < kHandOver) left_.store(kBelieved, std::memory_order_relaxed);
  }

  // One that went through the queue, and `gone_on`: the time from its launch to when somebody waited, or to its end.
  void SawQueued(Duration run, Duration gone_on) {
    const Duration gained = std::min(run, gone_on);
    if (gained > std::max(kHandOver, run / 8) || run > kLong) {
      idle_waits_.store(0, std::memory_order_relaxed);
      return;
    }
    const int waits = idle_waits_.load(std::memory_order_relaxed) + 1;
    idle_waits_.store(std::min(waits, kWaits), std::memory_order_relaxed);
    if (waits >= kWaits || run < kHandOver) left_.store(kBelieved, std::memory_order_relaxed);
  }

 private:
  // What the queue costs: the hand-over, hearing of the end, and threads that take a processor from each other.
  static constexpr Duration kHandOver = std::chrono::microseconds(100);
  // Of such a run the hand-over is nothing.
  static constexpr Duration kLong = std::chrono::milliseconds(20);
  // In a row: the last of many executions is waited for at once whatever the caller does.
  static constexpr int kWaits = 2;
  // Between two that go through the queue to see what the caller does now.
  static constexpr int kBelieved = 32;

  std::atomic<int> left_{0}, idle_waits_{0};
};

}  // namespace strop
