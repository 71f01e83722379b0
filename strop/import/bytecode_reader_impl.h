// The reader behind bytecode_reader.h: sections and tables (bytecode_reader.cc), operations (bytecode_ir.cc).
#pragma once
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "strop/import/bytecode_cursor.h"
#include "strop/import/bytecode_reader.h"
#include "strop/import/mlir.h"
#include "strop/import/mlir_ops.h"

namespace strop::bytecode {

inline constexpr uint64_t kMaxVersion = 6;
// Versions at which parts of the encoding changed.
inline constexpr uint64_t kDialectVersions = 1, kRegionSections = 2, kUseListOrders = 3, kElidedArgLocations = 4,
                          kProperties = 5;
inline constexpr int kMaxReferenceDepth = 1000;

enum SectionId {
  kString,
  kDialect,
  kAttrType,
  kAttrTypeOffset,
  kIr,
  kResource,
  kResourceOffset,
  kDialectVersion,
  kPropertiesSection,
  kNumSections
};
inline constexpr std::string_view kSectionNames[] = {
    "string",          "dialect",         "attribute and type", "attribute and type offset", "IR", "resource",
    "resource offset", "dialect version", "properties"};

class BytecodeReader {
 public:
  BytecodeReader(std::span<const uint8_t> bytes, MlirModule& module) : file_(bytes, 0), m_(module) {}
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
    TableEntry(BytecodeReader& reader, ByteCursor cursor) : reader_(reader) { in = std::move(cursor); }
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
    BytecodeReader& reader_;
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
    size_t first_seen = 0;  // the first value that operands may name, given that IsIsolated ops hide those before
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

}  // namespace strop::bytecode
