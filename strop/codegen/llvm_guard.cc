#include "strop/codegen/llvm_guard.h"

#include <llvm/Support/ErrorHandling.h>

#include <mutex>

namespace strop {

void InstallLlvmGuard() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::remove_fatal_error_handler();
    // LLVM calls this instead of abort(). It must not return.
    llvm::install_fatal_error_handler([](void*, const char* reason, bool) { throw LlvmFatalError{reason}; });
  });
}

}  // namespace strop
