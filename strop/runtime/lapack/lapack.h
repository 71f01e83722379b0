// LAPACK's routines as custom calls: lapack_dgetrf_ffi and its kin, with the operands, results and attributes that
// jaxlib gives those names, computed by a library of the host (library.h) on our threads.
#pragma once
#include <memory>
#include <string>

#include "strop/runtime/custom_call.h"
#include "strop/runtime/executable.h"

namespace strop {

// Is the target of this call one of them?
bool IsLapackCall(const CustomCallSite& site);

// `library` is the option lapack_library. NotFound if the host has no such library, or that no such routine;
// InvalidArgument for shapes and attributes that the routine does not take.
Result<std::shared_ptr<CustomCall>> BindLapack(const CustomCallSite& site, const std::string& library);

// The same as a kernel of one task, whose arguments are operands and results: of a call that needs no library of the
// host, and whose batch is not shared by threads. Unimplemented for any other.
Result<KernelStep> LapackKernel(const CustomCallSite& site);

}  // namespace strop
