// TensorFlow's C++ objects as its wheels lay them out, as far as Strop gives or takes them. Debian has no headers of
// TensorFlow, and a wheel that is built against one release would need another build for the next; so these few are
// written down here, hold for the releases in releases.cc only, and everything is looked up by name at run time
// (docs/adr/0021).
//
// All of them are passed and returned through memory: what the ABI asks of a type with a destructor of its own.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

struct PJRT_Api;

namespace strop::tensorflow {

// absl::Status: 1 is OK, other odd numbers are a code without a message, even ones point to counted data.
struct TfStatus {
  static constexpr uintptr_t kOk = 1;
  uintptr_t rep = kOk;
  TfStatus() = default;
  explicit TfStatus(uintptr_t r) : rep(r) {}
  TfStatus(const TfStatus&) = delete;
  ~TfStatus() {}  // an error's data is left alone: there is one in the life of a process
  bool ok() const { return rep == kOk; }
};

// std::unique_ptr<xla::PjRtClient>. Whoever is handed one empties it.
struct ClientPointer {
  void* client = nullptr;
  ClientPointer() = default;
  explicit ClientPointer(void* c) : client(c) {}
  ClientPointer(const ClientPointer&) = delete;
  ~ClientPointer() {}
};

// absl::StatusOr<std::unique_ptr<xla::PjRtClient>>
struct ClientOrStatus {
  TfStatus status;
  ClientPointer client;
};

// tsl::DeviceType
struct DeviceType {
  std::string name;
};

// An absl::flat_hash_map and a std::shared_ptr with nothing in them.
struct EmptyMap {
  size_t words[4] = {};
};
struct EmptyPointer {
  void* words[2] = {};
};

// The part of tensorflow::XlaOpsCommonFlags that says who uses PJRT instead of XLA's own client.
struct UseDeviceApi {
  bool in_launch;
  bool on_demand;
  bool in_compile_and_run;
  bool everywhere;
  bool for_gpu;
};

using WrapClientFunction = ClientOrStatus(const PJRT_Api* api, const EmptyMap& options, EmptyPointer* key_value_store);
using SetClientFunction = TfStatus(const DeviceType& type, ClientPointer* client);
using OpsFlagsFunction = char*();
using StatusTextFunction = std::string(uintptr_t rep, int mode);
using VersionFunction = const char*();

}  // namespace strop::tensorflow
