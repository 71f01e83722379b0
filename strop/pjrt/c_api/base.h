// PJRT C API 0.112, the ground: struct headers, extensions, errors, named values, events, and the enumerations.
// Written from the public interface's facts (names, order, sizes); every offset is pinned in layout.cc.
//
// Each struct starts with struct_size, the byte count that its *caller* knows: offset plus size of the last field,
// which is often less than sizeof. A field that lies beyond struct_size does not exist: it is neither read nor written.
#pragma once
#include <cstddef>
#include <cstdint>

#define STROP_PJRT_API_MAJOR 0
#define STROP_PJRT_API_MINOR 112

// Declares kStructSize<type>, and checks it against the measured size.
template <class T>
inline constexpr size_t kStructSize = 0;
#define STROP_PJRT_SIZE(type, last_field, bytes)                                                                 \
  template <>                                                                                                    \
  inline constexpr size_t kStructSize<type> = offsetof(type, last_field) + sizeof(((type*)nullptr)->last_field); \
  static_assert(kStructSize<type> == (bytes), #type " has the wrong size")

// Objects behind handles. Error and Memory start with a function table (below); the others are the plugin's own.
struct PJRT_Error;
struct PJRT_Event;
struct PJRT_Client;
struct PJRT_Device;
struct PJRT_DeviceDescription;
struct PJRT_Memory;
struct PJRT_TopologyDescription;
struct PJRT_Executable;
struct PJRT_LoadedExecutable;
struct PJRT_Buffer;
struct PJRT_ExecuteContext;
struct PJRT_CopyToDeviceStream;
struct PJRT_AsyncHostToDeviceTransferManager;
struct PJRT_AsyncTrackingEvent;
struct PJRT_FulfillAliasBufferCallback;
struct PJRT_MultiSlice_Config;
// What a serialised or listed answer keeps alive until its deleter is called.
struct PJRT_SerializedExecutable;
struct PJRT_SerializedCompileOptions;
struct PJRT_DeviceAssignmentSerialized;
struct PJRT_SerializedTopology;
struct PJRT_Device_Attributes;

enum PJRT_Extension_Type {
  PJRT_Extension_Type_Gpu_Custom_Call = 0,
  PJRT_Extension_Type_Profiler,
  PJRT_Extension_Type_Custom_Partitioner,
  PJRT_Extension_Type_Stream,
  PJRT_Extension_Type_Layouts,
  PJRT_Extension_Type_FFI,
  PJRT_Extension_Type_MemoryDescriptions,
  PJRT_Extension_Type_Triton,
  PJRT_Extension_Type_RawBuffer,
  PJRT_Extension_Type_PhaseCompile,
  PJRT_Extension_Type_Example,
  PJRT_Extension_Type_Unknown,
  PJRT_Extension_Type_CrossHostTransfers,
  PJRT_Extension_Type_ExecutableMetadata,
  PJRT_Extension_Type_Callback,
  PJRT_Extension_Type_HostAllocator,
  PJRT_Extension_Type_TpuTopology,
  PJRT_Extension_Type_TpuExecutable,
  PJRT_Extension_Type_Megascale,
  PJRT_Extension_Type_Shardings,
  PJRT_Extension_Type_AbiVersion,
  PJRT_Extension_Type_Collectives,
};

struct PJRT_Extension_Base {
  size_t struct_size;
  PJRT_Extension_Type type;
  PJRT_Extension_Base* next;
};
STROP_PJRT_SIZE(PJRT_Extension_Base, next, 24);

enum PJRT_Error_Code {
  PJRT_Error_Code_OK = 0,
  PJRT_Error_Code_CANCELLED = 1,
  PJRT_Error_Code_UNKNOWN = 2,
  PJRT_Error_Code_INVALID_ARGUMENT = 3,
  PJRT_Error_Code_DEADLINE_EXCEEDED = 4,
  PJRT_Error_Code_NOT_FOUND = 5,
  PJRT_Error_Code_ALREADY_EXISTS = 6,
  PJRT_Error_Code_PERMISSION_DENIED = 7,
  PJRT_Error_Code_RESOURCE_EXHAUSTED = 8,
  PJRT_Error_Code_FAILED_PRECONDITION = 9,
  PJRT_Error_Code_ABORTED = 10,
  PJRT_Error_Code_OUT_OF_RANGE = 11,
  PJRT_Error_Code_UNIMPLEMENTED = 12,
  PJRT_Error_Code_INTERNAL = 13,
  PJRT_Error_Code_UNAVAILABLE = 14,
  PJRT_Error_Code_DATA_LOSS = 15,
  PJRT_Error_Code_UNAUTHENTICATED = 16,
};

enum PJRT_Buffer_Type {
  PJRT_Buffer_Type_INVALID = 0,
  PJRT_Buffer_Type_PRED,
  PJRT_Buffer_Type_S8,
  PJRT_Buffer_Type_S16,
  PJRT_Buffer_Type_S32,
  PJRT_Buffer_Type_S64,
  PJRT_Buffer_Type_U8,
  PJRT_Buffer_Type_U16,
  PJRT_Buffer_Type_U32,
  PJRT_Buffer_Type_U64,
  PJRT_Buffer_Type_F16,
  PJRT_Buffer_Type_F32,
  PJRT_Buffer_Type_F64,
  PJRT_Buffer_Type_BF16,
  PJRT_Buffer_Type_C64,
  PJRT_Buffer_Type_C128,
  PJRT_Buffer_Type_F8E5M2,
  PJRT_Buffer_Type_F8E4M3FN,
  PJRT_Buffer_Type_F8E4M3B11FNUZ,
  PJRT_Buffer_Type_F8E5M2FNUZ,
  PJRT_Buffer_Type_F8E4M3FNUZ,
  PJRT_Buffer_Type_S4,
  PJRT_Buffer_Type_U4,
  PJRT_Buffer_Type_TOKEN,
  PJRT_Buffer_Type_S2,
  PJRT_Buffer_Type_U2,
  PJRT_Buffer_Type_F8E4M3,
  PJRT_Buffer_Type_F8E3M4,
  PJRT_Buffer_Type_F8E8M0FNU,
  PJRT_Buffer_Type_F4E2M1FN,
  PJRT_Buffer_Type_S1,
  PJRT_Buffer_Type_U1,
};
static_assert(PJRT_Buffer_Type_U1 == 31);

// How long the plugin may use the host memory behind BufferFromHostBuffer.
enum PJRT_HostBufferSemantics {
  PJRT_HostBufferSemantics_kImmutableOnlyDuringCall = 0,
  PJRT_HostBufferSemantics_kImmutableUntilTransferCompletes = 1,
  PJRT_HostBufferSemantics_kImmutableZeroCopy = 2,
  PJRT_HostBufferSemantics_kMutableZeroCopy = 3,
};

enum PJRT_NamedValue_Type {
  PJRT_NamedValue_kString = 0,
  PJRT_NamedValue_kInt64,
  PJRT_NamedValue_kInt64List,
  PJRT_NamedValue_kFloat,
  PJRT_NamedValue_kBool,
};

union PJRT_NamedValue_Union {
  const char* string_value;
  int64_t int64_value;
  const int64_t* int64_array_value;
  float float_value;
  bool bool_value;
};

struct PJRT_NamedValue {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* name;
  size_t name_size;
  PJRT_NamedValue_Type type;
  PJRT_NamedValue_Union value;
  size_t value_size;  // elements of a string or list, 1 for a scalar
};
STROP_PJRT_SIZE(PJRT_NamedValue, value_size, 56);

struct PJRT_Api_Version {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  int major_version;
  int minor_version;
};
STROP_PJRT_SIZE(PJRT_Api_Version, minor_version, 24);

// Errors. A null PJRT_Error* is success; the receiver of an error destroys it.
using PJRT_CallbackError = PJRT_Error* (*)(PJRT_Error_Code code, const char* message, size_t message_size);
using PJRT_Error_PayloadVisitor = void (*)(const char* key, size_t key_size, const char* value, size_t value_size,
                                           void* user_arg);

struct PJRT_Error_FunctionTable {
  size_t struct_size;
  size_t instance_size;
  PJRT_Extension_Base* extension_start;
  void (*destroy)(PJRT_Error* error);
  void (*message)(const PJRT_Error* error, const char** message, size_t* message_size);
  PJRT_Error_Code (*get_code)(const PJRT_Error* error);
  void (*for_each_payload)(const PJRT_Error* error, PJRT_Error_PayloadVisitor visitor, void* user_arg);
};
STROP_PJRT_SIZE(PJRT_Error_FunctionTable, for_each_payload, 56);

struct PJRT_Error_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Error* error;
};
STROP_PJRT_SIZE(PJRT_Error_Destroy_Args, error, 24);
struct PJRT_Error_Message_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;
  const char* message;  // out
  size_t message_size;  // out
};
STROP_PJRT_SIZE(PJRT_Error_Message_Args, message_size, 40);
struct PJRT_Error_GetCode_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;
  PJRT_Error_Code code;  // out
};
STROP_PJRT_SIZE(PJRT_Error_GetCode_Args, code, 28);
struct PJRT_Error_ForEachPayload_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Error* error;
  PJRT_Error_PayloadVisitor visitor;
  void* user_arg;
};
STROP_PJRT_SIZE(PJRT_Error_ForEachPayload_Args, user_arg, 40);

