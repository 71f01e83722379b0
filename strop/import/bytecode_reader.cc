#include "strop/import/bytecode_reader.h"

#include <array>
#include <optional>
#include <unordered_map>

#include "strop/import/mlir_ops.h"
#include "strop/import/text_parser.h"
#include "strop/import/vhlo.h"

namespace strop {
namespace {

constexpr uint64_t kMaxVersion = 6;
// Versions at which parts of the encoding changed.
constexpr uint64_t kDialectVersions = 1, kRegionSections = 2, kUseListOrders = 3, kElidedArgLocations = 4, kProperties = 5;
constexpr int kMaxReferenceDepth = 1000;

enum SectionId { kString, kDialect, kAttrType, kAttrTypeOffset, kIr, kResource, kResourceOffset, kDialectVersion, kPropertiesSection, kNumSections };
constexpr std::string_view kSectionNames[] = {"string",   "dialect",         "attribute and type", "attribute and type offset", "IR",
                                              "resource", "resource offset", "dialect version",    "properties"};

class Reader {
 public:
  Reader(std::span<const uint8_t> bytes, MlirModule& module) : file_(bytes, 0), m_(module) {}
  Status Read();

 private:
  struct Entry {  // of the attribute or type table
    std::string_view dialect;
    bool custom = false;  // encoded by the dialect; otherwise text
    bool reading = false;
    std::span<const uint8_t> bytes;
    size_t offset = 0;
    const void* value = nullptr;
  };
  struct OpName {
    std::string_view name;  // with the dialect
    bool registered = true;
    const MlirOpInfo* info = nullptr;
    const char* properties = nullptr;  // null if not known
  };

  // What a dialect decoder sees of one entry.
  class TableEntry final : public BytecodeEntry {
   public:
    TableEntry(Reader& reader, ByteCursor cursor) : reader_(reader) { in = std::move(cursor); }
    MlirModule& module() override { return reader_.m_; }
    const MlirAttr* AttrAt(uint64_t index) override {
      if (!in.ok()) return reader_.m_.Unit();
      Result<const MlirAttr*> a = reader_.Attr(index);
      if (a.ok()) return *a;
      in.Fail(a.status().message());
      return reader_.m_.Unit();
    }
    const MlirType* TypeAt(uint64_t index) override {
      if (!in.ok()) return reader_.m_.None();
      Result<const MlirType*> t = reader_.Type(index);
      if (t.ok()) return *t;
      in.Fail(t.status().message());
      return reader_.m_.None();
    }
    std::string_view StringAt(uint64_t index) override {
      if (in.ok() && index < reader_.strings_.size()) return reader_.strings_[index];
      in.Fail("string index ", index, " is beyond the table of ", reader_.strings_.size());
      return {};
    }
    const MlirAttr* ResourceAt(uint64_t index) override {
      if (in.ok() && index < reader_.resources_.size()) return reader_.resources_[index];
      in.Fail("resource index ", index, " is beyond the table of ", reader_.resources_.size());
      return reader_.m_.Unit();
    }

   private:
    Reader& reader_;
  };

  Status ReadSections();
  Status ReadStrings();
  Status ReadDialects();
  Status ReadTables();
  Status ReadResources();
  Status ReadProperties();
  Status ReadTableEntries(ByteCursor& offsets, ByteCursor& data, std::vector<Entry>& entries);

  Result<const MlirAttr*> Attr(uint64_t index);
  Result<const MlirType*> Type(uint64_t index);
  template <class T>
  Status Resolve(Entry& entry);

