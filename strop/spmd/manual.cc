#include "strop/spmd/manual.h"

#include <algorithm>
#include <array>

#include "strop/spmd/call_owners.h"

namespace strop::spmd {
namespace {

constexpr std::array<std::string_view, 9> kMarks = {
    "Sharding",         "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier",
    "LayoutConstraint", "annotate_device_placement",  "MoveToHost",
    "MoveToDevice",     "AssumeGatherIndicesInBound", kInspectSharding};

bool IsCall(const Instruction& i, std::string_view gspmd, std::string_view shardy) {
  if (i.op() != Op::CustomCall) return false;
  const std::string& target = i.attrs<CustomCallAttrs>().target;
  return target == gspmd || target == shardy;
}

// Those that are manual, or the others.
Axes Filtered(const Axes& axes, const Axes& manual, bool wanted) {
  Axes out;
  for (uint8_t axis : axes)
    if (Contains(manual, axis) == wanted) out.push_back(axis);
  return out;
}

}  // namespace

bool IsWayIn(const Instruction& call) { return IsCall(call, "SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"); }

bool IsWayOut(const Instruction& call) { return IsCall(call, "SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"); }

bool IsMark(const Instruction& i) {
  if (i.op() != Op::CustomCall || i.operand_count() != 1 || !i.shape().Compatible(i.operand(0)->shape())) return false;
  return std::find(kMarks.begin(), kMarks.end(), i.attrs<CustomCallAttrs>().target) != kMarks.end();
}

bool StatesShardings(const Module& module) {
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->sharding() || IsMark(*i) || IsWayIn(*i) || IsWayOut(*i)) return true;
  return false;
}

void RemoveMarksOfElements(Module& module) {
  for (Computation* c : module.computations()) {
    for (Instruction* caller : c->instructions()) {
      if (Is(caller->op(), kControlFlow) || caller->op() == Op::Fusion) continue;
      for (Computation* function : caller->called()) {
        for (Instruction* i = function->first(); i;) {
          Instruction* next = i->next();
          if (IsMark(*i)) {
            Instruction* operand = i->operand(0);
            i->ReplaceAllUsesWith(operand);
            if (function->root() == i) function->set_root(operand);
            function->Remove(i);
          }
          i = next;
        }
      }
    }
  }
}

std::optional<Axes> AxesOfWay(const Instruction& way, const Mesh& mesh) {
  const FrontendAttributes& attributes = way.frontend_attributes();
  const auto axes = attributes.find("xla.sdy.manual_axes");
  auto shardings = attributes.find("xla.sdy.in_shardings");
  if (shardings == attributes.end()) shardings = attributes.find("xla.sdy.out_shardings");
  if (axes == attributes.end() || shardings == attributes.end()) return std::nullopt;
  const std::string& text = shardings->second;
  const size_t at = text.find("<@");
  if (at == std::string::npos) return std::nullopt;
  const std::string_view name = std::string_view(text).substr(at + 2, text.find_first_of(",>", at) - at - 2);
  Axes out;
  for (size_t open = axes->second.find('"'); open != std::string::npos; open = axes->second.find('"', open + 1)) {
    const size_t close = axes->second.find('"', open + 1);
    if (close == std::string::npos) return std::nullopt;
    const Axes named = mesh.Named(name, std::string_view(axes->second).substr(open + 1, close - open - 1));
    if (named.empty()) return std::nullopt;
    for (uint8_t axis : named) out.push_back(axis);
    open = close;
  }
  return out;
}

Spec Inside(Spec spec, const Axes& manual) {
  for (Axes& axes : spec.dims) axes = Filtered(axes, manual, false);
  spec.unreduced = Filtered(spec.unreduced, manual, false);
  return spec;
}

Spec OnlyManual(const Spec& spec, const Axes& manual) {
  Spec out = spec;
  for (Axes& axes : out.dims) axes = Filtered(axes, manual, true);
  out.unreduced = Filtered(out.unreduced, manual, true);
  return out;
}

ManualRegions::ManualRegions(const Module& module, const Mesh& mesh)
    : mesh_(mesh), place_of_device_(mesh.num_devices()), places_(module.id_bound()) {
  for (int64_t place = 0; place < mesh.num_devices(); ++place) place_of_device_[mesh.DeviceAt(place)] = place;
  Visit(*module.entry(), {});
}

bool ManualRegions::LeavesAxes(const Instruction& way) const {
  if (IsWayIn(way)) return !Has(way);
  const auto fully = [&](const Instruction* operand) {
    const Place* place = Find(*operand);
    return !place || place->how == How::Fully;
  };
  const std::vector<Instruction*>& operands = way.operands();
  return AxesOfWay(way, mesh_) && std::none_of(operands.begin(), operands.end(), fully);
}