// The plugin as a whole.
struct PJRT_Plugin_Initialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
};
STROP_PJRT_SIZE(PJRT_Plugin_Initialize_Args, extension_start, 16);
struct PJRT_Plugin_Attributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_NamedValue* attributes;  // out; lives as long as the process
  size_t num_attributes;              // out
};
STROP_PJRT_SIZE(PJRT_Plugin_Attributes_Args, num_attributes, 32);

// Events: ready once, with or without an error.
using PJRT_Event_OnReadyCallback = void (*)(PJRT_Error* error, void* user_arg);

struct PJRT_Event_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
STROP_PJRT_SIZE(PJRT_Event_Destroy_Args, event, 24);
struct PJRT_Event_IsReady_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
  bool is_ready;  // out
};
STROP_PJRT_SIZE(PJRT_Event_IsReady_Args, is_ready, 25);
struct PJRT_Event_Error_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
STROP_PJRT_SIZE(PJRT_Event_Error_Args, event, 24);
struct PJRT_Event_Await_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
};
STROP_PJRT_SIZE(PJRT_Event_Await_Args, event, 24);
struct PJRT_Event_OnReady_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
  PJRT_Event_OnReadyCallback callback;
  void* user_arg;
};
STROP_PJRT_SIZE(PJRT_Event_OnReady_Args, user_arg, 40);
struct PJRT_Event_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;  // out
};
STROP_PJRT_SIZE(PJRT_Event_Create_Args, event, 24);
struct PJRT_Event_Set_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Event* event;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
};
STROP_PJRT_SIZE(PJRT_Event_Set_Args, error_message_size, 48);

