// CancelledScope: lets compiled kernels whose loops end when something holds ask whether the run was cancelled.
#pragma once
#include <atomic>

namespace strop {

// While it lives, code of this thread that asks is told by `flag` (null: never cancelled).
class CancelledScope {
 public:
  explicit CancelledScope(const std::atomic<bool>* flag) : before_(current_) { current_ = flag; }
  ~CancelledScope() { current_ = before_; }
  CancelledScope(const CancelledScope&) = delete;
  CancelledScope& operator=(const CancelledScope&) = delete;

  static bool Asked() { return current_ && current_->load(std::memory_order_relaxed); }

 private:
  static inline thread_local constinit const std::atomic<bool>* current_ = nullptr;
  const std::atomic<bool>* before_;
};

// The function, bool(), by which they ask.
inline constexpr const char* kCancelledSymbol = "strop_cancelled";

}  // namespace strop
