// Compiled programs: what is behind PJRT_Executable (the program as such) and PJRT_LoadedExecutable (on devices).
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "strop/driver/compile.h"
#include "strop/driver/program_cache.h"
#include "strop/pjrt/c_api/extensions.h"
#include "strop/pjrt/objects.h"
#include "strop/proto/compile_options.h"
#include "strop/runtime/ffi.h"

namespace strop::pjrt {

// A program with everything that frameworks ask about it. Immutable once made; lists are kept in the form in which the
// C API hands them out.
struct Program {
  std::shared_ptr<const CompiledProgram> compiled;
  FrontendCompileOptions options;
  // As they came: where an artifact that was serialised elsewhere does not fit, the program is compiled again.
  std::string format, code, options_bytes;
  const Backend* backend = nullptr;
  std::string fingerprint;

  struct Leaves {
    std::vector<Shape> shapes;
    std::vector<const char*> memory_kinds;
    std::vector<size_t> memory_kind_sizes;
    std::vector<std::string> shardings;  // serialised xla.OpSharding; empty text is replicated
    std::vector<const char*> sharding_data;
    std::vector<size_t> sharding_sizes;
  };
  Leaves parameters, outputs;
  std::vector<PJRT_Buffer_Type> output_types;
  std::vector<int64_t> output_dims;                                           // of all outputs, one after the other
  std::vector<size_t> output_dim_counts;                                      // rank of each
  std::vector<PJRT_Layouts_MemoryLayout*> parameter_layouts, output_layouts;  // immortal objects
  NamedValues cost;
  bool exchanges = false;    // has collectives between devices
  bool asks_owners = false;  // made by functions of this process (spmd/call_owners.h): nothing to keep for others

  const Executable& executable() const { return *compiled->executable; }
};

// Compiles `code` in one of PJRT's formats. InvalidArgument that names what is wrong with the program, at the user's
// line.
Result<std::shared_ptr<const Program>> CompileProgram(std::string_view format, std::string_view code,
                                                      std::string_view options_bytes, const Backend& backend,
                                                      const Options& settings);
// What compile options say of one program, `settings` being the client's: overrides checked and taken.
Result<CompileSettings> ReadOptions(std::string_view options_bytes, const Options& settings,
                                    FrontendCompileOptions& options);
// Derives what Program keeps of the rest: the lists that the C API hands out.
void FinishProgram(Program& program);
// Places a program on a client's devices.
Result<PJRT_LoadedExecutable*> LoadProgram(PJRT_Client* client, std::shared_ptr<const Program> program,
                                           const FrontendCompileOptions& options);

// ---- extensions/layouts.cc
std::vector<PJRT_Layouts_MemoryLayout*> LayoutsOf(const std::vector<Shape>& shapes);

// ---- serialize.cc
Result<std::string> SerializeProgram(const Program& program);
// Of the program alone, which is then compiled when it is loaded.
std::string SerializeSource(std::string_view format, std::string_view options_bytes, std::string_view code);
// What a cache holds of a program: all that is compiled, not the source and the options, of which its key is made.
Result<std::shared_ptr<Program>> FindProgram(const ProgramCache& cache, std::string_view key, const Backend& backend,
                                             const CompileSettings& settings);
void KeepProgram(const ProgramCache& cache, std::string_view key, const Program& program);
Result<std::shared_ptr<const Program>> DeserializeProgram(std::string_view bytes, std::string_view override_options,
                                                          const Backend& backend, const Options& settings);

}  // namespace strop::pjrt

struct PJRT_Executable {
  std::shared_ptr<const strop::pjrt::Program> program;
};

struct PJRT_LoadedExecutable {
  PJRT_Client* client = nullptr;
  std::shared_ptr<strop::DeviceSet> device_set;
  std::shared_ptr<const strop::pjrt::Program> program;
  std::shared_ptr<const strop::DeviceAssignment> assignment;
  // Those of this process, in the order of [replica][partition].
  std::vector<PJRT_Device*> devices;
  std::vector<PJRT_LogicalDeviceIds> logical_ids;
  std::atomic<bool> deleted{false};
};

struct PJRT_ExecuteContext {
  strop::FfiContext ffi;
  std::shared_ptr<PJRT_ExecuteContext> self;  // the caller's share; running executions have their own
};
