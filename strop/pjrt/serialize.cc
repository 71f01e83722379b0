// Serialised executables: a header, the version that wrote them, and the program as it came. Loading compiles again, so
// that an artefact fits any processor; what is expensive about that, machine code, has a cache of its own.
//
//   "STROPEXE" | length, version | length, format | length, options | length, code      (lengths: 8 bytes, little
//   endian)
#include <cstring>

#include "strop/pjrt/event.h"
#include "strop/pjrt/executable.h"
#include "strop/pjrt/slots.h"
#include "strop/proto/module_proto.h"

struct PJRT_SerializedExecutable {
  std::string bytes;
};
struct PJRT_SerializedCompileOptions {
  std::string bytes;
};
struct PJRT_DeviceAssignmentSerialized {
  std::string bytes;
};

namespace strop::pjrt {
namespace {

constexpr std::string_view kMagic = "STROPEXE";

void Append(std::string& out, std::string_view part) {
  const uint64_t size = part.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size);
  out.append(part);
}

Result<std::string_view> Take(std::string_view& bytes) {
  uint64_t size;
  if (bytes.size() < sizeof size) return InvalidArgument("a serialised executable that ends too early");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (size > bytes.size()) return InvalidArgument("a serialised executable that ends too early");
  std::string_view part = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return part;
}

// Hands bytes out with the object that keeps them.
template <class Kept>
void HandOut(std::string bytes, const char*& data, size_t& size, Kept*& kept, void (*&deleter)(Kept*)) {
  kept = new Kept{std::move(bytes)};
  data = kept->bytes.data();
  size = kept->bytes.size();
  deleter = [](Kept* gone) { delete gone; };
}

}  // namespace

std::string SerializeProgram(const Program& program) {
  std::string out(kMagic);
  for (std::string_view part : {Version(), std::string_view(program.format), std::string_view(program.options_bytes),
                                std::string_view(program.code)})
    Append(out, part);
  return out;
}

Result<std::shared_ptr<const Program>> DeserializeProgram(std::string_view bytes, std::string_view override_options,
                                                          const Backend& backend, const Options& settings) {
  if (bytes.substr(0, kMagic.size()) != kMagic)
    return InvalidArgument("these ", bytes.size(), " bytes are no executable that Strop serialised");
  bytes.remove_prefix(kMagic.size());
  STROP_ASSIGN(std::string_view version, Take(bytes));
  if (version != Version())
    return FailedPrecondition("the executable was serialised by Strop ", CEscape(version), ", this is ", Version());
  STROP_ASSIGN(std::string_view format, Take(bytes));
  STROP_ASSIGN(std::string_view options, Take(bytes));
  STROP_ASSIGN(std::string_view code, Take(bytes));
  if (!bytes.empty()) return InvalidArgument("a serialised executable with ", bytes.size(), " bytes too many");
  return CompileProgram(format, code, override_options.empty() ? options : override_options, backend, settings);
}

Status Executable_Serialize(PJRT_Executable_Serialize_Args& args) {
  HandOut(SerializeProgram(*args.executable->program), args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_executable, args.serialized_executable_deleter);
  return OkStatus();
}

Status Executable_GetCompileOptions(PJRT_Executable_GetCompileOptions_Args& args) {
  HandOut(args.executable->program->options_bytes, args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_compile_options, args.serialized_compile_options_deleter);
  return OkStatus();
}

Status LoadedExecutable_GetDeviceAssignment(PJRT_LoadedExecutable_GetDeviceAssignment_Args& args) {
  const DeviceAssignment& assignment = *args.executable->assignment;
  CompileDeviceAssignment out{
      assignment.num_replicas, assignment.num_partitions, {assignment.devices.begin(), assignment.devices.end()}};
  HandOut(SerializeDeviceAssignment(out), args.serialized_bytes, args.serialized_bytes_size,
          args.serialized_device_assignment, args.serialized_device_assignment_deleter);
  return OkStatus();
}

// Called twice: for the size, then for the bytes. The optimised module, as HloModuleProtoWithConfig.
Status Executable_OptimizedProgram(PJRT_Executable_OptimizedProgram_Args& args) {
  if (!args.program) return InvalidArgument("the program is null");
  static constexpr std::string_view kFormat = "hlo_with_config";
  STROP_ASSIGN(std::string bytes, SerializeModuleProtoWithConfig(*args.executable->program->compiled->module));
  args.program->format = kFormat.data();
  args.program->format_size = kFormat.size();
  if (!args.program->code) {
    args.program->code_size = bytes.size();
    return OkStatus();
  }
  if (args.program->code_size < bytes.size())
    return InvalidArgument("the program's code has room for ", args.program->code_size, " bytes, ", bytes.size(),
                           " are needed");
  std::memcpy(args.program->code, bytes.data(), bytes.size());
  args.program->code_size = bytes.size();
  return OkStatus();
}

}  // namespace strop::pjrt
