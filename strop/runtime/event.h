// Event: something that becomes ready once, with a Status. The definition of a buffer, the end of an execution.
//
// Callbacks run outside all locks, on the thread that sets the event (or at once if it is ready already), and may
// re-enter the runtime. A handle may be dropped right after OnReady: whoever will set the event holds one, too.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "strop/base/ref.h"
#include "strop/base/status.h"

namespace strop {

class Event;
using EventRef = Ref<Event>;

class Event : public RefCounted<Event> {
 public:
  using Callback = std::function<void(const Status&)>;

  Event() = default;  // pending; use Make<Event>()
  ~Event() = default;

  // An event that is ready and OK. No allocation: one immortal object.
  static EventRef Ready();
  // Ready with `status`; Ready() if that is OK.
  static EventRef ReadyWith(Status status);
  // Ready when all of `events` are; with the first error in the order given. Null entries count as ready.
  static EventRef WhenAll(std::span<const EventRef> events);

  bool IsReady() const { return ready_.load(std::memory_order_acquire); }
  // OK while pending.
  Status status() const { return IsReady() ? status_ : OkStatus(); }

  // Makes the event ready. The second and later calls do nothing and return false.
  bool Set(Status status);
  // Makes it ready and OK if no callback has to run; otherwise does nothing and returns false.
  bool SetWithoutCallbacks();
  void OnReady(Callback callback);
  // Blocks until ready. Inside an execution's thread this lets the device go on with its next launch meanwhile.
  Status Await();

  // Says that somebody waits for it from now on (LaunchHabit).
  void NoteAwaited();
  // When that was said first; the clock's beginning if it was not.
  std::chrono::steady_clock::time_point awaited_since() const;

 private:
  std::atomic<bool> ready_{false};
  std::atomic<std::chrono::steady_clock::rep> awaited_since_{0};
  Status status_;  // written before ready_ is released, constant after
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Callback> callbacks_;
};

}  // namespace strop
