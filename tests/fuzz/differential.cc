// The comparison: integers, predicates and moved elements bit for bit, floating-point results within a few units in the
// last place. Where that fails and the module rounds anywhere, conditioning.h says how much the difference means.
#include "tests/fuzz/differential.h"

#include <cmath>
#include <functional>

#include "strop/interp/interpreter.h"
#include "strop/ir/printer.h"
#include "strop/ir/verifier.h"
#include "strop/proto/module_proto.h"
#include "strop/text/parser.h"
#include "strop/tools/execute.h"
#include "tests/fuzz/conditioning.h"
#include "tests/fuzz/random.h"
#include "tests/fuzz/settings.h"
#include "tests/fuzz/shardings.h"
#include "tests/fuzz/values.h"

namespace strop::fuzz {
namespace {

constexpr double kUlps = 4;  // allowed without asking for the conditioning
constexpr uint64_t kNoiseRuns = 128;
constexpr uint64_t kSignRuns = 512;   // further ones, in which no number moves, only signs of NaN and zero
constexpr double kNoiseMargin = 2;    // times what noise did
constexpr int64_t kMaxTrips = 10000;  // of a loop: beyond, the module is left out before it takes a minute

double UnitOfLastPlace(ElementType type, double value) {
  const FloatFormat& f = FormatOf(type);
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent - 1, 1 - f.bias) - f.mantissa_bits);
}

// Distance of two numbers in units in the last place; infinite if only one is NaN, or one infinite.
double Distance(ElementType type, double a, double b, double scale) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : INFINITY;
  if (a == b) return 0;
  if (std::isinf(a) || std::isinf(b)) return INFINITY;
  return std::fabs(a - b) / UnitOfLastPlace(type, std::max({std::fabs(a), std::fabs(b), scale}));
}

// A number that noise takes half of the digits from says nothing: it comes from elsewhere (as after a sort), or from a
// difference of large ones, and the next noise might move it anywhere.
double Meaningless(ElementType type) {
  if (IsComplex(type)) type = ComplexPart(type);
  return IsFloat(type) ? std::max(std::ldexp(1.0, FormatOf(type).mantissa_bits / 2), 64.0) : 0;
}

double ElementDistance(const Literal& a, const Literal& b, int64_t i) {
  const ElementType type = a.type();
  if (IsFloat(type)) return Distance(type, a.GetDouble(i), b.GetDouble(i), 0);
  if (!IsComplex(type)) return a.GetInt(i) == b.GetInt(i) ? 0 : INFINITY;
  const ElementType part = ComplexPart(type);
  const std::complex<double> x = a.GetComplex(i), y = b.GetComplex(i);
  const double scale = std::isfinite(std::abs(x)) ? std::abs(x) : 0;
  return std::max(Distance(part, x.real(), y.real(), scale), Distance(part, x.imag(), y.imag(), scale));
}

// The arrays of a value, depth first.
void ForEachArray(const Literal& value, const std::function<void(const Literal&)>& fn) {
  if (value.shape().IsTuple())
    for (const Literal& element : value.elements()) ForEachArray(element, fn);
  else if (value.shape().IsArray())
    fn(value);
}

std::vector<Literal> Arrays(const Literal& value) {
  std::vector<Literal> arrays;
  ForEachArray(value, [&](const Literal& array) { arrays.push_back(array); });
  return arrays;
}

// Allowed distance by array and element.
using Tolerances = std::vector<std::vector<double>>;

std::string FirstDifference(const std::vector<Literal>& got, const std::vector<Literal>& wanted,
                            const Tolerances* tolerances) {
  if (got.size() != wanted.size()) return StrCat(got.size(), " results instead of ", wanted.size());
  for (size_t k = 0; k < got.size(); ++k) {
    if (!got[k].shape().Compatible(wanted[k].shape()))
      return StrCat("result ", k, " is ", got[k].shape(), " instead of ", wanted[k].shape());
    for (int64_t i = 0; i < got[k].num_elements(); ++i) {
      const double distance = ElementDistance(got[k], wanted[k], i);
      const double allowed = tolerances ? (*tolerances)[k][static_cast<size_t>(i)] : kUlps;
      if (distance > allowed)
        return StrCat("result ", k, ", ", wanted[k].shape(), " at ", i, ": ", ElementToString(got[k], i),
                      " instead of the evaluator's ", ElementToString(wanted[k], i), " (", distance, " ulp, ", allowed,
                      " allowed)");
    }
  }
  return "";
}

