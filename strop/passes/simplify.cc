// Algebraic simplification: the rules of passes/simplify/, applied until none fits.
//
//   %t = f32[3,2] transpose(%x), dimensions={1,0}
//   %u = f32[2,3] transpose(%t), dimensions={1,0}      uses of %u use %x
//
// Each rule has a name, a counter (strop opt --explain) and a switch (--disable-rule=transpose-transpose);
// --rule-limit=N stops after N rewrites, for bisecting.
#include "strop/passes/simplify/simplify.h"

#include "strop/passes/pass.h"
#include "strop/rewrite/driver.h"

namespace strop {
namespace {

struct Simplify final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    using namespace simplify;
    const RuleTable rules({ArithmeticRules(), LogicRules(), ConvertRules(), BroadcastRules(), ElementwiseRules(),
                           ReshapeRules(), SliceRules(), ReductionRules()},
                          context.options().disabled_rules);
    RewriteReport report;
    for (Computation* c : module.computations()) STROP_TRY(RewriteComputation(c, rules, context.rule_limit(), report));
    for (const auto& [rule, fired] : report.fired) context.Count(rule, fired);
    if (!report.converged) context.Count("simplify.stopped-before-converging");
    return report.changed;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSimplify() { return std::make_unique<Simplify>(); }

}  // namespace strop
