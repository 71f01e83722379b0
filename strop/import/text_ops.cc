// Operations, regions and SSA names of the MLIR text parser.
#include <cctype>

#include "strop/import/text_parser.h"

#include "strop/import/mlir_ops.h"
#include "strop/import/text_parser_impl.h"

namespace strop {
namespace {

std::string ForwardKey(std::string_view name, uint32_t number) { return StrCat(name, "#", number); }

}  // namespace

// ---- the file
// ---------------------------------------------------------------------------------------------------------

Status MlirTextParser::ParseFile() {
  FindAliases();
  STROP_TRY(ParseResources());
  return ParseTopLevel();
}

Status MlirTextParser::ParseAliasDefinition() {
  bool is_attr = Peek() == '#';
  size_t start = pos_++;
  std::string_view word = Word();
  if (word.empty()) {  // #0 = ...
    while (pos_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[pos_]))) ++pos_;
  }
  auto it = aliases_.find(text_.substr(start, pos_ - start));
  if (it == aliases_.end()) return Error(start, "expected an operation or the definition of an alias, found ", Found());
  if (it->second.pos < start) return Error(start, "the alias ", it->first, " is defined a second time");
  pos_ = start;
  if (is_attr) {
    STROP_TRY(ParseHashAttr(nullptr));
  } else {
    STROP_TRY(ParseDialectType());
  }
  pos_ = it->second.end;
  return OkStatus();
}

Status MlirTextParser::ParseTopLevel() {
  MlirOp* holder = m_.NewHolder(LocAt(0));
  MlirBlock* block = holder->regions[0]->blocks[0];

  OpenScope(true);
  Labels labels;
  labels_.push_back(&labels);
  default_dialects_.push_back("builtin");
  std::vector<MlirOp*> ops;
  while (!AtEnd()) {
    if (Peek() == '#' || Peek() == '!') {
      STROP_TRY(ParseAliasDefinition());
      continue;
    }
    STROP_ASSIGN(MlirOp * op, ParseOp());
    op->parent = block;
    ops.push_back(op);
  }
  STROP_TRY(CloseScope(true));
  block->ops = m_.arena().CopyArray(ops);
  m_.root = holder;
  if (ops.size() == 1 && ops[0]->name == "builtin.module") {
    m_.root = ops[0];
    m_.root->parent = nullptr;
  }
  return OkStatus();
}

// ---- one operation
// ----------------------------------------------------------------------------------------------------

Status MlirTextParser::ParseOperandRef(OperandRef& ref) {
  SkipSpace();
  ref.pos = pos_;
  STROP_TRY(Expect("%"));
  size_t start = pos_;
  auto id_char = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '.' || c == '-';
  };
  bool digits = pos_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[pos_]));
  while (pos_ < text_.size() &&
         (digits ? std::isdigit(static_cast<unsigned char>(text_[pos_])) != 0 : id_char(text_[pos_])))
    ++pos_;
  // `%a->` is a name and an arrow.
  if (!digits && pos_ < text_.size() && text_[pos_] == '>' && pos_ > start && text_[pos_ - 1] == '-') --pos_;
  ref.name = text_.substr(start, pos_ - start);
  if (ref.name.empty()) return Error(ref.pos, "expected a value name after '%'");
  ref.number = 0;
  if (pos_ < text_.size() && text_[pos_] == '#') {
    ++pos_;
    STROP_ASSIGN(int64_t number, Integer());
    if (number < 0 || number > UINT32_MAX) return Error(ref.pos, "result number ", number, " of %", ref.name);
    ref.number = static_cast<uint32_t>(number);
  }
  return OkStatus();
}

Status MlirTextParser::ParseOperandList(std::vector<OperandRef>& operands) {
  if (!AtOperand()) return OkStatus();
  do {
    OperandRef ref;
    STROP_TRY(ParseOperandRef(ref));
    operands.push_back(ref);
  } while (Try(","));
  return OkStatus();
}

