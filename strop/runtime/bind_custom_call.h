// Which code a custom call runs, whatever interface its target speaks.
#pragma once
#include <memory>
#include <string>

#include "strop/runtime/custom_call.h"

namespace strop {

// What the runtime has itself comes first: LAPACK that is registered as well (jaxlib's) starts threads of its own
// beside ours, and is taken where the host has no library for ours or the call is not what LAPACK takes (somebody's own
// target of that name). NotFound for a target that nobody registered.
Result<std::shared_ptr<CustomCall>> BindCustomCall(CustomCallSite site, const CustomCallRegistry& registry,
                                                   const std::string& lapack_library);

}  // namespace strop
