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
// For the linker of a program, or for a shared object that is opened by name.
enum class ModelUse { kLinked, kShared };

// The object defines `strop_model_data_<name>`, a StropModelData; with kShared also functions for C, each argument and
// each result a parameter of its own: <name>_create(threads, model), <name>_run(model, arguments, results) and
// <name>_destroy(model). Unimplemented if the program needs the evaluator or custom calls of its user.
Result<std::string> ModelObject(const std::string& name, const ExecutableSpec& spec, std::string_view features,
                                ModelUse use);

}  // namespace strop::cpu
