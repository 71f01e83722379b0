// Regions: loops of small steps in one function (plan/region.h); the families emit their kernels inside it.
#include "strop/analysis/cost.h"
#include "strop/codegen/region_emitter.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/library/library.h"

namespace strop::cpu {
namespace {

// The library starts to be worth a call of its own.
constexpr int64_t kMaxInsteadOfLibrary = 4096;  // flops

}  // namespace

Decision JoinsRegion(const Instruction& kernel) {
  if (LibrarySupports(kernel) && Flops(kernel) > kMaxInsteadOfLibrary) return Decision::No("the library computes it");
  const KernelFamily* family = FindFamily(kernel);
  if (!family || !family->emit) return Decision::No("no code is generated for it");
  if (KernelFrame::WantedTasks(CostOf(KernelBody::Of(kernel))) > 1) return Decision::No("it is worth several tasks");
  return Decision::Yes();
}

Result<EmittedKernel> EmitRegion(const KernelSpec& spec, EmitContext& context) {
  const auto emit = [](const RegionNode& node, const KernelBody&, KernelFrame& frame) -> Status {
    const KernelFamily* family = FindFamily(*node.instruction);
    if (!family || !family->emit) return Internal("%", node.instruction->name(), " cannot be part of a region");
    return family->emit(KernelSpec{node.instruction, node.in_place}, frame).status();
  };
  STROP_TRY(RegionEmitter(context.b, *spec.region, emit).Emit(context.function));
  return EmittedKernel{};
}

}  // namespace strop::cpu
