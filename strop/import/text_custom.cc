// Ops whose pretty form has a parser of its own: module, func, constants, while, reduce, scan.
#include "strop/import/text_parser_impl.h"

namespace strop {

Status MlirTextParser::ParseCustomOp(OpState& state, std::string_view form) {
  if (form == "module") return ParseModuleOp(state);
  if (form == "func") return ParseFuncOp(state);
  if (form == "constant") return ParseConstantOp(state);
  if (form == "while") return ParseWhileOp(state);
  if (form == "reduce") return ParseReduceOp(state);
  if (form == "scan") return ParseScanOp(state);
  return Internal("no parser for the form '", form, "' of '", state.name, "'");
}

// module @name attributes {...} { ops }
Status MlirTextParser::ParseModuleOp(OpState& state) {
  if (Peek() == '@') {
    STROP_ASSIGN(std::string_view name, SymbolName());
    state.Add("sym_name", m_.String(name));
  }
  if (TryWord("attributes")) {
    STROP_TRY(Expect("{"));
    STROP_TRY(ParseDictBody(state.attrs));
  }
  default_dialects_.push_back("builtin");
  STROP_ASSIGN(MlirRegion * region, ParseRegion({}, true));
  default_dialects_.pop_back();
  if (region->blocks.empty()) {
    MlirBlock* block = m_.arena().New<MlirBlock>();
    block->parent = region;
    region->blocks = m_.arena().CopyArray(std::vector<MlirBlock*>{block});
  }
  state.regions.push_back(region);
  return OkStatus();
}

Status MlirTextParser::ParseFuncResults(std::vector<const MlirType*>& types, std::vector<const MlirAttr*>& attrs,
                                        bool& any) {
  STROP_ASSIGN(const MlirAttr* none, m_.Dict({}));
  if (Peek() != '(') {
    STROP_TRY(ParseResultTypes(types));
    attrs.push_back(none);
    return OkStatus();
  }
  STROP_TRY(Expect("("));
  if (Try(")")) return OkStatus();
  do {
    STROP_ASSIGN(const MlirType* type, ParseType());
    types.push_back(type);
    attrs.push_back(none);
    if (Peek() == '{') {
      STROP_ASSIGN(attrs.back(), ParseDictAttr());
      any = true;
    }
  } while (Try(","));
  return Expect(")");
}

// func.func public @main(%a: T {..}, ...) -> (T {..}, ...) attributes {...} { body }
Status MlirTextParser::ParseFuncOp(OpState& state) {
  for (std::string_view visibility : {"public", "private", "nested"}) {
    if (!TryWord(visibility)) continue;
    state.Add("sym_visibility", m_.String(visibility));
    break;
  }
  STROP_ASSIGN(std::string_view name, SymbolName());
  state.Add("sym_name", m_.String(name));
  std::vector<Arg> args;
  std::vector<const MlirType*> types;
  std::vector<const MlirAttr*> arg_attrs, result_attrs;
  bool any_arg = false, any_result = false, named = false;
  STROP_ASSIGN(const MlirAttr* none, m_.Dict({}));
  size_t open = pos_;
  STROP_TRY(Expect("("));
  if (!Try(")")) {
    // A declaration gives types only.
    named = AtOperand();
    if (named) {
      pos_ = open;
      STROP_TRY(ParseArgList(args, true));
      for (const Arg& arg : args) {
        types.push_back(arg.type);
        arg_attrs.push_back(arg.attrs ? arg.attrs : none);
        any_arg = any_arg || (arg.attrs && !arg.attrs->fields.empty());
      }
    } else {
      do {
        STROP_ASSIGN(const MlirType* type, ParseType());
        types.push_back(type);
        arg_attrs.push_back(none);
        if (Peek() == '{') {
          STROP_ASSIGN(arg_attrs.back(), ParseDictAttr());
          any_arg = true;
        }
        const MlirAttr* unused = nullptr;  // there is no value that it would belong to
        STROP_TRY(ParseOptionalLoc(unused));
      } while (Try(","));
      STROP_TRY(Expect(")"));
    }
  }
  uint32_t inputs = static_cast<uint32_t>(types.size());
  if (Try("->")) STROP_TRY(ParseFuncResults(types, result_attrs, any_result));
  STROP_ASSIGN(const MlirType* type, m_.Composite(MlirTypeKind::Function, types, inputs));
  state.Add("function_type", m_.TypeValue(type));
  if (any_arg) {
    STROP_ASSIGN(const MlirAttr* list, m_.Array(arg_attrs));
    state.Add("arg_attrs", list);
  }
  if (any_result) {
    STROP_ASSIGN(const MlirAttr* list, m_.Array(result_attrs));
    state.Add("res_attrs", list);
  }
  if (TryWord("attributes")) {
    STROP_TRY(Expect("{"));
    STROP_TRY(ParseDictBody(state.attrs));
  }
  if (Peek() != '{') {
    state.regions.push_back(m_.arena().New<MlirRegion>());  // a declaration
    return OkStatus();
  }
  if (inputs > 0 && !named) return Error(pos_, "a function with a body needs names for its arguments");
  default_dialects_.push_back("func");
  STROP_ASSIGN(MlirRegion * region, ParseRegion(args, true));
  default_dialects_.pop_back();
  state.regions.push_back(region);
  return OkStatus();
}

// stablehlo.constant dense<1> : tensor<i32>   stablehlo.constant() <{value = ...}> : () -> tensor<i32>
Status MlirTextParser::ParseConstantOp(OpState& state) {
  if (Try("(")) {
    STROP_TRY(Expect(")"));
    if (Try("<")) {
      STROP_TRY(Expect("{"));
      STROP_TRY(ParseDictBody(state.attrs));
      STROP_TRY(Expect(">"));
    }
    STROP_TRY(ParseOptionalDict(state.attrs));
    STROP_TRY(Expect(":"));
    return ParseFormatTypes(state, "fn");
  }
  STROP_TRY(ParseOptionalDict(state.attrs));
  size_t at = pos_;
  STROP_ASSIGN(const MlirAttr* value, ParseAttr());
  if (!value->type || value->kind == MlirAttrKind::Type) return Error(at, "expected a constant, dense<...> : type");
  state.Add("value", value);
  state.result_types = {value->type};
  return OkStatus();
}

// stablehlo.while(%i = %init, ...) : T, ... attributes {...} cond { ... } do { ... }
Status MlirTextParser::ParseWhileOp(OpState& state) {
  STROP_TRY(Expect("("));
  std::vector<Arg> args;
  if (!Try(")")) {
    do {
      OperandRef arg, init;
      STROP_TRY(ParseOperandRef(arg));
      STROP_TRY(Expect("="));
      STROP_TRY(ParseOperandRef(init));
      args.push_back({arg.name, nullptr, nullptr, nullptr, arg.pos});
      state.operands.push_back(init);
    } while (Try(","));
    STROP_TRY(Expect(")"));
  }
  if (!args.empty()) {
    STROP_TRY(Expect(":"));
    STROP_TRY(ParseFormatTypes(state, "args"));
    for (size_t i = 0; i < args.size(); ++i) args[i].type = state.operand_types[i];
  }
  state.result_types = state.operand_types;
  if (TryWord("attributes")) {
    STROP_TRY(Expect("{"));
    STROP_TRY(ParseDictBody(state.attrs));
  }
  default_dialects_.push_back("stablehlo");
  for (std::string_view word : {"cond", "do"}) {
    STROP_TRY(ExpectWord(word));
    STROP_ASSIGN(MlirRegion * region, ParseRegion(args, false));
    state.regions.push_back(region);
  }
  default_dialects_.pop_back();
  return OkStatus();
}

// The body of `applies op`: (a, b) -> op(a, b) on scalars of `type`.
Result<MlirRegion*> MlirTextParser::MakeReducer(std::string_view op_name, const MlirType* type,
                                                std::string_view dialect, const MlirAttr* loc) {
  MlirRegion* region = m_.arena().New<MlirRegion>();
  MlirBlock* block = m_.arena().New<MlirBlock>();
  block->parent = region;
  block->args = m_.arena().NewArray<MlirValue*>(2);
  for (uint32_t i = 0; i < 2; ++i) {
    MlirValue* arg = m_.arena().New<MlirValue>();
    arg->type = type;
    arg->block = block;
    arg->index = i;
    arg->loc = loc;
    block->args[i] = arg;
  }
  MlirOp* inner = m_.arena().New<MlirOp>();
  inner->name = op_name;
  inner->info = FindMlirOp(op_name);
  inner->loc = loc;
  inner->operands = m_.arena().CopyArray(std::span<MlirValue* const>(block->args));
  inner->results = m_.arena().NewArray<MlirValue>(1);
  inner->results[0].type = type;
  inner->results[0].op = inner;
  inner->parent = block;
  MlirOp* ret = m_.arena().New<MlirOp>();
  ret->name = m_.arena().CopyString(StrCat(dialect, ".return"));
  ret->info = FindMlirOp(ret->name);
  ret->loc = loc;
  ret->operands = m_.arena().CopyArray(std::vector<MlirValue*>{&inner->results[0]});
  ret->parent = block;
  block->ops = m_.arena().CopyArray(std::vector<MlirOp*>{inner, ret});
  region->blocks = m_.arena().CopyArray(std::vector<MlirBlock*>{block});
  return region;
}

// stablehlo.reduce(%x init: %i), (%y init: %j) across dimensions = [1] : (...) -> (...)
//   reducer(%a: T, %b: T) (%c: U, %d: U) { ... }
// stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [1] : (...) -> ...
Status MlirTextParser::ParseReduceOp(OpState& state) {
  std::vector<OperandRef> inits;
  do {
    if (!Try("(")) break;
    OperandRef input, init;
    STROP_TRY(ParseOperandRef(input));
    STROP_TRY(ExpectWord("init"));
    STROP_TRY(Expect(":"));
    STROP_TRY(ParseOperandRef(init));
    STROP_TRY(Expect(")"));
    state.operands.push_back(input);
    inits.push_back(init);
  } while (Try(","));
  state.operands.insert(state.operands.end(), inits.begin(), inits.end());
  std::string_view inner;
  if (TryWord("applies")) {
    size_t at = pos_;
    std::string_view word = Word();
    const MlirOpInfo* info = FindMlirOp(word);
    bool commutative = false;
    for (std::string_view op : {"add", "and", "maximum", "minimum", "multiply", "or", "xor"}) {
      commutative = commutative || word == StrCat("stablehlo.", op);
    }
    if (!info || !commutative)
      return Error(at, "'", word, "' cannot be applied; expected a commutative operation such as stablehlo.add");
    inner = info->name;
  }
  STROP_TRY(ExpectWord("across"));
  STROP_TRY(ExpectWord("dimensions"));
  STROP_TRY(Expect("="));
  STROP_ASSIGN(std::vector<int64_t> dims, ParseIntList(false));
  state.Add("dimensions", m_.Ints(dims));
  STROP_TRY(ParseOptionalDict(state.attrs));
  STROP_TRY(Expect(":"));
  STROP_TRY(ParseFormatTypes(state, "fn"));
  if (inner.empty()) return ParseReducer(state);
  STROP_TRY(ParseOptionalLoc(state.loc));
  const MlirType* input = state.operand_types.empty() ? nullptr : state.operand_types[0];
  if (!input || input->types.empty()) return Error(state.pos, "'", state.name, "' needs a tensor to reduce");
  STROP_ASSIGN(const MlirType* scalar, m_.Tensor({}, input->element()));
  STROP_ASSIGN(MlirRegion * region, MakeReducer(inner, scalar, "stablehlo", state.loc ? state.loc : LocAt(state.pos)));
  state.regions.push_back(region);
  return OkStatus();
}

Status MlirTextParser::ParseReducer(OpState& state) {
  STROP_TRY(ExpectWord("reducer"));
  std::vector<Arg> args, init_args;
  while (Try("(")) {
    for (std::vector<Arg>* list : {&args, &init_args}) {
      if (list == &init_args) STROP_TRY(Expect(","));
      OperandRef ref;
      STROP_TRY(ParseOperandRef(ref));
      STROP_TRY(Expect(":"));
      Arg arg;
      arg.name = ref.name;
      arg.pos = ref.pos;
      STROP_ASSIGN(arg.type, ParseType());
      STROP_TRY(ParseOptionalLoc(arg.loc));
      list->push_back(arg);
    }
    STROP_TRY(Expect(")"));
  }
  args.insert(args.end(), init_args.begin(), init_args.end());
  default_dialects_.push_back("stablehlo");
  STROP_ASSIGN(MlirRegion * region, ParseRegion(args, false));
  default_dialects_.pop_back();
  state.regions.push_back(region);
  return OkStatus();
}

// chlo.scan(%x) inits(%i) dimension=0 attributes {...} { ... } : (...) -> (...)
Status MlirTextParser::ParseScanOp(OpState& state) {
  std::vector<OperandRef> inits;
  STROP_TRY(Expect("("));
  STROP_TRY(ParseOperandList(state.operands));
  STROP_TRY(Expect(")"));
  STROP_TRY(ExpectWord("inits"));
  STROP_TRY(Expect("("));
  STROP_TRY(ParseOperandList(inits));
  STROP_TRY(Expect(")"));
  STROP_TRY(ExpectWord("dimension"));
  STROP_TRY(Expect("="));
  STROP_ASSIGN(int64_t dimension, Integer());
  state.Add("dimension", m_.Int64(dimension));
  if (TryWord("attributes")) {
    STROP_TRY(Expect("{"));
    STROP_TRY(ParseDictBody(state.attrs));
  }
  STROP_ASSIGN(MlirRegion * region, ParseRegion({}, false));
  state.regions.push_back(region);
  int64_t num_inputs = static_cast<int64_t>(state.operands.size()), num_inits = static_cast<int64_t>(inits.size());
  state.operands.insert(state.operands.end(), inits.begin(), inits.end());
  STROP_TRY(Expect(":"));
  STROP_TRY(ParseFormatTypes(state, "fn"));
  int64_t num_outputs = static_cast<int64_t>(state.result_types.size()) - num_inits;
  if (num_outputs < 0) return Error(state.pos, "'", state.name, "' has fewer results than carries");
  auto segments = [&](std::string_view name, int32_t a, int32_t b) -> Status {
    int32_t values[] = {a, b};
    MlirAttr list;
    list.kind = MlirAttrKind::DenseArray;
    list.type = m_.Integer(32);
    list.data = m_.arena().CopyString({reinterpret_cast<const char*>(values), sizeof values});
    STROP_ASSIGN(const MlirAttr* made, m_.Make(list));
    state.Add(name, made);
    return OkStatus();
  };
  STROP_TRY(segments("operandSegmentSizes", static_cast<int32_t>(num_inputs), static_cast<int32_t>(num_inits)));
  return segments("resultSegmentSizes", static_cast<int32_t>(num_outputs), static_cast<int32_t>(num_inits));
}

}  // namespace strop