Result<Literal> Evaluate(const Module& module, const std::vector<Literal>& arguments) {
  InterpretOptions options;
  options.max_loop_iterations = kMaxTrips;
  return Interpreter(options).Evaluate(module, arguments);
}

// Of results with those wanted. Noise is made as long as a difference is larger than what it does.
class Comparison {
 public:
  Comparison(const Module& module, const std::vector<Literal>& arguments, const std::vector<Literal>& wanted)
      : module_(module), arguments_(arguments), wanted_(wanted) {}
  bool conditioned() const { return runs_ > 0; }

  // Empty: none that means anything.
  Result<std::string> Difference(const std::vector<Literal>& got) {
    std::string difference = FirstDifference(got, wanted_, conditioned() ? &tolerances_ : nullptr);
    if (!AnyRounds(module_)) return difference;
    while (!difference.empty() && runs_ < kNoiseRuns + kSignRuns) {
      STROP_TRY(Widen());
      difference = FirstDifference(got, wanted_, &tolerances_);
    }
    return difference;
  }

 private:
  Status Widen() {
    if (tolerances_.empty())
      for (const Literal& array : wanted_) tolerances_.emplace_back(static_cast<size_t>(array.num_elements()), kUlps);
    const double ulps = runs_ < kNoiseRuns ? static_cast<double>(1 << (runs_ % 4)) : 0;
    std::unique_ptr<Module> noisy = WithNoise(module_, ulps, runs_);
    ++runs_;
    STROP_TRY(VerifyModule(*noisy));
    Result<Literal> value = Evaluate(*noisy, arguments_);
    // Noise in what a loop begins with may make trips without end: a run that says nothing.
    if (!value.ok()) return value.status().code() == StatusCode::kInternal ? value.status() : OkStatus();
    const std::vector<Literal> arrays = Arrays(*value);
    for (size_t k = 0; k < wanted_.size(); ++k)
      for (int64_t i = 0; i < wanted_[k].num_elements(); ++i) {
        double& allowed = tolerances_[k][static_cast<size_t>(i)];
        const double moved = ElementDistance(arrays[k], wanted_[k], i);
        allowed = std::max(allowed, moved > Meaningless(wanted_[k].type()) ? INFINITY : kUlps + kNoiseMargin * moved);
      }
    return OkStatus();
  }

  const Module& module_;
  const std::vector<Literal>& arguments_;
  const std::vector<Literal>& wanted_;
  uint64_t runs_ = 0;
  Tolerances tolerances_;
};

std::string RoundTrips(const Module& module) {
  const std::string text = PrintModule(module);
  Result<std::unique_ptr<Module>> parsed = ParseHloModule(text);
  if (!parsed.ok()) return StrCat("text is not read: ", parsed.status().ToString());
  if (Status legal = VerifyModule(**parsed); !legal.ok()) return StrCat("text is illegal: ", legal.ToString());
  const std::string again = PrintModule(**parsed);
  if (again != text) return StrCat("text changes when it is read and printed:\n", again);
  Result<std::string> bytes = SerializeModuleProto(module);
  if (!bytes.ok()) return StrCat("no proto: ", bytes.status().ToString());
  parsed = ParseModuleProto(*bytes);
  if (!parsed.ok()) return StrCat("proto is not read: ", parsed.status().ToString());
  // A proto gives every array a layout.
  PrintOptions plain;
  plain.layouts = false;
  const std::string through_proto = PrintModule(**parsed, plain);
  if (through_proto != PrintModule(module, plain)) return StrCat("text changes by way of the proto:\n", through_proto);
  return "";
}

Result<Literal> RunCompiled(const Module& module, const std::vector<Literal>& arguments, const Backend& behind,
                            const Setting& setting) {
  SettingBackend backend(behind, setting);
  STROP_ASSIGN(tools::Program program, tools::Program::Compile(module.Clone(), backend, backend.compile_settings()));
  return program.Run(arguments);
}

Outcome Differs(std::string text) { return {Verdict::kDiffers, std::move(text)}; }

}  // namespace

