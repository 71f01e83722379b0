#include "strop/spmd/shards.h"

#include <algorithm>
#include <numeric>

namespace strop::spmd {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

Tiling Replicated(int64_t rank, int64_t partitions) {
  Tiling out;
  for (int64_t d = 0; d < rank; ++d) out.tiles.push_back(1);
  out.copies = partitions;
  out.part.assign(partitions, 0);
  out.devices.resize(partitions);
  std::iota(out.devices.begin(), out.devices.end(), 0);
  return out;
}

// Is this list every number below its size, each once?
bool IsPermutation(std::vector<int64_t> list) {
  std::sort(list.begin(), list.end());
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i] != static_cast<int64_t>(i)) return false;
  return true;
}

// Groups of partitions, once for every replica, as numbers of devices.
CollectiveAttrs Among(const std::vector<std::vector<int64_t>>& groups, int64_t partitions, int64_t replicas) {
  CollectiveAttrs attrs;
  attrs.channel_id = ChannelId(1);
  attrs.use_global_device_ids = true;
  for (int64_t replica = 0; replica < replicas; ++replica) {
    for (const std::vector<int64_t>& group : groups) {
      std::vector<int64_t>& out = attrs.replica_groups.lists.emplace_back(group);
      for (int64_t& member : out) member += replica * partitions;
    }
  }
  return attrs;
}

// table[this partition], a scalar.
Instruction* Lookup(Builder& b, const std::vector<int32_t>& table) {
  Instruction* values = b.Constant(Literal::Vector<int32_t>(table));
  Instruction* me = b.MakeWithShape(Op::PartitionId, Shape::Scalar(ElementType::U32), {});
  return b.Reshape(b.Make(Op::DynamicSlice, {values, b.Convert(me, ElementType::S32)}, DynamicSliceAttrs{{1}}), {});
}

}  // namespace

Result<Tiling> TilingOf(const Sharding* sharding, const Shape& shape, int64_t partitions) {
  if (!sharding || sharding->kind == ShardingKind::Replicated || sharding->kind == ShardingKind::Unknown)
    return Replicated(shape.rank(), partitions);
  auto refuse = [&](const auto&... why) {
    return InvalidArgument("sharding ", sharding->ToString(), " of ", shape, " over ", partitions,
                           " partitions: ", why...);
  };
  if (sharding->kind == ShardingKind::Named || sharding->kind == ShardingKind::Unreduced)
    return Unimplemented("sharding ", sharding->ToString(), " of ", shape);
  if (sharding->kind != ShardingKind::Tiled) return Internal("sharding ", sharding->ToString(), " is no tiling");
  const int64_t subgroups =
      sharding->replicate_on_last_tile_dim ? 1 : static_cast<int64_t>(sharding->last_tile_dims.size());
  if (static_cast<int64_t>(sharding->tile_dims.size()) != shape.rank() + subgroups)
    return refuse("it is for ", static_cast<int64_t>(sharding->tile_dims.size()) - subgroups, " dimensions");
  if (!shape.IsStatic()) return Unimplemented("a sharding of ", shape, ", whose size a run tells");
  Tiling out;
  out.devices = sharding->TileDevices();
  if (static_cast<int64_t>(out.devices.size()) != partitions || !IsPermutation(out.devices))
    return refuse("it does not name each partition once");
  int64_t tiles = 1;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    out.tiles.push_back(sharding->tile_dims[d]);
    tiles *= sharding->tile_dims[d];
  }
  out.copies = partitions / tiles;
  out.part.assign(out.copies, 0);
  // Copies are numbered over the subgroups; those of kind unreduced tell the parts.
  for (int64_t copy = 0; copy < out.copies; ++copy) {
    int64_t rest = copy, scale = 1;
    for (size_t k = sharding->last_tile_dims.size(); k-- > 0;) {
      const int64_t size = sharding->tile_dims[shape.rank() + static_cast<int64_t>(k)];
      if (sharding->last_tile_dims[k] == SubgroupKind::Unreduced) {
        out.part[copy] += rest % size * scale;
        scale *= size;
      }
      rest /= size;
    }
    out.num_parts = scale;
  }
  return out;
}

namespace {

// The sum of the parts, on all that hold one: among the copies of a tile that differ in the part only.
Instruction* SumParts(Builder& b, Instruction* value, const Tiling& tiling, int64_t replicas) {
  if (tiling.num_parts == 1) return value;
  std::vector<std::vector<int64_t>> groups;
  const int64_t alike = tiling.copies / tiling.num_parts;  // copies of one part
  for (int64_t tile = 0; tile < tiling.num_tiles(); ++tile) {
    const size_t first = groups.size();
    groups.resize(first + alike);
    std::vector<int64_t> seen(tiling.num_parts, 0);
    for (int64_t copy = 0; copy < tiling.copies; ++copy)
      groups[first + seen[tiling.part[copy]]++].push_back(tiling.devices[tile * tiling.copies + copy]);
  }
  const Shape scalar = Shape::Scalar(value->shape().type());
  Computation* sum = b.computation()->module()->AddComputation("sum");
  Builder inner(sum);
  Instruction* left = inner.Parameter(0, scalar);
  const bool logical = scalar.type() == ElementType::Pred;
  sum->set_root(inner.Make(logical ? Op::Or : Op::Add, {left, inner.Parameter(1, scalar)}));
  Instruction* operands[] = {value};
  Computation* called[] = {sum};
  const Shape shape = value->shape().WithoutLayout();
  return b.Make(Op::AllReduce, operands, Among(groups, static_cast<int64_t>(tiling.devices.size()), replicas), called,
                &shape);
}

// The value where the partition holds part 0, zeros elsewhere.
Instruction* FirstPart(Builder& b, Instruction* value, const Tiling& tiling) {
  if (tiling.num_parts == 1) return value;
  std::vector<int32_t> first(tiling.devices.size());
  for (size_t k = 0; k < tiling.devices.size(); ++k)
    first[tiling.devices[k]] = tiling.part[static_cast<int64_t>(k) % tiling.copies] == 0;
  Instruction* mine = b.Convert(Lookup(b, first), ElementType::Pred);
  const Int64Vector& dims = value->shape().dims();
  return b.Make(Op::Select, {b.Broadcast(mine, dims, {}), value, b.Splat(value->shape().type(), 0, dims)});
}

}  // namespace

