#include "strop/import/bytecode_writer.h"

#include <algorithm>

#include "strop/import/bytecode_writer_tables.h"
#include "strop/import/mlir_ops.h"
#include "strop/import/vhlo.h"

namespace strop {
namespace bytecode {
namespace {

constexpr int kVersion = 6;
// Section numbers of the format.
enum : int { kString, kDialect, kAttrType, kAttrTypeOffset, kIr, kProperties = 8 };
// What follows an op's location.
enum : uint8_t {
  kHasAttrs = 1,
  kHasResults = 2,
  kHasOperands = 4,
  kHasSuccessors = 8,
  kHasRegions = 16,
  kHasProperties = 64
};

class BytecodeWriter {
 public:
  BytecodeWriter(const MlirModule& module, int minor) : m_(module), tables_(minor) {}
  Result<std::string> Write(const std::string& producer);

 private:
  Status Op(const MlirOp& op, ByteSink& out);
  Status OpAttrs(const MlirOp& op, ByteSink& out, uint8_t& mask);
  Status Properties(const MlirOp& op, std::string_view names, std::vector<MlirNamedAttr>& rest, ByteSink& out);
  Status Region(const MlirRegion& region, ByteSink& out);
  Status Block(const MlirBlock& block, ByteSink& out);
  static uint64_t CountValues(const MlirRegion& region);

