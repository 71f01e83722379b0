#include "strop/tools/explain_report.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "strop/analysis/collective_traffic.h"
#include "strop/ir/printer.h"
#include "strop/ir/source_line.h"

namespace strop::tools {
namespace {

constexpr double kFlopsOfTranscendental = 20;  // of exp and its like, in polynomials

class Reporter {
 public:
  Reporter(const CompiledProgram& program, const Backend& backend, int64_t instructions, MachinePeaks peaks,
           const RunProfile& profile, const LinkModel& link, const Topology& topology)
      : program_(program), spec_(program.executable->spec()), profile_(profile) {
    r_.name = program.executable->name();
    r_.backend = std::string(backend.name());
    r_.target = backend.target().description;
    r_.instructions = instructions;
    r_.peaks = std::move(peaks);
    r_.link = link;
    r_.topology = topology;
  }

  ExplainReport Make() {
    const Executable& e = *program_.executable;
    r_.num_kernels = e.num_steps(StepKind::kKernel) + e.num_steps(StepKind::kHost) + e.num_steps(StepKind::kRegion);
    r_.regions = e.num_steps(StepKind::kRegion);
    r_.copies_made = e.num_steps(StepKind::kCopy);
    r_.code_bytes = spec_.code_bytes;
    r_.cost = program_.cost;
    r_.timings = program_.timings;
    r_.interpreted = program_.explanation.interpreted;
    for (const Recomputation& again : program_.explanation.recomputed) r_.recomputed.push_back(again.ToString());
    AddKernels();
    AddCopies();
    AddRules();
    AddCollectives();
    AddMemory();
    for (const ScheduleDecision& d : program_.explanation.schedule) {
      if (d.order == ScheduleOrder::kAsWritten && !d.computation->IsEntry()) continue;
      r_.schedule.push_back(StrCat("%", d.computation->name(), ": ", Name(d.order), ", about ", d.peak,
                                   " bytes alive at most (as written ", d.written_peak, ")"));
    }
    return std::move(r_);
  }

 private:
  double Bandwidth(int64_t bytes) const {
    for (const MachinePeaks::Bandwidth& b : r_.peaks.bandwidths)
      if (bytes <= b.footprint) return b.bytes_per_second;
    return r_.peaks.bandwidths.empty() ? 0 : r_.peaks.bandwidths.back().bytes_per_second;
  }

  static bool IsWork(StepKind kind) {
    return kind != StepKind::kWhile && kind != StepKind::kConditional && kind != StepKind::kCall;
  }

  void AddKernels() {
    std::map<std::pair<int32_t, int32_t>, const KernelNote*> notes;
    for (const KernelNote& note : program_.explanation.kernels) notes[{note.program, note.step}] = &note;
    for (const FusionLimit& limit : program_.explanation.fusion_limits) ends_[limit.kernel] = &limit.why;
    std::unordered_map<const Step*, const StepTime*> times;
    for (const StepTime& time : profile_.steps) times[time.step] = &time;
    r_.profiled_runs = profile_.runs;
    for (size_t p = 0; p < spec_.programs.size(); ++p)
      for (size_t s = 0; s < spec_.programs[p].steps.size(); ++s) {
        const Step& step = spec_.programs[p].steps[s];
        if (!IsWork(step.kind())) continue;
        const auto note = notes.find({static_cast<int32_t>(p), static_cast<int32_t>(s)});
        ExplainedKernel k = Kernel(step, note == notes.end() ? nullptr : note->second);
        if (static_cast<int32_t>(p) != spec_.entry) k.program = spec_.programs[p].name;
        if (const auto at = times.find(&step); at != times.end()) {
          k.measured_seconds = at->second->seconds;
          k.calls = at->second->calls;
        }
        r_.estimate += k.estimate() * static_cast<double>(k.calls > 0 ? k.calls : 1);
        r_.measured += k.measured_seconds;
        r_.kernels.push_back(std::move(k));
      }
    const bool measured = r_.measured > 0;
    std::stable_sort(r_.kernels.begin(), r_.kernels.end(), [&](const ExplainedKernel& a, const ExplainedKernel& b) {
      if (measured) return a.measured_seconds > b.measured_seconds;
      return a.estimate() != b.estimate() ? a.estimate() > b.estimate() : a.bytes + a.flops > b.bytes + b.flops;
    });
  }

