// strop compile: a program compiled ahead of time, as an artifact that `strop run` loads without compiling, or as an
// object or a shared object, and a header, for programs in C and C++ (include/strop/model.h).

#include "strop/base/strings.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/isa.h"
#include "strop/driver/artifact.h"
#include "strop/driver/program_cache.h"
#include "strop/tools/command.h"
#include "strop/tools/execute.h"
#include "strop/tools/model_files.h"

namespace strop::tools {
namespace {

// All kernels as one text.
Status WritePtx(const CompiledProgram& program, const std::string& out) {
  if (!program.explanation.interpreted.empty())
    return Unimplemented("backend gpu has no code for ", Join(program.explanation.interpreted, "; for "));
  const ExecutableSpec& spec = program.executable->spec();
  if (spec.objects.empty()) return FailedPrecondition("the program has no kernel");
  return WriteFile(out, *spec.objects[0]->Final());
}

std::string MemoryReport(const CompiledProgram& program, const Backend& backend) {
  const MemoryProfile& m = program.explanation.memory;
  const int threads = ThreadPool::DefaultSize();
  std::string report = StrCat("memory of ", program.executable->name(), " on ", backend.name(), ", in bytes:\n");
  const auto add = [&](int64_t bytes, auto... what) {
    const std::string number = StrCat(bytes);
    StrAppend(report, std::string(number.size() < 14 ? 14 - number.size() : 0, ' '), number, "  ", what..., "\n");
  };
  add(m.arguments, "arguments");
  add(m.results, "results");
  if (m.donated > 0) add(m.donated, "results in the memory of arguments");
  add(m.constants, "constants");
  add(m.unshared, "all temporaries, if none shared memory");
  add(m.peak, "of them alive at the peak");
  add(m.temporaries, "that they take");
  add(program.executable->arena_bytes(threads), "with what ", threads,
      " threads pack into, in gaps between them or behind");
  return report;
}

// As the name says.
Status WriteAs(const std::string& out, const CompiledProgram& program, const Backend& backend) {
  const ExecutableSpec& spec = program.executable->spec();
  if (out.ends_with(".ptx")) return WritePtx(program, out);
  if (out.ends_with(".o") || out.ends_with(".so")) {
    if (backend.name() != "cpu") return InvalidArgument("objects are for backend cpu, not ", backend.name());
    return WriteModel(spec, cpu::FeaturesOf(backend.CodeKey()), out);
  }
  ArtifactWriter artifact;
  STROP_TRY(WriteProgram(program, backend, artifact));
  return WriteFile(out, artifact.Finish());
}

Status CheckName(const std::string& out, const Backend& backend) {
  const bool ptx = out.ends_with(".ptx");
  if (!ptx && !out.ends_with(".o") && !out.ends_with(".so") && !out.ends_with(".aot"))
    return InvalidArgument(
        "-o names the file to write: .aot for strop run, .o for the linker, .so to be opened, .ptx for backend gpu");
  if (ptx != (backend.name() == "gpu"))
    return InvalidArgument("backend gpu writes .ptx files, and nobody else does; this is ", backend.name(), ", to ",
                           out);
  return OkStatus();
}

}  // namespace

Status RunCompile(Arguments& arguments) {
  STROP_ASSIGN(const std::string out, arguments.TakeValue("-o"));
  const bool report_memory = arguments.TakeFlag("--memory-report");
  STROP_ASSIGN(const std::string machine, arguments.TakeValue("--target-cpu"));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend, machine));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  if (!out.empty() || !report_memory) STROP_TRY(CheckName(out, *backend));
  MakeEntryRowMajor(*module);
  STROP_ASSIGN(CompileSettings settings, SettingsFrom(arguments.options()));
  settings.explain = report_memory;
  STROP_ASSIGN(const std::shared_ptr<const CompiledProgram> program,
               CompileOrFind(std::move(module), *backend, settings));
  if (report_memory) STROP_TRY(WriteFile("", MemoryReport(*program, *backend)));
  return out.empty() ? OkStatus() : WriteAs(out, *program, *backend);
}

}  // namespace strop::tools