// Do the devices that exchange differ along these axes only? Then the others may cut what is exchanged.
bool ManualRegions::StaysInGroups(const Instruction& i, const Axes& manual) const {
  const int64_t devices = mesh_.num_devices();
  Axes others;
  for (size_t a = 0; a < mesh_.axes().size(); ++a)
    if (!Contains(manual, static_cast<uint8_t>(a))) others.push_back(static_cast<uint8_t>(a));
  auto same = [&](int64_t a, int64_t b) {
    if (a < 0 || b < 0 || a >= devices || b >= devices) return false;
    return mesh_.Coordinate(place_of_device_[a], others) == mesh_.Coordinate(place_of_device_[b], others);
  };
  if (i.op() == Op::CollectivePermute) {
    const auto& pairs = i.attrs<PermuteAttrs>();
    return pairs.channel_id.stated && std::all_of(pairs.source_target_pairs.begin(), pairs.source_target_pairs.end(),
                                                  [&](const auto& pair) { return same(pair.first, pair.second); });
  }
  const bool cut = i.op() == Op::AllReduce || i.op() == Op::AllGather || i.op() == Op::ReduceScatter ||
                   i.op() == Op::AllToAll || i.op() == Op::CollectiveBroadcast;
  if (!cut) return false;
  const auto& attrs = i.attrs<CollectiveAttrs>();
  const bool by_partition = i.op() == Op::AllToAll || i.op() == Op::CollectiveBroadcast;
  if (!attrs.channel_id.stated || !(attrs.use_global_device_ids || by_partition)) return false;
  const Result<std::vector<std::vector<int64_t>>> groups = attrs.replica_groups.Expand();
  if (!groups.ok() || groups->empty()) return false;
  for (const std::vector<int64_t>& group : *groups)
    for (int64_t device : group)
      if (!same(group[0], device)) return false;
  return true;
}

ManualRegions::Place ManualRegions::PlaceOfWay(const Instruction& way, Place from) const {
  const std::optional<Axes> own = AxesOfWay(way, mesh_);
  if (IsWayOut(way)) {
    if (own) from.axes = Filtered(from.axes, *own, false);
    if (!own || from.axes.empty()) return {};
    from.how = How::Partly;
    return from;
  }
  for (uint8_t axis : own.value_or(Axes{}))
    if (!Contains(from.axes, axis)) from.axes.push_back(axis);
  const bool all = !own || mesh_.SizeOf(from.axes) == mesh_.num_devices();
  from.how = all || from.how == How::Fully ? How::Fully : How::Partly;
  return from;
}

ManualRegions::Place ManualRegions::PlaceOf(const Instruction& i) const {
  Place from;
  for (const Instruction* operand : i.operands()) from = Joined(from, places_[operand->id()]);
  if (IsWayIn(i) || IsWayOut(i)) return PlaceOfWay(i, std::move(from));
  if (i.op() == Op::PartitionId || i.op() == Op::ReplicaId) return Joined(from, {How::Number, {}});
  if (!Is(i.op(), kCollective)) return from;
  if (from.how == How::Partly) return StaysInGroups(i, from.axes) ? from : Place{How::Fully, from.axes};
  return Joined(from, {How::Number, {}});
}

ManualRegions::Place ManualRegions::Joined(Place a, const Place& b) {
  a.how = std::max(a.how, b.how);
  for (uint8_t axis : b.axes)
    if (!Contains(a.axes, axis)) a.axes.push_back(axis);
  return a;
}

// Of the root.
ManualRegions::Place ManualRegions::Visit(const Computation& computation, const Place& parameters) {
  for (const Instruction* i : computation.PostOrder()) {
    Place place = i->IsParameter() ? parameters : PlaceOf(*i);
    if (i->op() == Op::While) {
      // A carry that becomes local in the body is local everywhere.
      place = Joined(place, Visit(*i->body(), place));
      if (place.how != How::Outside) Visit(*i->body(), place);
      Visit(*i->condition(), place);
    } else if (i->op() == Op::Call) {
      place = Joined(place, Visit(*i->to_apply(), place));
    } else if (i->op() == Op::Conditional) {
      for (int64_t k = 0; k < static_cast<int64_t>(i->called().size()); ++k)
        place = Joined(place, Visit(*i->called(k), places_[i->operand(k + 1)->id()]));
    }
    places_[i->id()] = std::move(place);
  }
  return places_[computation.root()->id()];
}

}  // namespace strop::spmd
