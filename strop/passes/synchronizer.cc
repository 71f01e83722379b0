// Asynchronous pairs become the one operation that they are parts of, in the place of the start: what overlaps is
// decided by the runtime, from the data that steps wait for.
//
//   %s = (f32[4], f32[8]) all-gather-start(%x), dimensions={0}
//   %d = f32[8] all-gather-done(%s)                               %d = f32[8] all-gather(%x), dimensions={0}
//
//   copy-start/-done     the operand
//   async-start/-done    a call of what is wrapped, which is inlined
//
//   () custom-call(%a, %b), custom_call_target="control_dep"      gone: JAX's wish that %a be computed before %b
//
// A start whose value is used by anything but its done (or an async-update) is left alone.
#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/layouts_of_uses.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// The synchronous op of a start, or kEnd.
Op Synchronous(Op start) {
  switch (start) {
    case Op::AllGatherStart: return Op::AllGather;
    case Op::AllReduceStart: return Op::AllReduce;
    case Op::CollectivePermuteStart: return Op::CollectivePermute;
    case Op::CopyStart: return Op::Copy;
    case Op::AsyncStart: return Op::Call;
    default: return Op::kEnd;
  }
}

bool IsDone(Op op) {
  return op == Op::AllGatherDone || op == Op::AllReduceDone || op == Op::CollectivePermuteDone || op == Op::CopyDone ||
         op == Op::AsyncDone;
}

// The dones of a start, through updates; false if something else looks at it.
bool CollectDones(Instruction* start, std::vector<Instruction*>& dones, std::vector<Instruction*>& updates) {
  std::vector<Instruction*> pending = {start};
  while (!pending.empty()) {
    Instruction* at = pending.back();
    pending.pop_back();
    if (at->IsRoot()) return false;
    for (const Use& use : at->uses()) {
      if (use.user->op() == Op::AsyncUpdate) {
        updates.push_back(use.user);
        pending.push_back(use.user);
      } else if (IsDone(use.user->op())) {
        dones.push_back(use.user);
      } else {
        return false;
      }
    }
  }
  return !dones.empty();
}

Result<Instruction*> MakeSynchronous(Instruction* start, const Shape& result) {
  if (start->op() == Op::CopyStart) return start->operand(0);
  const Op op = Synchronous(start->op());
  Attrs attrs = start->op() == Op::AsyncStart ? Attrs(CallAttrs{}) : start->any_attrs();
  Instruction* made = start->parent()->Add(op, result.WithoutLayout(), start->operands(), std::move(attrs), {}, start);
  made->set_called(start->called());
  made->CopyExtrasFrom(*start);
  STROP_TRY(VerifyShape(*made));
  return made;
}

bool IsWishForOrder(const Instruction& i) {
  return i.op() == Op::CustomCall && i.attrs<CustomCallAttrs>().target == "control_dep" && i.use_count() == 0 &&
         !i.IsRoot();
}

struct Synchronizer final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t pairs = 0, wishes = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> starts;
      for (Instruction* i : c->instructions()) {
        if (Synchronous(i->op()) != Op::kEnd) starts.push_back(i);
        if (IsWishForOrder(*i)) c->Remove(i), ++wishes;
      }
      for (Instruction* start : starts) {
        std::vector<Instruction*> dones, updates;
        if (!CollectDones(start, dones, updates)) {
          context.Decide(*start, "left asynchronous: its value is used by more than its done");
          continue;
        }
        STROP_ASSIGN(Instruction * value, MakeSynchronous(start, dones[0]->shape()));
        for (Instruction* done : dones) {
          ReplaceAllUsesKeepingLayout(done, value);
          c->Remove(done);
        }
        for (auto it = updates.rbegin(); it != updates.rend(); ++it) c->Remove(*it);
        c->Remove(start);
        if (value->op() == Op::Call) InlineInPlaceOf(value, *value->to_apply(), value->operands());
        ++pairs;
      }
    }
    context.Count("synchronizer.pairs", pairs);
    context.Count("synchronizer.control-dep", wishes);
    if (pairs > 0) module.RemoveDeadComputations();
    return pairs + wishes > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSynchronizer() { return std::make_unique<Synchronizer>(); }

}  // namespace strop
