// The report as JSON. docs/explain.md says what each key is: change both.
#include <nlohmann/json.hpp>

#include "strop/tools/explain_report.h"

namespace strop::tools {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;  // of the keys' meaning

Json KernelJson(const ExplainedKernel& k) {
  Json out = {{"name", k.name},
              {"op", k.op},
              {"kind", k.kind},
              {"family", k.family},
              {"tiles", k.tiles},
              {"program", k.program},
              {"shape", k.shape},
              {"source", k.source},
              {"op_name", k.op_name},
              {"op_type", k.op_type},
              {"ops", k.ops},
              {"operands", k.operands},
              {"ends", k.ends},
              {"flops", k.flops},
              {"transcendentals", k.transcendentals},
              {"bytes", k.bytes},
              {"tasks", k.tasks},
              {"compute_seconds", k.compute_seconds},
              {"memory_seconds", k.memory_seconds},
              {"estimated_seconds", k.estimate()},
              {"bound", k.estimate() == 0   ? ""
                        : k.compute_bound() ? "arithmetic"
                                            : "memory"}};
  if (k.calls > 0) {
    out["measured_seconds"] = k.measured_seconds;
    out["calls"] = k.calls;
    out["share_of_roofline"] = k.share_of_roofline();
  }
  return out;
}

Json MachineJson(const MachinePeaks& peaks) {
  Json bandwidths = Json::array();
  for (const MachinePeaks::Bandwidth& b : peaks.bandwidths)
    bandwidths.push_back({{"footprint", b.footprint}, {"bytes_per_second", b.bytes_per_second}});
  return {{"flops_per_second", peaks.flops_per_second}, {"bandwidths", bandwidths}, {"how", peaks.how}};
}

Json MemoryJson(const ExplainReport& r) {
  Json at_peak = Json::array(), timeline = Json::array();
  for (const ExplainedValue& v : r.at_peak)
    at_peak.push_back({{"name", v.name}, {"op", v.op}, {"shape", v.shape}, {"source", v.source}, {"bytes", v.bytes}});
  for (const auto& [step, bytes] : r.timeline) timeline.push_back({{"step", step}, {"bytes", bytes}});
  return {{"arguments", r.arguments},       {"constants", r.constants},     {"results", r.results},
          {"donated", r.donated},           {"temporaries", r.temporaries}, {"peak", r.peak},
          {"unshared", r.unshared},         {"peak_step", r.peak_step},     {"at_peak", std::move(at_peak)},
          {"timeline", std::move(timeline)}};
}

Json CollectiveJson(const ExplainedCollective& c, const Topology& topology) {
  Json out = {{"name", c.name},   {"op", c.op},       {"shape", c.shape}, {"source", c.source},  {"count", c.count},
              {"times", c.times}, {"group", c.group}, {"bytes", c.bytes}, {"seconds", c.seconds}};
  for (const LinkUse& use : c.over)
    out["over"].push_back({{"links", topology.dimensions[use.dimension].name},
                           {"members", use.members},
                           {"bytes", use.bytes},
                           {"seconds", use.seconds}});
  return out;
}

Json ToJson(const ExplainReport& r) {
  Json out = {{"version", kVersion},
              {"name", r.name},
              {"backend", r.backend},
              {"target", r.target},
              {"instructions", r.instructions},
              {"code_bytes", r.code_bytes},
              {"flops", r.cost.flops},
              {"transcendentals", r.cost.transcendentals},
              {"bytes", r.cost.bytes_accessed},
              {"generated", r.generated},
              {"library", r.library},
              {"regions", r.regions},
              {"estimated_seconds", r.estimate},
              {"machine", MachineJson(r.peaks)},
              {"memory", MemoryJson(r)},
              {"schedule", r.schedule},
              {"interpreted", r.interpreted},
              {"recomputed", r.recomputed},
              {"timings", Json::object()},
              {"kernels", Json::array()},
              {"copies", Json::array()},
              {"not_fused", Json::array()}};
  if (r.devices > 1) {
    out["devices"] = r.devices;
    out["collectives"] = Json::array();
    for (const ExplainedCollective& c : r.collectives) out["collectives"].push_back(CollectiveJson(c, r.topology));
    if (!r.topology.name.empty()) out["topology"] = r.topology.name;
  }
  if (r.measured > 0) {
    out["measured_seconds"] = r.measured;
    out["runs"] = r.profiled_runs;
  }
  for (const Timing& t : r.timings) out["timings"][t.phase] = t.milliseconds / 1e3;
  for (const ExplainedKernel& k : r.kernels) out["kernels"].push_back(KernelJson(k));
  for (const ExplainedCopy& c : r.copies)
    out["copies"].push_back({{"of", c.of}, {"at", c.at}, {"why", c.why}, {"source", c.source}, {"bytes", c.bytes}});
  for (const ExplainedRule& rule : r.rules)
    out["not_fused"].push_back(
        {{"why", rule.why}, {"kernels", rule.kernels}, {"bytes", rule.bytes}, {"example", rule.example}});
  return out;
}

}  // namespace

std::string ReportJson(const ExplainReport& report) {
  // Names are the user's bytes: what is not UTF-8 is replaced.
  return ToJson(report).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strop::tools
