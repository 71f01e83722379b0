#include "strop/codegen/constants_in_memory.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Pass.h>

#include <map>
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
    memory_.clear();
    for (llvm::Function& f : module)
      for (llvm::BasicBlock& block : f) changed = RunOnBlock(block) || changed;
    return changed;
  }

 private:
  bool RunOnBlock(llvm::BasicBlock& block) {
    std::vector<llvm::Use*> uses;
    std::vector<llvm::SelectInst*> choices;
    std::set<llvm::Value*> constants;
    for (llvm::Instruction& i : block) {
      if (auto* choice = llvm::dyn_cast<llvm::SelectInst>(&i); choice && ChoosesConstants(*choice)) {
        choices.push_back(choice);
        constants.insert({choice->getTrueValue(), choice->getFalseValue()});
        continue;
      }
      for (llvm::Use& use : i.operands()) {
        if (!MayLieInMemory(i, use)) continue;
        uses.push_back(&use);
        constants.insert(use.get());
      }
    }
    if (constants.size() <= kInRegisters) return false;
    for (llvm::Use* use : uses) {
      llvm::IRBuilder<> b(llvm::cast<llvm::Instruction>(use->getUser()));
      use->set(FromMemory(b, llvm::cast<llvm::Constant>(use->get())));
    }
    for (llvm::SelectInst* choice : choices) {
      Choose(*choice);
      choice->eraseFromParent();
    }
    return true;
  }

  // A number other than 0 in all lanes of a vector, or null.
  static const llvm::ConstantFP* Splat(const llvm::Value* value) {
    const auto* constant = llvm::dyn_cast<llvm::Constant>(value);
    if (!constant || !constant->getType()->isVectorTy()) return nullptr;
    const auto* lane = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant->getSplatValue());
    return lane && !lane->isNullValue() ? lane : nullptr;
  }

  // Is it one of two numbers, lane by lane?
  static bool ChoosesConstants(const llvm::SelectInst& i) {
    return i.getCondition()->getType()->isVectorTy() && Splat(i.getTrueValue()) && Splat(i.getFalseValue());
  }
  // By the bits in which they differ: a blend has one operand in memory only, and takes the place of a multiply-add.
  void Choose(llvm::SelectInst& i) {
    llvm::IRBuilder<> b(&i);
    auto* type = llvm::cast<llvm::FixedVectorType>(i.getType());
    auto* bits = llvm::VectorType::getInteger(type);
    const llvm::APInt chosen = Splat(i.getTrueValue())->getValue().bitcastToAPInt();
    const llvm::APInt other = Splat(i.getFalseValue())->getValue().bitcastToAPInt();
    llvm::Value* mask = b.CreateSExt(i.getCondition(), bits);
    llvm::Value* difference = b.CreateAnd(mask, FromMemory(b, llvm::ConstantInt::get(bits, chosen ^ other)));
    llvm::Value* result = b.CreateXor(difference, FromMemory(b, llvm::ConstantInt::get(bits, other)));
    i.replaceAllUsesWith(b.CreateBitCast(result, type));
  }

  llvm::Value* FromMemory(llvm::IRBuilder<>& b, llvm::Constant* value) {
    llvm::GlobalVariable* memory = InMemory(*b.GetInsertBlock()->getModule(), value);
    llvm::LoadInst* load = b.CreateAlignedLoad(value->getType(), memory, memory->getAlign());
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b.getContext(), {}));
    return load;
  }

  // Is it a constant with equal lanes where the instruction may have an operand in memory?
  static bool MayLieInMemory(const llvm::Instruction& i, const llvm::Use& use) {
    if (!Splat(use.get())) return false;
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
  llvm::GlobalVariable* InMemory(llvm::Module& module, llvm::Constant* value) {
    llvm::GlobalVariable*& global = memory_[value];
    if (global) return global;
    global = new llvm::GlobalVariable(module, value->getType(), /*isConstant=*/true, llvm::GlobalValue::PrivateLinkage,
                                      value, "strop.splat");
    global->setExternallyInitialized(true);
    global->setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
    global->setAlignment(llvm::Align(32));
    return global;
  }

  static char kId;
  std::map<const llvm::Constant*, llvm::GlobalVariable*> memory_;  // of this module
};

char ConstantsInMemory::kId = 0;

}  // namespace

llvm::ModulePass* CreateConstantsInMemoryPass() { return new ConstantsInMemory; }

}  // namespace strop
