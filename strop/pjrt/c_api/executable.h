// PJRT C API 0.112: executables and their execution.
#pragma once
#include "strop/pjrt/c_api/client.h"

struct PJRT_Executable_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
};
STROP_PJRT_SIZE(PJRT_Executable_Destroy_Args, executable, 24);
struct PJRT_Executable_Name_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  const char* executable_name;  // out
  size_t executable_name_size;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_Name_Args, executable_name_size, 40);
struct PJRT_Executable_NumReplicas_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_replicas;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_NumReplicas_Args, num_replicas, 32);
struct PJRT_Executable_NumPartitions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_partitions;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_NumPartitions_Args, num_partitions, 32);
struct PJRT_Executable_NumOutputs_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_NumOutputs_Args, num_outputs, 32);
struct PJRT_Executable_SizeOfGeneratedCodeInBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  int64_t size_in_bytes;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args, size_in_bytes, 32);
struct PJRT_Executable_GetCostAnalysis_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_properties;              // out
  const PJRT_NamedValue* properties;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_GetCostAnalysis_Args, properties, 40);
struct PJRT_Executable_OutputMemoryKinds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;               // out
  const char* const* memory_kinds;  // out
  const size_t* memory_kind_sizes;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_OutputMemoryKinds_Args, memory_kind_sizes, 48);
struct PJRT_Executable_ParameterMemoryKinds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;            // out
  const char* const* memory_kinds;  // out
  const size_t* memory_kind_sizes;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_ParameterMemoryKinds_Args, memory_kind_sizes, 48);
struct PJRT_Executable_OutputElementTypes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  PJRT_Buffer_Type* output_types;  // out
  size_t num_output_types;         // out
};
STROP_PJRT_SIZE(PJRT_Executable_OutputElementTypes_Args, num_output_types, 40);
struct PJRT_Executable_OutputDimensions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;       // out
  const int64_t* dims;      // out; of all outputs, one after the other
  const size_t* dim_sizes;  // out; rank of each
};
STROP_PJRT_SIZE(PJRT_Executable_OutputDimensions_Args, dim_sizes, 48);
struct PJRT_Executable_Fingerprint_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  const char* executable_fingerprint;  // out
  size_t executable_fingerprint_size;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_Fingerprint_Args, executable_fingerprint_size, 40);
struct PJRT_Executable_OptimizedProgram_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  PJRT_Program* program;  // code null: only sizes are asked
};
STROP_PJRT_SIZE(PJRT_Executable_OptimizedProgram_Args, program, 32);

// Grew with the versions: torch_xla 2.9 sends 112 bytes, jaxlib 0.10.2 144.
struct PJRT_Executable_GetCompiledMemoryStats_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  int64_t generated_code_size_in_bytes;
  int64_t argument_size_in_bytes;
  int64_t output_size_in_bytes;
  int64_t alias_size_in_bytes;
  int64_t temp_size_in_bytes;
  int64_t host_generated_code_size_in_bytes;
  int64_t host_argument_size_in_bytes;
  int64_t host_output_size_in_bytes;
  int64_t host_alias_size_in_bytes;
  int64_t host_temp_size_in_bytes;
  int64_t peak_memory_in_bytes;
  int64_t total_size_in_bytes;
  int64_t total_allocation_bytes;
  int64_t indefinite_allocations;
  int64_t peak_unpadded_heap_bytes;
};
STROP_PJRT_SIZE(PJRT_Executable_GetCompiledMemoryStats_Args, peak_unpadded_heap_bytes, 144);

using PJRT_SerializedExecutableDeleter = void (*)(PJRT_SerializedExecutable* executable);
using PJRT_SerializedCompileOptionsDeleter = void (*)(PJRT_SerializedCompileOptions* options);
using PJRT_DeviceAssignmentDeleter = void (*)(PJRT_DeviceAssignmentSerialized* assignment);

struct PJRT_Executable_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_Executable* executable;
  const char* serialized_bytes;                                    // out
  size_t serialized_bytes_size;                                    // out
  PJRT_SerializedExecutable* serialized_executable;                // out
  PJRT_SerializedExecutableDeleter serialized_executable_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_Serialize_Args, serialized_executable_deleter, 56);
struct PJRT_Executable_GetCompileOptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  const char* serialized_bytes;                                             // out
  size_t serialized_bytes_size;                                             // out
  PJRT_SerializedCompileOptions* serialized_compile_options;                // out
  PJRT_SerializedCompileOptionsDeleter serialized_compile_options_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_Executable_GetCompileOptions_Args, serialized_compile_options_deleter, 56);
struct PJRT_LoadOptions {
  size_t struct_size;
  const int32_t* computation_origin;
  size_t computation_origin_size;
  PJRT_MultiSlice_Config* multi_slice_config;
};
STROP_PJRT_SIZE(PJRT_LoadOptions, multi_slice_config, 32);
struct PJRT_Executable_DeserializeAndLoad_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  const char* serialized_executable;
  size_t serialized_executable_size;
  PJRT_LoadedExecutable* loaded_executable;  // out
  const char* overridden_serialized_compile_options;
  size_t overridden_serialized_compile_options_size;
  PJRT_LoadOptions* load_options;
};
STROP_PJRT_SIZE(PJRT_Executable_DeserializeAndLoad_Args, load_options, 72);

