// StableHLO programs to Modules: MLIR text (generic and pretty forms) and MLIR bytecode, portable artifacts included.
//
//   STROP_ASSIGN(std::unique_ptr<Module> module, ImportMlir(bytes));
//
// The entry is the function @main, or the only one. Functions become computations and calls stay calls (a pass
// inlines); results are a tuple unless there is exactly one. Modules come back verified, at stage Imported.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

bool LooksLikeMlirBytecode(std::span<const uint8_t> bytes);

// What an argument of the entry is in one run.
struct MlirArgument {
  Shape shape;
  std::optional<int64_t> value;  // of an integer scalar, which sizes may depend on
};

struct MlirImportOptions {
  std::string_view file_name;  // for messages and for the locations of text that names none
  std::string_view entry;      // name of the entry function; empty: @main, or the only one
  // One for each of the entry's, if there are any: the module is made for arguments like these, and what they settle of
  // unknown sizes is known (refine.cc).
  std::span<const MlirArgument> arguments;
};

// One program; text that holds several (split at lines `// -----`) is refused.
Result<std::unique_ptr<Module>> ImportMlir(std::span<const uint8_t> bytes_or_text,
                                           const MlirImportOptions& options = {});

// All programs of a file. Chunks that hold nothing but comments are skipped.
Result<std::vector<std::unique_ptr<Module>>> ImportMlirText(std::string_view text, std::string_view file_name);

// Whether the file is a valid program: reads it and imports each function with a body by itself, whether or not there
// is an entry. Unimplemented where something valid cannot be imported.
Status CheckMlir(std::span<const uint8_t> bytes_or_text, std::string_view file_name = "");

// The program (each program of a text) as MLIR in its generic form, portable artifacts as StableHLO.
Result<std::string> MlirToGenericText(std::span<const uint8_t> bytes_or_text, std::string_view file_name = "",
                                      bool with_locations = false);

// The program as a portable artifact of StableHLO: MLIR bytecode with VHLO ops, which every release from `target` on
// reads. `target` is "1.0.0" to the newest one known; empty means that one.
Result<std::string> WritePortableArtifact(std::span<const uint8_t> bytes_or_text, std::string_view target = "",
                                          std::string_view file_name = "");

// Straight-line HLO as StableHLO text (stablehlo_writer.cc); Unimplemented, at its line, for an op that it does not
// write.
Result<std::string> WriteStableHlo(const Module& module);

// The chunks of a text between lines `// -----`, each with the number of its first line.
struct MlirChunk {
  std::string_view text;
  int64_t first_line = 1;
};
std::vector<MlirChunk> SplitMlirText(std::string_view text);

}  // namespace strop
