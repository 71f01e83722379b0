// strop compile: a program compiled ahead of time, as an artifact that `strop run` loads without compiling.
#include "strop/base/strings.h"
#include "strop/driver/artifact.h"
#include "strop/tools/command.h"
#include "strop/tools/execute.h"

namespace strop::tools {

Status RunCompile(Arguments& arguments) {
  STROP_ASSIGN(const std::string out, arguments.TakeValue("-o"));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  if (!out.ends_with(".aot")) return InvalidArgument("-o names the artifact to write, a file that ends in .aot");
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend));
  STROP_ASSIGN(const Program program, Program::Compile(std::move(module), *backend, SettingsFrom(arguments.options())));
  ArtifactWriter artifact;
  STROP_TRY(WriteProgram(program.compiled(), *backend, artifact));
  return WriteFile(out, artifact.Finish());
}

}  // namespace strop::tools
