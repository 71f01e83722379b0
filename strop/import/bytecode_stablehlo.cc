// Attribute and type encodings of StableHLO, CHLO and VHLO.
#include <cmath>

#include "strop/import/bytecode_reader.h"
#include "strop/import/mlir_ops.h"

namespace strop {
namespace {

// A struct whose fields are encoded one after the other in the order of the table.
const MlirAttr* DecodeStruct(BytecodeEntry& e, std::string_view name) {
  MlirModule& m = e.module();
  const MlirStructInfo& info = *FindMlirStruct(name);
  std::vector<MlirNamedAttr> fields;
  std::string_view rest = info.fields;
  MlirFieldInfo field;
  while (NextField(rest, field)) {
    const MlirAttr* value = nullptr;
    bool empty = false;
    switch (field.kind) {
      case MlirFieldKind::Dims: {
        std::vector<int64_t> dims = e.IntList();
        empty = dims.empty();
        value = m.Ints(dims);
        break;
      }
      case MlirFieldKind::Int: {
        int64_t v = e.in.SignedVarint();
        empty = v == 0;
        value = m.Int64(v);
        break;
      }
      case MlirFieldKind::Bool: value = m.Bool(e.in.Byte() != 0); break;
      case MlirFieldKind::Type: value = m.TypeValue(e.Type()); break;
      case MlirFieldKind::String: value = m.String(e.String()); break;
      case MlirFieldKind::Attr: value = e.Attr(); break;
    }
    if (!(info.elide && empty)) fields.push_back({field.name, value});
  }
  return e.Take(m.Struct(info.name, fields));
}

const MlirAttr* DecodeAccuracy(BytecodeEntry& e) {
  MlirModule& m = e.module();
  const MlirType* f64 = m.Float(MlirFloat::F64);
  MlirNamedAttr fields[4] = {{"atol"}, {"rtol"}, {"ulps"}, {"mode"}};
  fields[0].value = m.FloatBits(e.Int(64), f64);
  fields[1].value = m.FloatBits(e.Int(64), f64);
  fields[2].value = m.Int64(e.in.SignedVarint());
  fields[3].value = e.Attr();
  if (e.in.ok() &&
      (fields[3].value->kind != MlirAttrKind::Enum || fields[3].value->name != "stablehlo.result_accuracy_mode"))
    e.in.Fail("expected #stablehlo.result_accuracy_mode");
  return e.Take(m.Struct("stablehlo.result_accuracy", fields));
}

// `sub` was read by the caller, who knows how its presence is marked.
const MlirAttr* MakeAxisRef(BytecodeEntry& e, std::string_view name, const MlirAttr* sub) {
  if (sub) e.CheckStruct(sub, "stablehlo.sub_axis_info");
  MlirNamedAttr fields[2] = {{"name", e.module().String(name)}, {"sub_axis_info", sub}};
  return e.Take(e.module().Struct("stablehlo.axis_ref", std::span(fields, sub ? 2 : 1)));
}

const MlirAttr* MakeMesh(BytecodeEntry& e, const MlirAttr* axes, const MlirAttr* ids) {
  e.CheckStructs(axes, "stablehlo.mesh_axis");
  MlirNamedAttr fields[2] = {{"axes", axes}, {"device_ids", ids}};
  return e.Take(e.module().Struct("stablehlo.mesh", std::span(fields, ids ? 2 : 1)));
}

const MlirAttr* MakePair(BytecodeEntry& e, std::string_view name, MlirNamedAttr a, MlirNamedAttr b) {
  MlirNamedAttr fields[2] = {a, b};
  return e.Take(e.module().Struct(name, fields));
}

}  // namespace

const MlirAttr* DecodeStablehloAttr(BytecodeEntry& e) {
  MlirModule& m = e.module();
  uint64_t code = e.in.Varint();
  switch (code) {
    case 1: return DecodeStruct(e, "stablehlo.channel_handle");
    case 2: return DecodeEnum(e, "stablehlo.comparison_direction");
    case 3: return DecodeEnum(e, "stablehlo.comparison_type");
    case 4: return DecodeStruct(e, "stablehlo.conv");
    case 5: return DecodeStruct(e, "stablehlo.dot");
    case 6: return DecodeEnum(e, "stablehlo.fft_type");
    case 7: return DecodeStruct(e, "stablehlo.gather");
    case 8: return DecodeEnum(e, "stablehlo.precision");
    case 9: return DecodeEnum(e, "stablehlo.rng_algorithm");
    case 10: return DecodeEnum(e, "stablehlo.rng_distribution");
    case 11: return DecodeStruct(e, "stablehlo.scatter");
    case 12: return DecodeEnum(e, "stablehlo.transpose");
    case 13: return DecodeStruct(e, "stablehlo.type_extensions");
    case 14: return DecodeStruct(e, "stablehlo.output_operand_alias");
    case 15: return DecodeStruct(e, "stablehlo.dot_algorithm");
    case 16: return DecodeEnum(e, "stablehlo.result_accuracy_mode");
    case 17: return DecodeAccuracy(e);
    case 18: {
      const MlirAttr* mesh = e.Attr();
      const MlirAttr* axes = e.Take(m.Array(e.AttrList()));
      return MakePair(e, "stablehlo.replica_group_mesh_axes", {"mesh", mesh}, {"axes", axes});
    }
    case 19: return DecodeStruct(e, "stablehlo.sub_axis_info");
    case 20: {
      std::string_view name = e.String();
      return MakeAxisRef(e, name, e.in.Byte() ? e.Attr() : nullptr);
    }
    case 21: return DecodeStruct(e, "stablehlo.mesh_axis");
    case 22: {
      const MlirAttr* axes = e.Attr();
      return MakeMesh(e, axes, e.in.Byte() ? e.Attr() : nullptr);
    }
    default: e.in.Fail("unknown StableHLO attribute code ", code); return m.Unit();
  }
}

const MlirType* DecodeStablehloType(BytecodeEntry& e) {
  uint64_t code = e.in.Varint();
  if (code == 0) return e.module().Token();
  if (code == 1) return e.Take(e.module().Composite(MlirTypeKind::Future, e.TypeList()));
  e.in.Fail("unknown StableHLO type code ", code);
  return e.module().None();
}

const MlirAttr* DecodeChloAttr(BytecodeEntry& e) {
  uint64_t code = e.in.Varint();
  if (code == 0) return DecodeEnum(e, "chlo.comparison_direction");
  if (code == 1) return DecodeEnum(e, "chlo.comparison_type");
  e.in.Fail("unknown CHLO attribute code ", code);
  return e.module().Unit();
}

// What ops of MHLO need; others are marks that say nothing about the meaning of a program.
const MlirAttr* DecodeMhloAttr(BytecodeEntry& e) {
  uint64_t code = e.in.Varint();
  if (code == 14) return DecodeEnum(e, "mhlo.kind");
  if (code == 15) return DecodeEnum(e, "mhlo.fusion_kind");
  if (code == 16) return DecodeStruct(e, "stablehlo.output_operand_alias");
  e.in.Bytes(e.in.left());
  return e.module().OpaqueAttr(e.module().arena().CopyString(StrCat("#mhlo.attribute_", code)));
}

const MlirAttr* DecodeVhloAttr(BytecodeEntry& e) {
  MlirModule& m = e.module();
  uint64_t code = e.in.Varint();
  switch (code) {
    case 1: return e.Take(m.Array(e.AttrList()));
    case 2: return m.Bool(e.in.Varint() != 0);
    case 3: return DecodeEnum(e, "stablehlo.comparison_direction");
    case 4: return DecodeEnum(e, "stablehlo.comparison_type");
    case 5: return DecodeEnum(e, "stablehlo.custom_call_api_version");
    case 6: {
      std::vector<MlirNamedAttr> fields(e.in.Count("attributes"));
      for (MlirNamedAttr& f : fields) {
        f.name = e.StringOfAttr();
        f.value = e.Attr();
      }
      return e.Take(m.Dict(std::move(fields)));
    }
    case 7: return DecodeEnum(e, "stablehlo.fft_type");
    case 8: return DecodeFloat(e, e.Type());
    case 9: return DecodeInteger(e, e.Type());
    case 10: return DecodeStruct(e, "stablehlo.output_operand_alias");
    case 11: return DecodeEnum(e, "stablehlo.precision");
    case 12: return DecodeEnum(e, "stablehlo.rng_algorithm");
    case 13: return DecodeEnum(e, "stablehlo.rng_distribution");
    case 14: return m.String(e.String());
    case 15: return DecodeDense(e, e.Type());
    case 16: return DecodeEnum(e, "stablehlo.transpose");
    case 17: return m.TypeValue(e.Type());
    case 18: return DecodeStruct(e, "stablehlo.type_extensions");
    case 19: return DecodeEnum(e, "stablehlo.result_accuracy_mode");
    case 20: return DecodeAccuracy(e);
    case 21: return DecodeStruct(e, "stablehlo.sub_axis_info");
    case 22: {
      std::string_view name = e.StringOfAttr();
      return MakeAxisRef(e, name, e.in.Varint() ? e.Attr() : nullptr);
    }
    case 23: {
      const MlirAttr* mesh = e.Attr();
      return MakePair(e, "stablehlo.replica_group_mesh_axes", {"mesh", mesh}, {"axes", e.Attr()});
    }
    case 24: {
      const MlirAttr* name = m.String(e.StringOfAttr());
      return MakePair(e, "stablehlo.mesh_axis", {"name", name}, {"size", m.Int64(e.in.SignedVarint())});
    }
    case 25: {
      const MlirAttr* axes = e.Attr();
      return MakeMesh(e, axes, e.OptionalAttr());
    }
    default: e.in.Fail("unknown VHLO attribute code ", code); return m.Unit();
  }
}

namespace {

const MlirType* DecodeQuantized(BytecodeEntry& e, bool per_axis) {
  MlirModule& m = e.module();
  MlirQuant* q = m.arena().New<MlirQuant>();
  q->flags = e.in.Varint();
  const MlirType* storage = e.Type();
  const MlirType* expressed = e.Type();
  std::vector<double> scales;
  std::vector<int64_t> zeros;
  auto scale = [&] { return std::bit_cast<double>(e.Int(64)); };
  if (per_axis) {
    q->axis = static_cast<int64_t>(e.in.Varint());
    q->storage_min = e.in.SignedVarint();
    q->storage_max = e.in.SignedVarint();
    scales.resize(e.in.Count("scales"));
    for (double& s : scales) s = scale();
    zeros.resize(e.in.Count("zero points"));
    for (int64_t& z : zeros) z = e.in.SignedVarint();
    if (zeros.size() != scales.size())
      e.in.Fail("a quantized type has ", scales.size(), " scales and ", zeros.size(), " zero points");
    if (q->axis < 0) e.in.Fail("a quantized type has the axis ", q->axis);
  } else {
    scales.push_back(scale());
    zeros.push_back(e.in.SignedVarint());
    q->storage_min = e.in.SignedVarint();
    q->storage_max = e.in.SignedVarint();
  }
  if (e.in.ok() && (storage->kind != MlirTypeKind::Integer || storage->width == 0 || storage->width > 32)) {
    e.in.Fail("a quantized type stored as ", PrintType(*storage));
  }
  for (double s : scales)
    if (e.in.ok() && !std::isfinite(s)) e.in.Fail("a quantized type with the scale ", s);
  q->scales = m.arena().CopyArray(scales);
  q->zero_points = m.arena().CopyArray(zeros);
  MlirType* t = m.arena().New<MlirType>();
  t->kind = MlirTypeKind::Quantized;
  const MlirType* parts[] = {storage, expressed};
  t->types = m.arena().CopyArray(std::span<const MlirType* const>(parts));
  t->tree_size = 1 + storage->tree_size;
  t->quant = q;
  return t;
}

}  // namespace

// The upstream quant dialect, whose uniform types are encoded as VHLO's.
const MlirType* DecodeQuantType(BytecodeEntry& e) {
  uint64_t code = e.in.Varint();
  if (code == 4 || code == 5) return DecodeQuantized(e, code == 5);
  e.in.Fail("unknown quant type code ", code);
  return e.module().None();
}

const MlirType* DecodeVhloType(BytecodeEntry& e) {
  MlirModule& m = e.module();
  uint64_t code = e.in.Varint();
  switch (code) {
    case 0: return m.Integer(1);
    case 1: {
      const MlirType* part = e.Type();
      return e.Take(m.Composite(MlirTypeKind::Complex, {&part, 1}));
    }
    case 2: return m.Float(MlirFloat::BF16);
    case 3: return m.Float(MlirFloat::F16);
    case 4: return m.Float(MlirFloat::F32);
    case 5: return m.Float(MlirFloat::F64);
    case 6: return m.Float(MlirFloat::F8E4M3FN);
    case 7: return m.Float(MlirFloat::F8E5M2);
    case 8: {
      std::vector<const MlirType*> types = e.TypeList();
      uint32_t inputs = static_cast<uint32_t>(types.size());
      for (const MlirType* t : e.TypeList()) types.push_back(t);
      return e.Take(m.Composite(MlirTypeKind::Function, types, inputs));
    }
    case 9: return m.Index();
    case 10:
    case 11:
    case 12:
    case 13:
    case 14: return m.Integer(4u << (code - 10));
    case 15:
    case 16:
    case 17:
    case 18:
    case 19: return m.Integer(4u << (code - 15), MlirSign::Unsigned);
    case 20:
    case 21: {
      const MlirAttr* encoding = code == 21 ? e.Attr() : nullptr;
      std::vector<int64_t> dims = e.IntList();
      return e.Take(m.Tensor(dims, e.Type(), encoding));
    }
    case 22: return m.Token();
    case 23: return e.Take(m.Composite(MlirTypeKind::Tuple, e.TypeList()));
    case 24:
    case 30: return DecodeQuantized(e, code == 30);
    case 25: return e.Take(m.Shaped(MlirTypeKind::UnrankedTensor, {}, e.Type()));
    case 26: return m.OpaqueType("!shape.witness");
    case 27: return m.Float(MlirFloat::F8E4M3FNUZ);
    case 28: return m.Float(MlirFloat::F8E5M2FNUZ);
    case 29: return m.Float(MlirFloat::F8E4M3B11FNUZ);
    case 31: return m.Integer(2);
    case 32: return m.Integer(2, MlirSign::Unsigned);
    case 33: return m.None();
    case 34: return m.Float(MlirFloat::TF32);
    case 35: return m.Float(MlirFloat::F8E4M3);
    case 36: return m.Float(MlirFloat::F8E3M4);
    case 37: return m.Float(MlirFloat::F4E2M1FN);
    case 38: return m.Float(MlirFloat::F6E2M3FN);
    case 39: return m.Float(MlirFloat::F6E3M2FN);
    case 40: return m.Float(MlirFloat::F8E8M0FNU);
    case 41: {
      std::vector<int64_t> dims = e.IntList();
      return e.Take(m.Shaped(MlirTypeKind::MemRef, dims, e.Type()));
    }
    case 42: return e.Take(m.Composite(MlirTypeKind::Future, e.TypeList()));
    default: e.in.Fail("unknown VHLO type code ", code); return m.None();
  }
}

}  // namespace strop
