// PJRT C API 0.112: devices, their descriptions, memories and topologies.
#pragma once
#include "strop/pjrt/c_api/client.h"

struct PJRT_DeviceDescription_Id_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  int id;  // out
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_Id_Args, id, 28);
struct PJRT_DeviceDescription_ProcessIndex_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  int process_index;  // out
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_ProcessIndex_Args, process_index, 28);
struct PJRT_DeviceDescription_Attributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  size_t num_attributes;              // out
  const PJRT_NamedValue* attributes;  // out
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_Attributes_Args, attributes, 40);
struct PJRT_DeviceDescription_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* device_kind;  // out
  size_t device_kind_size;  // out
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_Kind_Args, device_kind_size, 40);
struct PJRT_DeviceDescription_DebugString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* debug_string;  // out
  size_t debug_string_size;  // out
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_DebugString_Args, debug_string_size, 40);
struct PJRT_DeviceDescription_ToString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const char* to_string;  // out
  size_t to_string_size;  // out
};
STROP_PJRT_SIZE(PJRT_DeviceDescription_ToString_Args, to_string_size, 40);

struct PJRT_Device_GetDescription_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  PJRT_DeviceDescription* device_description;  // out
};
STROP_PJRT_SIZE(PJRT_Device_GetDescription_Args, device_description, 32);
struct PJRT_Device_IsAddressable_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  bool is_addressable;  // out
};
STROP_PJRT_SIZE(PJRT_Device_IsAddressable_Args, is_addressable, 25);
struct PJRT_Device_LocalHardwareId_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  int local_hardware_id;  // out
};
STROP_PJRT_SIZE(PJRT_Device_LocalHardwareId_Args, local_hardware_id, 28);
struct PJRT_Device_AddressableMemories_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  PJRT_Memory* const* memories;  // out
  size_t num_memories;           // out
};
STROP_PJRT_SIZE(PJRT_Device_AddressableMemories_Args, num_memories, 40);
struct PJRT_Device_DefaultMemory_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  PJRT_Memory* memory;  // out
};
STROP_PJRT_SIZE(PJRT_Device_DefaultMemory_Args, memory, 32);

// Callers leave the out fields as they were: each *_is_set must be written.
struct PJRT_Device_MemoryStats_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  int64_t bytes_in_use;
  int64_t peak_bytes_in_use;
  bool peak_bytes_in_use_is_set;
  int64_t num_allocs;
  bool num_allocs_is_set;
  int64_t largest_alloc_size;
  bool largest_alloc_size_is_set;
  int64_t bytes_limit;
  bool bytes_limit_is_set;
  int64_t bytes_reserved;
  bool bytes_reserved_is_set;
  int64_t peak_bytes_reserved;
  bool peak_bytes_reserved_is_set;
  int64_t bytes_reservable_limit;
  bool bytes_reservable_limit_is_set;
  int64_t largest_free_block_bytes;
  bool largest_free_block_bytes_is_set;
  int64_t pool_bytes;
  bool pool_bytes_is_set;
  int64_t peak_pool_bytes;
  bool peak_pool_bytes_is_set;
};
STROP_PJRT_SIZE(PJRT_Device_MemoryStats_Args, peak_pool_bytes_is_set, 185);
struct PJRT_Device_ClearMemoryStats_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
};
STROP_PJRT_SIZE(PJRT_Device_ClearMemoryStats_Args, device, 24);
struct PJRT_Device_PoisonExecution_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  int32_t launch_id;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
  bool poisoned;  // out
  const PJRT_NamedValue* payload;
  size_t num_payload;
};
STROP_PJRT_SIZE(PJRT_Device_PoisonExecution_Args, num_payload, 72);
using PJRT_DeviceAttributesDeleter = void (*)(PJRT_Device_Attributes* device_attributes);
struct PJRT_Device_GetAttributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  const PJRT_NamedValue* attributes;                // out
  size_t num_attributes;                            // out
  PJRT_Device_Attributes* device_attributes;        // out; backs `attributes`
  PJRT_DeviceAttributesDeleter attributes_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_Device_GetAttributes_Args, attributes_deleter, 56);
struct PJRT_Device_CreateAsyncTrackingEvent_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Device* device;
  const char* description;
  size_t description_size;
  PJRT_AsyncTrackingEvent* event;  // out
};
STROP_PJRT_SIZE(PJRT_Device_CreateAsyncTrackingEvent_Args, event, 48);
struct PJRT_AsyncTrackingEvent_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_AsyncTrackingEvent* event;
};
STROP_PJRT_SIZE(PJRT_AsyncTrackingEvent_Destroy_Args, event, 24);