struct PJRT_LoadedExecutable_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_Destroy_Args, executable, 24);
struct PJRT_LoadedExecutable_GetExecutable_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* loaded_executable;
  PJRT_Executable* executable;  // out
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_GetExecutable_Args, executable, 32);
struct PJRT_LoadedExecutable_AddressableDevices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_Device* const* addressable_devices;  // out
  size_t num_addressable_devices;           // out
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_AddressableDevices_Args, num_addressable_devices, 40);

struct PJRT_LogicalDeviceIds {
  int replica;
  int partition;
};

struct PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_LogicalDeviceIds* addressable_device_logical_ids;  // out
  size_t num_addressable_device_logical_ids;              // out
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args, num_addressable_device_logical_ids, 40);
struct PJRT_LoadedExecutable_GetDeviceAssignment_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  const char* serialized_bytes;                                       // out; DeviceAssignmentProto
  size_t serialized_bytes_size;                                       // out
  PJRT_DeviceAssignmentSerialized* serialized_device_assignment;      // out
  PJRT_DeviceAssignmentDeleter serialized_device_assignment_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_GetDeviceAssignment_Args, serialized_device_assignment_deleter, 56);
struct PJRT_LoadedExecutable_Delete_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_Delete_Args, executable, 24);
struct PJRT_LoadedExecutable_IsDeleted_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  bool is_deleted;  // out
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_IsDeleted_Args, is_deleted, 25);
struct PJRT_LoadedExecutable_Fingerprint_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  const char* executable_fingerprint;  // out
  size_t executable_fingerprint_size;  // out
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_Fingerprint_Args, executable_fingerprint_size, 40);

// Host callbacks that older frontends pass with an execution (send and recv ops with a host channel).
using PJRT_SendCallback = PJRT_Error* (*)(PJRT_Chunk * chunk, PJRT_CallbackError* callback_error,
                                          size_t total_size_in_bytes, bool done, void* user_arg);
using PJRT_RecvCallback = void (*)(PJRT_CopyToDeviceStream* stream, void* user_arg);
using PJRT_HloOutputCallback = void (*)(int64_t replica_id, int64_t partition_id, const void* data,
                                        const int64_t* shape_dims, size_t shape_num_dims,
                                        PJRT_Buffer_Type shape_element_type, int64_t operand_index, void* user_arg);
struct PJRT_SendCallbackInfo {
  int64_t channel_id;
  void* user_arg;
  PJRT_SendCallback send_callback;
};
struct PJRT_RecvCallbackInfo {
  int64_t channel_id;
  void* user_arg;
  PJRT_RecvCallback recv_callback;
};
struct PJRT_HloOutputCallbackInfo {
  void* user_arg;
  PJRT_HloOutputCallback callback;
  int64_t callback_id;
  size_t num_operands;
};

// torch_xla 2.9 sends 80 bytes, TensorFlow 2.21 112, jaxlib 0.10.2 144.
struct PJRT_ExecuteOptions {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_SendCallbackInfo** send_callbacks;  // [num_devices][num_send_ops]
  PJRT_RecvCallbackInfo** recv_callbacks;
  size_t num_send_ops;
  size_t num_recv_ops;
  int launch_id;
  const int64_t* non_donatable_input_indices;
  size_t num_non_donatable_input_indices;
  PJRT_ExecuteContext* context;
  const char* call_location;
  size_t num_tasks;
  int* task_ids;
  int64_t* incarnation_ids;
  PJRT_MultiSlice_Config* multi_slice_config;
  bool use_major_to_minor_data_layout_for_callbacks;
  PJRT_HloOutputCallbackInfo* hlo_output_callbacks;
  size_t num_hlo_output_callbacks;
};
STROP_PJRT_SIZE(PJRT_ExecuteOptions, num_hlo_output_callbacks, 144);
struct PJRT_LoadedExecutable_Execute_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_LoadedExecutable* executable;
  PJRT_ExecuteOptions* options;
  PJRT_Buffer* const* const* argument_lists;  // [num_devices][num_args]
  size_t num_devices;
  size_t num_args;
  PJRT_Buffer** const* output_lists;    // [num_devices][num_outputs], filled
  PJRT_Event** device_complete_events;  // [num_devices], filled; may be null
  PJRT_Device* execute_device;          // may be null
};
STROP_PJRT_SIZE(PJRT_LoadedExecutable_Execute_Args, execute_device, 80);
struct PJRT_ExecuteContext_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;  // out
};
STROP_PJRT_SIZE(PJRT_ExecuteContext_Create_Args, context, 24);
struct PJRT_ExecuteContext_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
};
STROP_PJRT_SIZE(PJRT_ExecuteContext_Destroy_Args, context, 24);
