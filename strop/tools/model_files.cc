#include "strop/tools/model_files.h"

#include <cctype>
#include <filesystem>

#include "strop/base/strings.h"
#include "strop/cpu/model_object.h"
#include "strop/tools/command.h"
#include "strop/tools/shell_command.h"

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

// The shapes of a program, and its arguments and results as parameters in C.
struct Interface {
  std::string shapes, parameters;
};

Interface InterfaceOf(const ExecutableSpec& spec) {
  Interface out;
  for (size_t n = 0; n < spec.parameters.size(); ++n) {
    const Shape& shape = spec.parameters[n].shape;
    StrAppend(out.shapes, "     argument", n, "  ", shape.ToString(), "\n");
    StrAppend(out.parameters, ", const ", CType(shape), "* argument", n);
  }
  for (size_t n = 0; n < spec.outputs.size(); ++n) {
    const Shape& shape = spec.outputs[n].shape;
    StrAppend(out.shapes, "     result", n, "    ", shape.ToString(), "\n");
    StrAppend(out.parameters, ", ", CType(shape), "* result", n);
  }
  return out;
}

constexpr std::string_view kExternC = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
constexpr std::string_view kEndExternC = "#ifdef __cplusplus\n}\n#endif\n";

// `needed`: what the functions need of others.
std::string Preface(const std::string& name, const Interface& interface, std::string_view needed) {
  return StrCat(
      "/* ", name, ", compiled by strop compile. Arrays are dense, the last dimension fastest, aligned to 64 bytes:\n",
      interface.shapes, "   Functions return null or what went wrong. */\n#pragma once\n", needed, "\n", kExternC);
}

// Functions in C around the object's data.
std::string HeaderOfObject(const std::string& name, const ExecutableSpec& spec) {
  const Interface interface = InterfaceOf(spec);
  return StrCat(Preface(name, interface, "#include <strop/model.h>\n"), "extern const StropModelData strop_model_data_",
                name, ";\n", kEndExternC, "\nstatic inline const char* ", name,
                "_create(int threads, StropModel** model) {\n  return strop_model_create(&strop_model_data_", name,
                ", threads, model);\n}\nstatic inline const char* ", name, "_run(const StropModel* model",
                interface.parameters, ") {\n",
                Addresses(spec.parameters.size(), "const void*", "arguments", "argument"),
                Addresses(spec.outputs.size(), "void*", "results", "result"),
                "  return strop_model_run(model, arguments, results);\n}\nstatic inline void ", name,
                "_destroy(StropModel* model) {\n  strop_model_destroy(model);\n}\n");
}

// The functions that the shared object has itself.
std::string HeaderOfSharedObject(const std::string& name, const ExecutableSpec& spec) {
  const Interface interface = InterfaceOf(spec);
  return StrCat(Preface(name, interface, "typedef struct StropModel StropModel;\n"), "const char* ", name,
                "_create(int threads, StropModel** model);\nconst char* ", name, "_run(const StropModel* model",
                interface.parameters, ");\nvoid ", name, "_destroy(StropModel* model);\n", kEndExternC);
}

// "softmax" of "models/softmax.o" and of "models/libsoftmax.so": a name in C.
Result<std::string> NameOf(const std::string& path) {
  std::string name = std::filesystem::path(path).stem();
  if (path.ends_with(".so") && name.starts_with("lib")) name.erase(0, 3);
  bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) good &= std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  if (!good) return InvalidArgument("-o names an object \"", name, "\", which is no name in C");
  return name;
}

// For the shell.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) c == '\'' ? out += "'\\''" : out += c;
  return out + "'";
}

// The linker script that names Strop's libraries, in the installation or the build that this program belongs to.
Result<std::string> LibraryScript() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path script = self.parent_path().parent_path() / STROP_LIBRARY_FOLDER / "strop_model.ld";
  if (error || !std::filesystem::exists(script, error))
    return NotFound(
        "a shared object needs Strop's libraries, which `cmake --install` puts beside the program: there is no ",
        script.string());
  return script.string();
}

// Of the library only what the object refers to is taken, and only the model's functions can be seen from outside.
Status Link(const std::string& name, const std::string& object, const std::string& out) {
  STROP_ASSIGN(const std::string libraries, LibraryScript());
  const std::string version = object + ".map", told = object + ".log";
  STROP_TRY(
      WriteFile(version, StrCat("{ global: ", name, "_create; ", name, "_run; ", name, "_destroy; local: *; };\n")));
  const std::string folder = std::filesystem::path(libraries).parent_path();
  const std::string command = StrCat(
      "${CXX:-c++} -shared -s -Wl,--gc-sections -Wl,-z,defs -Wl,--version-script=", Quoted(version), " -L",
      Quoted(folder), " ", Quoted(object), " ", Quoted(libraries), " -lpthread -ldl >", Quoted(told), " 2>&1 -o");
  STROP_ASSIGN(const CommandOutcome outcome, RunShellCommand(command, out, 0, nullptr));
  std::error_code ignored;
  std::filesystem::remove(version, ignored);
  const Result<std::string> output = ReadFile(told);
  std::filesystem::remove(told, ignored);
  if (outcome.status == 0) return OkStatus();
  return FailedPrecondition("a C++ compiler is needed to link ", out,
                            "; ${CXX:-c++} says: ", output.ok() ? *output : "");
}

}  // namespace

Status WriteModel(const ExecutableSpec& spec, std::string_view features, const std::string& out) {
  STROP_ASSIGN(const std::string name, NameOf(out));
  const bool shared = out.ends_with(".so");
  const cpu::ModelUse use = shared ? cpu::ModelUse::kShared : cpu::ModelUse::kLinked;
  STROP_ASSIGN(const std::string bytes, cpu::ModelObject(name, spec, features, use));
  const std::string object = shared ? out + ".o" : out;
  STROP_TRY(WriteFile(object, bytes));
  if (shared) {
    const Status linked = Link(name, object, out);
    std::error_code ignored;
    std::filesystem::remove(object, ignored);
    STROP_TRY(linked);
  }
  const std::filesystem::path header = std::filesystem::path(out).replace_filename(name + ".h");
  return WriteFile(header, shared ? HeaderOfSharedObject(name, spec) : HeaderOfObject(name, spec));
}

}  // namespace strop::tools
