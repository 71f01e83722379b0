// Algebraic simplification: the rules of passes/simplify/, applied until none fits.
//
//   %t = f32[3,2] transpose(%x), dimensions={1,0}
//   %u = f32[2,3] transpose(%t), dimensions={1,0}      uses of %u use %x
//
// Each rule has a name, a counter (strop opt --explain) and a switch (--disable-rule=transpose-transpose);
// --rule-limit=N stops after N rewrites, for bisecting.
#include "strop/passes/simplify/simplify.h"

#include <algorithm>

#include "strop/passes/pass.h"
#include "strop/rewrite/driver.h"

namespace strop {
namespace {

RuleTable Rules(const std::vector<std::string>& disabled) {
  return RuleTable(
      {
#define RULES(name) simplify::name##Rules(),
#include "strop/passes/simplify/sets.def"
#undef RULES
      },
      disabled);
}

struct Simplify final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const RuleTable rules = Rules(context.options().disabled_rules);
    RewriteReport report;
    const std::vector<Computation*> computations = module.computations();  // rules may add some
    for (Computation* c : computations) STROP_TRY(RewriteComputation(c, rules, context.rule_limit(), report));
    for (const auto& [rule, fired] : report.fired) context.Count(rule, fired);
    if (!report.converged) context.Count("simplify.stopped-before-converging");
    return report.changed;
  }
};

}  // namespace

std::vector<std::string_view> simplify::RuleNames() {
  const RuleTable rules = Rules({});
  std::vector<std::string_view> names;
  for (size_t op = 0; op < kNumOps; ++op)
    for (const Rule* rule : rules.of(static_cast<Op>(op))) names.push_back(rule->name);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

Status simplify::CheckRuleName(std::string_view name) {
  const std::vector<std::string_view> known = RuleNames();
  if (std::find(known.begin(), known.end(), name) != known.end()) return OkStatus();
  const std::string_view near = Nearest(name, known);
  return NotFound("there is no rule '", name, "'", near.empty() ? "" : StrCat("; did you mean '", near, "'?"));
}

std::unique_ptr<Pass> MakeSimplify() { return std::make_unique<Simplify>(); }

}  // namespace strop
