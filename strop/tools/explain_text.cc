// The report as text: a first screen that says where the time, the bytes and the memory go, then lists, the most
// expensive first.
#include <algorithm>
#include <cstdio>
#include <map>

#include "strop/tools/explain_report.h"

namespace strop::tools {
namespace {

// "1.23 G", "456 k", "12"
std::string Scaled(double value, double step = 1000) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  int prefix = 0;
  while (value >= 999.5 && prefix < 6) {
    value /= step;
    ++prefix;
  }
  char text[32];
  const int digits = prefix == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", digits, value, kPrefixes[prefix]);
  return text;
}
std::string BytesText(int64_t bytes) { return Scaled(static_cast<double>(bytes)) + "B"; }

std::string TimeText(double seconds) {
  char text[32];
  if (seconds >= 1)
    std::snprintf(text, sizeof text, "%.2f s", seconds);
  else if (seconds >= 1e-3)
    std::snprintf(text, sizeof text, "%.2f ms", seconds * 1e3);
  else
    std::snprintf(text, sizeof text, "%.1f us", seconds * 1e6);
  return text;
}

std::string Percent(double part, double whole) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", whole > 0 ? 100 * part / whole : 0.0);
  return text;
}

// Columns as wide as they need to be; all but the last few are aligned to the right.
class Table {
 public:
  Table(std::vector<std::string> head, size_t right) : right_(right) { rows_.push_back(std::move(head)); }
  void Add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::string ToString() const {
    std::vector<size_t> width;
    for (const auto& row : rows_)
      for (size_t c = 0; c < row.size(); ++c) {
        if (c >= width.size()) width.push_back(0);
        width[c] = std::max(width[c], row[c].size());
      }
    std::string out;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (size_t c = 0; c < row.size(); ++c) {
        const std::string space(width[c] - row[c].size(), ' ');
        StrAppend(line, " ", c < right_ ? space : "", row[c], c < right_ ? "" : space);
        if (c + 1 < row.size()) line += ' ';
      }
      line.erase(line.find_last_not_of(' ') + 1);
      StrAppend(out, line, "\n");
    }
    return out;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
  size_t right_;
};

std::string More(size_t all, size_t shown) {
  return all > shown ? StrCat("  ... and ", all - shown, " more: --all\n") : "";
}

std::string MachineText(const MachinePeaks& peaks) {
  if (peaks.flops_per_second <= 0) return "unknown: no estimates";
  std::string out = StrCat(Scaled(peaks.flops_per_second), "FLOP/s");
  for (const MachinePeaks::Bandwidth& b : peaks.bandwidths)
    StrAppend(out, ", ", Scaled(b.bytes_per_second), "B/s",
              peaks.bandwidths.size() > 1 ? StrCat(" in ", Scaled(static_cast<double>(b.footprint), 1024), "iB") : "");
  return StrCat(out, "\n             (", peaks.how, ")");
}

// "multiply, add x3, tanh"
std::string OpsText(const ExplainedKernel& k) {
  std::string out;
  size_t groups = 0;
  for (size_t n = 0; n < k.ops.size();) {
    size_t end = n;
    while (end < k.ops.size() && k.ops[end] == k.ops[n]) ++end;
    if (++groups > 8) return out + ", ...";
    StrAppend(out, out.empty() ? "" : ", ", k.ops[n], end - n > 1 ? StrCat(" x", end - n) : "");
    n = end;
  }
  return out;
}

std::string OperandsText(const ExplainedKernel& k) {
  constexpr size_t kMost = 6;
  std::string out;
  for (size_t n = 0; n < std::min(k.operands.size(), kMost); ++n) StrAppend(out, n ? ", " : "", k.operands[n]);
  if (k.operands.size() > kMost) StrAppend(out, ", and ", k.operands.size() - kMost, " more");
  return out;
}

// A line for each dimension of the topology.
std::string LinksText(const ExplainReport& r) {
  std::string out;
  for (size_t d = 0; d < r.topology.dimensions.size(); ++d) {
    const TopologyDimension& dimension = r.topology.dimensions[d];
    double bytes = 0, seconds = 0;
    for (const ExplainedCollective& c : r.collectives)
      for (const LinkUse& use : c.over) {
        if (use.dimension != d) continue;
        bytes += use.bytes;
        seconds += use.seconds;
      }
    StrAppend(out, "\n  links      ", dimension.name, " (", dimension.size,
              "): ", BytesText(static_cast<int64_t>(bytes)), " over each, ", TimeText(seconds), " with ",
              TimeText(dimension.link.seconds), " a message and ", Scaled(dimension.link.bytes_per_second), "B/s");
  }
  return out;
}

