// Writer of MLIR bytecode, version 6, for modules of VHLO ops: the second half of a portable artifact (the first is
// ConvertStablehloToVhlo).
//
// Types and attributes below a VHLO op take VHLO's encodings, locations and what hangs on builtin.module the builtin
// ones. Equal entries are written once; each refers only to entries before it.
#pragma once
#include <string>

#include "strop/base/status.h"
#include "strop/import/mlir.h"

namespace strop {

// `minor` is the StableHLO release 1.`minor` that has to be able to read it: types that came later are refused.
Result<std::string> WriteVhloBytecode(const MlirModule& module, int minor, const std::string& producer);

}  // namespace strop
