// TransferQueue: infeed and outfeed of a device, a queue of byte strings between host and program. Bounded, so that a
// host that runs ahead waits instead of filling the memory.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <span>
#include <vector>

#include "strop/base/status.h"

namespace strop {

class TransferQueue {
 public:
  explicit TransferQueue(size_t max_entries = 64) : max_entries_(max_entries) {}

  // Blocks while the queue is full. Cancelled after Close().
  Status Push(std::vector<uint8_t> bytes);
  // Takes the oldest entry into `out`, blocking until there is one. InvalidArgument if its size is not out.size() (the
  // entry is dropped); Cancelled after Close() or when *cancelled becomes true.
  Status Pop(std::span<uint8_t> out, const std::atomic<bool>* cancelled = nullptr);
  // Like Pop, for a reader that takes what comes.
  Result<std::vector<uint8_t>> PopAny();
  void Close();
  size_t size() const;

 private:
  Status WaitForEntry(std::unique_lock<std::mutex>& lock, const std::atomic<bool>* cancelled);

  const size_t max_entries_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::vector<uint8_t>> entries_;
  bool closed_ = false;
};

}  // namespace strop
