#include "strop/import/bytecode_reader.h"

#include "strop/import/bytecode_reader_impl.h"
#include "strop/import/text_parser.h"
#include "strop/import/vhlo.h"

namespace strop {
namespace bytecode {

Status BytecodeReader::Read() {
  STROP_TRY(ReadSections());
  STROP_TRY(ReadStrings());
  STROP_TRY(ReadProperties());
  STROP_TRY(ReadDialects());
  STROP_TRY(ReadResources());
  STROP_TRY(ReadTables());
  return ReadIr();
}

Status BytecodeReader::ReadSections() {
  file_.Bytes(4);  // magic
  version_ = file_.Varint();
  if (file_.ok() && version_ > kMaxVersion)
    return Unimplemented("bytecode version ", version_, " is newer than ", kMaxVersion);
  m_.bytecode_version = static_cast<int64_t>(version_);
  m_.producer = std::string(file_.CString());
  while (file_.ok() && !file_.empty()) {
    int id = 0;
    ByteCursor section = file_.Section(id);
    if (!file_.ok()) break;
    if (id >= kNumSections) return InvalidArgument("unknown section ", id).At(StrCat("byte ", section.offset()));
    if (sections_[id])
      return InvalidArgument("two ", kSectionNames[id], " sections").At(StrCat("byte ", section.offset()));
    sections_[id] = section;
  }
  STROP_TRY(file_.status());
  for (int id : {kString, kDialect, kAttrType, kAttrTypeOffset, kIr}) {
    if (!sections_[id]) return InvalidArgument("the bytecode has no ", kSectionNames[id], " section");
  }
  return OkStatus();
}

Status BytecodeReader::ReadStrings() {
  ByteCursor& in = *sections_[kString];
  std::vector<uint64_t> lengths(in.Count("strings"));
  for (size_t i = lengths.size(); i-- > 0;) lengths[i] = in.Varint();
  for (uint64_t length : lengths) {
    std::span<const uint8_t> s = in.Bytes(length);
    if (in.ok() && (length == 0 || s.back() != 0)) in.Fail("a string has no terminating zero");
    if (!in.ok()) return in.status();
    strings_.push_back({reinterpret_cast<const char*>(s.data()), s.size() - 1});
  }
  return in.status();
}

Status BytecodeReader::ReadProperties() {
  if (!sections_[kPropertiesSection]) return OkStatus();
  ByteCursor& in = *sections_[kPropertiesSection];
  if (in.empty()) return OkStatus();
  uint64_t n = in.Count("properties");
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t size = in.Varint();
    size_t at = in.offset();
    properties_.push_back(ByteCursor(in.Bytes(size), at));
  }
  return in.status();
}

Status BytecodeReader::ReadDialects() {
  ByteCursor& in = *sections_[kDialect];
  uint64_t n = in.Count("dialects");
  auto string_at = [&](uint64_t index) -> std::string_view {
    if (index < strings_.size()) return strings_[index];
    in.Fail("string index ", index, " is beyond the table of ", strings_.size());
    return {};
  };
  for (uint64_t i = 0; i < n; ++i) {
    bool versioned = false;
    uint64_t name = version_ < kDialectVersions ? in.Varint() : in.VarintWithFlag(versioned);
    dialects_.push_back(string_at(name));
    if (versioned) {  // what a dialect's version would tell is visible in its encodings
      int id = 0;
      in.Section(id);
      if (in.ok() && id != kDialectVersion) in.Fail("expected a dialect version");
    }
    STROP_TRY(in.status());
  }
  if (version_ >= kElidedArgLocations) in.Varint();  // number of op names, for reserving
  while (in.ok() && !in.empty()) {
    uint64_t dialect = in.Varint();
    uint64_t count = in.Count("operation names");
    if (in.ok() && dialect >= dialects_.size())
      in.Fail("dialect index ", dialect, " is beyond the table of ", dialects_.size());
    for (uint64_t i = 0; i < count && in.ok(); ++i) {
      OpName op;
      uint64_t name = version_ < kProperties ? in.Varint() : in.VarintWithFlag(op.registered);
      op.name = m_.arena().CopyString(StrCat(dialects_[dialect], ".", string_at(name)));
      op.info = FindMlirOp(op.name);
      op.properties = op.info ? op.info->properties.data() : VhloAttributes(op.name);
      op_names_.push_back(op);
    }
  }
  return in.status();
}

Status BytecodeReader::ReadResources() {
  if (!sections_[kResourceOffset]) return OkStatus();
  ByteCursor& in = *sections_[kResourceOffset];
  ByteCursor none;
  ByteCursor& data = sections_[kResource] ? *sections_[kResource] : none;
  uint64_t external_groups = in.Count("resource groups");
  for (uint64_t group = 0; in.ok() && (group < external_groups || !in.empty()); ++group) {
    uint64_t owner = in.Varint();
    bool dialect = group >= external_groups;
    if (dialect && in.ok() && owner >= dialects_.size())
      in.Fail("dialect index ", owner, " is beyond the table of ", dialects_.size());
    uint64_t n = in.Count("resources");
    for (uint64_t i = 0; i < n && in.ok(); ++i) {
      uint64_t key = in.Varint();
      uint64_t size = in.Varint();
      uint8_t kind = in.Byte();
      if (in.ok() && key >= strings_.size()) in.Fail("string index ", key, " is beyond the table of ", strings_.size());
      size_t at = data.offset();
      ByteCursor value(data.Bytes(size), at);
      if (!in.ok() || !data.ok()) break;
      MlirAttr resource;
      resource.kind = MlirAttrKind::DenseResource;
      resource.text = strings_[key];
      if (kind == 0 && size > 0) {  // a blob: alignment, size, padding, bytes
        value.Varint();
        uint64_t blob = value.Varint();
        if (value.ok() && blob > value.left())
          value.Fail("a resource of ", blob, " bytes where ", value.left(), " are left");
        if (value.ok()) value.Bytes(value.left() - blob);
        std::span<const uint8_t> bytes = value.Bytes(blob);
        STROP_TRY(value.status());
        resource.data = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
      }
      if (!dialect) continue;
      STROP_ASSIGN(const MlirAttr* made, m_.Make(resource));
      resources_.push_back(made);
    }
  }
  STROP_TRY(data.status());
  return in.status();
}

Status BytecodeReader::ReadTableEntries(ByteCursor& offsets, ByteCursor& data, std::vector<Entry>& entries) {
  size_t next = 0;
  while (next < entries.size()) {
    uint64_t dialect = offsets.Varint();
    uint64_t count = offsets.Count("table entries");
    if (offsets.ok() && dialect >= dialects_.size())
      offsets.Fail("dialect index ", dialect, " is beyond the table of ", dialects_.size());
    if (offsets.ok() && (count == 0 || count > entries.size() - next))
      offsets.Fail("a group of ", count, " table entries where ", entries.size() - next, " are left");
    for (uint64_t i = 0; i < count && offsets.ok(); ++i) {
      Entry& e = entries[next++];
      e.dialect = dialects_[dialect];
      uint64_t size = offsets.VarintWithFlag(e.custom);
      e.offset = data.offset();
      e.bytes = data.Bytes(size);
      STROP_TRY(data.status());
    }
    STROP_TRY(offsets.status());
  }
  return OkStatus();
}

Status BytecodeReader::ReadTables() {
  ByteCursor& offsets = *sections_[kAttrTypeOffset];
  uint64_t attrs = offsets.Count("attributes");
  uint64_t types = offsets.Count("types");
  STROP_TRY(offsets.status());
  attrs_.resize(attrs);
  types_.resize(types);
  STROP_TRY(ReadTableEntries(offsets, *sections_[kAttrType], attrs_));
  STROP_TRY(ReadTableEntries(offsets, *sections_[kAttrType], types_));
  if (!offsets.empty())
    return InvalidArgument("unexpected bytes after the attribute and type offsets")
        .At(StrCat("byte ", offsets.offset()));
  return OkStatus();
}

// Reads one table entry; T is MlirAttr or MlirType.
template <class T>
Status BytecodeReader::Resolve(Entry& entry) {
  constexpr bool kIsAttr = std::is_same_v<T, MlirAttr>;
  auto at = [&] { return StrCat("byte ", entry.offset); };
  if (entry.reading) return InvalidArgument("an attribute or type refers to itself").At(at());
  if (depth_ >= kMaxReferenceDepth)
    return InvalidArgument("attributes or types are nested deeper than ", kMaxReferenceDepth).At(at());
  TableEntry e(*this, ByteCursor(entry.bytes, entry.offset));
  entry.reading = true;
  ++depth_;
  const T* value = nullptr;
  if (!entry.custom) {
    std::string_view text = e.in.CString();
    if (e.in.ok()) {
      if constexpr (kIsAttr) {
        value = e.Take(ParseMlirAttrText(m_, text));
      } else {
        value = e.Take(ParseMlirTypeText(m_, text));
      }
    }
  } else if constexpr (kIsAttr) {
    value = entry.dialect == "builtin"     ? DecodeBuiltinAttr(e)
            : entry.dialect == "vhlo"      ? DecodeVhloAttr(e)
            : entry.dialect == "stablehlo" ? DecodeStablehloAttr(e)
            : entry.dialect == "sdy"       ? DecodeSdyAttr(e)
            : entry.dialect == "chlo"      ? DecodeChloAttr(e)
            : entry.dialect == "mhlo"      ? DecodeMhloAttr(e)
                                           : nullptr;
  } else {
    value = entry.dialect == "builtin"     ? DecodeBuiltinType(e)
            : entry.dialect == "vhlo"      ? DecodeVhloType(e)
            : entry.dialect == "stablehlo" ? DecodeStablehloType(e)
            : entry.dialect == "quant"     ? DecodeQuantType(e)
                                           : nullptr;
  }
  --depth_;
  entry.reading = false;
  STROP_TRY(e.in.status());
  if (!value) return Unimplemented("the bytecode encoding of dialect '", entry.dialect, "' is not known").At(at());
  if (!e.in.empty())
    return InvalidArgument("unexpected bytes after an attribute or type").At(StrCat("byte ", e.in.offset()));
  entry.value = value;
  return OkStatus();
}

Result<const MlirAttr*> BytecodeReader::Attr(uint64_t index) {
  if (index >= attrs_.size())
    return InvalidArgument("attribute index ", index, " is beyond the table of ", attrs_.size());
  if (!attrs_[index].value) STROP_TRY(Resolve<MlirAttr>(attrs_[index]));
  return static_cast<const MlirAttr*>(attrs_[index].value);
}

Result<const MlirType*> BytecodeReader::Type(uint64_t index) {
  if (index >= types_.size()) return InvalidArgument("type index ", index, " is beyond the table of ", types_.size());
  if (!types_[index].value) STROP_TRY(Resolve<MlirType>(types_[index]));
  return static_cast<const MlirType*>(types_[index].value);
}

}  // namespace bytecode

bool LooksLikeMlirBytecode(std::span<const uint8_t> bytes) {
  return bytes.size() >= 4 && bytes[0] == 'M' && bytes[1] == 'L' && bytes[2] == 0xEF && bytes[3] == 'R';
}

Result<std::unique_ptr<MlirModule>> ReadMlirBytecode(std::span<const uint8_t> bytes) {
  if (!LooksLikeMlirBytecode(bytes))
    return InvalidArgument("not MLIR bytecode: the first four bytes are not \"ML\\xEFR\"");
  auto module = std::make_unique<MlirModule>();
  bytecode::BytecodeReader reader(bytes, *module);
  Status status = reader.Read();
  if (!status.ok()) {
    if (module->producer.empty()) return status;
    return std::move(status).Note(
        StrCat("in bytecode version ", module->bytecode_version, " produced by ", CEscape(module->producer)));
  }
  return module;
}

}  // namespace strop
