#include "tests/conformance/emulated_gpu.h"

#include <llvm/IR/IntrinsicsNVPTX.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "strop/base/thread_pool.h"
#include "strop/codegen/loop_scopes.h"
#include "strop/codegen/vector_builder.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/jit.h"
#include "strop/cpu/load/code.h"
#include "strop/gpu/kernel.h"

namespace strop {
namespace {

constexpr VectorTarget kThread{.vector_bytes = 1};

// A register of the device that says which thread it is.
void ReplaceRegister(llvm::Module& module, llvm::Intrinsic::ID id, llvm::Value* value) {
  llvm::Function* intrinsic = llvm::Intrinsic::getDeclarationIfExists(&module, id);
  if (!intrinsic) return;
  for (llvm::User* user : llvm::make_early_inc_range(intrinsic->users())) {
    user->replaceAllUsesWith(value);
    llvm::cast<llvm::CallInst>(user)->eraseFromParent();
  }
}

// Turns the kernel into a KernelFn that runs all threads of the grid: "run".
Status AddLaunch(VectorBuilder& b, llvm::Function* kernel, int64_t threads) {
  IrBuilder& ir = b.ir();
  auto* type = llvm::FunctionType::get(ir.getVoidTy(), {b.Ptr(), b.Int(64), b.Int(64), b.Ptr()}, false);
  auto* run = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "run", b.module());
  ir.SetInsertPoint(llvm::BasicBlock::Create(b.context(), "entry", run));
  std::vector<llvm::Value*> buffers;
  for (size_t k = 0; k < kernel->arg_size(); ++k)
    buffers.push_back(ir.CreateLoad(b.Ptr(), ir.CreateConstGEP1_64(b.Ptr(), run->getArg(0), k)));
  llvm::Value *block = nullptr, *thread = nullptr;
  llvm::CallInst* call = nullptr;
  LoopScopes scopes(b);
  scopes.Loop("threads", b.I64(0), b.I64(threads), 1, [&](llvm::Value* n) {
    block = ir.CreateTrunc(ir.CreateUDiv(n, b.I64(gpu::kBlockThreads)), b.Int(32));
    thread = ir.CreateTrunc(ir.CreateURem(n, b.I64(gpu::kBlockThreads)), b.Int(32));
    call = ir.CreateCall(kernel, buffers);
  });
  ir.CreateRetVoid();
  kernel->setCallingConv(llvm::CallingConv::C);
  llvm::InlineFunctionInfo info;
  if (const llvm::InlineResult inlined = llvm::InlineFunction(*call, info); !inlined.isSuccess())
    return Internal("the kernel is not inlined: ", inlined.getFailureReason());
  kernel->eraseFromParent();
  ReplaceRegister(b.module(), llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, block);
  ReplaceRegister(b.module(), llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, thread);
  return OkStatus();
}

Result<std::shared_ptr<const cpu::LoadedCode>> CompileKernel(const KernelSpec& spec) {
  STROP_ASSIGN(const std::unique_ptr<cpu::ObjectEmitter> emitter, cpu::ObjectEmitter::Create(cpu::Isa::OfHost(), 2));
  llvm::LLVMContext context;
  llvm::Module module(spec.name(), context);
  emitter->Prepare(module);
  VectorBuilder b(module, kThread);
  STROP_TRY(gpu::EmitKernel(spec, b, "kernel"));
  STROP_TRY(AddLaunch(b, module.getFunction("kernel"), gpu::BlocksOf(spec) * gpu::kBlockThreads));
  STROP_ASSIGN(const std::string object, emitter->Emit(module, {}));
  const std::string_view objects[] = {object};
  return cpu::LoadedCode::Load(objects);
}

}  // namespace

Result<CompiledKernels> EmulatedGpu::Compile(std::span<const KernelSpec> specs,
                                             const KernelCompileOptions& options) const {
  STROP_ASSIGN(CompiledKernels out, gpu_.Compile(specs, options));
  auto kept = std::make_shared<std::vector<std::shared_ptr<const cpu::LoadedCode>>>();
  for (size_t n = 0; n < specs.size(); ++n) {
    if (std::get<HostStep>(out.kernels[n].body).interpreted) continue;
    STROP_ASSIGN(const std::shared_ptr<const cpu::LoadedCode> code, CompileKernel(specs[n]));
    out.kernels[n].body = KernelStep{.fn = reinterpret_cast<KernelFn>(code->Find(0, "run"))};
    kept->push_back(code);
  }
  out.code = kept;
  return out;
}

Result<std::unique_ptr<DeviceSet>> EmulatedGpu::OpenDevices(int count, ThreadPool& pool,
                                                            Allocator::Options memory) const {
  return std::make_unique<DeviceSet>(count, pool, memory);
}

}  // namespace strop
