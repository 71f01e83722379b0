// Passes that are wrong on purpose: what becomes of them is what the tests look at.
#include <stdexcept>

#include "strop/passes/library.h"
#include "strop/rewrite/driver.h"
#include "strop/rewrite/match.h"

namespace {

using namespace strop::match;
using strop::Instruction;

// Says that nothing changed, too.
struct WrongShape final : strop::Pass {
  strop::Result<bool> Run(strop::Module& module, strop::PassContext&) override {
    for (Instruction* i : module.entry()->instructions())
      if (i->op() == strop::Op::Add) i->set_shape(strop::Shape::Array(strop::ElementType::F32, {77}));
    return false;
  }
};

struct Throws final : strop::Pass {
  strop::Result<bool> Run(strop::Module&, strop::PassContext&) override { throw std::runtime_error("on purpose"); }
};

struct Refuses final : strop::Pass {
  strop::Result<bool> Run(strop::Module& module, strop::PassContext&) override {
    return strop::Unimplemented(module.name(), " is not to this pass's taste");
  }
};

// a - exp(b) -> exp(b) - a: legal, and wrong.
struct SwapsDifference final : strop::Pass {
  strop::Result<bool> Run(strop::Module& module, strop::PassContext& context) override {
    bool changed = false;
    for (strop::Computation* c : module.computations())
      for (Instruction* i : c->instructions()) {
        Instruction *a, *b;
        if (!Match(i, Subtract(Where(Any(&a), [](const Instruction* x) { return x->op() != strop::Op::Exp; }),
                               Is(strop::Op::Exp, &b))))
          continue;
        i->SetOperand(0, b);
        i->SetOperand(1, a);
        context.Count("swaps-difference");
        changed = true;
      }
    return changed;
  }
};

}  // namespace

STROP_PASS_LIBRARY(strop::PassOf<WrongShape>("wrong-shape", "Gives sums a shape that they do not have."),
                   strop::PassOf<Throws>("throws", "Throws."), strop::PassOf<Refuses>("refuses", "Returns an error."),
                   strop::PassOf<SwapsDifference>("swaps-difference", "Turns some differences round."))