// From 0.105 on, every PJRT_Memory starts with a pointer to this table.
struct PJRT_Memory_FunctionTable {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  size_t instance_struct_size;
  void* (*get_user_data)(PJRT_Memory* memory, const void* key);
  void (*set_user_data)(PJRT_Memory* memory, const void* key, void* data, void (*dtor)(void* data));
};
STROP_PJRT_SIZE(PJRT_Memory_FunctionTable, set_user_data, 40);

struct PJRT_Memory_Id_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  int id;  // out
};
STROP_PJRT_SIZE(PJRT_Memory_Id_Args, id, 28);
struct PJRT_Memory_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  const char* kind;  // out
  size_t kind_size;  // out
};
STROP_PJRT_SIZE(PJRT_Memory_Kind_Args, kind_size, 40);
struct PJRT_Memory_Kind_Id_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  int kind_id;  // out
};
STROP_PJRT_SIZE(PJRT_Memory_Kind_Id_Args, kind_id, 28);
struct PJRT_Memory_DebugString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  const char* debug_string;  // out
  size_t debug_string_size;  // out
};
STROP_PJRT_SIZE(PJRT_Memory_DebugString_Args, debug_string_size, 40);
struct PJRT_Memory_ToString_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  const char* to_string;  // out
  size_t to_string_size;  // out
};
STROP_PJRT_SIZE(PJRT_Memory_ToString_Args, to_string_size, 40);
struct PJRT_Memory_AddressableByDevices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Memory* memory;
  PJRT_Device* const* devices;  // out
  size_t num_devices;           // out
};
STROP_PJRT_SIZE(PJRT_Memory_AddressableByDevices_Args, num_devices, 40);

struct PJRT_TopologyDescription_Create_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* topology_name;
  size_t topology_name_size;
  const PJRT_NamedValue* create_options;
  size_t num_options;
  PJRT_TopologyDescription* topology;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_Create_Args, topology, 56);
struct PJRT_TopologyDescription_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_Destroy_Args, topology, 24);
struct PJRT_TopologyDescription_PlatformName_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const char* platform_name;  // out
  size_t platform_name_size;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_PlatformName_Args, platform_name_size, 40);
struct PJRT_TopologyDescription_PlatformVersion_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const char* platform_version;  // out
  size_t platform_version_size;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_PlatformVersion_Args, platform_version_size, 40);
struct PJRT_TopologyDescription_GetDeviceDescriptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  PJRT_DeviceDescription* const* descriptions;  // out
  size_t num_descriptions;                      // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_GetDeviceDescriptions_Args, num_descriptions, 40);
using PJRT_SerializedTopologyDeleter = void (*)(PJRT_SerializedTopology* serialized_topology);
struct PJRT_TopologyDescription_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const char* serialized_bytes;                                // out
  size_t serialized_bytes_size;                                // out
  PJRT_SerializedTopology* serialized_topology;                // out
  PJRT_SerializedTopologyDeleter serialized_topology_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_Serialize_Args, serialized_topology_deleter, 56);
struct PJRT_TopologyDescription_Deserialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* serialized_topology;
  size_t serialized_topology_size;
  PJRT_TopologyDescription* topology;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_Deserialize_Args, topology, 40);
struct PJRT_TopologyDescription_Attributes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const PJRT_NamedValue* attributes;  // out
  size_t num_attributes;              // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_Attributes_Args, num_attributes, 40);
struct PJRT_TopologyDescription_Fingerprint_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  uint64_t fingerprint;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_Fingerprint_Args, fingerprint, 32);
using PJRT_SerializedShapeDeleter = void (*)(const char* serialized_shape);
struct PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  int memory_space_kind_id;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_Type element_type;
  const PJRT_Buffer_MemoryLayout* layout;
  const char* serialized_shape;                          // out
  size_t serialized_shape_size;                          // out
  PJRT_SerializedShapeDeleter serialized_shape_deleter;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args, serialized_shape_deleter, 88);
struct PJRT_TopologyDescription_GetMemorySpaceKindIds_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology;
  const int* memory_space_kind_ids;  // out
  size_t num_memory_space_kind_ids;  // out
};
STROP_PJRT_SIZE(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args, num_memory_space_kind_ids, 40);
struct PJRT_Compile_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_TopologyDescription* topology;
  const PJRT_Program* program;
  const char* compile_options;
  size_t compile_options_size;
  PJRT_Client* client;          // may be null
  PJRT_Executable* executable;  // out
};
STROP_PJRT_SIZE(PJRT_Compile_Args, executable, 64);