Shape ShardShape(const Shape& whole, const Tiling& tiling) {
  Shape out = whole.WithoutLayout();
  for (int64_t d = 0; d < whole.rank(); ++d) out.set_dim(d, CeilDiv(whole.dim(d), tiling.tiles[d]));
  return out;
}

Instruction* TakeShard(Builder& b, Instruction* whole, const Tiling& tiling) {
  if (tiling.num_tiles() == 1) return FirstPart(b, whole, tiling);
  const Shape& shape = whole->shape();
  const Shape shard = ShardShape(shape, tiling);
  PadAttrs pad;
  bool uneven = false;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const int64_t missing = shard.dim(d) * tiling.tiles[d] - shape.dim(d);
    pad.padding.push_back({0, missing, 0});
    uneven = uneven || missing > 0;
  }
  if (uneven) whole = b.Make(Op::Pad, {whole, b.Scalar(shape.type(), 0)}, std::move(pad));
  // Where the shard begins in each dimension, by partition.
  std::vector<Instruction*> operands = {whole};
  int64_t below = tiling.num_tiles();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    below /= tiling.tiles[d];
    if (tiling.tiles[d] == 1) {
      operands.push_back(b.Constant(Literal::ScalarOfInt(ElementType::S32, 0)));
      continue;
    }
    std::vector<int32_t> starts(tiling.devices.size());
    for (size_t k = 0; k < tiling.devices.size(); ++k) {
      const int64_t tile = static_cast<int64_t>(k) / tiling.copies;
      starts[tiling.devices[k]] = static_cast<int32_t>(tile / below % tiling.tiles[d] * shard.dim(d));
    }
    operands.push_back(Lookup(b, starts));
  }
  Dims sizes(shard.dims().begin(), shard.dims().end());
  Instruction* own = b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{std::move(sizes)}, {}, nullptr);
  return own ? FirstPart(b, own, tiling) : nullptr;
}

Instruction* GatherShards(Builder& b, Instruction* shard, const Tiling& tiling, const Shape& whole, int64_t replicas) {
  shard = SumParts(b, shard, tiling, replicas);
  if (!shard || tiling.num_tiles() == 1) return shard;
  const int64_t tiles = tiling.num_tiles(), rank = whole.rank();
  // Copy number c of every tile: they exchange among themselves, in the order of the tiles.
  std::vector<std::vector<int64_t>> groups(tiling.copies);
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t copy = 0; copy < tiling.copies; ++copy)
      groups[copy].push_back(tiling.devices[tile * tiling.copies + copy]);
  CollectiveAttrs attrs = Among(groups, static_cast<int64_t>(tiling.devices.size()), replicas);
  attrs.dimensions = {0};
  attrs.has_dimensions = true;

  Int64Vector row = {1};
  for (int64_t size : shard->shape().dims()) row.push_back(size);
  Instruction* one = b.Reshape(shard, row);
  row[0] = tiles;
  if (!one) return nullptr;
  Instruction* all = b.MakeWithShape(Op::AllGather, one->shape().WithDims(row), {one}, std::move(attrs));
  // [t0,t1,...,s0,s1,...] -> [t0,s0,t1,s1,...] -> [t0*s0, t1*s1, ...]
  Int64Vector apart(tiling.tiles);
  for (int64_t size : shard->shape().dims()) apart.push_back(size);
  Dims permutation, zeros(rank, 0), ones(rank, 1), limits(whole.dims().begin(), whole.dims().end());
  Int64Vector padded;
  for (int64_t d = 0; d < rank; ++d) {
    permutation.push_back(d);
    permutation.push_back(rank + d);
    padded.push_back(tiling.tiles[d] * shard->shape().dim(d));
  }
  const bool uneven = padded != whole.dims();
  Instruction* joined =
      b.Reshape(b.Transpose(b.Reshape(all, std::move(apart)), std::move(permutation)), std::move(padded));
  return uneven ? b.Slice(joined, zeros, limits, ones) : joined;
}

Instruction* BroadcastFrom(Builder& b, Instruction* value, int64_t owner, int64_t partitions, int64_t replicas) {
  if (partitions == 1) return value;
  std::vector<int64_t> group = {owner};
  for (int64_t p = 0; p < partitions; ++p)
    if (p != owner) group.push_back(p);
  return b.MakeWithShape(Op::CollectiveBroadcast, value->shape().WithoutLayout(), {value},
                         Among({group}, partitions, replicas));
}

Instruction* IsPartition(Builder& b, int64_t owner) {
  Instruction* me = b.MakeWithShape(Op::PartitionId, Shape::Scalar(ElementType::U32), {});
  return b.Compare(me, b.Constant(Literal::ScalarOfInt(ElementType::U32, owner)), CompareDirection::Eq);
}

}  // namespace strop::spmd
