// The null backend: complete, and compiles nothing: every kernel is run by the evaluator. It passes the conformance
// tests from the first day; a new backend starts as a copy of it (./dev new-backend NAME) and makes one method real
// after another.
#pragma once
#include "strop/backend/backend.h"

namespace strop::null {

class NullBackend : public Backend {
 public:
  NullBackend();
  std::string_view name() const override { return "null"; }
  const TargetInfo& target() const override { return target_; }
  Decision Supports(const Instruction& instruction) const override;
  void AddPasses(Phase phase, PassPipeline& pipeline) const override;
  Result<CompiledKernels> Compile(std::span<const KernelSpec> specs,
                                  const KernelCompileOptions& options) const override;
  Result<std::unique_ptr<DeviceSet>> OpenDevices(int count, ThreadPool& pool, Allocator::Options memory) const override;
  std::vector<std::string> MemorySpaces() const override { return {"device"}; }
  std::string Describe() const override;

 private:
  TargetInfo target_;
};

}  // namespace strop::null
