// strop opt: runs passes over a program and prints what becomes of it.
#include <cstdio>
#include <map>

#include "strop/analysis/collective_traffic.h"
#include "strop/analysis/statistics.h"
#include "strop/driver/dump.h"
#include "strop/driver/pass_libraries.h"
#include "strop/driver/pipeline.h"
#include "strop/driver/xla_dump.h"
#include "strop/ir/physical_shape.h"
#include "strop/ir/verifier.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/plan/plan.h"
#include "strop/tools/command.h"
#include "strop/tools/same_results.h"

namespace strop::tools {
namespace {

struct OptSettings {
  std::string passes;  // empty: what compiling runs
  PassOptions options;
  PassLibraries libraries;
  bool print_changed = false, print_after_all = false;
  bool timing = false, explain = false;
  bool schedule = false;
  bool compare = false, stats = false;
  uint64_t seed = 0;
};

std::vector<std::string> Names(std::string_view text) {
  std::vector<std::string> names;
  for (std::string_view name : Split(text, ','))
    if (!Trim(name).empty()) names.emplace_back(Trim(name));
  return names;
}

Result<OptSettings> TakeSettings(Arguments& arguments) {
  OptSettings s;
  STROP_ASSIGN(s.libraries, TakeLibraries(arguments));
  STROP_ASSIGN(s.passes, arguments.TakeValue("--passes"));
  STROP_ASSIGN(const std::string disabled_passes, arguments.TakeValue("--disable-pass"));
  for (const std::string& name : Names(disabled_passes)) {
    STROP_ASSIGN(const std::vector<PassInfo> passes, FindPasses(name, s.libraries.passes()));
    for (const PassInfo& pass : passes) s.options.disabled_passes.emplace_back(pass.name);
  }
  STROP_ASSIGN(const std::string disabled_rules, arguments.TakeValue("--disable-rule"));
  s.options.disabled_rules = Names(disabled_rules);
  for (const std::string& name : s.options.disabled_rules) STROP_TRY(simplify::CheckRuleName(name));
  STROP_ASSIGN(s.options.rule_limit, arguments.TakeInt("--rule-limit", -1, 0));
  s.print_changed = arguments.TakeFlag("--print-changed");
  s.print_after_all = arguments.TakeFlag("--print-after-all");
  // Passes named one by one are being tested or tried out: what they leave must be legal.
  s.options.verify_each = arguments.TakeFlag("--verify-each") || !s.passes.empty();
  s.timing = arguments.TakeFlag("--timing");
  s.explain = s.options.collect_decisions = arguments.TakeFlag("--explain");
  s.schedule = arguments.TakeFlag("--schedule");
  s.stats = arguments.TakeFlag("--stats");
  s.compare = arguments.TakeFlag("--compare");
  STROP_ASSIGN(const std::string seed, arguments.TakeValue("--compare"));
  if (!seed.empty()) {
    const auto number = ParseNumber<uint64_t>(seed);
    if (!number) return InvalidArgument("--compare=", seed, " is no seed: expected a whole number");
    s.compare = true;
    s.seed = *number;
  }
  return s;
}

std::string PassList(std::span<const PassInfo> loaded) {
  std::string out;
  const auto line = [&out](std::string_view name, std::string_view sentence) {
    std::string padded(name);
    if (padded.size() < 32) padded.resize(32, ' ');
    StrAppend(out, padded, " ", sentence, "\n");
  };
  for (const PassInfo& pass : AllPasses()) line(pass.name, pass.sentence);
  for (const PassInfo& pass : loaded) line(pass.name, pass.sentence);
  for (const PassAlias& alias : PassAliases()) line(alias.xla_name, StrCat("XLA's name of ", alias.names, "."));
  return out;
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

// {"all-gather": [number, bytes], ...}, each as often as it runs; empty text where there are none.
std::string CollectivesJson(const Module& module) {
  std::map<std::string_view, std::pair<double, double>> by_op;
  for (const CollectiveTraffic& c : CollectivesOf(module)) {
    auto& [number, bytes] = by_op[Name(c.at->op())];
    number += static_cast<double>(c.times);
    bytes += static_cast<double>(c.times) * c.bytes;
  }
  std::string out;
  for (const auto& [op, total] : by_op)
    StrAppend(out, out.empty() ? "" : ", ", "\"", op, "\": [", static_cast<int64_t>(total.first), ", ",
              static_cast<int64_t>(total.second), "]");
  return out.empty() ? "" : StrCat(", \"collectives\": {", out, "}");
}

std::string StatisticsJson(const Module& module) {
  const ModuleStatistics s = StatisticsOf(module);
  std::string by_op;
  for (const auto& [op, n] : s.by_op) StrAppend(by_op, by_op.empty() ? "" : ", ", "\"", op, "\": ", n);
  return StrCat("{\"instructions\": ", s.instructions, ", \"distinct\": ", s.distinct, ", \"kernels\": ", s.kernels,
                ", \"bytes_touched\": ", s.bytes_touched, ", \"by_op\": {", by_op, "}", CollectivesJson(module), "}");
}

// The module as it came, after the passes, and after the fusion that a plan would start with.
Status PrintStatistics(const std::string& given, Module& module, const Backend& backend) {
  const std::string optimized = StatisticsJson(module);
  STROP_TRY(FuseModule(module, backend.target()));
  return WriteFile("-", StrCat("{\"given\": ", given, ",\n \"optimized\": ", optimized,
                               ",\n \"fused\": ", StatisticsJson(module), "}\n"));
}

// What is told and written of every step.
Result<bool> RunObserved(PassPipeline pipeline, const OptSettings& s, const CompileSettings& dumps, Module& module,
                         PassContext& context) {
  Dump dump(dumps.dump_dir, module.name());
  STROP_ASSIGN(XlaDump xla_dump, XlaDump::Create(dumps.xla_dump, module));
  STROP_TRY(dump.Module("imported", module));
  STROP_TRY(xla_dump.BeforeOptimizations(module));
  Status dumped;
  pipeline.set_observer([&](std::string_view name, std::string_view pass, const Module& m, bool changed) {
    if (s.print_after_all || (s.print_changed && changed))
      std::fprintf(stderr, "// after %s%s\n%s\n", std::string(pass).c_str(), changed ? "" : ", which changed nothing",
                   m.ToString().c_str());
    if (dumped.ok() && changed) dumped = dump.Module(pass, m);
    if (dumped.ok()) dumped = xla_dump.AfterPass(name, pass, m);
  });
  STROP_ASSIGN(const bool changed, pipeline.Run(module, context));
  STROP_TRY(std::move(dumped));
  STROP_TRY(xla_dump.AfterOptimizations(module, pipeline.name()));
  return changed;
}

void PrintSchedule(const std::vector<ScheduleDecision>& decisions) {
  for (const ScheduleDecision& d : decisions)
    std::fprintf(stderr, "%%%s: scheduled %s, %lld bytes alive at most (as written %lld)\n",
                 d.computation->name().c_str(), std::string(Name(d.order)).c_str(), static_cast<long long>(d.peak),
                 static_cast<long long>(d.written_peak));
}

}  // namespace

Status RunOpt(Arguments& arguments) {
  STROP_ASSIGN(OptSettings s, TakeSettings(arguments));
  if (arguments.TakeFlag("--list-rules")) {
    STROP_TRY(arguments.Files(0, 0));
    std::string names;
    for (std::string_view name : simplify::RuleNames()) names += StrCat(name, "\n");
    return WriteFile("-", names);
  }
  if (arguments.TakeFlag("--list-passes")) {
    STROP_TRY(arguments.Files(0, 0));
    return WriteFile("-", PassList(s.libraries.passes()));
  }
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));

