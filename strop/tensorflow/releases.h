// The releases of TensorFlow that Strop knows, and what it uses of each.
#pragma once
#include <functional>
#include <string>

#include "strop/base/status.h"
#include "strop/tensorflow/abi.h"

namespace strop::tensorflow {

// A symbol of the TensorFlow in this process by its name; null where it has none of that name.
using Lookup = std::function<void*(const char* symbol)>;

// What is called, found in the running TensorFlow.
struct Framework {
  const char* version = nullptr;
  WrapClientFunction* wrap_client = nullptr;
  SetClientFunction* set_client = nullptr;
  OpsFlagsFunction* ops_flags = nullptr;
  size_t use_device_api = 0;  // where in those flags UseDeviceApi lies
  StatusTextFunction* status_text = nullptr;
};

// FailedPrecondition for a release that is not in the table, or one that lacks a symbol that the table names.
Result<Framework> Recognize(const Lookup& lookup);

// "2.21.0": the releases in the table.
std::string KnownReleases();

}  // namespace strop::tensorflow