  ExplainedKernel Kernel(const Step& step, const KernelNote* note) {
    ExplainedKernel k;
    k.name = step.info.name;
    k.op = step.info.op;
    k.kind = std::string(Name(step.kind()));
    k.source = step.info.source;
    k.op_name = step.info.op_name;
    k.flops = step.info.flops;
    k.bytes = step.info.bytes;
    if (const auto* kernel = std::get_if<KernelStep>(&step.body)) k.tasks = kernel->num_tasks;
    if (const auto* region = std::get_if<RegionStep>(&step.body)) k.tasks = region->num_tasks;
    const auto* host = std::get_if<HostStep>(&step.body);
    if (note) {
      k.family = note->family;
      k.tiles = note->tiles;
      const auto* kernel = std::get_if<KernelStep>(&step.body);
      const bool library = (kernel && kernel->library) || (host && !host->interpreted);
      ++(library ? r_.library : r_.generated);
      if (host && host->interpreted) --r_.generated;
      Describe(*note->instruction, k);
    }
    const double work = static_cast<double>(k.flops) + kFlopsOfTranscendental * static_cast<double>(k.transcendentals);
    if (r_.peaks.flops_per_second > 0) k.compute_seconds = work / r_.peaks.flops_per_second;
    if (const double bandwidth = Bandwidth(k.bytes); bandwidth > 0)
      k.memory_seconds = static_cast<double>(k.bytes) / bandwidth;
    return k;
  }

  void Describe(const Instruction& i, ExplainedKernel& k) const {
    k.shape = i.shape().WithoutLayout().ToString();
    k.op_type = i.metadata().op_type;
    k.transcendentals = Transcendentals(i);
    if (i.op() == Op::Fusion)
      for (const Instruction* inner : i.called(0)->instructions())
        if (!inner->IsParameter() && !inner->IsConstant()) k.ops.emplace_back(Name(inner->op()));
    for (const Instruction* o : i.operands())
      k.operands.push_back(StrCat(o->shape().WithoutLayout().ToString(), " %", o->name()));
    if (const auto at = ends_.find(&i); at != ends_.end()) k.ends = *at->second;
  }

  void AddCopies() {
    for (const PlannedCopy& copy : program_.explanation.copies)
      r_.copies.push_back({copy.of ? copy.of->name() : "", copy.at ? copy.at->name() : "", copy.why,
                           copy.of ? SourceLine(*copy.of) : "", copy.bytes});
    std::stable_sort(r_.copies.begin(), r_.copies.end(),
                     [](const ExplainedCopy& a, const ExplainedCopy& b) { return a.bytes > b.bytes; });
  }

  // "%add.3: dot reads its operands from memory" -> "%...: dot reads its operands from memory"
  static std::string WithoutNames(const std::string& why) {
    std::string out;
    for (size_t n = 0; n < why.size(); ++n) {
      out += why[n];
      if (why[n] != '%') continue;
      out += "...";
      const auto in_name = [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
      };
      while (n + 1 < why.size() && in_name(why[n + 1])) ++n;
    }
    return out;
  }

  void AddRules() {
    std::map<std::string, ExplainedRule> rules;
    for (const FusionLimit& limit : program_.explanation.fusion_limits) {
      if (limit.kernel->use_count() == 0 || limit.kernel->IsRoot()) continue;  // nobody could take it
      const std::string key = WithoutNames(limit.why);
      ExplainedRule& rule = rules[key];
      rule.why = key;
      ++rule.kernels;
      const int64_t bytes = limit.kernel->shape().byte_size();
      if (rule.example.empty() || bytes > rule.largest) {
        rule.largest = bytes;
        rule.example = StrCat("%", limit.kernel->name(), " (", limit.kernel->Where(), "): ", limit.why);
      }
      rule.bytes += bytes;
    }
    for (auto& [key, rule] : rules) r_.rules.push_back(std::move(rule));
    std::stable_sort(r_.rules.begin(), r_.rules.end(),
                     [](const ExplainedRule& a, const ExplainedRule& b) { return a.bytes > b.bytes; });
  }

