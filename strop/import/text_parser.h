// Reader of MLIR text: the generic form of every op, and the pretty forms of those in mlir_ops.def.
#pragma once
#include <memory>
#include <string_view>

#include "strop/base/status.h"
#include "strop/import/mlir.h"

namespace strop {

// One module, or a list of operations that are put in a module. `first_line` is the number of its first line in the
// file, for messages and for the locations of operations that name none.
Result<std::unique_ptr<MlirModule>> ParseMlirText(std::string_view text, std::string_view file_name,
                                                  int64_t first_line = 1);

// A single attribute or type, as found in bytecode where a dialect has no encoding of its own.
Result<const MlirAttr*> ParseMlirAttrText(MlirModule& module, std::string_view text);
Result<const MlirType*> ParseMlirTypeText(MlirModule& module, std::string_view text);

}  // namespace strop
