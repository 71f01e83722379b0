// Products of matrices, and sums that are cut instead of the product (kernels/gemm.h).
#include "strop/cpu/kernels/gemm_kept.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

class DotTasks final : public TaskKernel {
 public:
  explicit DotTasks(std::shared_ptr<const Gemm> gemm) : gemm_(std::move(gemm)) {}
  void Prepare(const TaskCall& call, int64_t begin, int64_t end) const override {
    gemm_->Prepare(Bind(call), begin, end);
  }
  void Run(const TaskCall& call, int64_t begin, int64_t end, void* scratch) const override {
    gemm_->Run(Bind(call), begin, end, scratch);
  }

 private:
  static GemmCall Bind(const TaskCall& call) {
    return {call.args[0], call.args[1], call.args[2], call.round, call.shared};
  }
  std::shared_ptr<const Gemm> gemm_;
};

Result<MadeStep> MakeTasks(const GemmProblem& problem) {
  STROP_ASSIGN(std::shared_ptr<const Gemm> gemm, Gemm::Create(problem));
  KernelStep step;
  step.num_tasks = gemm->num_tasks();
  step.scratch_bytes = gemm->scratch_bytes();
  step.rounds = gemm->rounds();
  step.prepare_tasks = gemm->prepare_tasks();
  step.shared_bytes = gemm->shared_bytes();
  std::string tiles = gemm->tiles();
  step.library = std::make_shared<DotTasks>(std::move(gemm));
  return MadeStep{std::move(step), std::move(tiles)};
}

Result<MadeStep> MakeGemm(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const GemmProblem problem, ReadProblem<GemmProblem>(fields, kGemmRecipe));
  if (SplitGemm::Suits(problem)) {
    STROP_ASSIGN(std::shared_ptr<const SplitGemm> split, SplitGemm::Create(problem));
    std::string tiles = split->tiles();
    HostStep step;
    step.fn = [split = std::move(split)](const HostCall& call) {
      return split->Run(call.args[0], call.args[1], call.args[2], call.run.pool);
    };
    return MadeStep{std::move(step), std::move(tiles)};
  }
  return MakeTasks(problem);
}

// As part of a region's task, whose sums are not cut for other threads.
Result<MadeStep> MakeWholeGemm(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const GemmProblem problem, ReadProblem<GemmProblem>(fields, kWholeGemmRecipe));
  return MakeTasks(problem);
}

class KeptTask final : public TaskKernel {
 public:
  KeptTask(std::shared_ptr<const KeptGemm> gemm, int32_t kept) : gemm_(std::move(gemm)), kept_(kept) {}
  void Keep(const TaskCall& call) const override { gemm_->Keep(call.args[kept_], call.kept); }
  void Run(const TaskCall& call, int64_t, int64_t, void* scratch) const override {
    gemm_->Run(call.args[1 - kept_], call.kept, call.args[2], scratch);
  }

 private:
  std::shared_ptr<const KeptGemm> gemm_;
  int32_t kept_;
};

// As part of a region in which an operand stays the same. Where this processor has no use for that, as a whole.
Result<MadeStep> MakeKeptGemm(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const KeptGemmProblem problem, ReadProblem<KeptGemmProblem>(fields, kKeptGemmRecipe));
  std::shared_ptr<const KeptGemm> gemm = KeptGemm::Create(problem.product);
  if (!gemm) return MakeTasks(problem.kept == 1 ? problem.product : Transposed(problem.product));
  KernelStep step;
  step.scratch_bytes = gemm->scratch_bytes();
  step.kept_bytes = gemm->kept_bytes();
  std::string tiles = gemm->tiles();
  step.library = std::make_shared<KeptTask>(std::move(gemm), problem.kept);
  return MadeStep{std::move(step), std::move(tiles)};
}

}  // namespace

const RecipeKind kGemmRecipe = {"gemm", &MakeGemm};
const RecipeKind kWholeGemmRecipe = {"whole gemm", &MakeWholeGemm};
const RecipeKind kKeptGemmRecipe = {"kept gemm", &MakeKeptGemm};

}  // namespace strop::cpu