  void AddCollectives() {
    const Result<std::shared_ptr<const Module>> module = program_.module->Get();
    if (!module.ok()) return;
    r_.devices = (*module)->config().num_partitions * (*module)->config().replica_count;
    std::map<std::string, size_t> known;
    for (const CollectiveTraffic& c : CollectivesOf(**module)) {
      ExplainedCollective one;
      one.name = c.at->name();
      one.op = std::string(Name(c.at->op()));
      one.shape = c.at->shape().WithoutLayout().ToString();
      one.source = c.at->metadata().Location().empty() ? c.at->metadata().op_name : c.at->metadata().Location();
      one.group = c.group;
      one.times = c.times;
      const auto times = static_cast<double>(c.times);
      one.bytes = times * c.bytes;
      one.seconds = times * static_cast<double>(c.hops) * r_.link.seconds + one.bytes / r_.link.bytes_per_second;
      std::string key = StrCat(one.op, '|', one.shape, '|', one.source, '|', one.group);
      if (!r_.topology.name.empty()) {
        PutOnLinks(c, (*module)->config(), one);
        for (const LinkUse& use : one.over) StrAppend(key, '|', use.dimension, ':', use.members);
      }
      const auto [at, is_new] = known.try_emplace(std::move(key), r_.collectives.size());
      if (is_new) {
        r_.collectives.push_back(std::move(one));
        continue;
      }
      ExplainedCollective& all = r_.collectives[at->second];
      ++all.count;
      all.times += one.times;
      all.bytes += one.bytes;
      all.seconds += one.seconds;
      for (size_t n = 0; n < one.over.size(); ++n) {
        all.over[n].bytes += one.over[n].bytes;
        all.over[n].seconds += one.over[n].seconds;
      }
    }
    std::stable_sort(r_.collectives.begin(), r_.collectives.end(),
                     [](const ExplainedCollective& a, const ExplainedCollective& b) { return a.seconds > b.seconds; });
  }

  void PutOnLinks(const CollectiveTraffic& c, const ModuleConfig& config, ExplainedCollective& one) const {
    Result<std::vector<LinkUse>> over = LinksOf(c, config, r_.topology);
    if (!over.ok()) return;  // compiling has refused it before
    one.over = *std::move(over);
    one.seconds = 0;
    for (LinkUse& use : one.over) {
      use.bytes *= static_cast<double>(c.times);
      use.seconds *= static_cast<double>(c.times);
      one.seconds += use.seconds;
    }
  }

  void AddMemory() {
    const MemoryProfile& m = program_.explanation.memory;
    r_.arguments = m.arguments;
    r_.constants = m.constants;
    r_.results = m.results;
    r_.donated = m.donated;
    r_.temporaries = m.temporaries;
    r_.peak = m.peak;
    r_.unshared = m.unshared;
    if (m.peak_step) r_.peak_step = m.peak_step->name();
    for (const MemoryProfile::Value& v : m.at_peak) {
      if (!v.instruction) continue;
      r_.at_peak.push_back({v.instruction->name(), std::string(Name(v.instruction->op())),
                            v.instruction->shape().WithoutLayout().ToString(), SourceLine(*v.instruction), v.bytes});
    }
    for (const MemoryProfile::Moment& t : m.timeline) r_.timeline.push_back({t.step->name(), t.live});
  }

  const CompiledProgram& program_;
  const ExecutableSpec& spec_;
  const RunProfile& profile_;
  ExplainReport r_;
  std::unordered_map<const Instruction*, const std::string*> ends_;
};

}  // namespace

ExplainReport MakeReport(const CompiledProgram& program, const Backend& backend, int64_t instructions,
                         MachinePeaks peaks, const RunProfile& profile, const LinkModel& link,
                         const Topology& topology) {
  return Reporter(program, backend, instructions, std::move(peaks), profile, link, topology).Make();
}

}  // namespace strop::tools
