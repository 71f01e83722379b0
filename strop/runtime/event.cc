#include "strop/runtime/event.h"

#include "strop/runtime/launch_queue.h"

namespace strop {

EventRef Event::Ready() {
  // One reference is never dropped, so that the object outlives every handle.
  static Event& immortal = [&]() -> Event& {
    Event& event = *new Event();
    event.Set(OkStatus());
    return event;
  }();
  return EventRef::Share(&immortal);
}

EventRef Event::ReadyWith(Status status) {
  if (status.ok()) return Ready();
  EventRef event = Make<Event>();
  event->Set(std::move(status));
  return event;
}

EventRef Event::WhenAll(std::span<const EventRef> events) {
  // Fast path: nothing pending.
  Status first_error;
  bool all_ready = true;
  for (const EventRef& event : events) {
    if (!event) continue;
    if (!event->IsReady())
      all_ready = false;
    else if (first_error.ok())
      first_error = event->status();
  }
  if (all_ready) return ReadyWith(std::move(first_error));

  struct Join {
    std::vector<EventRef> events;
    std::atomic<int64_t> pending;
    EventRef done = Make<Event>();
    void CountDown() {
      if (pending.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
      Status status;
      for (const EventRef& event : events) {
        if (event && status.ok()) status = event->status();
      }
      done->Set(std::move(status));
    }
  };
  auto join = std::make_shared<Join>();
  join->events.assign(events.begin(), events.end());
  join->pending = static_cast<int64_t>(events.size()) + 1;  // one more: nothing fires before all are registered
  EventRef done = join->done;
  for (const EventRef& event : join->events) {
    if (event)
      event->OnReady([join](const Status&) { join->CountDown(); });
    else
      join->CountDown();
  }
  join->CountDown();
  return done;
}

bool Event::Set(Status status) {
  EventRef keep = EventRef::Share(this);  // a callback may drop the last handle
  std::vector<Callback> callbacks;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (ready_.load(std::memory_order_relaxed)) return false;
    status_ = std::move(status);
    ready_.store(true, std::memory_order_release);
    callbacks.swap(callbacks_);
    changed_.notify_all();
  }
  for (Callback& callback : callbacks) callback(status_);
  return true;
}

bool Event::SetWithoutCallbacks() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!callbacks_.empty()) return false;
  ready_.store(true, std::memory_order_release);
  changed_.notify_all();
  return true;
}

void Event::OnReady(Callback callback) {
  if (!IsReady()) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!ready_.load(std::memory_order_relaxed)) {
      callbacks_.push_back(std::move(callback));
      return;
    }
  }
  callback(status_);
}

void Event::NoteAwaited() {
  if (IsReady()) return;
  std::chrono::steady_clock::rep first = 0;
  awaited_since_.compare_exchange_strong(first, std::chrono::steady_clock::now().time_since_epoch().count(),
                                         std::memory_order_relaxed);
}

std::chrono::steady_clock::time_point Event::awaited_since() const {
  using Clock = std::chrono::steady_clock;
  return Clock::time_point(Clock::duration(awaited_since_.load(std::memory_order_relaxed)));
}

Status Event::Await() {
  if (IsReady()) return status_;
  NoteAwaited();
  LaunchQueue::BlockingScope blocking;
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return ready_.load(std::memory_order_relaxed); });
  return status_;
}

}  // namespace strop
