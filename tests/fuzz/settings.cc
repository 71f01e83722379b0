#include "tests/fuzz/settings.h"

#include "strop/passes/loop_kernels.h"
#include "strop/passes/pipeline.h"

namespace strop::fuzz {

const std::vector<Setting>& Settings() {
  static const auto* const kSettings = new std::vector<Setting>{
      {.name = "default", .sentence = "As programs are compiled."},
      {.name = "threads", .sentence = "On four threads, every kernel cut into tasks.", .threads = 4},
      {.name = "small-kernels",
       .sentence = "Bands, and loops as kernels, however small; tasks for four threads.",
       .small_kernels = true,
       .threads = 4},
      {.name = "no-regions",
       .sentence = "Loops step by step; the module verified after each pass.",
       .regions = false,
       .verify_each = true},
      {.name = "no-fusion", .sentence = "Each instruction a kernel.", .fusion = false, .regions = false},
      {.name = "no-passes",
       .sentence = "Only the passes that the rest needs.",
       .optimization_level = 0,
       .passes = false},
  };
  return *kSettings;
}

SettingBackend::SettingBackend(const Backend& behind, const Setting& setting)
    : behind_(behind),
      small_kernels_(setting.small_kernels),
      target_(behind.target()),
      pool_(std::make_unique<ThreadPool>(setting.threads)) {
  if (!setting.regions) target_.joins_region = nullptr;
  if (!setting.fusion)
    target_.can_fuse = [](const Instruction&, const Instruction&, const Instruction&) {
      return Decision::No("fusion is off");
    };
  if (setting.threads > 1) target_.inline_cost = 0;
  if (setting.small_kernels) target_.least_band_bytes = 0, target_.least_band_rows = 1;
  settings_.optimization_level = setting.optimization_level;
  settings_.verify_each = setting.verify_each;
  if (!setting.passes)
    settings_.disabled_passes = {"tuple-simplifier",
                                 "simplify",
                                 "constant-folding",
                                 "while-simplifier",
                                 "cse",
                                 "loop-unroller",
                                 "loop-invariant-code-motion",
                                 "conditional-simplifier",
                                 "topk-rewriter",
                                 "dot-convert-folding"};
}

void SettingBackend::AddPasses(Phase phase, PassPipeline& pipeline) const {
  static constexpr PassInfo kSmallLoopKernels = {"small-loop-kernels", Stage::Imported,
                                                 "Makes kernels of loops of any size.",
                                                 +[] { return MakeLoopKernelsOf(1); }};
  behind_.AddPasses(phase, pipeline);
  if (small_kernels_ && phase == Phase::kSimplify) pipeline.Add(kSmallLoopKernels);
}

Result<std::unique_ptr<DeviceSet>> SettingBackend::OpenDevices(int count, ThreadPool& pool,
                                                               Allocator::Options memory) const {
  return std::make_unique<DeviceSet>(std::max(count, 1), *pool_, memory);
}

}  // namespace strop::fuzz
