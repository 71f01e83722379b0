// What `strop explain` knows of a compiled program, as values: the text, JSON (docs/explain.md) and page are three
// views of it.
//
// An estimate is the roofline's: a kernel takes no less than its arithmetic at the machine's peak, and no less than its
// bytes at the bandwidth that a block of so many bytes has. It is a lower bound, and knows no caches that are warm.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "strop/driver/compile.h"
#include "strop/tools/topology.h"

namespace strop::tools {

struct ExplainedKernel {
  std::string name, op, kind, family, tiles, program;
  std::string shape, source, op_name, op_type;
  std::vector<std::string> ops;       // of a fusion: what it computes, in order ("multiply", "add", "add")
  std::vector<std::string> operands;  // "f32[8,16] %p0"
  std::string ends;                   // why its users do not compute it themselves
  int64_t flops = 0, transcendentals = 0, bytes = 0, tasks = 1;
  double compute_seconds = 0, memory_seconds = 0;
  double measured_seconds = 0;  // of a run, all calls together; 0: not measured
  int64_t calls = 0;            // in a measured run
  double estimate() const { return compute_seconds > memory_seconds ? compute_seconds : memory_seconds; }
  bool compute_bound() const { return compute_seconds > memory_seconds; }
  // The user's line, or, where the program names none, what it says that the kernel comes from.
  const std::string& where() const { return source.empty() ? op_name : source; }
  // Of all calls.
  double share_of_roofline() const {
    return measured_seconds > 0 ? estimate() * static_cast<double>(calls > 0 ? calls : 1) / measured_seconds : 0;
  }
};

struct ExplainedValue {
  std::string name, op, shape, source;
  int64_t bytes = 0;
};

struct ExplainedCopy {
  std::string of, at, why, source;
  int64_t bytes = 0;
};

// A rule that ended kernels.
struct ExplainedRule {
  std::string why;  // names are "%..."
  int64_t kernels = 0, bytes = 0;
  int64_t largest = 0;  // bytes of the example
  std::string example;  // "%add.3 (model.py:12): %dot.4: dot reads its operands from memory"
};

// Equal collectives of one line of the program.
struct ExplainedCollective {
  std::string name, op, shape, source;
  int64_t count = 1, times = 1;  // how many there are, how often all of them run
  int64_t group = 1;             // devices that meet
  double bytes = 0;              // that leave a device, all together
  double seconds = 0;            // all together
  std::vector<LinkUse> over;     // links, all together; of a report with a topology
};

struct ExplainReport {
  std::string name, backend, target;
  int64_t instructions = 0;
  int64_t num_kernels = 0, generated = 0, library = 0, regions = 0, copies_made = 0;
  int64_t code_bytes = 0;
  ModuleCost cost;
  MachinePeaks peaks;
  std::vector<Timing> timings;
  std::vector<ExplainedKernel> kernels;  // the most expensive first: as measured, or as estimated
  std::vector<ExplainedCopy> copies;     // the largest first
  int64_t devices = 1;                   // that the program is for; all else is what one of them does
  LinkModel link;
  Topology topology;                             // one that is given; predictions are for rings of `link` otherwise
  std::vector<ExplainedCollective> collectives;  // the most expensive first
  std::vector<ExplainedRule> rules;              // by what they cost in bytes
  std::vector<std::string> interpreted, recomputed;
  int64_t arguments = 0, constants = 0, results = 0, donated = 0, temporaries = 0, peak = 0, unshared = 0;
  std::string peak_step;
  std::vector<ExplainedValue> at_peak;
  std::vector<std::pair<std::string, int64_t>> timeline;  // step, bytes of temporaries while it runs
  std::vector<std::string> schedule;                      // a computation each
  double estimate = 0, measured = 0;                      // seconds, of all kernels
  int64_t profiled_runs = 0;
};

// Where the time of a run went, by step.
struct StepTime {
  const Step* step = nullptr;
  double seconds = 0;
  int64_t calls = 0;
};
struct RunProfile {
  int64_t runs = 0;
  std::vector<StepTime> steps;  // of one run
};

ExplainReport MakeReport(const CompiledProgram& program, const Backend& backend, int64_t instructions,
                         MachinePeaks peaks, const RunProfile& profile, const LinkModel& link,
                         const Topology& topology);

struct TextStyle {
  size_t most = 12;     // rows of a list
  bool memory = false;  // the memory alone, in full
};
std::string ReportText(const ExplainReport& report, const TextStyle& style);
std::string ReportJson(const ExplainReport& report);
std::string ReportHtml(const ExplainReport& report);

}  // namespace strop::tools
