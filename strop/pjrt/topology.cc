// The plugin's attributes and the topology: devices without a client, for ahead-of-time compilation and cache keys.
#include "strop/base/hash.h"
#include "strop/driver/compile.h"
#include "strop/pjrt/objects.h"
#include "strop/pjrt/slots.h"
#include "strop/proto/value_proto.h"

struct PJRT_SerializedTopology {
  std::string bytes;
};

namespace strop::pjrt {
namespace {

// "strop-topology\n<platform name>\n<number of devices, by process: 2,2>\n<platform version>"
constexpr std::string_view kTopologyMagic = "strop-topology";

std::string SerializeTopology(const PJRT_TopologyDescription& topology) {
  std::string counts;
  for (int count : topology.devices_of) StrAppend(counts, counts.empty() ? "" : ",", count);
  return StrCat(kTopologyMagic, "\n", topology.platform_name, "\n", counts, "\n", topology.platform_version);
}

// Empty: not a list of positive numbers.
std::vector<int> ParseCounts(std::string_view text) {
  constexpr int64_t kMost = 1 << 16;
  std::vector<int> out;
  int64_t total = 0;
  for (std::string_view part : Split(text, ',')) {
    const std::optional<int> count = ParseNumber<int>(part);
    if (!count || *count < 1 || (total += *count) > kMost) return {};
    out.push_back(*count);
  }
  return out;
}

constexpr int kMemoryKindIds[kNumMemoryKinds] = {0, 1, 2};

}  // namespace

uint64_t Fingerprint64(std::string_view bytes) {
  Fnv1a hash;
  hash.Add(bytes);
  return hash.value();
}

std::string_view Version() { return STROP_VERSION; }

std::unique_ptr<PJRT_TopologyDescription> MakeTopology(const Backend& backend, const Options& options,
                                                       std::vector<int> devices_of) {
  auto topology = std::make_unique<PJRT_TopologyDescription>();
  topology->platform_name = options.platform_name;
  topology->platform_version = StrCat("Strop ", Version(), ", ", backend.name(), ": ", backend.target().description);
  for (size_t process = 0; process < devices_of.size(); ++process) {
    for (int k = 0; k < devices_of[process]; ++k) {
      const int id = static_cast<int>(topology->descriptions.size());
      auto device = std::make_unique<PJRT_DeviceDescription>();
      device->id = id;
      device->process_index = static_cast<int>(process);
      device->kind = backend.name();
      device->debug_string = StrCat(options.platform_name, ":", id);  // what str(device) gives; JAX expects "cpu:0"
      device->to_string = StrCat("StropDevice(id=", id, ")");
      topology->descriptions.push_back(device.get());
      topology->owned.push_back(std::move(device));
    }
  }
  topology->devices_of = std::move(devices_of);
  return topology;
}

Status Plugin_Initialize(PJRT_Plugin_Initialize_Args&) { return OkStatus(); }

Status Plugin_Attributes(PJRT_Plugin_Attributes_Args& args) {
  static const NamedValues* const kAttributes = [] {
    auto* values = new NamedValues;
    values->Add("xla_version", int64_t{2});
    // What the framework may write: the newest that the importer knows, and the oldest that portable artifacts have.
    values->Add("stablehlo_current_version", std::vector<int64_t>{1, 17, 0});
    values->Add("stablehlo_minimum_version", std::vector<int64_t>{0, 9, 0});
    values->Add("strop_version", std::string(Version()));
    return values;
  }();
  args.attributes = kAttributes->data();
  args.num_attributes = kAttributes->size();
  return OkStatus();
}

// Any name will do: there is one kind of topology, of as many devices as the options say.
Status TopologyDescription_Create(PJRT_TopologyDescription_Create_Args& args) {
  STROP_ASSIGN(Options options, OptionsFromEnvironment());
  STROP_TRY(ApplyCreateOptions(args.create_options, args.num_options, options));
  STROP_ASSIGN(const Backend* backend, FindBackend(options.backend));
  args.topology = MakeTopology(*backend, options, {static_cast<int>(options.num_devices)}).release();
  return OkStatus();
}

Status TopologyDescription_Destroy(PJRT_TopologyDescription_Destroy_Args& args) {
  delete args.topology;
  return OkStatus();
}

Status TopologyDescription_PlatformName(PJRT_TopologyDescription_PlatformName_Args& args) {
  args.platform_name = args.topology->platform_name.c_str();
  args.platform_name_size = args.topology->platform_name.size();
  return OkStatus();
}

Status TopologyDescription_PlatformVersion(PJRT_TopologyDescription_PlatformVersion_Args& args) {
  args.platform_version = args.topology->platform_version.c_str();
  args.platform_version_size = args.topology->platform_version.size();
  return OkStatus();
}

Status TopologyDescription_GetDeviceDescriptions(PJRT_TopologyDescription_GetDeviceDescriptions_Args& args) {
  args.descriptions = args.topology->descriptions.data();
  args.num_descriptions = args.topology->descriptions.size();
  return OkStatus();
}

Status TopologyDescription_Serialize(PJRT_TopologyDescription_Serialize_Args& args) {
  auto* kept = new PJRT_SerializedTopology{SerializeTopology(*args.topology)};
  args.serialized_bytes = kept->bytes.data();
  args.serialized_bytes_size = kept->bytes.size();
  args.serialized_topology = kept;
  args.serialized_topology_deleter = [](PJRT_SerializedTopology* topology) { delete topology; };
  return OkStatus();
}

Status TopologyDescription_Deserialize(PJRT_TopologyDescription_Deserialize_Args& args) {
  if (!args.serialized_topology) return InvalidArgument("the serialised topology is null");
  std::string_view bytes(args.serialized_topology, args.serialized_topology_size);
  std::vector<std::string_view> lines = Split(bytes, '\n');
  std::vector<int> counts;
  if (lines.size() == 4 && lines[0] == kTopologyMagic) counts = ParseCounts(lines[2]);
  if (counts.empty()) return InvalidArgument("these ", bytes.size(), " bytes are no topology that Strop serialised");
  STROP_ASSIGN(Options options, OptionsFromEnvironment());
  options.platform_name = lines[1];
  STROP_ASSIGN(const Backend* backend, FindBackend(options.backend));
  std::unique_ptr<PJRT_TopologyDescription> topology = MakeTopology(*backend, options, std::move(counts));
  topology->platform_version = lines[3];
  args.topology = topology.release();
  return OkStatus();
}

Status TopologyDescription_Attributes(PJRT_TopologyDescription_Attributes_Args& args) {
  args.attributes = args.topology->attributes.data();
  args.num_attributes = args.topology->attributes.size();
  return OkStatus();
}

Status TopologyDescription_Fingerprint(PJRT_TopologyDescription_Fingerprint_Args& args) {
  args.fingerprint = Fingerprint64(SerializeTopology(*args.topology));
  return OkStatus();
}

// Layouts do not depend on the memory here.
Status TopologyDescription_MakeCanonicalShapeForMemorySpace(
    PJRT_TopologyDescription_MakeCanonicalShapeForMemorySpace_Args& args) {
  if (args.memory_space_kind_id < 0 || args.memory_space_kind_id >= kNumMemoryKinds)
    return InvalidArgument("there is no memory of kind ", args.memory_space_kind_id);
  STROP_ASSIGN(Shape shape, ShapeFrom(args.element_type, args.dims, args.num_dims));
  std::string bytes = SerializeShape(shape);
  char* kept = new char[bytes.size() + 1];
  std::copy(bytes.begin(), bytes.end(), kept);
  kept[bytes.size()] = '\0';
  args.serialized_shape = kept;
  args.serialized_shape_size = bytes.size();
  args.serialized_shape_deleter = [](const char* text) { delete[] text; };
  return OkStatus();
}

Status TopologyDescription_GetMemorySpaceKindIds(PJRT_TopologyDescription_GetMemorySpaceKindIds_Args& args) {
  args.memory_space_kind_ids = kMemoryKindIds;
  args.num_memory_space_kind_ids = kNumMemoryKinds;
  return OkStatus();
}

}  // namespace strop::pjrt
