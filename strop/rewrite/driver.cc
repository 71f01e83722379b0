#include "strop/rewrite/driver.h"

#include <algorithm>

namespace strop {

RuleTable::RuleTable(std::initializer_list<RuleSet> sets, const std::vector<std::string>& disabled) : by_op_(kNumOps) {
  for (RuleSet set : sets)
    for (const Rule& rule : set)
      if (std::find(disabled.begin(), disabled.end(), rule.name) == disabled.end())
        by_op_[static_cast<size_t>(rule.op)].push_back(&rule);
}

namespace {

// How often one instruction may be rewritten in place, and how long a chain of replacements may get, per instruction
// that was there at the start: far above what converging rules need.
constexpr int64_t kVisitsPerInstruction = 64;

// Rules are written for sizes that are known; and what replaces an instruction with control edges would have to keep
// its place in the order.
bool MayRewrite(const Instruction& i) {
  if (i.HasControlEdges() || !i.shape().IsStatic()) return false;
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (!i.operand(k)->shape().IsStatic()) return false;
  return true;
}

class Worklist {
 public:
  explicit Worklist(Computation* computation) : computation_(computation) {
    for (Instruction* i : computation->instructions()) Push(i);
    std::reverse(stack_.begin(), stack_.end());  // first instruction on top
  }
  void Push(Instruction* i) {
    if (static_cast<int64_t>(queued_.size()) <= i->id()) queued_.resize(i->id() + 1 + queued_.size() / 2, false);
    if (queued_[i->id()]) return;
    queued_[i->id()] = true;
    stack_.push_back(i);
  }
  // Null when nothing is left. Instructions that were removed meanwhile are skipped.
  Instruction* Pop() {
    while (!stack_.empty()) {
      Instruction* i = stack_.back();
      stack_.pop_back();
      queued_[i->id()] = false;
      if (i->parent() == computation_) return i;
    }
    return nullptr;
  }

 private:
  Computation* computation_;
  std::vector<Instruction*> stack_;
  std::vector<bool> queued_;
};

// What must be looked at again once `changed` (new, or changed in place) stands where `root` stood.
void PushNeighbours(Instruction* changed, Instruction* before_new, Instruction* end_new, Worklist& work) {
  for (const Use& use : changed->uses()) work.Push(use.user);
  work.Push(changed);
  // Instructions that the rule made lie between the root's old neighbour and the root.
  for (Instruction* i = before_new; i && i != end_new; i = i->next()) work.Push(i);
}

}  // namespace

Status RewriteComputation(Computation* computation, const RuleTable& rules, int64_t* limit, RewriteReport& report) {
  Worklist work(computation);
  int64_t budget = kVisitsPerInstruction * (computation->instruction_count() + 16);
  while (Instruction* root = work.Pop()) {
    if (rules.of(root->op()).empty() || !MayRewrite(*root)) continue;
    for (const Rule* rule : rules.of(root->op())) {
      if (limit && *limit == 0) return OkStatus();
      if (--budget < 0) {
        report.converged = false;
        return OkStatus();
      }
      Instruction* const neighbour = root->prev();
      Builder builder(computation);
      builder.set_insert_before(root);
      builder.set_metadata(root->shared_metadata());
      Instruction* result = rule->apply(root, builder);
      if (!builder.status().ok())
        return Internal("rule ", rule->name, " failed on ", root->ToString(), ": ", builder.status().message());
      if (!result) {
        // A rule that made instructions and then gave up leaves no trace.
        for (Instruction* i = root->prev(); i != neighbour;) {
          Instruction* before = i->prev();
          computation->Remove(i);
          i = before;
        }
        continue;
      }
      ++report.fired[rule->name];
      report.changed = true;
      if (limit && *limit > 0) --*limit;
      Instruction* const first_new = neighbour ? neighbour->next() : computation->first();
      if (result == root) {
        PushNeighbours(root, first_new, root, work);
        break;
      }
      if (!result->shape().Compatible(root->shape()))
        return Internal("rule ", rule->name, " replaces ", root->ToString(), " by ", result->ToString());
      if (root->sharding() && !result->sharding() && result->op() != Op::Parameter)
        result->set_sharding(*root->sharding());
      PushNeighbours(root, first_new, root, work);
      // Operands whose number of uses changes may now fit a rule that asks for a single use.
      for (Instruction* o : root->operands()) {
        work.Push(o);
        if (o->use_count() == 2)
          for (const Use& use : o->uses()) work.Push(use.user);
      }
      computation->Replace(root, result);
      work.Push(result);
      for (const Use& use : result->uses()) work.Push(use.user);
      break;
    }
  }
  return OkStatus();
}

}  // namespace strop
