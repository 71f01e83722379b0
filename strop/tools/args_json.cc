#include "strop/tools/args_json.h"

#include <nlohmann/json.hpp>

#include "strop/tools/command.h"

namespace strop::tools {
namespace {

using Json = nlohmann::json;

Result<RawArgument> ParseArgument(const Json& json, size_t number) {
  auto error = [&](const auto&... what) { return InvalidArgument("args.json, argument ", number, ": ", what...); };
  if (!json.is_object()) return error("expected an object with dtype, shape and file");
  RawArgument out;
  for (const auto& [key, value] : json.items()) {
    if (key == "shape") {
      if (!value.is_array()) return error("shape is not a list of sizes");
      for (const Json& size : value) {
        if (!size.is_number_integer() || size < 0 || size > INT64_MAX) return error("shape has no size ", size.dump());
        out.dims.push_back(size.get<int64_t>());
      }
    } else if (key == "dtype" || key == "file") {
      if (!value.is_string()) return error(key, " is not a string");
      const std::string& text = value.get_ref<const std::string&>();
      if (key == "file") {
        out.file = text;
        continue;
      }
      const std::optional<ElementType> type = ParseDtypeName(text);
      if (!type || !IsArrayType(*type)) return error("unknown dtype \"", text, "\"");
      out.type = *type;
    } else {
      return error("unknown key \"", key, "\"; there are: dtype, shape, file");
    }
  }
  for (const char* key : {"dtype", "shape", "file"})
    if (!json.contains(key)) return error("there is no ", key);
  return out;
}

}  // namespace

Result<std::vector<RawArgument>> ParseArgsJson(std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return InvalidArgument("args.json is no JSON at byte ", error.byte, ": ", error.what());
  }
  if (!json.is_array()) return InvalidArgument("args.json is not a list of arguments");
  std::vector<RawArgument> out;
  for (const Json& argument : json) {
    STROP_ASSIGN(RawArgument parsed, ParseArgument(argument, out.size()));
    out.push_back(std::move(parsed));
  }
  return out;
}

Result<std::vector<NpyArray>> ReadArgsFolder(const std::string& folder) {
  STROP_ASSIGN(std::string text, ReadFile(folder + "/args.json"));
  STROP_ASSIGN(std::vector<RawArgument> arguments, ParseArgsJson(text));
  std::vector<NpyArray> arrays;
  for (const RawArgument& argument : arguments) {
    const Shape shape = Shape::Array(argument.type, argument.dims);
    STROP_TRY(shape.Validate());
    STROP_ASSIGN(std::string bytes, ReadFile(folder + "/" + argument.file));
    if (static_cast<int64_t>(bytes.size()) != shape.byte_size())
      return InvalidArgument(argument.file, " has ", bytes.size(), " bytes, ", shape.ToString(), " takes ",
                             shape.byte_size());
    arrays.push_back({argument.file, argument.type, Bytes(argument.type), argument.dims, std::move(bytes)});
  }
  return arrays;
}

}  // namespace strop::tools