Result<MlirOp*> MlirTextParser::ParseOp() {
  Nested nested(depth_);
  STROP_TRY(CheckNesting());
  struct ResultName {
    std::string_view name;
    int64_t count;
    size_t pos;
  };
  std::vector<ResultName> names;
  int64_t total = 0;
  if (AtOperand()) {
    do {
      OperandRef ref;
      STROP_TRY(ParseOperandRef(ref));
      int64_t count = 1;
      if (Try(":")) {
        STROP_ASSIGN(count, Integer());
        if (count < 1 || count > static_cast<int64_t>(text_.size()))
          return Error(ref.pos, "a group of ", count, " results");
      }
      names.push_back({ref.name, count, ref.pos});
      total += count;
    } while (Try(","));
    STROP_TRY(Expect("="));
  }
  OpState state;
  SkipSpace();
  state.pos = pos_;
  if (Peek() == '"') {
    STROP_ASSIGN(state.name, QuotedString());
    state.info = FindMlirOp(state.name);
    STROP_TRY(ParseGenericOp(state));
  } else {
    std::string_view word = Word();
    if (word.empty()) return Error(pos_, "expected an operation, found ", Found());
    STROP_TRY(ParsePrettyOp(state, word));
  }
  STROP_TRY(ParseOptionalLoc(state.loc));
  STROP_ASSIGN(MlirOp * op, FinishOp(state));
  if (!names.empty() && total != static_cast<int64_t>(op->results.size())) {
    return Error(names[0].pos, "'", op->name, "' has ", op->results.size(), " results, but ", total,
                 " names are given");
  }
  std::span<MlirValue*> values = m_.arena().NewArray<MlirValue*>(op->results.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = &op->results[i];
  size_t next = 0;
  for (const ResultName& n : names) {
    std::string_view name = m_.arena().CopyString(n.name);
    for (int64_t i = 0; i < n.count; ++i) values[next + i]->name = name;
    STROP_TRY(Define(name, values.subspan(next, n.count), n.pos));
    next += n.count;
  }
  return op;
}

// "name"(operands)[^successors] <{properties}> ({regions}) {attributes} : (types) -> types
Status MlirTextParser::ParseGenericOp(OpState& state) {
  STROP_TRY(Expect("("));
  STROP_TRY(ParseOperandList(state.operands));
  STROP_TRY(Expect(")"));
  if (Try("[")) {
    do {
      size_t at = pos_;
      STROP_TRY(Expect("^"));
      std::string_view label = Word();
      if (label.empty()) return Error(at, "expected the label of a block");
      MlirBlock*& block = labels_.back()->blocks[label];
      if (!block) block = m_.arena().New<MlirBlock>();
      state.successors.push_back(block);
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  if (Try("<")) {
    STROP_TRY(Expect("{"));
    STROP_TRY(ParseDictBody(state.attrs));
    STROP_TRY(Expect(">"));
  }
  if (Try("(")) {
    default_dialects_.push_back("");
    do {
      STROP_ASSIGN(MlirRegion * region, ParseRegion({}, IsIsolated(state.name)));
      state.regions.push_back(region);
    } while (Try(","));
    default_dialects_.pop_back();
    STROP_TRY(Expect(")"));
  }
  STROP_TRY(ParseOptionalDict(state.attrs));
  STROP_TRY(Expect(":"));
  size_t at = pos_;
  STROP_ASSIGN(const MlirType* type, ParseFunctionType());
  state.result_types.assign(type->results().begin(), type->results().end());
  if (type->inputs().size() != state.operands.size()) {
    return Error(at, "'", state.name, "' has ", state.operands.size(), " operands, but ", type->inputs().size(),
                 " types");
  }
  state.operand_types.assign(type->inputs().begin(), type->inputs().end());
  return OkStatus();
}

Status MlirTextParser::ParsePrettyOp(OpState& state, std::string_view word) {
  const MlirOpInfo* info = FindMlirOp(word);
  if (!info && word.find('.') == std::string_view::npos) {
    std::string_view dialect = default_dialects_.back();
    if (!dialect.empty()) info = FindMlirOp(StrCat(dialect, ".", word));
    for (std::string_view other : {"builtin.", "func."}) {
      if (!info) info = FindMlirOp(StrCat(other, word));
    }
  }
  if (!info)
    return Error(state.pos, "operation '", word,
                 "' is not known; such operations can be read in the generic form only");
  if (info->format.empty())
    return Error(state.pos, "'", info->name, "' must be written in the generic form, \"", info->name, "\"(...)");
  state.info = info;
  state.name = info->name;
  if (info->format.starts_with('!')) return ParseCustomOp(state, info->format.substr(1));
  return ParseByFormat(state, info->format);
}

Result<MlirOp*> MlirTextParser::FinishOp(OpState& state) {
  if (state.operand_types.size() != state.operands.size()) {
    return Error(state.pos, "'", state.name, "' has ", state.operands.size(), " operands, but ",
                 state.operand_types.size(), " types");
  }
  MlirOp* op = m_.arena().New<MlirOp>();
  op->name = state.info ? state.info->name : state.name;
  op->info = state.info;
  op->loc = state.loc ? state.loc : LocAt(state.pos);
  if (!state.attrs.empty()) {
    Result<const MlirAttr*> dict = m_.Dict(std::move(state.attrs));
    if (!dict.ok()) return Error(state.pos, dict.status().message());
    op->attrs = (*dict)->fields;
  }
  op->operands = m_.arena().NewArray<MlirValue*>(state.operands.size());
  for (size_t i = 0; i < state.operands.size(); ++i)
    STROP_TRY(Resolve(state.operands[i], state.operand_types[i], &op->operands[i]));
  op->results = m_.arena().NewArray<MlirValue>(state.result_types.size());
  for (size_t i = 0; i < state.result_types.size(); ++i) {
    op->results[i].type = state.result_types[i];
    op->results[i].op = op;
    op->results[i].index = static_cast<uint32_t>(i);
  }
  op->regions = m_.arena().CopyArray(state.regions);
  for (MlirRegion* r : op->regions) r->parent = op;
  op->successors = m_.arena().CopyArray(state.successors);
  return op;
}

// ---- names
// ------------------------------------------------------------------------------------------------------------

void MlirTextParser::OpenScope(bool isolated) {
  if (isolated) scopes_.emplace_back();
  scopes_.back().regions.emplace_back();
}

Status MlirTextParser::CloseScope(bool isolated) {
  Scope& scope = scopes_.back();
  if (isolated) {
    for (const Forward& f : scope.forward) {
      if (!f.uses.empty())
        return Error(f.uses[0].second, "use of undeclared value %", f.name,
                     f.number ? StrCat("#", f.number) : std::string());
    }
    scopes_.pop_back();
    return OkStatus();
  }
  for (std::string_view name : scope.regions.back()) scope.names.erase(name);
  scope.regions.pop_back();
  return OkStatus();
}

Status MlirTextParser::Resolve(const OperandRef& ref, const MlirType* type, MlirValue** slot) {
  Scope& scope = scopes_.back();
  auto it = scope.names.find(ref.name);
  if (it == scope.names.end()) {
    auto [at, inserted] = scope.forward_index.emplace(ForwardKey(ref.name, ref.number), scope.forward.size());
    if (inserted) {
      scope.forward.emplace_back();
      scope.forward.back().name = ref.name;
      scope.forward.back().number = ref.number;
    }
    scope.forward[at->second].uses.push_back({slot, ref.pos});
    scope.forward[at->second].types.push_back(type);
    return OkStatus();
  }
  std::span<MlirValue* const> values = it->second.values;
  if (ref.number >= values.size())
    return Error(ref.pos, "%", ref.name, "#", ref.number, ": only ", values.size(), " results have this name");
  MlirValue* value = values[ref.number];
  if (!SameType(*value->type, *type)) {
    return Error(ref.pos, "%", ref.name, " has the type ", PrintType(*value->type), ", but is used as ",
                 PrintType(*type));
  }
  *slot = value;
  return OkStatus();
}

Status MlirTextParser::Define(std::string_view name, std::span<MlirValue* const> values, size_t pos) {
  Scope& scope = scopes_.back();
  if (!scope.names.emplace(name, Definition{values}).second) return Error(pos, "%", name, " is defined twice");
  scope.regions.back().push_back(name);
  if (scope.forward.empty()) return OkStatus();
  for (uint32_t n = 0; n < values.size(); ++n) {
    auto it = scope.forward_index.find(ForwardKey(name, n));
    if (it == scope.forward_index.end()) continue;
    Forward& f = scope.forward[it->second];
    for (size_t i = 0; i < f.uses.size(); ++i) {
      if (!SameType(*values[n]->type, *f.types[i])) {
        return Error(f.uses[i].second, "%", name, " has the type ", PrintType(*values[n]->type), ", but is used as ",
                     PrintType(*f.types[i]));
      }
      *f.uses[i].first = values[n];
    }
    f.uses.clear();
    f.types.clear();
  }
  return OkStatus();
}

// ---- regions
// ----------------------------------------------------------------------------------------------------------

// (%a: tensor<f32> {attr = 1} loc("x"), ...)
Status MlirTextParser::ParseArgList(std::vector<Arg>& args, bool typed) {
  STROP_TRY(Expect("("));
  if (Try(")")) return OkStatus();
  do {
    OperandRef ref;
    STROP_TRY(ParseOperandRef(ref));
    Arg arg;
    arg.name = ref.name;
    arg.pos = ref.pos;
    if (typed) {
      STROP_TRY(Expect(":"));
      STROP_ASSIGN(arg.type, ParseType());
      if (Peek() == '{') {
        STROP_ASSIGN(arg.attrs, ParseDictAttr());
      }
      STROP_TRY(ParseOptionalLoc(arg.loc));
    }
    args.push_back(arg);
  } while (Try(","));
  return Expect(")");
}

Status MlirTextParser::AddArgs(MlirBlock* block, std::span<const Arg> args) {
  block->args = m_.arena().NewArray<MlirValue*>(args.size());
  for (size_t i = 0; i < args.size(); ++i) {
    MlirValue* value = m_.arena().New<MlirValue>();
    value->type = args[i].type;
    value->block = block;
    value->index = static_cast<uint32_t>(i);
    value->loc = args[i].loc ? args[i].loc : LocAt(args[i].pos);
    value->name = m_.arena().CopyString(args[i].name);
    block->args[i] = value;
    if (!args[i].name.empty())
      STROP_TRY(Define(value->name, std::span<MlirValue* const>(&block->args[i], 1), args[i].pos));
  }
  return OkStatus();
}

Result<MlirRegion*> MlirTextParser::ParseRegion(std::span<const Arg> args, bool isolated) {
  Nested nested(depth_);
  STROP_TRY(CheckNesting());
  size_t start = pos_;
  STROP_TRY(Expect("{"));
  MlirRegion* region = m_.arena().New<MlirRegion>();
  OpenScope(isolated);
  Labels labels;
  labels_.push_back(&labels);
  STROP_TRY(ParseBlocks(region, args, labels));
  labels_.pop_back();
  for (const auto& [name, block] : labels.blocks) {
    if (!block->parent) return Error(start, "this region has no block ^", name);
  }
  region->blocks = m_.arena().CopyArray(labels.order);
  STROP_TRY(CloseScope(isolated));
  return region;
}

Status MlirTextParser::ParseBlocks(MlirRegion* region, std::span<const Arg> args, Labels& labels) {
  bool entry = true;
  while (true) {
    MlirBlock* block = nullptr;
    if (Peek() == '^') {
      size_t at = pos_++;
      std::string_view label = Word();
      if (label.empty()) return Error(at, "expected the label of a block after '^'");
      MlirBlock*& named = labels.blocks[label];
      if (!named) named = m_.arena().New<MlirBlock>();
      if (named->parent) return Error(at, "block ^", label, " is defined twice");
      block = named;
      block->parent = region;
      std::vector<Arg> own;
      if (Peek() == '(') STROP_TRY(ParseArgList(own, true));
      STROP_TRY(Expect(":"));
      if (entry && !args.empty()) {
        if (!own.empty()) return Error(at, "the arguments of the entry block are given already");
        STROP_TRY(AddArgs(block, args));
      } else {
        STROP_TRY(AddArgs(block, own));
      }
    } else if (entry) {
      if (args.empty() && Try("}")) return OkStatus();  // an empty region
      block = m_.arena().New<MlirBlock>();
      block->parent = region;
      STROP_TRY(AddArgs(block, args));
    } else {
      return Expect("}");
    }
    entry = false;
    labels.order.push_back(block);
    std::vector<MlirOp*> ops;
    while (Peek() != '}' && Peek() != '^') {
      if (AtEnd()) return Error(pos_, "expected '}', found the end of the input");
      STROP_ASSIGN(MlirOp * op, ParseOp());
      op->parent = block;
      ops.push_back(op);
    }
    block->ops = m_.arena().CopyArray(ops);
  }
}

// ---- entry points
// -----------------------------------------------------------------------------------------------------

Result<std::unique_ptr<MlirModule>> ParseMlirText(std::string_view text, std::string_view file_name,
                                                  int64_t first_line) {
  auto module = std::make_unique<MlirModule>();
  MlirTextParser parser(*module, text, file_name, first_line);
  STROP_TRY(parser.ParseFile());
  return module;
}

Result<const MlirAttr*> ParseMlirAttrText(MlirModule& module, std::string_view text) {
  MlirTextParser parser(module, text, "", 1);
  STROP_ASSIGN(const MlirAttr* attr, parser.ParseAttr());
  if (!parser.AtEnd()) return parser.ErrorHere("expected the end of the attribute");
  return attr;
}

Result<const MlirType*> ParseMlirTypeText(MlirModule& module, std::string_view text) {
  MlirTextParser parser(module, text, "", 1);
  STROP_ASSIGN(const MlirType* type, parser.ParseType());
  if (!parser.AtEnd()) return parser.ErrorHere("expected the end of the type");
  return type;
}

}  // namespace strop
