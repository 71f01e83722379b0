// Dead code elimination: removes what nobody uses and what has no effect, then computations that nobody calls.
//
//   %a = f32[] add(%x, %y)      (removed)
//   ROOT %r = f32[] negate(%x)
//
// One walk against the list order suffices, since users come after operands. Parameters stay: they are the signature.
#include "strop/passes/effects.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// All devices run the same program: what none of them reads, none of them sends.
bool IsExchange(const Instruction& i) { return Is(i.op(), kCollective) && !Is(i.op(), kAsync | kSideEffect); }

struct Dce final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const Effects effects(module);
    int64_t removed = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i = c->last(); i;) {
        Instruction* before = i->prev();
        if (i->use_count() == 0 && i != c->root() && !i->IsParameter() && (IsExchange(*i) || !effects.Has(*i))) {
          c->Remove(i);
          ++removed;
        }
        i = before;
      }
    }
    const int64_t computations = module.RemoveDeadComputations();
    context.Count("dce.instructions", removed);
    context.Count("dce.computations", computations);
    return removed + computations > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeDce() { return std::make_unique<Dce>(); }

}  // namespace strop
