// VHLO's encodings of types and attributes, and the releases that brought them.
#include <bit>

#include "strop/import/bytecode_writer_tables.h"
#include "strop/import/mlir_ops.h"

namespace strop::bytecode {
namespace {

constexpr WriterDialect kVhlo = WriterDialect::Vhlo;

struct FloatRow {
  MlirFloat kind;
  int code, release;
};
constexpr FloatRow kFloats[] = {
    {MlirFloat::BF16, 2, 0},        {MlirFloat::F16, 3, 0},         {MlirFloat::F32, 4, 0},
    {MlirFloat::F64, 5, 0},         {MlirFloat::F8E4M3FN, 6, 0},    {MlirFloat::F8E5M2, 7, 0},
    {MlirFloat::F8E4M3FNUZ, 27, 0}, {MlirFloat::F8E5M2FNUZ, 28, 0}, {MlirFloat::F8E4M3B11FNUZ, 29, 0},
    {MlirFloat::TF32, 34, 6},       {MlirFloat::F8E4M3, 35, 7},     {MlirFloat::F8E3M4, 36, 7},
    {MlirFloat::F4E2M1FN, 37, 8},   {MlirFloat::F6E2M3FN, 38, 8},   {MlirFloat::F6E3M2FN, 39, 8},
    {MlirFloat::F8E8M0FNU, 40, 8}};

struct EnumRow {
  std::string_view name;
  int code;
};
constexpr EnumRow kEnums[] = {{"stablehlo.comparison_direction", 3},
                              {"stablehlo.comparison_type", 4},
                              {"stablehlo.custom_call_api_version", 5},
                              {"stablehlo.fft_type", 7},
                              {"stablehlo.precision", 11},
                              {"stablehlo.rng_algorithm", 12},
                              {"stablehlo.rng_distribution", 13},
                              {"stablehlo.transpose", 16},
                              {"stablehlo.result_accuracy_mode", 19}};

// Code of an integer type; -1 if VHLO has none.
int IntegerCode(const MlirType& type) {
  const bool is_unsigned = type.sign == MlirSign::Unsigned;
  if (type.sign == MlirSign::Signed) return -1;
  if (type.width == 1) return is_unsigned ? -1 : 0;
  if (type.width == 2) return is_unsigned ? 32 : 31;
  if (type.width < 4 || type.width > 64 || !std::has_single_bit(type.width)) return -1;
  return (is_unsigned ? 15 : 10) + std::countr_zero(type.width) - 2;
}

void Dims(std::span<const int64_t> dims, ByteSink& out) {
  out.Varint(dims.size());
  for (int64_t d : dims) out.SignedVarint(d);
}

}  // namespace

Status WriterTables::QuantizedType(const MlirType& type, ByteSink& out) {
  const MlirQuant& q = *type.quant;
  if (q.axis < -1) return Unimplemented("the blockwise type ", PrintType(type), " has no form in a portable artifact");
  const bool per_axis = q.axis >= 0;
  auto scale = [&](double s) { out.Int(std::bit_cast<uint64_t>(s), 64); };
  out.Varint(per_axis ? 30 : 24);
  out.Varint(q.flags);
  STROP_TRY(Ref(type.types[0], kVhlo, out));
  STROP_TRY(Ref(type.types[1], kVhlo, out));
  if (!per_axis) {
    scale(q.scales[0]);
    out.SignedVarint(q.zero_points[0]);
  } else {
    out.Varint(static_cast<uint64_t>(q.axis));
  }
  out.SignedVarint(q.storage_min);
  out.SignedVarint(q.storage_max);
  if (per_axis) {
    out.Varint(q.scales.size());
    for (double s : q.scales) scale(s);
    Dims(q.zero_points, out);
  }
  return OkStatus();
}

Status WriterTables::VhloType(const MlirType& type, ByteSink& out) {
  using enum MlirTypeKind;
  switch (type.kind) {
    case Integer: {
      const int code = IntegerCode(type);
      if (code < 0) break;
      if (type.width == 2) STROP_TRY(NeedsRelease(PrintType(type), 2));
      out.Varint(code);
      return OkStatus();
    }
    case Index: out.Varint(9); return OkStatus();
    case Float:
      for (const FloatRow& row : kFloats) {
        if (row.kind != type.float_kind) continue;
        out.Varint(row.code);
        return NeedsRelease(PrintType(type), row.release);
      }
      break;
    case Complex: out.Varint(1); return Ref(type.element(), kVhlo, out);
    case Function:
      out.Varint(8);
      STROP_TRY(Refs(type.inputs(), kVhlo, out));
      return Refs(type.results(), kVhlo, out);
    case Tuple: out.Varint(23); return Refs(type.types, kVhlo, out);
    case Tensor:
      out.Varint(type.encoding ? 21 : 20);
      if (type.encoding) STROP_TRY(Ref(type.encoding, kVhlo, out));
      Dims(type.dims, out);
      return Ref(type.element(), kVhlo, out);
    case UnrankedTensor: out.Varint(25); return Ref(type.element(), kVhlo, out);
    case MemRef:
      STROP_TRY(NeedsRelease(PrintType(type), 13));
      out.Varint(41);
      Dims(type.dims, out);
      return Ref(type.element(), kVhlo, out);
    case None: out.Varint(33); return NeedsRelease("the type none", 6);
    case Token: out.Varint(22); return OkStatus();
    case Future:
      STROP_TRY(NeedsRelease(PrintType(type), 15));
      out.Varint(42);
      return Refs(type.types, kVhlo, out);
    case MlirTypeKind::Quantized: return QuantizedType(type, out);
    case Vector:
    case Opaque: break;
  }
  return Unimplemented("type ", PrintType(type), " has no form in a portable artifact");
}

// The constants of a tensor: its type and a blob, in which bits are packed eight to a byte.
Status WriterTables::Dense(const MlirAttr& attr, WriterDialect dialect, ByteSink& out) {
  const std::optional<int64_t> n = NumElements(*attr.type);
  const int64_t held = attr.splat && !attr.data.empty() ? 1 : n.value_or(0);
  if (!n || static_cast<int64_t>(attr.data.size()) != held * ElementBytes(*attr.type->element()))
    return Unimplemented("constant ", PrintAttr(attr), " has no form in a portable artifact");
  STROP_TRY(Ref(attr.type, dialect, out));
  const MlirType& element = *attr.type->element();
  if (element.kind != MlirTypeKind::Integer || element.width != 1) {
    out.Blob(attr.data);
    return OkStatus();
  }
  if (attr.splat && *n > 1) {
    out.Blob(attr.data[0] ? "\xFF" : std::string_view("\0", 1));
    return OkStatus();
  }
  std::string packed((*n + 7) / 8, '\0');
  for (int64_t i = 0; i < *n; ++i) {
    if (attr.data[i]) packed[i / 8] = static_cast<char>(packed[i / 8] | 1 << (i % 8));
  }
  out.Blob(packed);
  return OkStatus();
}

// A list of i64 or i1, which VHLO keeps as a tensor.
Status WriterTables::DenseOfArray(const MlirAttr& attr, ByteSink& out) {
  const MlirType& element = *attr.type;
  if (element.kind != MlirTypeKind::Integer || (element.width != 64 && element.width != 1))
    return Unimplemented("attribute ", PrintAttr(attr), " has no form in a portable artifact");
  const int64_t n = static_cast<int64_t>(attr.data.size()) / (element.width == 1 ? 1 : 8);
  const MlirType* elements[] = {&element};
  MlirType tensor;
  tensor.kind = MlirTypeKind::Tensor;
  tensor.dims = {&n, 1};
  tensor.types = elements;
  MlirAttr dense;
  dense.kind = MlirAttrKind::Dense;
  dense.data = attr.data;
  dense.type = &tensor;
  ByteSink type;
  STROP_TRY(VhloType(tensor, type));
  types_.by_node[static_cast<int>(kVhlo)][&tensor] = types_.Add(kVhlo, type.bytes());
  Status status = Dense(dense, kVhlo, out);
  types_.by_node[static_cast<int>(kVhlo)].erase(&tensor);
  return status;
}

Status WriterTables::VhloEnum(const MlirAttr& attr, ByteSink& out) {
  const MlirEnumInfo* info = FindMlirEnum(attr.name);
  for (const EnumRow& row : kEnums) {
    if (row.name != attr.name) continue;
    constexpr uint64_t kMaxMembers = 16;
    for (uint64_t number = 0; number < kMaxMembers; ++number) {
      if (EnumMember(*info, number) != attr.text) continue;
      out.Varint(row.code);
      out.Varint(number);
      return OkStatus();
    }
  }
  return Unimplemented("attribute ", PrintAttr(attr), " has no form in a portable artifact");
}

Status WriterTables::VhloStruct(const MlirAttr& attr, ByteSink& out) {
  auto dims = [&](std::string_view field) -> Status {
    const MlirAttr* value = attr.Find(field);
    Result<std::vector<int64_t>> values = value ? IntegersOf(*value) : std::vector<int64_t>();
    if (!values.ok()) return values.status();
    Dims(*values, out);
    return OkStatus();
  };
  auto integer = [&](std::string_view field) {
    const MlirAttr* value = attr.Find(field);
    out.SignedVarint(value ? value->as_int() : 0);
  };
  auto text = [&](std::string_view field) {
    const MlirAttr* value = attr.Find(field);
    out.Varint(StringAttr(value ? value->text : std::string_view(), kVhlo));
  };
  // A part that must be there.
  auto part = [&](std::string_view field) -> Status {
    const MlirAttr* value = attr.Find(field);
    if (!value) return InvalidArgument("attribute ", PrintAttr(attr), " lacks ", field);
    return Ref(value, kVhlo, out);
  };
  if (attr.name == "stablehlo.output_operand_alias") {
    out.Varint(10);
    STROP_TRY(dims("output_tuple_indices"));
    integer("operand_index");
    return dims("operand_tuple_indices");
  }
  if (attr.name == "stablehlo.type_extensions") {
    out.Varint(18);
    return dims("bounds");
  }
  if (attr.name == "stablehlo.result_accuracy") {
    STROP_TRY(NeedsRelease(PrintAttr(attr), 9));
    out.Varint(20);
    for (std::string_view field : {"atol", "rtol"}) {
      const MlirAttr* value = attr.Find(field);
      out.Int(value ? value->bits : 0, 64);
    }
    integer("ulps");
    return part("mode");
  }
  STROP_TRY(NeedsRelease(PrintAttr(attr), 16));
  if (attr.name == "stablehlo.sub_axis_info") {
    out.Varint(21);
    integer("pre_size");
    integer("size");
    return OkStatus();
  }
  if (attr.name == "stablehlo.axis_ref") {
    out.Varint(22);
    text("name");
    const bool sub = attr.Find("sub_axis_info") != nullptr;
    out.Varint(sub ? 1 : 0);
    return sub ? part("sub_axis_info") : OkStatus();
  }
  if (attr.name == "stablehlo.replica_group_mesh_axes") {
    out.Varint(23);
    STROP_TRY(part("mesh"));
    return part("axes");
  }
  if (attr.name == "stablehlo.mesh_axis") {
    out.Varint(24);
    text("name");
    integer("size");
    return OkStatus();
  }
  if (attr.name == "stablehlo.mesh") {
    out.Varint(25);
    STROP_TRY(part("axes"));
    const MlirAttr* ids = attr.Find("device_ids");
    if (!ids) {
      out.Varint(0);
      return OkStatus();
    }
    STROP_ASSIGN(const uint64_t index, Attr(*ids, kVhlo));
    out.VarintWithFlag(index, true);
    return OkStatus();
  }
  return Unimplemented("attribute ", PrintAttr(attr), " has no form in a portable artifact");
}

Status WriterTables::VhloAttr(const MlirAttr& attr, ByteSink& out) {
  using enum MlirAttrKind;
  switch (attr.kind) {
    case Array: out.Varint(1); return Refs(attr.elements, kVhlo, out);
    case Bool:
      out.Varint(2);
      out.Varint(attr.bits ? 1 : 0);
      return OkStatus();
    case MlirAttrKind::Dict:
      out.Varint(6);
      out.Varint(attr.fields.size());
      for (const MlirNamedAttr& f : attr.fields) {
        out.Varint(StringAttr(f.name, kVhlo));
        STROP_TRY(Ref(f.value, kVhlo, out));
      }
      return OkStatus();
    case Float:
      out.Varint(8);
      STROP_TRY(Ref(attr.type, kVhlo, out));
      out.Int(attr.bits, attr.type->width);
      return OkStatus();
    case Integer:
      out.Varint(9);
      STROP_TRY(Ref(attr.type, kVhlo, out));
      out.Int(attr.bits, attr.type->kind == MlirTypeKind::Index ? 64 : attr.type->width);
      return OkStatus();
    case Symbol:
      if (!attr.elements.empty()) break;
      out.Varint(14);
      out.Varint(WriterTables::String(attr.text));
      return OkStatus();
    case MlirAttrKind::String:
      if (attr.type && attr.type->kind != MlirTypeKind::None) break;
      out.Varint(14);
      out.Varint(WriterTables::String(attr.text));
      return OkStatus();
    case MlirAttrKind::Dense:
    case DenseResource: out.Varint(15); return WriterTables::Dense(attr, kVhlo, out);
    case DenseArray: out.Varint(15); return DenseOfArray(attr, out);
    case MlirAttrKind::Type: out.Varint(17); return Ref(attr.type, kVhlo, out);
    case Enum: return VhloEnum(attr, out);
    case Struct: return VhloStruct(attr, out);
    default: break;
  }
  return Unimplemented("attribute ", PrintAttr(attr), " has no form in a portable artifact");
}

}  // namespace strop::bytecode
