// The builtin dialect's attribute and type encodings, and what the other dialects' decoders share.
#include <cstring>

#include "strop/import/bytecode_reader.h"
#include "strop/import/mlir_ops.h"

namespace strop {

const MlirAttr* BytecodeEntry::OptionalAttr() {
  bool present = false;
  uint64_t index = in.VarintWithFlag(present);
  return present ? AttrAt(index) : nullptr;
}

std::string_view BytecodeEntry::StringOfAttr() {
  const MlirAttr* a = Attr();
  if (in.ok() && a->kind != MlirAttrKind::String) in.Fail("expected a string attribute");
  return a->text;
}

const MlirAttr* BytecodeEntry::CheckStruct(const MlirAttr* a, std::string_view name) {
  if (in.ok() && (a->kind != MlirAttrKind::Struct || a->name != name)) in.Fail("expected #", name);
  return a;
}

const MlirAttr* BytecodeEntry::CheckStructs(const MlirAttr* list, std::string_view name) {
  if (in.ok() && list->kind != MlirAttrKind::Array) in.Fail("expected a list of #", name);
  for (const MlirAttr* a : list->elements) CheckStruct(a, name);
  return list;
}

std::string_view BytecodeEntry::Blob() {
  std::span<const uint8_t> b = in.Bytes(in.Varint());
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

uint64_t BytecodeEntry::Int(uint32_t width) {
  uint64_t v = 0;
  if (width <= 8) {
    v = in.Byte();
  } else if (width <= 64) {
    v = static_cast<uint64_t>(in.SignedVarint());
  } else {
    uint64_t words = in.Count("words");
    for (uint64_t i = 0; i < words; ++i) {
      uint64_t word = static_cast<uint64_t>(in.SignedVarint());
      if (i == 0) v = word;
    }
  }
  if (width < 64) v &= (uint64_t{1} << width) - 1;
  return v;
}

std::vector<const MlirAttr*> BytecodeEntry::AttrList() {
  std::vector<const MlirAttr*> out(in.Count("attributes"));
  for (const MlirAttr*& a : out) a = Attr();
  return out;
}

std::vector<const MlirType*> BytecodeEntry::TypeList() {
  std::vector<const MlirType*> out(in.Count("types"));
  for (const MlirType*& t : out) t = Type();
  return out;
}

std::vector<int64_t> BytecodeEntry::IntList() {
  std::vector<int64_t> out(in.Count("integers"));
  for (int64_t& v : out) v = in.SignedVarint();
  return out;
}

const MlirAttr* BytecodeEntry::Take(Result<const MlirAttr*> attr) {
  if (attr.ok()) return *attr;
  in.Fail(attr.status().message());
  return module().Unit();
}

const MlirType* BytecodeEntry::Take(Result<const MlirType*> type) {
  if (type.ok()) return *type;
  in.Fail(type.status().message());
  return module().None();
}

const MlirAttr* DecodeInteger(BytecodeEntry& e, const MlirType* type) {
  uint32_t width = type->kind == MlirTypeKind::Index ? 64 : type->width;
  if (type->kind != MlirTypeKind::Integer && type->kind != MlirTypeKind::Index) {
    e.in.Fail("an integer attribute of type ", PrintType(*type));
    return e.module().Unit();
  }
  uint64_t v = e.Int(width);
  if (width == 1 && type->sign == MlirSign::Signless) return e.module().Bool(v & 1);
  if (type->sign != MlirSign::Unsigned && width > 0 && width < 64 && (v >> (width - 1)) & 1) v |= ~uint64_t{0} << width;
  return e.module().Int(static_cast<int64_t>(v), type);
}

const MlirAttr* DecodeFloat(BytecodeEntry& e, const MlirType* type) {
  if (type->kind != MlirTypeKind::Float || ElementBytes(*type) == 0) {
    e.in.Fail("a float attribute of type ", PrintType(*type));
    return e.module().Unit();
  }
  return e.module().FloatBits(e.Int(type->width), type);
}

const MlirAttr* DecodeEnum(BytecodeEntry& e, std::string_view name) {
  uint64_t number = e.in.Varint();
  std::string_view member = EnumMember(*FindMlirEnum(name), number);
  if (member.empty()) e.in.Fail("no member of ", name, " has the number ", number);
  return e.module().Enum(name, member);
}

const MlirAttr* DecodeDense(BytecodeEntry& e, const MlirType* type) {
  std::string_view blob = e.Blob();
  if (!e.in.ok()) return e.module().Unit();
  int64_t bytes = type->IsTensor() || type->kind == MlirTypeKind::Vector ? ElementBytes(*type->element()) : 0;
  std::optional<int64_t> n = NumElements(*type);
  if (bytes == 0 || !n) {
    e.in.Fail("constant elements of type ", PrintType(*type));
    return e.module().Unit();
  }
  MlirAttr a;
  a.kind = MlirAttrKind::Dense;
  a.type = type;
  a.data = blob;
  const MlirType& element = *type->element();
  if (element.kind == MlirTypeKind::Integer && element.width == 1) {
    // Bits are packed eight to a byte; a splat is one byte, 0xFF or 0. Older writers did not pack.
    uint64_t packed = static_cast<uint64_t>(*n) / 8 + (*n % 8 != 0);
    bool splat = blob.size() == 1 && (static_cast<uint8_t>(blob[0]) == 0xFF || blob[0] == 0 || *n > 8);
    if (splat) {
      char* one = static_cast<char*>(e.module().arena().Allocate(1, 1));
      *one = blob[0] ? 1 : 0;
      a.data = {one, 1};
    } else if (blob.size() == packed && static_cast<int64_t>(blob.size()) != *n) {
      std::span<char> bits = e.module().arena().NewArray<char>(*n);
      for (int64_t i = 0; i < *n; ++i) bits[i] = blob[i / 8] >> (i % 8) & 1;
      a.data = {bits.data(), bits.size()};
    }
  }
  a.splat = static_cast<int64_t>(a.data.size()) == bytes && *n != 1;
  if (!a.splat && (*n > INT64_MAX / bytes || static_cast<int64_t>(a.data.size()) != *n * bytes)) {
    e.in.Fail("a constant of type ", PrintType(*type), " has ", a.data.size(), " bytes");
  }
  return e.Take(e.module().Make(a));
}

namespace {

const MlirAttr* DecodeDict(BytecodeEntry& e) {
  std::vector<MlirNamedAttr> fields(e.in.Count("attributes"));
  for (MlirNamedAttr& f : fields) {
    f.name = e.StringOfAttr();
    f.value = e.Attr();
  }
  return e.Take(e.module().Dict(std::move(fields)));
}

const MlirAttr* DecodeLocList(BytecodeEntry& e, MlirAttrKind kind, std::string_view name, size_t n, bool metadata) {
  MlirAttr a;
  a.kind = kind;
  a.text = name;
  std::vector<const MlirAttr*> locs(n);
  for (const MlirAttr*& l : locs) {
    l = e.Attr();
    if (e.in.ok() && !l->IsLocation()) e.in.Fail("expected a location");
  }
  if (metadata) a.metadata = e.Attr();
  a.elements = e.module().arena().CopyArray(locs);
  return e.Take(e.module().Make(a));
}

// How much of the range is written depends on what it leaves out.
const MlirAttr* DecodeFileRange(BytecodeEntry& e) {
  std::string_view file = e.StringOfAttr();
  uint64_t form = e.in.Varint();
  uint64_t line = 0, column = 0, end_line = 0, end_column = 0;
  if (form > 4) e.in.Fail("unknown form ", form, " of a file range");
  if (form >= 1) line = end_line = e.in.Varint();
  if (form >= 2) column = end_column = e.in.Varint();
  if (form == 4) end_line = e.in.Varint();
  if (form >= 3) end_column = e.in.Varint();
  if (form < 3) end_line = end_column = 0;
  return e.module().FileLoc(file, line, column, end_line, end_column);
}

const MlirAttr* DecodeDenseArray(BytecodeEntry& e) {
  MlirAttr a;
  a.kind = MlirAttrKind::DenseArray;
  a.type = e.Type();
  uint64_t n = e.in.Varint();
  a.data = e.Blob();
  const bool number = a.type->kind == MlirTypeKind::Integer || a.type->kind == MlirTypeKind::Float;
  uint64_t bytes = number ? ElementBytes(*a.type) : 0;
  if (e.in.ok() && (bytes == 0 || a.data.size() / bytes != n || a.data.size() % bytes != 0)) {
    e.in.Fail("an array of ", n, " elements of type ", PrintType(*a.type), " has ", a.data.size(), " bytes");
  }
  return e.Take(e.module().Make(a));
}

// tensor<n x rank x i64> of indices, tensor<n x T> of values
const MlirAttr* DecodeSparse(BytecodeEntry& e, const MlirType* type, const MlirAttr* indices, const MlirAttr* values) {
  MlirModule& m = e.module();
  if (!e.in.ok()) return m.Unit();
  const bool dense = type->IsTensor() && indices->kind == MlirAttrKind::Dense && values->kind == MlirAttrKind::Dense;
  const int64_t n = dense && !indices->type->dims.empty() ? indices->type->dims[0] : 0;
  const int64_t index_dims[] = {n, dense ? static_cast<int64_t>(type->dims.size()) : 0};
  if (!dense || !SameType(*indices->type, *e.Take(m.Tensor(index_dims, m.Integer(64)))) ||
      !SameType(*values->type, *e.Take(m.Tensor({&n, 1}, type->element()))) || (indices->splat && n > 1) ||
      (n > 0 && index_dims[1] == 0)) {
    e.in.Fail("a sparse constant of type ", PrintType(*type), " whose indices and values do not fit");
    return m.Unit();
  }
  MlirAttr a;
  a.kind = MlirAttrKind::Sparse;
  a.type = type;
  const MlirAttr* parts[] = {indices, values};
  a.elements = m.arena().CopyArray(std::span<const MlirAttr* const>(parts));
  return e.Take(m.Make(a));
}

const MlirAttr* DecodeDenseString(BytecodeEntry& e) {
  MlirAttr a;
  a.kind = MlirAttrKind::DenseString;
  a.type = e.Type();
  a.splat = e.in.Varint() != 0;
  std::optional<int64_t> n = a.type->IsTensor() ? NumElements(*a.type) : std::nullopt;
  if (!n || (!a.splat && static_cast<uint64_t>(*n) > e.in.left())) {
    e.in.Fail("constant strings of type ", PrintType(*a.type));
    return e.module().Unit();
  }
  std::vector<const MlirAttr*> strings(a.splat ? 1 : *n);
  for (const MlirAttr*& s : strings) s = e.module().String(e.String());
  a.elements = e.module().arena().CopyArray(strings);
  return e.Take(e.module().Make(a));
}

}  // namespace

const MlirAttr* DecodeBuiltinAttr(BytecodeEntry& e) {
  MlirModule& m = e.module();
  uint64_t code = e.in.Varint();
  switch (code) {
    case 0: return e.Take(m.Array(e.AttrList()));
    case 1: return DecodeDict(e);
    case 2: return m.String(e.String());
    case 3: {
      std::string_view text = e.String();
      return m.String(text, e.Type());
    }
    case 4: return m.Symbol(e.StringOfAttr());
    case 5: {
      std::string_view root = e.StringOfAttr();
      return m.Symbol(root, e.AttrList());
    }
    case 6: return m.TypeValue(e.Type());
    case 7: return m.Unit();
    case 8: return DecodeInteger(e, e.Type());
    case 9: return DecodeFloat(e, e.Type());
    case 10: return DecodeLocList(e, MlirAttrKind::CallSiteLoc, {}, 2, false);
    case 11: {
      std::string_view file = e.StringOfAttr();
      uint64_t line = e.in.Varint();
      return m.FileLoc(file, line, e.in.Varint());
    }
    case 12:
    case 13: return DecodeLocList(e, MlirAttrKind::FusedLoc, {}, e.in.Count("locations"), code == 13);
    case 14: {
      std::string_view name = e.StringOfAttr();
      return DecodeLocList(e, MlirAttrKind::NameLoc, name, 1, false);
    }
    case 15: return m.UnknownLoc();
    case 16: {
      const MlirType* type = e.Type();
      MlirAttr a = *e.ResourceAt(e.in.Varint());
      if (!e.in.ok()) return m.Unit();
      a.type = type;
      return e.Take(m.Make(a));
    }
    case 17: return DecodeDenseArray(e);
    case 18: return DecodeDense(e, e.Type());
    case 19: return DecodeDenseString(e);
    case 20: {
      const MlirType* type = e.Type();
      const MlirAttr* indices = e.Attr();
      return DecodeSparse(e, type, indices, e.Attr());
    }
    case 21: return e.Attr();  // distinct[..]<attr>: identity carries no meaning here
    case 22: return DecodeFileRange(e);
    default: e.in.Fail("unknown builtin attribute code ", code); return m.Unit();
  }
}

const MlirType* DecodeBuiltinType(BytecodeEntry& e) {
  MlirModule& m = e.module();
  uint64_t code = e.in.Varint();
  auto shaped = [&](MlirTypeKind kind) {
    std::vector<int64_t> dims = e.IntList();
    return e.Take(m.Shaped(kind, dims, e.Type()));
  };
  switch (code) {
    case 0: {
      uint64_t v = e.in.Varint();
      const uint64_t bits = v >> 2, sign = v & 3;
      if (bits == 0 || bits >= (1 << 24) || sign == 3) {
        e.in.Fail("an integer type of ", bits, " bits, signedness ", sign);
        return m.Integer(1);
      }
      return m.Integer(static_cast<uint32_t>(bits), static_cast<MlirSign>(sign));
    }
    case 1: return m.Index();
    case 2: {
      std::vector<const MlirType*> types = e.TypeList();
      uint32_t inputs = static_cast<uint32_t>(types.size());
      for (const MlirType* t : e.TypeList()) types.push_back(t);
      return e.Take(m.Composite(MlirTypeKind::Function, types, inputs));
    }
    case 3: return m.Float(MlirFloat::BF16);
    case 4: return m.Float(MlirFloat::F16);
    case 5: return m.Float(MlirFloat::F32);
    case 6: return m.Float(MlirFloat::F64);
    case 7: return m.Float(MlirFloat::F80);
    case 8: return m.Float(MlirFloat::F128);
    case 9: {
      const MlirType* part = e.Type();
      return e.Take(m.Composite(MlirTypeKind::Complex, {&part, 1}));
    }
    case 10:
    case 11: {
      if (code == 11) e.Attr();  // memory space
      const MlirType* t = shaped(MlirTypeKind::MemRef);
      e.Attr();  // layout
      return t;
    }
    case 12: return m.None();
    case 13: return shaped(MlirTypeKind::Tensor);
    case 14: {
      const MlirAttr* encoding = e.Attr();
      std::vector<int64_t> dims = e.IntList();
      return e.Take(m.Tensor(dims, e.Type(), encoding));
    }
    case 15: return e.Take(m.Composite(MlirTypeKind::Tuple, e.TypeList()));
    case 18: return e.Take(m.Shaped(MlirTypeKind::UnrankedTensor, {}, e.Type()));
    case 19: return shaped(MlirTypeKind::Vector);
    case 21:
    case 22:
    case 23:
    case 24:
    case 25:
    case 26:
    case 27:
    case 28:
    case 29:
    case 30:
    case 31:
    case 32: {
      using enum MlirFloat;
      constexpr MlirFloat kSmallFloats[] = {TF32,          F8E5M2, F8E4M3,   F8E4M3FN, F8E5M2FNUZ, F8E4M3FNUZ,
                                            F8E4M3B11FNUZ, F8E3M4, F4E2M1FN, F6E2M3FN, F6E3M2FN,   F8E8M0FNU};
      return m.Float(kSmallFloats[code - 21]);
    }
    default: e.in.Fail("unknown builtin type code ", code); return m.None();
  }
}

}  // namespace strop
