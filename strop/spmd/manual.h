// Which instructions work on what one device has: those between the ways into and out of a manual region (shard_map),
// and what is made of a device's number or of collectives. They run as they are written; shardings do not reach them.
//
// A region may be manual along some axes of the mesh only. What is in it is cut along the others like any other value:
// it lies along these in the pieces of a whole that each device of the manual axes has of its own.
#pragma once
#include <optional>
#include <string_view>

#include "strop/spmd/mesh.h"

namespace strop::spmd {

// "SPMDFullToShardShape" and Shardy's "xla.sdy.GlobalToLocalShape"; and the ways back.
bool IsWayIn(const Instruction& call);
bool IsWayOut(const Instruction& call);
// A custom call that says something about its operand (its sharding, layout, memory) and is that operand.
bool IsMark(const Instruction& instruction);

// Does anything in the module say how values lie over devices? Otherwise each device runs it as it is.
bool StatesShardings(const Module& module);

// Functions of single elements, as reductions have, lie nowhere: what marks say there of their values goes.
void RemoveMarksOfElements(Module& module);

// The axes that the region behind this way in, or before this way out, is manual along; nothing where it does not say.
std::optional<Axes> AxesOfWay(const Instruction& way, const Mesh& mesh);
// The spec of a value outside of such a region, without the axes of the region, and with no others.
Spec Inside(Spec spec, const Axes& manual);
Spec OnlyManual(const Spec& spec, const Axes& manual);

class ManualRegions {
 public:
  ManualRegions(const Module& module, const Mesh& mesh);
  // Does it run as it is written?
  bool Has(const Instruction& i) const {
    const Place* place = Find(i);
    return place && (place->how == How::Number || place->how == How::Fully);
  }
  // Of what is in a region that is manual along some axes only: these.
  Axes AxesOf(const Instruction& i) const {
    const Place* place = Find(i);
    return place && place->how == How::Partly ? place->axes : Axes{};
  }
  // Is it a way into or out of such a region?
  bool LeavesAxes(const Instruction& way) const;

 private:
  // Number: made of a device's number, or of what collectives sent, and of nothing that came into a region.
  enum class How : uint8_t { Outside, Number, Partly, Fully };
  struct Place {
    How how = How::Outside;
    Axes axes;  // the manual ones, as far as they are known
    bool operator==(const Place&) const = default;
  };
  const Place* Find(const Instruction& i) const {
    return i.id() < static_cast<int64_t>(places_.size()) ? &places_[i.id()] : nullptr;
  }
  static Place Joined(Place a, const Place& b);
  Place Visit(const Computation& computation, const Place& parameters);
  Place PlaceOf(const Instruction& i) const;
  Place PlaceOfWay(const Instruction& way, Place from) const;
  bool StaysInGroups(const Instruction& collective, const Axes& manual) const;

  const Mesh& mesh_;
  std::vector<int64_t> place_of_device_;
  std::vector<Place> places_;  // by id of the instruction
};

}  // namespace strop::spmd
