// Serialised executables: artifacts (driver/artifact.h) with the program as it came beside the compiled one. Loading
// compiles nothing where version, build and processor are those of whoever wrote it, and the options are the same;
// anywhere else, and if a part of the program could not be written down, the program as it came is compiled.
#include <cstring>

#include "strop/base/archive.h"
#include "strop/base/build_identity.h"
#include "strop/base/log.h"
#include "strop/driver/artifact.h"
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

constexpr uint32_t kSourceSection = SectionName("srce"), kFrontendSection = SectionName("pjrt");

struct Source {
  std::string_view format, options, code;
};
template <class Archive>
void Fields(Archive& a, Source& s) {
  a(s.format, s.options, s.code);
}

// Of the compiled program, what only frameworks ask for.
struct Frontend {
  std::string build;  // whose machine code it is
  std::vector<std::string> parameter_shardings, output_shardings;
};
template <class Archive>
void Fields(Archive& a, Frontend& f) {
  a(f.build, f.parameter_shardings, f.output_shardings);
}

// Options that make the same program of it: devices are chosen anew.
bool SameProgram(FrontendCompileOptions a, FrontendCompileOptions b) {
  for (FrontendCompileOptions* options : {&a, &b}) {
    options->device_assignment.reset();
    options->device_ordinal = -1;
  }
  return a == b;
}

// The compiled program in the artifact, of which source and options are known.
Result<std::shared_ptr<Program>> ReadParts(const Artifact& artifact, const Backend& backend,
                                           const CompileSettings& compile) {
  STROP_ASSIGN(const std::string_view bytes, artifact.Section(kFrontendSection));
  Frontend frontend;
  ByteReader in(bytes);
  in(frontend);
  STROP_TRY(in.Finish("what frameworks ask for"));
  if (frontend.build != BuildIdentity()) return FailedPrecondition("the executable comes from another build of Strop");
  auto program = std::make_shared<Program>();
  STROP_ASSIGN(program->compiled, ReadProgram(artifact, backend, compile));
  program->backend = &backend;
  program->parameters.shardings = std::move(frontend.parameter_shardings);
  program->outputs.shardings = std::move(frontend.output_shardings);
  const ExecutableSpec& spec = program->executable().spec();
  if (program->parameters.shardings.size() != spec.parameters.size() ||
      program->outputs.shardings.size() != spec.outputs.size())
    return InvalidArgument("a serialised executable with shardings for other values");
  return program;
}

Status WriteParts(const Program& program, ArtifactWriter& out) {
  STROP_TRY(WriteProgram(*program.compiled, *program.backend, out));
  ByteWriter frontend;
  frontend(Frontend{std::string(BuildIdentity()), program.parameters.shardings, program.outputs.shardings});
  out.Add(kFrontendSection, frontend.Take());
  return OkStatus();
}

// FailedPrecondition if what is in the artifact is not for here.
Result<std::shared_ptr<const Program>> ReadCompiled(const Artifact& artifact, const Source& source,
                                                    std::string_view options_bytes, const Backend& backend,
                                                    const Options& settings) {
  if (!HasProgram(artifact)) return FailedPrecondition("the program was serialised as it came");
  FrontendCompileOptions options;
  STROP_ASSIGN(const CompileSettings compile, ReadOptions(options_bytes, settings, options));
  if (options_bytes != source.options) {
    STROP_ASSIGN(const FrontendCompileOptions written, ParseCompileOptions(source.options));
    if (!SameProgram(written, options)) return FailedPrecondition("the executable was compiled with other options");
  }
  STROP_ASSIGN(std::shared_ptr<Program> program, ReadParts(artifact, backend, compile));
  program->options = std::move(options);
  program->format = source.format;
  program->code = source.code;
  program->options_bytes = options_bytes;
  FinishProgram(*program);
  return std::shared_ptr<const Program>(std::move(program));
}

void AddSource(std::string_view format, std::string_view options, std::string_view code, ArtifactWriter& out) {
  ByteWriter bytes;
  bytes(Source{format, options, code});
  out.Add(kSourceSection, bytes.Take());
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

std::string SerializeSource(std::string_view format, std::string_view options_bytes, std::string_view code) {
  ArtifactWriter out;
  AddSource(format, options_bytes, code, out);
  return out.Finish();
}

Result<std::string> SerializeProgram(const Program& program) {
  ArtifactWriter out;
  AddSource(program.format, program.options_bytes, program.code, out);
  const Status written = WriteParts(program, out);
  if (written.code() == StatusCode::kUnimplemented) {
    STROP_LOG_AT(1, "serialised as it came, to be compiled when it is loaded: ", written.message());
    return SerializeSource(program.format, program.options_bytes, program.code);
  }
  STROP_TRY(written);
  return out.Finish();
}

Result<std::shared_ptr<Program>> FindProgram(const ProgramCache& cache, std::string_view key, const Backend& backend,
                                             const CompileSettings& settings) {
  const std::optional<Artifact> entry = cache.Find(key);
  if (!entry) return NotFound("it was not compiled before");
  return ReadParts(*entry, backend, settings);
}

void KeepProgram(const ProgramCache& cache, std::string_view key, const Program& program) {
  ArtifactWriter out;
  const Status written = WriteParts(program, out);
  if (written.ok())
    cache.Keep(key, std::move(out));
  else
    STROP_LOG_AT(1, "a compiled program is not kept: ", written.message());
}

Result<std::shared_ptr<const Program>> DeserializeProgram(std::string_view bytes, std::string_view override_options,
                                                          const Backend& backend, const Options& settings) {
  STROP_ASSIGN(const Artifact artifact, Artifact::Copy(bytes));
  STROP_ASSIGN(const std::string_view source_bytes, artifact.Section(kSourceSection));
  Source source;
  ByteReader in(source_bytes);
  in(source);
  STROP_TRY(in.Finish("a program as it came"));
  const std::string_view options = override_options.empty() ? source.options : override_options;
  Result<std::shared_ptr<const Program>> program = ReadCompiled(artifact, source, options, backend, settings);
  if (program.status().code() != StatusCode::kFailedPrecondition) return program;
  STROP_LOG_AT(1, "a serialised executable is compiled again: ", program.status().message());
  return CompileProgram(source.format, source.code, options, backend, settings);
}

Status Executable_Serialize(PJRT_Executable_Serialize_Args& args) {
  STROP_ASSIGN(std::string bytes, SerializeProgram(*args.executable->program));
  HandOut(std::move(bytes), args.serialized_bytes, args.serialized_bytes_size, args.serialized_executable,
          args.serialized_executable_deleter);
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
  const Program& program = *args.executable->program;
  STROP_ASSIGN(std::string bytes, program.compiled->module->Proto());
  if (program.options.num_partitions > 1) {
    STROP_ASSIGN(bytes, AddEntryShardings(bytes, program.parameters.shardings, program.outputs.shardings));
  }
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
