// The extensions of the PJRT C API that Strop offers: a chain of {struct_size, type, next} behind PJRT_Api.
#pragma once
#include "strop/pjrt/c_api.h"

// Layouts: text forms such as "{1,0}" of buffers, of executables and of what a shape gets by default.
struct PJRT_Layouts_MemoryLayout;
struct PJRT_Layouts_SerializedLayout;

struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
};
STROP_PJRT_SIZE(PJRT_Layouts_MemoryLayout_Destroy_Args, layout, 24);
using PJRT_SerializedLayoutDeleter = void (*)(PJRT_Layouts_SerializedLayout* layout);
struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
  const char* serialized_bytes;                            // out
  size_t serialized_bytes_size;                            // out
  PJRT_Layouts_SerializedLayout* serialized_layout;        // out
  PJRT_SerializedLayoutDeleter serialized_layout_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_Layouts_MemoryLayout_Serialize_Args, serialized_layout_deleter, 56);
struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;  // out
};
STROP_PJRT_SIZE(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args, layout, 56);
struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Layouts_MemoryLayout* layout;  // out
};
STROP_PJRT_SIZE(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args, layout, 32);
struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology_description;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;  // out
};
STROP_PJRT_SIZE(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args, layout, 56);
struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;                   // out
  PJRT_Layouts_MemoryLayout** layouts;  // out; owned by the executable
};
STROP_PJRT_SIZE(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args, layouts, 40);
struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;                // out
  PJRT_Layouts_MemoryLayout** layouts;  // out; owned by the executable
};
STROP_PJRT_SIZE(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args, layouts, 40);

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*memory_layout_destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args*);
  PJRT_Error* (*memory_layout_serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args*);
  PJRT_Error* (*client_get_default_layout)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args*);
  PJRT_Error* (*buffer_memory_layout)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args*);
  PJRT_Error* (*topology_get_default_layout)(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args*);
  PJRT_Error* (*executable_get_output_layouts)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args*);
  PJRT_Error* (*executable_get_parameter_layouts)(PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args*);
};
STROP_PJRT_SIZE(PJRT_Layouts_Extension, executable_get_parameter_layouts, 80);

// Shardings: serialised xla.OpSharding per parameter and output; empty text means replicated.
struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;         // out
  const char* const* shardings;  // out
  const size_t* sharding_sizes;  // out
};
STROP_PJRT_SIZE(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args, sharding_sizes, 48);
struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;            // out
  const char* const* shardings;  // out
  const size_t* sharding_sizes;  // out
};
STROP_PJRT_SIZE(PJRT_Shardings_PJRT_Executable_OutputShardings_Args, sharding_sizes, 48);

struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*executable_parameter_shardings)(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args*);
  PJRT_Error* (*executable_output_shardings)(PJRT_Shardings_PJRT_Executable_OutputShardings_Args*);
};
STROP_PJRT_SIZE(PJRT_Shardings_Extension, executable_output_shardings, 40);

// Transfers between processes: of each buffer, the device at the other end and a key, which both ends give alike. The
// first two functions are an older form.
struct PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_buffers;
  PJRT_Buffer** buffers;
  const int32_t* dst_global_device_ids;
  const int64_t* transfer_keys;
  PJRT_Event** send_events;  // out, num_buffers
};
STROP_PJRT_SIZE(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args, send_events, 64);
struct PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_shapes;
  size_t* shape_num_dims;
  const int64_t** dims;
  PJRT_Buffer_Type* element_types;
  PJRT_Buffer_MemoryLayout** layouts;
  PJRT_Device* device;
  const int32_t* src_global_device_ids;
  const int64_t* transfer_keys;
  PJRT_Buffer** buffers;  // out, num_shapes
};
STROP_PJRT_SIZE(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args, buffers, 96);
struct PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_shapes;
  size_t* shape_num_dims;
  const int64_t** dims;
  PJRT_Buffer_Type* element_types;
  PJRT_Buffer_MemoryLayout** layouts;
  PJRT_Device* device;
  void* notifier_user_arg;
  void (*notifier)();
  PJRT_Buffer** buffers;  // out
  size_t num_buffers;     // out
};
STROP_PJRT_SIZE(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args, num_buffers, 104);
struct PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Event* event;
  char** serialized_descriptor;
  size_t* serialized_descriptor_size;
  void* on_done_user_arg;
  void (*on_done)(PJRT_Error* error, bool sends_were_enqueued, void* user_arg);
};
STROP_PJRT_SIZE(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args, on_done, 64);

struct PJRT_CrossHostTransfers_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*make_cross_host_receive_buffers)(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args*);
  void (*copy_to_remote_device)(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args*);
  PJRT_Error* (*cross_host_receive_buffers)(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args*);
  PJRT_Error* (*cross_host_send_buffers)(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args*);
};
STROP_PJRT_SIZE(PJRT_CrossHostTransfers_Extension, cross_host_send_buffers, 56);

// FFI: user data for the typed custom calls of one execution, and handlers.
struct PJRT_FFI_Type_Info {
  void (*deleter)(void* object);
  void (*serialize)();
  void (*deserialize)();
};
struct PJRT_FFI_Type_Register_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;  // in and out; 0 asks for a new one
  PJRT_FFI_Type_Info* type_info;
};
STROP_PJRT_SIZE(PJRT_FFI_Type_Register_Args, type_info, 48);

struct PJRT_FFI_UserData {
  int64_t type_id;
  void* data;
};
struct PJRT_FFI_UserData_Add_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
  PJRT_FFI_UserData user_data;
};
STROP_PJRT_SIZE(PJRT_FFI_UserData_Add_Args, user_data, 40);
struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  int api_version;  // 0 untyped, 1 typed
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  int traits;
};
STROP_PJRT_SIZE(PJRT_FFI_Register_Handler_Args, traits, 60);

struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(PJRT_FFI_Type_Register_Args*);
  PJRT_Error* (*user_data_add)(PJRT_FFI_UserData_Add_Args*);
  PJRT_Error* (*register_handler)(PJRT_FFI_Register_Handler_Args*);
};
STROP_PJRT_SIZE(PJRT_FFI_Extension, register_handler, 48);

// MemoryDescriptions: what memories a device description has, without a client.
struct PJRT_MemoryDescription;
struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const PJRT_MemoryDescription* const* memory_descriptions;  // out
  size_t num_memory_descriptions;                            // out
  size_t default_memory_index;                               // out; all ones: none
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_MemoryDescriptions_Args, default_memory_index, 48);
struct PJRT_MemoryDescription_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_MemoryDescription* memory_description;
  const char* kind;  // out
  size_t kind_size;  // out
  int kind_id;       // out
};
STROP_PJRT_SIZE(PJRT_MemoryDescription_Kind_Args, kind_id, 44);

struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*device_description_memory_descriptions)(PJRT_DeviceDescription_MemoryDescriptions_Args*);
  PJRT_Error* (*memory_description_kind)(PJRT_MemoryDescription_Kind_Args*);
};
STROP_PJRT_SIZE(PJRT_MemoryDescriptions_Extension, memory_description_kind, 40);

// Custom partitioners: what jaxlib hands over when it loads the library. Both entries are called, so both must exist.
// Shapes and shardings travel as serialised xla.ShapeProto and xla.OpSharding.
struct JAX_CustomCallPartitioner_string {
  const char* data;
  size_t size;
};
struct JAX_CustomCallPartitioner_aval {
  JAX_CustomCallPartitioner_string shape;
  bool has_sharding;
  JAX_CustomCallPartitioner_string sharding;
};
struct JAX_CustomCallPartitioner_version_and_error {
  int64_t api_version;
  void* data;                                  // out
  void (*cleanup_fn)(void* data);              // out: frees the results
  bool has_error;                              // out
  PJRT_Error_Code code;                        // out
  JAX_CustomCallPartitioner_string error_msg;  // out
};
struct JAX_CustomCallPartitioner_Partition_Args {
  JAX_CustomCallPartitioner_version_and_error header;
  size_t num_args;
  JAX_CustomCallPartitioner_aval* op_args;
  JAX_CustomCallPartitioner_aval op_result;
  JAX_CustomCallPartitioner_string backend_config;
  JAX_CustomCallPartitioner_string mlir_module;      // out
  JAX_CustomCallPartitioner_string* args_sharding;   // out: num_args
  JAX_CustomCallPartitioner_string result_sharding;  // out
};
struct JAX_CustomCallPartitioner_InferShardingFromOperands_Args {
  JAX_CustomCallPartitioner_version_and_error header;
  size_t num_args;
  JAX_CustomCallPartitioner_aval* op_args;
  JAX_CustomCallPartitioner_string result_shape;
  JAX_CustomCallPartitioner_string backend_config;
  bool has_result_sharding;                          // out
  JAX_CustomCallPartitioner_string result_sharding;  // out
};
struct JAX_CustomCallPartitioner_PropagateUserSharding_Args {
  JAX_CustomCallPartitioner_version_and_error header;
  JAX_CustomCallPartitioner_string backend_config;
  JAX_CustomCallPartitioner_string result_shape;
  JAX_CustomCallPartitioner_string result_sharding;  // in and out
};
struct JAX_CustomCallPartitioner_Callbacks {
  int64_t version;
  void* private_data;
  void (*dtor)(JAX_CustomCallPartitioner_Callbacks* data);
  void (*partition)(JAX_CustomCallPartitioner_Callbacks* data, JAX_CustomCallPartitioner_Partition_Args* args);
  void (*infer_sharding)(JAX_CustomCallPartitioner_Callbacks* data,
                         JAX_CustomCallPartitioner_InferShardingFromOperands_Args* args);
  void (*propagate_user_sharding)(JAX_CustomCallPartitioner_Callbacks* data,
                                  JAX_CustomCallPartitioner_PropagateUserSharding_Args* args);
  bool can_side_effecting_have_replicated_sharding;
};

// The bytes of a call "InspectSharding" are this struct.
struct JAX_InspectSharding_Callback_Args {
  const char* sharding_spec;
  size_t sharding_spec_size;
  const char* error_txt;  // out
  void* error_scratch;    // out
  void (*free_error)(JAX_InspectSharding_Callback_Args* args);
};
struct JAX_InspectSharding_Callback {
  void (*call)(void* data, JAX_InspectSharding_Callback_Args* args);
  void* data;
};

struct PJRT_Register_Custom_Partitioner_Args {
  size_t struct_size;
  const char* name;
  size_t name_size;
  JAX_CustomCallPartitioner_Callbacks* callbacks;
};
STROP_PJRT_SIZE(PJRT_Register_Custom_Partitioner_Args, callbacks, 32);
struct PJRT_Register_Batch_Partitionable_Args {
  size_t struct_size;
  const char* name;
  size_t name_size;
};
STROP_PJRT_SIZE(PJRT_Register_Batch_Partitionable_Args, name_size, 24);

struct PJRT_Custom_Partitioner_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*register_custom_partitioner)(PJRT_Register_Custom_Partitioner_Args*);
  PJRT_Error* (*register_batch_partitionable)(PJRT_Register_Batch_Partitionable_Args*);
};
STROP_PJRT_SIZE(PJRT_Custom_Partitioner_Extension, register_batch_partitionable, 40);
