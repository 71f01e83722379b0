// Regions: loops of small steps in one function (plan/region.h); the families emit their kernels inside it. What the
// library does better than generated code is called there.
#include "strop/analysis/cost.h"
#include "strop/codegen/region_emitter.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

// From here on the library is worth a call.
constexpr int64_t kMaxInsteadOfLibrary = 1000;  // flops
// Of a batch, whose products would be written side by side, element by element.
constexpr int64_t kFewestApart = 8;
// What a loop works on lies in the cache: two tasks are done before another thread has heard of the second.
constexpr int64_t kMostTasks = 2;
// Of what is moved rather than computed, more: carries that cannot be updated in place are copied between the steps of
// a loop, and change places in a region.
constexpr int64_t kMostTasksOfMoves = 3;

Decision IsEmitted(const Instruction& kernel) {
  if (LibrarySupports(kernel) && Flops(kernel) > kMaxInsteadOfLibrary) return Decision::No("the library computes it");
  const KernelFamily* family = FindFamily(kernel);
  if (!family || !family->emit) return Decision::No("no code is generated for it");
  return Decision::Yes();
}

// Of the library's, those that are kernels without errors or needs of their own.
bool IsCall(const Instruction& kernel) {
  if (kernel.op() == Op::CustomCall) return static_cast<bool>(SupportsLapackCall(kernel));
  return (kernel.op() == Op::Dot || kernel.op() == Op::Convolution) && LibrarySupports(kernel) && !IsEmitted(kernel);
}

// A product whose sums the library cuts for several threads.
bool IsSplit(const Instruction& kernel) {
  if (kernel.op() != Op::Dot || !IsCall(kernel)) return false;
  const Result<GemmProblem> problem = GemmProblemOf(kernel);
  return problem.ok() && SplitGemm::Suits(*problem);
}

// A product that the library does not share out, and is not split, has nothing to lose.
bool IsSingleTask(const Instruction& kernel) {
  if (kernel.op() != Op::Dot || !IsCall(kernel)) return false;
  const Result<GemmProblem> problem = GemmProblemOf(kernel);
  if (!problem.ok()) return false;
  const auto gemm = Gemm::Create(*problem);
  return gemm.ok() && (*gemm)->num_tasks() == 1 && (*gemm)->prepare_tasks() <= 1;
}

}  // namespace

Decision WritesInLayout(const Instruction& dot) {
  if (IsComplex(dot.shape().type())) return Decision::No("its parts are computed separately");
  if (const Decision d = LibrarySupports(dot); !d) return d;
  const Result<GemmProblem> problem = GemmProblemOf(dot);
  if (problem.ok() && problem->batch >= kFewestApart && problem->c.batch_stride == 1 && problem->m * problem->n > 1)
    return Decision::No("elements of a product would lie apart");
  return IsCall(dot) ? Decision::Yes() : Decision::No("in a region code is generated for it");
}

Decision JoinsTask(const Instruction& kernel) { return IsCall(kernel) ? Decision::Yes() : IsEmitted(kernel); }

Decision JoinsRegion(const Instruction& kernel) {
  if (Decision d = JoinsTask(kernel); !d || kernel.op() == Op::CustomCall) return d;
  if (IsSplit(kernel)) return Decision::No("the library shares out its sums");
  const KernelCost cost = CostOf(KernelBody::Of(kernel));
  const int64_t tasks = KernelFrame::WantedTasks(cost), computing = KernelFrame::WantedTasks({.flops = cost.flops});
  if (IsSingleTask(kernel) || tasks <= kMostTasks || (computing <= kMostTasks && tasks <= kMostTasksOfMoves))
    return Decision::Yes();
  return Decision::No("it is worth several tasks");
}

Result<std::vector<std::string>> CallsOfRegion(const Region& region) {
  std::vector<std::string> calls;
  for (const std::vector<RegionNode>& program : region.programs) {
    for (const RegionNode& node : program) {
      if (node.kind != RegionNodeKind::kKernel || !IsCall(*node.instruction)) continue;
      if (IsSplit(*node.instruction)) {
        STROP_ASSIGN(const GemmProblem problem, GemmProblemOf(*node.instruction));
        calls.push_back(RecipeOf(kWholeGemmRecipe, problem));
        continue;
      }
      const KernelSpec spec{node.instruction, node.in_place};
      STROP_ASSIGN(CompiledKernel kernel,
                   node.instruction->op() == Op::CustomCall ? MakeLapackCall(spec) : MakeLibraryKernel(spec));
      calls.push_back(std::move(kernel.recipe));
    }
  }
  return calls;
}

Result<EmittedKernel> EmitRegion(const KernelSpec& spec, EmitContext& context) {
  const auto emit = [](const RegionNode& node, const KernelBody&, KernelFrame& frame) -> Status {
    const KernelFamily* family = FindFamily(*node.instruction);
    if (!family || !family->emit) return Internal("%", node.instruction->name(), " cannot be part of a region");
    return family->emit(KernelSpec{node.instruction, node.in_place}, frame).status();
  };
  STROP_TRY(RegionEmitter(context.b, *spec.region, emit, &IsCall).Emit(context.function));
  return EmittedKernel{};
}

}  // namespace strop::cpu
