// The GPU backend: what programs become for NVIDIA's GPUs, as PTX. It compiles only; no device is opened.
#pragma once
#include "strop/backend/backend.h"

namespace strop::gpu {

class GpuBackend final : public Backend {
 public:
  // `machine`: an architecture as NVIDIA calls it, "sm_80".
  explicit GpuBackend(std::string machine = "sm_80");
  std::string_view name() const override { return "gpu"; }
  const TargetInfo& target() const override { return target_; }
  Decision Supports(const Instruction& instruction) const override;
  void AddPasses(Phase phase, PassPipeline& pipeline) const override {}
  // `objects` has the PTX of all kernels as one text.
  Result<CompiledKernels> Compile(std::span<const KernelSpec> specs,
                                  const KernelCompileOptions& options) const override;
  Result<std::unique_ptr<DeviceSet>> OpenDevices(int count, ThreadPool& pool, Allocator::Options memory) const override;
  std::vector<std::string> MemorySpaces() const override { return {"device"}; }
  std::string Describe() const override;
  Result<std::unique_ptr<Backend>> ForMachine(std::string_view name) const override;
  std::string CodeKey() const override { return machine_; }

 private:
  TargetInfo target_;
  std::string machine_;
};

}  // namespace strop::gpu
