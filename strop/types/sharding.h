// Sharding: how a value is split over devices, in HLO's terms (the `sharding={...}` of an instruction).
//
//   {replicated}  {maximal device=3}  {manual}  {unknown}  {unreduced}
//   {devices=[2,4]0,1,2,3,4,5,6,7}                  explicit device list (V1)
//   {devices=[4,2]<=[2,4]T(1,0)}                    iota list: reshape dims, transpose permutation (V2)
//   {devices=[2,1,4]<=[8] last_tile_dim_replicate}  the last tile dimension replicates
//   {devices=[2,1,2,2]<=[8] last_tile_dims={replicated, manual}}   subgroup kinds
//   {{replicated}, {maximal device=0}}              tuple
//   {mesh['x'=2,'y'=4], [{'x'}, {}], replicated={'y'}}      named sharding; kept verbatim in `named`
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"

namespace strop {

class Cursor;

// Metadata of an instruction (declared here, since shardings carry metadata too).
struct OpMetadata {
  std::string op_type;
  std::string op_name;
  std::string source_file;
  int64_t source_line = 0;
  int64_t source_end_line = 0;
  int64_t source_column = 0;
  int64_t source_end_column = 0;
  int64_t stack_frame_id = 0;
  int64_t size_of_generated_code_in_bytes = 0;
  int64_t size_of_memory_working_set_in_bytes = 0;
  std::vector<int64_t> profile_type;
  std::string deduplicated_name;
  std::string scheduling_name;
  std::string metadata_payload;
  bool preserve_layout = false;
  bool operator==(const OpMetadata&) const = default;
  // "file.py:12" or empty.
  std::string Location() const { return source_file.empty() ? std::string() : StrCat(source_file, ":", source_line); }
};

// `op_type="..." op_name="..." source_line=3`: what stands between the braces of metadata={...}. Empty if nothing that
// text carries is set.
std::string MetadataText(const OpMetadata& metadata);
// "{op_name=\"x\" source_line=3}" at the cursor; fields may be separated by commas.
Result<OpMetadata> ParseMetadata(Cursor& at);

enum class ShardingKind : uint8_t { Replicated, Maximal, Manual, Unknown, Unreduced, Tiled, Tuple, Named };

// How a subgroup of the trailing tile dimensions behaves.
enum class SubgroupKind : uint8_t { Replicated, Manual, Unreduced };

struct Sharding {
  ShardingKind kind = ShardingKind::Replicated;
  int64_t device = 0;  // Maximal

  // Tiled: tile_dims has the rank of the value, plus one per trailing subgroup.
  std::vector<int64_t> tile_dims;
  std::vector<int64_t> devices;              // explicit list in row-major tile order; empty for an iota list
  std::vector<int64_t> iota_reshape_dims;    // <=[...]
  std::vector<int64_t> iota_transpose_perm;  // T(...); empty for the identity
  bool replicate_on_last_tile_dim = false;
  std::vector<SubgroupKind> last_tile_dims;  // empty when replicate_on_last_tile_dim says it all

  std::vector<Sharding> elements;  // Tuple
  std::string named;               // Named: text between the outer braces, verbatim

  std::vector<OpMetadata> metadata;
  enum class Group : uint8_t { None, ShardAs, ShardLike } group = Group::None;
  int64_t group_id = -1;

  bool operator==(const Sharding&) const = default;

  // The device list of a Tiled sharding, iota form expanded; empty if the dimensions make no sense (see kMaxDevices).
  std::vector<int64_t> TileDevices() const;
  int64_t num_tiles() const;  // saturates
  // Text with braces, exactly as XLA prints it.
  std::string ToString(bool with_metadata = false) const;
};

// Device lists longer than this are refused: compact forms would otherwise expand a few digits to any amount of memory.
inline constexpr int64_t kMaxDevices = 1 << 20;
// 0 .. n-1 as an array of `reshape_dims`, transposed by `perm` (empty: identity), row by row. InvalidArgument if the
// dimensions are not positive, their product exceeds kMaxDevices, or `perm` is no permutation.
Result<std::vector<int64_t>> ExpandIota(const std::vector<int64_t>& reshape_dims, const std::vector<int64_t>& perm);

// Parses "{...}" at the cursor, or at the front of `text` (and removes it). Errors say what was expected and where.
Result<Sharding> ParseSharding(Cursor& at);
Result<Sharding> ConsumeSharding(std::string_view& text);
Result<Sharding> ParseSharding(std::string_view text);

// Devices that take part in one collective: explicit lists, or the compact forms, which are kept so that text and proto
// come out as they went in.
//   {{0,1},{2,3}}      [2,4]<=[8]   [4,2]<=[2,4]T(1,0)      mesh['axis_0'=1,'axis_1'=2] {'axis_1'}
struct ReplicaGroups {
  enum class Form : uint8_t { Lists, Iota, Mesh } form = Form::Lists;
  std::vector<std::vector<int64_t>> lists;
  int64_t num_groups = 0, group_size = 0;  // Iota
  std::vector<int64_t> iota_reshape_dims, iota_transpose_perm;
  std::string mesh;  // Mesh: text, verbatim
  bool empty() const { return form == Form::Lists && lists.empty(); }
  // The groups as lists, whatever the form. Mesh text is interpreted.
  Result<std::vector<std::vector<int64_t>>> Expand() const;
  bool operator==(const ReplicaGroups&) const = default;
  std::string ToString() const;
};
Result<ReplicaGroups> ParseReplicaGroups(Cursor& at);
Result<ReplicaGroups> ConsumeReplicaGroups(std::string_view& text);
// "[4,2]<=[2,4]T(1,0)" at the cursor, for shardings and replica groups.
struct IotaTiles {
  std::vector<int64_t> dims, reshape_dims, transpose_perm;
};
Result<std::vector<int64_t>> ParseIntList(Cursor& at, char open, char close);
// What follows "[dims]": "<=[2,4]T(1,0)", into `tiles`; sizes are checked against tiles.dims.
Status ParseIotaTail(Cursor& at, IotaTiles& tiles);

}  // namespace strop
