// Replica groups: text, and the groups that the compact forms stand for.
//
// Mesh form: mesh['a'=2,'b'=4] {'b'} is an array of the devices with one dimension per axis; each group fixes the axes
// that are not named and runs over the named ones in the order in which they are written. 'b':(2)2 names a part of an
// axis: of the axis seen as [2, 2, rest], the second factor.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "strop/base/cursor.h"
#include "strop/types/shape.h"
#include "strop/types/sharding.h"

namespace strop {
namespace {

struct AxisRef {
  size_t axis = 0;
  int64_t pre_size = 1;
  int64_t size = 0;
};

struct MeshGroups {
  std::vector<std::string> names;
  std::vector<int64_t> sizes;
  std::vector<int64_t> devices;  // row by row
  std::vector<AxisRef> grouped;
};

Status ParseMeshAxes(Cursor& at, MeshGroups& mesh) {
  const size_t start = at.offset();
  STROP_TRY(at.Expect('['));
  if (!at.Consume(']')) {
    do {
      STROP_ASSIGN(std::string name, at.String());
      STROP_TRY(at.Expect('='));
      int64_t size;
      if (!at.Int(size) || size < 1) return at.Expected("an axis size of at least one");
      mesh.names.push_back(std::move(name));
      mesh.sizes.push_back(size);
    } while (at.Consume(','));
    STROP_TRY(at.Expect(']'));
  }
  IotaTiles tiles{mesh.sizes, mesh.sizes, {}};
  if (mesh.sizes.empty()) tiles = {{1}, {1}, {}};
  const size_t before_comma = at.offset();
  if (at.Consume(',') && at.ConsumeWord("device_ids")) {
    STROP_TRY(at.Expect('='));
    STROP_TRY(at.Expect('('));
    if (at.Peek() == '[') {
      STROP_ASSIGN(tiles.reshape_dims, ParseIntList(at, '[', ']'));
      if (at.ConsumeWord("T")) {
        STROP_ASSIGN(tiles.transpose_perm, ParseIntList(at, '(', ')'));
      }
      STROP_TRY(at.Expect(')'));
    } else {
      do {
        int64_t device;
        if (!at.Int(device)) return at.Expected("a device number");
        mesh.devices.push_back(device);
      } while (at.Consume(','));
      STROP_TRY(at.Expect(')'));
    }
  } else {
    at.set_offset(before_comma);
  }
  Result<std::vector<int64_t>> all = ExpandIota(tiles.dims, {});
  if (!all.ok()) return at.Locate(std::move(all).status(), start);
  if (mesh.devices.empty()) {
    Result<std::vector<int64_t>> devices = ExpandIota(tiles.reshape_dims, tiles.transpose_perm);
    if (!devices.ok()) return at.Locate(std::move(devices).status(), start);
    mesh.devices = *std::move(devices);
  }
  if (mesh.devices.size() != all->size())
    return at.ErrorAt(start, "the mesh has ", all->size(), " places, but ", mesh.devices.size(), " devices are listed");
  return OkStatus();
}

Status ParseAxisRef(Cursor& at, MeshGroups& mesh) {
  const size_t start = at.offset();
  STROP_ASSIGN(std::string name, at.String());
  AxisRef ref;
  ref.axis = static_cast<size_t>(std::find(mesh.names.begin(), mesh.names.end(), name) - mesh.names.begin());
  if (ref.axis == mesh.names.size()) {
    std::optional<int64_t> number = ParseNumber<int64_t>(name);
    if (!number || *number < 0 || *number >= static_cast<int64_t>(mesh.names.size()))
      return at.ErrorAt(start, "the mesh has no axis '", name, "'");
    ref.axis = static_cast<size_t>(*number);
  }
  const int64_t full = mesh.sizes[ref.axis];
  ref.size = full;
  if (at.Consume(':')) {
    STROP_TRY(at.Expect('('));
    if (!at.Int(ref.pre_size)) return at.Expected("the size of the axis before this part");
    STROP_TRY(at.Expect(')'));
    if (!at.Int(ref.size)) return at.Expected("the size of this part of the axis");
    if (ref.pre_size < 1 || ref.size < 1 || full % ref.pre_size != 0 || (full / ref.pre_size) % ref.size != 0)
      return at.ErrorAt(start, "(", ref.pre_size, ")", ref.size, " does not divide axis '", name, "' of size ", full);
  }
  mesh.grouped.push_back(ref);
  return OkStatus();
}

Result<MeshGroups> ParseMesh(Cursor& at) {
  MeshGroups mesh;
  if (at.ConsumeWord("maximal_mesh")) {
    STROP_TRY(at.Expect('['));
    int64_t device;
    if (!at.ConsumeWord("device_id") || !at.Consume('=') || !at.Int(device)) return at.Expected("device_id=<number>");
    mesh.devices.push_back(device);
    STROP_TRY(at.Expect(']'));
  } else {
    if (!at.ConsumeWord("mesh")) return at.Expected("mesh");
    STROP_TRY(ParseMeshAxes(at, mesh));
  }
  STROP_TRY(at.Expect('{'));
  if (at.Consume('}')) return mesh;
  do {
    STROP_TRY(ParseAxisRef(at, mesh));
  } while (at.Consume(','));
  STROP_TRY(at.Expect('}'));
  return mesh;
}

// Cuts every axis at the ends of the parts that are named, so that a group is a product of whole factors; then the
// factors of the groups go last and the array is read row by row.
Result<std::vector<std::vector<int64_t>>> Expand(const MeshGroups& mesh) {
  std::vector<std::set<int64_t>> cuts(mesh.sizes.size());  // of each axis: products of leading factors
  for (size_t i = 0; i < cuts.size(); ++i) cuts[i] = {1, mesh.sizes[i]};
  for (const AxisRef& ref : mesh.grouped) {
    cuts[ref.axis].insert(ref.pre_size);
    cuts[ref.axis].insert(ref.pre_size * ref.size);
  }
  std::vector<int64_t> dims;
  std::map<std::pair<size_t, int64_t>, size_t> factor_at;  // axis and leading product -> dimension
  for (size_t i = 0; i < cuts.size(); ++i) {
    for (auto cut = cuts[i].begin(); std::next(cut) != cuts[i].end(); ++cut) {
      if (*std::next(cut) % *cut != 0) return InvalidArgument("parts of axis '", mesh.names[i], "' overlap");
      factor_at[{i, *cut}] = dims.size();
      dims.push_back(*std::next(cut) / *cut);
    }
  }
  std::vector<int64_t> last;
  std::vector<bool> is_grouped(dims.size(), false);
  int64_t group_size = 1;
  for (const AxisRef& ref : mesh.grouped) {
    for (int64_t pre = ref.pre_size; pre < ref.pre_size * ref.size;) {
      const size_t dim = factor_at.at({ref.axis, pre});
      if (is_grouped[dim]) return InvalidArgument("axis '", mesh.names[ref.axis], "' is named twice");
      is_grouped[dim] = true;
      last.push_back(static_cast<int64_t>(dim));
      group_size *= dims[dim];
      pre *= dims[dim];
    }
  }
  std::vector<int64_t> perm;
  for (size_t i = 0; i < dims.size(); ++i)
    if (!is_grouped[i]) perm.push_back(static_cast<int64_t>(i));
  perm.insert(perm.end(), last.begin(), last.end());
  std::vector<int64_t> order = {0};
  if (!dims.empty()) {
    STROP_ASSIGN(order, ExpandIota(dims, perm));
  }
  std::vector<std::vector<int64_t>> groups;
  for (size_t i = 0; i < order.size(); i += group_size) {
    std::vector<int64_t>& group = groups.emplace_back();
    for (int64_t k = 0; k < group_size; ++k) group.push_back(mesh.devices[order[i + k]]);
  }
  return groups;
}

}  // namespace

Result<std::vector<std::vector<int64_t>>> ReplicaGroups::Expand() const {
  if (form == Form::Lists) return lists;
  if (form == Form::Mesh) {
    Cursor at(mesh);
    STROP_ASSIGN(MeshGroups parsed, ParseMesh(at));
    return strop::Expand(parsed);
  }
  STROP_ASSIGN(std::vector<int64_t> devices, ExpandIota(iota_reshape_dims, iota_transpose_perm));
  if (group_size < 1 || SaturatingMultiply(num_groups, group_size) != static_cast<int64_t>(devices.size()))
    return InvalidArgument("replica groups ", ToString(), " do not cover their devices");
  std::vector<std::vector<int64_t>> groups;
  for (int64_t i = 0; i < num_groups; ++i)
    groups.emplace_back(devices.begin() + i * group_size, devices.begin() + (i + 1) * group_size);
  return groups;
}

std::string ReplicaGroups::ToString() const {
  if (form == Form::Mesh) return mesh;
  std::string out;
  if (form == Form::Iota) {
    out = StrCat("[", num_groups, ",", group_size, "]<=[", Join(iota_reshape_dims, ","), "]");
    if (iota_reshape_dims.size() > 1) {
      std::vector<int64_t> perm = iota_transpose_perm;
      if (perm.empty()) {
        perm.resize(iota_reshape_dims.size());
        std::iota(perm.begin(), perm.end(), 0);
      }
      StrAppend(out, "T(", Join(perm, ","), ")");
    }
    return out;
  }
  out = "{";
  for (size_t i = 0; i < lists.size(); ++i) StrAppend(out, i ? ",{" : "{", Join(lists[i], ","), "}");
  return out + "}";
}

Result<ReplicaGroups> ParseReplicaGroups(Cursor& at) {
  ReplicaGroups groups;
  if (at.Peek() == '{') {
    STROP_TRY(at.Expect('{'));
    if (at.Consume('}')) return groups;
    do {
      STROP_ASSIGN(std::vector<int64_t> group, ParseIntList(at, '{', '}'));
      groups.lists.push_back(std::move(group));
    } while (at.Consume(','));
    STROP_TRY(at.Expect('}'));
    return groups;
  }
  if (at.Peek() == '[') {
    const size_t start = at.offset();
    IotaTiles tiles;
    groups.form = ReplicaGroups::Form::Iota;
    STROP_ASSIGN(tiles.dims, ParseIntList(at, '[', ']'));
    if (tiles.dims.size() != 2) return at.ErrorAt(start, "expected [number of groups,size of a group]");
    STROP_TRY(ParseIotaTail(at, tiles));
    groups.num_groups = tiles.dims[0];
    groups.group_size = tiles.dims[1];
    groups.iota_reshape_dims = std::move(tiles.reshape_dims);
    groups.iota_transpose_perm = std::move(tiles.transpose_perm);
    return groups;
  }
  const std::string_view word = at.PeekWord();
  if (word != "mesh" && word != "maximal_mesh") return at.Expected("replica groups: '{', '[' or mesh[");
  const size_t start = at.offset();
  STROP_ASSIGN(MeshGroups mesh, ParseMesh(at));
  Result<std::vector<std::vector<int64_t>>> expanded = Expand(mesh);
  if (!expanded.ok()) return at.Locate(std::move(expanded).status(), start);
  groups.form = ReplicaGroups::Form::Mesh;
  groups.mesh = std::string(at.Since(start));
  return groups;
}

Result<ReplicaGroups> ConsumeReplicaGroups(std::string_view& text) {
  Cursor at(text);
  STROP_ASSIGN(ReplicaGroups groups, ParseReplicaGroups(at));
  text = at.rest();
  return groups;
}

}  // namespace strop
