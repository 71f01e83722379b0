// Regions: loops of small steps in one function (plan/region.h); the families emit their kernels inside it. What the
// library does better than generated code is called there.
#include <optional>

#include "strop/analysis/cost.h"
#include "strop/analysis/trip_count.h"
#include "strop/codegen/region_emitter.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_kept.h"
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

// How often each program runs, as far as that is known. Those that a program calls come behind it.
std::vector<int64_t> RunsOfPrograms(const Region& region) {
  constexpr int64_t kUnknownTrips = 32;
  std::vector<int64_t> runs(region.programs.size(), 1);
  for (size_t p = 0; p < region.programs.size(); ++p) {
    for (const RegionNode& node : region.programs[p]) {
      int64_t trips = 1;
      const bool is_split = p == 0 && region.tasks > 1;  // a trip is a task
      if (node.kind == RegionNodeKind::kWhile && !is_split) {
        const std::optional<Counter> counter = FindCounter(*node.instruction);
        trips = counter ? counter->trips : kUnknownTrips;
      }
      for (int32_t called : node.programs) runs[static_cast<size_t>(called)] = SaturatingMultiply(runs[p], trips);
    }
  }
  return runs;
}

// With the operand that stays the same, if to keep that pays in so many runs.
std::optional<KeptGemmProblem> KeptProblemOf(const Region& region, const RegionNode& node, const GemmProblem& problem,
                                             int64_t runs) {
  for (const KeptGemmProblem& p : {KeptGemmProblem{problem, 1}, KeptGemmProblem{Transposed(problem), 0}}) {
    if (!region.buffers[static_cast<size_t>(node.args[static_cast<size_t>(p.kept)])].same) continue;
    const std::shared_ptr<const KeptGemm> gemm = KeptGemm::Create(p.product);
    if (gemm && runs >= gemm->fewest_calls()) return p;
  }
  return std::nullopt;
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
  const std::vector<int64_t> runs = RunsOfPrograms(region);
  for (size_t p = 0; p < region.programs.size(); ++p) {
    for (const RegionNode& node : region.programs[p]) {
      if (node.kind != RegionNodeKind::kKernel || !IsCall(*node.instruction)) continue;
      if (node.instruction->op() == Op::Dot) {
        const Result<GemmProblem> problem = GemmProblemOf(*node.instruction);
        const auto kept = problem.ok() ? KeptProblemOf(region, node, *problem, runs[p]) : std::nullopt;
        if (kept || IsSplit(*node.instruction)) {
          calls.push_back(kept ? RecipeOf(kKeptGemmRecipe, *kept) : RecipeOf(kWholeGemmRecipe, *problem));
          continue;
        }
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
