// strop compile: a program compiled ahead of time, as an artifact that `strop run` loads without compiling, or as an
// object and a header for programs in C and C++ (include/strop/model.h).
#include <cctype>

#include "strop/base/strings.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/model_object.h"
#include "strop/driver/artifact.h"
#include "strop/driver/program_cache.h"
#include "strop/tools/command.h"
#include "strop/tools/execute.h"

namespace strop::tools {
namespace {

// Their addresses as a list in C, which is never empty.
std::string Addresses(size_t count, std::string_view type, std::string_view list, std::string_view name) {
  std::string out = StrCat("  ", type, " ", list, "[", count + 1, "] = {");
  for (size_t n = 0; n < count; ++n) StrAppend(out, name, n, ", ");
  return out + "0};\n";
}

// The C type of an element; void where C has none.
std::string_view CType(const Shape& shape) {
  switch (shape.type()) {
    case ElementType::Pred:
    case ElementType::U8: return "unsigned char";
    case ElementType::S8: return "signed char";
    case ElementType::S16: return "short";
    case ElementType::U16: return "unsigned short";
    case ElementType::S32: return "int";
    case ElementType::U32: return "unsigned";
    case ElementType::S64: return "long long";
    case ElementType::U64: return "unsigned long long";
    case ElementType::F32: return "float";
    case ElementType::F64: return "double";
    default: return "void";
  }
}

std::string Header(const std::string& name, const ExecutableSpec& spec) {
  std::string shapes, parameters;
  for (size_t n = 0; n < spec.parameters.size(); ++n) {
    const Shape& shape = spec.parameters[n].shape;
    StrAppend(shapes, "     argument", n, "  ", shape.ToString(), "\n");
    StrAppend(parameters, ", const ", CType(shape), "* argument", n);
  }
  for (size_t n = 0; n < spec.outputs.size(); ++n) {
    const Shape& shape = spec.outputs[n].shape;
    StrAppend(shapes, "     result", n, "    ", shape.ToString(), "\n");
    StrAppend(parameters, ", ", CType(shape), "* result", n);
  }
  return StrCat("/* ", name,
                ", compiled by strop compile. Arrays are dense, the last dimension fastest, aligned to 64 bytes:\n",
                shapes, "   Functions return null or what went wrong. */\n#pragma once\n#include <strop/model.h>\n\n",
                "#ifdef __cplusplus\nextern \"C\"\n#else\nextern\n#endif\nconst StropModelData strop_model_data_", name,
                ";\n\nstatic inline const char* ", name,
                "_create(int threads, StropModel** model) {\n  return strop_model_create(&strop_model_data_", name,
                ", threads, model);\n}\nstatic inline const char* ", name, "_run(const StropModel* model", parameters,
                ") {\n", Addresses(spec.parameters.size(), "const void*", "arguments", "argument"),
                Addresses(spec.outputs.size(), "void*", "results", "result"),
                "  return strop_model_run(model, arguments, results);\n}\n");
}

// "softmax" of "models/softmax.o": a name in C.
Result<std::string> NameOf(std::string_view path) {
  path.remove_prefix(std::min(path.size(), path.rfind('/') == path.npos ? 0 : path.rfind('/') + 1));
  path.remove_suffix(2);
  bool good = !path.empty() && !std::isdigit(static_cast<unsigned char>(path[0]));
  for (char c : path) good &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  if (!good) return InvalidArgument("-o names an object \"", path, "\", which is no name in C");
  return std::string(path);
}

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
  const bool object = out.ends_with(".o");
  const bool ptx = out.ends_with(".ptx");
  if (!object && !ptx && !out.ends_with(".aot"))
    return InvalidArgument("-o names the file to write: .aot for strop run, .o for the linker, .ptx for backend gpu");
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
  if (object) {
    if (backend->name() != "cpu") return InvalidArgument("objects are for backend cpu, not ", backend->name());
    STROP_ASSIGN(const std::string name, NameOf(out));
    STROP_ASSIGN(const std::string bytes, cpu::ModelObject(name, spec, cpu::FeaturesOf(backend->CodeKey())));
    STROP_TRY(WriteFile(out, bytes));
    return WriteFile(out.substr(0, out.size() - 1) + "h", Header(name, spec));
  }
  ArtifactWriter artifact;
  STROP_TRY(WriteProgram(*program, *backend, artifact));
  return WriteFile(out, artifact.Finish());
}

}  // namespace strop::tools
