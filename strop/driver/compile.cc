#include "strop/driver/compile.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>

#include "strop/analysis/trip_count.h"
#include "strop/base/host_limits.h"
#include "strop/base/log.h"
#include "strop/driver/bind.h"
#include "strop/driver/dump.h"
#include "strop/driver/pipeline.h"
#include "strop/driver/reproducer.h"
#include "strop/driver/xla_dump.h"
#include "strop/ir/verifier.h"
#include "strop/plan/plan.h"

namespace strop {
namespace {

class Clock {
 public:
  explicit Clock(std::vector<Timing>& timings) : timings_(timings) {}
  void Lap(std::string phase) {
    auto now = std::chrono::steady_clock::now();
    timings_.push_back({std::move(phase), std::chrono::duration<double, std::milli>(now - last_).count()});
    last_ = now;
  }

 private:
  std::vector<Timing>& timings_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

bool HasUnbounded(const Shape& shape) {
  if (shape.IsTuple()) return std::any_of(shape.elements().begin(), shape.elements().end(), HasUnbounded);
  const Int64Vector& dims = shape.dims();
  return std::find(dims.begin(), dims.end(), kUnboundedSize) != dims.end();
}

// Buffers are planned before the first run, so every size must have a bound.
Status RefuseUnbounded(const Module& module) {
  for (const Computation* computation : module.computations())
    for (const Instruction* i : computation->instructions())
      if (HasUnbounded(i->shape()))
        return Unimplemented(Name(i->op()), " %", i->name(), " is ", i->shape(),
                             ": a size that only a run tells cannot be compiled; give the program static shapes")
            .At(i->Where());
  return OkStatus();
}

// What a program that comes in says of its loops is not to be trusted.
void ForgetIndependentTrips(Module& module) {
  for (Computation* computation : module.computations())
    for (Instruction* i : computation->instructions())
      if (i->op() == Op::While) ForgetIndependentTrips(i);
}

Result<Plan> PlanFor(Module& module, const TargetInfo& target, const CompileSettings& options,
                     Explanation& explanation) {
  if (options.memory_limit.empty()) return BuildPlan(module, target, options.explain);
  STROP_ASSIGN(const int64_t limit, ParseMemorySize(options.memory_limit));
  STROP_ASSIGN(Plan plan, BuildPlanWithin(module, target, limit, options.explain, &explanation.recomputed));
  for (const Recomputation& r : explanation.recomputed) STROP_LOG_AT(2, "memory limit: ", r.ToString());
  return plan;
}

TargetInfo WithoutRegions(TargetInfo target) {
  target.joins_region = nullptr;
  return target;
}

Result<std::shared_ptr<const CompiledProgram>> RunPhases(std::unique_ptr<Module> module, const Backend& backend,
                                                         const CompileSettings& options) {
  auto program = std::make_shared<CompiledProgram>();
  Clock clock(program->timings);
  Dump dump(options.dump_dir, module->name());
  STROP_ASSIGN(XlaDump xla_dump, XlaDump::Create(options.xla_dump, *module));
  Explanation& explanation = program->explanation;

  STROP_TRY(VerifyModule(*module));
  STROP_TRY(RefuseUnbounded(*module));
  STROP_TRY(dump.Module("imported", *module));
  STROP_TRY(xla_dump.BeforeOptimizations(*module));
  STROP_ASSIGN(program->snapshots, xla_dump.MakeSnapshots(*module, backend.name()));

  ForgetIndependentTrips(*module);

  // ---- optimise: the same program, in fewer and simpler instructions
  PassOptions pass_options;
  pass_options.disabled_passes = options.disabled_passes;
  pass_options.verify_each = options.verify_each;
  pass_options.call_owners = options.call_owners;
  PassContext context(pass_options);
  PassPipeline pipeline = CompilePipeline(backend, options);
  if (dump.on() || xla_dump.on())
    pipeline.set_observer([&](std::string_view name, std::string_view pass, const Module& m, bool changed) {
      // A dump that fails here must not stop the compilation: the first file has reported the folder already.
      if (changed) (void)dump.Module(pass, m).ok();
      (void)xla_dump.AfterPass(name, pass, m).ok();
    });
  STROP_TRY(pipeline.Run(*module, context));
  module->set_stage(Stage::LaidOut);  // from here on every array is row-major
  clock.Lap("passes");

  // ---- plan: from here on instructions are only grouped and ordered
  STROP_TRY(FuseModule(*module, backend.target(), options.explain ? &explanation.fusion_limits : nullptr));
  STROP_TRY(ScheduleModule(*module, options.explain ? &explanation.schedule : nullptr));
  if (options.verify_each) STROP_TRY(VerifyModule(*module));
  STROP_TRY(dump.Module("scheduled", *module));
  STROP_ASSIGN(Plan plan, PlanFor(*module, backend.target(), options, explanation));
  if (options.verify_each) STROP_TRY(VerifyModule(*module));
  if (!explanation.recomputed.empty()) STROP_TRY(dump.Module("rematerialized", *module));
  STROP_TRY(xla_dump.AfterOptimizations(*module, backend.name()));
  STROP_TRY(dump.Text("plan.txt", [&] { return plan.ToString(); }));
  STROP_TRY(xla_dump.Text(StrCat(backend.name(), "_after_optimizations-plan"), [&] { return plan.ToString(); }));
  clock.Lap("plan");

  // ---- code: from here on the module is only looked at
  program->cost = CostOf(*module);
  STROP_TRY(BindCustomCalls(plan, options));
  Status bound = BindKernels(plan, backend, options, explanation);
  if (bound.code() == StatusCode::kUnimplemented && plan.has_regions()) {
    // A region that is too much for the backend as a whole: its steps run one by one.
    STROP_ASSIGN(plan, PlanFor(*module, WithoutRegions(backend.target()), options, explanation));
    STROP_TRY(dump.Text("plan.txt", [&] { return plan.ToString(); }));
    STROP_TRY(BindCustomCalls(plan, options));
    bound = BindKernels(plan, backend, options, explanation);
  }
  STROP_TRY(std::move(bound));
  if (options.explain) {
    program->plan_text = plan.ToString();
    explanation.copies = std::move(plan.copies);
    explanation.memory = std::move(plan.memory);
  }
  STROP_ASSIGN(program->executable, Executable::Create(std::move(plan.spec)));
  program->entry = module->EffectiveEntryLayout();
  program->module = std::make_unique<ProgramModule>(std::move(module));
  clock.Lap("codegen");

  for (const std::string& line : explanation.interpreted) STROP_LOG_AT(1, "interpreted: ", line);
  return std::shared_ptr<const CompiledProgram>(std::move(program));
}

// Leaves a reproducer where one is wanted, and returns what the error then says; whatever goes wrong with it is not the
// program's fault.
Status Reproduce(const CompileSettings& options, const Backend& backend, Status status, double milliseconds) {
  if (!options.reload || !WantsReproducer(options.reproducers, status, milliseconds)) return status;
  const Result<std::unique_ptr<Module>> module = options.reload();
  if (!module.ok()) return status;
  std::string why = status.ok() ? StrCat("compiling took ", milliseconds, " ms") : status.ToString();
  if (!options.disabled_passes.empty()) StrAppend(why, "\nwithout the passes ", Join(options.disabled_passes, ", "));
  const std::string path = WriteReproducer(options.reproducers, **module, backend.name(), why);
  if (path.empty()) return status;
  STROP_LOG_AT(1, "a program to repeat this is in ", path);
  return status.ok() ? status : std::move(status).Note(StrCat("a program to repeat this is in ", path));
}

Result<Tier> TierOf(std::string_view name, Tier otherwise) {
  if (name.empty()) return otherwise;
  for (const auto& [known, tier] :
       {std::pair{"auto", Tier::kAuto}, {"optimizing", Tier::kOptimizing}, {"baseline", Tier::kBaseline}})
    if (name == known) return tier;
  return InvalidArgument("option tier: \"", CEscape(name), "\" is not auto, optimizing or baseline");
}

// A mistake of ours must not end the process that compiles.
Result<std::shared_ptr<const CompiledProgram>> RunPhasesCaught(std::unique_ptr<Module> module, const Backend& backend,
                                                               const CompileSettings& options) {
  try {
    return RunPhases(std::move(module), backend, options);
  } catch (const std::exception& e) {
    return Internal("compiling threw: ", e.what());
  }
}

}  // namespace

Result<CompileSettings> SettingsFrom(const Options& options, Tier tier) {
  CompileSettings settings;
  STROP_ASSIGN(settings.tier, TierOf(options.tier, tier));
  settings.dump_dir = options.dump;
  settings.xla_dump = {.to = options.xla_dump_to,
                       .module_re = options.xla_dump_hlo_module_re,
                       .pass_re = options.xla_dump_hlo_pass_re,
                       .as_text = options.xla_dump_hlo_as_text,
                       .as_proto = options.xla_dump_hlo_as_proto,
                       .as_dot = options.xla_dump_hlo_as_dot,
                       .as_html = options.xla_dump_hlo_as_html,
                       .as_url = options.xla_dump_hlo_as_url,
                       .large_constants = options.xla_dump_large_constants,
                       .snapshots = options.xla_dump_hlo_snapshots};
  settings.reproducers = ReproducersFrom(options);
  settings.cache = {options.cache_dir, options.cache_megabytes << 20};
  settings.lapack_library = options.lapack_library;
  settings.memory_limit = options.memory_limit;
  settings.pool = &ThreadPool::OfSize(static_cast<int>(options.num_threads));
  return settings;
}

Result<std::shared_ptr<const CompiledProgram>> Compile(std::unique_ptr<Module> module, const Backend& backend,
                                                       const CompileSettings& options) {
  const auto start = std::chrono::steady_clock::now();
  Result<std::shared_ptr<const CompiledProgram>> program = RunPhasesCaught(std::move(module), backend, options);
  const auto took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start);
  Status status = Reproduce(options, backend, program.status(), took.count());
  if (!status.ok()) return status;
  return program;
}

}  // namespace strop
