// Between a whole value and the shards of it that devices hold.
//
//   sharding {devices=[2,1,2]<=[4] last_tile_dim_replicate} of f32[5,4] on 4 devices:
//     tiles [2,1], 2 copies of each, devices {0,1 | 2,3}; a shard is f32[3,4], the last one holds one row of padding
#pragma once
#include "strop/ir/builder.h"

namespace strop::spmd {

// How one value is cut. `devices` lists partition numbers as [tile, row by row][copy]: all partitions, each once.
struct Tiling {
  Int64Vector tiles;  // a dimension
  int64_t copies = 1;
  std::vector<int64_t> devices;
  // Unreduced values: a copy holds one of `num_parts` parts, whose sum is the value. part[copy] says which.
  int64_t num_parts = 1;
  std::vector<int64_t> part;
  int64_t num_tiles() const { return static_cast<int64_t>(devices.size()) / copies; }
  bool whole() const { return num_tiles() == 1 && num_parts == 1; }
};

// Of an array of this shape on so many partitions; null and unknown mean replicated. Manual and maximal shardings are
// no tilings: Internal. InvalidArgument: the sharding does not fit the shape or the partitions. Unimplemented:
// named shardings.
Result<Tiling> TilingOf(const Sharding* sharding, const Shape& shape, int64_t partitions);

// The shape of one shard: sizes are divided and rounded up. Without a layout.
Shape ShardShape(const Shape& whole, const Tiling& tiling);

// The partition's own shard of a value that it has as a whole; rows beyond the end are zeros, and so are
// all parts but the first of what is unreduced.
Instruction* TakeShard(Builder& b, Instruction* whole, const Tiling& tiling);
// The whole value on every partition. `replicas` programs run side by side and do not mix.
Instruction* GatherShards(Builder& b, Instruction* shard, const Tiling& tiling, const Shape& whole, int64_t replicas);
// The value as partition `owner` has it, on every partition.
Instruction* BroadcastFrom(Builder& b, Instruction* value, int64_t owner, int64_t partitions, int64_t replicas);
// True on partition `owner` only.
Instruction* IsPartition(Builder& b, int64_t owner);

}  // namespace strop::spmd
