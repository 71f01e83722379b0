#include "strop/runtime/transfer_queue.h"

#include <chrono>
#include <cstring>

namespace strop {

Status TransferQueue::Push(std::vector<uint8_t> bytes) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return closed_ || entries_.size() < max_entries_; });
  if (closed_) return MakeError(StatusCode::kCancelled, "transfer queue is closed");
  entries_.push_back(std::move(bytes));
  changed_.notify_all();
  return OkStatus();
}

Status TransferQueue::WaitForEntry(std::unique_lock<std::mutex>& lock, const std::atomic<bool>* cancelled) {
  while (entries_.empty() && !closed_) {
    if (!cancelled) {
      changed_.wait(lock);
      continue;
    }
    // Nobody notifies this queue of a cancellation: look now and then.
    if (cancelled->load(std::memory_order_relaxed)) return MakeError(StatusCode::kCancelled, "transfer was cancelled");
    changed_.wait_for(lock, std::chrono::milliseconds(20));
  }
  return entries_.empty() ? MakeError(StatusCode::kCancelled, "transfer queue is closed") : OkStatus();
}

Status TransferQueue::Pop(std::span<uint8_t> out, const std::atomic<bool>* cancelled) {
  std::vector<uint8_t> entry;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    STROP_TRY(WaitForEntry(lock, cancelled));
    entry = std::move(entries_.front());
    entries_.pop_front();
    changed_.notify_all();
  }
  if (entry.size() != out.size()) {
    return InvalidArgument("program expects ", out.size(), " bytes from the host, which sent ", entry.size());
  }
  if (!entry.empty()) std::memcpy(out.data(), entry.data(), entry.size());
  return OkStatus();
}

Result<std::vector<uint8_t>> TransferQueue::PopAny() {
  std::unique_lock<std::mutex> lock(mutex_);
  STROP_TRY(WaitForEntry(lock, nullptr));
  std::vector<uint8_t> entry = std::move(entries_.front());
  entries_.pop_front();
  changed_.notify_all();
  return entry;
}

void TransferQueue::Close() {
  std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

size_t TransferQueue::size() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return entries_.size();
}

}  // namespace strop
