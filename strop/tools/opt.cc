// strop opt: runs passes over a program and prints what becomes of it.
#include <cstdio>

#include "strop/driver/pipeline.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/tools/command.h"

namespace strop::tools {
namespace {

std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view name : Split(text, ','))
    if (!Trim(name).empty()) names.emplace_back(Trim(name));
  return names;
}

void PrintReport(const PassContext& context, bool timing, bool explain) {
  if (timing)
    for (const PassRun& run : context.runs())
      std::fprintf(stderr, "%9.3f ms  %-24s %s%lld instructions\n", run.milliseconds, std::string(run.pass).c_str(),
                   run.changed ? "changed, " : "", static_cast<long long>(run.instructions_after));
  if (!explain) return;
  for (const auto& [what, n] : context.counters())
    std::fprintf(stderr, "%9lld  %s\n", static_cast<long long>(n), what.c_str());
  for (const PassDecision& d : context.decisions())
    std::fprintf(stderr, "%s: [%s] %s\n", d.where.c_str(), std::string(d.pass).c_str(), d.text.c_str());
}

}  // namespace

Status RunOpt(Arguments& arguments) {
  STROP_ASSIGN(std::string passes, arguments.TakeValue("--passes"));
  STROP_ASSIGN(std::string disabled_passes, arguments.TakeValue("--disable-pass"));
  STROP_ASSIGN(std::string disabled_rules, arguments.TakeValue("--disable-rule"));
  STROP_ASSIGN(int64_t rule_limit, arguments.TakeInt("--rule-limit", -1, 0));
  const bool print_changed = arguments.TakeFlag("--print-changed");
  const bool verify_each = arguments.TakeFlag("--verify-each");
  const bool timing = arguments.TakeFlag("--timing");
  const bool explain = arguments.TakeFlag("--explain");
  if (arguments.TakeFlag("--list-rules")) {
    STROP_TRY(arguments.Files(0, 0));
    std::string names;
    for (std::string_view name : simplify::RuleNames()) names += StrCat(name, "\n");
    return WriteFile("-", names);
  }
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));

  PassOptions options;
  options.disabled_passes = Names(disabled_passes);
  options.disabled_rules = Names(disabled_rules);
  options.rule_limit = rule_limit;
  // Passes named one by one are being tested or tried out: what they leave must be legal.
  options.verify_each = verify_each || !passes.empty();
  options.collect_decisions = explain;
  for (const std::string& name : options.disabled_passes) STROP_TRY(FindPass(name));
  for (const std::string& name : options.disabled_rules) STROP_TRY(simplify::CheckRuleName(name));
  PassPipeline pipeline("opt");
  if (passes.empty()) {
    STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend));
    pipeline = CompilePipeline(*backend, SettingsFrom(arguments.options()));
  } else {
    STROP_ASSIGN(pipeline, PassPipeline::FromNames(passes));
  }
  if (print_changed)
    pipeline.set_observer([](std::string_view pass, const Module& m, bool changed) {
      if (changed) std::fprintf(stderr, "// after %s\n%s\n", std::string(pass).c_str(), m.ToString().c_str());
    });
  PassContext context(options);
  Result<bool> changed = pipeline.Run(*module, context);
  PrintReport(context, timing, explain);
  STROP_TRY(changed);
  return WriteFile("-", module->ToString() + "\n");
}

}  // namespace strop::tools
