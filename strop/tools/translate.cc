// strop translate: a program in any form that is read, written as HLO text (in either of XLA's styles), HloModuleProto
// or a picture; straight-line HLO also as StableHLO; one that came as MLIR also as MLIR text in its generic form
// (portable artifacts as StableHLO) or as a portable artifact. Of MLIR with several functions and no @main, --function
// names the one to translate. With --query, one value out of it. Nothing is verified or changed on the way.
#include <cstdio>

#include "strop/driver/load.h"
#include "strop/import/import.h"
#include "strop/ir/config_value.h"
#include "strop/ir/printer.h"
#include "strop/picture/dot.h"
#include "strop/proto/module_proto.h"
#include "strop/tools/command.h"

namespace strop::tools {
namespace {

// Values of `path` over all instructions, in order: backend_config.<keys>, frontend_attributes.<key>, metadata.op_name.
std::vector<std::string> QueryInstructions(const Module& module, std::string_view path) {
  std::vector<std::string> values;
  const std::string_view head = path.substr(0, path.find('.'));
  const std::string_view rest = head.size() < path.size() ? path.substr(head.size() + 1) : std::string_view();
  auto add = [&](const std::string& text) {
    if (!text.empty()) values.push_back(text);
  };
  for (const Computation* c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      if (head == "backend_config") {
        const auto* custom_call = i->any_attrs().get_if<CustomCallAttrs>();
        const std::string& config = custom_call ? custom_call->opaque : i->backend_config();
        if (rest.empty())
          add(config);
        else if (std::optional<std::string> value = ConfigValue(config, rest))
          values.push_back(*value);
      } else if (head == "frontend_attributes") {
        auto found = i->frontend_attributes().find(std::string(rest));
        if (found != i->frontend_attributes().end()) values.push_back(found->second);
      } else if (path == "metadata.op_name") {
        add(i->metadata().op_name);
      }
    }
  }
  return values;
}

Result<std::string> Query(const Module& module, std::string_view path) {
  static const std::vector<std::string_view> kKnown = {"name",           "instruction_count",   "computation_count",
                                                       "backend_config", "frontend_attributes", "metadata.op_name"};
  const std::string_view head = path.substr(0, path.find('.'));
  if (path == "name") return StrCat(module.name(), "\n");
  if (path == "instruction_count") return StrCat(module.instruction_count(), "\n");
  if (path == "computation_count") return StrCat(module.computations().size(), "\n");
  if (head != "backend_config" && head != "frontend_attributes" && path != "metadata.op_name")
    return InvalidArgument("nothing to query under \"", path, "\"; there are: ", Join(kKnown, ", "));
  std::string out;
  for (const std::string& value : QueryInstructions(module, path)) StrAppend(out, value, "\n");
  if (out.empty()) return NotFound("no instruction of ", module.name(), " has ", path);
  return out;
}

Result<std::string> Convert(const Module& module, const std::string& to, const PrintOptions& style) {
  if (to == "hlo") return PrintModule(module, style);
  if (to == "stablehlo") return WriteStableHlo(module);
  if (to == "proto") return SerializeModuleProto(module);
  if (to == "dot") return picture::ModuleToDot(module);
  if (to == "svg") return picture::DotToSvg(picture::ModuleToDot(module));
  const std::string_view near = Nearest(to, {"hlo", "stablehlo", "mlir", "portable", "proto", "dot", "svg"});
  return InvalidArgument("no format \"", to, "\"; ",
                         near.empty() ? "there are: hlo, stablehlo, mlir, portable, proto, dot, svg" : "did you mean ",
                         near);
}

std::span<const uint8_t> BytesOf(const std::string& bytes) {
  return {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

bool IsMlir(const std::string& bytes) {
  const ProgramFormat format = FormatOf(bytes);
  return format == ProgramFormat::MlirText || format == ProgramFormat::MlirBytecode;
}

Result<std::unique_ptr<Module>> Load(const std::string& bytes, const std::string& file, const std::string& function) {
  if (function.empty()) return LoadProgram(bytes, file);
  if (!IsMlir(bytes))
    return InvalidArgument("--function: ", file, " is ", Name(FormatOf(bytes)), ", which has one entry");
  return ImportMlir(BytesOf(bytes), {.file_name = file, .entry = function});
}

// The format that a file's name asks for: "m.pb" is a proto, "m.dot" and "m.svg" are pictures.
std::string FormatOfName(std::string_view path) {
  const size_t dot = path.rfind('.');
  const std::string_view ending = dot == path.npos ? std::string_view() : path.substr(dot + 1);
  if (ending == "pb" || ending == "proto") return "proto";
  if (ending == "dot" || ending == "svg") return std::string(ending);
  if (ending == "mlir") return "mlir";
  if (ending == "mlirbc") return "portable";
  return "hlo";
}

}  // namespace

Status RunTranslate(Arguments& arguments) {
  STROP_ASSIGN(std::string out, arguments.TakeValue("-o"));
  STROP_ASSIGN(std::string to, arguments.TakeValue("--to", FormatOfName(out)));
  STROP_ASSIGN(std::string query, arguments.TakeValue("--query"));
  STROP_ASSIGN(std::string function, arguments.TakeValue("--function"));
  STROP_ASSIGN(std::string target, arguments.TakeValue("--target"));
  PrintOptions style = arguments.TakeFlag("--short") ? PrintOptions::Short() : PrintOptions();
  style.operand_shapes = arguments.TakeFlag("--print-operand-shapes");
  style.metadata = !arguments.TakeFlag("--no-metadata");
  style.large_constants = !arguments.TakeFlag("--no-large-constants");
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(std::string bytes, ReadFile(files[0]));
  if ((to == "mlir" || to == "portable") && query.empty()) {
    if (!IsMlir(bytes)) return Unimplemented(files[0], " is ", Name(FormatOf(bytes)), ": only MLIR is written as MLIR");
    if (to == "portable") {
      STROP_ASSIGN(std::string artifact, WritePortableArtifact(BytesOf(bytes), target, files[0]));
      return WriteFile(out, artifact);
    }
    STROP_ASSIGN(std::string mlir, MlirToGenericText(BytesOf(bytes), files[0]));
    return WriteFile(out, mlir);
  }
  STROP_ASSIGN(std::unique_ptr<Module> module, Load(bytes, files[0], function));
  STROP_ASSIGN(std::string text, query.empty() ? Convert(*module, to, style) : Query(*module, query));
  return WriteFile(out, text);
}

}  // namespace strop::tools