  // IR.
  struct Frame {  // the regions of one op being read, one block after the other
    MlirOp* op = nullptr;
    bool isolated = false;
    std::optional<ByteCursor> own;  // the cursor of a region that is its own section
    size_t region = 0, block = 0;
    bool in_region = false;
    uint64_t ops_left = 0;
    size_t first_value = 0;
    std::vector<MlirOp*> ops;
  };
  struct Scope {  // of values, one per isolated op
    std::vector<MlirValue*> values;
    std::vector<size_t> next;  // per open region: the number of the next value to be defined
    std::vector<std::pair<MlirValue**, size_t>> forward;
  };
  Status ReadIr();
  Status StepRegions();
  ByteCursor& Cursor();
  Status OpenRegion(Frame& frame);
  Status CloseRegion(Frame& frame);
  Status ReadBlockHeader(Frame& frame);
  Status SkipUseListOrder(ByteCursor& in, size_t num_values);
  Result<MlirOp*> ReadOp(Frame& frame, bool& isolated);
  Status ReadOpAttrs(ByteCursor& in, uint8_t mask, const OpName& name, MlirOp* op);
  Status ReadNativeProperties(uint64_t index, const OpName& name, std::vector<MlirNamedAttr>& attrs);
  Status DefineValue(MlirValue* value, const ByteCursor& in);

