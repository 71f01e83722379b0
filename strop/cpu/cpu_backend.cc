#include "strop/cpu/cpu_backend.h"

#include <algorithm>

#include "strop/base/log.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/library/library.h"

namespace strop::cpu {

CpuBackend::CpuBackend() {
  target_.name = "cpu";
  target_.vector_bytes = 64;
  target_.supports = [this](const Instruction& i) { return Supports(i); };
}

Decision CpuBackend::Supports(const Instruction& instruction) const { return LibrarySupports(instruction); }

void CpuBackend::AddPasses(Phase phase, PassPipeline& pipeline) const {}

Result<CompiledKernels> CpuBackend::Compile(std::span<const KernelSpec> specs,
                                            const KernelCompileOptions& options) const {
  CompiledKernels out;
  for (const KernelSpec& spec : specs) {
    if (LibrarySupports(*spec.instruction)) {
      STROP_ASSIGN(CompiledKernel kernel, MakeLibraryKernel(spec));
      out.kernels.push_back(std::move(kernel));
    } else {
      out.kernels.push_back(InterpretKernel(spec));
    }
  }
  return out;
}

Result<std::unique_ptr<DeviceSet>> CpuBackend::OpenDevices(int count) const {
  return std::make_unique<DeviceSet>(std::max(count, 1), ThreadPool::Default());
}

std::string CpuBackend::Describe() const {
  return StrCat("cpu: ", target_.description, ", ", ThreadPool::Default().num_threads(), " threads");
}

}  // namespace strop::cpu
