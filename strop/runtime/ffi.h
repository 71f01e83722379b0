// Typed FFI custom calls (api version 4): binds a call site to a handler of the XLA FFI C API, and lends handlers what
// they may ask for through it.
//
// The handler is probed once at bind time (its API version), instantiated once if it has that stage, and executed on
// each run with buffers, attributes and the execution's user data.
#pragma once
#include <memory>
#include <string>

#include "strop/base/small_vector.h"
#include "strop/runtime/custom_call.h"

namespace strop {

// What one execution lends to its handlers: user data by type id (the PJRT execute context). RunArgs::ffi_context
// points to one. Filled before the launch, only read after.
class FfiContext {
 public:
  // AlreadyExists for a second value of a type.
  Status Add(int64_t type_id, void* data);
  void* Find(int64_t type_id) const;  // null if there is none

 private:
  struct UserData {
    int64_t type_id;
    void* data;
  };
  SmallVector<UserData, 4> data_;
};

// Type ids of the process, by name. `type_id` 0 asks for a new one (or the known one of that name); another value must
// be free or be the name's own.
Result<int64_t> RegisterFfiType(const std::string& name, int64_t type_id, void (*deleter)(void* object));

Result<std::shared_ptr<CustomCall>> BindFfi(const CustomCallRegistry& registry, CustomCallSite site);

}  // namespace strop