  PassPipeline pipeline("opt");
  STROP_ASSIGN(const CompileSettings settings, SettingsFrom(arguments.options()));
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend));
  if (s.passes.empty() && !s.schedule) {
    pipeline = CompilePipeline(*backend, settings);
  } else {
    STROP_ASSIGN(pipeline, PassPipeline::FromNames("opt", s.passes, s.libraries.passes()));
  }
  const std::unique_ptr<Module> before = s.compare ? module->Clone() : nullptr;
  const std::string given = s.stats ? StatisticsJson(*module) : "";
  PassContext context(s.options);
  Result<bool> changed = RunObserved(std::move(pipeline), s, settings, *module, context);
  PrintReport(context, s.timing, s.explain);
  STROP_TRY(changed);
  if (s.schedule) {
    std::vector<ScheduleDecision> decisions;
    STROP_TRY(ScheduleModule(*module, &decisions));
    if (s.explain) PrintSchedule(decisions);
  }
  if (s.compare) {
    // Arguments and results of both in the layouts of the entry.
    if (HasPhysicalEntry(*module) && !HasPhysicalEntry(*before)) {
      PassPipeline layouts("compare");
      layouts.Add(PassId::LayoutNormalization);
      PassContext alone;
      STROP_TRY(layouts.Run(*before, alone));
    }
    STROP_TRY(CheckSameResults(*before, *module, s.seed));
  }
  if (s.stats) return PrintStatistics(given, *module, *backend);
  return WriteFile("-", module->ToString() + "\n");
}

}  // namespace strop::tools
