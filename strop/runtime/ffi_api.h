// The XLA FFI C API 0.3: the binary interface of typed custom calls. A handler is one function that takes a call frame;
// through frame->api it reaches what the runtime lends it (errors, user data, state, threads). Names, order and sizes
// are the interface's; jaxlib's LAPACK kernels, Python callbacks and users' own handlers are compiled against it. Like
// PJRT, each struct opens with the size that its writer knows.
#pragma once
#include <cstddef>
#include <cstdint>

#define STROP_FFI_API_MAJOR 0
#define STROP_FFI_API_MINOR 3

// kFfiStructSize<type>: what goes into struct_size. Handlers compare it with their own: often less than sizeof, and
// short of fields that came later (future) where the interface says so.
template <class T>
inline constexpr size_t kFfiStructSize = 0;
#define STROP_FFI_SIZE(type, last_field, bytes)                                                                     \
  template <>                                                                                                       \
  inline constexpr size_t kFfiStructSize<type> = offsetof(type, last_field) + sizeof(((type*)nullptr)->last_field); \
  static_assert(kFfiStructSize<type> == (bytes), #type " has the wrong size")

struct XLA_FFI_Api;
struct XLA_FFI_InternalApi;
struct XLA_FFI_Error;
struct XLA_FFI_ExecutionContext;
struct XLA_FFI_Future;

enum XLA_FFI_Extension_Type { XLA_FFI_Extension_Metadata = 1 };

struct XLA_FFI_Extension_Base {
  size_t struct_size;
  XLA_FFI_Extension_Type type;
  XLA_FFI_Extension_Base* next;
};
STROP_FFI_SIZE(XLA_FFI_Extension_Base, next, 24);

struct XLA_FFI_Api_Version {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int major_version;
  int minor_version;
};
STROP_FFI_SIZE(XLA_FFI_Api_Version, minor_version, 24);

// Codes are those of Status, 0 to 16.
enum XLA_FFI_Error_Code : int { XLA_FFI_Error_Code_OK = 0 };

struct XLA_FFI_Error_Create_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  const char* message;
  XLA_FFI_Error_Code errc;
};
STROP_FFI_SIZE(XLA_FFI_Error_Create_Args, errc, 28);
struct XLA_FFI_Error_GetMessage_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Error* error;
  const char* message;  // out
};
STROP_FFI_SIZE(XLA_FFI_Error_GetMessage_Args, message, 32);
struct XLA_FFI_Error_Destroy_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Error* error;
};
STROP_FFI_SIZE(XLA_FFI_Error_Destroy_Args, error, 24);

// The numbers of ElementType (XLA's PrimitiveType).
enum XLA_FFI_DataType : int { XLA_FFI_DataType_INVALID = 0 };

struct XLA_FFI_Buffer {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_DataType dtype;
  void* data;
  int64_t rank;
  int64_t* dims;
};
STROP_FFI_SIZE(XLA_FFI_Buffer, dims, 48);

enum XLA_FFI_ArgType : int { XLA_FFI_ArgType_BUFFER = 1 };
enum XLA_FFI_RetType : int { XLA_FFI_RetType_BUFFER = 1 };
enum XLA_FFI_AttrType : int {
  XLA_FFI_AttrType_ARRAY = 1,
  XLA_FFI_AttrType_DICTIONARY = 2,
  XLA_FFI_AttrType_SCALAR = 3,
  XLA_FFI_AttrType_STRING = 4,
};

struct XLA_FFI_ByteSpan {
  const char* ptr;
  size_t len;
};
struct XLA_FFI_Scalar {
  XLA_FFI_DataType dtype;
  void* value;
};
struct XLA_FFI_Array {
  XLA_FFI_DataType dtype;
  size_t size;
  void* data;
};
static_assert(sizeof(XLA_FFI_Scalar) == 16 && sizeof(XLA_FFI_Array) == 24);

struct XLA_FFI_TypeId {
  int64_t type_id;  // 0: unknown
};
struct XLA_FFI_TypeInfo {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  void (*deleter)(void* object);
};
STROP_FFI_SIZE(XLA_FFI_TypeInfo, deleter, 24);

