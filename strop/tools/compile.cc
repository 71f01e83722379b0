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
  return WriteFile(out, *spec.objects[0]);
}

}  // namespace

Status RunCompile(Arguments& arguments) {
  STROP_ASSIGN(const std::string out, arguments.TakeValue("-o"));
  STROP_ASSIGN(const std::string machine, arguments.TakeValue("--target-cpu"));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend, machine));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  const bool model = out.ends_with(".o") || out.ends_with(".so");
  const bool ptx = out.ends_with(".ptx");
  if (!model && !ptx && !out.ends_with(".aot"))
    return InvalidArgument(
        "-o names the file to write: .aot for strop run, .o for the linker, .so to be opened, .ptx for backend gpu");
  if (ptx != (backend->name() == "gpu"))
    return InvalidArgument("backend gpu writes .ptx files, and nobody else does; this is ", backend->name(), ", to ",
                           out);
  MakeEntryRowMajor(*module);
  CompileSettings settings = SettingsFrom(arguments.options());
  settings.pool = &ThreadPool::Default();
  STROP_ASSIGN(const std::shared_ptr<const CompiledProgram> program,
               CompileOrFind(std::move(module), *backend, settings));
  const ExecutableSpec& spec = program->executable->spec();
  if (ptx) return WritePtx(*program, out);
  if (model) {
    if (backend->name() != "cpu") return InvalidArgument("objects are for backend cpu, not ", backend->name());
    return WriteModel(spec, cpu::FeaturesOf(backend->CodeKey()), out);
  }
  ArtifactWriter artifact;
  STROP_TRY(WriteProgram(*program, *backend, artifact));
  return WriteFile(out, artifact.Finish());
}

}  // namespace strop::tools
