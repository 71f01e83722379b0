// PJRT_Client: creation, what it says of itself, devices and memories. Compilation is in compile.cc, buffers are in
// host_to_device.cc and buffer_create.cc.
#include "strop/driver/compile.h"
#include "strop/pjrt/objects.h"
#include "strop/pjrt/processes.h"
#include "strop/pjrt/slots.h"

bool PJRT_Client::Owns(const PJRT_Device* device) const {
  for (const PJRT_Device* d : devices)
    if (d == device) return true;
  return false;
}
bool PJRT_Client::Owns(const PJRT_Memory* memory) const {
  for (const PJRT_Memory* m : memories)
    if (m == memory) return true;
  return false;
}

namespace strop::pjrt {
namespace {

void* GetUserData(PJRT_Memory* memory, const void* key) {
  std::lock_guard<std::mutex> lock(memory->mutex);
  auto found = memory->user_data.find(key);
  return found == memory->user_data.end() ? nullptr : found->second.data;
}

void SetUserData(PJRT_Memory* memory, const void* key, void* data, void (*destroy)(void*)) {
  PJRT_Memory::UserData old;
  {
    std::lock_guard<std::mutex> lock(memory->mutex);
    old = std::exchange(memory->user_data[key], {data, destroy});
  }
  if (old.destroy) old.destroy(old.data);  // foreign code: outside the lock
}

constexpr PJRT_Memory_FunctionTable kMemoryTable = {
    .struct_size = kStructSize<PJRT_Memory_FunctionTable>,
    .extension_start = nullptr,
    .instance_struct_size = sizeof(void*),  // what others may rely on: the table pointer
    .get_user_data = GetUserData,
    .set_user_data = SetUserData,
};

void AddMemories(PJRT_Client* client, PJRT_Device* device) {
  const int id = device->description->id;
  for (int kind = 0; kind < kNumMemoryKinds; ++kind) {
    auto memory = std::make_unique<PJRT_Memory>();
    memory->table = &kMemoryTable;
    memory->id = id * kNumMemoryKinds + kind;
    memory->kind = static_cast<MemoryKind>(kind);
    memory->device = device;
    memory->kind_name = Name(memory->kind);
    memory->to_string = StrCat(memory->kind_name, "(id=", memory->id, ", device=", id, ")");
    memory->debug_string = StrCat("StropMemory ", memory->to_string);
    device->memories.push_back(memory.get());
    client->memories.push_back(memory.get());
    client->owned_memories.push_back(std::move(memory));
  }
}

void AddDevices(PJRT_Client* client) {
  for (PJRT_DeviceDescription* description : client->topology->descriptions) {
    auto device = std::make_unique<PJRT_Device>();
    device->client = client;
    device->description = description;
    if (description->process_index == client->process_index) {
      device->device = &client->device_set->device(static_cast<int>(client->addressable.size()));
      client->addressable.push_back(device.get());
      AddMemories(client, device.get());
    }
    client->devices.push_back(device.get());
    client->owned_devices.push_back(std::move(device));
  }
}

}  // namespace

CustomCallRegistry& ProcessCustomCalls() {
  static CustomCallRegistry* const kRegistry = new CustomCallRegistry;
  return *kRegistry;
}

Result<PJRT_Memory*> MemoryFrom(PJRT_Client* client, PJRT_Memory* memory, PJRT_Device* device) {
  if (memory) {
    if (!client->Owns(memory)) return InvalidArgument("the memory belongs to another client");
    return memory;
  }
  if (!device) return InvalidArgument("neither a memory nor a device is given");
  if (!client->Owns(device)) return InvalidArgument("the device belongs to another client");
  STROP_TRY(CheckAddressable(device));
  return device->memories[0];
}

Status CheckAddressable(const PJRT_Device* device) {
  if (device->device) return OkStatus();
  return InvalidArgument("device ", device->description->id, " belongs to process ", device->description->process_index,
                         "; this is process ", device->client->process_index);
}

Status Client_Create(PJRT_Client_Create_Args& args) {
  auto client = std::make_unique<PJRT_Client>();
  STROP_ASSIGN(client->options, OptionsFromEnvironment());
  STROP_TRY(ApplyCreateOptions(args.create_options, args.num_options, client->options));
  STROP_ASSIGN(client->backend, FindBackend(client->options.backend));
  STROP_ASSIGN(std::unique_ptr<DeviceSet> devices,
               client->backend->OpenDevices(static_cast<int>(client->options.num_devices),
                                            ThreadPool::OfSize(static_cast<int>(client->options.num_threads)),
                                            {.guard = static_cast<Guard>(client->options.guard)}));
  client->device_set = std::move(devices);
  STROP_ASSIGN(Processes processes, JoinProcesses(args, client->options, client->device_set->size()));
  client->process_index = processes.rank;
  client->processes = std::move(processes.group);
  client->topology = MakeTopology(*client->backend, client->options, std::move(processes.devices_of));
  AddDevices(client.get());
  args.client = client.release();
  return OkStatus();
}

Status Client_Destroy(PJRT_Client_Destroy_Args& args) {
  delete args.client;
  return OkStatus();
}

Status Client_PlatformName(PJRT_Client_PlatformName_Args& args) {
  args.platform_name = args.client->topology->platform_name.c_str();
  args.platform_name_size = args.client->topology->platform_name.size();
  return OkStatus();
}

Status Client_ProcessIndex(PJRT_Client_ProcessIndex_Args& args) {
  args.process_index = args.client->process_index;
  return OkStatus();
}

Status Client_PlatformVersion(PJRT_Client_PlatformVersion_Args& args) {
  args.platform_version = args.client->topology->platform_version.c_str();
  args.platform_version_size = args.client->topology->platform_version.size();
  return OkStatus();
}

Status Client_TopologyDescription(PJRT_Client_TopologyDescription_Args& args) {
  args.topology = args.client->topology.get();
  return OkStatus();
}

Status Client_Devices(PJRT_Client_Devices_Args& args) {
  args.devices = args.client->devices.data();
  args.num_devices = args.client->devices.size();
  return OkStatus();
}

Status Client_AddressableDevices(PJRT_Client_AddressableDevices_Args& args) {
  args.addressable_devices = args.client->addressable.data();
  args.num_addressable_devices = args.client->addressable.size();
  return OkStatus();
}

Status Client_LookupDevice(PJRT_Client_LookupDevice_Args& args) {
  if (args.id < 0 || static_cast<size_t>(args.id) >= args.client->devices.size())
    return InvalidArgument("No matching device found for device_id ", args.id);
  args.device = args.client->devices[args.id];
  return OkStatus();
}

Status Client_LookupAddressableDevice(PJRT_Client_LookupAddressableDevice_Args& args) {
  const int64_t number = args.local_hardware_id < 0 ? -1 : args.client->DeviceNumber(args.local_hardware_id);
  if (number < 0 || static_cast<size_t>(number) >= args.client->addressable.size())
    return InvalidArgument("No matching device found for local_hardware_id ", args.local_hardware_id);
  args.addressable_device = args.client->addressable[number];
  return OkStatus();
}

Status Client_AddressableMemories(PJRT_Client_AddressableMemories_Args& args) {
  args.addressable_memories = args.client->memories.data();
  args.num_addressable_memories = args.client->memories.size();
  return OkStatus();
}

Status Client_UpdateGlobalProcessInfo(PJRT_Client_UpdateGlobalProcessInfo_Args&) {
  return OkStatus();  // transports hear of lost processes by themselves. An error would abort the host.
}

Status Client_DefaultDeviceAssignment(PJRT_Client_DefaultDeviceAssignment_Args& args) {
  const int64_t replicas = args.num_replicas, partitions = args.num_partitions;
  if (replicas <= 0 || partitions <= 0)
    return InvalidArgument("num_replicas and num_partitions must be positive, got ", replicas, " and ", partitions);
  const int64_t count = replicas * partitions;
  if (args.default_assignment_size < static_cast<size_t>(count))
    return FailedPrecondition("default_assignment_size ", args.default_assignment_size,
                              " < `num_replicas * num_partitions`, ", replicas, " * ", partitions, " = ", count);
  if (!args.default_assignment) return InvalidArgument("default_assignment is null");
  const auto devices = static_cast<int64_t>(args.client->devices.size());
  if (count > devices)
    return InvalidArgument(replicas, " replicas of ", partitions, " partitions need ", count, " devices, there are ",
                           devices);
  for (int64_t i = 0; i < count; ++i) args.default_assignment[i] = static_cast<int>(i);
  return OkStatus();
}

// All host memory can be reached by the CPU: mapping only keeps books, so that mistakes are told.
Status Client_DmaMap(PJRT_Client_DmaMap_Args& args) {
  if (!args.data || args.size == 0) return InvalidArgument("PJRT_Client_DmaMap: an empty range");
  std::lock_guard<std::mutex> lock(args.client->mutex);
  if (!args.client->dma_ranges.emplace(args.data, args.size).second)
    return Status(StatusCode::kAlreadyExists, "PJRT_Client_DmaMap: the range is mapped already");
  return OkStatus();
}

Status Client_DmaUnmap(PJRT_Client_DmaUnmap_Args& args) {
  std::lock_guard<std::mutex> lock(args.client->mutex);
  if (args.client->dma_ranges.erase(args.data) == 0) return NotFound("PJRT_Client_DmaUnmap: the range is not mapped");
  return OkStatus();
}

}  // namespace strop::pjrt

// Launches end first: they may wait for other processes, and leave word when they give up.
PJRT_Client::~PJRT_Client() {
  device_set = nullptr;
  if (processes) processes->Close();
}

PJRT_Memory::~PJRT_Memory() {
  for (auto& [key, value] : user_data)
    if (value.destroy) value.destroy(value.data);
}
