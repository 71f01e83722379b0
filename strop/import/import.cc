#include "strop/import/import.h"

#include <charconv>

#include "strop/import/bytecode_reader.h"
#include "strop/import/bytecode_writer.h"
#include "strop/import/convert.h"
#include "strop/import/text_parser.h"
#include "strop/import/vhlo.h"
#include "strop/ir/verifier.h"

namespace strop {
namespace {

bool IsBlank(std::string_view text) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = Trim(text.substr(0, end));
    if (!line.empty() && !line.starts_with("//")) return false;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return true;
}

Result<std::unique_ptr<Module>> Convert(MlirModule& mlir, std::string_view entry,
                                        std::span<const MlirArgument> arguments = {}) {
  ModuleImporter importer(mlir, entry, arguments);
  STROP_ASSIGN(std::unique_ptr<Module> module, importer.Run());
  STROP_TRY(VerifyModule(*module));
  return module;
}

// The programs of a file, read but not imported.
Result<std::vector<std::unique_ptr<MlirModule>>> ReadAll(std::span<const uint8_t> bytes, std::string_view file_name) {
  std::vector<std::unique_ptr<MlirModule>> modules;
  if (LooksLikeMlirBytecode(bytes)) {
    STROP_ASSIGN(std::unique_ptr<MlirModule> mlir, ReadMlirBytecode(bytes));
    STROP_TRY(ConvertVhloToStablehlo(*mlir));
    modules.push_back(std::move(mlir));
    return modules;
  }
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const MlirChunk& chunk : SplitMlirText(text)) {
    STROP_ASSIGN(std::unique_ptr<MlirModule> mlir, ParseMlirText(chunk.text, file_name, chunk.first_line));
    modules.push_back(std::move(mlir));
  }
  return modules;
}

}  // namespace

std::vector<MlirChunk> SplitMlirText(std::string_view text) {
  std::vector<MlirChunk> chunks;
  size_t begin = 0, line_begin = 0;
  int64_t line = 1, first_line = 1;
  auto add = [&](size_t end) {
    std::string_view chunk = text.substr(begin, end - begin);
    if (!IsBlank(chunk)) chunks.push_back({chunk, first_line});
  };
  while (line_begin < text.size()) {
    size_t end = text.find('\n', line_begin);
    if (end == std::string_view::npos) end = text.size();
    if (Trim(text.substr(line_begin, end - line_begin)) == "// -----") {
      add(line_begin);
      begin = std::min(end + 1, text.size());
      first_line = line + 1;
    }
    line_begin = end + 1;
    ++line;
  }
  add(text.size());
  return chunks;
}

Result<std::vector<std::unique_ptr<Module>>> ImportMlirText(std::string_view text, std::string_view file_name) {
  std::vector<std::unique_ptr<Module>> modules;
  for (const MlirChunk& chunk : SplitMlirText(text)) {
    STROP_ASSIGN(std::unique_ptr<MlirModule> mlir, ParseMlirText(chunk.text, file_name, chunk.first_line));
    STROP_ASSIGN(std::unique_ptr<Module> module, Convert(*mlir, ""));
    modules.push_back(std::move(module));
  }
  return modules;
}

Result<std::unique_ptr<Module>> ImportMlir(std::span<const uint8_t> bytes, const MlirImportOptions& options) {
  STROP_ASSIGN(std::vector<std::unique_ptr<MlirModule>> modules, ReadAll(bytes, options.file_name));
  if (modules.size() != 1) return InvalidArgument("expected one program, found ", modules.size());
  return Convert(*modules[0], options.entry, options.arguments);
}

namespace {

// The types that a function declares, of functions without a body.
Status CheckDeclarations(const MlirModule& mlir) {
  for (const MlirRegion* region : mlir.root->regions)
    for (const MlirBlock* block : region->blocks)
      for (const MlirOp* op : block->ops) {
        const MlirAttr* type = op->name == "func.func" ? op->Attr("function_type") : nullptr;
        if (!type || type->kind != MlirAttrKind::Type) continue;
        for (const MlirType* t : type->type->types) {
          Result<Shape> shape = ShapeOf(*t);
          if (!shape.ok() && shape.status().code() == StatusCode::kInvalidArgument)
            return std::move(shape).status().At(LocationText(op->loc));
        }
      }
  return OkStatus();
}

}  // namespace

Status CheckMlir(std::span<const uint8_t> bytes, std::string_view file_name) {
  STROP_ASSIGN(std::vector<std::unique_ptr<MlirModule>> modules, ReadAll(bytes, file_name));
  for (const std::unique_ptr<MlirModule>& mlir : modules) {
    STROP_TRY(CheckDeclarations(*mlir));
    for (std::string_view name : FunctionsWithBody(*mlir)) STROP_TRY(Convert(*mlir, name));
  }
  return OkStatus();
}

Result<std::string> MlirToGenericText(std::span<const uint8_t> bytes, std::string_view file_name, bool with_locations) {
  STROP_ASSIGN(std::vector<std::unique_ptr<MlirModule>> modules, ReadAll(bytes, file_name));
  std::string out;
  for (const std::unique_ptr<MlirModule>& mlir : modules) {
    if (!out.empty()) out += "// -----\n";
    out += PrintGeneric(*mlir->root, with_locations);
  }
  return out;
}

namespace {

// The minor number of a release "1.N.P".
Result<int> MinorOf(std::string_view target) {
  int parts[3] = {};
  const char *at = target.data(), *end = at + target.size();
  for (int i = 0; i < 3; ++i) {
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    const bool more = i < 2;
    if (error != std::errc() || (next == end) == more || (more && *next != '.') || parts[i] < 0)
      return InvalidArgument("\"", target, "\" is no StableHLO release; they are written as 1.9.0");
    at = next + (more ? 1 : 0);
  }
  if (parts[0] != 1 || parts[1] > kCurrentStablehloMinor)
    return InvalidArgument("portable artifacts are written for StableHLO 1.0.0 to 1.", kCurrentStablehloMinor,
                           ".0, not ", target);
  return parts[1];
}

}  // namespace

Result<std::string> WritePortableArtifact(std::span<const uint8_t> bytes, std::string_view target,
                                          std::string_view file_name) {
  const std::string newest = StrCat("1.", kCurrentStablehloMinor, ".0");
  if (target.empty()) target = newest;
  STROP_ASSIGN(const int minor, MinorOf(target));
  STROP_ASSIGN(std::vector<std::unique_ptr<MlirModule>> modules, ReadAll(bytes, file_name));
  if (modules.size() != 1) return InvalidArgument("expected one program, found ", modules.size());
  STROP_TRY(ConvertStablehloToVhlo(*modules[0], minor));
  return WriteVhloBytecode(*modules[0], minor, StrCat("StableHLO_v", target));
}

}  // namespace strop