  ByteCursor file_;
  MlirModule& m_;
  uint64_t version_ = 0;
  std::array<std::optional<ByteCursor>, kNumSections> sections_;
  std::vector<std::string_view> strings_;
  std::vector<std::string_view> dialects_;
  std::vector<OpName> op_names_;
  std::vector<Entry> attrs_, types_;
  std::vector<const MlirAttr*> resources_;
  std::vector<ByteCursor> properties_;
  int depth_ = 0;
  std::vector<Frame> frames_;
  std::vector<Scope> scopes_;
};

Status Reader::Read() {
  STROP_TRY(ReadSections());
  STROP_TRY(ReadStrings());
  STROP_TRY(ReadProperties());
  STROP_TRY(ReadDialects());
  STROP_TRY(ReadResources());
  STROP_TRY(ReadTables());
  return ReadIr();
}

Status Reader::ReadSections() {
  file_.Bytes(4);  // magic
  version_ = file_.Varint();
  if (file_.ok() && version_ > kMaxVersion) return Unimplemented("bytecode version ", version_, " is newer than ", kMaxVersion);
  m_.bytecode_version = static_cast<int64_t>(version_);
  m_.producer = std::string(file_.CString());
  while (file_.ok() && !file_.empty()) {
    int id = 0;
    ByteCursor section = file_.Section(id);
    if (!file_.ok()) break;
    if (id >= kNumSections) return InvalidArgument("unknown section ", id).At(StrCat("byte ", section.offset()));
    if (sections_[id]) return InvalidArgument("two ", kSectionNames[id], " sections").At(StrCat("byte ", section.offset()));
    sections_[id] = section;
  }
  STROP_TRY(file_.status());
  for (int id : {kString, kDialect, kAttrType, kAttrTypeOffset, kIr}) {
    if (!sections_[id]) return InvalidArgument("the bytecode has no ", kSectionNames[id], " section");
  }
  return OkStatus();
}

Status Reader::ReadStrings() {
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

Status Reader::ReadProperties() {
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

Status Reader::ReadDialects() {
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
    if (in.ok() && dialect >= dialects_.size()) in.Fail("dialect index ", dialect, " is beyond the table of ", dialects_.size());
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

Status Reader::ReadResources() {
  if (!sections_[kResourceOffset]) return OkStatus();
  ByteCursor& in = *sections_[kResourceOffset];
  ByteCursor none;
  ByteCursor& data = sections_[kResource] ? *sections_[kResource] : none;
  uint64_t external_groups = in.Count("resource groups");
  for (uint64_t group = 0; in.ok() && (group < external_groups || !in.empty()); ++group) {
    uint64_t owner = in.Varint();
    bool dialect = group >= external_groups;
    if (dialect && in.ok() && owner >= dialects_.size()) in.Fail("dialect index ", owner, " is beyond the table of ", dialects_.size());
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
        if (value.ok() && blob > value.left()) value.Fail("a resource of ", blob, " bytes where ", value.left(), " are left");
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

Status Reader::ReadTableEntries(ByteCursor& offsets, ByteCursor& data, std::vector<Entry>& entries) {
  size_t next = 0;
  while (next < entries.size()) {
    uint64_t dialect = offsets.Varint();
    uint64_t count = offsets.Count("table entries");
    if (offsets.ok() && dialect >= dialects_.size()) offsets.Fail("dialect index ", dialect, " is beyond the table of ", dialects_.size());
    if (offsets.ok() && (count == 0 || count > entries.size() - next)) offsets.Fail("a group of ", count, " table entries where ", entries.size() - next, " are left");
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

Status Reader::ReadTables() {
  ByteCursor& offsets = *sections_[kAttrTypeOffset];
  uint64_t attrs = offsets.Count("attributes");
  uint64_t types = offsets.Count("types");
  STROP_TRY(offsets.status());
  attrs_.resize(attrs);
  types_.resize(types);
  STROP_TRY(ReadTableEntries(offsets, *sections_[kAttrType], attrs_));
  STROP_TRY(ReadTableEntries(offsets, *sections_[kAttrType], types_));
  if (!offsets.empty()) return InvalidArgument("unexpected bytes after the attribute and type offsets").At(StrCat("byte ", offsets.offset()));
  return OkStatus();
}

// Reads one table entry; T is MlirAttr or MlirType.
template <class T>
Status Reader::Resolve(Entry& entry) {
  constexpr bool kIsAttr = std::is_same_v<T, MlirAttr>;
  auto at = [&] { return StrCat("byte ", entry.offset); };
  if (entry.reading) return InvalidArgument("an attribute or type refers to itself").At(at());
  if (depth_ >= kMaxReferenceDepth) return InvalidArgument("attributes or types are nested deeper than ", kMaxReferenceDepth).At(at());
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
  if (!e.in.empty()) return InvalidArgument("unexpected bytes after an attribute or type").At(StrCat("byte ", e.in.offset()));
  entry.value = value;
  return OkStatus();
}

Result<const MlirAttr*> Reader::Attr(uint64_t index) {
  if (index >= attrs_.size()) return InvalidArgument("attribute index ", index, " is beyond the table of ", attrs_.size());
  if (!attrs_[index].value) STROP_TRY(Resolve<MlirAttr>(attrs_[index]));
  return static_cast<const MlirAttr*>(attrs_[index].value);
}

Result<const MlirType*> Reader::Type(uint64_t index) {
  if (index >= types_.size()) return InvalidArgument("type index ", index, " is beyond the table of ", types_.size());
  if (!types_[index].value) STROP_TRY(Resolve<MlirType>(types_[index]));
  return static_cast<const MlirType*>(types_[index].value);
}

// ---- IR ---------------------------------------------------------------------------------------------------------------

ByteCursor& Reader::Cursor() {
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].own) return *frames_[i].own;
  }
  return *sections_[kIr];
}

Status Reader::ReadIr() {
  // The top level is one block without arguments, whose values (there are none) belong to no region.
  MlirOp* holder = m_.arena().New<MlirOp>();
  holder->name = "builtin.module";
  holder->info = FindMlirOp(holder->name);
  holder->loc = m_.UnknownLoc();
  MlirRegion* region = m_.arena().New<MlirRegion>();
  region->parent = holder;
  MlirBlock* block = m_.arena().New<MlirBlock>();
  block->parent = region;
  region->blocks = m_.arena().CopyArray(std::vector<MlirBlock*>{block});
  holder->regions = m_.arena().CopyArray(std::vector<MlirRegion*>{region});

  scopes_.emplace_back();
  scopes_.back().next.push_back(0);
  Frame top;
  top.op = holder;
  top.in_region = true;
  frames_.push_back(std::move(top));
  STROP_TRY(ReadBlockHeader(frames_.back()));
  while (!frames_.empty()) STROP_TRY(StepRegions());
  std::vector<MlirOp*> ops(block->ops.begin(), block->ops.end());
  m_.root = ops.size() == 1 && ops[0]->name == "builtin.module" ? ops[0] : holder;
  m_.root->parent = nullptr;
  return OkStatus();
}

// Reads ops of the innermost frame until it is done or an op with regions opens a new one.
Status Reader::StepRegions() {
  Frame& frame = frames_.back();
  while (true) {
    if (!frame.in_region) {
      if (frame.region == frame.op->regions.size()) break;
      STROP_TRY(OpenRegion(frame));
      if (!frame.in_region) {  // an empty region
        ++frame.region;
        continue;
      }
    }
    while (frame.ops_left > 0) {
      --frame.ops_left;
      bool isolated = false;
      STROP_ASSIGN(MlirOp * op, ReadOp(frame, isolated));
      frame.ops.push_back(op);
      if (op->regions.empty()) continue;
      Frame child;
      child.op = op;
      child.isolated = isolated;
      if (isolated && version_ >= kRegionSections) {
        int id = 0;
        ByteCursor& in = Cursor();
        child.own = in.Section(id);
        STROP_TRY(in.status());
        if (id != kIr) return InvalidArgument("expected an IR section").At(StrCat("byte ", in.offset()));
      }
      if (frames_.size() > kMaxNesting) return InvalidArgument("regions are nested deeper than ", kMaxNesting);
      if (isolated) scopes_.emplace_back();
      frames_.push_back(std::move(child));  // `frame` is dangling from here
      return OkStatus();
    }
    MlirRegion* region = frame.op->regions[frame.region];
    region->blocks[frame.block]->ops = m_.arena().CopyArray(frame.ops);
    frame.ops.clear();
    if (++frame.block < region->blocks.size()) {
      STROP_TRY(ReadBlockHeader(frame));
      continue;
    }
    STROP_TRY(CloseRegion(frame));
    frame.in_region = false;
    ++frame.region;
  }
  if (frame.isolated) scopes_.pop_back();
  frames_.pop_back();
  return OkStatus();
}

Status Reader::OpenRegion(Frame& frame) {
  ByteCursor& in = Cursor();
  uint64_t blocks = in.Count("blocks");
  if (blocks == 0) return in.status();
  uint64_t values = in.Count("values");
  STROP_TRY(in.status());
  MlirRegion* region = frame.op->regions[frame.region];
  region->blocks = m_.arena().NewArray<MlirBlock*>(blocks);
  for (MlirBlock*& b : region->blocks) {
    b = m_.arena().New<MlirBlock>();
    b->parent = region;
  }
  Scope& scope = scopes_.back();
  frame.first_value = scope.values.size();
  scope.next.push_back(scope.values.size());
  scope.values.resize(scope.values.size() + values);
  frame.in_region = true;
  frame.block = 0;
  return ReadBlockHeader(frame);
}

Status Reader::CloseRegion(Frame& frame) {
  Scope& scope = scopes_.back();
  size_t kept = 0;
  for (auto& [slot, index] : scope.forward) {
    if (index < frame.first_value) {
      scope.forward[kept++] = {slot, index};
    } else if (!scope.values[index]) {
      return InvalidArgument("an operand refers to value ", index, ", which is never defined");
    } else {
      *slot = scope.values[index];
    }
  }
  scope.forward.resize(kept);
  scope.values.resize(frame.first_value);
  scope.next.pop_back();
  return OkStatus();
}

Status Reader::SkipUseListOrder(ByteCursor& in, size_t num_values) {
  uint64_t entries = num_values > 1 ? in.Count("use-list orders") : 1;
  for (uint64_t i = 0; i < entries && in.ok(); ++i) {
    if (num_values > 1) in.Varint();
    bool pairs = false;
    uint64_t n = in.VarintWithFlag(pairs);
    if (n > in.left()) in.Fail("the bytecode claims ", n, " uses where ", in.left(), " bytes are left");
    for (uint64_t k = 0; k < n && in.ok(); ++k) in.Varint();
  }
  return in.status();
}

Status Reader::ReadBlockHeader(Frame& frame) {
  ByteCursor& in = Cursor();
  bool has_args = false;
  frame.ops_left = in.VarintWithFlag(has_args);
  MlirBlock* block = frame.op->regions[frame.region]->blocks[frame.block];
  if (!has_args) return in.status();
  uint64_t n = in.Count("block arguments");
  STROP_TRY(in.status());
  block->args = m_.arena().NewArray<MlirValue*>(n);
  for (uint64_t i = 0; i < n; ++i) {
    bool has_loc = true;
    uint64_t type = version_ >= kElidedArgLocations ? in.VarintWithFlag(has_loc) : in.Varint();
    STROP_TRY(in.status());
    MlirValue* arg = m_.arena().New<MlirValue>();
    block->args[i] = arg;
    STROP_ASSIGN(arg->type, Type(type));
    arg->loc = m_.UnknownLoc();
    if (has_loc) {
      STROP_ASSIGN(arg->loc, Attr(in.Varint()));
    }
    arg->block = block;
    arg->index = static_cast<uint32_t>(i);
    STROP_TRY(DefineValue(arg, in));
  }
  if (version_ >= kUseListOrders && in.Byte()) STROP_TRY(SkipUseListOrder(in, n));
  return in.status();
}

Status Reader::DefineValue(MlirValue* value, const ByteCursor& in) {
  Scope& scope = scopes_.back();
  size_t& next = scope.next.back();
  if (next >= scope.values.size()) return InvalidArgument("a region defines more values than it declares").At(StrCat("byte ", in.offset()));
  scope.values[next++] = value;
  return OkStatus();
}

Status Reader::ReadNativeProperties(uint64_t index, const OpName& name, std::vector<MlirNamedAttr>& attrs) {
  if (index >= properties_.size()) return InvalidArgument("properties index ", index, " is beyond the table of ", properties_.size());
  TableEntry e(*this, properties_[index]);
  if (!name.registered) {
    const MlirAttr* dict = e.Attr();
    STROP_TRY(e.in.status());
    attrs.insert(attrs.end(), dict->fields.begin(), dict->fields.end());
    return OkStatus();
  }
  if (!name.properties) return Unimplemented("the properties of operation '", name.name, "' are not known").At(StrCat("byte ", e.in.offset()));
  // One attribute after the other in the order of the table; optional ones carry a flag.
  std::string_view rest = name.properties;
  while (!rest.empty() && e.in.ok()) {
    size_t space = rest.find(' ');
    std::string_view word = rest.substr(0, space);
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    if (word.ends_with("SegmentSizes")) return Unimplemented("operand segments of '", name.name, "' in bytecode properties");
    if (optional && e.in.empty()) continue;  // written before this property came up
    const MlirAttr* value = optional ? e.OptionalAttr() : e.Attr();
    if (value) attrs.push_back({word, value});
  }
  if (e.in.ok() && !e.in.empty()) e.in.Fail("unexpected bytes after the properties of '", name.name, "'");
  return e.in.status();
}

Status Reader::ReadOpAttrs(ByteCursor& in, uint8_t mask, const OpName& name, MlirOp* op) {
  std::vector<MlirNamedAttr> attrs;
  if (mask & 1) {
    STROP_ASSIGN(const MlirAttr* dict, Attr(in.Varint()));
    if (dict->kind != MlirAttrKind::Dict) return InvalidArgument("the attributes of '", name.name, "' are no dictionary").At(StrCat("byte ", in.offset()));
    attrs.assign(dict->fields.begin(), dict->fields.end());
  }
  if (mask & 64) {
    uint64_t index = in.Varint();
    STROP_TRY(in.status());
    STROP_TRY(ReadNativeProperties(index, name, attrs));
  }
  if (attrs.empty()) return in.status();
  Result<const MlirAttr*> dict = m_.Dict(std::move(attrs));
  if (!dict.ok()) return std::move(dict).status().At(StrCat("byte ", in.offset()));
  op->attrs = (*dict)->fields;
  return in.status();
}

Result<MlirOp*> Reader::ReadOp(Frame& frame, bool& isolated) {
  ByteCursor& in = Cursor();
  uint64_t name_index = in.Varint();
  uint8_t mask = in.Byte();
  uint64_t loc = in.Varint();
  STROP_TRY(in.status());
  if (name_index >= op_names_.size()) return InvalidArgument("operation name ", name_index, " is beyond the table of ", op_names_.size()).At(StrCat("byte ", in.offset()));
  const OpName& name = op_names_[name_index];
  MlirOp* op = m_.arena().New<MlirOp>();
  op->name = name.name;
  op->info = name.info;
  op->parent = frame.op->regions[frame.region]->blocks[frame.block];
  STROP_ASSIGN(op->loc, Attr(loc));
  if (!op->loc->IsLocation()) return InvalidArgument("the location of '", op->name, "' is no location").At(StrCat("byte ", in.offset()));
  STROP_TRY(ReadOpAttrs(in, mask, name, op));
  if (mask & 2) {
    uint64_t n = in.Count("results");
    op->results = m_.arena().NewArray<MlirValue>(n);
    for (uint64_t i = 0; i < n; ++i) {
      STROP_ASSIGN(op->results[i].type, Type(in.Varint()));
      op->results[i].op = op;
      op->results[i].index = static_cast<uint32_t>(i);
    }
  }
  if (mask & 4) {
    Scope& scope = scopes_.back();
    op->operands = m_.arena().NewArray<MlirValue*>(in.Count("operands"));
    for (MlirValue*& operand : op->operands) {
      uint64_t index = in.Varint();
      if (in.ok() && index >= scope.values.size()) in.Fail("value ", index, " is beyond the ", scope.values.size(), " of its region");
      STROP_TRY(in.status());
      operand = scope.values[index];
      if (!operand) scope.forward.push_back({&operand, index});
    }
  }
  if (mask & 8) {
    std::span<MlirBlock*> blocks = op->parent->parent->blocks;
    op->successors = m_.arena().NewArray<MlirBlock*>(in.Count("successors"));
    for (MlirBlock*& s : op->successors) {
      uint64_t index = in.Varint();
      if (in.ok() && index >= blocks.size()) in.Fail("successor ", index, " is beyond the ", blocks.size(), " blocks of its region");
      STROP_TRY(in.status());
      s = blocks[index];
    }
  }
  if (version_ >= kUseListOrders && mask & 32) STROP_TRY(SkipUseListOrder(in, op->results.size()));
  if (mask & 16) {
    uint64_t n = in.VarintWithFlag(isolated);
    if (n > in.left()) in.Fail("the bytecode claims ", n, " regions where ", in.left(), " bytes are left");
    STROP_TRY(in.status());
    op->regions = m_.arena().NewArray<MlirRegion*>(n);
    for (MlirRegion*& r : op->regions) {
      r = m_.arena().New<MlirRegion>();
      r->parent = op;
    }
  }
  // Results at the top level are not numbered.
  if (frames_.size() > 1) {
    for (MlirValue& r : op->results) STROP_TRY(DefineValue(&r, in));
  }
  STROP_TRY(in.status());
  return op;
}

}  // namespace

bool LooksLikeMlirBytecode(std::span<const uint8_t> bytes) {
  return bytes.size() >= 4 && bytes[0] == 'M' && bytes[1] == 'L' && bytes[2] == 0xEF && bytes[3] == 'R';
}

Result<std::unique_ptr<MlirModule>> ReadMlirBytecode(std::span<const uint8_t> bytes) {
  if (!LooksLikeMlirBytecode(bytes)) return InvalidArgument("not MLIR bytecode: the first four bytes are not \"ML\\xEFR\"");
  auto module = std::make_unique<MlirModule>();
  Reader reader(bytes, *module);
  Status status = reader.Read();
  if (!status.ok()) {
    if (module->producer.empty()) return status;
    return std::move(status).Note(StrCat("in bytecode version ", module->bytecode_version, " produced by ", CEscape(module->producer)));
  }
  return module;
}

}  // namespace strop
