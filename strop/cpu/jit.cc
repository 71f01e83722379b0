#include "strop/cpu/jit.h"

#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <fstream>
#include <mutex>

#include "strop/codegen/constants_in_memory.h"
#include "strop/codegen/llvm_guard.h"
#include "strop/codegen/math/deferred.h"
#include "strop/codegen/selection_guard.h"
#include "strop/cpu/isa.h"

extern "C" {
void LLVMInitializeX86TargetInfo();
void LLVMInitializeX86Target();
void LLVMInitializeX86TargetMC();
void LLVMInitializeX86AsmPrinter();
}

namespace strop::cpu {
namespace {

void InitializeLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    InstallLlvmGuard();
  });
}

void WriteFile(const std::string& path, llvm::StringRef text) {
  std::ofstream(path, std::ios::binary).write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::string IrText(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

// What code that runs for milliseconds does without: asking for cache lines ahead of time, and what nobody reads. Each
// would go through instruction selection.
void LeaveOut(llvm::Module& module) {
  const auto fetches = [](const llvm::Instruction& i) {
    const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
    return call && call->getIntrinsicID() == llvm::Intrinsic::prefetch;
  };
  for (llvm::Function& function : module)
    for (llvm::BasicBlock& block : function)
      for (auto at = block.rbegin(); at != block.rend();) {
        llvm::Instruction& i = *at++;
        if (fetches(i) || llvm::isInstructionTriviallyDead(&i)) i.eraseFromParent();
      }
}

// Passes of LLVM's code generator that kernels do without. Most are for programs that kernels never are: with
// exceptions, garbage collection, atomics, TLS, AMX intrinsics, debug info, instrumentation, mitigations. The last
// group is what was measured to change no kernel's speed and to cost a third of the time of a small one: strength
// reduction (x86's address modes take what it removes), the second scheduler, conversions between branches and selects.
constexpr std::string_view kPassesNotForKernels[] = {
    "Expand Atomic instructions",
    "Lower AMX intrinsics",
    "Lower AMX type for load/store",
    "Merge contiguous icmps into a memcmp",
    "Expand memcmp() to load/stores",
    "Lower Garbage Collection Instructions",
    "Shadow Stack GC Lowering",
    "Constant Hoisting",
    "Replace intrinsics with calls to vector library",
    "Partially inline calls to library functions",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "Expand indirectbr instructions",
    "Exception handling preparation",
    "ObjC ARC contraction",
    "Prepare callbr",
    "Safe Stack instrumentation pass",
    "Assignment Tracking Analysis",
    "Local Dynamic TLS Access Clean-up",
    "X86 PIC Global Base Reg Initialization",
    "Argument Stack Rebase",
    "Merge disjoint stack slots",
    "X86 Suppress APX features for relocation",
    "X86 speculative load hardening",
    "X86 DynAlloca Expander",
    "Tile Register Pre-configure",
    "Tile Register Configure",
    "X86 Lower Tile Copy",
    "Debug Variable Analysis",
    "Register Allocation Pass Scoring",
    "X86 FP Stackifier",
    "X86 Load Value Injection (LVI) Load Hardening",
    "Remove Redundant DEBUG_VALUE analysis",
    "Fixup Statepoint Caller Saved",
    "Insert KCFI indirect call checks",
    "Analyze Machine Code For Garbage Collection",
    "Insert fentry calls",
    "Insert XRay ops",
    "Implement the 'patchable-function' attribute",
    "X86 Indirect Branch Tracking",
    "X86 Atom pad short functions",
    "X86 insert wait instruction",
    "Contiguously Lay Out Funclets",
    "Remove Loads Into Fake Uses",
    "StackMap Liveness Analysis",
    "Live DEBUG_VALUE analysis",
    "Machine Sanitizer Binary Metadata",
    "Stack Frame Layout Analysis",
    "X86 Speculative Execution Side Effect Suppression",
    "X86 Indirect Thunks",
    "X86 Return Thunks",
    "Check CFA info and insert CFI instructions if needed",
    "X86 Load Value Injection (LVI) Ret-Hardening",
    "Pseudo Probe Inserter",
    "Unpack machine instruction bundles",

    "Canonicalize Freeze Instructions in Loops",
    "Loop Strength Reduction",
    "Early If-Conversion",
    "Machine InstCombiner",
    "X86 cmov Conversion",
    "X86 LEA Optimize",
    "Post RA top-down list latency scheduler",
};

// Takes LLVM's list of passes, less those.
class KernelPasses final : public llvm::legacy::PassManagerBase {
 public:
  void add(llvm::Pass* pass) override {
    const llvm::StringRef name = pass->getPassName();
    const std::string_view wanted(name.data(), name.size());
    if (std::find(std::begin(kPassesNotForKernels), std::end(kPassesNotForKernels), wanted) !=
        std::end(kPassesNotForKernels)) {
      delete pass;
    } else {
      passes_.add(pass);
    }
  }
  void Run(llvm::Module& module) { passes_.run(module); }

 private:
  llvm::legacy::PassManager passes_;
};

// From memory to registers: short loops are unrolled, so that every access is at a known place.
void AddPromotion(KernelPasses& passes) {
  constexpr int kUnrolledSize = 200;  // instructions
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.add(llvm::createInstructionCombiningPass());
  passes.add(llvm::createCFGSimplificationPass());
  passes.add(llvm::createLoopUnrollPass(2, false, false, kUnrolledSize, -1, /*AllowPartial=*/0, /*Runtime=*/0,
                                        /*UpperBound=*/0, /*AllowPeeling=*/0));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass(/*UseMemorySSA=*/true));
  passes.add(llvm::createInstructionCombiningPass());
  passes.add(llvm::createLICMPass());
  passes.add(llvm::createCFGSimplificationPass());
}

}  // namespace

