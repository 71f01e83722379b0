// Text of a plan: programs of steps with the slots that they read (<-) and write.
#include <algorithm>

#include "strop/plan/plan.h"

namespace strop {
namespace {

std::string SlotText(const ExecutableSpec& spec, const StepArg& arg) {
  const Slot& s = spec.slots[arg.slot];
  switch (s.kind) {
    case SlotKind::kParameter: return StrCat("p", s.index);
    case SlotKind::kConstant: return StrCat("c", s.index);
    case SlotKind::kOutput: return StrCat("out", s.index);
    case SlotKind::kTemp: return StrCat("[", s.offset, "+", s.size, "]");
    case SlotKind::kView: return StrCat("v", arg.slot, "+", s.size);
  }
  return "?";
}

}  // namespace

std::string PlannedCopy::ToString() const {
  return StrCat("copy of %", of ? of->name() : "?", " (", bytes, " B): ", why);
}

bool Plan::has_regions() const {
  return std::any_of(kernels.begin(), kernels.end(), [](const PlannedKernel& k) { return k.region != nullptr; });
}

std::string Plan::ToString() const {
  std::string out = StrCat("plan ", spec.name, ": temp ", spec.temp_bytes, " bytes, ", kernels.size(), " kernels, ",
                           spec.run_inline ? "inline" : "queued", "\n");
  for (size_t p = 0; p < spec.programs.size(); ++p) {
    if (spec.programs[p].steps.empty() && static_cast<int32_t>(p) != spec.entry) continue;  // of a region
    StrAppend(out, "program ", p, " ", spec.programs[p].name, "\n");
    for (const Step& step : spec.programs[p].steps) {
      std::string reads, writes;
      for (const StepArg& a : step.args) {
        if (std::holds_alternative<WhileStep>(step.body) && a.access != Access::kRead) continue;  // rings
        std::string& list = a.access == Access::kRead ? reads : writes;
        StrAppend(list, list.empty() ? "" : " ", SlotText(spec, a));
      }
      StrAppend(out, "  ", writes, writes.empty() ? "" : " = ", step.info.op, " %", step.info.name, " <- ", reads);
      if (auto* w = std::get_if<WhileStep>(&step.body)) {
        StrAppend(out, "  condition ", w->condition, " body ", w->body);
        auto arg = step.args.begin() + static_cast<int64_t>(w->first_of_rings());
        for (int32_t ring : w->rings) {
          out += "  rotates";
          for (const auto end = arg + ring; arg != end; ++arg) StrAppend(out, " ", SlotText(spec, *arg));
        }
      }
      if (auto* c = std::get_if<ConditionalStep>(&step.body)) StrAppend(out, "  branches ", Join(c->branches, ","));
      out += '\n';
    }
  }
  for (const PlannedKernel& k : kernels)
    if (k.region) StrAppend(out, "region %", k.instruction->name(), "\n", k.region->ToString());
  for (size_t o = 0; o < spec.outputs.size(); ++o) {
    const OutputSpec& output = spec.outputs[o];
    StrAppend(out, "output ", o, " ", output.shape.ToString());
    switch (output.source) {
      case OutputSource::kFresh: break;
      case OutputSource::kAliasParameter: StrAppend(out, " in the memory of p", output.index); break;
      case OutputSource::kForwardParameter: StrAppend(out, " is p", output.index); break;
      case OutputSource::kForwardConstant: StrAppend(out, " is c", output.index); break;
      case OutputSource::kForwardOutput: StrAppend(out, " is out", output.index); break;
    }
    out += '\n';
  }
  for (const PlannedCopy& copy : copies) StrAppend(out, copy.ToString(), "\n");
  return out;
}

}  // namespace strop
