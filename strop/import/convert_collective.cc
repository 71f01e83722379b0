// Communication between devices.
#include <algorithm>

#include "strop/import/convert.h"

namespace strop {
namespace {

// #stablehlo.replica_group_mesh_axes<mesh = @m, axes = [#stablehlo.axis_ref<name = "x">]>  ->  mesh['x'=2,'y'=4] {'x'}
Result<ReplicaGroups> MeshGroups(OpImport& op, const MlirAttr& attr) {
  const MlirAttr* mesh = attr.Find("mesh");
  const MlirAttr* axes = attr.Find("axes");
  if (mesh && (mesh->kind == MlirAttrKind::Symbol || mesh->kind == MlirAttrKind::String))
    mesh = op.module().Mesh(mesh->text);
  const MlirAttr* mesh_axes = mesh ? mesh->Find("axes") : nullptr;
  if (!mesh_axes || !axes) return op.Invalid("replica_groups name a mesh that is not known: ", PrintAttr(attr));
  std::string text = "mesh[";
  for (size_t i = 0; i < mesh_axes->elements.size(); ++i) {
    const MlirAttr* name = mesh_axes->elements[i]->Find("name");
    const MlirAttr* size = mesh_axes->elements[i]->Find("size");
    if (!name || !size) return op.Invalid("a mesh axis needs a name and a size");
    StrAppend(text, i ? "," : "", "'", name->text, "'=", size->as_int());
  }
  text += "]";
  if (const MlirAttr* ids = mesh->Find("device_ids")) {
    STROP_ASSIGN(Dims devices, IntegersOf(*ids));
    StrAppend(text, ", device_ids=(", Join(devices, ","), ")");
  }
  text += " {";
  for (size_t i = 0; i < axes->elements.size(); ++i) {
    const MlirAttr* name = axes->elements[i]->Find("name");
    const MlirAttr* sub = axes->elements[i]->Find("sub_axis_info");
    StrAppend(text, i ? "," : "", "'", name ? name->text : "", "'");
    if (sub) StrAppend(text, ":(", op.FieldInt(*sub, "pre_size"), ")", op.FieldInt(*sub, "size"));
  }
  text += "}";
  std::string_view rest = text;
  Result<ReplicaGroups> groups = ConsumeReplicaGroups(rest);
  if (!groups.ok()) return op.Unsupported("replica_groups ", PrintAttr(attr), ": ", groups.status().message());
  return groups;
}

Result<ReplicaGroups> GroupsOf(OpImport& op) {
  const MlirAttr* attr = op.attr("replica_groups");
  if (!attr) return op.Invalid("attribute 'replica_groups' is missing");
  if (attr->kind == MlirAttrKind::Struct) return MeshGroups(op, *attr);
  STROP_ASSIGN(Dims ids, op.Ints("replica_groups"));
  if (!attr->type || attr->type->dims.size() != 2) return op.Invalid("replica_groups must be a matrix of device ids");
  // Every id from 0 on occurs exactly once; only ops that allow groups of different sizes may fill them up with -1.
  const bool equal_groups =
      op.hlo_op() == Op::AllGather || op.hlo_op() == Op::ReduceScatter || op.hlo_op() == Op::AllToAll;
  std::vector<bool> seen(ids.size(), false);
  for (int64_t id : ids) {
    if (id == -1 && !equal_groups) continue;
    if (id < 0 || id >= static_cast<int64_t>(seen.size()) || seen[id])
      return op.Invalid("replica_groups: id ", id, " is out of range or given twice");
    seen[id] = true;
  }
  for (size_t i = 0, n = std::count_if(ids.begin(), ids.end(), [](int64_t id) { return id >= 0; }); i < n; ++i) {
    if (!seen[i]) return op.Invalid("replica_groups: id ", i, " is missing");
  }
  ReplicaGroups groups;
  int64_t rows = attr->type->dims[0], columns = attr->type->dims[1];
  for (int64_t r = 0; r < rows && columns > 0; ++r) {
    std::vector<int64_t> group;
    for (int64_t c = 0; c < columns; ++c) {
      if (ids[r * columns + c] >= 0) group.push_back(ids[r * columns + c]);  // -1 fills up short groups
    }
    groups.lists.push_back(std::move(group));
  }
  return groups;
}

Result<int64_t> ChannelNumber(const OpImport& op) {
  if (!op.attr("channel_handle")) return 0;
  STROP_ASSIGN(const MlirAttr* handle, op.StructAttr("channel_handle", "stablehlo.channel_handle"));
  return std::max<int64_t>(0, op.FieldInt(*handle, "handle"));
}

}  // namespace

Status ConvertCollective(OpImport& op) {
  CollectiveAttrs attrs;
  STROP_ASSIGN(attrs.channel_id, ChannelNumber(op));
  STROP_ASSIGN(attrs.replica_groups, GroupsOf(op));
  STROP_ASSIGN(attrs.use_global_device_ids, op.Bool("use_global_device_ids"));
  STROP_ASSIGN(attrs.has_dynamic_root, op.Bool("has_dynamic_root"));
  if (attrs.use_global_device_ids && attrs.channel_id <= 0)
    return op.Invalid("use_global_device_ids needs a positive channel id");
  std::string_view dimension = op.hlo_op() == Op::AllGather       ? "all_gather_dim"
                               : op.hlo_op() == Op::ReduceScatter ? "scatter_dimension"
                                                                  : "";
  if (!dimension.empty()) {
    STROP_ASSIGN(int64_t d, op.Int(dimension));
    attrs.dimensions = {d};
    attrs.has_dimensions = true;
  }
  std::vector<Computation*> called;
  std::vector<Instruction*> operands(op.operands().begin(), op.operands().end());
  if (!op.mlir().regions.empty()) {
    STROP_ASSIGN(Computation * reducer, op.Reducer(0, 0));
    called.push_back(reducer);
    // A reducer of a wider type than the operand's: HLO's ops keep the type.
    for (size_t i = 0; i < operands.size() && i < op.shapes().size(); ++i)
      if (op.shape(static_cast<int64_t>(i)).IsArray())
        operands[i] = op.b().Convert(operands[i], op.shape(static_cast<int64_t>(i)).type());
  }
  return op.Emit(op.hlo_op(), operands, std::move(attrs), called);
}

// HLO's array form splits and concatenates along one dimension. For two of them, the pieces that came in are a
// dimension of their own after a reshape, which is moved before the one to concatenate along and merged with it.
Status ConvertAllToAll(OpImport& op) {
  CollectiveAttrs attrs;
  STROP_ASSIGN(attrs.channel_id, ChannelNumber(op));
  STROP_ASSIGN(attrs.replica_groups, GroupsOf(op));
  STROP_ASSIGN(int64_t split, op.Int("split_dimension"));
  STROP_ASSIGN(int64_t concat, op.Int("concat_dimension"));
  STROP_ASSIGN(int64_t count, op.Int("split_count"));
  attrs.dimensions = {split};
  attrs.has_dimensions = true;
  if (op.shapes().size() != op.operands().size()) return op.Invalid("must have as many results as operands");
  const MlirAttr* groups = op.attr("replica_groups");
  if (groups && groups->type && groups->type->dims.size() == 2 && groups->type->dims[1] != count)
    return op.Invalid("replica_groups of ", groups->type->dims[1], " devices each for split_count ", count,
                      " (all_to_all_c8)");
  std::vector<Instruction*> results;
  for (Instruction* operand : op.operands()) {
    Shape shape = operand->shape().WithoutLayout();
    if (!shape.IsArray() || split < 0 || split >= shape.rank() || concat < 0 || concat >= shape.rank()) {
      return op.Invalid("split_dimension ", split, " and concat_dimension ", concat, " must be dimensions of ", shape,
                        " (all_to_all_c1)");
    }
    if (count < 1 || shape.dim(split) % count != 0) {
      return op.Invalid("dimension ", split, " of ", shape, " cannot be split in ", count, " parts (all_to_all_c2)");
    }
    Instruction* exchanged = op.Add(Op::AllToAll, shape, {&operand, 1}, attrs);
    if (split != concat) {
      Int64Vector pieces, merged;
      Dims order;
      for (int64_t i = 0; i < shape.rank(); ++i) {
        if (i == split) pieces.push_back(count);
        pieces.push_back(i == split ? shape.dim(i) / count : shape.dim(i));
        if (i == concat) order.push_back(split);
        order.push_back(i >= split ? i + 1 : i);
        merged.push_back(i == split ? shape.dim(i) / count : i == concat ? shape.dim(i) * count : shape.dim(i));
      }
      exchanged = op.b().Reshape(op.b().Transpose(op.b().Reshape(exchanged, pieces), order), merged);
    }
    results.push_back(exchanged);
  }
  return op.SetResults(results);
}

Status ConvertCollectivePermute(OpImport& op) {
  PermuteAttrs attrs;
  STROP_ASSIGN(attrs.channel_id, ChannelNumber(op));
  STROP_TRY(op.CheckPairs("source_target_pairs"));
  STROP_ASSIGN(Dims pairs, op.Ints("source_target_pairs"));
  if (pairs.size() % 2 != 0) return op.Invalid("source_target_pairs must be pairs (collective_permute_c1)");
  for (size_t i = 0; i < pairs.size(); i += 2) attrs.source_target_pairs.push_back({pairs[i], pairs[i + 1]});
  return op.Emit(Op::CollectivePermute, op.operands(), std::move(attrs));
}

Status ConvertCrossReplicaSum(OpImport& op) {
  CollectiveAttrs attrs;
  STROP_ASSIGN(attrs.replica_groups, GroupsOf(op));
  Computation* called[] = {op.Sum(op.shape().type())};
  return op.Emit(Op::AllReduce, op.operands(), std::move(attrs), called);
}

// async_start and async_done, at once: what the region does happens at the start, and the future is its value (several:
// a tuple). A schedule may take it apart again.
Status ConvertAsyncStart(OpImport& op) {
  constexpr std::string_view kAsyncOps[] = {"stablehlo.all_gather",           "stablehlo.all_reduce",
                                            "stablehlo.all_to_all",           "stablehlo.collective_permute",
                                            "stablehlo.collective_broadcast", "stablehlo.collective_reduce",
                                            "stablehlo.reduce_scatter",       "stablehlo.slice",
                                            "stablehlo.dynamic_slice",        "stablehlo.dynamic_update_slice"};
  for (const MlirBlock* block : op.mlir().regions[0]->blocks)
    for (const MlirOp* inner : block->ops.subspan(0, block->ops.empty() ? 0 : block->ops.size() - 1))
      if (std::ranges::find(kAsyncOps, inner->name) == std::end(kAsyncOps))
        return op.Invalid("its region holds '", inner->name, "', which is neither a collective nor a slice");
  STROP_ASSIGN(Computation * body, op.Function(0, "async_body"));
  Computation* called[] = {body};
  return op.Emit(Op::Call, op.operands(), CallAttrs{}, called);
}

Status ConvertAsyncDone(OpImport& op) {
  if (op.shapes().size() == 1) return op.SetResult(op.operand(0));
  if (!op.operand(0)->shape().IsTuple() ||
      op.operand(0)->shape().tuple_size() != static_cast<int64_t>(op.shapes().size())) {
    return op.Invalid("the future holds ", op.operand(0)->shape(), ", which does not fit ", op.shapes().size(),
                      " results");
  }
  return op.SetResultsFromTuple(op.operand(0));
}

}  // namespace strop
