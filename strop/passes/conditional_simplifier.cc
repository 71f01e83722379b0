// Conditionals whose branch is known: a constant index, or a single branch.
//
//   %c = conditional(constant(true), %x, %y), true_computation=%t, false_computation=%f     the body of %t with %x
//
// An s32 index outside the branches takes the last one. Callees are visited first: branches may hold conditionals.
#include <algorithm>

#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// The branch that is taken, or -1.
int64_t KnownBranch(const Instruction& i) {
  const int64_t branches = static_cast<int64_t>(i.called().size());
  if (branches == 1) return 0;
  const Instruction* index = i.operand(0);
  if (!index->IsConstant()) return -1;
  const int64_t value = index->literal().GetInt(0);
  if (IsPred(index->shape().type())) return value ? 0 : 1;
  return value < 0 || value >= branches ? branches - 1 : value;
}

struct ConditionalSimplifier final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t inlined = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::Conditional) continue;
        const int64_t branch = KnownBranch(*i);
        if (branch < 0) continue;
        Instruction* argument = i->operand(branch + 1);
        InlineInPlaceOf(i, *i->called(branch), {&argument, 1});
        ++inlined;
      }
    }
    context.Count("conditional-simplifier.inlined", inlined);
    if (inlined) module.RemoveDeadComputations();
    return inlined > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeConditionalSimplifier() { return std::make_unique<ConditionalSimplifier>(); }

}  // namespace strop
