// The ends of BuildPlan: what the outputs are, before and after values share memory; then slots and steps of a graph
// whose values have their places.
#include <algorithm>
#include <map>
#include <set>

#include "strop/analysis/cost.h"
#include "strop/ir/source_line.h"
#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

int64_t FlatLeaf(const Shape& shape, const Dims& index) {
  int64_t n = 0;
  const Shape* at = &shape;
  for (int64_t d : index) {
    n += LeafOffset(*at, d);
    at = &at->element(d);
  }
  return n;
}
int64_t FlatParameter(const EntryLayout& layout, int64_t parameter, const Dims& index) {
  int64_t n = 0;
  for (int64_t p = 0; p < parameter; ++p) n += layout.parameters[p].num_leaves();
  return n + FlatLeaf(layout.parameters[parameter], index);
}

class Assembler {
 public:
  Assembler(Graph& graph, const TargetInfo& target, Plan& plan) : graph_(graph), target_(target), plan_(plan) {}

  void Run() {
    std::stable_sort(graph_.steps.begin(), graph_.steps.end(),
                     [](const ProtoStep& a, const ProtoStep& b) { return a.position < b.position; });
    for (const std::string& name : graph_.programs) plan_.spec.programs.push_back(Program{name, {}});
    for (ProtoStep& proto : graph_.steps)
      if (!CopiesNothing(graph_, proto)) Add(proto);
    for (size_t p = 0; p < graph_.parameter_values.size(); ++p)
      plan_.spec.parameters[p].dynamic_dims = SizesOf(graph_.parameter_values[p]);
    for (size_t o = 0; o < graph_.outputs.size(); ++o) plan_.spec.outputs[o].dynamic_dims = SizesOf(graph_.outputs[o]);
    plan_.spec.entry = 0;
    plan_.spec.run_inline = !loops_ && work_ < target_.inline_cost;
  }

 private:
  // Of a copy that is left after values were merged.
  std::string WhyCopied(const ProtoStep& proto) const {
    const Value& from = graph_.values[proto.args[0].first];
    const Base base = graph_.groups[from.group].base;
    const bool part = graph_.groups[from.group].lies_in_another();
    const std::string at = StrCat("%", proto.instruction->name());
    const char* needed = base == Base::Parameter     ? "it is an argument"
                         : part                      ? "it is a part of another value"
                         : base == Base::Constant    ? "it is a constant"
                         : from.end > proto.position ? "it is read later"
                                                     : "its memory is not free to write";
    switch (proto.copy_for) {
      case CopyFor::kNothing: return "";
      case CopyFor::kResult:
        return base == Base::Parameter ? "a result has memory of its own, and this is an argument"
               : part                  ? "a result has memory of its own, and this is a part of another value"
                                       : "a result has memory of its own, and this is another result as well";
      case CopyFor::kLoopStart: return StrCat("the loop ", at, " rewrites it, and ", needed);
      case CopyFor::kLoopNext: return StrCat("it is the next value of a carry of ", at, ", and ", needed);
      case CopyFor::kLoopSwap: return StrCat("it is a carry of ", at, " that becomes another one");
      case CopyFor::kBranch: return StrCat("a branch of ", at, " hands it on, and ", needed);
      case CopyFor::kUpdate: return StrCat(at, " updates it, and ", needed);
      case CopyFor::kPart: return StrCat("it is a part of ", at, ", and ", needed);
      case CopyFor::kUpdated: return StrCat(at, " computes it while its place is in use");
    }
    return "";
  }

  void Add(ProtoStep& proto) {
    const Instruction& i = *proto.instruction;
    Step step;
    step.body = std::move(proto.body);
    for (auto [v, access] : proto.args) step.args.push_back({SlotOf(v), access});
    for (const std::vector<int32_t>& ring : proto.rings) {
      for (int32_t v : ring) step.args.push_back({SlotOf(v), Access::kReadWrite});
      std::get<WhileStep>(step.body).rings.push_back(static_cast<int32_t>(ring.size()));
    }
    step.info.name = i.name();
    step.info.op = proto.region ? "region" : std::string(Name(i.op()));
    step.info.op_name = i.metadata().op_name;
    step.info.source = SourceLine(i);
    step.scratch = proto.scratch;
    if (proto.is_kernel || proto.is_custom_call || proto.region) {
      step.info.flops = Flops(i);
      step.info.bytes = BytesAccessed(i);
    } else if (std::holds_alternative<CopyStep>(step.body)) {
      const Value& from = graph_.values[proto.args[0].first];
      step.info.bytes = 2 * from.size;
      plan_.copies.push_back({from.def, &i, from.size, WhyCopied(proto)});
    }
    work_ += step.info.flops + step.info.bytes;
    loops_ |= std::holds_alternative<WhileStep>(step.body) || proto.region;
    Program& program = plan_.spec.programs[proto.program];
    const int32_t index = static_cast<int32_t>(program.steps.size());
    if (proto.is_kernel)
      plan_.kernels.push_back({proto.program, index, &i, InPlaceArgs(proto), nullptr, HasUnalignedResult(proto)});
    if (proto.region) plan_.kernels.push_back({proto.program, index, &i, {}, std::move(proto.region)});
    if (proto.is_custom_call) {
      std::get<CustomCallStep>(step.body).num_operands = proto.num_operands;
      plan_.custom_calls.push_back({proto.program, index, &i});
    }
    program.steps.push_back(std::move(step));
  }

