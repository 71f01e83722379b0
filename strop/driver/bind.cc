#include "strop/driver/bind.h"

#include "strop/plan/call_site.h"
#include "strop/runtime/bind_custom_call.h"

namespace strop {

Status BindKernels(Plan& plan, const Backend& backend, const CompileSettings& options, Explanation& explanation) {
  std::vector<KernelSpec> specs;
  for (const PlannedKernel& k : plan.kernels) {
    specs.push_back(KernelSpec{k.instruction, k.in_place, k.region});
    specs.back().unaligned = k.unaligned;
  }
  KernelCompileOptions kernel_options;
  kernel_options.optimization_level = options.optimization_level;
  // Nobody wants to read or to measure what will not last, and what is kept is to be as good as it gets.
  const bool shown = options.explain || !options.dump_dir.empty() || !options.cache.folder.empty();
  kernel_options.tier = shown && options.tier == Tier::kAuto ? Tier::kOptimizing : options.tier;
  kernel_options.dump_dir = options.dump_dir;
  kernel_options.pool = options.pool;
  STROP_ASSIGN(CompiledKernels compiled, backend.Compile(specs, kernel_options));
  if (compiled.kernels.size() != specs.size())
    return Internal("backend ", backend.name(), " returned ", compiled.kernels.size(), " kernels for ", specs.size());
  plan.spec.code = std::move(compiled.code);
  plan.spec.code_bytes = compiled.code_bytes;
  plan.spec.objects = std::move(compiled.objects);
  explanation.kernels.clear();
  for (size_t n = 0; n < specs.size(); ++n) {
    const PlannedKernel& planned = plan.kernels[n];
    Step& step = plan.spec.programs[planned.program].steps[planned.step];
    CompiledKernel& kernel = compiled.kernels[n];
    if (kernel.flops > 0) step.info.flops = kernel.flops;
    if (kernel.bytes > 0) step.info.bytes = kernel.bytes;
    if (auto* host = std::get_if<HostStep>(&kernel.body); host && host->interpreted) {
      const Instruction& i = *planned.instruction;
      const std::string why = kernel.why_interpreted.empty() ? backend.Supports(i).why_not() : kernel.why_interpreted;
      explanation.interpreted.push_back(
          StrCat("%", i.name(), " (", Name(i.op()), " -> ", i.shape().ToString(), ", ", i.Where(), "): ", why));
    }
    step.body = std::move(kernel.body);
    step.recipe = std::move(kernel.recipe);
    if (options.explain)
      explanation.kernels.push_back(
          {planned.instruction, planned.program, planned.step, std::move(kernel.family), std::move(kernel.tiles)});
  }
  return OkStatus();
}

Status BindCustomCalls(Plan& plan, const CompileSettings& options) {
  static const CustomCallRegistry* const kEmpty = new CustomCallRegistry;
  const CustomCallRegistry& registry = options.custom_calls ? *options.custom_calls : *kEmpty;
  for (const PlannedCustomCall& planned : plan.custom_calls) {
    const Instruction& i = *planned.instruction;
    auto site = std::make_shared<const CustomCallSite>(CallSiteOf(i));
    Result<std::shared_ptr<CustomCall>> call = BindCustomCall(*site, registry, options.lapack_library);
    if (!call.ok()) return std::move(call).status().At(i.Where()).Note(StrCat("custom call %", i.name()));
    auto& step = std::get<CustomCallStep>(plan.spec.programs[planned.program].steps[planned.step].body);
    step.call = *std::move(call);
    step.site = std::move(site);
  }
  return OkStatus();
}

}  // namespace strop
