#include "strop/cpu/cpu_backend.h"

#include <algorithm>

#include "strop/base/log.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/host_isa.h"
#include "strop/cpu/kernel_compiler.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/library/library.h"
#include "strop/passes/pipeline.h"

namespace strop::cpu {

CpuBackend::CpuBackend() : compiler_(std::make_unique<KernelCompiler>()) {
  target_.name = "cpu";
  target_.description = HostIsa::Get().summary;
  target_.vector_bytes = HostIsa::Get().vector_bytes;
  target_.supports = [this](const Instruction& i) { return Supports(i); };
  target_.joins_region = &JoinsRegion;
  target_.writes_in_layout = &WritesInLayout;
  target_.can_fuse = [](const Instruction&, const Instruction&, const Instruction& root) {
    if (root.op() == Op::ReduceWindow && LibrarySupports(root))
      return Decision::No("%", root.name(), " is a scan, which reads its operands from memory");
    return Decision::Yes();
  };
}

CpuBackend::~CpuBackend() = default;

Decision CpuBackend::Supports(const Instruction& instruction) const {
  if (LibrarySupports(instruction)) return Decision::Yes();
  return KernelCompiler::Supports(instruction);
}

void CpuBackend::AddPasses(Phase phase, PassPipeline& pipeline) const {
  if (phase != Phase::kSimplify) return;
  pipeline.Add(PassId::TopkRewriter);
  // A conversion that is gone may have stood between a transpose and its dot.
  constexpr PassId kProducts[] = {PassId::DotConvertFolding,
                                  PassId::ProductWidening,
                                  PassId::DotCanonicalizer,
                                  PassId::Simplify,
                                  PassId::Cse,
                                  PassId::Dce};
  pipeline.AddRepeated(kProducts, 4);
  pipeline.Add(PassId::Contraction);        // last: it asks who uses a product
  pipeline.Add(PassId::ReductionSplitter);  // of what the algebra would put together again
}

// The library first; code is generated for what it does not have; the evaluator runs the rest.
Result<CompiledKernels> CpuBackend::Compile(std::span<const KernelSpec> specs,
                                            const KernelCompileOptions& options) const {
  enum class Maker : uint8_t { kLibrary, kCompiler, kEvaluator };
  std::vector<Maker> makers;
  std::vector<KernelSpec> generated;
  for (const KernelSpec& spec : specs) {
    makers.push_back(spec.region                                   ? Maker::kCompiler
                     : LibrarySupports(*spec.instruction)          ? Maker::kLibrary
                     : KernelCompiler::Supports(*spec.instruction) ? Maker::kCompiler
                                                                   : Maker::kEvaluator);
    if (makers.back() == Maker::kCompiler) generated.push_back(spec);
  }
  STROP_ASSIGN(CompiledKernels out, compiler_->Compile(generated, options));
  std::vector<CompiledKernel> compiled = std::move(out.kernels);
  out.kernels.clear();
  size_t next = 0;
  for (size_t k = 0; k < specs.size(); ++k) {
    switch (makers[k]) {
      case Maker::kLibrary: {
        STROP_ASSIGN(CompiledKernel kernel, MakeLibraryKernel(specs[k]));
        out.kernels.push_back(std::move(kernel));
        break;
      }
      case Maker::kCompiler:
        out.kernels.push_back(std::move(compiled[next++]));
        if (auto* region = std::get_if<RegionStep>(&out.kernels.back().body)) {
          STROP_ASSIGN(region->calls, CallsOfRegion(*specs[k].region));
        }
        break;
      case Maker::kEvaluator: out.kernels.push_back(InterpretKernel(specs[k]));
    }
  }
  return out;
}

Result<std::unique_ptr<DeviceSet>> CpuBackend::OpenDevices(int count) const {
  return std::make_unique<DeviceSet>(std::max(count, 1), ThreadPool::Default());
}

std::string CpuBackend::Describe() const {
  return StrCat("cpu: ", target_.description, ", ", ThreadPool::Default().num_threads(), " threads");
}

}  // namespace strop::cpu