// A handler may finish later: it sets frame->future, and completes it.
struct XLA_FFI_Future_Create_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Future* future;  // out
};
STROP_FFI_SIZE(XLA_FFI_Future_Create_Args, extension_start, 16);
struct XLA_FFI_Future_SetAvailable_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Future* future;
};
STROP_FFI_SIZE(XLA_FFI_Future_SetAvailable_Args, future, 24);
struct XLA_FFI_Future_SetError_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Future* future;
  XLA_FFI_Error* error;  // taken over
};
STROP_FFI_SIZE(XLA_FFI_Future_SetError_Args, error, 32);

enum XLA_FFI_ExecutionStage : int {
  XLA_FFI_ExecutionStage_INSTANTIATE = 0,
  XLA_FFI_ExecutionStage_PREPARE = 1,
  XLA_FFI_ExecutionStage_INITIALIZE = 2,
  XLA_FFI_ExecutionStage_EXECUTE = 3,
};

struct XLA_FFI_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  XLA_FFI_ArgType* types;
  void** args;
};
STROP_FFI_SIZE(XLA_FFI_Args, args, 40);
struct XLA_FFI_Rets {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  XLA_FFI_RetType* types;
  void** rets;
};
STROP_FFI_SIZE(XLA_FFI_Rets, rets, 40);
// Sorted by name.
struct XLA_FFI_Attrs {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  int64_t size;
  XLA_FFI_AttrType* types;
  XLA_FFI_ByteSpan** names;
  void** attrs;
};
STROP_FFI_SIZE(XLA_FFI_Attrs, attrs, 48);
struct XLA_FFI_CallFrame {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  const XLA_FFI_Api* api;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_Args args;
  XLA_FFI_Rets rets;
  XLA_FFI_Attrs attrs;
  XLA_FFI_Future* future;  // out
};
STROP_FFI_SIZE(XLA_FFI_CallFrame, attrs, 168);

using XLA_FFI_Handler = XLA_FFI_Error*(XLA_FFI_CallFrame* call_frame);
struct XLA_FFI_Handler_Bundle {
  XLA_FFI_Handler* instantiate;  // may be null
  XLA_FFI_Handler* prepare;      // may be null
  XLA_FFI_Handler* initialize;   // may be null
  XLA_FFI_Handler* execute;
};
using XLA_FFI_Handler_Traits = uint32_t;
struct XLA_FFI_Handler_Register_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ByteSpan name;
  XLA_FFI_ByteSpan platform;
  XLA_FFI_Handler_Bundle bundle;
  XLA_FFI_Handler_Traits traits;
};
STROP_FFI_SIZE(XLA_FFI_Handler_Register_Args, traits, 84);
struct XLA_FFI_Type_Register_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ByteSpan name;
  XLA_FFI_TypeId* type_id;  // in and out; 0 asks for a new one
  const XLA_FFI_TypeInfo* type_info;
};
STROP_FFI_SIZE(XLA_FFI_Type_Register_Args, type_id, 40);
struct XLA_FFI_ExecutionContext_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_TypeId* type_id;
  void* data;  // out
};
STROP_FFI_SIZE(XLA_FFI_ExecutionContext_Get_Args, data, 40);
struct XLA_FFI_State_Set_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId* type_id;
  void* state;
};
STROP_FFI_SIZE(XLA_FFI_State_Set_Args, state, 48);
struct XLA_FFI_State_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_ExecutionStage stage;
  XLA_FFI_TypeId* type_id;
  void* state;  // out
};
STROP_FFI_SIZE(XLA_FFI_State_Get_Args, state, 48);
struct XLA_FFI_Stream_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  void* stream;  // out
};
STROP_FFI_SIZE(XLA_FFI_Stream_Get_Args, stream, 32);
struct XLA_FFI_DeviceMemory_Allocate_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  size_t size;
  size_t alignment;
  void* data;  // out
};
STROP_FFI_SIZE(XLA_FFI_DeviceMemory_Allocate_Args, data, 48);
struct XLA_FFI_DeviceMemory_Free_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  size_t size;
  void* data;
};
STROP_FFI_SIZE(XLA_FFI_DeviceMemory_Free_Args, data, 40);

