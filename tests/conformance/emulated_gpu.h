// The backend gpu with the host in the place of the device: its kernels, compiled for this processor, whose threads run
// one after the other. What is tested is what a thread computes, and of which element.
#pragma once
#include "strop/gpu/gpu_backend.h"

namespace strop {

class EmulatedGpu final : public Backend {
 public:
  std::string_view name() const override { return gpu_.name(); }
  const TargetInfo& target() const override { return gpu_.target(); }
  Decision Supports(const Instruction& instruction) const override { return gpu_.Supports(instruction); }
  void AddPasses(Phase phase, PassPipeline& pipeline) const override { gpu_.AddPasses(phase, pipeline); }
  Result<CompiledKernels> Compile(std::span<const KernelSpec> specs,
                                  const KernelCompileOptions& options) const override;
  Result<std::unique_ptr<DeviceSet>> OpenDevices(int count, ThreadPool& pool, Allocator::Options memory) const override;
  std::vector<std::string> MemorySpaces() const override { return gpu_.MemorySpaces(); }
  std::string Describe() const override { return gpu_.Describe(); }

 private:
  gpu::GpuBackend gpu_;
};

}  // namespace strop
