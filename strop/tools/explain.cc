// strop explain: compiles a program and says what stands between it and the hardware.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <unordered_map>

#include "strop/tools/checks.h"
#include "strop/tools/command.h"
#include "strop/tools/execute.h"
#include "strop/tools/explain_report.h"
#include "strop/tools/inputs.h"

namespace strop::tools {
namespace {

constexpr size_t kMostRows = 12;  // of a list without --all

enum class Format : uint8_t { kText, kJson, kHtml };

struct ExplainSettings {
  Format format = Format::kText;
  std::string out;
  bool plan = false, all = false, memory = false;
  int64_t runs = 0;     // 0: not run
  std::string machine;  // by name; empty: this one
  MachinePeaks peaks;   // given by the user
  LinkModel link;
  Topology topology;
};

// Two positive numbers, "A,B".
std::optional<std::pair<double, double>> ParsePair(const std::string& text) {
  const size_t comma = text.find(',');
  char* end = nullptr;
  const double first = std::strtod(text.c_str(), &end);
  const bool ok = comma != text.npos && end == text.c_str() + comma;
  const double second = ok ? std::strtod(text.c_str() + comma + 1, &end) : 0;
  if (!ok || *end != 0 || !(first > 0) || !(second > 0)) return std::nullopt;
  return std::pair(first, second);
}

// "--peak=GFLOPS,GBPS"
Result<MachinePeaks> ParsePeaks(const std::string& text) {
  MachinePeaks peaks;
  const auto pair = ParsePair(text);
  if (!pair)
    return InvalidArgument("--peak=", text, " is not accepted: expected GFLOP/s and GB/s, as in --peak=200,20");
  peaks.flops_per_second = pair->first * 1e9;
  peaks.bandwidths.push_back({INT64_MAX, pair->second * 1e9});
  peaks.how = "given by --peak";
  return peaks;
}

// "--link=US,GBPS", "--network=US,GBPS"
Status TakeLink(Arguments& arguments, const std::string& flag, LinkModel& link) {
  STROP_ASSIGN(const std::string text, arguments.TakeValue(flag));
  if (text.empty()) return OkStatus();
  const auto pair = ParsePair(text);
  if (!pair)
    return InvalidArgument(flag, "=", text, " is not accepted: expected microseconds and GB/s, as in ", flag, "=1,50");
  link = {pair->first * 1e-6, pair->second * 1e9};
  return OkStatus();
}

Status TakeTopology(Arguments& arguments, ExplainSettings& s) {
  LinkModel network = kNetwork;
  STROP_TRY(TakeLink(arguments, "--link", s.link));
  STROP_TRY(TakeLink(arguments, "--network", network));
  STROP_ASSIGN(const std::string topology, arguments.TakeValue("--topology"));
  if (topology.empty()) return OkStatus();
  STROP_ASSIGN(s.topology, ParseTopology(topology, s.link, network));
  return OkStatus();
}

Status CheckDevices(const Topology& topology, const ModuleConfig& config) {
  const int64_t devices = config.num_partitions * config.replica_count;
  if (topology.name.empty() || topology.devices() == devices) return OkStatus();
  return InvalidArgument("--topology=", topology.name, " has ", topology.devices(), " devices, the program is for ",
                         devices);
}

Result<ExplainSettings> TakeSettings(Arguments& arguments) {
  ExplainSettings s;
  s.plan = arguments.TakeFlag("--plan");
  s.all = arguments.TakeFlag("--all");
  s.memory = arguments.TakeFlag("--memory");
  const bool json = arguments.TakeFlag("--json"), html = arguments.TakeFlag("--html");
  STROP_ASSIGN(s.out, arguments.TakeValue("-o"));
  STROP_ASSIGN(s.runs, arguments.TakeInt("--profile", 0, 1));
  STROP_ASSIGN(const std::string peaks, arguments.TakeValue("--peak"));
  if (!peaks.empty()) {
    STROP_ASSIGN(s.peaks, ParsePeaks(peaks));
  }
  STROP_ASSIGN(s.machine, arguments.TakeValue("--target-cpu"));
  if (!s.machine.empty() && s.runs > 0)
    return InvalidArgument("--profile runs the program on this machine, not on --target-cpu=", s.machine);
  if (!s.machine.empty() && peaks.empty())
    return InvalidArgument("what ", s.machine, " can do cannot be measured here; tell it, as in --peak=200,20");
  STROP_TRY(TakeTopology(arguments, s));
  if (json && html) return InvalidArgument("--json and --html are two formats; give one");
  const auto ends_with = [&](std::string_view ending) {
    return s.out.size() >= ending.size() && s.out.compare(s.out.size() - ending.size(), ending.size(), ending) == 0;
  };
  if (json || (!html && ends_with(".json"))) s.format = Format::kJson;
  if (html || (!json && ends_with(".html"))) s.format = Format::kHtml;
  if (s.format != Format::kText && (s.plan || s.memory || s.all))
    return InvalidArgument("--plan, --memory and --all are of the text; JSON and the page have everything");
  return s;
}

// The time of each step, of the run in which they took the least together.
class StepClock final : public StepObserver {
 public:
  void OnBegin(const Step& step) override { begun_[&step] = std::chrono::steady_clock::now(); }
  void OnEnd(const Step& step) override {
    StepTime& time = times_[&step];
    time.step = &step;
    time.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_[&step]).count();
    ++time.calls;
  }
  // Forgets them.
  std::vector<StepTime> Take(double& sum) {
    std::vector<StepTime> out;
    sum = 0;
    for (const auto& [step, time] : times_) {
      out.push_back(time);
      if (step->kind() != StepKind::kWhile && step->kind() != StepKind::kConditional) sum += time.seconds;
    }
    times_.clear();
    return out;
  }