using XLA_FFI_Task = void (*)(void* data);
struct XLA_FFI_ThreadPool_Schedule_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  XLA_FFI_Task task;
  void* data;
};
STROP_FFI_SIZE(XLA_FFI_ThreadPool_Schedule_Args, data, 40);
struct XLA_FFI_ThreadPool_NumThreads_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int64_t* num_threads;  // out
};
STROP_FFI_SIZE(XLA_FFI_ThreadPool_NumThreads_Args, num_threads, 32);
struct XLA_FFI_RunId_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int64_t run_id;  // out
};
STROP_FFI_SIZE(XLA_FFI_RunId_Get_Args, run_id, 32);
struct XLA_FFI_DeviceOrdinal_Get_Args {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_ExecutionContext* ctx;
  int32_t device_ordinal;  // out
};
STROP_FFI_SIZE(XLA_FFI_DeviceOrdinal_Get_Args, device_ordinal, 28);

// A handler that is called with this extension only fills the metadata and returns.
struct XLA_FFI_Metadata {
  size_t struct_size;
  XLA_FFI_Api_Version api_version;
  XLA_FFI_Handler_Traits traits;
  XLA_FFI_TypeId state_type_id;
};
STROP_FFI_SIZE(XLA_FFI_Metadata, traits, 36);
struct XLA_FFI_Metadata_Extension {
  XLA_FFI_Extension_Base extension_base;
  XLA_FFI_Metadata* metadata;
};
STROP_FFI_SIZE(XLA_FFI_Metadata_Extension, metadata, 32);

// The functions behind frame->api, in order.
struct XLA_FFI_Api {
  size_t struct_size;
  XLA_FFI_Extension_Base* extension_start;
  XLA_FFI_Api_Version api_version;
  const XLA_FFI_InternalApi* internal_api;
  XLA_FFI_Error* (*Error_Create)(XLA_FFI_Error_Create_Args*);
  void (*Error_GetMessage)(XLA_FFI_Error_GetMessage_Args*);
  void (*Error_Destroy)(XLA_FFI_Error_Destroy_Args*);
  XLA_FFI_Error* (*Handler_Register)(XLA_FFI_Handler_Register_Args*);
  XLA_FFI_Error* (*Stream_Get)(XLA_FFI_Stream_Get_Args*);
  XLA_FFI_Error* (*Type_Register)(XLA_FFI_Type_Register_Args*);
  XLA_FFI_Error* (*ExecutionContext_Get)(XLA_FFI_ExecutionContext_Get_Args*);
  XLA_FFI_Error* (*State_Set)(XLA_FFI_State_Set_Args*);
  XLA_FFI_Error* (*State_Get)(XLA_FFI_State_Get_Args*);
  XLA_FFI_Error* (*DeviceMemory_Allocate)(XLA_FFI_DeviceMemory_Allocate_Args*);
  XLA_FFI_Error* (*DeviceMemory_Free)(XLA_FFI_DeviceMemory_Free_Args*);
  XLA_FFI_Error* (*ThreadPool_Schedule)(XLA_FFI_ThreadPool_Schedule_Args*);
  XLA_FFI_Error* (*ThreadPool_NumThreads)(XLA_FFI_ThreadPool_NumThreads_Args*);
  XLA_FFI_Error* (*Future_Create)(XLA_FFI_Future_Create_Args*);
  XLA_FFI_Error* (*Future_SetAvailable)(XLA_FFI_Future_SetAvailable_Args*);
  XLA_FFI_Error* (*Future_SetError)(XLA_FFI_Future_SetError_Args*);
  XLA_FFI_Error* (*RunId_Get)(XLA_FFI_RunId_Get_Args*);
  XLA_FFI_Error* (*DeviceOrdinal_Get)(XLA_FFI_DeviceOrdinal_Get_Args*);
};
STROP_FFI_SIZE(XLA_FFI_Api, DeviceOrdinal_Get, 192);
