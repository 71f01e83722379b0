// A folder of raw arguments: args.json says what each file holds,
// [{"dtype": "bf16", "shape": [2,3], "file": "arg0.bin"}, ...]; the files are raw and row-major.
#pragma once
#include <string>
#include <vector>

#include "strop/tools/npy.h"

namespace strop::tools {

struct RawArgument {
  ElementType type = ElementType::Invalid;
  Int64Vector dims;
  std::string file;
};

// The list of args.json. An error names the byte, or the argument and its key.
Result<std::vector<RawArgument>> ParseArgsJson(std::string_view text);
// Its arrays, each file as long as its shape says.
Result<std::vector<NpyArray>> ReadArgsFolder(const std::string& folder);

}  // namespace strop::tools
