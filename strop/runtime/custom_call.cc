#include "strop/runtime/custom_call.h"

#include <algorithm>

// The status object of the older C interface. Registered code only passes it to the two functions below, which are
// found by name in whatever library brings the code.
struct XlaCustomCallStatus_ {
  bool failed = false;
  std::string message;
};
extern "C" {
typedef struct XlaCustomCallStatus_ XlaCustomCallStatus;
__attribute__((visibility("default"), weak)) void XlaCustomCallStatusSetSuccess(XlaCustomCallStatus* status) {
  status->failed = false;
}
__attribute__((visibility("default"), weak)) void XlaCustomCallStatusSetFailure(XlaCustomCallStatus* status,
                                                                                const char* message,
                                                                                size_t message_len) {
  status->failed = true;
  // The length includes the terminator or not, depending on the caller.
  status->message.assign(message, std::find(message, message + message_len, '\0'));
}
}

namespace strop {
namespace {

class FunctionCall : public CustomCall {
 public:
  FunctionCall(void* function, CustomCallSite site) : function_(function), site_(std::move(site)) {}

  Status Run(const CustomCallFrame& frame) override {
    const void** in = const_cast<const void**>(frame.operands.data());
    void* out = nullptr;
    if (site_.tuple_result)
      out = const_cast<void**>(frame.results.data());
    else if (!frame.results.empty())
      out = frame.results[0];
    XlaCustomCallStatus status;
    switch (site_.api) {
      case CustomCallApi::kOriginal: reinterpret_cast<void (*)(void*, const void**)>(function_)(out, in); break;
      case CustomCallApi::kStatus:
        reinterpret_cast<void (*)(void*, const void**, XlaCustomCallStatus*)>(function_)(out, in, &status);
        break;
      case CustomCallApi::kStatusOpaque:
        reinterpret_cast<void (*)(void*, const void**, const char*, size_t, XlaCustomCallStatus*)>(function_)(
            out, in, site_.opaque.data(), site_.opaque.size(), &status);
        break;
      case CustomCallApi::kTypedFfi: return Internal("typed FFI call bound as a function");
    }
    if (status.failed) return Internal("custom call ", site_.target, " failed: ", status.message);
    return OkStatus();
  }

 private:
  void* function_;
  CustomCallSite site_;
};

class Sink : public CustomCall {
 public:
  Status Run(const CustomCallFrame&) override { return OkStatus(); }
};

}  // namespace

Status CustomCallRegistry::RegisterFunction(const std::string& name, void* function) {
  if (!function) return InvalidArgument("custom call target ", name, " has no function");
  std::lock_guard<std::mutex> lock(mutex_);
  Target& target = targets_[name];
  if (target.function && target.function != function) {
    return MakeError(StatusCode::kAlreadyExists, "custom call target ", name, " is registered with another function");
  }
  target.function = function;
  return OkStatus();
}

Status CustomCallRegistry::RegisterFfi(const std::string& name, FfiHandlerBundle bundle, uint32_t traits) {
  if (!bundle.execute) return InvalidArgument("FFI target ", name, " has no execute handler");
  std::lock_guard<std::mutex> lock(mutex_);
  Target& target = targets_[name];
  if (target.ffi.execute && target.ffi.execute != bundle.execute) {
    return MakeError(StatusCode::kAlreadyExists, "FFI target ", name, " is registered with another handler");
  }
  target.ffi = bundle;
  target.ffi_traits = traits;
  return OkStatus();
}

Result<CustomCallRegistry::Target> CustomCallRegistry::Find(const std::string& name, CustomCallApi api) const {
  std::lock_guard<std::mutex> lock(mutex_);
  auto found = targets_.find(name);
  bool typed = api == CustomCallApi::kTypedFfi;
  if (found != targets_.end() && (typed ? found->second.ffi.execute : found->second.function)) return found->second;
  std::string message = StrCat("no custom call target \"", name, "\" is registered");
  if (found != targets_.end()) {
    StrAppend(message, typed ? " as a typed FFI handler" : " as a function of the older interfaces");
  } else {
    std::vector<std::string_view> known;
    for (const auto& [key, target] : targets_) known.push_back(key);
    std::string_view nearest = Nearest(name, known);
    if (!nearest.empty()) StrAppend(message, "; did you mean \"", nearest, "\"?");
    if (nearest.empty() && typed) StrAppend(message, "; JAX registers one with jax.ffi.register_ffi_target");
  }
  return NotFound(message);
}

std::vector<std::string> CustomCallRegistry::Names() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, target] : targets_) names.push_back(name);
  return names;
}

std::shared_ptr<CustomCall> BindBuiltin(const CustomCallSite& site) {
  if (site.target == "dce_sink" && site.results.empty()) return std::make_shared<Sink>();
  return nullptr;
}

Result<std::shared_ptr<CustomCall>> BindFunction(const CustomCallRegistry& registry, CustomCallSite site) {
  if (site.api == CustomCallApi::kTypedFfi)
    return InvalidArgument(site.target, ": typed FFI calls are bound by BindFfi");
  if (!site.tuple_result && site.results.size() > 1) {
    return InvalidArgument(site.target, ": ", site.results.size(), " results without a tuple");
  }
  STROP_ASSIGN(CustomCallRegistry::Target target, registry.Find(site.target, site.api));
  return std::shared_ptr<CustomCall>(std::make_shared<FunctionCall>(target.function, std::move(site)));
}

}  // namespace strop
