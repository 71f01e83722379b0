// Tuples that are only taken apart again, or put together from all the parts of another.
//
//   %t = (f32[], s32[]) tuple(%x, %y)    %e = get-tuple-element(%t), index=1       uses of %e use %y
//   %a = get-tuple-element(%t), index=0  %b = get-tuple-element(%t), index=1
//   %u = tuple(%a, %b)                                                             uses of %u use %t
//
// The state that a loop starts with, and the one that its body returns, stay spelled out, as while-simplifier wants
// them: an element can then be removed or replaced without the others.
//
// One walk in list order: what an element stands for has been simplified before its users are seen.
#include <unordered_set>

#include "strop/passes/pass.h"

namespace strop {
namespace {

bool IsLoopState(const Instruction& tuple) {
  for (const Use& use : tuple.uses())
    if (use.user->op() == Op::While) return true;
  return false;
}

// The tuple that `i` puts together again, or null.
Instruction* Reassembled(const Instruction& i) {
  if (i.op() != Op::Tuple || i.operand_count() == 0 || i.operand(0)->op() != Op::GetTupleElement) return nullptr;
  Instruction* whole = i.operand(0)->operand(0);
  if (!whole->shape().IsTuple() || whole->shape().tuple_size() != i.operand_count()) return nullptr;
  if (!whole->shape().Compatible(i.shape())) return nullptr;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Instruction* part = i.operand(k);
    if (part->op() != Op::GetTupleElement || part->operand(0) != whole || part->tuple_index() != k) return nullptr;
  }
  return whole;
}

std::unordered_set<const Computation*> LoopBodies(const Module& module) {
  std::unordered_set<const Computation*> bodies;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->op() == Op::While) bodies.insert(i->body());
  return bodies;
}

struct TupleSimplifier final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t removed = 0;
    const std::unordered_set<const Computation*> bodies = LoopBodies(module);
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->HasControlEdges()) continue;
        Instruction* value = nullptr;
        if (i->op() == Op::GetTupleElement && i->operand(0)->op() == Op::Tuple)
          value = i->operand(0)->operand(i->tuple_index());
        else if (!IsLoopState(*i) && !(i->IsRoot() && bodies.contains(c)))
          value = Reassembled(*i);
        if (!value || value->shape() != i->shape()) continue;
        i->ReplaceAllUsesWith(value);
        c->Remove(i);
        ++removed;
      }
      for (Instruction* i = c->last(); i;) {
        Instruction* before = i->prev();
        const bool structural = i->op() == Op::Tuple || i->op() == Op::GetTupleElement;
        if (structural && i->use_count() == 0 && i != c->root() && !i->HasControlEdges()) c->Remove(i);
        i = before;
      }
    }
    context.Count("tuple-simplifier.removed", removed);
    return removed > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeTupleSimplifier() { return std::make_unique<TupleSimplifier>(); }

}  // namespace strop
