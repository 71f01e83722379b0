#include "strop/cpu/cpu_backend.h"

#include <algorithm>
#include <optional>

#include "strop/base/log.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/kernel_compiler.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/processor.h"
#include "strop/cpu/load/step_maker.h"
#include "strop/passes/pipeline.h"
#include "strop/plan/band.h"

namespace strop::cpu {

CpuBackend::CpuBackend() : CpuBackend(Isa::OfHost()) {}

CpuBackend::CpuBackend(const Isa& isa) : isa_(isa), compiler_(std::make_unique<KernelCompiler>(isa)) {
  target_.name = "cpu";
  target_.description = isa.summary;
  target_.vector_bytes = isa.vector_bytes;
  target_.supports = [this](const Instruction& i) { return Supports(i); };
  target_.updates_in_kernels = true;
  target_.joins_region = &JoinsRegion;
  target_.joins_task = &JoinsTask;
  target_.writes_in_layout = &WritesInLayout;
  target_.takes_any_address = [](const Instruction& i) { return !LibrarySupports(i) && FindFamily(i) == &kLoopFamily; };
  target_.joins_band = [this](const Instruction& kernel, const BandTask& task) {
    return JoinsBand(kernel, task, isa_);
  };
  target_.can_fuse = [](const Instruction& producer, const Instruction&, const Instruction& root) {
    // (A scatter has fewer tasks, and shorter vectors, than a loop.)
    if (root.op() == Op::Scatter && Is(producer.op(), kFloatMath))
      return Decision::No("it is expensive, and %", root.name(), " would compute it update by update");
    if (root.op() == Op::ReduceWindow && LibrarySupports(root))
      return Decision::No("%", root.name(), " is a scan, which reads its operands from memory");
    return Decision::Yes();
  };
}

CpuBackend::~CpuBackend() = default;

Decision CpuBackend::Supports(const Instruction& instruction) const {
  if (LibrarySupports(instruction) || BandOf(instruction, isa_)) return Decision::Yes();
  return KernelCompiler::Supports(instruction);
}

void CpuBackend::AddPasses(Phase phase, PassPipeline& pipeline) const {
  if (phase != Phase::kSimplify) return;
  pipeline.Add(PassId::TopkRewriter);
  // A conversion that is gone may have stood between a transpose and its dot.
  constexpr PassId kProducts[] = {PassId::IntegerProducts,  // of operands that are still converted
                                  PassId::DotConvertFolding,
                                  PassId::ProductWidening,
                                  PassId::DotCanonicalizer,
                                  PassId::Simplify,
                                  PassId::Cse,
                                  PassId::Dce};
  pipeline.AddRepeated(kProducts, 4);
  pipeline.Add(PassId::SmallProducts);
  pipeline.Add(PassId::VectorProducts);
  pipeline.Add(PassId::SmallConvolutions);
  pipeline.Add(PassId::ShortScans);
  pipeline.Add(PassId::ScatterToSelect);
  pipeline.Add(PassId::UpdatesInPieces);
  pipeline.Add(PassId::ConstantFolding);
  pipeline.Add(PassId::Simplify);
  pipeline.Add(PassId::Cse);
  pipeline.Add(PassId::ReducedProducts);          // its sums of pairs would be products again by the algebra
  pipeline.Add(PassId::LoopInvariantCodeMotion);  // of what is transposed for them
  pipeline.Add(PassId::WhileSimplifier);          // of what only that was made of
  pipeline.Add(PassId::Contraction);              // last: it asks who uses a product
  if (isa_.fma) pipeline.Add(PassId::ConstantDivision);
  pipeline.Add(PassId::UnroundedValues);    // it asks the same of others
  pipeline.Add(PassId::ReductionSplitter);  // of what the algebra would put together again
  pipeline.Add(PassId::ReductionJoiner);    // of pieces of the same array
  pipeline.Add(PassId::ScatterSplitter);
  pipeline.Add(PassId::UnwrittenStacks);
  pipeline.Add(PassId::LoopSplitter);
  pipeline.Add(PassId::WhileSimplifier);  // of state that no part reads
  pipeline.Add(PassId::UnwrittenStacks);  // of what parts write
  pipeline.Add(PassId::Cse);              // of the constants that several began with
  pipeline.Add(PassId::PaddedCopies);     // the algebra would undo it
  pipeline.Add(PassId::LoopKernels);      // of loops that no pass knows once they are fused
  pipeline.Add(PassId::Dce);
}

// The library first; code is generated for what it does not have; the evaluator runs the rest.
Result<CompiledKernels> CpuBackend::Compile(std::span<const KernelSpec> specs,
                                            const KernelCompileOptions& options) const {
  enum class Maker : uint8_t { kLibrary, kCompiler, kBand, kEvaluator };
  struct Job {
    Maker maker;
    std::optional<Band> band = std::nullopt;
    size_t first = 0, count = 0;  // of what is generated for it
  };
  std::vector<Job> jobs;
  std::vector<KernelSpec> generated;
  for (const KernelSpec& spec : specs) {
    Job job{spec.region ? Maker::kCompiler : LibrarySupports(*spec.instruction) ? Maker::kLibrary : Maker::kEvaluator};
    job.first = generated.size();
    if (job.maker == Maker::kEvaluator) job.band = BandOf(*spec.instruction, isa_);
    if (job.band) {
      job.maker = Maker::kBand;
      for (KernelSpec& part : GeneratedOf(spec, *job.band)) generated.push_back(std::move(part));
    } else if (job.maker == Maker::kEvaluator && KernelCompiler::Supports(*spec.instruction)) {
      job.maker = Maker::kCompiler;
    }
    if (job.maker == Maker::kCompiler) generated.push_back(spec);
    job.count = generated.size() - job.first;
    jobs.push_back(std::move(job));
  }
  STROP_ASSIGN(GeneratedKernels out, compiler_->Compile(generated, options));
  std::vector<CompiledKernel> compiled = std::move(out.kernels);
  out.kernels.clear();
  for (size_t k = 0; k < specs.size(); ++k) {
    const std::span<CompiledKernel> own = std::span(compiled).subspan(jobs[k].first, jobs[k].count);
    switch (jobs[k].maker) {
      case Maker::kLibrary: {
        STROP_ASSIGN(CompiledKernel kernel, MakeLibraryKernel(specs[k]));
        out.kernels.push_back(std::move(kernel));
        break;
      }
      case Maker::kCompiler: out.kernels.push_back(std::move(own[0])); break;
      case Maker::kBand: {
        STROP_ASSIGN(CompiledKernel kernel, MakeBand(specs[k], *jobs[k].band, own, out.context));
        out.kernels.push_back(std::move(kernel));
        break;
      }
      case Maker::kEvaluator: out.kernels.push_back(InterpretKernel(specs[k]));
    }
  }
  return CompiledKernels(std::move(out));
}

Result<std::unique_ptr<Backend>> CpuBackend::ForMachine(std::string_view name) const {
  STROP_ASSIGN(const Isa isa, Isa::Of(name));
  return std::make_unique<CpuBackend>(isa);
}

// Code for a processor that has less than this one is as good.
Decision CpuBackend::RunsCode(std::string_view key) const {
  if (key == isa_.key) return Decision::Yes();
  const std::string_view features = FeaturesOf(key);
  if (features.empty()) return Decision::No("it does not say what it needs");
  const std::string missing = MissingFeatures(features);
  if (!missing.empty()) return Decision::No("this one lacks ", missing);
  return Decision::Yes();
}

Result<std::unique_ptr<StepMaker>> CpuBackend::OpenCode(std::span<const std::string_view> objects) const {
  return OpenRecipes(objects, AllRecipeKinds());
}

Result<std::unique_ptr<DeviceSet>> CpuBackend::OpenDevices(int count, ThreadPool& pool,
                                                           Allocator::Options memory) const {
  return std::make_unique<DeviceSet>(std::max(count, 1), pool, memory);
}

std::string CpuBackend::Describe() const {
  return StrCat("cpu: ", target_.description, ", ", ThreadPool::Default().num_threads(), " threads");
}

}  // namespace strop::cpu
