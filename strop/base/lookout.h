// Waiting for what another thread is about to do. A thread that sleeps takes some tens of microseconds to be woken, in
// a virtual machine most of all: who looks out for that long before sleeping loses at most twice what the better of the
// two ways would have cost (Karlin, Manasse, McGeoch and Owicki, "Competitive Randomized Algorithms for Nonuniform
// Problems", 1994: the bound of the deterministic strategy). docs/adr/0016.
#pragma once
#include <chrono>
#include <thread>

#include "strop/base/spin_lock.h"

namespace strop {

// What a thread takes from its sleep to its first task and its caller to hear of the end.
inline constexpr std::chrono::microseconds kLookout{60};

// Waits until `seen()`, for kLookout at most; returns what it last said.
template <class Fn>
bool LookOut(const Fn& seen) {
  const auto end = std::chrono::steady_clock::now() + kLookout;
  for (int looks = 0; !seen(); ++looks) {
    CpuRelax();
    if (looks % 16 != 15) continue;
    if (std::chrono::steady_clock::now() >= end) return seen();
    std::this_thread::yield();  // another thread may need this processor, the one that is waited for perhaps
  }
  return true;
}

}  // namespace strop
