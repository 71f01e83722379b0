// Shardings as text. Everything XLA's printer writes is read, and written back in the same form: a V1 list stays a
// list, a V2 iota stays an iota, a named sharding is kept as text (only its braces and strings are understood here).
#include "strop/types/sharding.h"

#include <algorithm>
#include <numeric>

#include "strop/base/cursor.h"
#include "strop/types/shape.h"

namespace strop {

// ---- device lists
// -----------------------------------------------------------------------------------------------------

namespace {

int64_t Product(const std::vector<int64_t>& dims) {
  int64_t n = 1;
  for (int64_t d : dims) n = d < 1 ? 0 : SaturatingMultiply(n, d);
  return n;
}

bool IsPermutation(const std::vector<int64_t>& perm, size_t rank) {
  std::vector<bool> seen(rank, false);
  for (int64_t p : perm) {
    if (p < 0 || p >= static_cast<int64_t>(rank) || seen[p]) return false;
    seen[p] = true;
  }
  return perm.size() == rank;
}

}  // namespace

Result<std::vector<int64_t>> ExpandIota(const std::vector<int64_t>& reshape_dims, const std::vector<int64_t>& perm) {
  const int64_t n = Product(reshape_dims);
  if (n < 1 || n > kMaxDevices)
    return InvalidArgument("device list [", Join(reshape_dims, ","), "] has ", n, " devices; expected 1 to ",
                           kMaxDevices);
  const size_t rank = reshape_dims.size();
  if (!perm.empty() && !IsPermutation(perm, rank))
    return InvalidArgument("T(", Join(perm, ","), ") is no permutation of the ", rank, " dimensions of [",
                           Join(reshape_dims, ","), "]");
  std::vector<int64_t> devices(n);
  std::iota(devices.begin(), devices.end(), 0);
  if (perm.empty()) return devices;
  // Walk the transposed array row by row; strides are those of the original.
  std::vector<int64_t> strides(rank, 1), size(rank), stride(rank), index(rank, 0);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * reshape_dims[i];
  for (size_t i = 0; i < rank; ++i) {
    size[i] = reshape_dims[perm[i]];
    stride[i] = strides[perm[i]];
  }
  int64_t at = 0;
  for (int64_t& device : devices) {
    device = at;
    for (size_t i = rank; i-- > 0;) {
      at += stride[i];
      if (++index[i] < size[i]) break;
      at -= stride[i] * size[i];
      index[i] = 0;
    }
  }
  return devices;
}

int64_t Sharding::num_tiles() const { return Product(tile_dims); }

std::vector<int64_t> Sharding::TileDevices() const {
  if (iota_reshape_dims.empty()) return devices;
  Result<std::vector<int64_t>> expanded = ExpandIota(iota_reshape_dims, iota_transpose_perm);
  return expanded.ok() ? *std::move(expanded) : std::vector<int64_t>();
}

// ---- printing
// -----------------------------------------------------------------------------------------------------------

namespace {

constexpr std::string_view kSubgroups[] = {"replicated", "manual", "unreduced"};

void AppendTiled(std::string& out, const Sharding& s) {
  StrAppend(out, "devices=[", Join(s.tile_dims, ","), "]");
  if (s.iota_reshape_dims.empty()) {
    out += Join(s.devices, ",");
  } else {
    StrAppend(out, "<=[", Join(s.iota_reshape_dims, ","), "]");
    if (s.iota_reshape_dims.size() > 1) {
      std::vector<int64_t> perm = s.iota_transpose_perm;
      if (perm.empty()) {
        perm.resize(s.iota_reshape_dims.size());
        std::iota(perm.begin(), perm.end(), 0);
      }
      StrAppend(out, "T(", Join(perm, ","), ")");
    }
  }
  if (s.replicate_on_last_tile_dim) out += " last_tile_dim_replicate";
  if (s.last_tile_dims.empty()) return;
  out += " last_tile_dims={";
  for (size_t i = 0; i < s.last_tile_dims.size(); ++i)
    StrAppend(out, i ? ", " : "", kSubgroups[static_cast<size_t>(s.last_tile_dims[i])]);
  out += '}';
}

void AppendShardingMetadata(std::string& out, const std::vector<OpMetadata>& metadata) {
  if (metadata.empty()) return;
  out += " metadata={";
  for (size_t i = 0; i < metadata.size(); ++i) {
    if (metadata.size() == 1)
      out += MetadataText(metadata[i]);
    else
      StrAppend(out, i ? ", {" : "{", MetadataText(metadata[i]), "}");
  }
  out += '}';
}

}  // namespace

std::string Sharding::ToString(bool with_metadata) const {
  std::string out = "{";
  switch (kind) {
    case ShardingKind::Tuple:
      for (size_t i = 0; i < elements.size(); ++i) {
        if (i) out += ", ";
        if (i && i % 5 == 0) StrAppend(out, "/*index=", i, "*/");
        out += elements[i].ToString(with_metadata);
      }
      return out + "}";
    case ShardingKind::Named: return StrCat("{", named, "}");
    case ShardingKind::Replicated: out += "replicated"; break;
    case ShardingKind::Maximal: StrAppend(out, "maximal device=", device); break;
    case ShardingKind::Manual: out += "manual"; break;
    case ShardingKind::Unknown: out += "unknown"; break;
    case ShardingKind::Unreduced: out += "unreduced"; break;
    case ShardingKind::Tiled: AppendTiled(out, *this); break;
  }
  if (group != Group::None) StrAppend(out, group == Group::ShardAs ? " shard_as " : " shard_like ", group_id);
  if (with_metadata) AppendShardingMetadata(out, metadata);
  return out + "}";
}

// ---- parsing
// ------------------------------------------------------------------------------------------------------------

Result<std::vector<int64_t>> ParseIntList(Cursor& at, char open, char close) {
  std::vector<int64_t> list;
  STROP_TRY(at.Expect(open));
  if (at.Consume(close)) return list;
  do {
    int64_t v;
    if (!at.Int(v)) return at.Expected("an integer");
    list.push_back(v);
  } while (at.Consume(','));
  STROP_TRY(at.Expect(close));
  return list;
}

Status ParseIotaTail(Cursor& at, IotaTiles& tiles) {
  if (!at.Consume("<=")) return at.Expected("'<='");
  const size_t start = at.offset();
  STROP_ASSIGN(tiles.reshape_dims, ParseIntList(at, '[', ']'));
  if (at.ConsumeWord("T")) {
    STROP_ASSIGN(tiles.transpose_perm, ParseIntList(at, '(', ')'));
    if (!IsPermutation(tiles.transpose_perm, tiles.reshape_dims.size()))
      return at.ErrorAt(start, "T(", Join(tiles.transpose_perm, ","), ") is no permutation of the ",
                        tiles.reshape_dims.size(), " dimensions before it");
  }
  const int64_t n = Product(tiles.reshape_dims);
  if (n < 1 || n > kMaxDevices)
    return at.ErrorAt(start, "a device list has 1 to ", kMaxDevices, " devices, this one ", n);
  if (n != Product(tiles.dims))
    return at.ErrorAt(start, "[", Join(tiles.reshape_dims, ","), "] has ", n, " devices, but [", Join(tiles.dims, ","),
                      "] has ", Product(tiles.dims), " tiles");
  return OkStatus();
}

namespace {

Status ParseTiles(Cursor& at, Sharding& s) {
  const size_t start = at.offset();
  s.kind = ShardingKind::Tiled;
  STROP_ASSIGN(s.tile_dims, ParseIntList(at, '[', ']'));
  if (at.rest().substr(0, 2) == "<=" || at.Peek() == '<') {
    IotaTiles tiles{s.tile_dims, {}, {}};
    STROP_TRY(ParseIotaTail(at, tiles));
    s.iota_reshape_dims = std::move(tiles.reshape_dims);
    s.iota_transpose_perm = std::move(tiles.transpose_perm);
    return OkStatus();
  }
  do {
    int64_t device;
    if (!at.Int(device)) return at.Expected("a device number or '<='");
    s.devices.push_back(device);
  } while (at.Consume(','));
  if (static_cast<int64_t>(s.devices.size()) != s.num_tiles())
    return at.ErrorAt(start, "[", Join(s.tile_dims, ","), "] has ", s.num_tiles(), " tiles, but ", s.devices.size(),
                      " devices follow");
  return OkStatus();
}

Status ParseSubgroups(Cursor& at, Sharding& s) {
  STROP_TRY(at.Expect('{'));
  if (at.Consume('}')) return OkStatus();
  do {
    const auto* found = std::find(std::begin(kSubgroups), std::end(kSubgroups), at.PeekWord());
    if (found == std::end(kSubgroups)) return at.Expected("replicated, manual or unreduced");
    at.Word();
    s.last_tile_dims.push_back(static_cast<SubgroupKind>(found - kSubgroups));
  } while (at.Consume(','));
  return at.Expect('}');
}

Status ParseShardingMetadata(Cursor& at, Sharding& s) {
  const size_t start = at.offset();
  STROP_TRY(at.Expect('{'));
  if (at.Peek() != '{') {  // a single one
    at.set_offset(start);
    STROP_ASSIGN(OpMetadata one, ParseMetadata(at));
    s.metadata.push_back(std::move(one));
    return OkStatus();
  }
  do {
    STROP_ASSIGN(OpMetadata one, ParseMetadata(at));
    s.metadata.push_back(std::move(one));
  } while (at.Consume(','));
  return at.Expect('}');
}

// One property inside the braces of an untupled sharding.
Status ParseProperty(Cursor& at, Sharding& s, bool& has_device) {
  static constexpr std::pair<std::string_view, ShardingKind> kKinds[] = {{"replicated", ShardingKind::Replicated},
                                                                         {"maximal", ShardingKind::Maximal},
                                                                         {"manual", ShardingKind::Manual},
                                                                         {"unknown", ShardingKind::Unknown},
                                                                         {"unreduced", ShardingKind::Unreduced}};
  for (const auto& [word, kind] : kKinds) {
    if (!at.ConsumeWord(word)) continue;
    s.kind = kind;
    return OkStatus();
  }
  if (at.ConsumeWord("device")) {
    STROP_TRY(at.Expect('='));
    has_device = true;
    return at.Int(s.device) ? OkStatus() : at.Expected("a device number");
  }
  if (at.ConsumeWord("devices")) {
    STROP_TRY(at.Expect('='));
    return ParseTiles(at, s);
  }
  if (at.ConsumeWord("last_tile_dim_replicate")) {
    s.replicate_on_last_tile_dim = true;
    return OkStatus();
  }
  if (at.ConsumeWord("last_tile_dims")) {
    STROP_TRY(at.Expect('='));
    return ParseSubgroups(at, s);
  }
  if (at.ConsumeWord("metadata")) {
    STROP_TRY(at.Expect('='));
    return ParseShardingMetadata(at, s);
  }
  const bool as = at.ConsumeWord("shard_as");
  if (as || at.ConsumeWord("shard_like")) {
    s.group = as ? Sharding::Group::ShardAs : Sharding::Group::ShardLike;
    return at.Int(s.group_id) ? OkStatus() : at.Expected("a shard group number");
  }
  return at.Expected("a sharding (replicated, maximal, manual, unknown, unreduced, devices=, mesh[...])");
}

// The named form, up to the brace that closes it; axis names are in single quotes, metadata strings in double ones.
Result<std::string> NamedText(Cursor& at) {
  const size_t start = at.offset();
  const std::string_view rest = at.rest();
  int64_t depth = 0;
  for (size_t i = 0; i < rest.size(); ++i) {
    const char c = rest[i];
    if (c == '{') ++depth;
    if (c == '}' && depth-- == 0) {
      at.set_offset(start + i);
      return std::string(Trim(rest.substr(0, i)));
    }
    if (c != '\'' && c != '"') continue;
    for (++i; i < rest.size() && rest[i] != c; ++i)
      if (rest[i] == '\\') ++i;
  }
  return at.ErrorAt(start, "named sharding has no closing '}'");
}

// Behind the opening brace.
Result<Sharding> ParseSingle(Cursor& at) {
  Sharding s;
  const size_t start = at.offset();
  const std::string_view word = at.PeekWord();
  if (word == "mesh" || word == "maximal_mesh") {
    s.kind = ShardingKind::Named;
    STROP_ASSIGN(s.named, NamedText(at));
    STROP_TRY(at.Expect('}'));
    return s;
  }
  bool has_device = false;
  bool any = false;
  while (!any || at.Peek() != '}') {
    STROP_TRY(ParseProperty(at, s, has_device));
    any = true;
  }
  STROP_TRY(at.Expect('}'));
  if (has_device != (s.kind == ShardingKind::Maximal))
    return at.ErrorAt(start, has_device ? "device= belongs to a maximal sharding" : "a maximal sharding needs device=");
  const int64_t subgroups = s.replicate_on_last_tile_dim ? 1 : static_cast<int64_t>(s.last_tile_dims.size());
  if (subgroups > static_cast<int64_t>(s.tile_dims.size()))
    return at.ErrorAt(start, "more subgroup dimensions than tile dimensions");
  return s;
}

}  // namespace

Result<Sharding> ParseSharding(Cursor& at) {
  STROP_TRY(at.Expect('{'));
  if (at.Peek() != '{' && at.Peek() != '}') return ParseSingle(at);
  Sharding tuple;
  tuple.kind = ShardingKind::Tuple;
  if (at.Consume('}')) return tuple;
  do {
    STROP_TRY(at.Expect('{'));
    STROP_ASSIGN(Sharding element, ParseSingle(at));
    tuple.elements.push_back(std::move(element));
  } while (at.Consume(','));
  STROP_TRY(at.Expect('}'));
  return tuple;
}

Result<Sharding> ConsumeSharding(std::string_view& text) {
  Cursor at(text);
  STROP_ASSIGN(Sharding sharding, ParseSharding(at));
  text = at.rest();
  return sharding;
}

Result<Sharding> ParseSharding(std::string_view text) {
  Cursor at(text);
  STROP_ASSIGN(Sharding sharding, ParseSharding(at));
  if (!at.AtEnd()) return at.Expected("the end of the sharding");
  return sharding;
}

}  // namespace strop
