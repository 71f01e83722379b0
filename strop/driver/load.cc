#include "strop/driver/load.h"

#include "strop/import/import.h"
#include "strop/ir/verifier.h"
#include "strop/proto/module_proto.h"
#include "strop/text/parser.h"

namespace strop {
namespace {

// The first word of the text, comments skipped.
std::string_view FirstWord(std::string_view text) {
  for (;;) {
    size_t at = text.find_first_not_of(" \t\r\n");
    if (at == text.npos) return {};
    text.remove_prefix(at);
    if (text.substr(0, 2) == "//") {
      size_t end = text.find('\n');
      if (end == text.npos) return {};
      text.remove_prefix(end);
    } else if (text.substr(0, 2) == "/*") {
      size_t end = text.find("*/");
      if (end == text.npos) return {};
      text.remove_prefix(end + 2);
    } else {
      return text.substr(0, text.find_first_of(" \t\r\n,({@"));
    }
  }
}

bool IsText(std::string_view bytes) {
  for (char c : bytes.substr(0, 4096)) {
    const unsigned char u = static_cast<unsigned char>(c);
    if (u < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\f') return false;
  }
  return true;
}

}  // namespace

std::string_view Name(ProgramFormat format) {
  switch (format) {
    case ProgramFormat::HloText: return "HLO text";
    case ProgramFormat::HloProto: return "HLO proto";
    case ProgramFormat::MlirText: return "MLIR text";
    case ProgramFormat::MlirBytecode: return "MLIR bytecode";
  }
  return "?";
}

ProgramFormat FormatOf(std::string_view bytes) {
  if (bytes.substr(0, 4) == "ML\xefR") return ProgramFormat::MlirBytecode;
  if (!IsText(bytes)) return ProgramFormat::HloProto;
  std::string_view word = FirstWord(bytes);
  if (word.empty()) return ProgramFormat::MlirText;
  const bool mlir = word == "module" || word.substr(0, 4) == "func" || word[0] == '#' || word[0] == '!' ||
                    word[0] == '"' || word.substr(0, 7) == "builtin" || word.substr(0, 10) == "stablehlo.";
  return mlir ? ProgramFormat::MlirText : ProgramFormat::HloText;
}

Result<std::vector<std::unique_ptr<Module>>> LoadPrograms(std::string_view bytes, std::string_view file_name) {
  switch (FormatOf(bytes)) {
    case ProgramFormat::MlirText: {
      STROP_ASSIGN(std::vector<std::unique_ptr<Module>> modules, ImportMlirText(bytes, file_name));
      if (modules.empty()) return InvalidArgument(file_name, " is empty: expected a program");
      return modules;
    }
    default: break;
  }
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadProgram(bytes, file_name));
  std::vector<std::unique_ptr<Module>> modules;
  modules.push_back(std::move(module));
  return modules;
}

Result<std::unique_ptr<Module>> LoadProgram(std::string_view bytes, std::string_view file_name) {
  switch (FormatOf(bytes)) {
    case ProgramFormat::HloText: return ParseHloModule(bytes, file_name);
    case ProgramFormat::HloProto: {
      Result<std::unique_ptr<Module>> module = ParseAnyModuleProto(bytes);
      if (module.ok() || !module.status().location().empty()) return module;
      return std::move(module).status().At(std::string(file_name));
    }
    case ProgramFormat::MlirBytecode:
      return ImportMlir({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, {.file_name = file_name});
    case ProgramFormat::MlirText: break;
  }
  STROP_ASSIGN(std::vector<std::unique_ptr<Module>> modules, ImportMlirText(bytes, file_name));
  if (modules.empty()) return InvalidArgument(file_name, " is empty: expected a program");
  if (modules.size() != 1)
    return InvalidArgument(file_name, " holds ", modules.size(), " modules where one is expected");
  return std::move(modules[0]);
}

Result<std::unique_ptr<Module>> LoadProgramFor(std::span<const Literal> arguments, std::unique_ptr<Module> module,
                                               std::string_view bytes, std::string_view file_name) {
  bool open = false;
  for (const Instruction* parameter : module->entry()->parameters())
    for (int64_t d = 0; parameter->shape().IsArray() && d < parameter->shape().rank(); ++d)
      open |= parameter->shape().is_unbounded(d);
  const ProgramFormat format = FormatOf(bytes);
  if (!open || (format != ProgramFormat::MlirText && format != ProgramFormat::MlirBytecode)) return module;
  std::vector<MlirArgument> given;
  for (const Literal& argument : arguments) {
    MlirArgument& last = given.emplace_back();
    last.shape = argument.shape().WithoutLayout();
    if (last.shape.IsArray() && last.shape.rank() == 0 && IsInteger(last.shape.type())) last.value = argument.GetInt(0);
  }
  return ImportMlir({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()},
                    {.file_name = file_name, .arguments = given});
}

Status VerifyLoaded(const Module& module, std::string_view bytes, std::string_view file_name) {
  Status status = VerifyModule(module);
  if (status.ok() || FormatOf(bytes) != ProgramFormat::HloText) return status;
  return LocateInText(status, bytes, file_name);
}

}  // namespace strop