// Passes, and what they write.
struct ObjectEmitter::Pipeline {
  int optimization_level = 0;
  llvm::SmallString<0> output;
  llvm::raw_svector_ostream stream{output};
  KernelPasses passes;
};

ObjectEmitter::ObjectEmitter(std::unique_ptr<llvm::TargetMachine> machine, const Isa& isa)
    : machine_(std::move(machine)), target_(std::make_unique<VectorTarget>(isa.vector_target())) {}
ObjectEmitter::~ObjectEmitter() = default;

Result<std::unique_ptr<ObjectEmitter>> ObjectEmitter::Create(const Isa& isa, int optimization_level) {
  InitializeLlvm();
  std::string error;
  const llvm::Triple triple(isa.triple);
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target) return Internal("LLVM has no target ", isa.triple, ": ", error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EmitAddrsig = false;
  options.TrapUnreachable = true;
  const auto level = optimization_level == 0 ? llvm::CodeGenOptLevel::None : llvm::CodeGenOptLevel::Default;
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      triple, isa.cpu, isa.features, options, llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/true));
  if (!machine) return Internal("LLVM made no target machine for ", isa.cpu);
  // It hands on what it cannot select, which is most of what vectors do, one by one, which takes longer than all at
  // once.
  machine->setO0WantsFastISel(false);
  return std::unique_ptr<ObjectEmitter>(new ObjectEmitter(std::move(machine), isa));
}

void ObjectEmitter::Prepare(llvm::Module& module) const {
  module.setTargetTriple(machine_->getTargetTriple());
  module.setDataLayout(machine_->createDataLayout());
}

Result<std::string> ObjectEmitter::Emit(llvm::Module& module, const EmitOptions& options) {
  SelectionGuard selection;
  const auto emit = [&] {
    Result<std::string> object = GuardLlvm("compile a kernel", [&] { return EmitUnguarded(module, options); });
    if (!object.ok())  // nothing is known of what a pass has kept
      for (std::unique_ptr<Pipeline>& pipeline : pipelines_) pipeline.reset();
    return object;
  };
  Result<std::string> object = emit();
  if (object.ok() || !selection.has_given_up()) return object;
  selection.DoWithoutCombining();
  return emit();
}

Result<std::string> ObjectEmitter::EmitUnguarded(llvm::Module& module, const EmitOptions& options) {
  if (!options.dump_prefix.empty()) WriteFile(options.dump_prefix + ".ll", IrText(module));
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream)) return Internal("invalid LLVM IR: ", problem);
  const auto make = [&](llvm::CodeGenFileType type) -> std::unique_ptr<Pipeline> {
    auto pipeline = std::make_unique<Pipeline>();
    pipeline->optimization_level = options.optimization_level;
    KernelPasses& passes = pipeline->passes;
    passes.add(llvm::createTargetTransformInfoWrapperPass(machine_->getTargetIRAnalysis()));
    if (options.promote_memory && options.optimization_level > 0) AddPromotion(passes);
    if (options.promote_memory) passes.add(CreateDeferredMathPass(*target_, options.optimization_level > 0));
    if (options.optimization_level > 0) passes.add(llvm::createEarlyCSEPass());
    if (options.optimization_level > 0 && target_->whole_operands) passes.add(CreateConstantsInMemoryPass());
    if (machine_->addPassesToEmitFile(passes, pipeline->stream, nullptr, type, /*DisableVerify=*/true)) return nullptr;
    return pipeline;
  };
  if (options.optimization_level == 0) LeaveOut(module);
  if (!options.dump_prefix.empty()) {  // the same module once more, as text
    std::unique_ptr<llvm::Module> copy = llvm::CloneModule(module);
    const std::unique_ptr<Pipeline> assembly = make(llvm::CodeGenFileType::AssemblyFile);
    if (!assembly) return Internal("LLVM's target cannot write assembly");
    assembly->passes.Run(*copy);
    WriteFile(options.dump_prefix + ".s", assembly->output);
  }
  std::unique_ptr<Pipeline>& pipeline = pipelines_[options.promote_memory ? 1 : 0];
  if (!pipeline || pipeline->optimization_level != options.optimization_level)
    pipeline = make(llvm::CodeGenFileType::ObjectFile);
  if (!pipeline) return Internal("LLVM's target cannot write objects");
  pipeline->output.clear();
  pipeline->passes.Run(module);
  return std::string(pipeline->output.data(), pipeline->output.size());
}

}  // namespace strop::cpu
