#include "strop/null/null_backend.h"

#include <algorithm>

namespace strop::null {

NullBackend::NullBackend() {
  target_.name = "null";
  target_.description = "no code generation; the evaluator runs every kernel";
  target_.supports = [this](const Instruction& i) { return Supports(i); };
  // Nothing to gain from fusing what is not compiled.
  target_.can_fuse = [](const Instruction&, const Instruction&, const Instruction&) {
    return Decision::No("the null backend compiles nothing");
  };
}

// Make this true, op by op, for what Compile() emits.
Decision NullBackend::Supports(const Instruction& instruction) const {
  return Decision::No("the null backend compiles nothing");
}

// Passes of this target only, such as rewriting an op into a library call.
void NullBackend::AddPasses(Phase phase, PassPipeline& pipeline) const {}

// One step body per spec. What Supports() refused comes here as well: InterpretKernel runs it.
Result<CompiledKernels> NullBackend::Compile(std::span<const KernelSpec> specs,
                                             const KernelCompileOptions& options) const {
  CompiledKernels out;
  for (const KernelSpec& spec : specs) out.kernels.push_back(InterpretKernel(spec));
  return out;
}

// Host memory and host threads; an accelerator opens its driver here.
Result<std::unique_ptr<DeviceSet>> NullBackend::OpenDevices(int count, ThreadPool& pool,
                                                            Allocator::Options memory) const {
  return std::make_unique<DeviceSet>(std::max(count, 1), pool, memory);
}

std::string NullBackend::Describe() const { return "null: the evaluator behind the backend interface"; }

}  // namespace strop::null
