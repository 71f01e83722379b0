// The 128-bit counter behind RngStateStep. Belongs to an executable and outlives its runs, so that each run draws anew.
#pragma once
#include <cstdint>
#include <mutex>

#include "strop/base/spin_lock.h"
#include "strop/runtime/executable.h"

namespace strop {

struct Executable::RngState {
  RngState(uint64_t low, uint64_t high) : low_(low), high_(high) {}

  // Writes the state to out[0..1], low word first, then adds `delta`.
  void Next(uint64_t delta, uint64_t* out) {
    std::lock_guard<SpinLock> lock(lock_);
    out[0] = low_;
    out[1] = high_;
    low_ += delta;
    high_ += low_ < delta;
  }

 private:
  SpinLock lock_;
  uint64_t low_, high_;
};

}  // namespace strop
