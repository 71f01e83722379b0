// The IR section of MLIR bytecode: operations, regions, blocks and values.
#include "strop/import/bytecode_reader_impl.h"
#include "strop/import/mlir_ops.h"

namespace strop::bytecode {

// ---------------------------------------------------------------------------------------------------------------

ByteCursor& BytecodeReader::Cursor() {
  for (size_t i = frames_.size(); i-- > 0;) {
    if (frames_[i].own) return *frames_[i].own;
  }
  return *sections_[kIr];
}

Status BytecodeReader::ReadIr() {
  // The top level is one block without arguments, whose values (there are none) belong to no region.
  MlirOp* holder = m_.NewHolder(m_.UnknownLoc());
  MlirBlock* block = holder->regions[0]->blocks[0];

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
Status BytecodeReader::StepRegions() {
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
      child.first_seen = isolated ? 0 : frame.first_seen;
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

Status BytecodeReader::OpenRegion(Frame& frame) {
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
  // Usually the op is a scope of its own, but the bytes may say otherwise, and VHLO's function is none.
  if (IsIsolated(frame.op->name)) frame.first_seen = frame.first_value;
  scope.next.push_back(scope.values.size());
  scope.values.resize(scope.values.size() + values);
  frame.in_region = true;
  frame.block = 0;
  return ReadBlockHeader(frame);
}

Status BytecodeReader::CloseRegion(Frame& frame) {
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

Status BytecodeReader::SkipUseListOrder(ByteCursor& in, size_t num_values) {
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

Status BytecodeReader::ReadBlockHeader(Frame& frame) {
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

Status BytecodeReader::DefineValue(MlirValue* value, const ByteCursor& in) {
  Scope& scope = scopes_.back();
  size_t& next = scope.next.back();
  if (next >= scope.values.size())
    return InvalidArgument("a region defines more values than it declares").At(StrCat("byte ", in.offset()));
  scope.values[next++] = value;
  return OkStatus();
}

Status BytecodeReader::ReadNativeProperties(uint64_t index, const OpName& name, std::vector<MlirNamedAttr>& attrs) {
  if (index >= properties_.size())
    return InvalidArgument("properties index ", index, " is beyond the table of ", properties_.size());
  TableEntry e(*this, properties_[index]);
  if (!name.registered) {
    const MlirAttr* dict = e.Attr();
    STROP_TRY(e.in.status());
    attrs.insert(attrs.end(), dict->fields.begin(), dict->fields.end());
    return OkStatus();
  }
  if (!name.properties)
    return Unimplemented("the properties of operation '", name.name, "' are not known")
        .At(StrCat("byte ", e.in.offset()));
  // One attribute after the other in the order of the table; optional ones carry a flag.
  std::string_view rest = name.properties;
  while (!rest.empty() && e.in.ok()) {
    size_t space = rest.find(' ');
    std::string_view word = rest.substr(0, space);
    rest.remove_prefix(space == std::string_view::npos ? rest.size() : space + 1);
    bool optional = word.ends_with('?');
    if (optional) word.remove_suffix(1);
    if (word.ends_with("SegmentSizes"))
      return Unimplemented("operand segments of '", name.name, "' in bytecode properties");
    if (optional && e.in.empty()) continue;  // written before this property came up
    const MlirAttr* value = optional ? e.OptionalAttr() : e.Attr();
    if (value) attrs.push_back({word, value});
  }
  if (e.in.ok() && !e.in.empty()) e.in.Fail("unexpected bytes after the properties of '", name.name, "'");
  return e.in.status();
}

Status BytecodeReader::ReadOpAttrs(ByteCursor& in, uint8_t mask, const OpName& name, MlirOp* op) {
  std::vector<MlirNamedAttr> attrs;
  if (mask & 1) {
    STROP_ASSIGN(const MlirAttr* dict, Attr(in.Varint()));
    if (dict->kind != MlirAttrKind::Dict)
      return InvalidArgument("the attributes of '", name.name, "' are no dictionary").At(StrCat("byte ", in.offset()));
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

Result<MlirOp*> BytecodeReader::ReadOp(Frame& frame, bool& isolated) {
  ByteCursor& in = Cursor();
  uint64_t name_index = in.Varint();
  uint8_t mask = in.Byte();
  uint64_t loc = in.Varint();
  STROP_TRY(in.status());
  if (name_index >= op_names_.size())
    return InvalidArgument("operation name ", name_index, " is beyond the table of ", op_names_.size())
        .At(StrCat("byte ", in.offset()));
  const OpName& name = op_names_[name_index];
  MlirOp* op = m_.arena().New<MlirOp>();
  op->name = name.name;
  op->info = name.info;
  op->parent = frame.op->regions[frame.region]->blocks[frame.block];
  STROP_ASSIGN(op->loc, Attr(loc));
  if (!op->loc->IsLocation())
    return InvalidArgument("the location of '", op->name, "' is no location").At(StrCat("byte ", in.offset()));
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
      if (in.ok() && index >= scope.values.size())
        in.Fail("value ", index, " is beyond the ", scope.values.size(), " of its region");
      if (in.ok() && index < frame.first_seen) in.Fail("value ", index, " is outside of the function that uses it");
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
      if (in.ok() && index >= blocks.size())
        in.Fail("successor ", index, " is beyond the ", blocks.size(), " blocks of its region");
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

}  // namespace strop::bytecode