// "64 hosts 16.1 kB, 8 devices 2.02 kB": the places that take part, and what goes over the busiest link between them.
std::string OverText(const ExplainedCollective& c, const Topology& topology) {
  std::string out;
  for (const LinkUse& use : c.over)
    StrAppend(out, out.empty() ? "" : ", ", use.members, " ", topology.dimensions[use.dimension].name, " ",
              BytesText(static_cast<int64_t>(use.bytes)));
  return out;
}

std::string DevicesText(const ExplainReport& r) {
  double bytes = 0, seconds = 0;
  int64_t times = 0;
  for (const ExplainedCollective& c : r.collectives) {
    bytes += c.bytes;
    seconds += c.seconds;
    times += c.times;
  }
  const std::string sent =
      StrCat(BytesText(static_cast<int64_t>(bytes)), " in ", times, " collectives: ", TimeText(seconds));
  if (!r.topology.name.empty())
    return StrCat(r.devices, " as ", r.topology.name, ", each of which does what is said here and sends ", sent,
                  LinksText(r));
  return StrCat(r.devices, ", each of which does what is said here and sends ", sent, " on rings of links with ",
                TimeText(r.link.seconds), " a message and ", Scaled(r.link.bytes_per_second), "B/s");
}

std::string CollectivesText(const ExplainReport& r, size_t most) {
  if (r.devices <= 1) return "";
  std::string out =
      StrCat("\ncollectives, equal ones of a line together, by predicted time: ", r.collectives.size(), "\n");
  const bool placed = !r.topology.name.empty();
  std::vector<std::string> head = {"time", "sent", "runs", "devices", "collective", "shape", "where"};
  if (placed) head.insert(head.begin() + 4, "over links");
  Table table(std::move(head), 4);
  const size_t shown = std::min(most, r.collectives.size());
  for (size_t n = 0; n < shown; ++n) {
    const ExplainedCollective& c = r.collectives[n];
    std::vector<std::string> row = {TimeText(c.seconds),
                                    BytesText(static_cast<int64_t>(c.bytes)),
                                    StrCat(c.times),
                                    StrCat(c.group),
                                    StrCat(c.count > 1 ? StrCat(c.count, " x ") : "", "%", c.name),
                                    c.shape,
                                    c.source};
    if (placed) row.insert(row.begin() + 4, OverText(c, r.topology));
    table.Add(std::move(row));
  }
  return out + table.ToString() + More(r.collectives.size(), shown);
}

std::string Summary(const ExplainReport& r) {
  std::string out =
      StrCat(r.name, " on ", r.backend, ": ", r.instructions, " instructions, ", r.num_kernels, " kernels, ",
             r.copies_made, " copies, ", r.temporaries, " bytes of temporaries, ", r.code_bytes, " bytes of code\n");
  StrAppend(out, "  kernels    ", r.generated, " generated (", r.regions, " of whole loops), ", r.library,
            " of the library, ", r.interpreted.size(), " interpreted\n");
  StrAppend(out, "  work       ", Scaled(static_cast<double>(r.cost.flops)), "FLOP, ",
            Scaled(static_cast<double>(r.cost.transcendentals)), "transcendentals, ", BytesText(r.cost.bytes_accessed),
            " moved\n");
  StrAppend(out, "  machine    ", MachineText(r.peaks), "\n");
  double compute = 0;
  for (const ExplainedKernel& k : r.kernels)
    if (k.compute_bound()) compute += k.estimate() * static_cast<double>(std::max<int64_t>(k.calls, 1));
  if (r.estimate > 0)
    StrAppend(out, "  estimate   ", TimeText(r.estimate), " at the roofline, ", Percent(compute, r.estimate),
              " of it bound by arithmetic\n");
  if (r.measured > 0)
    StrAppend(out, "  measured   ", TimeText(r.measured), " in kernels, the best of ", r.profiled_runs,
              " runs: ", Percent(r.estimate, r.measured), " of the roofline\n");
  StrAppend(out, "  memory     ", BytesText(r.arguments), " arguments, ", BytesText(r.results), " results",
            r.donated > 0 ? StrCat(" (and ", BytesText(r.donated), " in arguments)") : "", ", ", BytesText(r.constants),
            " constants, ", BytesText(r.temporaries), " temporaries (", BytesText(r.peak), " alive at the peak, ",
            BytesText(r.unshared), " if none shared memory)\n");
  if (r.devices > 1) StrAppend(out, "  devices    ", DevicesText(r), "\n");
  double total = 0;
  std::string phases;
  for (const Timing& t : r.timings) {
    total += t.milliseconds;
    StrAppend(phases, phases.empty() ? "" : ", ", t.phase, " ", TimeText(t.milliseconds / 1e3));
  }
  StrAppend(out, "  compiling  ", TimeText(total / 1e3), " (", phases, ")\n");
  for (const std::string& line : r.schedule) StrAppend(out, "  schedule   ", line, "\n");
  return out;
}

