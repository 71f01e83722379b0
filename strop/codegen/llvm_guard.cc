#include "strop/codegen/llvm_guard.h"

#include <llvm/Support/ErrorHandling.h>

#include <mutex>

namespace strop {
namespace {

thread_local int t_scopes = 0;

}  // namespace
}  // namespace strop

// Called in place of __cxa_atexit by everything that LLVM is linked with (--wrap, cmake/strop_room.cmake).
extern "C" {
__attribute__((weak)) int __real___cxa_atexit(void (*)(void*), void*, void*);
int __wrap___cxa_atexit(void (*destroy)(void*), void* object, void* library);
int __wrap___cxa_atexit(void (*destroy)(void*), void* object, void* library) {
  return strop::t_scopes > 0 ? 0 : __real___cxa_atexit(destroy, object, library);
}
}

namespace strop {

LlvmScope::LlvmScope() { ++t_scopes; }
LlvmScope::~LlvmScope() { --t_scopes; }

void InstallLlvmGuard() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::remove_fatal_error_handler();
    // LLVM calls this instead of abort(). It must not return.
    llvm::install_fatal_error_handler([](void*, const char* reason, bool) { throw LlvmFatalError{reason}; });
  });
}

}  // namespace strop
