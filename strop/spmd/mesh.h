// The devices of a module as a grid of axes, fine enough that the shardings which the program states lie along whole
// axes. A value's sharding is then a list of axes for each dimension, and nothing in it grows with the number of
// devices.
//
//   {devices=[4,2]<=[8]} and {devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate} of 8 devices:
//     axes of sizes 2,2,2 (strides 4,2,1); the first is dims {0,1},{2}, the second dims {2},{} and replicated over 0,1
//
// Shardings that no common grid has (thirds of 6 devices beside halves, in other orders) are foreign: Read() returns
// nothing, and the partitioner treats such values as whole ones (shards.h).
#pragma once
#include <optional>

#include "strop/ir/module.h"

namespace strop::spmd {

// Numbers of axes of the mesh, major to minor.
using Axes = SmallVector<uint8_t, 8>;

bool Contains(const Axes& axes, uint8_t axis);
bool Overlap(const Axes& a, const Axes& b);
bool IsPrefix(const Axes& prefix, const Axes& of);

// How a value lies over the mesh: dimension d is cut along dims[d]. Over axes in `unreduced` its parts are still to be
// summed, over all others it is copied.
struct Spec {
  std::vector<Axes> dims;
  Axes unreduced;
  Spec() = default;
  explicit Spec(int64_t rank) : dims(rank) {}
  bool whole() const;  // the same on every device
  bool Uses(uint8_t axis) const;
  bool operator==(const Spec&) const = default;
};

struct Axis {
  int64_t size = 1;    // a prime
  int64_t stride = 1;  // in places of the grid
};

class Mesh {
 public:
  // Of all shardings that the module states.
  static Mesh Of(const Module& module);

  int64_t num_devices() const { return num_devices_; }
  const std::vector<Axis>& axes() const { return axes_; }  // major to minor
  // The device at each place of the grid; empty: place i is device i.
  const std::vector<int64_t>& order() const { return order_; }
  int64_t SizeOf(const Axes& axes) const;

  // Nothing for foreign shardings and for those that are no tilings.
  std::optional<Spec> Read(const Sharding* sharding, const Shape& shape) const;
  Sharding Write(const Spec& spec) const;
  // "{0,1}{}" as "[4,1]": for what people read.
  std::string Text(const Spec& spec) const;

  // The spec without axes that are only part of an axis of the program's own meshes, which such programs cannot name.
  // As it is where the program has no named meshes.
  Spec OfNamedAxes(Spec spec) const;
  // The axes of the grid that are axis `name` of the program's mesh of that name; empty if it has none.
  Axes Named(std::string_view mesh, std::string_view name) const;

  // The shape of one shard: sizes are divided and rounded up. Without a layout.
  Shape ShardShape(const Shape& whole, const Spec& spec) const;
  // Groups of devices that differ along `axes` only, in the order of these axes, in each of `replicas` programs.
  CollectiveAttrs GroupsAlong(const Axes& axes, int64_t replicas) const;
  // The coordinate along `axes` of a place of the grid.
  int64_t Coordinate(int64_t place, const Axes& axes) const;
  // The place that differs from this one along `axes` only, where its coordinate is as given.
  int64_t PlaceAt(int64_t place, const Axes& axes, int64_t coordinate) const;
  int64_t DeviceAt(int64_t place) const { return order_.empty() ? place : order_[place]; }

 private:
  struct Piece {
    int64_t size, stride;
  };
  std::optional<std::vector<Piece>> PiecesOf(const Sharding& sharding) const;
  std::optional<std::vector<Piece>> PiecesOfList(const std::vector<int64_t>& devices) const;
  std::optional<Axes> AxesOf(const Piece& piece) const;
  void ReadNamed(const std::string& meshes);
  void Collect(const Sharding& sharding, std::vector<int64_t>& strides);

  int64_t num_devices_ = 1;
  std::vector<Axis> axes_;
  std::vector<int64_t> order_, place_of_;
  struct NamedAxis {
    std::string mesh, name;
    Axes axes;
  };
  std::vector<NamedAxis> named_;  // the program's own
};

}  // namespace strop::spmd