  int32_t SlotOf(int32_t v) {
    const Value& value = graph_.values[v];
    const Group& group = graph_.groups[value.group];
    Slot slot;
    slot.size = value.size;
    switch (group.base) {
      case Base::Parameter:
        slot.kind = SlotKind::kParameter;
        slot.index = group.index;
        break;
      case Base::Constant:
        slot.kind = SlotKind::kConstant;
        slot.index = group.index;
        break;
      case Base::Output:
        slot.kind = SlotKind::kOutput;
        slot.index = group.index;
        break;
      case Base::None:
        slot.kind = SlotKind::kTemp;
        slot.offset = group.offset;
        break;
      case Base::View: {  // two views are two slots, wherever they lie
        const auto [at, added] = views_.try_emplace(v, 0);
        if (added) {
          slot.kind = SlotKind::kView;
          slot.index = SlotOf(group.index);
          at->second = static_cast<int32_t>(plan_.spec.slots.size());
          plan_.spec.slots.push_back(slot);
        }
        return at->second;
      }
      case Base::Part:
        slot = plan_.spec.slots[static_cast<size_t>(SlotOf(group.index))];
        slot.offset += group.offset;
        slot.size = value.size;
        break;
    }
    auto key = std::make_tuple(slot.kind, slot.index, slot.offset, slot.size);
    auto [it, added] = slots_.emplace(key, static_cast<int32_t>(plan_.spec.slots.size()));
    if (added) plan_.spec.slots.push_back(slot);
    return it->second;
  }

  std::vector<DynamicDim> SizesOf(int32_t value) {
    std::vector<DynamicDim> dims;
    if (auto sizes = graph_.sizes.find(value); sizes != graph_.sizes.end())
      for (auto [dim, size] : sizes->second) dims.push_back({dim, SlotOf(size)});
    return dims;
  }

  bool HasUnalignedResult(const ProtoStep& proto) const {
    return std::any_of(proto.args.begin() + proto.num_operands, proto.args.end(), [&](const auto& arg) {
      const Group& group = graph_.groups[graph_.values[arg.first].group];
      return group.base == Base::Part && group.offset % target_.buffer_alignment != 0;
    });
  }

  std::vector<int> InPlaceArgs(const ProtoStep& proto) const {
    std::vector<int> in_place;
    for (size_t r = proto.num_operands; r < proto.args.size(); ++r) {
      int operand = -1;
      for (int32_t k = 0; k < proto.num_operands; ++k)
        if (graph_.values[proto.args[k].first].group == graph_.values[proto.args[r].first].group) operand = k;
      in_place.push_back(operand);
    }
    return in_place;
  }

  Graph& graph_;
  const TargetInfo& target_;
  Plan& plan_;
  int64_t work_ = 0;
  bool loops_ = false;
  std::map<std::tuple<SlotKind, int32_t, int64_t, int64_t>, int32_t> slots_;
  std::map<int32_t, int32_t> views_;  // slot of a value
};

}  // namespace

int64_t LeafOffset(const Shape& tuple, int64_t element) {
  int64_t n = 0;
  for (int64_t k = 0; k < element; ++k) n += tuple.element(k).num_leaves();
  return n;
}

MemoryKind KindOf(const std::string& name) {
  if (name == "pinned_host") return MemoryKind::kPinnedHost;
  if (name == "unpinned_host") return MemoryKind::kUnpinnedHost;
  return MemoryKind::kDevice;
}

