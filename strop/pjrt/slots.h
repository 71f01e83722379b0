// The slots of the PJRT C API as C++ functions: Status Name(PJRT_Name_Args&), one per row of c_api/slots.def. Entry()
// puts each behind the C boundary: it refuses null and short args and null handles, and turns statuses and exceptions
// into errors. A function that is missing is a link error with its name.
#pragma once
#include <cstddef>
#include <exception>
#include <new>
#include <string_view>

#include "strop/pjrt/c_api.h"
#include "strop/pjrt/error.h"

namespace strop::pjrt {

#define SLOT(index, name) Status name(PJRT_##name##_Args& args);
#define VOID_SLOT(index, name) void name(PJRT_##name##_Args& args);
#include "strop/pjrt/c_api/slots.def"
#undef SLOT
#undef VOID_SLOT

// Did the caller's version of the struct have this field?
#define STROP_PJRT_HAS(args, field) \
  ((args).struct_size >= offsetof(std::remove_reference_t<decltype(args)>, field) + sizeof((args).field))

// Bytes that every caller since 0.54 sends: less than the struct of 0.112 where it grew.
template <class Args>
inline constexpr size_t kLeastSize = kStructSize<Args>;
#define STROP_GREW(type, last_field_then)    \
  template <>                                \
  inline constexpr size_t kLeastSize<type> = \
      offsetof(type, last_field_then) + sizeof(((type*)nullptr)->last_field_then)
STROP_GREW(PJRT_Client_Create_Args, client);
STROP_GREW(PJRT_Client_CreateViewOfDeviceBuffer_Args, buffer);
STROP_GREW(PJRT_Client_CreateErrorBuffer_Args, buffer);
STROP_GREW(PJRT_Device_PoisonExecution_Args, poisoned);
STROP_GREW(PJRT_Executable_GetCompiledMemoryStats_Args, temp_size_in_bytes);
STROP_GREW(PJRT_Executable_DeserializeAndLoad_Args, loaded_executable);
#undef STROP_GREW

// Where the first field is no handle that must be there: an out field, or an object to destroy (null is fine).
template <class Args>
inline constexpr bool kHandleOptional = false;
#define STROP_OPTIONAL(type) \
  template <>                \
  inline constexpr bool kHandleOptional<type> = true
STROP_OPTIONAL(PJRT_Error_GetCode_Args);
STROP_OPTIONAL(PJRT_Error_ForEachPayload_Args);
STROP_OPTIONAL(PJRT_Event_Destroy_Args);
STROP_OPTIONAL(PJRT_Event_Create_Args);
STROP_OPTIONAL(PJRT_Client_Destroy_Args);
STROP_OPTIONAL(PJRT_Executable_Destroy_Args);
STROP_OPTIONAL(PJRT_LoadedExecutable_Destroy_Args);
STROP_OPTIONAL(PJRT_Buffer_Destroy_Args);
STROP_OPTIONAL(PJRT_CopyToDeviceStream_Destroy_Args);
STROP_OPTIONAL(PJRT_TopologyDescription_Destroy_Args);
STROP_OPTIONAL(PJRT_ExecuteContext_Create_Args);
STROP_OPTIONAL(PJRT_ExecuteContext_Destroy_Args);
STROP_OPTIONAL(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args);
STROP_OPTIONAL(PJRT_AsyncTrackingEvent_Destroy_Args);
STROP_OPTIONAL(PJRT_Plugin_Initialize_Args);
STROP_OPTIONAL(PJRT_Plugin_Attributes_Args);
STROP_OPTIONAL(PJRT_Client_Create_Args);
STROP_OPTIONAL(PJRT_TopologyDescription_Create_Args);
STROP_OPTIONAL(PJRT_TopologyDescription_Deserialize_Args);
#undef STROP_OPTIONAL

// The pointer at offset 16, where all structs keep their object.
template <class Args>
void* FirstHandle(const Args& args) {
  static_assert(sizeof(Args) >= 24);
  return *reinterpret_cast<void* const*>(reinterpret_cast<const char*>(&args) + 16);
}

Status NullArgs(std::string_view name);
Status ShortArgs(std::string_view name, size_t have, size_t need);
Status NullHandle(std::string_view name);
Status Thrown(std::string_view name, const char* what);

// A name as template argument.
template <size_t N>
struct SlotName {
  char text[N];
  constexpr SlotName(const char (&name)[N]) {
    for (size_t i = 0; i < N; ++i) text[i] = name[i];
  }
};

template <class Args, Status (*kFunction)(Args&), SlotName kSlot, bool kNeedsHandle = !kHandleOptional<Args>>
PJRT_Error* Entry(Args* args) noexcept {
  try {
    if (!args) [[unlikely]]
      return MakeError(NullArgs(kSlot.text));
    if (args->struct_size < kLeastSize<Args>) [[unlikely]]
      return MakeError(ShortArgs(kSlot.text, args->struct_size, kLeastSize<Args>));
    if constexpr (kNeedsHandle) {
      if (!FirstHandle(*args)) [[unlikely]]
        return MakeError(NullHandle(kSlot.text));
    }
    const Status status = kFunction(*args);
    return status.ok() ? nullptr : MakeError(status);
  } catch (const std::bad_alloc&) {
    return MakeError(ResourceExhausted(kSlot.text, ": out of memory"));
  } catch (const std::exception& e) {
    return MakeError(Thrown(kSlot.text, e.what()));
  } catch (...) {
    return MakeError(Thrown(kSlot.text, "an unknown exception"));
  }
}

}  // namespace strop::pjrt
