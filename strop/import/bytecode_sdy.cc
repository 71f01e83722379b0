// Shardy's attribute encodings.
#include "strop/import/bytecode_reader.h"
#include "strop/import/mlir_dialect_text.h"

namespace strop {
namespace {

const MlirAttr* Strings(BytecodeEntry& e) {
  std::vector<const MlirAttr*> list = e.AttrList();
  for (const MlirAttr* a : list) {
    if (a->kind != MlirAttrKind::String) e.in.Fail("expected an axis name");
  }
  return e.Take(e.module().Array(list));
}

// A list of Structs called `name`.
const MlirAttr* List(BytecodeEntry& e, std::string_view name) {
  return e.CheckStructs(e.Take(e.module().Array(e.AttrList())), name);
}

// ([i, j], [k])->([i]) {i=2, j=4, k=8} reduction={j}: dimensions of operands and results as products of factors
const MlirAttr* DecodeShardingRule(BytecodeEntry& e) {
  std::string text = "#sdy.op_sharding_rule<(";
  std::vector<int64_t> sizes = e.IntList();
  for (int side = 0; side < 2; ++side) {
    std::vector<const MlirAttr*> mappings = e.AttrList();
    for (size_t i = 0; i < mappings.size(); ++i) {
      const MlirAttr* dims = e.CheckStruct(mappings[i], "sdy.tensor_mapping")->Find("text");
      StrAppend(text, i ? ", " : "", dims ? dims->text : "");
    }
    text += side == 0 ? ")->(" : ")";
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += i ? ", " : " {";
    AppendFactorSymbol(text, static_cast<int64_t>(i));
    StrAppend(text, "=", sizes[i]);
  }
  if (!sizes.empty()) text += '}';
  for (std::string_view kind : {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    std::vector<int64_t> factors = e.IntList();
    for (size_t i = 0; i < factors.size(); ++i) {
      if (i) {
        text += ", ";
      } else {
        StrAppend(text, " ", kind, "={");
      }
      if (factors[i] < 0) e.in.Fail("negative factor index");
      AppendFactorSymbol(text, factors[i]);
    }
    if (!factors.empty()) text += '}';
  }
  if (e.in.Byte()) text += ", custom";
  text += '>';
  return e.module().OpaqueAttr(text);
}

// Mappings only occur inside sharding rules; they are kept as their text.
const MlirAttr* MakeText(BytecodeEntry& e, std::string_view name, std::string_view text) {
  MlirNamedAttr field = {"text", e.module().String(e.module().arena().CopyString(text))};
  return e.Take(e.module().Struct(name, {&field, 1}));
}

const MlirAttr* DecodeDimMapping(BytecodeEntry& e) {
  std::string text;
  for (int64_t factor : e.IntList()) {
    if (factor < 0) e.in.Fail("negative factor index");
    AppendFactorSymbol(text, factor);
  }
  return MakeText(e, "sdy.dim_mapping", text);
}

const MlirAttr* DecodeTensorMapping(BytecodeEntry& e) {
  std::string text = "[";
  std::vector<const MlirAttr*> dims = e.AttrList();
  for (size_t i = 0; i < dims.size(); ++i) {
    const MlirAttr* dim = e.CheckStruct(dims[i], "sdy.dim_mapping")->Find("text");
    StrAppend(text, i ? ", " : "", dim ? dim->text : "");
  }
  return MakeText(e, "sdy.tensor_mapping", text + "]");
}

const MlirAttr* DecodeMesh(BytecodeEntry& e) {
  MlirNamedAttr fields[2] = {{"axes", List(e, "sdy.mesh_axis")}, {"device_ids"}};
  std::vector<int64_t> ids = e.IntList();
  fields[1].value = e.module().Ints(ids);
  return e.Take(e.module().Struct("sdy.mesh", std::span(fields, ids.empty() ? 1 : 2)));
}

const MlirAttr* DecodeDimensionSharding(BytecodeEntry& e) {
  MlirNamedAttr fields[3] = {{"axes", List(e, "sdy.axis_ref")}, {"is_closed"}, {"priority"}};
  fields[1].value = e.module().Bool(e.in.Byte() != 0);
  bool has_priority = false;
  uint64_t priority = e.in.VarintWithFlag(has_priority);
  fields[2].value = e.module().Int64(static_cast<int64_t>(priority));
  return e.Take(e.module().Struct("sdy.dimension_sharding", std::span(fields, has_priority ? 3 : 2)));
}

const MlirAttr* DecodeSharding(BytecodeEntry& e, int version) {
  std::vector<MlirNamedAttr> fields;
  fields.push_back({"mesh_or_ref", e.Attr()});
  if (fields[0].value->kind != MlirAttrKind::Symbol) e.CheckStruct(fields[0].value, "sdy.mesh");
  fields.push_back({"dim_shardings", List(e, "sdy.dimension_sharding")});
  fields.push_back({"replicated_axes", List(e, "sdy.axis_ref")});
  if (version >= 2) fields.push_back({"unreduced_axes", List(e, "sdy.axis_ref")});
  if (version >= 3) fields.push_back({"reduction_op", e.module().Int64(e.in.SignedVarint())});
  return e.Take(e.module().Struct("sdy.sharding", fields));
}

const MlirAttr* One(BytecodeEntry& e, std::string_view name, std::string_view field, const MlirAttr* value) {
  MlirNamedAttr f = {field, value};
  return e.Take(e.module().Struct(name, {&f, 1}));
}

}  // namespace

const MlirAttr* DecodeSdyAttr(BytecodeEntry& e) {
  MlirModule& m = e.module();
  uint64_t code = e.in.Varint();
  switch (code) {
    case 0: return One(e, "sdy.manual_axes", "value", Strings(e));
    case 1: {
      MlirNamedAttr fields[2] = {{"name", m.String(e.String())}, {"size"}};
      fields[1].value = m.Int64(e.in.SignedVarint());
      return e.Take(m.Struct("sdy.mesh_axis", fields));
    }
    case 2: return DecodeMesh(e);
    case 3: {
      MlirNamedAttr fields[2] = {{"pre_size", m.Int64(e.in.SignedVarint())}, {"size"}};
      fields[1].value = m.Int64(e.in.SignedVarint());
      return e.Take(m.Struct("sdy.sub_axis_info", fields));
    }
    case 4: {
      MlirNamedAttr fields[2] = {{"name", m.String(e.String())}, {"sub_axis_info"}};
      fields[1].value = e.OptionalAttr();
      if (fields[1].value) e.CheckStruct(fields[1].value, "sdy.sub_axis_info");
      return e.Take(m.Struct("sdy.axis_ref", std::span(fields, fields[1].value ? 2 : 1)));
    }
    case 5: return DecodeDimensionSharding(e);
    case 6: return DecodeSharding(e, 1);
    case 7:
    case 16: return One(e, "sdy.sharding_per_value", "shardings", List(e, "sdy.sharding"));
    case 8: return DecodeDimMapping(e);
    case 9: return DecodeTensorMapping(e);
    case 10: return DecodeShardingRule(e);
    case 11: return One(e, "sdy.axis_ref_list", "value", List(e, "sdy.axis_ref"));
    case 12: return One(e, "sdy.list_of_axis_ref_lists", "value", List(e, "sdy.axis_ref_list"));
    case 13: {
      MlirNamedAttr fields[3] = {{"axes", List(e, "sdy.axis_ref")}, {"src_dim"}, {"tgt_dim"}};
      fields[1].value = m.Int64(e.in.SignedVarint());
      fields[2].value = m.Int64(e.in.SignedVarint());
      return e.Take(m.Struct("sdy.all_to_all_param", fields));
    }
    case 14: return One(e, "sdy.all_to_all_param_list", "value", List(e, "sdy.all_to_all_param"));
    case 15: return DecodeSharding(e, 2);
    case 17: return DecodeSharding(e, 3);
    default: e.in.Fail("unknown Shardy attribute code ", code); return m.Unit();
  }
}

}  // namespace strop
