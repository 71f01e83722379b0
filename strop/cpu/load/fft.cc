// Fourier transforms (kernels/fft.h).
#include "strop/cpu/kernels/fft.h"

#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

Result<MadeStep> MakeFft(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const FftProblem p, ReadProblem<FftProblem>(fields, kFftRecipe));
  STROP_ASSIGN(std::shared_ptr<const FftPlan> plan, FftPlan::Create(p.kind, p.lengths, p.wide));
  return MadeStep{HostStep{.fn = [plan, batch = p.batch](const HostCall& call) {
    return plan->Run(batch, call.args[0], call.args[1], call.run.pool);
  }}};
}

}  // namespace

const RecipeKind kFftRecipe = {"fft", &MakeFft};

}  // namespace strop::cpu
