// Two passes outside Strop's tree. `doubling` rewrites one pattern by a rule, and the rule driver repeats it until
// nothing fits; `op-census` walks over the module and counts, for `strop opt --explain`.
//
//   multiply(x, broadcast(2))  ->  add(x, x)
#include "strop/passes/library.h"
#include "strop/rewrite/driver.h"
#include "strop/rewrite/match.h"

namespace {

using namespace strop::match;
using strop::Instruction;

Instruction* MultiplyByTwo(Instruction* root, strop::Builder& b) {
  Instruction *x, *c;
  if (!Match(root, Multiply(Any(&x), Broadcast(Constant(&c))))) return nullptr;
  if (!c->IsSplat(2)) return nullptr;
  return b.Make(strop::Op::Add, {x, x});
}

constexpr strop::Rule kRules[] = {{"multiply-by-two", strop::Op::Multiply, &MultiplyByTwo}};

struct Doubling final : strop::Pass {
  strop::Result<bool> Run(strop::Module& module, strop::PassContext& context) override {
    const strop::RuleTable rules({kRules}, context.options().disabled_rules);
    strop::RewriteReport report;
    for (strop::Computation* computation : module.computations())
      STROP_TRY(RewriteComputation(computation, rules, context.rule_limit(), report));
    for (const auto& [rule, n] : report.fired) context.Count(rule, n);
    return report.changed;
  }
};

struct OpCensus final : strop::Pass {
  strop::Result<bool> Run(strop::Module& module, strop::PassContext& context) override {
    for (const strop::Computation* computation : module.computations())
      for (const Instruction* i : computation->instructions()) context.Count(Name(i->op()));
    return false;
  }
};

}  // namespace

STROP_PASS_LIBRARY(strop::PassOf<Doubling>("doubling", "Makes products with two sums."),
                   strop::PassOf<OpCensus>("op-census", "Counts instructions by op."))
