// The one way in which kernels use threads: fixed tasks over an optional pool.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/base/thread_pool.h"

namespace strop::cpu {

// fn(task) for every task in [0, num_tasks).
template <class Fn>
void ForEachTask(ThreadPool* pool, int64_t num_tasks, Fn&& fn) {
  if (pool && num_tasks > 1) {
    pool->ParallelFor(num_tasks, fn);
  } else {
    for (int64_t task = 0; task < num_tasks; ++task) fn(task);
  }
}

// fn(begin, end) over [0, n) in pieces of `grain`, whatever the number of threads.
template <class Fn>
void ForEachPiece(ThreadPool* pool, int64_t n, int64_t grain, Fn&& fn) {
  ForEachTask(pool, (n + grain - 1) / grain, [&](int64_t task) { fn(task * grain, std::min(n, (task + 1) * grain)); });
}

}  // namespace strop::cpu
