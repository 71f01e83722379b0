// The CPU backend: library kernels where the kernel library has the op, generated machine code for the rest, and the
// evaluator for what neither has.
#pragma once
#include "strop/backend/backend.h"
#include "strop/cpu/isa.h"

namespace strop::cpu {

class KernelCompiler;

class CpuBackend final : public Backend {
 public:
  CpuBackend();
  explicit CpuBackend(const Isa& isa);
  ~CpuBackend() override;
  std::string_view name() const override { return "cpu"; }
  const TargetInfo& target() const override { return target_; }
  Decision Supports(const Instruction& instruction) const override;
  void AddPasses(Phase phase, PassPipeline& pipeline) const override;
  Result<CompiledKernels> Compile(std::span<const KernelSpec> specs,
                                  const KernelCompileOptions& options) const override;
  Result<std::unique_ptr<Backend>> ForMachine(std::string_view name) const override;
  std::string CodeKey() const override { return isa_.key; }
  Decision RunsCode(std::string_view key) const override;
  Result<std::unique_ptr<StepMaker>> OpenCode(std::span<const std::string_view> objects) const override;
  Result<std::unique_ptr<DeviceSet>> OpenDevices(int count, ThreadPool& pool, Allocator::Options memory) const override;
  std::vector<std::string> MemorySpaces() const override { return {"device", "pinned_host", "unpinned_host"}; }
  std::string Describe() const override;
  MachinePeaks MeasurePeaks() const override;

 private:
  const Isa isa_;
  TargetInfo target_;
  std::unique_ptr<KernelCompiler> compiler_;  // keeps compiled kernels; thread-safe
};

}  // namespace strop::cpu
