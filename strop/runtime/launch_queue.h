// LaunchQueue: the threads on which one device runs its asynchronous executions, one at a time, in the order in which
// they became ready.
//
// An execution that has to wait for something that only other launches can bring (a host callback that re-enters the
// runtime, a collective, an infeed) says so with a BlockingScope; the queue then goes on with the next launch on
// another thread. Nothing ever waits while it holds the queue, so a callback that launches on its own device cannot
// deadlock. Threads are made when needed and stay idle otherwise: 1 + the largest number of launches blocked at the
// same time.
//
// A caller may run ahead of the queue, but not without end: every execution that waits holds the memory of its results,
// and memory that is not used again soon has to be asked from the system and is cold. AwaitRoom holds the caller up.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace strop {

class LaunchQueue {
 public:
  LaunchQueue();
  ~LaunchQueue();  // runs what is queued, then joins
  LaunchQueue(const LaunchQueue&) = delete;
  LaunchQueue& operator=(const LaunchQueue&) = delete;

  void Enqueue(std::function<void()> launch);
  // Counts an execution that will be enqueued when its inputs are there, and the bytes that its results take; Ended
  // takes both off again.
  void Began(int64_t bytes);
  void Ended(int64_t bytes);
  // Returns when few enough executions are under way, or at once when none of them is running (the queue waits for
  // others, perhaps for this caller) or on a thread of a queue.
  void AwaitRoom();
  // Returns when nothing is queued or running.
  void Drain();

  // While one lives on a thread of a LaunchQueue, that queue may start its next launch. Does nothing on other threads.
  class BlockingScope {
   public:
    BlockingScope();
    ~BlockingScope();
    BlockingScope(const BlockingScope&) = delete;
    BlockingScope& operator=(const BlockingScope&) = delete;

   private:
    void* impl_;
  };
  // True on a thread that is running a launch of any queue.
  static bool OnLaunchThread();

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace strop
