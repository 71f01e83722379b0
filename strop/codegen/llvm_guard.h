// LLVM's fatal errors (an instruction that it cannot select) as a Status, never as an abort.
#pragma once
#include <new>
#include <string>

#include "strop/base/status.h"

namespace strop {

struct LlvmFatalError {
  std::string reason;
};

// LLVM throws LlvmFatalError from now on, in the whole process. It passes through LLVM's frames, which have unwind
// tables.
void InstallLlvmGuard();

// While there is one, this thread is at work in LLVM: what static objects of functions come to be made are never
// destroyed, since other threads may still be there when the process ends.
class LlvmScope {
 public:
  LlvmScope();
  ~LlvmScope();
  LlvmScope(const LlvmScope&) = delete;
  LlvmScope& operator=(const LlvmScope&) = delete;
};

// fn(), a Status or a Result. `what` completes "LLVM failed to".
template <class Fn>
auto GuardLlvm(const char* what, Fn&& fn) -> decltype(fn()) {
  const LlvmScope scope;
  try {
    return fn();
  } catch (const LlvmFatalError& error) {
    return Internal("LLVM failed to ", what, ": ", error.reason);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory while LLVM was to ", what);
  }
}

}  // namespace strop
