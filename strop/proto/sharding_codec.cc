// OpSharding. Tuple shardings nest one level; named shardings are text in our types (mesh_codec.cc).
#include "strop/proto/codecs.h"

namespace strop::codec {
namespace {

using proto::OpSharding;

OpSharding::Type SubgroupType(SubgroupKind kind) {
  switch (kind) {
    case SubgroupKind::Manual: return OpSharding::MANUAL;
    case SubgroupKind::Unreduced: return OpSharding::UNREDUCED;
    case SubgroupKind::Replicated: break;
  }
  return OpSharding::REPLICATED;
}

Result<SubgroupKind> SubgroupOf(int type) {
  switch (type) {
    case OpSharding::REPLICATED: return SubgroupKind::Replicated;
    case OpSharding::MANUAL: return SubgroupKind::Manual;
    case OpSharding::UNREDUCED: return SubgroupKind::Unreduced;
    default: return InvalidArgument("sharding with last_tile_dims type ", type);
  }
}

Status DecodeTiles(const OpSharding& in, Sharding& out) {
  out.kind = ShardingKind::Tiled;
  out.tile_dims = ToDims(in.tile_assignment_dimensions());
  out.devices = ToDims(in.tile_assignment_devices());
  out.iota_reshape_dims = ToDims(in.iota_reshape_dims());
  out.iota_transpose_perm.assign(in.iota_transpose_perm().begin(), in.iota_transpose_perm().end());
  out.replicate_on_last_tile_dim = in.replicate_on_last_tile_dim();
  for (int type : in.last_tile_dims()) {
    STROP_ASSIGN(SubgroupKind kind, SubgroupOf(type));
    out.last_tile_dims.push_back(kind);
  }
  int64_t tiles = 1;
  for (int64_t d : out.tile_dims) {
    if (d < 1) return InvalidArgument("sharding with a tile dimension of ", d);
    tiles = SaturatingMultiply(tiles, d);
  }
  int64_t devices = static_cast<int64_t>(out.devices.size());
  if (out.devices.empty()) {
    devices = 1;
    for (int64_t d : out.iota_reshape_dims) {
      if (d < 1) return InvalidArgument("sharding with an iota dimension of ", d);
      devices = SaturatingMultiply(devices, d);
    }
    if (out.iota_reshape_dims.empty()) return InvalidArgument("tiled sharding without devices");
    std::vector<bool> seen(out.iota_reshape_dims.size(), false);
    for (int64_t p : out.iota_transpose_perm) {
      if (p < 0 || p >= static_cast<int64_t>(seen.size()) || seen[p])
        return InvalidArgument("sharding whose iota_transpose_perm is no permutation");
      seen[p] = true;
    }
    if (!out.iota_transpose_perm.empty() && out.iota_transpose_perm.size() != seen.size())
      return InvalidArgument("sharding whose iota_transpose_perm does not match its iota_reshape_dims");
    bool identity = true;
    for (size_t i = 0; i < out.iota_transpose_perm.size(); ++i)
      identity &= out.iota_transpose_perm[i] == static_cast<int64_t>(i);
    if (identity) out.iota_transpose_perm.clear();
  }
  if (tiles != devices) return InvalidArgument("sharding of ", tiles, " tiles with ", devices, " devices");
  return OkStatus();
}

}  // namespace

Status Encode(const Sharding& sharding, OpSharding* out) {
  switch (sharding.kind) {
    case ShardingKind::Replicated: out->set_type(OpSharding::REPLICATED); break;
    case ShardingKind::Manual: out->set_type(OpSharding::MANUAL); break;
    case ShardingKind::Unknown: out->set_type(OpSharding::UNKNOWN); break;
    case ShardingKind::Unreduced: out->set_type(OpSharding::UNREDUCED); break;
    case ShardingKind::Maximal:
      out->set_type(OpSharding::MAXIMAL);
      out->add_tile_assignment_dimensions(1);
      out->add_tile_assignment_devices(sharding.device);
      break;
    case ShardingKind::Tiled:
      out->set_type(OpSharding::OTHER);
      FromDims(sharding.tile_dims, out->mutable_tile_assignment_dimensions());
      FromDims(sharding.devices, out->mutable_tile_assignment_devices());
      FromDims(sharding.iota_reshape_dims, out->mutable_iota_reshape_dims());
      FromDims(sharding.iota_transpose_perm, out->mutable_iota_transpose_perm());
      if (!sharding.iota_reshape_dims.empty() && sharding.iota_transpose_perm.empty())  // the wire always has one
        for (size_t i = 0; i < sharding.iota_reshape_dims.size(); ++i)
          out->add_iota_transpose_perm(static_cast<int>(i));
      out->set_replicate_on_last_tile_dim(sharding.replicate_on_last_tile_dim);
      for (SubgroupKind kind : sharding.last_tile_dims) out->add_last_tile_dims(SubgroupType(kind));
      break;
    case ShardingKind::Tuple:
      out->set_type(OpSharding::TUPLE);
      for (const Sharding& element : sharding.elements) STROP_TRY(Encode(element, out->add_tuple_shardings()));
      break;
    case ShardingKind::Named: {
      auto* named = out->mutable_named_sharding();
      STROP_TRY(ParseNamedSharding(sharding.named, named));
      for (const OpMetadata& metadata : sharding.metadata) Encode(metadata, named->add_metadata());
      return OkStatus();
    }
  }
  if (sharding.group != Sharding::Group::None) {
    out->set_is_shard_group(true);
    out->set_shard_group_id(sharding.group_id);
    out->set_shard_group_type(sharding.group == Sharding::Group::ShardLike ? 1 : 0);
  }
  for (const OpMetadata& metadata : sharding.metadata) Encode(metadata, out->add_metadata());
  return OkStatus();
}

Result<Sharding> Decode(const OpSharding& in) {
  Sharding out;
  if (in.has_named_sharding()) {
    out.kind = ShardingKind::Named;
    out.named = NamedShardingText(in.named_sharding());
    for (const auto& metadata : in.named_sharding().metadata()) out.metadata.push_back(Decode(metadata));
    return out;
  }
  switch (static_cast<int>(in.type())) {
    case OpSharding::REPLICATED: out.kind = ShardingKind::Replicated; break;
    case OpSharding::MANUAL: out.kind = ShardingKind::Manual; break;
    case OpSharding::UNKNOWN: out.kind = ShardingKind::Unknown; break;
    case OpSharding::UNREDUCED: out.kind = ShardingKind::Unreduced; break;
    case OpSharding::MAXIMAL:
      out.kind = ShardingKind::Maximal;
      if (in.tile_assignment_devices_size() > 1)
        return InvalidArgument("maximal sharding with ", in.tile_assignment_devices_size(), " devices");
      if (in.tile_assignment_devices_size() == 1) out.device = in.tile_assignment_devices(0);
      break;
    case OpSharding::OTHER: STROP_TRY(DecodeTiles(in, out)); break;
    case OpSharding::TUPLE:
      out.kind = ShardingKind::Tuple;
      for (const auto& element : in.tuple_shardings()) {
        STROP_ASSIGN(Sharding decoded, Decode(element));
        out.elements.push_back(std::move(decoded));
      }
      break;
    default: return InvalidArgument("sharding of unknown type ", static_cast<int>(in.type()));
  }
  if (in.is_shard_group()) {
    out.group = in.shard_group_type() == 1 ? Sharding::Group::ShardLike : Sharding::Group::ShardAs;
    out.group_id = in.shard_group_id();
  }
  for (const auto& metadata : in.metadata()) out.metadata.push_back(Decode(metadata));
  return out;
}

}  // namespace strop::codec
