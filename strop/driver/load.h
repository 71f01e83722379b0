// Programs in whatever form they come: HLO text, HloModuleProto and its wrappers, StableHLO as MLIR text or bytecode.
// The bytes tell which.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

enum class ProgramFormat : uint8_t { HloText, HloProto, MlirText, MlirBytecode };
std::string_view Name(ProgramFormat format);
ProgramFormat FormatOf(std::string_view bytes);

// One module; MLIR text may hold several, split at `// -----`. Not verified yet. `file_name` names the program in
// errors.
Result<std::vector<std::unique_ptr<Module>>> LoadPrograms(std::string_view bytes, std::string_view file_name);
// Exactly one, or an error that says how many there are.
Result<std::unique_ptr<Module>> LoadProgram(std::string_view bytes, std::string_view file_name);
// The same, made for these arguments: a StableHLO program may leave sizes to them. `module` is returned if it does not.
Result<std::unique_ptr<Module>> LoadProgramFor(std::span<const Literal> arguments, std::unique_ptr<Module> module,
                                               std::string_view bytes, std::string_view file_name);

// VerifyModule for a module that comes from these bytes: a violation in HLO text is told at its line.
Status VerifyLoaded(const Module& module, std::string_view bytes, std::string_view file_name);

}  // namespace strop
