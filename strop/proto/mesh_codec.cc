// Named shardings and mesh replica groups: protos refer to axes by number, text by name; our types keep the text.
//
//   mesh['x'=2,'y'=4], [{'x', 'y':(2)2}, {?}], replicated={'y':(1)2}
//   mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)), [{'x', ?}, {}], unreduced={'y'}
//   mesh['x'=2,'y'=4] {'y'}                                          (replica groups)
#include "strop/base/cursor.h"
#include "strop/proto/codecs.h"

namespace strop::codec {
namespace {

// ---- proto -> text

std::string Quoted(const std::string& name) { return StrCat("'", CEscape(name), "'"); }

std::string MeshText(const proto::MeshProto& mesh) {
  std::string out = "mesh[";
  for (int i = 0; i < mesh.axes_size(); ++i)
    StrAppend(out, i ? "," : "", Quoted(mesh.axes(i).name()), "=", mesh.axes(i).size());
  out += "]";
  if (mesh.has_iota_device_ids()) {
    StrAppend(out, ", device_ids=([", Join(mesh.iota_device_ids().reshape_dims(), ","), "]");
    if (mesh.iota_device_ids().transpose_perm_size() > 0)
      StrAppend(out, "T(", Join(mesh.iota_device_ids().transpose_perm(), ","), ")");
    out += ")";
  } else if (mesh.device_ids_size() > 0) {
    StrAppend(out, ", device_ids=(", Join(mesh.device_ids(), ","), ")");
  }
  return out;
}

std::string AxisText(const proto::AxisRefProto& axis, const proto::MeshProto& mesh) {
  const int64_t index = axis.mesh_axis_index();
  std::string out = index >= 0 && index < mesh.axes_size() ? Quoted(mesh.axes(static_cast<int>(index)).name())
                                                           : StrCat("'#", index, "'");
  if (axis.has_sub_axis_info()) StrAppend(out, ":(", axis.sub_axis_info().pre_size(), ")", axis.sub_axis_info().size());
  return out;
}

template <class Axes>
std::string AxesText(const Axes& axes, const proto::MeshProto& mesh, bool open) {
  std::string out = "{";
  for (int i = 0; i < axes.size(); ++i) StrAppend(out, i ? ", " : "", AxisText(axes[i], mesh));
  if (open) out += axes.size() ? ", ?" : "?";
  return out + "}";
}

// ---- text -> proto

Status ParseMesh(Cursor& at, proto::MeshProto* out) {
  if (!at.ConsumeWord("mesh")) return at.Expected("mesh[");
  STROP_TRY(at.Expect('['));
  if (!at.Consume(']')) {
    do {
      auto* axis = out->add_axes();
      STROP_ASSIGN(*axis->mutable_name(), at.String());
      STROP_TRY(at.Expect('='));
      int64_t size;
      if (!at.Int(size)) return at.Expected("an axis size");
      axis->set_size(size);
    } while (at.Consume(','));
    STROP_TRY(at.Expect(']'));
  }
  return OkStatus();
}

template <class Repeated>
Status ParseInts(Cursor& at, char close, Repeated* out) {
  do {
    int64_t value;
    if (!at.Int(value)) return at.Expected("a number");
    out->Add(value);
  } while (at.Consume(','));
  return at.Expect(close);
}

// After "device_ids": =(7,6,5) or =([4,2]T(1,0)).
Status ParseDeviceIds(Cursor& at, proto::MeshProto* out) {
  STROP_TRY(at.Expect('='));
  STROP_TRY(at.Expect('('));
  if (!at.Consume('[')) return ParseInts(at, ')', out->mutable_device_ids());
  STROP_TRY(ParseInts(at, ']', out->mutable_iota_device_ids()->mutable_reshape_dims()));
  if (at.ConsumeWord("T")) {
    STROP_TRY(at.Expect('('));
    STROP_TRY(ParseInts(at, ')', out->mutable_iota_device_ids()->mutable_transpose_perm()));
  }
  return at.Expect(')');
}

Status ParseAxis(Cursor& at, const proto::MeshProto& mesh, proto::AxisRefProto* out) {
  const size_t start = at.offset();
  STROP_ASSIGN(std::string name, at.String());
  int index = 0;
  while (index < mesh.axes_size() && mesh.axes(index).name() != name) ++index;
  if (index == mesh.axes_size()) return at.ErrorAt(start, "the mesh has no axis '", name, "'");
  out->set_mesh_axis_index(index);
  if (!at.Consume(':')) return OkStatus();
  int64_t pre_size, size;
  STROP_TRY(at.Expect('('));
  if (!at.Int(pre_size)) return at.Expected("a size");
  STROP_TRY(at.Expect(')'));
  if (!at.Int(size)) return at.Expected("a size");
  out->mutable_sub_axis_info()->set_pre_size(pre_size);
  out->mutable_sub_axis_info()->set_size(size);
  return OkStatus();
}

// "{'x', 'y', ?}"; `open` may be null where no ? is allowed.
template <class Axes>
Status ParseAxes(Cursor& at, const proto::MeshProto& mesh, Axes* out, bool* open) {
  STROP_TRY(at.Expect('{'));
  if (at.Consume('}')) return OkStatus();
  do {
    if (open && at.Consume('?')) {
      *open = true;
      break;
    }
    STROP_TRY(ParseAxis(at, mesh, out->Add()));
  } while (at.Consume(','));
  return at.Expect('}');
}

Status ParseDimensionShardings(Cursor& at, proto::NamedShardingProto* out) {
  if (at.Consume(']')) return OkStatus();
  do {
    auto* dim = out->add_dim_shardings();
    bool open = false;
    STROP_TRY(ParseAxes(at, out->mesh(), dim->mutable_axes(), &open));
    dim->set_is_closed(!open);
  } while (at.Consume(','));
  return at.Expect(']');
}

}  // namespace

std::string NamedShardingText(const proto::NamedShardingProto& in) {
  const proto::MeshProto& mesh = in.mesh();
  std::string out = MeshText(mesh) + ", [";
  for (int i = 0; i < in.dim_shardings_size(); ++i)
    StrAppend(out, i ? ", " : "", AxesText(in.dim_shardings(i).axes(), mesh, !in.dim_shardings(i).is_closed()));
  out += "]";
  if (in.replicated_axes_size() > 0) StrAppend(out, ", replicated=", AxesText(in.replicated_axes(), mesh, false));
  if (in.unreduced_axes_size() > 0) StrAppend(out, ", unreduced=", AxesText(in.unreduced_axes(), mesh, false));
  if (in.manual_axes_size() > 0) StrAppend(out, ", manual=", AxesText(in.manual_axes(), mesh, false));
  return out;
}

Status ParseNamedSharding(std::string_view text, proto::NamedShardingProto* out) {
  Cursor at(text);
  STROP_TRY(ParseMesh(at, out->mutable_mesh()));
  while (at.Consume(',')) {
    if (at.Consume('[')) {
      STROP_TRY(ParseDimensionShardings(at, out));
    } else if (at.ConsumeWord("device_ids")) {
      STROP_TRY(ParseDeviceIds(at, out->mutable_mesh()));
    } else if (at.ConsumeWord("replicated")) {
      STROP_TRY(at.Expect('='));
      STROP_TRY(ParseAxes(at, out->mesh(), out->mutable_replicated_axes(), nullptr));
    } else if (at.ConsumeWord("unreduced")) {
      STROP_TRY(at.Expect('='));
      STROP_TRY(ParseAxes(at, out->mesh(), out->mutable_unreduced_axes(), nullptr));
    } else if (at.ConsumeWord("manual")) {
      STROP_TRY(at.Expect('='));
      STROP_TRY(ParseAxes(at, out->mesh(), out->mutable_manual_axes(), nullptr));
    } else {
      return at.Expected("dimension shardings, device_ids=, replicated=, unreduced= or manual=");
    }
  }
  return at.AtEnd() ? OkStatus() : at.Expected("the end of the named sharding");
}

std::string MeshGroupsText(const proto::MeshAxesReplicaGroupListProto& in) {
  return StrCat(MeshText(in.mesh()), " ", AxesText(in.axes(), in.mesh(), false));
}

Status ParseMeshGroups(std::string_view text, proto::MeshAxesReplicaGroupListProto* out) {
  Cursor at(text);
  STROP_TRY(ParseMesh(at, out->mutable_mesh()));
  if (at.Consume(',')) {
    if (!at.ConsumeWord("device_ids")) return at.Expected("device_ids=");
    STROP_TRY(ParseDeviceIds(at, out->mutable_mesh()));
  }
  STROP_TRY(ParseAxes(at, out->mesh(), out->mutable_axes(), nullptr));
  return at.AtEnd() ? OkStatus() : at.Expected("the end of the replica groups");
}

}  // namespace strop::codec
