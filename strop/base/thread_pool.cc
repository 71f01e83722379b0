#include "strop/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "strop/base/claims.h"
#include "strop/base/host_limits.h"
#include "strop/base/lookout.h"
#include "strop/base/options.h"

namespace strop {
namespace {

thread_local bool t_in_task = false;

class TaskScope {
 public:
  TaskScope() : before_(t_in_task) { t_in_task = true; }
  ~TaskScope() { t_in_task = before_; }

 private:
  bool before_;
};

// Counts the forks this process descends from since the first pool was made: a pool of another generation has no
// threads.
std::atomic<uint32_t>& ForkGeneration() {
  static std::atomic<uint32_t> generation{0};
  return generation;
}
void WatchForks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { ForkGeneration().fetch_add(1, std::memory_order_relaxed); });
  (void)registered;
}

struct Job {
  void* fn;
  void (*run)(void*, int64_t, int64_t, int);
  Claims claims;
  // The rest is guarded by the pool's mutex, but for a look at active_workers.
  int max_participants;
  int participants = 1;  // the caller is number 0
  std::atomic<int> active_workers{0};
  bool listed = false;
  Job* following = nullptr;
  std::condition_variable workers_left;

  void Work(int participant, int thread) {
    TaskScope scope;
    claims.Work(thread, [&](int64_t begin, int64_t end) { run(fn, begin, end, participant); });
  }
};

}  // namespace

struct ThreadPool::Impl {
  std::mutex mutex;
  std::condition_variable work_came;
  Job* jobs = nullptr;  // oldest first
  std::deque<std::function<void()>> closures;
  bool stopping = false;
  bool looks_out = true;                      // not where threads would take a processor from each other
  alignas(64) std::atomic<int64_t> calls{0};  // times that there was something to do: a change is worth a look
  uint32_t fork_generation = 0;
  std::vector<std::thread> workers;

  bool Forked() const { return fork_generation != ForkGeneration().load(std::memory_order_relaxed); }

  void Link(Job* job) {
    Job** end = &jobs;
    while (*end) end = &(*end)->following;
    *end = job;
    job->listed = true;
  }
  void Unlink(Job* job) {
    if (!job->listed) return;
    Job** at = &jobs;
    while (*at != job) at = &(*at)->following;
    *at = job->following;
    job->listed = false;
  }

  void WorkerLoop(int thread) {
    std::unique_lock<std::mutex> lock(mutex);
    const auto has_work = [&] { return jobs || !closures.empty() || stopping; };
    for (;;) {
      while (!has_work()) {
        const int64_t before = calls.load(std::memory_order_relaxed);
        lock.unlock();
        const bool called = looks_out && LookOut([&] { return calls.load(std::memory_order_relaxed) != before; });
        lock.lock();
        if (!called) work_came.wait(lock, has_work);
      }
      if (jobs) {
        Join(jobs, thread, lock);
      } else if (!closures.empty()) {
        std::function<void()> closure = std::move(closures.front());
        closures.pop_front();
        lock.unlock();
        closure();
        closure = nullptr;
        lock.lock();
      } else {
        return;
      }
    }
  }

  void Join(Job* job, int thread, std::unique_lock<std::mutex>& lock) {
    int participant = job->participants++;
    job->active_workers.fetch_add(1);
    if (job->participants >= job->max_participants)
      Unlink(job);
    else
      work_came.notify_one();  // the tree: each that joins wakes the next
    lock.unlock();
    job->Work(participant, thread);
    lock.lock();
    Unlink(job);  // no tasks are left
    // Under the lock: the job is on its caller's stack and is gone as soon as the caller sees zero.
    if (job->active_workers.fetch_sub(1) == 1) job->workers_left.notify_one();
  }
};

ThreadPool::ThreadPool(int num_threads) : num_threads_(std::max(1, num_threads)) {
  if (num_threads_ == 1) return;
  WatchForks();
  impl_ = std::make_unique<Impl>();
  impl_->fork_generation = ForkGeneration().load();
  impl_->looks_out = num_threads_ <= UsableCpus();
  impl_->workers.reserve(num_threads_ - 1);
  for (int i = 1; i < num_threads_; ++i) {
    try {
      impl_->workers.emplace_back([impl = impl_.get(), i] { impl->WorkerLoop(i); });
    } catch (const std::system_error&) {  // the system has no more threads: go on with those that are there
      break;
    }
  }
  num_threads_ = static_cast<int>(impl_->workers.size()) + 1;
  if (num_threads_ == 1) impl_.reset();
}

ThreadPool::~ThreadPool() {
  if (!impl_) return;
  if (impl_->Forked()) {  // the threads exist only in the parent: there is nothing to join
    for (std::thread& worker : impl_->workers) worker.detach();
    (void)impl_.release();
    return;
  }
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->stopping = true;
    impl_->calls.fetch_add(1, std::memory_order_relaxed);
  }
  impl_->work_came.notify_all();
  for (std::thread& worker : impl_->workers) worker.join();
}

void ThreadPool::RunJob(int64_t num_tasks, void* fn, RunFn run) {
  if (num_tasks <= 0) return;
  if (num_tasks == 1 || !impl_ || t_in_task || impl_->Forked()) {
    TaskScope scope;
    run(fn, 0, num_tasks, 0);
    return;
  }
  const int most = static_cast<int>(std::min<int64_t>(num_threads_, num_tasks));
  Job job{.fn = fn, .run = run, .claims = {num_tasks, most}, .max_participants = most};
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->Link(&job);
    impl_->calls.fetch_add(1, std::memory_order_relaxed);
  }
  impl_->work_came.notify_one();
  if (job.max_participants > 2) impl_->work_came.notify_one();
  job.Work(0, 0);
  if (impl_->looks_out) LookOut([&] { return job.active_workers.load(std::memory_order_relaxed) == 0; });
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->Unlink(&job);
  job.workers_left.wait(lock, [&] { return job.active_workers == 0; });
}

void ThreadPool::Schedule(std::function<void()> closure) {
  if (!impl_ || impl_->Forked()) {
    closure();
    return;
  }
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->closures.push_back(std::move(closure));
    impl_->calls.fetch_add(1, std::memory_order_relaxed);
  }
  impl_->work_came.notify_one();
}

bool ThreadPool::InTask() { return t_in_task; }

int ThreadPool::DefaultSize() {
  Result<Options> options =
      OptionsFromEnvironment();  // a malformed environment is refused where a client or program starts
  return options.ok() && options->num_threads > 0 ? static_cast<int>(options->num_threads) : UsableCpus();
}

ThreadPool& ThreadPool::Default() {
  static ThreadPool& pool = *new ThreadPool(DefaultSize());  // never destroyed: workers may outlive main()
  return pool;
}

ThreadPool& ThreadPool::OfSize(int num_threads) {
  if (num_threads <= 0 || num_threads == DefaultSize()) return Default();
  static std::mutex& mutex = *new std::mutex;
  static auto& pools = *new std::map<int, std::unique_ptr<ThreadPool>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<ThreadPool>& pool = pools[num_threads];
  if (!pool) pool = std::make_unique<ThreadPool>(num_threads);
  return *pool;
}

}  // namespace strop
