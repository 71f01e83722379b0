// Tasks that threads share out among themselves: each claims a run of consecutive ones, a share of what is left (guided
// self-scheduling: Polychronopoulos and Kuck, 1987), long runs first and single tasks last, so that a thread that came
// late or was held up costs the length of a task.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace strop {

class Claims {
 public:
  Claims(int64_t tasks, int threads) : tasks_(tasks), shares_(int64_t{4} * threads) {}

  // fn(begin, end) for runs of tasks until all are claimed; other threads may still be at theirs.
  template <class Fn>
  void Work(const Fn& fn) {
    for (int64_t begin = next_.load(std::memory_order_relaxed); begin < tasks_;) {
      const int64_t end = begin + std::max<int64_t>(1, (tasks_ - begin) / shares_);
      if (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
      fn(begin, end);
      begin = next_.load(std::memory_order_relaxed);
    }
  }

 private:
  const int64_t tasks_, shares_;
  std::atomic<int64_t> next_{0};  // first task not claimed
};

}  // namespace strop
