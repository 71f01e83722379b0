// PJRT C API 0.112: buffers, device to host, and the stream that fills a recv.
#pragma once
#include "strop/pjrt/c_api/base.h"

struct PJRT_Buffer_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
STROP_PJRT_SIZE(PJRT_Buffer_Destroy_Args, buffer, 24);
struct PJRT_Buffer_ElementType_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type type;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_ElementType_Args, type, 28);
struct PJRT_Buffer_Dimensions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  const int64_t* dims;  // out
  size_t num_dims;      // out
};
STROP_PJRT_SIZE(PJRT_Buffer_Dimensions_Args, num_dims, 40);
struct PJRT_Buffer_UnpaddedDimensions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  const int64_t* unpadded_dims;  // out
  size_t num_dims;               // out
};
STROP_PJRT_SIZE(PJRT_Buffer_UnpaddedDimensions_Args, num_dims, 40);
struct PJRT_Buffer_DynamicDimensionIndices_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  const size_t* dynamic_dim_indices;  // out
  size_t num_dynamic_dims;            // out
};
STROP_PJRT_SIZE(PJRT_Buffer_DynamicDimensionIndices_Args, num_dynamic_dims, 40);
struct PJRT_Buffer_GetMemoryLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_MemoryLayout layout;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_GetMemoryLayout_Args, layout, 104);
struct PJRT_Buffer_OnDeviceSizeInBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  size_t on_device_size_in_bytes;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_OnDeviceSizeInBytes_Args, on_device_size_in_bytes, 32);
struct PJRT_Buffer_Device_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Device* device;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_Device_Args, device, 32);
struct PJRT_Buffer_Memory_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Memory* memory;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_Memory_Args, memory, 32);
struct PJRT_Buffer_Delete_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
STROP_PJRT_SIZE(PJRT_Buffer_Delete_Args, buffer, 24);
struct PJRT_Buffer_IsDeleted_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  bool is_deleted;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_IsDeleted_Args, is_deleted, 25);
struct PJRT_Buffer_CopyToDevice_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Device* dst_device;
  PJRT_Buffer* dst_buffer;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_CopyToDevice_Args, dst_buffer, 40);
struct PJRT_Buffer_CopyToMemory_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Memory* dst_memory;
  PJRT_Buffer* dst_buffer;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_CopyToMemory_Args, dst_buffer, 40);
struct PJRT_Buffer_ToHostBuffer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* src;
  PJRT_Buffer_MemoryLayout* host_layout;  // null: the layout of src
  void* dst;                              // null: only dst_size is asked
  size_t dst_size;
  PJRT_Event* event;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_ToHostBuffer_Args, event, 56);
struct PJRT_Buffer_IsOnCpu_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  bool is_on_cpu;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_IsOnCpu_Args, is_on_cpu, 25);
struct PJRT_Buffer_ReadyEvent_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Event* event;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_ReadyEvent_Args, event, 32);
struct PJRT_Buffer_UnsafePointer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  uintptr_t buffer_pointer;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_UnsafePointer_Args, buffer_pointer, 32);
struct PJRT_Buffer_IncreaseExternalReferenceCount_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
STROP_PJRT_SIZE(PJRT_Buffer_IncreaseExternalReferenceCount_Args, buffer, 24);
struct PJRT_Buffer_DecreaseExternalReferenceCount_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
};
STROP_PJRT_SIZE(PJRT_Buffer_DecreaseExternalReferenceCount_Args, buffer, 24);
struct PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  void* device_memory_ptr;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args, device_memory_ptr, 32);
struct PJRT_Buffer_CopyRawToHost_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  void* dst;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event* event;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_CopyRawToHost_Args, event, 56);

// The destination comes later: the plugin returns callback and data, and the caller calls it with dst or an error.
struct PJRT_Buffer_CopyRawToHostFuture_Callback_Args {
  size_t struct_size;
  void* callback_data;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
  void* dst;
};
STROP_PJRT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Callback_Args, dst, 48);
using PJRT_CopyRawToHostFutureCallback = void (*)(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args);
struct PJRT_Buffer_CopyRawToHostFuture_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  int64_t offset;
  int64_t transfer_size;
  PJRT_Event* event;                                       // out
  void* callback_data;                                     // out
  PJRT_CopyRawToHostFutureCallback future_ready_callback;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_CopyRawToHostFuture_Args, future_ready_callback, 64);
struct PJRT_Buffer_DonateWithControlDependency_Callback_Args {
  size_t struct_size;
  void* callback_data;
  PJRT_Error_Code error_code;
  const char* error_message;
  size_t error_message_size;
};
STROP_PJRT_SIZE(PJRT_Buffer_DonateWithControlDependency_Callback_Args, error_message_size, 40);
using PJRT_DependencyReadyCallback = void (*)(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args);
struct PJRT_Buffer_DonateWithControlDependency_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  void* callback_data;                                     // out
  PJRT_DependencyReadyCallback dependency_ready_callback;  // out
  PJRT_Buffer* out_buffer;                                 // out
};
STROP_PJRT_SIZE(PJRT_Buffer_DonateWithControlDependency_Args, out_buffer, 48);
struct PJRT_Buffer_Bitcast_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Buffer_Type element_type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Buffer_MemoryLayout* device_layout;
  PJRT_Buffer* out_buffer;  // out
};
STROP_PJRT_SIZE(PJRT_Buffer_Bitcast_Args, out_buffer, 64);

struct PJRT_CopyToDeviceStream_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
};
STROP_PJRT_SIZE(PJRT_CopyToDeviceStream_Destroy_Args, stream, 24);
struct PJRT_CopyToDeviceStream_AddChunk_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  PJRT_Chunk* chunk;
  PJRT_Event* transfer_complete;  // out
};
STROP_PJRT_SIZE(PJRT_CopyToDeviceStream_AddChunk_Args, transfer_complete, 40);
struct PJRT_CopyToDeviceStream_TotalBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  int64_t total_bytes;  // out
};
STROP_PJRT_SIZE(PJRT_CopyToDeviceStream_TotalBytes_Args, total_bytes, 32);
struct PJRT_CopyToDeviceStream_GranuleSize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  int64_t granule_size_in_bytes;  // out
};
STROP_PJRT_SIZE(PJRT_CopyToDeviceStream_GranuleSize_Args, granule_size_in_bytes, 32);
struct PJRT_CopyToDeviceStream_CurrentBytes_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_CopyToDeviceStream* stream;
  int64_t current_bytes;  // out
};
STROP_PJRT_SIZE(PJRT_CopyToDeviceStream_CurrentBytes_Args, current_bytes, 32);
