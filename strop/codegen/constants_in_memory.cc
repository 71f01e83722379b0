#include "strop/codegen/constants_in_memory.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Pass.h>

#include <set>
#include <vector>

namespace strop {
namespace {

constexpr size_t kInRegisters = 8;  // constants of a block

class ConstantsInMemory final : public llvm::ModulePass {
 public:
  ConstantsInMemory() : ModulePass(kId) {}
  llvm::StringRef getPassName() const override { return "Constants as operands in memory"; }

  bool runOnModule(llvm::Module& module) override {
    bool changed = false;
    for (llvm::Function& f : module)
      for (llvm::BasicBlock& block : f) changed = RunOnBlock(block) || changed;
    return changed;
  }

 private:
  static bool RunOnBlock(llvm::BasicBlock& block) {
    std::vector<llvm::Use*> uses;
    std::set<llvm::Value*> constants;
    for (llvm::Instruction& i : block) {
      for (llvm::Use& use : i.operands()) {
        if (!MayLieInMemory(i, use)) continue;
        uses.push_back(&use);
        constants.insert(use.get());
      }
    }
    if (constants.size() <= kInRegisters) return false;
    for (llvm::Use* use : uses) {
      llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(use->getUser()));
      llvm::GlobalVariable* memory = InMemory(*block.getModule(), llvm::cast<llvm::Constant>(use->get()));
      llvm::LoadInst* load = b.CreateAlignedLoad(use->get()->getType(), memory, memory->getAlign());
      load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
      use->set(load);
    }
    return true;
  }

  // Is it a constant with equal lanes where the instruction may have an operand in memory?
  static bool MayLieInMemory(const llvm::Instruction& i, const llvm::Use& use) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(use.get());
    if (!constant || !constant->getType()->isVectorTy() || !constant->getType()->isFPOrFPVectorTy()) return false;
    const llvm::Constant* lane = constant->getSplatValue();
    if (!lane || !llvm::isa<llvm::ConstantFP>(lane) || lane->isNullValue()) return false;
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i))
      return call->getIntrinsicID() == llvm::Intrinsic::fma;
    switch (i.getOpcode()) {
      case llvm::Instruction::FAdd:
      case llvm::Instruction::FMul: return true;
      case llvm::Instruction::FSub: return use.getOperandNo() == 1;
      default: return false;
    }
  }

  // Not to be told from memory that another program fills: LLVM would read it itself.
  static llvm::GlobalVariable* InMemory(llvm::Module& module, llvm::Constant* value) {
    for (llvm::GlobalVariable& global : module.globals())
      if (global.isExternallyInitialized() && global.getInitializer() == value) return &global;
    auto* global = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::PrivateLinkage, value, "strop.splat");
    global->setExternallyInitialized(true);
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    global->setAlignment(llvm::Align(32));
    return global;
  }

  static char kId;
};

char ConstantsInMemory::kId = 0;

}  // namespace

llvm::ModulePass* CreateConstantsInMemoryPass() { return new ConstantsInMemory; }

}  // namespace strop
