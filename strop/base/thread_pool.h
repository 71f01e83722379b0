// ThreadPool: fork-join parallelism for kernels, and a queue for loose closures.
//
//   pool.ParallelFor(num_tasks, [&](int64_t task) { ... });
//
// The caller names the tasks and takes part in them; threads only decide who runs which task, so a kernel whose tasks
// do not depend on the number of threads gives the same bits on any machine. A thread that waits for work, or for the
// end of a job, looks out for it as long as it would take to wake it (lookout.h), and then sleeps. A call from inside a
// task runs inline. A pool of one thread creates no thread at all.
//
// How: a job lives on its caller's stack and is linked into the pool's list; workers claim runs of tasks (claims.h);
// one that joins wakes the next (a tree, so that the caller pays for two wake-ups at most). Nothing is allocated. Tasks
// must not throw.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace strop {

class ThreadPool {
 public:
  // `num_threads` counts the caller: a pool of n has n-1 workers. Less than 1 is taken as 1.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();  // waits for queued closures; must not run inside a task
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The process-wide pool, made at first use with DefaultSize() threads. Never destroyed. After fork() the child's
  // copy has no workers and runs everything inline.
  static ThreadPool& Default();
  // The option num_threads (STROP_NUM_THREADS) if positive, else UsableCpus().
  static int DefaultSize();
  // The process-wide pool of so many threads, the caller's included, made at first use and never destroyed: Default()
  // for 0 and for DefaultSize().
  static ThreadPool& OfSize(int num_threads);

  int num_threads() const { return num_threads_; }

  // fn(task) for every task in [0, num_tasks). Returns when all have run.
  template <class Fn>
  void ParallelFor(int64_t num_tasks, Fn&& fn) {
    ParallelForRuns(num_tasks, [&fn](int64_t begin, int64_t end, int) {
      for (int64_t task = begin; task < end; ++task) fn(task);
    });
  }
  // fn(begin, end, participant): runs of consecutive tasks; `participant` in [0, num_threads()) is the thread's number
  // within this job, for scratch memory. Runs that one participant gets are sequential.
  template <class Fn>
  void ParallelForRuns(int64_t num_tasks, Fn&& fn) {
    using Callable = std::remove_reference_t<Fn>;
    RunJob(num_tasks, const_cast<void*>(static_cast<const void*>(std::addressof(fn))),
           [](void* f, int64_t begin, int64_t end, int participant) {
             (*static_cast<Callable*>(f))(begin, end, participant);
           });
  }

  // Runs `closure` on a worker some time later; inline, before returning, in a pool of one thread.
  void Schedule(std::function<void()> closure);

  // True on a thread that is inside a task of any pool: parallel calls from there run inline.
  static bool InTask();

 private:
  using RunFn = void (*)(void* fn, int64_t begin, int64_t end, int participant);
  void RunJob(int64_t num_tasks, void* fn, RunFn run);

  struct Impl;
  int num_threads_;
  std::unique_ptr<Impl> impl_;  // null when there are no workers
};

}  // namespace strop