  const MlirModule& m_;
  WriterTables tables_;
  std::vector<std::string> properties_;
  std::unordered_map<std::string, uint64_t> property_index_;
  std::unordered_map<const MlirValue*, uint64_t> values_;
  // Numbers of values: those of a region follow those of the regions around it.
  uint64_t next_value_ = 0, end_of_values_ = 0;
  int depth_ = 0;
};

uint64_t BytecodeWriter::CountValues(const MlirRegion& region) {
  uint64_t n = 0;
  for (const MlirBlock* block : region.blocks) {
    n += block->args.size();
    for (const MlirOp* op : block->ops) n += op->results.size();
  }
  return n;
}

Status BytecodeWriter::Properties(const MlirOp& op, std::string_view names, std::vector<MlirNamedAttr>& rest,
                                  ByteSink& out) {
  const WriterDialect dialect = op.name.starts_with("vhlo.") ? WriterDialect::Vhlo : WriterDialect::Builtin;
  ByteSink record;
  while (!names.empty()) {
    const size_t space = names.find(' ');
    std::string_view name = names.substr(0, space);
    names.remove_prefix(space == names.npos ? names.size() : space + 1);
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    const auto found = std::ranges::find(rest, name, &MlirNamedAttr::name);
    if (found == rest.end()) {
      if (!optional) return Internal("'", op.name, "' lacks the attribute '", name, "'");
      record.Varint(0);
      continue;
    }
    STROP_ASSIGN(const uint64_t index, tables_.Attr(*found->value, dialect));
    if (optional) {
      record.VarintWithFlag(index, true);
    } else {
      record.Varint(index);
    }
    rest.erase(found);
  }
  const auto [it, added] = property_index_.emplace(record.bytes(), properties_.size());
  if (added) properties_.push_back(record.bytes());
  out.Varint(it->second);
  return OkStatus();
}

Status BytecodeWriter::OpAttrs(const MlirOp& op, ByteSink& out, uint8_t& mask) {
  const bool vhlo = op.name.starts_with("vhlo.");
  const MlirOpInfo* info = vhlo ? nullptr : FindMlirOp(op.name);
  const char* row = vhlo ? VhloAttributes(op.name) : nullptr;
  const std::string_view names = row ? row : info ? info->properties : std::string_view();
  std::vector<MlirNamedAttr> rest(op.attrs.begin(), op.attrs.end());
  ByteSink properties;
  if (!names.empty()) STROP_TRY(Properties(op, names, rest, properties));
  if (!rest.empty()) {
    mask |= kHasAttrs;
    STROP_ASSIGN(const uint64_t index, tables_.Dict(rest, vhlo ? WriterDialect::Vhlo : WriterDialect::Builtin));
    out.Varint(index);
  }
  if (!names.empty()) mask |= kHasProperties;
  out.Bytes(properties.bytes());
  return OkStatus();
}

Status BytecodeWriter::Op(const MlirOp& op, ByteSink& out) {
  uint8_t mask = 0;
  ByteSink rest;
  STROP_TRY(OpAttrs(op, rest, mask));
  if (!op.results.empty()) {
    mask |= kHasResults;
    rest.Varint(op.results.size());
    for (const MlirValue& r : op.results) {
      STROP_ASSIGN(const uint64_t type, tables_.Type(*r.type, WriterDialect::Vhlo));
      rest.Varint(type);
    }
  }
  if (!op.operands.empty()) {
    mask |= kHasOperands;
    rest.Varint(op.operands.size());
    for (const MlirValue* operand : op.operands) {
      const auto found = values_.find(operand);
      if (found == values_.end()) return InvalidArgument("an operand is used before it is defined");
      rest.Varint(found->second);
    }
  }
  if (!op.successors.empty()) return Unimplemented("'", op.name, "' branches to other blocks");
  if (!op.regions.empty()) {
    mask |= kHasRegions;
    rest.VarintWithFlag(op.regions.size(), op.name == "builtin.module");
  }
  out.Varint(tables_.OpName(op.name));
  out.Byte(mask);
  STROP_ASSIGN(const uint64_t loc, tables_.Attr(*op.loc, WriterDialect::Builtin));
  out.Varint(loc);
  out.Bytes(rest.bytes());
  if (depth_ > 0) {  // results at the top level are not numbered
    for (const MlirValue& r : op.results) values_[&r] = next_value_++;
  }
  if (op.regions.empty()) return OkStatus();
  const bool isolated = op.name == "builtin.module";  // a section, and a numbering, of its own
  const uint64_t end = end_of_values_;
  if (isolated) end_of_values_ = 0;
  ByteSink regions;
  for (const MlirRegion* region : op.regions) STROP_TRY(Region(*region, regions));
  end_of_values_ = end;
  if (isolated) {
    out.Section(kIr, regions.bytes());
  } else {
    out.Bytes(regions.bytes());
  }
  return OkStatus();
}

Status BytecodeWriter::Region(const MlirRegion& region, ByteSink& out) {
  if (depth_ >= kMaxNesting) return InvalidArgument("regions are nested deeper than ", kMaxNesting);
  out.Varint(region.blocks.size());
  if (region.blocks.empty()) return OkStatus();
  if (region.blocks.size() > 1) return Unimplemented("a region of several blocks has no form in a portable artifact");
  const uint64_t count = CountValues(region), next = next_value_, end = end_of_values_;
  out.Varint(count);
  next_value_ = end;
  end_of_values_ = end + count;
  ++depth_;
  for (const MlirBlock* block : region.blocks) STROP_TRY(Block(*block, out));
  --depth_;
  next_value_ = next;
  end_of_values_ = end;
  return OkStatus();
}

Status BytecodeWriter::Block(const MlirBlock& block, ByteSink& out) {
  out.VarintWithFlag(block.ops.size(), !block.args.empty());
  if (!block.args.empty()) {
    out.Varint(block.args.size());
    for (const MlirValue* arg : block.args) {
      STROP_ASSIGN(const uint64_t type, tables_.Type(*arg->type, WriterDialect::Vhlo));
      const bool located = arg->loc && arg->loc->kind != MlirAttrKind::UnknownLoc;
      out.VarintWithFlag(type, located);
      if (located) {
        STROP_ASSIGN(const uint64_t loc, tables_.Attr(*arg->loc, WriterDialect::Builtin));
        out.Varint(loc);
      }
      values_[arg] = next_value_++;
    }
    out.Byte(0);  // no order of uses
  }
  for (const MlirOp* op : block.ops) {
    Status status = Op(*op, out);
    if (!status.ok()) return std::move(status).At(LocationText(op->loc));
  }
  return OkStatus();
}

Result<std::string> BytecodeWriter::Write(const std::string& producer) {
  ByteSink ir;
  ir.VarintWithFlag(1, false);  // one op at the top, no arguments
  STROP_TRY(Op(*m_.root, ir));
  ByteSink properties;
  properties.Varint(properties_.size());
  for (const std::string& record : properties_) properties.Blob(record);

  ByteSink out;
  out.Bytes("ML\xEFR");
  out.Varint(kVersion);
  out.Bytes(producer);
  out.Byte(0);
  out.Section(kDialect, tables_.DialectSection());
  out.Section(kAttrType, tables_.EntrySection());
  out.Section(kAttrTypeOffset, tables_.EntryOffsetSection());
  out.Section(kIr, ir.bytes());
  out.Section(kString, tables_.StringSection());
  out.Section(kProperties, properties.bytes());
  return out.bytes();
}

}  // namespace
}  // namespace bytecode

Result<std::string> WriteVhloBytecode(const MlirModule& module, int minor, const std::string& producer) {
  return bytecode::BytecodeWriter(module, minor).Write(producer);
}

}  // namespace strop
