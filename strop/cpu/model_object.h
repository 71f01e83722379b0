// A program that was compiled ahead of time as an object file (ELF) for the linker: the artifact as data, and
// references to what its steps are made with, so that nothing else of the library is linked (include/strop/model.h).
#pragma once
#include <string>
#include <string_view>

#include "strop/runtime/artifact.h"
#include "strop/runtime/executable.h"

namespace strop::cpu {

// The artifact alone. `features`: of the processor that it is for (Isa::features).
Result<std::string> ModelBytes(const ExecutableSpec& spec, std::string_view features);
// The object defines `strop_model_data_<name>`, a StropModelData. Unimplemented if the program needs the evaluator or
// custom calls of its user.
Result<std::string> ModelObject(const std::string& name, const ExecutableSpec& spec, std::string_view features);

}  // namespace strop::cpu
