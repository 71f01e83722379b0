#include "strop/codegen/math/deferred.h"

#include <llvm/Pass.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <vector>

#include "strop/base/strings.h"

namespace strop {
namespace {

using V = llvm::Value*;

constexpr llvm::StringLiteral kPrefix = "strop.math.";

// Of at least so many; of fewer, lanes would be put together and taken apart for as long as the function takes.
size_t LeastPacked(MathFunction f) {
  switch (f) {
    case MathFunction::kExp:
    case MathFunction::kExpm1:
    case MathFunction::kTanh:
    case MathFunction::kErf:
    case MathFunction::kRsqrt:
    case MathFunction::kLogistic: return 3;
    case MathFunction::kSin:
    case MathFunction::kCos: return 4;  // small angles alone take half the time
    default: return 2;
  }
}

class DeferredMath final : public llvm::ModulePass {
 public:
  DeferredMath(const VectorTarget& target, bool pack) : ModulePass(kId), target_(target), pack_(pack) {}
  llvm::StringRef getPassName() const override { return "Math of single numbers, together"; }

  bool runOnModule(llvm::Module& module) override {
    functions_.clear();
    std::vector<llvm::Function*> callers, deferred;
    for (llvm::Function& f : module) {
      llvm::StringRef name = f.getName();
      int number = 0;
      if (!f.isDeclaration()) {
        callers.push_back(&f);
      } else if (name.consume_front(kPrefix) && !name.consumeInteger(10, number)) {
        deferred.push_back(&f);
        functions_[&f] = static_cast<MathFunction>(number);
      }
    }
    if (functions_.empty()) return false;
    VectorBuilder b(module, target_);
    b.ShortenChains(true);
    for (llvm::Function* caller : callers) {
      std::vector<llvm::BasicBlock*> blocks;
      for (llvm::BasicBlock& block : *caller) blocks.push_back(&block);
      for (llvm::BasicBlock* block : blocks) RunOnBlock(b, *block);
    }
    for (llvm::Function* function : deferred) function->eraseFromParent();
    return true;
  }

 private:
  using Group = std::vector<llvm::CallInst*>;

  llvm::CallInst* Deferred(llvm::Instruction& i) const {
    auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
    return call && functions_.contains(call->getCalledFunction()) ? call : nullptr;
  }

  void RunOnBlock(VectorBuilder& b, llvm::BasicBlock& block) {
    if (std::none_of(block.begin(), block.end(), [&](llvm::Instruction& i) { return Deferred(i); })) return;
    std::vector<Group> groups;
    // Calls of equal level do not need each other.
    std::map<std::pair<int, llvm::Function*>, size_t> group_of;
    bool packs = false;
    const Levels levels = LevelsOf(block);
    for (llvm::Instruction& i : block) {
      llvm::CallInst* call = Deferred(i);
      if (!call) continue;
      const MathFunction f = functions_.at(call->getCalledFunction());
      const auto [at, added] = group_of.try_emplace({levels.at(&i), call->getCalledFunction()}, groups.size());
      if (added) groups.emplace_back();
      groups[at->second].push_back(call);
      packs |= pack_ && groups[at->second].size() >= LeastPacked(f);
    }
    if (packs) Order(block, levels);
    const size_t most = static_cast<size_t>(target_.vector_bytes);
    for (const Group& group : groups) {
      const MathFunction f = functions_.at(group[0]->getCalledFunction());
      const size_t lanes = most / static_cast<size_t>(VectorBuilder::ScalarBits(group[0]) / 8);
      const size_t at_once = packs && group.size() >= LeastPacked(f) ? lanes : 1;
      for (size_t first = 0; first < group.size(); first += at_once)
        Compute(b, f,
                Group(group.begin() + static_cast<int64_t>(first),
                      group.begin() + static_cast<int64_t>(std::min(first + at_once, group.size()))));
    }
  }

  // How many deferred functions, one of another, an instruction needs. What touches memory stays in its order.
  using Levels = std::map<const llvm::Instruction*, int>;
  Levels LevelsOf(llvm::BasicBlock& block) const {
    Levels levels;
    int of_memory = 0;
    for (llvm::Instruction& i : block) {
      int level = 0;
      if (!llvm::isa<llvm::PHINode>(i)) {
        for (const llvm::Use& operand : i.operands()) {
          auto* other = llvm::dyn_cast<llvm::Instruction>(operand.get());
          if (!other || other->getParent() != &block || !levels.contains(other)) continue;
          level = std::max(level, levels.at(other) + (Deferred(*other) ? 1 : 0));
        }
        const bool free =
            !i.mayHaveSideEffects() && (!i.mayReadFromMemory() || i.hasMetadata(llvm::LLVMContext::MD_invariant_load));
        if (!free) of_memory = level = std::max(level, of_memory);
      }
      levels[&i] = level;
    }
    return levels;
  }

  // By level, and the functions of a level behind the rest of it.
  void Order(llvm::BasicBlock& block, const Levels& levels) const {
    std::vector<llvm::Instruction*> order;
    for (llvm::Instruction& i : block)
      if (!llvm::isa<llvm::PHINode>(i) && !i.isTerminator()) order.push_back(&i);
    std::stable_sort(order.begin(), order.end(), [&](llvm::Instruction* x, llvm::Instruction* y) {
      const auto key = [&](llvm::Instruction* i) { return std::pair(levels.at(i), Deferred(*i) != nullptr); };
      return key(x) < key(y);
    });
    for (llvm::Instruction* i : order) i->moveBefore(block.getTerminator()->getIterator());
  }

  // Where the last of them is. What is left of the lanes is computed of the first again: any number may be one whose
  // way is rare.
  static void Compute(VectorBuilder& b, MathFunction f, const Group& calls) {
    b.ir().SetInsertPoint(calls.back());
    V x = calls[0]->getArgOperand(0);
    if (calls.size() > 1) {
      x = b.Splat(x, static_cast<int>(std::bit_ceil(calls.size())));
      for (size_t k = 1; k < calls.size(); ++k) x = b.ir().CreateInsertElement(x, calls[k]->getArgOperand(0), k);
    }
    V all = EmitMath(b, f, x);
    for (size_t k = 0; k < calls.size(); ++k) {
      calls[k]->replaceAllUsesWith(b.Lane(all, static_cast<int>(k)));
      calls[k]->eraseFromParent();
    }
  }

  static char kId;
  VectorTarget target_;
  bool pack_;
  std::map<const llvm::Function*, MathFunction> functions_;
};

char DeferredMath::kId = 0;

}  // namespace

llvm::Value* DeferMath(VectorBuilder& b, MathFunction f, llvm::Value* x) {
  llvm::Type* type = x->getType();
  const std::string name = StrCat(kPrefix.str(), static_cast<int>(f), math::IsDouble(x) ? ".f64" : ".f32");
  llvm::FunctionCallee callee = b.module().getOrInsertFunction(name, llvm::FunctionType::get(type, {type}, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  function->setSpeculatable();
  return b.ir().CreateCall(callee, {x});
}

llvm::ModulePass* CreateDeferredMathPass(const VectorTarget& target, bool pack) {
  return new DeferredMath(target, pack);
}

}  // namespace strop
