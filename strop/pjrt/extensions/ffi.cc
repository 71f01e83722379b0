// FFI: custom-call targets of the process, type ids, and user data for one execution.
#include "strop/runtime/ffi.h"

#include "strop/pjrt/executable.h"
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/slots.h"

namespace strop::pjrt {
namespace {

Status TypeRegister(PJRT_FFI_Type_Register_Args& args) {
  if (!args.type_name) return InvalidArgument("an FFI type without a name");
  STROP_ASSIGN(args.type_id, RegisterFfiType(std::string(args.type_name, args.type_name_size), args.type_id,
                                             args.type_info ? args.type_info->deleter : nullptr));
  return OkStatus();
}

Status UserDataAdd(PJRT_FFI_UserData_Add_Args& args) {
  return args.context->ffi.Add(args.user_data.type_id, args.user_data.data);
}

// Platforms are not told apart: the library is loaded for one.
Status RegisterHandler(PJRT_FFI_Register_Handler_Args& args) {
  if (!args.target_name || !args.handler) return InvalidArgument("an FFI handler without target name or function");
  std::string name(args.target_name, args.target_name_size);
  if (args.api_version == 0) return ProcessCustomCalls().RegisterFunction(name, args.handler);
  if (args.api_version != 1)
    return InvalidArgument("FFI handler ", name, " has API version ", args.api_version, ", expected 0 or 1");
  FfiHandlerBundle bundle;
  bundle.execute = args.handler;
  return ProcessCustomCalls().RegisterFfi(name, bundle, static_cast<uint32_t>(args.traits));
}

}  // namespace

PJRT_Extension_Base* FfiExtension(PJRT_Extension_Base* next) {
  static PJRT_FFI_Extension extension = {
      {sizeof(PJRT_FFI_Extension), PJRT_Extension_Type_FFI, nullptr},
      &Entry<PJRT_FFI_Type_Register_Args, &TypeRegister, "PJRT_FFI_Type_Register", false>,
      &Entry<PJRT_FFI_UserData_Add_Args, &UserDataAdd, "PJRT_FFI_UserData_Add">,
      &Entry<PJRT_FFI_Register_Handler_Args, &RegisterHandler, "PJRT_FFI_Register_Handler", false>};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace strop::pjrt
