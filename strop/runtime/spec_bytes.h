// An ExecutableSpec as sections of an artifact: its tables as they are, constants and objects in sections of their own
// (constants are used where they lie), and of steps with code their recipes.
#pragma once
#include <functional>
#include <vector>

#include "strop/runtime/artifact.h"
#include "strop/runtime/executable.h"
#include "strop/runtime/step_maker.h"

namespace strop {

// Unimplemented, naming the step, for one that says nothing of how it was made.
Status WriteSpec(const ExecutableSpec& spec, ArtifactWriter& out);
bool HasSpec(const Artifact& artifact);

// What makes the steps.
struct SpecMakers {
  std::function<Result<std::unique_ptr<StepMaker>>(std::span<const std::string_view> objects)> open_code;
  std::function<Result<StepBody>(std::string_view recipe)> interpret;  // of what the evaluator runs
  std::function<Result<std::shared_ptr<CustomCall>>(const CustomCallSite& site)> bind;
};
// InvalidArgument if the sections are damaged. Executable::Create checks what it makes.
Result<ExecutableSpec> ReadSpec(const Artifact& artifact, const SpecMakers& makers);

}  // namespace strop
