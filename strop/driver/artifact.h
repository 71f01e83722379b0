// Compiled programs as artifacts (runtime/artifact.h) and back: the executable with its machine code, and the module,
// which is read only if somebody asks for it or a part of it is interpreted. Loading compiles nothing.
#pragma once
#include "strop/driver/compile.h"
#include "strop/runtime/artifact.h"

namespace strop {

// Unimplemented, naming the step, if a part of it cannot be written down.
Status WriteProgram(const CompiledProgram& program, const Backend& backend, ArtifactWriter& out);
// Is there a program in it, or only what others put beside it?
bool HasProgram(const Artifact& artifact);

// FailedPrecondition if it was compiled by another version of Strop, for another backend or for another machine;
// `options` give the targets of custom calls. Reports are empty: nobody compiled.
Result<std::shared_ptr<const CompiledProgram>> ReadProgram(const Artifact& artifact, const Backend& backend,
                                                           const CompileSettings& options);

}  // namespace strop