// Layouts of buffers as the core API speaks of them; tiles are listed after the minor-to-major order.
enum PJRT_Buffer_MemoryLayout_Type {
  PJRT_Buffer_MemoryLayout_Type_Tiled = 0,
  PJRT_Buffer_MemoryLayout_Type_Strides,
};
struct PJRT_Buffer_MemoryLayout_Tiled {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* minor_to_major;
  size_t minor_to_major_size;
  const int64_t* tile_dims;
  const size_t* tile_dim_sizes;
  size_t num_tiles;
};
STROP_PJRT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles, 56);
struct PJRT_Buffer_MemoryLayout_Strides {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* byte_strides;
  size_t num_byte_strides;
};
STROP_PJRT_SIZE(PJRT_Buffer_MemoryLayout_Strides, num_byte_strides, 32);
union PJRT_Buffer_MemoryLayout_Union {
  PJRT_Buffer_MemoryLayout_Tiled tiled;
  PJRT_Buffer_MemoryLayout_Strides strides;
};
struct PJRT_Buffer_MemoryLayout {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer_MemoryLayout_Union layout;
  PJRT_Buffer_MemoryLayout_Type type;
};
STROP_PJRT_SIZE(PJRT_Buffer_MemoryLayout, type, 76);
struct PJRT_ShapeSpec {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
};
STROP_PJRT_SIZE(PJRT_ShapeSpec, element_type, 36);

// A piece of host memory that is handed over; the receiver calls the deleter.
struct PJRT_Chunk {
  void* data;
  size_t size;
  void (*deleter)(void* data, void* deleter_arg);
  void* deleter_arg;
};
