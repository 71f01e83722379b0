// Devices, their descriptions, memories, and events that track asynchronous work.
#include "strop/pjrt/event.h"
#include "strop/pjrt/objects.h"
#include "strop/pjrt/slots.h"

struct PJRT_Device_Attributes {};  // attributes live with the description: nothing to keep alive
struct PJRT_AsyncTrackingEvent {
  std::string description;
};

namespace strop::pjrt {
namespace {

template <class Size>
void SetText(const std::string& text, const char*& data, Size& size) {
  data = text.c_str();
  size = text.size();
}

}  // namespace

Status DeviceDescription_Id(PJRT_DeviceDescription_Id_Args& args) {
  args.id = args.device_description->id;
  return OkStatus();
}
Status DeviceDescription_ProcessIndex(PJRT_DeviceDescription_ProcessIndex_Args& args) {
  args.process_index = args.device_description->process_index;
  return OkStatus();
}
Status DeviceDescription_Attributes(PJRT_DeviceDescription_Attributes_Args& args) {
  args.attributes = args.device_description->attributes.data();
  args.num_attributes = args.device_description->attributes.size();
  return OkStatus();
}
Status DeviceDescription_Kind(PJRT_DeviceDescription_Kind_Args& args) {
  SetText(args.device_description->kind, args.device_kind, args.device_kind_size);
  return OkStatus();
}
Status DeviceDescription_DebugString(PJRT_DeviceDescription_DebugString_Args& args) {
  SetText(args.device_description->debug_string, args.debug_string, args.debug_string_size);
  return OkStatus();
}
Status DeviceDescription_ToString(PJRT_DeviceDescription_ToString_Args& args) {
  SetText(args.device_description->to_string, args.to_string, args.to_string_size);
  return OkStatus();
}

Status Device_GetDescription(PJRT_Device_GetDescription_Args& args) {
  args.device_description = args.device->description;
  return OkStatus();
}
Status Device_IsAddressable(PJRT_Device_IsAddressable_Args& args) {
  args.is_addressable = args.device->device != nullptr;
  return OkStatus();
}
Status Device_LocalHardwareId(PJRT_Device_LocalHardwareId_Args& args) {
  args.local_hardware_id = args.device->device ? args.device->device->ordinal() : -1;
  return OkStatus();
}
Status Device_AddressableMemories(PJRT_Device_AddressableMemories_Args& args) {
  args.memories = args.device->memories.data();
  args.num_memories = args.device->memories.size();
  return OkStatus();
}
Status Device_DefaultMemory(PJRT_Device_DefaultMemory_Args& args) {
  STROP_TRY(CheckAddressable(args.device));
  args.memory = args.device->memories[0];
  return OkStatus();
}

Status Device_MemoryStats(PJRT_Device_MemoryStats_Args& args) {
  STROP_TRY(CheckAddressable(args.device));
  AllocatorStats stats = args.device->device->memory_stats();
  args.bytes_in_use = stats.bytes_in_use;
  auto set = [](int64_t& field, bool& is_set, int64_t value) {
    field = value;
    is_set = true;
  };
  // Callers leave the fields as they were: those without a value must be cleared.
  auto clear = [](int64_t& field, bool& is_set) {
    field = 0;
    is_set = false;
  };
  set(args.peak_bytes_in_use, args.peak_bytes_in_use_is_set, stats.peak_bytes_in_use);
  set(args.num_allocs, args.num_allocs_is_set, stats.num_allocs);
  set(args.largest_alloc_size, args.largest_alloc_size_is_set, stats.largest_alloc_size);
  set(args.bytes_limit, args.bytes_limit_is_set, stats.bytes_limit);
  set(args.pool_bytes, args.pool_bytes_is_set, stats.bytes_in_use + stats.bytes_cached);
  clear(args.bytes_reserved, args.bytes_reserved_is_set);
  clear(args.peak_bytes_reserved, args.peak_bytes_reserved_is_set);
  clear(args.bytes_reservable_limit, args.bytes_reservable_limit_is_set);
  clear(args.largest_free_block_bytes, args.largest_free_block_bytes_is_set);
  clear(args.peak_pool_bytes, args.peak_pool_bytes_is_set);
  return OkStatus();
}

Status Device_ClearMemoryStats(PJRT_Device_ClearMemoryStats_Args& args) {
  STROP_TRY(CheckAddressable(args.device));
  args.device->device->allocator().ResetPeak();
  return OkStatus();
}

// The outputs of the launch become errors; memory that it still writes stays alive until it has ended.
Status Device_PoisonExecution(PJRT_Device_PoisonExecution_Args& args) {
  EventRef done;
  {
    std::lock_guard<std::mutex> lock(args.device->mutex);
    for (const PJRT_Device::InFlight& launch : args.device->in_flight) {
      if (launch.launch_id != args.launch_id || launch.done->IsReady()) continue;
      done = launch.done;
      break;
    }
  }
  args.poisoned = done && done->Set(StatusFrom(args.error_code, args.error_message, args.error_message_size));
  return OkStatus();
}

Status Device_GetAttributes(PJRT_Device_GetAttributes_Args& args) {
  args.attributes = args.device->description->attributes.data();
  args.num_attributes = args.device->description->attributes.size();
  args.device_attributes = nullptr;
  args.attributes_deleter = [](PJRT_Device_Attributes*) {};
  return OkStatus();
}

Status Device_CreateAsyncTrackingEvent(PJRT_Device_CreateAsyncTrackingEvent_Args& args) {
  args.event =
      new PJRT_AsyncTrackingEvent{args.description ? std::string(args.description, args.description_size) : ""};
  return OkStatus();
}
Status AsyncTrackingEvent_Destroy(PJRT_AsyncTrackingEvent_Destroy_Args& args) {
  delete args.event;
  return OkStatus();
}

Status Memory_Id(PJRT_Memory_Id_Args& args) {
  args.id = args.memory->id;
  return OkStatus();
}
Status Memory_Kind(PJRT_Memory_Kind_Args& args) {
  SetText(args.memory->kind_name, args.kind, args.kind_size);
  return OkStatus();
}
Status Memory_Kind_Id(PJRT_Memory_Kind_Id_Args& args) {
  args.kind_id = static_cast<int>(args.memory->kind);
  return OkStatus();
}
Status Memory_DebugString(PJRT_Memory_DebugString_Args& args) {
  SetText(args.memory->debug_string, args.debug_string, args.debug_string_size);
  return OkStatus();
}
Status Memory_ToString(PJRT_Memory_ToString_Args& args) {
  SetText(args.memory->to_string, args.to_string, args.to_string_size);
  return OkStatus();
}
Status Memory_AddressableByDevices(PJRT_Memory_AddressableByDevices_Args& args) {
  args.devices = &args.memory->device;
  args.num_devices = 1;
  return OkStatus();
}

}  // namespace strop::pjrt
