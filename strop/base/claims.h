// Tasks that threads share out among themselves. Each thread has a home, a range of consecutive tasks: it claims runs
// of them from the front, a share of what is left (guided self-scheduling: Polychronopoulos and Kuck, 1987), long runs
// first and single tasks last, and then helps out at the end of other homes. So a thread that came late or was held up
// costs the length of a task, and what a thread wrote in one job, which the cache beside it still holds, is its own to
// read in the next one (affinity scheduling: Markatos and LeBlanc, 1994).
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>

namespace strop {

class Claims {
 public:
  // Tasks are cut into so many ranges of about equal length.
  static int HomesOf(int threads) { return std::clamp(threads, 1, kMostHomes); }

  Claims(int64_t tasks, int threads)
      : tasks_(tasks),
        unit_(tasks / (int64_t{1} << 31) + 1),
        homes_(HomesOf(threads)),
        shares_(4 * ((threads + homes_ - 1) / homes_)) {
    const int64_t units = (tasks + unit_ - 1) / unit_;
    for (int h = 0; h < homes_; ++h) {
      const uint64_t first = units * h / homes_, end = units * (h + 1) / homes_;
      left_[h].range.store(first << 32 | end, std::memory_order_relaxed);
    }
  }

  // fn(begin, end) for runs of tasks until all are claimed; other threads may still be at theirs. `thread` may be any
  // number from 0 on.
  template <class Fn>
  void Work(int thread, const Fn& fn) {
    const int home = thread % homes_;
    for (int h = home, visited = 0; visited < homes_; h = h + 1 == homes_ ? 0 : h + 1, ++visited) {
      std::atomic<uint64_t>& range = left_[h].range;
      for (uint64_t before = range.load(std::memory_order_relaxed);;) {
        int64_t first = static_cast<int64_t>(before >> 32), end = static_cast<int64_t>(before & 0xffffffff);
        if (first >= end) break;
        const int64_t count = std::max<int64_t>(1, (end - first) / shares_);
        const uint64_t after = h == home ? before + (static_cast<uint64_t>(count) << 32) : before - count;
        if (!range.compare_exchange_weak(before, after, std::memory_order_relaxed)) continue;
        if (h != home) first = end - count;
        fn(first * unit_, std::min(tasks_, (first + count) * unit_));
        before = range.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  static constexpr int kMostHomes = 16;
  struct alignas(64) Range {
    std::atomic<uint64_t> range;  // first task and end of those that nobody claimed, in units
  };

  const int64_t tasks_, unit_;  // a unit: tasks that are claimed together
  const int homes_;
  const int64_t shares_;
  Range left_[kMostHomes];
};

}  // namespace strop
