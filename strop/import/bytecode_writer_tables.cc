// Tables of the bytecode writer, and the builtin encodings. VHLO's are in bytecode_writer_vhlo.cc.
#include "strop/import/bytecode_writer_tables.h"

namespace strop::bytecode {
namespace {

constexpr std::string_view kDialectNames[] = {"builtin", "vhlo"};

// Runs of entries of one dialect: dialect, length of the run, and what `write` adds for each.
template <class T, class DialectOf, class Write>
void WriteGroups(const std::vector<T>& list, ByteSink& out, DialectOf dialect_of, Write write) {
  for (size_t begin = 0; begin < list.size();) {
    size_t end = begin + 1;
    while (end < list.size() && dialect_of(list[end]) == dialect_of(list[begin])) ++end;
    out.Varint(static_cast<uint64_t>(dialect_of(list[begin])));
    out.Varint(end - begin);
    for (; begin < end; ++begin) write(list[begin]);
  }
}

}  // namespace

uint64_t WriterTables::String(std::string_view text) {
  const auto [it, added] = string_index_.emplace(std::string(text), strings_.size());
  if (added) strings_.emplace_back(text);
  return it->second;
}

uint64_t WriterTables::OpName(std::string_view name) {
  const auto [it, added] = op_index_.emplace(std::string(name), op_names_.size());
  if (added) {
    const size_t dot = name.find('.');
    const bool vhlo = name.substr(0, dot) == "vhlo";
    op_names_.push_back({vhlo ? WriterDialect::Vhlo : WriterDialect::Builtin, String(name.substr(dot + 1))});
  }
  return it->second;
}

uint64_t WriterTables::EntryTable::Add(WriterDialect dialect, const std::string& bytes) {
  const auto [it, added] = by_bytes.emplace(static_cast<char>(dialect) + bytes, entries.size());
  if (added) entries.push_back({dialect, bytes});
  return it->second;
}

Result<uint64_t> WriterTables::Type(const MlirType& type, WriterDialect dialect) {
  auto& known = types_.by_node[static_cast<int>(dialect)];
  if (const auto found = known.find(&type); found != known.end()) return found->second;
  ByteSink out;
  STROP_TRY(dialect == WriterDialect::Vhlo ? VhloType(type, out) : BuiltinType(type, out));
  return known[&type] = types_.Add(dialect, out.bytes());
}

Result<uint64_t> WriterTables::Attr(const MlirAttr& attr, WriterDialect dialect) {
  auto& known = attrs_.by_node[static_cast<int>(dialect)];
  if (const auto found = known.find(&attr); found != known.end()) return found->second;
  ByteSink out;
  STROP_TRY(dialect == WriterDialect::Vhlo ? VhloAttr(attr, out) : BuiltinAttr(attr, out));
  return known[&attr] = attrs_.Add(dialect, out.bytes());
}

Result<uint64_t> WriterTables::Dict(std::span<const MlirNamedAttr> fields, WriterDialect dialect) {
  ByteSink out;
  out.Varint(1);
  out.Varint(fields.size());
  for (const MlirNamedAttr& f : fields) {
    out.Varint(StringAttr(f.name, WriterDialect::Builtin));
    STROP_TRY(Ref(f.value, dialect, out));
  }
  return attrs_.Add(WriterDialect::Builtin, out.bytes());
}

Status WriterTables::Ref(const MlirType* type, WriterDialect dialect, ByteSink& out) {
  STROP_ASSIGN(const uint64_t index, Type(*type, dialect));
  out.Varint(index);
  return OkStatus();
}

Status WriterTables::Ref(const MlirAttr* attr, WriterDialect dialect, ByteSink& out) {
  STROP_ASSIGN(const uint64_t index, Attr(*attr, dialect));
  out.Varint(index);
  return OkStatus();
}

Status WriterTables::Refs(std::span<const MlirType* const> types, WriterDialect dialect, ByteSink& out) {
  out.Varint(types.size());
  for (const MlirType* t : types) STROP_TRY(Ref(t, dialect, out));
  return OkStatus();
}

Status WriterTables::Refs(std::span<const MlirAttr* const> attrs, WriterDialect dialect, ByteSink& out) {
  out.Varint(attrs.size());
  for (const MlirAttr* a : attrs) STROP_TRY(Ref(a, dialect, out));
  return OkStatus();
}

uint64_t WriterTables::StringAttr(std::string_view text, WriterDialect dialect) {
  ByteSink out;
  out.Varint(dialect == WriterDialect::Vhlo ? 14 : 2);
  out.Varint(String(text));
  return attrs_.Add(dialect, out.bytes());
}

std::string WriterTables::StringSection() const {
  ByteSink out;
  out.Varint(strings_.size());
  for (size_t i = strings_.size(); i-- > 0;) out.Varint(strings_[i].size() + 1);
  for (const std::string& s : strings_) {
    out.Bytes(s);
    out.Byte(0);
  }
  return out.bytes();
}

std::string WriterTables::DialectSection() {
  ByteSink out;
  out.Varint(std::size(kDialectNames));
  for (std::string_view name : kDialectNames) out.VarintWithFlag(String(name), false);  // without a version
  out.Varint(op_names_.size());
  WriteGroups(
      op_names_, out, [](const auto& op) { return op.first; },
      [&](const auto& op) { out.VarintWithFlag(op.second, true); });
  return out.bytes();
}

std::string WriterTables::EntrySection() const {
  ByteSink out;
  for (const EntryTable* table : {&attrs_, &types_})
    for (const Entry& e : table->entries) out.Bytes(e.bytes);
  return out.bytes();
}

std::string WriterTables::EntryOffsetSection() const {
  ByteSink out;
  out.Varint(attrs_.entries.size());
  out.Varint(types_.entries.size());
  for (const EntryTable* table : {&attrs_, &types_}) {
    WriteGroups(
        table->entries, out, [](const Entry& e) { return e.dialect; },
        [&](const Entry& e) { out.VarintWithFlag(e.bytes.size(), true); });
  }
  return out.bytes();
}

Status WriterTables::NeedsRelease(std::string_view what, int release) const {
  if (minor_ >= release) return OkStatus();
  return InvalidArgument(what, " came with StableHLO 1.", release, " and cannot be said in 1.", minor_);
}

Status WriterTables::BuiltinType(const MlirType& type, ByteSink& out) {
  using enum MlirTypeKind;
  switch (type.kind) {
    case Integer:
      out.Varint(0);
      out.Varint(static_cast<uint64_t>(type.width) << 2 | static_cast<uint64_t>(type.sign));
      return OkStatus();
    case Index: out.Varint(1); return OkStatus();
    case Float:
      switch (type.float_kind) {
        case MlirFloat::BF16: out.Varint(3); return OkStatus();
        case MlirFloat::F16: out.Varint(4); return OkStatus();
        case MlirFloat::F32: out.Varint(5); return OkStatus();
        case MlirFloat::F64: out.Varint(6); return OkStatus();
        default: break;
      }
      break;
    case Tensor:
      if (type.encoding) break;
      out.Varint(13);
      out.Varint(type.dims.size());
      for (int64_t d : type.dims) out.SignedVarint(d);
      return Ref(type.element(), WriterDialect::Builtin, out);
    default: break;
  }
  return Unimplemented("type ", PrintType(type), " has no form in a portable artifact outside of its operations");
}

Status WriterTables::Location(const MlirAttr& attr, ByteSink& out) {
  constexpr WriterDialect kBuiltin = WriterDialect::Builtin;
  const uint64_t line = attr.bits & 0xffffffff, column = attr.bits >> 32;
  const uint64_t end_line = attr.range_end & 0xffffffff, end_column = attr.range_end >> 32;
  switch (attr.kind) {
    case MlirAttrKind::CallSiteLoc:
      out.Varint(10);
      for (const MlirAttr* e : attr.elements) STROP_TRY(Ref(e, kBuiltin, out));
      return OkStatus();
    case MlirAttrKind::FileLoc: {
      const bool range = attr.range_end != 0 && minor_ >= 9;  // older readers know no ranges
      out.Varint(range ? 22 : 11);
      out.Varint(StringAttr(attr.text, kBuiltin));
      if (range) out.Varint(end_line == line ? 3 : 4);  // how much of the end is told
      out.Varint(line);
      out.Varint(column);
      if (range && end_line != line) out.Varint(end_line);
      if (range) out.Varint(end_column);
      return OkStatus();
    }
    case MlirAttrKind::FusedLoc:
      out.Varint(attr.metadata ? 13 : 12);
      STROP_TRY(Refs(attr.elements, kBuiltin, out));
      return attr.metadata ? Ref(attr.metadata, kBuiltin, out) : OkStatus();
    case MlirAttrKind::NameLoc:
      out.Varint(14);
      out.Varint(StringAttr(attr.text, kBuiltin));
      return Ref(attr.elements[0], kBuiltin, out);
    default: out.Varint(15); return OkStatus();
  }
}

Status WriterTables::BuiltinAttr(const MlirAttr& attr, ByteSink& out) {
  constexpr WriterDialect kBuiltin = WriterDialect::Builtin;
  if (attr.IsLocation()) return Location(attr, out);
  using enum MlirAttrKind;
  switch (attr.kind) {
    case Array: out.Varint(0); return Refs(attr.elements, kBuiltin, out);
    case MlirAttrKind::Dict: {
      out.Varint(1);
      out.Varint(attr.fields.size());
      for (const MlirNamedAttr& f : attr.fields) {
        out.Varint(StringAttr(f.name, kBuiltin));
        STROP_TRY(Ref(f.value, kBuiltin, out));
      }
      return OkStatus();
    }
    case MlirAttrKind::String:
      if (attr.type && attr.type->kind != MlirTypeKind::None) break;
      out.Varint(2);
      out.Varint(WriterTables::String(attr.text));
      return OkStatus();
    case Symbol:
      if (!attr.elements.empty()) break;
      out.Varint(4);
      out.Varint(StringAttr(attr.text, kBuiltin));
      return OkStatus();
    case MlirAttrKind::Type: out.Varint(6); return Ref(attr.type, kBuiltin, out);
    case Unit: out.Varint(7); return OkStatus();
    case Bool: {
      ByteSink i1;
      i1.Varint(0);
      i1.Varint(1 << 2);
      out.Varint(8);
      out.Varint(types_.Add(kBuiltin, i1.bytes()));
      out.Byte(attr.bits ? 1 : 0);
      return OkStatus();
    }
    case Integer:
      out.Varint(8);
      STROP_TRY(Ref(attr.type, kBuiltin, out));
      out.Int(attr.bits, attr.type->kind == MlirTypeKind::Index ? 64 : attr.type->width);
      return OkStatus();
    case Float:
      out.Varint(9);
      STROP_TRY(Ref(attr.type, kBuiltin, out));
      out.Int(attr.bits, attr.type->width);
      return OkStatus();
    case DenseArray:
      out.Varint(17);
      STROP_TRY(Ref(attr.type, kBuiltin, out));
      out.Varint(attr.data.size() / std::max<int64_t>(1, ElementBytes(*attr.type)));
      out.Blob(attr.data);
      return OkStatus();
    case MlirAttrKind::Dense: out.Varint(18); return WriterTables::Dense(attr, kBuiltin, out);
    default: break;
  }
  return Unimplemented("attribute ", PrintAttr(attr), " of the module has no form in a portable artifact");
}

}  // namespace strop::bytecode
