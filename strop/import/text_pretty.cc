// The pretty forms given by a format string in mlir_ops.def. Tokens of a format, separated by spaces:
//
//   $            an operand                          dict      optional {attributes}
//   $*           operands, separated by commas       $,*       operands, each followed by a comma
//   @kind:name   an attribute in its bare form; kind is ints [1, 2], i64, i32, ui64, ui32, f64, bool, str, symname
//                (@foo as a string), symref, value (gives its operand the type), attr, or enum:<enum name>
//   ^fn          (operand types) -> result types     ^same     one type for all, or ^fn
//   ^args        types of the operands               ^args1    one type for all operands
//   ^results     types of the results                ^select ^complex ^tuple    shorthands of these ops
//   ~what        a piece with a method of its own    (? ... )? a group that is read if its first token is there
//   anything else stands for itself
#include <algorithm>
#include <cctype>
#include <functional>

#include "strop/import/text_parser_impl.h"

namespace strop {
namespace {

std::string_view TakeToken(std::string_view& format) {
  size_t end = format.find(' ');
  std::string_view token = format.substr(0, end);
  format.remove_prefix(end == std::string_view::npos ? format.size() : end + 1);
  return token;
}

bool IsWordToken(std::string_view token) { return std::isalpha(static_cast<unsigned char>(token[0])); }

}  // namespace

Status MlirTextParser::ParseByFormat(OpState& state, std::string_view format) {
  while (!format.empty()) {
    std::string_view token = TakeToken(format);
    if (token == ")?") continue;
    if (token == "(?") {
      std::string_view first = TakeToken(format);
      if (IsWordToken(first) ? TryWord(first) : Try(first)) continue;
      while (TakeToken(format) != ")?") {}
      continue;
    }
    STROP_TRY(ParseFormatToken(state, token));
  }
  return OkStatus();
}

Status MlirTextParser::ParseFormatToken(OpState& state, std::string_view token) {
  if (token == "$") {
    OperandRef ref;
    STROP_TRY(ParseOperandRef(ref));
    state.operands.push_back(ref);
    return OkStatus();
  }
  if (token == "$*") return ParseOperandList(state.operands);
  if (token == "$,*") {
    while (AtOperand()) {
      OperandRef ref;
      STROP_TRY(ParseOperandRef(ref));
      state.operands.push_back(ref);
      STROP_TRY(Expect(","));
    }
    return OkStatus();
  }
  if (token == "dict") return ParseOptionalDict(state.attrs);
  if (token[0] == '@') {
    size_t colon = token.rfind(':');
    return ParseFormatAttr(state, token.substr(1, colon - 1), token.substr(colon + 1));
  }
  if (token[0] == '^') return ParseFormatTypes(state, token.substr(1));
  if (token[0] == '~') {
    size_t colon = token.rfind(':');
    std::string_view name = colon == std::string_view::npos ? std::string_view() : token.substr(colon + 1);
    return ParseFormatCustom(state, token.substr(1, colon == std::string_view::npos ? colon : colon - 1), name);
  }
  return IsWordToken(token) ? ExpectWord(token) : Expect(token);
}

Status MlirTextParser::ParseFormatAttr(OpState& state, std::string_view kind, std::string_view name) {
  const MlirAttr* value = nullptr;
  if (kind == "ints") {
    STROP_ASSIGN(value, ParseBracketedInts());
  } else if (kind == "i64") {
    // The `:` after it begins the types of the op, so that it is not tried here.
    STROP_ASSIGN(value, ParseNumber(m_.Integer(64)));
  } else if (kind == "i32") {
    STROP_ASSIGN(value, ParseNumber(m_.Integer(32)));
  } else if (kind == "ui64" || kind == "ui32") {
    STROP_ASSIGN(value, ParseNumber(m_.Integer(kind == "ui64" ? 64 : 32, MlirSign::Unsigned)));
  } else if (kind == "f64") {
    const MlirType* f64 = m_.Float(MlirFloat::F64);
    STROP_ASSIGN(value, ParseNumber(f64));
    size_t back = pos_;
    if (Try(":") && !TryWord("f64")) pos_ = back;
  } else if (kind == "bool") {
    size_t at = pos_;
    std::string_view word = Word();
    if (word != "true" && word != "false") return Error(at, "expected true or false for '", name, "'");
    value = m_.Bool(word == "true");
  } else if (kind == "str") {
    STROP_ASSIGN(std::string_view text, QuotedString());
    value = m_.String(text);
  } else if (kind == "symname" || kind == "symref") {
    STROP_ASSIGN(std::string_view symbol, SymbolName());
    value = kind == "symname" ? m_.String(symbol) : m_.Symbol(symbol);
  } else if (kind == "value") {
    size_t at = pos_;
    STROP_ASSIGN(value, ParseAttr());
    if (!value->type) return Error(at, "expected a constant");
    state.operand_types.push_back(value->type);
  } else if (kind.starts_with("enum:")) {
    if (Peek() == '#') {
      STROP_ASSIGN(value, ParseAttr());
    } else {
      std::string_view dialect = state.name.substr(0, state.name.find('.'));
      const MlirEnumInfo* info = FindMlirEnum(StrCat(dialect, ".", kind.substr(5)));
      size_t at = pos_;
      std::string_view word = Word();
      std::string_view member = FindEnumMember(*info, word);
      if (member.empty()) return Error(at, "'", word, "' is no ", info->name, "; expected one of ", info->members);
      value = m_.Enum(info->name, member);
    }
  } else {
    STROP_ASSIGN(value, ParseAttr());
  }
  state.Add(name, value);
  return OkStatus();
}

Status MlirTextParser::TypesFromFunction(OpState& state, const MlirType& type, size_t pos) {
  if (type.inputs().size() != state.operands.size()) {
    return Error(pos, "'", state.name, "' has ", state.operands.size(), " operands, but ", type.inputs().size(),
                 " types");
  }
  state.operand_types.assign(type.inputs().begin(), type.inputs().end());
  state.result_types.assign(type.results().begin(), type.results().end());
  return OkStatus();
}

Status MlirTextParser::ParseFormatTypes(OpState& state, std::string_view kind) {
  SkipSpace();
  size_t at = pos_;
  if (kind == "fn") {
    STROP_ASSIGN(const MlirType* type, ParseFunctionType());
    return TypesFromFunction(state, *type, at);
  }
  if (kind == "args") {
    STROP_TRY(ParseTypeList(state.operand_types));
    if (state.operand_types.size() != state.operands.size()) {
      return Error(at, "'", state.name, "' has ", state.operands.size(), " operands, but ", state.operand_types.size(),
                   " types");
    }
    return OkStatus();
  }
  if (kind == "results") {
    if (Peek() == '(') return ParseTypesInParens(state.result_types);
    return ParseTypeList(state.result_types);
  }
  STROP_ASSIGN(const MlirType* type, ParseType());
  if (kind == "args1") {
    state.operand_types.assign(state.operands.size(), type);
    return OkStatus();
  }
  if (type->kind == MlirTypeKind::Function) return TypesFromFunction(state, *type, at);
  if (kind == "same") {
    state.operand_types.assign(state.operands.size(), type);
    state.result_types = {type};
  } else if (kind == "tuple") {
    if (type->kind != MlirTypeKind::Tuple) return Error(at, "expected a tuple type");
    state.operand_types.assign(type->types.begin(), type->types.end());
    state.result_types = {type};
  } else if (kind == "complex") {
    if (!type->IsTensor() || type->element()->kind != MlirTypeKind::Complex)
      return Error(at, "expected a tensor of complex elements");
    STROP_ASSIGN(const MlirType* part, m_.Tensor(type->dims, type->element()->element(), type->encoding));
    state.operand_types.assign(state.operands.size(), part);
    state.result_types = {type};
  } else if (kind == "select") {
    STROP_TRY(Expect(","));
    STROP_ASSIGN(const MlirType* result, ParseType());
    state.operand_types = {type, result, result};
    state.result_types = {result};
  }
  return OkStatus();
}

Status MlirTextParser::ParseFormatCustom(OpState& state, std::string_view what, std::string_view name) {
  if (what == "slice") return ParseSliceRanges(state);
  if (what == "precision") return ParsePrecision(state, false);
  if (what == "precision_algorithm") return ParsePrecision(state, true);
  if (what == "dot_dimensions") return ParseDotDimensions(state);
  if (what == "window") return ParseWindow(state);
  if (what == "exponent_mantissa") return ParseExponentMantissa(state);
  if (what == "conv_dimensions") {
    STROP_ASSIGN(const MlirAttr* conv, ParseConvDimensions());
    state.Add("dimension_numbers", conv);
    return OkStatus();
  }
  if (what == "barrier") {
    if (Try("(")) return Expect(")");
    STROP_TRY(ParseOperandList(state.operands));
    STROP_TRY(Expect(":"));
    STROP_TRY(ParseFormatTypes(state, "args"));
    state.result_types = state.operand_types;
    return OkStatus();
  }
  if (what == "regions") {
    if (!Try("(")) return OkStatus();
    do {
      STROP_ASSIGN(MlirRegion * region, ParseRegion({}, false));
      state.regions.push_back(region);
    } while (Try(","));
    return Expect(")");
  }
  if (what == "block") {
    std::vector<Arg> args;
    STROP_TRY(ParseArgList(args, true));
    STROP_ASSIGN(MlirRegion * region, ParseRegion(args, true));
    state.regions.push_back(region);
    return OkStatus();
  }
  if (what == "shardings") {
    STROP_ASSIGN(const MlirAttr* list, ParseSdyShardingList());
    state.Add(name, list);
    return OkStatus();
  }
  // ~sdy:<attribute>:<name>: the body of a Shardy attribute
  STROP_ASSIGN(const MlirAttr* attr, ParseSdyBody(what.substr(4)));
  if (!attr) return Internal("unknown piece '", what, "' in the format of '", state.name, "'");
  state.Add(name, attr);
  return OkStatus();
}

// [0:4, 1:8:2]
Status MlirTextParser::ParseSliceRanges(OpState& state) {
  STROP_TRY(Expect("["));
  std::vector<int64_t> starts, limits, strides;
  if (!Try("]")) {
    do {
      STROP_ASSIGN(int64_t start, Integer());
      STROP_TRY(Expect(":"));
      STROP_ASSIGN(int64_t limit, Integer());
      int64_t stride = 1;
      if (Try(":")) {
        STROP_ASSIGN(stride, Integer());
      }
      starts.push_back(start);
      limits.push_back(limit);
      strides.push_back(stride);
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  state.Add("start_indices", m_.Ints(starts));
  state.Add("limit_indices", m_.Ints(limits));
  state.Add("strides", m_.Ints(strides));
  return OkStatus();
}

// , precision = [DEFAULT, HIGH], algorithm = <...>     each optional
Status MlirTextParser::ParsePrecision(OpState& state, bool algorithm) {
  bool precision = true;
  while (Try(",")) {
    if (precision && TryWord("precision")) {
      precision = false;
      STROP_TRY(Expect("="));
      STROP_TRY(Expect("["));
      const MlirEnumInfo& info = *FindMlirEnum("stablehlo.precision");
      std::vector<const MlirAttr*> list;
      if (!Try("]")) {
        do {
          size_t at = pos_;
          std::string_view word = Word();
          std::string_view member = FindEnumMember(info, word);
          if (member.empty()) return Error(at, "'", word, "' is no precision; expected one of ", info.members);
          list.push_back(m_.Enum(info.name, member));
        } while (Try(","));
        STROP_TRY(Expect("]"));
      }
      STROP_ASSIGN(const MlirAttr* value, m_.Array(list));
      state.Add("precision_config", value);
    } else if (algorithm && TryWord("algorithm")) {
      STROP_TRY(Expect("="));
      STROP_ASSIGN(const MlirAttr* value, ParseStructBody(*FindMlirStruct("stablehlo.dot_algorithm")));
      state.Add("algorithm", value);
      return OkStatus();
    } else {
      return Error(pos_, "expected 'precision'", algorithm ? " or 'algorithm'" : "", ", found ", Found());
    }
  }
  return OkStatus();
}

// batching_dims = [0] x [0], contracting_dims = [2] x [1]
Status MlirTextParser::ParseDotDimensions(OpState& state) {
  std::vector<MlirNamedAttr> fields;
  auto pair = [&](std::string_view lhs_name, std::string_view rhs_name) -> Status {
    STROP_TRY(Expect("="));
    STROP_ASSIGN(std::vector<int64_t> lhs, ParseIntList(false));
    STROP_TRY(ExpectWord("x"));
    STROP_ASSIGN(std::vector<int64_t> rhs, ParseIntList(false));
    if (!lhs.empty()) fields.push_back({lhs_name, m_.Ints(lhs)});
    if (!rhs.empty()) fields.push_back({rhs_name, m_.Ints(rhs)});
    return OkStatus();
  };
  if (TryWord("batching_dims")) {
    STROP_TRY(pair("lhs_batching_dimensions", "rhs_batching_dimensions"));
    STROP_TRY(Expect(","));
  }
  STROP_TRY(ExpectWord("contracting_dims"));
  STROP_TRY(pair("lhs_contracting_dimensions", "rhs_contracting_dimensions"));
  STROP_ASSIGN(const MlirAttr* dims, m_.Struct("stablehlo.dot", fields));
  state.Add("dot_dimension_numbers", dims);
  return OkStatus();
}

// stride = [2, 2], pad = [[0, 1], [0, 1]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]
Status MlirTextParser::ParseWindow(OpState& state) {
  struct Key {
    std::string_view text, attr;
    bool seen;
  } keys[] = {{"stride", "window_strides", false},
              {"pad", "padding", false},
              {"lhs_dilate", "lhs_dilation", false},
              {"rhs_dilate", "rhs_dilation", false},
              {"reverse", "window_reversal", false}};
  while (!PeekWord().empty()) {
    size_t at = pos_;
    std::string_view word = Word();
    Key* key = nullptr;
    for (Key& k : keys) {
      if (k.text == word && !k.seen) key = &k;
    }
    if (!key)
      return Error(at, "unexpected '", word,
                   "' in a window; expected stride, pad, lhs_dilate, rhs_dilate or reverse, each once");
    key->seen = true;
    STROP_TRY(Expect("="));
    if (word == "pad") {
      STROP_TRY(Expect("["));
      std::vector<int64_t> values;
      if (!Try("]")) {
        do {
          size_t pair_at = pos_;
          STROP_ASSIGN(std::vector<int64_t> pair, ParseIntList(false));
          if (pair.size() != 2)
            return Error(pair_at, "expected two numbers, low and high padding, found ", pair.size());
          values.insert(values.end(), pair.begin(), pair.end());
        } while (Try(","));
        STROP_TRY(Expect("]"));
      }
      int64_t dims[] = {static_cast<int64_t>(values.size() / 2), 2};
      bool equal = std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end() && values.size() > 1;
      MlirAttr a = *m_.Ints(values);
      a.kind = MlirAttrKind::Dense;
      a.splat = equal;
      if (equal) a.data = a.data.substr(0, sizeof(int64_t));
      STROP_ASSIGN(a.type, m_.Tensor(dims, m_.Integer(64)));
      STROP_ASSIGN(const MlirAttr* padding, m_.Make(a));
      state.Add(key->attr, padding);
    } else if (word == "reverse") {
      STROP_TRY(Expect("["));
      std::string bytes;
      if (!Try("]")) {
        do {
          std::string_view value = PeekWord();
          if (value == "true" || value == "false") {
            Word();
            bytes += value == "true" ? '\1' : '\0';
          } else {
            STROP_ASSIGN(int64_t number, Integer());
            bytes += number ? '\1' : '\0';
          }
        } while (Try(","));
        STROP_TRY(Expect("]"));
      }
      MlirAttr a;
      a.kind = MlirAttrKind::DenseArray;
      a.type = m_.Integer(1);
      a.data = m_.arena().CopyString(bytes);
      STROP_ASSIGN(const MlirAttr* reversal, m_.Make(a));
      state.Add(key->attr, reversal);
    } else {
      STROP_ASSIGN(const MlirAttr* values, ParseBracketedInts());
      state.Add(key->attr, values);
    }
    if (!Try(",")) break;
  }
  return OkStatus();
}

// e5m10
Status MlirTextParser::ParseExponentMantissa(OpState& state) {
  size_t at = pos_;
  std::string_view word = Word();
  size_t m = word.find('m');
  if (word.empty() || word[0] != 'e' || m == std::string_view::npos)
    return Error(at, "expected a format such as e5m10");
  std::optional<int32_t> exponent = strop::ParseNumber<int32_t>(word.substr(1, m - 1));
  std::optional<int32_t> mantissa = strop::ParseNumber<int32_t>(word.substr(m + 1));
  if (!exponent || !mantissa) return Error(at, "expected a format such as e5m10, found '", word, "'");
  state.Add("exponent_bits", m_.Int(*exponent, m_.Integer(32)));
  state.Add("mantissa_bits", m_.Int(*mantissa, m_.Integer(32)));
  return OkStatus();
}

}  // namespace strop
