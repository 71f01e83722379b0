// Custom calls: code of the user that a program calls by name.
//
// A target is registered under a name with the C interface it speaks. At compile time the plan resolves the name and
// binds shapes and the opaque string, which gives a CustomCall that steps hold. The typed FFI (api version 4) binds in
// strop/runtime/ffi.h; the three older interfaces, plain C functions over pointers, are bound here:
//   1 original          void f(void* out, const void** in)
//   2 status            void f(void* out, const void** in, XlaCustomCallStatus* status)
//   3 status + opaque   void f(void* out, const void** in, const char* opaque, size_t opaque_len, status)
// `out` is the result's memory, or an array of pointers if the call returns a tuple.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "strop/base/status.h"
#include "strop/types/shape.h"

namespace strop {

struct RunArgs;

// What one invocation gets.
struct CustomCallFrame {
  std::span<void* const> operands;
  std::span<void* const> results;
  const RunArgs& run;  // device, thread pool, run id, FFI context
};

class CustomCall {
 public:
  virtual ~CustomCall() = default;
  virtual Status Run(const CustomCallFrame& frame) = 0;  // must be thread-safe
};

enum class CustomCallApi : uint8_t { kOriginal = 1, kStatus = 2, kStatusOpaque = 3, kTypedFfi = 4 };

// The shapes and attributes at one call site. Operand and result leaves, no tuples.
struct CustomCallSite {
  std::string target;
  CustomCallApi api = CustomCallApi::kOriginal;
  std::string opaque;  // backend_config, verbatim (typed FFI: text of an MLIR dictionary)
  std::vector<Shape> operands;
  std::vector<Shape> results;
  bool tuple_result = false;  // whether the HLO result is a tuple, which older interfaces see
};

// Typed FFI handlers: one entry point per stage (XLA_FFI_Handler*), null where there is none.
struct FfiHandlerBundle {
  void* instantiate = nullptr;
  void* prepare = nullptr;
  void* initialize = nullptr;
  void* execute = nullptr;
};

// Targets by name. One per client; thread-safe.
class CustomCallRegistry {
 public:
  struct Target {
    void* function = nullptr;  // older interfaces
    FfiHandlerBundle ffi;      // typed FFI; execute != null
    uint32_t ffi_traits = 0;
  };
  // AlreadyExists if the name has a different function of the same interface (the same one again is fine).
  Status RegisterFunction(const std::string& name, void* function);
  Status RegisterFfi(const std::string& name, FfiHandlerBundle bundle, uint32_t traits);
  // NotFound, with the nearest known name.
  Result<Target> Find(const std::string& name, CustomCallApi api) const;
  std::vector<std::string> Names() const;  // sorted

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Target> targets_;
};

// Targets that the runtime knows by itself; null for any other. JAX's dce_sink only keeps its operands alive until
// here.
std::shared_ptr<CustomCall> BindBuiltin(const CustomCallSite& site);

// Binds interfaces 1 to 3. (BindFfi in strop/runtime/ffi.h binds 4.)
Result<std::shared_ptr<CustomCall>> BindFunction(const CustomCallRegistry& registry, CustomCallSite site);

}  // namespace strop
