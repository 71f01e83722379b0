// What is behind the handles of clients, devices, memories, topologies and buffers.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strop/backend/backend.h"
#include "strop/base/options.h"
#include "strop/base/recycled.h"
#include "strop/pjrt/c_api.h"
#include "strop/pjrt/named_values.h"
#include "strop/pjrt/separate_launches.h"
#include "strop/runtime/custom_call.h"
#include "strop/runtime/device.h"
#include "strop/runtime/process_group.h"
#include "strop/spmd/call_owners.h"

struct PJRT_DeviceDescription {
  int id = 0;
  int process_index = 0;
  std::string kind;
  std::string debug_string;  // "cpu:0"
  std::string to_string;     // "StropDevice(id=0)"
  strop::pjrt::NamedValues attributes;
};

// Describes devices, with or without a client.
struct PJRT_TopologyDescription {
  std::string platform_name;
  std::string platform_version;
  std::vector<std::unique_ptr<PJRT_DeviceDescription>> owned;
  std::vector<PJRT_DeviceDescription*> descriptions;
  std::vector<int> devices_of;  // number of devices, by process
  strop::pjrt::NamedValues attributes;
};

struct PJRT_Memory {
  const PJRT_Memory_FunctionTable* table;  // first: part of the binary interface since 0.105
  int id = 0;
  strop::MemoryKind kind = strop::MemoryKind::kDevice;
  PJRT_Device* device = nullptr;
  std::string kind_name, debug_string, to_string;
  // What the framework attached, by its own keys.
  struct UserData {
    void* data = nullptr;
    void (*destroy)(void* data) = nullptr;
  };
  std::mutex mutex;
  std::map<const void*, UserData> user_data;  // guarded by mutex

  ~PJRT_Memory();
};

struct PJRT_Device {
  PJRT_Client* client = nullptr;
  PJRT_DeviceDescription* description = nullptr;
  strop::Device* device = nullptr;     // null: another process's
  std::vector<PJRT_Memory*> memories;  // by MemoryKind; the first is the default; none if it is another process's

  // Launches that have not ended, in order, for PoisonExecution.
  struct InFlight {
    int launch_id = 0;
    strop::EventRef done;
  };
  std::mutex mutex;
  std::vector<InFlight> in_flight;  // guarded by mutex
  strop::EventRef last_joint;       // the end of the last launch together with other devices; guarded by `mutex`
};

struct PJRT_Client {
  strop::Options options;
  const strop::Backend* backend = nullptr;
  int process_index = 0;
  std::unique_ptr<PJRT_TopologyDescription> topology;
  std::vector<std::unique_ptr<PJRT_Device>> owned_devices;
  std::vector<std::unique_ptr<PJRT_Memory>> owned_memories;
  std::vector<PJRT_Device*> devices;               // by id, of all processes
  std::vector<PJRT_Device*> addressable;           // by local number, of this one
  std::vector<PJRT_Memory*> memories;              // of this one
  std::shared_ptr<strop::ProcessGroup> processes;  // null for one process
  // Shared with buffers and executables, which may outlive the client. Last member: launches end before the rest goes.
  std::shared_ptr<strop::DeviceSet> device_set;
  std::mutex mutex;
  std::map<void*, size_t> dma_ranges;  // guarded by mutex
  strop::pjrt::SeparateLaunches separate_launches;

  // A synchronous caller may cut a processor into more devices than there are here (tf.config's logical devices): its
  // programs and buffers are on this side's, in turn. All of it is the host's memory.
  int64_t DeviceNumber(int64_t asked) const {
    return options.synchronous ? asked % static_cast<int64_t>(addressable.size()) : asked;
  }
  ~PJRT_Client();
  bool Owns(const PJRT_Device* device) const;
  bool Owns(const PJRT_Memory* memory) const;
};

struct PJRT_Buffer final : strop::Recycled<PJRT_Buffer> {
  std::shared_ptr<strop::DeviceSet> device_set;  // first in, last out: owns the allocator of `buffer`
  strop::Buffer buffer;
  PJRT_Memory* memory = nullptr;
  // Answers that live as long as the buffer.
  std::once_flag dynamic_once, layout_once;
  std::vector<size_t> dynamic_dims;
  std::vector<int64_t> unpadded_dims, minor_to_major;
  std::mutex mutex;
  strop::Ref<strop::Storage> external;  // while external_refs > 0; both guarded by mutex
  int64_t external_refs = 0;

  PJRT_Client* client() const { return memory->device->client; }
  PJRT_Device* device() const { return memory->device; }
  const strop::Shape& shape() const { return buffer.shape(); }
  ~PJRT_Buffer();
};

namespace strop::pjrt {

PJRT_Buffer* NewBuffer(Buffer buffer, PJRT_Memory* memory);

// Targets registered for the process: jaxlib registers handlers before there is a client. Never destroyed.
CustomCallRegistry& ProcessCustomCalls();
// Partitioners of custom calls, likewise (extensions/custom_partitioner.cc).
const spmd::CallOwners& ProcessCallOwners();

// The description of a backend's devices in one or several processes, given how many each has. Ids run through.
std::unique_ptr<PJRT_TopologyDescription> MakeTopology(const Backend& backend, const Options& options,
                                                       std::vector<int> devices_of);
// InvalidArgument for another process's device.
Status CheckAddressable(const PJRT_Device* device);
// FNV-1a, for fingerprints.
uint64_t Fingerprint64(std::string_view bytes);
// "0.1.0"
std::string_view Version();

// The memory that (memory, device) of an args struct means: memory before device; both checked to be the client's.
Result<PJRT_Memory*> MemoryFrom(PJRT_Client* client, PJRT_Memory* memory, PJRT_Device* device);

// ---- values
Result<ElementType> ElementTypeFrom(PJRT_Buffer_Type type);
PJRT_Buffer_Type BufferTypeOf(ElementType type);
// A static row-major array shape; InvalidArgument for bad types, sizes and null lists.
Result<Shape> ShapeFrom(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims);
// Options from a list of named values. Frameworks pass options of their own, so unknown names are only logged, unless
// they look like a typing error of one of ours.
Status ApplyCreateOptions(const PJRT_NamedValue* values, size_t count, Options& options);

}  // namespace strop::pjrt
