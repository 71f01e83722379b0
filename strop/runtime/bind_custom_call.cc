#include "strop/runtime/bind_custom_call.h"

#include "strop/base/log.h"
#include "strop/runtime/ffi.h"
#include "strop/runtime/lapack/lapack.h"

namespace strop {

Result<std::shared_ptr<CustomCall>> BindCustomCall(CustomCallSite site, const CustomCallRegistry& registry,
                                                   const std::string& lapack_library) {
  if (std::shared_ptr<CustomCall> builtin = BindBuiltin(site)) return builtin;
  if (IsLapackCall(site)) {
    Result<std::shared_ptr<CustomCall>> call = BindLapack(site, lapack_library);
    if (call.ok() || !registry.Find(site.target, site.api).ok()) return call;
    STROP_LOG_AT(2, call.status().message(), "; the registered target is taken");
  }
  return site.api == CustomCallApi::kTypedFfi ? BindFfi(registry, std::move(site))
                                              : BindFunction(registry, std::move(site));
}

}  // namespace strop
