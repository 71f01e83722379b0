// SpinLock: one byte, for critical sections of a few instructions (a free list, a pointer swap). It yields when the
// holder was descheduled, so that an oversubscribed machine makes progress. Works with std::lock_guard.
#pragma once
#include <atomic>
#include <thread>

namespace strop {

// Tells the core that it is in a spin loop.
inline void CpuRelax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class SpinLock {
 public:
  void lock() {
    for (int spins = 0; held_.exchange(true, std::memory_order_acquire); ++spins) {
      if (spins < 64)
        CpuRelax();
      else
        std::this_thread::yield();
    }
  }
  bool try_lock() { return !held_.exchange(true, std::memory_order_acquire); }
  void unlock() { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_{false};
};

}  // namespace strop
