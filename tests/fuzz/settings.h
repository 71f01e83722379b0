// The ways to compile a module that must all give the same results.
#pragma once
#include <memory>
#include <string_view>
#include <vector>

#include "strop/base/thread_pool.h"
#include "strop/driver/compile.h"

namespace strop::fuzz {

struct Setting {
  std::string_view name;
  std::string_view sentence;
  int optimization_level = 2;
  bool passes = true;  // those that only make programs better
  bool fusion = true;
  bool regions = true;
  bool small_kernels = false;  // bands, and loops as kernels, of any size
  int threads = 1;             // above 1, even the smallest program is cut into tasks
  bool verify_each = false;
};
const std::vector<Setting>& Settings();

// A backend that decides as the setting says and leaves the rest to the one behind it, which must outlive it.
class SettingBackend final : public Backend {
 public:
  SettingBackend(const Backend& behind, const Setting& setting);
  std::string_view name() const override { return behind_.name(); }
  const TargetInfo& target() const override { return target_; }
  Decision Supports(const Instruction& instruction) const override { return behind_.Supports(instruction); }
  void AddPasses(Phase phase, PassPipeline& pipeline) const override;
  Result<CompiledKernels> Compile(std::span<const KernelSpec> specs,
                                  const KernelCompileOptions& options) const override {
    return behind_.Compile(specs, options);
  }
  Result<std::unique_ptr<DeviceSet>> OpenDevices(int count, ThreadPool& pool, Allocator::Options memory) const override;
  std::vector<std::string> MemorySpaces() const override { return behind_.MemorySpaces(); }
  std::string Describe() const override { return behind_.Describe(); }
  CompileSettings compile_settings() const { return settings_; }

 private:
  const Backend& behind_;
  bool small_kernels_;
  TargetInfo target_;
  CompileSettings settings_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace strop::fuzz
