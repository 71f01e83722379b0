#include "strop/runtime/early_results.h"

#include <algorithm>
#include <utility>

#include "strop/runtime/executable.h"
#include "strop/runtime/validate.h"

namespace strop {
namespace {

// Flops and bytes: about a millisecond of one core.
constexpr int64_t kLeastLeft = 20'000'000;
constexpr int64_t kLeastShareLeft = 8;
// Of all work, between the first and the last of a group.
constexpr int64_t kShareOfGroup = 32;
// Of a loop that does not say how often it runs.
constexpr int64_t kTrips = 16;

class Finder {
 public:
  explicit Finder(const ExecutableSpec& spec)
      : spec_(spec),
        output_of_(spec.parameters.size(), -1),
        touched_(spec.outputs.size(), 0),
        seen_by_(spec.programs.size(), 0),
        work_of_(spec.programs.size(), -1) {
    for (size_t i = 0; i < spec.outputs.size(); ++i)
      if (spec.outputs[i].source == OutputSource::kAliasParameter)
        output_of_[spec.outputs[i].index] = static_cast<int32_t>(i);
  }

  EarlyResults Find() {
    const std::vector<Step>& steps = spec_.programs[spec_.entry].steps;
    // done[n]: work of the first n steps
    std::vector<int64_t> done(steps.size() + 1, 0);
    for (size_t n = 0; n < steps.size(); ++n) {
      Touch(steps[n], static_cast<int32_t>(n) + 1);
      done[n + 1] = SaturatingAdd(done[n], Work(steps[n]));
    }
    const int64_t all = done.back();
    std::vector<int32_t> early;
    for (size_t i = 0; i < touched_.size(); ++i) {
      const int64_t left = all - done[touched_[i]];
      if (IsOwn(i) && left >= std::max(kLeastLeft, all / kLeastShareLeft)) early.push_back(static_cast<int32_t>(i));
    }
    std::stable_sort(early.begin(), early.end(), [&](int32_t a, int32_t b) { return touched_[a] < touched_[b]; });
    EarlyResults found;
    if (early.empty()) return found;
    found.group_of.assign(touched_.size(), -1);
    int64_t begin = 0;
    for (int32_t output : early) {
      const int64_t end = done[touched_[output]];
      if (found.groups.empty() || end - begin > all / kShareOfGroup) {
        found.groups.emplace_back();
        begin = end;
      }
      found.groups.back().steps = touched_[output];
      found.groups.back().outputs.push_back(output);
      found.group_of[output] = static_cast<int32_t>(found.groups.size()) - 1;
    }
    for (size_t i = 0; i < touched_.size(); ++i)
      if (spec_.outputs[i].source == OutputSource::kForwardOutput)
        found.group_of[i] = found.group_of[spec_.outputs[i].index];
    return found;
  }

 private:
  bool IsOwn(size_t output) const {
    const OutputSource source = spec_.outputs[output].source;
    return source == OutputSource::kFresh || source == OutputSource::kAliasParameter;
  }

  void Touch(const Step& step, int32_t by) {
    for (const StepArg& arg : step.args) {
      const Slot* slot = &spec_.slots[arg.slot];
      while (slot->kind == SlotKind::kView) slot = &spec_.slots[slot->index];
      if (slot->kind == SlotKind::kOutput) touched_[slot->index] = by;
      if (slot->kind == SlotKind::kParameter && output_of_[slot->index] >= 0) touched_[output_of_[slot->index]] = by;
    }
    for (int32_t program : ProgramsOf(step))
      if (std::exchange(seen_by_[program], by) != by)
        for (const Step& inner : spec_.programs[program].steps) Touch(inner, by);
  }

  int64_t Work(const Step& step) {
    int64_t inner = 0;
    for (int32_t program : ProgramsOf(step)) inner = SaturatingAdd(inner, WorkOf(program));
    if (const WhileStep* loop = std::get_if<WhileStep>(&step.body))
      inner = SaturatingMultiply(inner, loop->trip_count >= 0 ? loop->trip_count : kTrips);
    return std::max(inner, SaturatingAdd(step.info.flops, step.info.bytes));
  }

  int64_t WorkOf(int32_t program) {
    int64_t& work = work_of_[program];
    if (work >= 0) return work;
    work = 0;
    for (const Step& step : spec_.programs[program].steps) work = SaturatingAdd(work, Work(step));
    return work;
  }

  const ExecutableSpec& spec_;
  std::vector<int32_t> output_of_;  // by parameter: the output that has its memory; -1: none
  std::vector<int32_t> touched_;    // by output: the entry's steps up to and with the last that touches it
  std::vector<int32_t> seen_by_;    // by program: the last of the entry's steps that was seen to run it
  std::vector<int64_t> work_of_;    // by program; -1: not known yet
};

}  // namespace

EarlyResults FindEarlyResults(const ExecutableSpec& spec) { return Finder(spec).Find(); }

}  // namespace strop