 private:
  std::unordered_map<const Step*, std::chrono::steady_clock::time_point> begun_;
  std::unordered_map<const Step*, StepTime> times_;
};

Result<RunProfile> Profile(const Program& program, const std::vector<Literal>& inputs, int64_t runs) {
  RunProfile profile;
  profile.runs = runs;
  auto clock = std::make_shared<StepClock>();
  double best = 0;
  for (int64_t run = -1; run < runs; ++run) {  // one to warm up
    STROP_TRY(program.Run(inputs, clock).status());
    double sum = 0;
    std::vector<StepTime> times = clock->Take(sum);
    if (run < 0 || (run > 0 && sum >= best)) continue;
    best = sum;
    profile.steps = std::move(times);
  }
  return profile;
}

}  // namespace

Status RunExplain(Arguments& arguments) {
  STROP_ASSIGN(ExplainSettings s, TakeSettings(arguments));
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend, s.machine));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  STROP_TRY(CheckDevices(s.topology, module->config()));
  STROP_TRY(ExtractedChecks::From(*module));  // what they compare are results like others
  const int64_t before = module->instruction_count();
  STROP_ASSIGN(CompileSettings settings, SettingsFrom(arguments.options()));
  settings.explain = true;
  std::shared_ptr<const CompiledProgram> compiled;
  RunProfile profile;
  if (s.runs > 0) {
    STROP_ASSIGN(const std::vector<Literal> inputs, MakeInputs(*module, {.random = true}));
    STROP_ASSIGN(const Program program, Program::Compile(std::move(module), *backend, settings));
    STROP_ASSIGN(profile, Profile(program, inputs, s.runs));
    compiled = program.shared_compiled();
  } else {
    STROP_ASSIGN(compiled, Compile(std::move(module), *backend, settings));
  }
  const ExplainReport report =
      MakeReport(*compiled, *backend, before, s.peaks.how.empty() ? backend->MeasurePeaks() : s.peaks, profile, s.link,
                 s.topology);
  switch (s.format) {
    case Format::kJson: return WriteFile(s.out, ReportJson(report));
    case Format::kHtml: return WriteFile(s.out, ReportHtml(report));
    case Format::kText: break;
  }
  std::string text = ReportText(report, {s.all ? SIZE_MAX : kMostRows, s.memory});
  if (s.plan) StrAppend(text, "\n", compiled->plan_text);
  return WriteFile(s.out, text);
}

}  // namespace strop::tools
