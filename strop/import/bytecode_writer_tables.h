// The tables of a bytecode file being written: strings, dialects, op names, attributes and types.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strop/base/status.h"
#include "strop/import/bytecode_sink.h"
#include "strop/import/mlir.h"

namespace strop::bytecode {

enum class WriterDialect : uint8_t { Builtin, Vhlo };

class WriterTables {
 public:
  explicit WriterTables(int minor) : minor_(minor) {}

  uint64_t String(std::string_view text);
  uint64_t OpName(std::string_view name);  // with the dialect
  // Index of an entry, made when first asked for.
  Result<uint64_t> Type(const MlirType& type, WriterDialect dialect);
  Result<uint64_t> Attr(const MlirAttr& attr, WriterDialect dialect);
  // A builtin dictionary whose values are of `dialect`.
  Result<uint64_t> Dict(std::span<const MlirNamedAttr> fields, WriterDialect dialect);

  std::string StringSection() const;
  std::string DialectSection();
  std::string EntrySection() const;
  std::string EntryOffsetSection() const;

 private:
  struct Entry {
    WriterDialect dialect;
    std::string bytes;
  };
  struct EntryTable {
    std::vector<Entry> entries;
    std::unordered_map<std::string, uint64_t> by_bytes;  // the first byte is the dialect
    std::unordered_map<const void*, uint64_t> by_node[2];
    uint64_t Add(WriterDialect dialect, const std::string& bytes);
  };

  Status NeedsRelease(std::string_view what, int release) const;
  Status BuiltinType(const MlirType& type, ByteSink& out);
  Status VhloType(const MlirType& type, ByteSink& out);
  Status QuantizedType(const MlirType& type, ByteSink& out);
  Status BuiltinAttr(const MlirAttr& attr, ByteSink& out);
  Status Location(const MlirAttr& attr, ByteSink& out);
  Status VhloAttr(const MlirAttr& attr, ByteSink& out);
  Status VhloEnum(const MlirAttr& attr, ByteSink& out);
  Status VhloStruct(const MlirAttr& attr, ByteSink& out);
  Status Dense(const MlirAttr& attr, WriterDialect dialect, ByteSink& out);
  Status DenseOfArray(const MlirAttr& attr, ByteSink& out);
  // The parts of an entry.
  Status Ref(const MlirType* type, WriterDialect dialect, ByteSink& out);
  Status Ref(const MlirAttr* attr, WriterDialect dialect, ByteSink& out);
  Status Refs(std::span<const MlirType* const> types, WriterDialect dialect, ByteSink& out);
  Status Refs(std::span<const MlirAttr* const> attrs, WriterDialect dialect, ByteSink& out);
  uint64_t StringAttr(std::string_view text, WriterDialect dialect);

  int minor_;
  std::vector<std::string> strings_;
  std::unordered_map<std::string, uint64_t> string_index_;
  std::vector<std::pair<WriterDialect, uint64_t>> op_names_;  // with the string of the rest
  std::unordered_map<std::string, uint64_t> op_index_;
  EntryTable attrs_, types_;
};

}  // namespace strop::bytecode
