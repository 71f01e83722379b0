#include "strop/codegen/loop_scopes.h"

namespace strop {

using V = llvm::Value*;

int LoopScopes::innermost_conditional() const {
  for (int i = current_; i > 0; --i)
    if (scopes_[i].conditional) return i;
  return 0;
}

const std::vector<V>* LoopScopes::Find(int level, const Key& key) const {
  const auto found = scopes_[level].emitted.find(key);
  return found == scopes_[level].emitted.end() ? nullptr : &found->second;
}

void LoopScopes::Remember(int level, Key key, std::vector<V> values) {
  scopes_[level].emitted.insert_or_assign(std::move(key), std::move(values));
}

LoopScopes::Redirect::Redirect(LoopScopes& s, int level) : s_(s), saved_level_(s.current_), moved_(level < s.current_) {
  if (!moved_) return;
  saved_ = s_.b_.ir().saveIP();
  s_.b_.ir().SetInsertPoint(s_.scopes_[level + 1].hoist_point);
  s_.current_ = level;
}

LoopScopes::Redirect::~Redirect() {
  if (!moved_) return;
  s_.b_.ir().restoreIP(saved_);
  s_.current_ = saved_level_;
}

void LoopScopes::Enter(llvm::Instruction* hoist_point, bool conditional) {
  ++current_;
  // Deeper scopes may be open while code is redirected to this level: those keep their slots below the new one.
  scopes_.insert(scopes_.begin() + current_, Scope{hoist_point, conditional, {}});
}

void LoopScopes::Leave() {
  scopes_.erase(scopes_.begin() + current_);
  --current_;
}

std::vector<V> LoopScopes::Loop(const char* name, V begin, V end, int64_t step, std::span<const V> init,
                                const LoopBody& body, bool pinned) {
  IrBuilder& ir = b_.ir();
  // Known trip counts of zero and one need no loop.
  const auto* first = llvm::dyn_cast<llvm::ConstantInt>(begin);
  const auto* last = llvm::dyn_cast<llvm::ConstantInt>(end);
  const bool known = first && last;
  const int64_t length = known ? last->getSExtValue() - first->getSExtValue() : 0;
  if (known && length <= 0) return std::vector<V>(init.begin(), init.end());
  const bool once = known && length <= step;
  if (const int64_t trips = (length + step - 1) / step; known && !once && trips <= copies_) {
    const int64_t saved = copies_;
    copies_ /= trips;
    std::vector<V> carried(init.begin(), init.end());
    for (int64_t at = first->getSExtValue(); at < last->getSExtValue(); at += step) {
      V next = llvm::ConstantInt::get(begin->getType(), static_cast<uint64_t>(at + step));
      carried = Loop(name, llvm::ConstantInt::get(begin->getType(), static_cast<uint64_t>(at)), next, step, carried,
                     body, pinned);
    }
    copies_ = saved;
    return carried;
  }

  llvm::BasicBlock* exit = b_.SplitBlock("after");
  llvm::BasicBlock* entry = ir.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(b_.context(), name, entry->getParent(), exit);
  llvm::Instruction* enter;
  if (known)
    enter = ir.CreateBr(loop);
  else
    enter = ir.CreateCondBr(ir.CreateICmpSLT(begin, end), loop, exit);

  ir.SetInsertPoint(loop);
  llvm::PHINode* i = nullptr;
  llvm::SmallVector<llvm::PHINode*, 4> phis;
  std::vector<V> carried(init.begin(), init.end());
  if (!once) {
    i = ir.CreatePHI(begin->getType(), 2, "i");
    for (V& v : carried) {
      phis.push_back(ir.CreatePHI(v->getType(), 2));
      v = phis.back();
    }
  }
  Enter(enter, /*conditional=*/pinned);
  const std::vector<V> next = body(once ? begin : i, carried);
  Leave();
  llvm::BasicBlock* latch;
  if (once) {
    latch = ir.GetInsertBlock();
    ir.CreateBr(exit);
  } else {
    V following = ir.CreateNSWAdd(i, llvm::ConstantInt::get(i->getType(), static_cast<uint64_t>(step)));
    V again = ir.CreateICmpSLT(following, end);
    latch = ir.GetInsertBlock();
    ir.CreateCondBr(again, loop, exit);
    // Code may have been hoisted behind loops of its own: the block that enters is where the branch is now.
    i->addIncoming(begin, enter->getParent());
    i->addIncoming(following, latch);
    for (size_t k = 0; k < init.size(); ++k) {
      phis[k]->addIncoming(init[k], enter->getParent());
      phis[k]->addIncoming(next[k], latch);
    }
  }

  ir.SetInsertPoint(exit, exit->begin());
  std::vector<V> results = next;
  if (!known) {
    for (size_t k = 0; k < init.size(); ++k) {
      llvm::PHINode* phi = ir.CreatePHI(init[k]->getType(), 2);
      phi->addIncoming(init[k], enter->getParent());
      phi->addIncoming(next[k], latch);
      results[k] = phi;
    }
  }
  b_.ContinueAt(exit);
  return results;
}

void LoopScopes::Loop(const char* name, V begin, V end, int64_t step, const std::function<void(V i)>& body) {
  Loop(name, begin, end, step, {}, [&](V i, std::span<const V>) {
    body(i);
    return std::vector<V>();
  });
}

std::vector<V> LoopScopes::While(const char* name, Carried init, const std::function<V(Carried)>& goes_on,
                                 const std::function<std::vector<V>(Carried)>& body) {
  IrBuilder& ir = b_.ir();
  V first = goes_on(init);
  llvm::BasicBlock* exit = b_.SplitBlock("after");
  llvm::BasicBlock* entry = ir.GetInsertBlock();
  llvm::BasicBlock* loop = llvm::BasicBlock::Create(b_.context(), name, entry->getParent(), exit);
  llvm::Instruction* enter = ir.CreateCondBr(first, loop, exit);

  ir.SetInsertPoint(loop);
  llvm::SmallVector<llvm::PHINode*, 8> phis;
  std::vector<V> carried;
  for (V v : init) carried.push_back(phis.emplace_back(ir.CreatePHI(v->getType(), 2)));
  Enter(enter, /*conditional=*/true);
  const std::vector<V> next = body(carried);
  V again = goes_on(next);
  Leave();
  llvm::BasicBlock* latch = ir.GetInsertBlock();
  ir.CreateCondBr(again, loop, exit);

  ir.SetInsertPoint(exit, exit->begin());
  std::vector<V> results;
  for (size_t k = 0; k < init.size(); ++k) {
    phis[k]->addIncoming(init[k], enter->getParent());
    phis[k]->addIncoming(next[k], latch);
    llvm::PHINode* phi = ir.CreatePHI(init[k]->getType(), 2);
    phi->addIncoming(init[k], enter->getParent());
    phi->addIncoming(next[k], latch);
    results.push_back(phi);
  }
  b_.ContinueAt(exit);
  return results;
}

std::vector<V> LoopScopes::If(V condition, const std::function<std::vector<V>()>& then,
                              const std::function<std::vector<V>()>& otherwise) {
  IrBuilder& ir = b_.ir();
  llvm::BasicBlock* join = b_.SplitBlock("join");
  llvm::BasicBlock* entry = ir.GetInsertBlock();
  llvm::BasicBlock* blocks[2] = {llvm::BasicBlock::Create(b_.context(), "then", entry->getParent(), join),
                                 llvm::BasicBlock::Create(b_.context(), "else", entry->getParent(), join)};
  llvm::Instruction* branch = ir.CreateCondBr(condition, blocks[0], blocks[1]);
  std::vector<V> values[2];
  for (int k = 0; k < 2; ++k) {
    ir.SetInsertPoint(blocks[k]);
    Enter(branch, /*conditional=*/true);
    values[k] = k == 0 ? then() : otherwise();
    Leave();
    blocks[k] = ir.GetInsertBlock();
    ir.CreateBr(join);
  }
  ir.SetInsertPoint(join, join->begin());
  std::vector<V> results;
  for (size_t i = 0; i < values[0].size(); ++i) {
    llvm::PHINode* phi = ir.CreatePHI(values[0][i]->getType(), 2);
    phi->addIncoming(values[0][i], blocks[0]);
    phi->addIncoming(values[1][i], blocks[1]);
    results.push_back(phi);
  }
  b_.ContinueAt(join);
  return results;
}

}  // namespace strop
