#include "strop/gpu/ptx.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>

#include <mutex>

#include "strop/codegen/llvm_guard.h"

extern "C" {
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace strop::gpu {
namespace {

constexpr const char* kTriple = "nvptx64-nvidia-cuda";

// Elements one by one; conversions and fma are instructions.
constexpr VectorTarget kThread{
    .vector_bytes = 1, .masked_memory = false, .half_convert = true, .fma = true, .scale = false};

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    InstallLlvmGuard();
  });
}

// What a thread computes is straight code and short loops: LLVM's pipelines for whole programs find nothing more, and
// are a third of a plugin in size.
void AddOptimizations(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine) {
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass(/*UseMemorySSA=*/true));
  passes.add(llvm::createInstructionCombiningPass());
  passes.add(llvm::createLICMPass());
  passes.add(llvm::createCFGSimplificationPass());
}

// A function of a library, which nobody links here.
std::string Missing(const llvm::Module& module) {
  std::string names;
  for (const llvm::Function& f : module)
    if (f.isDeclaration() && !f.isIntrinsic()) StrAppend(names, names.empty() ? "" : ", ", f.getName().str());
  return names;
}

}  // namespace

PtxWriter::PtxWriter(std::unique_ptr<llvm::TargetMachine> machine)
    : machine_(std::move(machine)), module_("strop", context_), builder_(module_, kThread) {
  module_.setTargetTriple(machine_->getTargetTriple());
  module_.setDataLayout(machine_->createDataLayout());
}

PtxWriter::~PtxWriter() = default;

Result<std::unique_ptr<PtxWriter>> PtxWriter::Create(const std::string& machine) {
  InitializeLlvm();
  std::string error;
  const llvm::Triple triple(kTriple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return Internal("LLVM has no target ", kTriple, ": ", error);
  const std::unique_ptr<llvm::MCSubtargetInfo> known(target->createMCSubtargetInfo(triple, "", ""));
  if (!known || !known->isCPUStringValid(machine))
    return NotFound("no GPU is called \"", machine, "\"; NVIDIA's are sm_70, sm_80, sm_90 and so on");
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> made(
      target->createTargetMachine(triple, machine, "", options, llvm::Reloc::PIC_));
  if (!made) return Internal("LLVM made no target machine for ", machine);
  return std::unique_ptr<PtxWriter>(new PtxWriter(std::move(made)));
}

Result<std::string> PtxWriter::Write(int optimization_level) {
  return GuardLlvm("compile kernels to PTX", [&]() -> Result<std::string> {
    std::string problem;
    llvm::raw_string_ostream problem_stream(problem);
    if (llvm::verifyModule(module_, &problem_stream)) return Internal("invalid LLVM IR: ", problem);
    if (const std::string missing = Missing(module_); !missing.empty())
      return Unimplemented("kernels call ", missing, ", which GPUs do not have");
    llvm::SmallString<0> text;
    llvm::raw_svector_ostream stream(text);
    llvm::legacy::PassManager passes;
    if (optimization_level > 0) AddOptimizations(passes, *machine_);
    if (machine_->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile))
      return Internal("LLVM's target cannot write PTX");
    passes.run(module_);
    return std::string(text.data(), text.size());
  });
}

}  // namespace strop::gpu
