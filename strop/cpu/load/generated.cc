// Steps of generated code: kernels, regions, and sorts whose comparator is compiled.
#include <cstring>

#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

Result<MadeStep> MakeKernel(ByteReader& fields, const LoadContext& context) {
  STROP_ASSIGN(const KernelProblem p, ReadProblem<KernelProblem>(fields, kKernelRecipe));
  STROP_ASSIGN(void* const code, context.Find(p.code));
  return MadeStep{
      KernelStep{.fn = reinterpret_cast<KernelFn>(code), .num_tasks = p.num_tasks, .scratch_bytes = p.scratch_bytes}};
}

Result<MadeStep> MakeRegion(ByteReader& fields, const LoadContext& context) {
  STROP_ASSIGN(const RegionProblem p, ReadProblem<RegionProblem>(fields, kRegionRecipe));
  STROP_ASSIGN(void* const code, context.Find(p.code));
  RegionStep step{.fn = reinterpret_cast<RegionFn>(code), .num_tasks = p.num_tasks, .local_bytes = p.local_bytes};
  int64_t kept_bytes = 0;
  for (const std::string& call : p.calls) {
    // A region in a region would let bytes ask for any depth.
    if (ProblemOfRecipe<RegionProblem>(call, kRegionRecipe).ok())
      return InvalidArgument("a region that calls a region");
    STROP_ASSIGN(MadeStep made, MakeStep(call, context));
    auto* kernel = std::get_if<KernelStep>(&made.body);
    if (!kernel || !kernel->library) return InvalidArgument("a region calls what is no kernel of the library");
    if (kernel->kept_bytes > 0) {
      kernel->kept_at = kept_bytes + KernelStep::kKeptHead;
      const int64_t end = kernel->kept_at + kernel->kept_bytes;
      kept_bytes = (end + KernelStep::kKeptHead - 1) / KernelStep::kKeptHead * KernelStep::kKeptHead;
    }
    step.calls.push_back(std::move(*kernel));
  }
  return MadeStep{std::move(step)};
}

Result<MadeStep> MakeSortByCode(ByteReader& fields, const LoadContext& context) {
  STROP_ASSIGN(const SortByCodeProblem p, ReadProblem<SortByCodeProblem>(fields, kSortByCodeRecipe));
  STROP_ASSIGN(void* const code, context.Find(p.less));
  const auto less = reinterpret_cast<SortLess>(code);
  const int64_t count = p.shape.outer * p.shape.n * p.shape.inner;
  return MadeStep{HostStep{.fn = [shape = p.shape, widths = p.widths, count, less](const HostCall& call) -> Status {
    std::vector<SortOperand> operands;
    for (size_t k = 0; k < widths.size(); ++k) {
      void* result = call.args[widths.size() + k];
      if (result != call.args[k]) std::memcpy(result, call.args[k], static_cast<size_t>(count * widths[k]));
      operands.push_back(SortOperand{result, widths[k]});
    }
    if (count == 0) return OkStatus();
    return SortByFunction(shape, operands, less, nullptr, call.run.pool);
  }}};
}

}  // namespace

const RecipeKind kKernelRecipe = {"kernel", &MakeKernel};
const RecipeKind kRegionRecipe = {"region", &MakeRegion};
const RecipeKind kSortByCodeRecipe = {"sort by code", &MakeSortByCode};

}  // namespace strop::cpu
