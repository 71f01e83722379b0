#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

constexpr const KernelFamily* kFamilies[] = {
    &kUpdateFamily, &kScatterFamily, &kSelectAndScatterFamily, &kSortFamily, &kScanFamily, &kLoopFamily,
};

}  // namespace

std::span<const KernelFamily* const> KernelFamilies() { return kFamilies; }

const KernelFamily* FindFamily(const Instruction& kernel, std::string* why_not) {
  for (const KernelFamily* family : kFamilies) {
    const Decision d = family->matches(kernel);
    if (d) return family;
    if (why_not && d.why_not() != kOtherOp)
      StrAppend(*why_not, why_not->empty() ? "" : "; ", family->name, ": ", d.why_not());
  }
  return nullptr;
}

Result<EmittedKernel> EmitFunction(const KernelSpec& spec, const KernelFamily* family, EmitContext& context) {
  if (spec.region) return EmitRegion(spec, context);
  if (family->emit_function) {
    STROP_TRY(family->emit_function(spec, context));
    return EmittedKernel{};
  }
  const KernelBody body = KernelBody::Of(*spec.instruction);
  KernelFrame frame(context.b, context.function, body, spec.in_place);
  if (spec.unaligned) frame.ExpectAnyAddress();
  STROP_ASSIGN(EmittedKernel emitted, family->emit(spec, frame));
  frame.Return();
  return emitted;
}

Result<std::string> RecipeOf(const KernelSpec& spec, const KernelFamily* family, const EmittedKernel& emitted,
                             const CodeRef& function) {
  if (spec.region) {
    STROP_ASSIGN(std::vector<std::string> calls, CallsOfRegion(*spec.region));
    return RecipeOf(kRegionRecipe,
                    RegionProblem{function, std::move(calls), spec.region->tasks, spec.region->local_bytes});
  }
  if (family->recipe) return family->recipe(spec, function);
  return RecipeOf(kKernelRecipe, KernelProblem{function, emitted.num_tasks, emitted.scratch_bytes});
}

}  // namespace strop::cpu
