// GetPjrtApi: the function table, filled from slots.def, and the chain of extensions behind it.
#include "strop/pjrt/c_api.h"
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/slots.h"

namespace strop::pjrt {

Status NullArgs(std::string_view name) { return InvalidArgument(name, ": args is null"); }
Status ShortArgs(std::string_view name, size_t have, size_t need) {
  return InvalidArgument(name, ": args.struct_size is ", have, ", at least ", need, " is expected");
}
Status NullHandle(std::string_view name) { return InvalidArgument(name, ": the first handle of args is null"); }
Status Thrown(std::string_view name, const char* what) { return Internal(name, " threw: ", what); }

namespace {

// The two slots that cannot report anything.
template <class Args, void (*kFunction)(Args&)>
void VoidEntry(Args* args) noexcept {
  if (args && args->struct_size >= kLeastSize<Args>) kFunction(*args);
}

constexpr PJRT_Api kApi = {
    .struct_size = sizeof(PJRT_Api),
    .extension_start = nullptr,
    .pjrt_api_version = {kStructSize<PJRT_Api_Version>, nullptr, STROP_PJRT_API_MAJOR, STROP_PJRT_API_MINOR},
#define SLOT(index, name) .name = &Entry<PJRT_##name##_Args, &pjrt::name, "PJRT_" #name>,
#define VOID_SLOT(index, name) .name = &VoidEntry<PJRT_##name##_Args, &pjrt::name>,
#include "strop/pjrt/c_api/slots.def"
#undef SLOT
#undef VOID_SLOT
};

}  // namespace

const PJRT_Api* Api() {
  static const PJRT_Api* const kWithExtensions = [] {
    auto* api = new PJRT_Api(kApi);
    api->extension_start = Extensions();
    return api;
  }();
  return kWithExtensions;
}

}  // namespace strop::pjrt

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  try {
    return strop::pjrt::Api();
  } catch (...) {
    return nullptr;  // the loader reports that
  }
}