// Kernels that differ in nothing but their names: layers.
struct Group {
  const ExplainedKernel* first = nullptr;
  int64_t kernels = 0, calls = 0;
  double estimate = 0, measured = 0;
};

std::vector<Group> GroupsOf(const ExplainReport& r) {
  std::map<std::string, size_t> known;
  std::vector<Group> groups;
  for (const ExplainedKernel& k : r.kernels) {
    const std::string key = StrCat(k.op, '|', k.kind, '|', k.family, '|', k.tiles, '|', k.shape, '|', k.source, '|',
                                   k.program, '|', k.flops, '|', k.bytes, '|', Join(k.ops, ","));
    const auto [at, fresh] = known.try_emplace(key, groups.size());
    if (fresh) groups.push_back({&k});
    Group& group = groups[at->second];
    ++group.kernels;
    group.calls += k.calls;
    group.estimate += k.estimate() * static_cast<double>(std::max<int64_t>(k.calls, 1));
    group.measured += k.measured_seconds;
  }
  const bool measured = r.measured > 0;
  std::stable_sort(groups.begin(), groups.end(), [measured](const Group& a, const Group& b) {
    return measured ? a.measured > b.measured : a.estimate > b.estimate;
  });
  return groups;
}

std::string KernelsText(const ExplainReport& r, const std::vector<Group>& groups, size_t most) {
  const bool measured = r.measured > 0;
  std::string out = StrCat("\nkernels, equal ones together, by ", measured ? "measured" : "estimated",
                           " time: ", r.kernels.size(), "\n");
  std::vector<std::string> head = {"estimate", "share", "bound", "flop", "bytes", "tasks", "kernel", "family", "where"};
  if (measured) head.insert(head.begin(), {"measured", "roofline", "calls"});
  const size_t right = head.size() - 3;
  Table table(std::move(head), right);
  const size_t shown = std::min(most, groups.size());
  for (size_t n = 0; n < shown; ++n) {
    const Group& g = groups[n];
    const ExplainedKernel& k = *g.first;
    std::vector<std::string> row = {TimeText(g.estimate),
                                    measured ? Percent(g.measured, r.measured) : Percent(g.estimate, r.estimate),
                                    k.estimate() == 0   ? "-"
                                    : k.compute_bound() ? "arithmetic"
                                                        : "memory",
                                    Scaled(static_cast<double>(k.flops)),
                                    BytesText(k.bytes),
                                    StrCat(k.tasks),
                                    StrCat(g.kernels > 1 ? StrCat(g.kernels, " x ") : "", "%", k.name,
                                           k.program.empty() ? "" : StrCat(" in ", k.program)),
                                    k.family.empty() ? k.kind : k.family,
                                    k.where()};
    if (measured) row.insert(row.begin(), {TimeText(g.measured), Percent(g.estimate, g.measured), StrCat(g.calls)});
    table.Add(std::move(row));
  }
  return out + table.ToString() + More(groups.size(), shown);
}

// What the most expensive kernels are made of.
std::string FusionsText(const std::vector<Group>& groups, size_t most) {
  std::string out;
  size_t shown = 0, all = 0;
  for (const Group& g : groups) {
    const ExplainedKernel& k = *g.first;
    if (k.ops.empty() && k.tiles.empty() && k.ends.empty()) continue;
    if (++all > most) continue;
    ++shown;
    StrAppend(out, "  %", k.name, " -> ", k.shape, "\n");
    if (!k.ops.empty()) StrAppend(out, "      computes  ", OpsText(k), "\n");
    if (!k.operands.empty()) StrAppend(out, "      reads     ", OperandsText(k), "\n");
    if (!k.tiles.empty()) StrAppend(out, "      tiles     ", k.tiles, "\n");
    if (!k.ends.empty()) StrAppend(out, "      ends      ", k.ends, "\n");
    if (!k.op_name.empty())
      StrAppend(out, "      from      ", k.op_name, k.op_type.empty() ? "" : StrCat(" (", k.op_type, ")"), "\n");
  }
  return StrCat("\nwhat they are: ", all, "\n", out, More(all, shown));
}