namespace {

using Donations = std::map<int64_t, std::pair<int64_t, bool>>;  // output -> parameter, must

bool Fits(const Shape& parameter, const Shape& output, bool by_bytes) {
  if (!by_bytes) return output.Compatible(parameter);
  return output.IsArray() && output.IsStatic() && parameter.IsStatic() && output.byte_size() == parameter.byte_size();
}

// Outputs for the parameters whose buffers are given away without saying for which result: the first of the same shape
// that is still free, or, once all have chosen, of as many bytes.
void MatchDonors(const Module& module, const EntryLayout& layout, const std::vector<Shape>& outputs,
                 Donations& donated) {
  const ModuleConfig& config = module.config();
  auto kind = [](const std::vector<std::string>& kinds, int64_t i) {
    return i < static_cast<int64_t>(kinds.size()) ? KindOf(kinds[i]) : MemoryKind::kDevice;
  };
  std::set<int64_t> given;
  for (const auto& [output, donor] : donated) given.insert(donor.first);
  for (const bool by_bytes : {false, true}) {
    for (const BufferDonor& donor : config.buffer_donors) {
      const int64_t parameter = FlatParameter(layout, donor.parameter, donor.parameter_index);
      const Shape* shape = &layout.parameters[donor.parameter];
      for (int64_t index : donor.parameter_index) shape = &shape->element(index);
      if (!shape->IsArray() || given.count(parameter)) continue;
      for (size_t o = 0; o < outputs.size(); ++o) {
        const auto output = static_cast<int64_t>(o);
        if (donated.count(output) || !Fits(*shape, outputs[o], by_bytes)) continue;
        if (kind(config.parameter_memory_kinds, parameter) != kind(config.result_memory_kinds, output)) continue;
        donated[output] = {parameter, false};
        given.insert(parameter);
        break;
      }
    }
  }
}

Donations DonationsOf(const Module& module, const EntryLayout& layout, const std::vector<Shape>& outputs) {
  Donations donated;
  for (const InputOutputAlias& a : module.config().input_output_alias)
    donated[FlatLeaf(layout.result, a.output_index)] = {FlatParameter(layout, a.parameter, a.parameter_index),
                                                        a.must_alias};
  MatchDonors(module, layout, outputs, donated);
  return donated;
}

}  // namespace

std::map<int64_t, int64_t> DonatedParameters(const Module& module) {
  const EntryLayout layout = module.EffectiveEntryLayout();
  std::map<int64_t, int64_t> out;
  for (auto [output, parameter] : DonationsOf(module, layout, layout.result.Leaves())) out[output] = parameter.first;
  return out;
}

// An output gets memory of its own before anything is merged, so that whatever computes it writes there directly.
void PlaceOutputs(const Module& module, Graph& g, Plan& plan) {
  const EntryLayout layout = module.EffectiveEntryLayout();
  std::vector<Shape> shapes = layout.result.Leaves();
  const auto& kinds = module.config().result_memory_kinds;
  Donations donated = DonationsOf(module, layout, shapes);
  for (const auto& [output, donor] : donated)
    if (donor.first < static_cast<int64_t>(plan.spec.parameters.size()))
      plan.spec.parameters[donor.first].given_away = true;
  for (size_t o = 0; o < g.outputs.size(); ++o) {
    OutputSpec spec;
    spec.shape = o < shapes.size() ? shapes[o] : Shape();
    if (o < kinds.size()) spec.memory = KindOf(kinds[o]);
    plan.spec.outputs.push_back(spec);
    const int32_t v = g.outputs[o];
    Group& group = g.groups[g.values[v].group];
    if (group.base != Base::None) continue;  // a parameter, a constant, or an output already
    group.base = Base::Output;
    group.index = static_cast<int32_t>(o);
    auto it = donated.find(static_cast<int64_t>(o));
    if (it == donated.end()) continue;
    const int32_t parameter = static_cast<int32_t>(it->second.first);
    g.donations.push_back({g.parameter_values[parameter], v, parameter, group.index, it->second.second});
  }
}

void BindOutputs(const Graph& g, Plan& plan) {
  for (const Graph::Donation& d : g.donations) {
    if (g.values[d.parameter_value].group != g.values[d.output_value].group) continue;
    plan.spec.outputs[d.output].source = OutputSource::kAliasParameter;
    plan.spec.outputs[d.output].index = d.parameter;
    plan.spec.outputs[d.output].must_alias = d.must;
  }
  for (size_t o = 0; o < g.outputs.size(); ++o) {
    const Group& group = g.groups[g.values[g.outputs[o]].group];
    OutputSpec& spec = plan.spec.outputs[o];
    const Value& value = g.values[g.outputs[o]];
    if (value.def && value.size >= kLargeBytes) spec.origin = OriginOf(*value.def);
    if (group.base == Base::Parameter) {
      spec.source = OutputSource::kForwardParameter;
      spec.index = group.index;
    } else if (group.base == Base::Constant) {
      spec.source = OutputSource::kForwardConstant;
      spec.index = group.index;
    } else if (group.base == Base::Output && group.index != static_cast<int32_t>(o)) {
      spec.source = OutputSource::kForwardOutput;
      spec.index = group.index;
    }
  }
}

bool CopiesNothing(const Graph& graph, const ProtoStep& step) {
  if (!std::holds_alternative<CopyStep>(step.body)) return false;
  const Value& from = graph.values[step.args[0].first];
  return from.size == 0 || from.group == graph.values[step.args[1].first].group;
}

void Assemble(Graph& graph, const TargetInfo& target, Plan& plan) { Assembler(graph, target, plan).Run(); }

}  // namespace strop::plan_internal
