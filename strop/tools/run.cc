// strop run: evaluates a program and shows, writes or checks its results.
//
// A file may hold several programs (StableHLO text split at `// -----`); each is run. Programs with check.expect_*
// state their own results: the first check that fails makes the exit code 1.
#include <zlib.h>

#include <chrono>
#include <cstdio>

#include "strop/base/mapped_file.h"
#include "strop/driver/load.h"
#include "strop/driver/pass_libraries.h"
#include "strop/interp/interpreter.h"
#include "strop/passes/pipeline.h"
#include "strop/proto/module_proto.h"
#include "strop/runtime/artifact.h"
#include "strop/tools/checks.h"
#include "strop/tools/command.h"
#include "strop/tools/execute.h"
#include "strop/tools/inputs.h"
#include "strop/tools/same_results.h"

namespace strop::tools {

namespace {

struct RunSettings {
  std::string backend;  // "interp" or one of Backends()
  InputSource inputs;
  std::string out;
  bool check = false;  // having no check is an error
  bool time = false;
  int64_t runs = 1;
  int64_t max_loop_iterations = -1;
  bool compare = false;        // with what the evaluator says of the program as it came
  PassPipeline passes{"run"};  // run before anything else
  CompileSettings compile;
};

class Clock {
 public:
  double Milliseconds() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

struct RunResult {
  Literal value;
  std::vector<CheckOutcome> checks;
  double compile_ms = 0, first_ms = 0, best_ms = 0;
};

template <class F>
Status TimeRuns(int64_t runs, RunResult* out, F&& run) {
  for (int64_t i = 0; i < runs; ++i) {
    Clock clock;
    STROP_TRY(run());
    const double ms = clock.Milliseconds();
    if (i == 0) out->first_ms = out->best_ms = ms;
    out->best_ms = std::min(out->best_ms, ms);
  }
  return OkStatus();
}

Result<RunResult> Interpret(const Module& module, std::span<const Literal> inputs, const RunSettings& settings) {
  RunResult out;
  InterpretOptions options;
  options.max_loop_iterations = settings.max_loop_iterations;
  options.rng_seed = settings.inputs.seed;
  options.custom_call = [&settings](const Instruction& call, std::span<const Literal> operands, Literal* result) {
    STROP_ASSIGN(*result, RunCustomCall(call, operands, settings.compile));
    return OkStatus();
  };
  Interpreter interpreter(std::move(options));
  STROP_TRY(TimeRuns(settings.runs, &out, [&]() -> Status {
    STROP_ASSIGN(out.value, interpreter.Evaluate(module, inputs));
    return OkStatus();
  }));
  STROP_ASSIGN(out.value, PadToBounds(out.value, module.entry()->root()->shape()));
  out.checks = interpreter.checks();
  return out;
}

Result<RunResult> CompileAndRun(std::unique_ptr<Module> module, std::span<const Literal> inputs,
                                const RunSettings& settings) {
  RunResult out;
  STROP_ASSIGN(const Backend* backend, FindBackend(settings.backend));
  STROP_ASSIGN(ExtractedChecks checks, ExtractedChecks::From(*module));
  Clock clock;
  STROP_ASSIGN(Program program, Program::Compile(std::move(module), *backend, settings.compile));
  out.compile_ms = clock.Milliseconds();
  STROP_TRY(TimeRuns(settings.runs, &out, [&]() -> Status {
    STROP_ASSIGN(out.value, program.Run(inputs));
    return OkStatus();
  }));
  STROP_ASSIGN(out.value, checks.Compare(out.value, &out.checks));
  return out;
}

// Small arrays are written out; of large ones, what tells two apart.
void Show(const Literal& array, size_t number) {
  const std::string shape = array.shape().ToString();
  if (array.num_elements() <= 256) {
    std::printf("out%zu: %s %s\n", number, shape.c_str(), array.ToString().c_str());
    return;
  }
  double sum = 0, low = array.GetDouble(0), high = low;
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    const double v = array.GetDouble(i);
    sum += v;
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  const std::span<const uint8_t> bytes = array.bytes();
  std::printf("out%zu: %s sum %.10g, min %.10g, max %.10g, crc32 0x%08lx\n", number, shape.c_str(), sum, low, high,
              static_cast<unsigned long>(crc32_z(0, bytes.data(), bytes.size())));
}

Status Report(const RunResult& result, const Shape& layout, const RunSettings& settings, std::string_view program) {
  if (settings.time)
    std::fprintf(stderr, "%s: compile %.3f ms, first run %.3f ms, best of %lld %.3f ms\n", std::string(program).c_str(),
                 result.compile_ms, result.first_ms, static_cast<long long>(settings.runs), result.best_ms);
  size_t failed = 0;
  for (const CheckOutcome& check : result.checks) {
    if (check.passed) continue;
    ++failed;
    std::fprintf(stderr, "%s: %s failed: %s\n", std::string(program).c_str(), check.check.c_str(),
                 check.message.c_str());
  }
  if (failed) return FailedPrecondition(failed, " of ", result.checks.size(), " checks failed");
  if (settings.check && result.checks.empty()) return InvalidArgument("--check: ", program, " ran no check");
  if (!settings.out.empty()) return WriteOutputs(result.value, layout, settings.out);
  if (!result.checks.empty()) {
    std::printf("%zu checks passed\n", result.checks.size());
    return OkStatus();
  }
  size_t number = 0;
  for (const Literal& array : ArraysOf(result.value)) Show(array, number++);
  return OkStatus();
}

Result<RunSettings> TakeSettings(Arguments& arguments) {
  RunSettings s;
  s.backend = arguments.options().backend;
  if (arguments.TakeFlag("--interpret")) s.backend = "interp";
  for (std::string_view flag : {"--in", "--npz"})
    for (;;) {
      STROP_ASSIGN(std::string path, arguments.TakeValue(flag));
      if (path.empty()) break;
      s.inputs.paths.push_back(path);
    }
  s.inputs.random = arguments.TakeFlag("--random-inputs");
  STROP_ASSIGN(std::string seed, arguments.TakeValue("--random-inputs"));
  if (!seed.empty()) {
    const auto number = ParseNumber<uint64_t>(seed);
    if (!number) return InvalidArgument("--random-inputs=", seed, " is not a whole number");
    s.inputs.random = true;
    s.inputs.seed = *number;
  }
  STROP_ASSIGN(s.out, arguments.TakeValue("--out"));
  if (!s.out.empty()) STROP_TRY(CheckOutputPath(s.out));
  s.check = arguments.TakeFlag("--check");
  s.time = arguments.TakeFlag("--time");
  STROP_ASSIGN(s.runs, arguments.TakeInt("--runs", 1, 1));
  STROP_ASSIGN(s.max_loop_iterations, arguments.TakeInt("--max-loop-iterations", -1, 0));
  if (s.max_loop_iterations >= 0 && s.backend != "interp")
    return InvalidArgument("--max-loop-iterations counts loops of the evaluator: add --interpret");
  if (s.backend != "interp") STROP_TRY(FindBackend(s.backend));
  s.compare = arguments.TakeFlag("--compare");
  STROP_ASSIGN(const PassLibraries libraries, TakeLibraries(arguments));
  STROP_ASSIGN(const std::string passes, arguments.TakeValue("--passes"));
  STROP_ASSIGN(s.passes, PassPipeline::FromNames("run", passes, libraries.passes()));
  STROP_ASSIGN(s.compile, SettingsFrom(arguments.options()));
  return s;
}

Status RunPasses(Module& module, const PassPipeline& passes) {
  PassOptions options;
  options.verify_each = true;
  PassContext context(options);
  return passes.Run(module, context).status();
}

Status Compare(const Module& original, std::span<const Literal> inputs, const RunSettings& settings,
               const Literal& value) {
  Result<RunResult> evaluated = Interpret(original, inputs, settings);
  if (!evaluated.ok()) return std::move(evaluated).status().Note("while evaluating the program to compare with");
  const std::string difference = FirstDifference(evaluated->value, value);
  if (difference.empty()) return OkStatus();
  return FailedPrecondition("the result differs from what the evaluator gives: ", difference);
}

// A snapshot brings its arguments along.
Result<std::vector<Literal>> InputsOf(const Module& module, const InputSource& source, std::string_view bytes) {
  if (source.paths.empty() && !source.random && FormatOf(bytes) == ProgramFormat::HloProto) {
    STROP_ASSIGN(std::vector<Literal> arguments, ParseSnapshotArguments(bytes));
    bool fit = arguments.size() == module.entry()->parameters().size() && !arguments.empty();
    for (size_t k = 0; fit && k < arguments.size(); ++k)
      fit = arguments[k].shape().Compatible(module.entry()->parameter(static_cast<int64_t>(k))->shape());
    if (fit) return arguments;
  }
  return MakeInputs(module, source);
}

// interpreter.run_parallel names programs of several processes, which are no single executable.
bool IsGridProgram(const Module& module) {
  for (const Instruction* i : module.entry()->instructions())
    if (i->op() == Op::CustomCall && i->attrs<CustomCallAttrs>().target == "interpreter.run_parallel") return true;
  return false;
}

// The program of an artifact, which is loaded, not compiled. Its arguments are made for a module that has nothing else.
Status RunArtifact(const std::string& path, const MappedFile& file, const RunSettings& settings) {
  if (settings.backend == "interp" || settings.compare)
    return InvalidArgument(path, " is compiled: there is no program to evaluate");
  STROP_ASSIGN(const Backend* backend, FindBackend(settings.backend));
  RunResult out;
  Clock clock;
  STROP_ASSIGN(const Program program, Program::Load(file.bytes, file.owner, *backend, settings.compile));
  out.compile_ms = clock.Milliseconds();
  Module module("arguments");
  Computation* entry = module.AddComputation("main");
  for (const Shape& shape : program.compiled().entry.parameters)
    entry->AddParameter(entry->parameter_count(), shape.WithoutLayout());
  module.set_entry(entry);
  STROP_ASSIGN(const std::vector<Literal> inputs, MakeInputs(module, settings.inputs));
  STROP_TRY(TimeRuns(settings.runs, &out, [&]() -> Status {
    STROP_ASSIGN(out.value, program.Run(inputs));
    return OkStatus();
  }));
  return Report(out, program.compiled().entry.result, settings, path);
}

}  // namespace

Status RunRun(Arguments& arguments) {
  STROP_ASSIGN(RunSettings settings, TakeSettings(arguments));
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, 1));
  if (files[0] != "-") {
    const Result<MappedFile> file = MapFile(files[0]);
    if (file.ok() && IsArtifact(file->bytes)) {
      Status ran = RunArtifact(files[0], *file, settings);
      return ran.ok() ? ran : std::move(ran).Note(StrCat("while running ", files[0]));
    }
  }
  STROP_ASSIGN(std::string bytes, ReadFile(files[0]));
  STROP_ASSIGN(std::vector<std::unique_ptr<Module>> modules, LoadPrograms(bytes, files[0]));
  Status first;
  for (std::unique_ptr<Module>& module : modules) {
    const std::string name = modules.size() > 1 ? StrCat(files[0], " (", module->name(), ")") : files[0];
    Status status = [&]() -> Status {
      STROP_TRY(VerifyLoaded(*module, bytes, files[0]));
      STROP_ASSIGN(std::vector<Literal> inputs, InputsOf(*module, settings.inputs, bytes));
      if (modules.size() == 1) {
        STROP_ASSIGN(module, LoadProgramFor(inputs, std::move(module), bytes, files[0]));
      }
      settings.compile.reload = [module = std::shared_ptr<const Module>(module->Clone())] {
        return Result<std::unique_ptr<Module>>(module->Clone());
      };
      const Shape layout = module->EffectiveEntryLayout().result;
      const bool grid = IsGridProgram(*module);
      if (grid && settings.backend != "interp")
        std::fprintf(stderr, "%s: programs of several processes: evaluated, not compiled\n", name.c_str());
      const std::unique_ptr<Module> original = settings.compare ? module->Clone() : nullptr;
      STROP_TRY(RunPasses(*module, settings.passes));
      Result<RunResult> result = grid || settings.backend == "interp"
                                     ? Interpret(*module, inputs, settings)
                                     : CompileAndRun(std::move(module), inputs, settings);
      STROP_TRY(result);
      if (original) STROP_TRY(Compare(*original, inputs, settings, result->value));
      return Report(*result, layout, settings, name);
    }();
    if (!status.ok() && first.ok()) first = std::move(status).Note(StrCat("while running ", name));
  }
  return first;
}

}  // namespace strop::tools
