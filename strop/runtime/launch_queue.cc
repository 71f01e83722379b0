#include "strop/runtime/launch_queue.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "strop/base/host_limits.h"
#include "strop/base/lookout.h"

namespace strop {
namespace {

// How far a caller runs ahead of a queue: a burst of small programs is taken at once; of large ones two are enough for
// the queue never to wait for the caller, and what their results take stays in the caches.
constexpr int kMostUnderWay = 32;
constexpr int kEnoughUnderWay = 2;
constexpr int64_t kMostBytesUnderWay = int64_t{16} << 20;

}  // namespace

struct LaunchQueue::Impl : std::enable_shared_from_this<LaunchQueue::Impl> {
  std::mutex mutex;
  std::condition_variable work_came, idle, room;
  std::deque<std::function<void()>> ready;
  std::vector<std::thread> threads;
  int active = 0;     // threads that run a launch and are not blocked
  int blocked = 0;    // threads inside a BlockingScope
  int sleeping = 0;   // threads waiting for work_came
  int waking = 0;     // sleeping threads that were notified for a launch
  int under_way = 0;  // executions that have begun and not ended
  int64_t bytes_under_way = 0;
  int waiting_for_room = 0;
  bool stopping = false;
  const bool looks_out = UsableCpus() > 1;
  std::atomic<int64_t> calls{0};  // times that a thread was notified: a change is worth a look

  static thread_local Impl* t_current;  // the queue whose launch this thread runs
  static thread_local int t_depth;      // BlockingScopes on this thread

  // With the mutex held: has some thread take the next launch if the queue is free for it.
  void Dispatch(std::unique_lock<std::mutex>& lock) {
    if (ready.empty() || active + waking > 0) return;
    if (sleeping > waking) {
      ++waking;
      calls.fetch_add(1, std::memory_order_relaxed);
      work_came.notify_one();
      return;
    }
    try {
      threads.emplace_back([self = shared_from_this()] { self->Loop(); });
      ++waking;  // the new thread counts as woken: it starts by taking work
      ++sleeping;
    } catch (const std::system_error&) {
      RunNext(lock);  // the system has no more threads: this one does the work
    }
  }

  bool HasRoom(int most) const {
    const bool stands_still = active + waking == 0;  // what it waits for may be the caller
    return stands_still || under_way <= kEnoughUnderWay || (under_way <= most && bytes_under_way <= kMostBytesUnderWay);
  }
  void TellOfRoom() {
    if (waiting_for_room > 0) room.notify_all();
  }

  void RunNext(std::unique_lock<std::mutex>& lock) {
    std::function<void()> launch = std::move(ready.front());
    ready.pop_front();
    ++active;
    lock.unlock();
    Impl* outer = t_current;
    int depth = t_depth;
    t_current = this;
    t_depth = 0;
    launch();
    launch = nullptr;
    t_current = outer;
    t_depth = depth;
    lock.lock();
    --active;
    TellOfRoom();
    if (ready.empty() && active == 0 && blocked == 0) idle.notify_all();
  }

  void Loop() {
    std::unique_lock<std::mutex> lock(mutex);
    const auto called = [&] { return waking > 0 || stopping; };
    for (;;) {
      if (looks_out && !called()) {
        const int64_t before = calls.load(std::memory_order_relaxed);
        lock.unlock();
        LookOut([&] { return calls.load(std::memory_order_relaxed) != before; });
        lock.lock();
      }
      work_came.wait(lock, called);
      --sleeping;
      if (waking > 0) --waking;
      // One launch at a time: a thread that comes back from a blocked launch and finds another active goes to sleep.
      while (!ready.empty() && active == 0) RunNext(lock);
      ++sleeping;
      if (stopping && ready.empty()) return;
    }
  }
};

thread_local LaunchQueue::Impl* LaunchQueue::Impl::t_current = nullptr;
thread_local int LaunchQueue::Impl::t_depth = 0;

LaunchQueue::LaunchQueue() : impl_(std::make_shared<Impl>()) {}

LaunchQueue::~LaunchQueue() {
  Drain();
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(impl_->mutex);
    impl_->stopping = true;
    impl_->calls.fetch_add(1, std::memory_order_relaxed);
    threads.swap(impl_->threads);
  }
  impl_->work_came.notify_all();
  for (std::thread& thread : threads) {
    if (thread.get_id() == std::this_thread::get_id())
      thread.detach();  // destroyed from inside a launch
    else
      thread.join();
  }
}

void LaunchQueue::Enqueue(std::function<void()> launch) {
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->ready.push_back(std::move(launch));
  impl_->Dispatch(lock);
}

void LaunchQueue::Began(int64_t bytes) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  ++impl_->under_way;
  impl_->bytes_under_way += bytes;
}

void LaunchQueue::Ended(int64_t bytes) {
  std::lock_guard<std::mutex> lock(impl_->mutex);
  --impl_->under_way;
  impl_->bytes_under_way -= bytes;
  impl_->TellOfRoom();
}

void LaunchQueue::AwaitRoom() {
  if (OnLaunchThread()) return;
  std::unique_lock<std::mutex> lock(impl_->mutex);
  if (impl_->HasRoom(kMostUnderWay)) return;
  ++impl_->waiting_for_room;
  // Half of it, so that a caller who is much faster is not woken for every single one.
  impl_->room.wait(lock, [&] { return impl_->HasRoom(kMostUnderWay / 2); });
  --impl_->waiting_for_room;
}

void LaunchQueue::Drain() {
  if (Impl::t_current == impl_.get()) return;  // from inside a launch this would wait for itself
  BlockingScope blocking;
  std::unique_lock<std::mutex> lock(impl_->mutex);
  impl_->idle.wait(lock, [&] { return impl_->ready.empty() && impl_->active == 0 && impl_->blocked == 0; });
}

bool LaunchQueue::OnLaunchThread() { return Impl::t_current != nullptr; }

LaunchQueue::BlockingScope::BlockingScope() : impl_(Impl::t_current) {
  if (!impl_ || Impl::t_depth++ > 0) return;
  Impl* impl = static_cast<Impl*>(impl_);
  std::unique_lock<std::mutex> lock(impl->mutex);
  --impl->active;
  ++impl->blocked;
  impl->Dispatch(lock);
  impl->TellOfRoom();
}

LaunchQueue::BlockingScope::~BlockingScope() {
  if (!impl_ || --Impl::t_depth > 0) return;
  Impl* impl = static_cast<Impl*>(impl_);
  std::lock_guard<std::mutex> lock(impl->mutex);
  --impl->blocked;
  ++impl->active;  // maybe beside another launch: waiting for it could deadlock
}

}  // namespace strop