std::string MemoryText(const ExplainReport& r, size_t most) {
  std::string out = StrCat("\nmemory at the peak: ", r.peak, " bytes of temporaries while %", r.peak_step,
                           " runs, the arena is ", r.temporaries, "\n");
  if (r.peak == 0) return "\nmemory at the peak: no temporaries\n";
  Table table({"bytes", "share", "value", "shape", "where"}, 2);
  const size_t shown = std::min(most, r.at_peak.size());
  for (size_t n = 0; n < shown; ++n) {
    const ExplainedValue& v = r.at_peak[n];
    table.Add({BytesText(v.bytes), Percent(static_cast<double>(v.bytes), static_cast<double>(r.peak)),
               StrCat("%", v.name), v.shape, v.source});
  }
  return out + table.ToString() + More(r.at_peak.size(), shown);
}

std::string TimelineText(const ExplainReport& r) {
  std::string out = "\nalive while each step runs:\n";
  Table table({"bytes", "step", ""}, 1);
  constexpr double kWidth = 50;
  for (const auto& [step, bytes] : r.timeline) {
    const double part = r.peak > 0 ? static_cast<double>(bytes) / static_cast<double>(r.peak) : 0;
    table.Add({BytesText(bytes), StrCat("%", step), std::string(static_cast<size_t>(kWidth * part + 0.5), '#')});
  }
  return out + table.ToString();
}

std::string CopiesText(const ExplainReport& r, size_t most) {
  std::string out = StrCat("\ncopied: ", r.copies.size(), "\n");
  const size_t shown = std::min(most, r.copies.size());
  for (size_t n = 0; n < shown; ++n) {
    const ExplainedCopy& c = r.copies[n];
    StrAppend(out, "  ", BytesText(c.bytes), " of %", c.of, c.source.empty() ? "" : StrCat(" (", c.source, ")"), ": ",
              c.why, "\n");
  }
  return out + More(r.copies.size(), shown);
}

std::string RecomputedText(const ExplainReport& r, size_t most) {
  if (r.recomputed.empty()) return "";
  std::string out = StrCat("\ncomputed again, to stay below the memory limit: ", r.recomputed.size(), "\n");
  const size_t shown = std::min(most, r.recomputed.size());
  for (size_t n = 0; n < shown; ++n) StrAppend(out, "  ", r.recomputed[n], "\n");
  return out + More(r.recomputed.size(), shown);
}

std::string RulesText(const ExplainReport& r, size_t most) {
  int64_t kernels = 0;
  for (const ExplainedRule& rule : r.rules) kernels += rule.kernels;
  std::string out = StrCat("\nnot fused: ", kernels, " results that kernels hand on through memory, by the rule\n");
  const size_t shown = std::min(most, r.rules.size());
  for (size_t n = 0; n < shown; ++n) {
    const ExplainedRule& rule = r.rules[n];
    StrAppend(out, "  ", rule.kernels, " x ", rule.why, " (", BytesText(rule.bytes), ")\n      as ", rule.example,
              "\n");
  }
  return out + More(r.rules.size(), shown);
}

}  // namespace

std::string ReportText(const ExplainReport& r, const TextStyle& style) {
  std::string out = Summary(r);
  if (style.memory) {
    const size_t all = std::max(r.at_peak.size(), r.copies.size());
    return out + MemoryText(r, all) + TimelineText(r) + CopiesText(r, all) + RecomputedText(r, r.recomputed.size());
  }
  const std::vector<Group> groups = GroupsOf(r);
  StrAppend(out, KernelsText(r, groups, style.most), FusionsText(groups, style.most / 2));
  StrAppend(out, CollectivesText(r, style.most), MemoryText(r, style.most / 2));
  StrAppend(out, CopiesText(r, style.most), RecomputedText(r, style.most), RulesText(r, style.most));
  StrAppend(out, "\ninterpreted: ", r.interpreted.size(), "\n");
  for (const std::string& line : r.interpreted) StrAppend(out, "  ", line, "\n");
  return out;
}

}  // namespace strop::tools