Outcome CheckModule(const Module& module, uint64_t seed, const DifferentialOptions& options) {
  if (Status legal = VerifyModule(module); !legal.ok()) return Differs(StrCat("illegal: ", legal.ToString()));
  if (std::string changed = RoundTrips(module); !changed.empty()) return Differs(changed);
  const std::vector<Literal> arguments = RandomArguments(module, seed, options.tame);
  Result<Literal> value = Evaluate(module, arguments);
  if (!value.ok()) {
    const bool refused = value.status().code() != StatusCode::kInternal;
    return {refused ? Verdict::kSkipped : Verdict::kDiffers, StrCat("evaluator: ", value.status().ToString())};
  }
  const std::vector<Literal> wanted = Arrays(*value);
  Result<const Backend*> backend = FindBackend(options.backend);
  if (!backend.ok()) return Differs(backend.status().ToString());

  Outcome outcome;
  Comparison comparison(module, arguments, wanted);
  const std::vector<Setting>& settings = Settings();
  // Threads run the default's kernels, which is cheap to see: more often.
  static constexpr int kShare[] = {4, 4, 3, 1, 2};
  const size_t second = 1 + Random(seed).Weighted(kShare);
  for (size_t n = 0; n < settings.size(); ++n) {
    const Setting& setting = settings[n];
    if (!options.setting.empty() && options.setting != setting.name) continue;
    const bool chosen = n == 0 || n == second || !options.setting.empty();
    if (!chosen && !options.every_setting) continue;
    Result<Literal> got = RunCompiled(module, arguments, **backend, setting);
    if (!got.ok()) return Differs(StrCat(setting.name, ": ", got.status().ToString()));
    Result<std::string> difference = comparison.Difference(Arrays(*got));
    if (!difference.ok()) return Differs(StrCat("with noise: ", difference.status().ToString()));
    if (!difference->empty()) return Differs(StrCat(setting.name, ": ", *difference));
  }
  outcome.conditioned = comparison.conditioned();
  return outcome;
}

Outcome CheckShardings(const Module& module, uint64_t seed, const DifferentialOptions& options) {
  const std::unique_ptr<Module> sharded =
      module.config().num_partitions > 1 ? module.Clone() : WithShardings(module, seed);
  if (!sharded) return {Verdict::kSkipped, "the module says on which device it is"};
  Result<std::unique_ptr<Module>> single = OnOneDevice(*sharded);
  if (!single.ok()) return Differs(single.status().ToString());
  const std::vector<Literal> arguments = RandomArguments(**single, seed, options.tame);
  Result<Literal> value = Evaluate(**single, arguments);
  if (!value.ok()) return {Verdict::kSkipped, StrCat("evaluator: ", value.status().ToString())};
  Result<const Backend*> backend = FindBackend(options.backend);
  if (!backend.ok()) return Differs(backend.status().ToString());
  Result<Literal> got = RunOnDevices(*sharded, arguments, **backend);
  if (!got.ok()) return Differs(StrCat("on devices: ", got.status().ToString()));
  const std::vector<Literal> wanted = Arrays(*value);
  Comparison comparison(**single, arguments, wanted);
  Result<std::string> difference = comparison.Difference(Arrays(*got));
  if (!difference.ok()) return Differs(StrCat("with noise: ", difference.status().ToString()));
  if (!difference->empty()) return Differs(StrCat("on devices: ", *difference));
  Outcome outcome;
  outcome.conditioned = comparison.conditioned();
  return outcome;
}

Outcome CheckMistake(const Module& module, Mistake mistake, uint64_t seed, const DifferentialOptions& options) {
  const Outcome skipped{Verdict::kSkipped, "nothing shows it"};
  const std::unique_ptr<Module> mistaken = WithMistake(module, mistake, seed);
  if (!mistaken || !VerifyModule(*mistaken).ok()) return skipped;
  const std::vector<Literal> arguments = RandomArguments(module, seed, options.tame);
  const Result<Literal> right = Evaluate(module, arguments);
  const Result<Literal> wrong = Evaluate(*mistaken, arguments);
  if (!right.ok() || !wrong.ok()) return skipped;
  const std::vector<Literal> wanted = Arrays(*right), got = Arrays(*wrong);
  if (FirstDifference(got, wanted, nullptr).empty()) return skipped;
  const Result<std::string> difference = Comparison(module, arguments, wanted).Difference(got);
  if (!difference.ok()) return skipped;
  return difference->empty() ? Outcome{} : Differs(*difference);
}

}  // namespace strop::fuzz
