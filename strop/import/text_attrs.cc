// Builtin attributes and locations in MLIR text. Constants are in text_dense.cc, dialects' in text_dialect_attrs.cc.
#include <cctype>
#include <charconv>
#include <limits>

#include "strop/import/text_parser_impl.h"

namespace strop {

Result<const MlirAttr*> MlirTextParser::ParseAttr(const MlirType* type) {
  Nested nested(depth_);
  STROP_TRY(CheckNesting());
  char c = Peek();
  if (c == '#') return ParseHashAttr(type);
  if (c == '@') return ParseSymbolAttr();
  if (c == '[') return ParseArrayAttr();
  if (c == '{') return ParseDictAttr();
  if (c == '"') {
    STROP_ASSIGN(std::string_view text, QuotedString());
    if (!type && Try(":")) {
      STROP_ASSIGN(type, ParseType());
    }
    return m_.String(text, type);
  }
  if (c == '-' || (c >= '0' && c <= '9')) return ParseNumber(type);
  if (c == '!' || c == '(') {
    STROP_ASSIGN(const MlirType* value, ParseType());
    return m_.TypeValue(value);
  }
  return ParseKeywordAttr();
}

Result<const MlirAttr*> MlirTextParser::ParseKeywordAttr() {
  size_t start = pos_;
  std::string_view word = PeekWord();
  if (word.empty()) return Error(pos_, "expected an attribute, found ", Found());
  if (word == "true" || word == "false") {
    Word();
    return m_.Bool(word == "true");
  }
  if (word == "unit") {
    Word();
    return m_.Unit();
  }
  if (word == "loc") return ParseLoc();
  if (word == "dense") return ParseDense();
  if (word == "dense_resource") return ParseDenseResource();
  if (word == "sparse") return ParseSparse();
  if (word == "array") return ParseDenseArrayAttr();
  if (word == "distinct") {
    Word();
    SkipSpace();
    STROP_TRY(SkipBalanced());
    STROP_TRY(Expect("<"));
    if (Try(">")) return m_.Unit();
    STROP_ASSIGN(const MlirAttr* inner, ParseAttr());
    STROP_TRY(Expect(">"));
    return inner;
  }
  if (word == "affine_map" || word == "affine_set" || word == "strided" || word == "opaque") {
    Word();
    return ParseOpaqueBody("", start);
  }
  STROP_ASSIGN(const MlirType* type, ParseType());
  return m_.TypeValue(type);
}

Status MlirTextParser::SkipBalanced() {
  size_t start = pos_;
  std::string open;
  do {
    if (pos_ >= text_.size()) return Error(start, "this bracket is not closed");
    char c = text_[pos_];
    if (c == '"') {
      STROP_TRY(QuotedString());
      continue;
    }
    ++pos_;
    if (c == '-' && pos_ < text_.size() && text_[pos_] == '>') {
      ++pos_;
    } else if (c == '<' || c == '(' || c == '[' || c == '{') {
      open += c;
    } else if (c == '>' || c == ')' || c == ']' || c == '}') {
      char expected = c == '>' ? '<' : c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open.empty() || open.back() != expected) return Error(pos_ - 1, "'", c, "' closes nothing");
      open.pop_back();
    }
  } while (!open.empty());
  return OkStatus();
}

// The text from `start` on, through a bracketed body if one follows.
Result<const MlirAttr*> MlirTextParser::ParseOpaqueBody(std::string_view prefix, size_t start) {
  char c = pos_ < text_.size() ? text_[pos_] : 0;
  if (c == '<') STROP_TRY(SkipBalanced());
  return m_.OpaqueAttr(StrCat(prefix, text_.substr(start, pos_ - start)));
}

Result<const MlirAttr*> MlirTextParser::ParseNumber(const MlirType* type) {
  SkipSpace();
  size_t start = pos_;
  bool negative = Try("-");
  size_t digits = pos_;
  auto digit = [&](size_t p) { return p < text_.size() && text_[p] >= '0' && text_[p] <= '9'; };
  auto hex = [&](size_t p) { return p < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[p])); };
  if (!digit(pos_)) return Error(start, "expected a number, found ", Found());
  bool is_float = false;
  if (text_[pos_] == '0' && pos_ + 2 < text_.size() && text_[pos_ + 1] == 'x' && hex(pos_ + 2)) {
    pos_ += 2;
    while (hex(pos_)) ++pos_;
  } else {
    while (digit(pos_)) ++pos_;
    if (pos_ < text_.size() && text_[pos_] == '.') {
      is_float = true;
      ++pos_;
      while (digit(pos_)) ++pos_;
      if (pos_ < text_.size() && (text_[pos_] == 'e' || text_[pos_] == 'E')) {
        size_t p = pos_ + 1;
        if (p < text_.size() && (text_[p] == '-' || text_[p] == '+')) ++p;
        if (digit(p)) {
          pos_ = p;
          while (digit(pos_)) ++pos_;
        }
      }
    }
  }
  std::string_view number = text_.substr(digits, pos_ - digits);
  if (!type) {
    size_t back = pos_;
    if (Try(":")) {
      STROP_ASSIGN(type, ParseType());
    } else {
      pos_ = back;
      type = is_float ? m_.Float(MlirFloat::F64) : m_.Integer(64);
    }
  }
  return MakeNumber(number, negative, type, start);
}

Result<const MlirAttr*> MlirTextParser::MakeNumber(std::string_view digits, bool negative, const MlirType* type,
                                                   size_t start) {
  bool hex = digits.starts_with("0x");
  bool is_float = !hex && digits.find('.') != std::string_view::npos;
  uint64_t bits = 0;
  if (!is_float) {
    std::string_view d = hex ? digits.substr(2) : digits;
    auto r = std::from_chars(d.data(), d.data() + d.size(), bits, hex ? 16 : 10);
    bool float_from_decimal = type->kind == MlirTypeKind::Float && !hex;
    if (r.ec != std::errc{} && !float_from_decimal) return Error(start, "integer ", digits, " does not fit in 64 bits");
  }
  if (type->kind == MlirTypeKind::Integer || type->kind == MlirTypeKind::Index) {
    uint32_t width = type->kind == MlirTypeKind::Index ? 64 : type->width;
    if (is_float) return Error(start, "expected an integer of type ", PrintType(*type), ", found ", digits);
    if (width > 64) return Error(start, "integers of more than 64 bits are not supported");
    uint64_t limit = width == 64 ? UINT64_MAX : (uint64_t{1} << width) - 1;
    uint64_t lowest = uint64_t{1} << (width - 1);
    bool fits = negative ? bits == 0 || (type->sign != MlirSign::Unsigned && bits <= lowest)
                         : bits <= (type->sign == MlirSign::Signed ? lowest - 1 : limit);
    if (!fits) return Error(start, "integer ", negative ? "-" : "", digits, " does not fit in ", PrintType(*type));
    if (negative) bits = 0 - bits;
    if (type->sign != MlirSign::Unsigned && width < 64 && (bits >> (width - 1)) & 1) bits |= ~uint64_t{0} << width;
    if (type->kind == MlirTypeKind::Integer && width == 1 && type->sign == MlirSign::Signless) return m_.Bool(bits & 1);
    return m_.Int(static_cast<int64_t>(bits), type);
  }
  if (type->kind != MlirTypeKind::Float) return Error(start, "a number cannot have the type ", PrintType(*type));
  if (ElementBytes(*type) == 0 || (!hex && !HasFloatValue(type->float_kind)))
    return Unimplemented("constants of type ", PrintType(*type), " are not supported").At(LocationText(LocAt(start)));
  if (hex) {
    if (negative) return Error(start, "the bits of a float have no sign");
    if (type->width < 64 && bits >> type->width) return Error(start, digits, " does not fit in ", PrintType(*type));
    return m_.FloatBits(bits, type);
  }
  double value = 0;
  auto r = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (r.ec == std::errc::result_out_of_range) {  // to zero or to infinity
    bool small = digits.find("e-") != std::string_view::npos || digits.find("E-") != std::string_view::npos;
    value = small ? 0.0 : std::numeric_limits<double>::infinity();
  }
  return m_.FloatBits(EncodeMlirFloat(type->float_kind, negative ? -value : value), type);
}

Result<const MlirAttr*> MlirTextParser::ParseSymbolAttr() {
  STROP_ASSIGN(std::string_view root, SymbolName());
  std::vector<const MlirAttr*> nested;
  while (Try("::")) {
    STROP_ASSIGN(std::string_view name, SymbolName());
    nested.push_back(m_.Symbol(name));
  }
  return m_.Symbol(root, nested);
}

Result<const MlirAttr*> MlirTextParser::ParseArrayAttr() {
  STROP_TRY(Expect("["));
  std::vector<const MlirAttr*> elements;
  if (!Try("]")) {
    do {
      STROP_ASSIGN(const MlirAttr* element, ParseAttr());
      elements.push_back(element);
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  return m_.Array(elements);
}

Status MlirTextParser::ParseDictBody(std::vector<MlirNamedAttr>& fields) {
  if (Try("}")) return OkStatus();
  do {
    MlirNamedAttr field;
    if (Peek() == '"') {
      STROP_ASSIGN(field.name, QuotedString());
    } else {
      std::string_view word = Word();
      if (word.empty()) return Error(pos_, "expected the name of an attribute, found ", Found());
      field.name = m_.arena().CopyString(word);
    }
    field.value = m_.Unit();
    if (Try("=")) {
      STROP_ASSIGN(field.value, ParseAttr());
    }
    fields.push_back(field);
  } while (Try(","));
  return Expect("}");
}

Result<const MlirAttr*> MlirTextParser::ParseDictAttr() {
  size_t start = pos_;
  STROP_TRY(Expect("{"));
  std::vector<MlirNamedAttr> fields;
  STROP_TRY(ParseDictBody(fields));
  Result<const MlirAttr*> dict = m_.Dict(std::move(fields));
  if (!dict.ok()) return Error(start, dict.status().message());
  return dict;
}

Status MlirTextParser::ParseOptionalDict(std::vector<MlirNamedAttr>& attrs) {
  if (!Try("{")) return OkStatus();
  return ParseDictBody(attrs);
}

Result<std::vector<int64_t>> MlirTextParser::ParseIntList(bool dynamic) {
  STROP_TRY(Expect("["));
  std::vector<int64_t> values;
  if (Try("]")) return values;
  do {
    if (dynamic && Try("?")) {
      values.push_back(kMlirDynamic);
      continue;
    }
    STROP_ASSIGN(int64_t v, Integer());
    values.push_back(v);
  } while (Try(","));
  STROP_TRY(Expect("]"));
  return values;
}

Result<const MlirAttr*> MlirTextParser::ParseBracketedInts() {
  if (Peek() != '[') return ParseAttr();
  STROP_ASSIGN(std::vector<int64_t> values, ParseIntList(false));
  return m_.Ints(values);
}

// array<i64: 1, 2>   array<i1: true>
Result<const MlirAttr*> MlirTextParser::ParseDenseArrayAttr() {
  size_t start = pos_;
  Word();
  STROP_TRY(Expect("<"));
  MlirAttr a;
  a.kind = MlirAttrKind::DenseArray;
  STROP_ASSIGN(a.type, ParseType());
  int64_t bytes = ElementBytes(*a.type);
  bool allowed = (a.type->kind == MlirTypeKind::Integer || a.type->kind == MlirTypeKind::Float) && bytes > 0;
  if (!allowed) return Error(start, "an array of ", PrintType(*a.type), " is not supported");
  std::string data;
  if (Try(":")) {
    do {
      const MlirAttr* value = nullptr;
      if (a.type->kind == MlirTypeKind::Integer && a.type->width == 1 &&
          (PeekWord() == "true" || PeekWord() == "false")) {
        value = m_.Bool(Word() == "true");
      } else {
        STROP_ASSIGN(value, ParseNumber(a.type));
      }
      uint64_t bits = value->bits;
      if (a.type->width < 64) bits &= (uint64_t{1} << a.type->width) - 1;
      data.append(reinterpret_cast<const char*>(&bits), bytes);
    } while (Try(","));
  }
  STROP_TRY(Expect(">"));
  a.data = m_.arena().CopyString(data);
  return m_.Make(a);
}

Result<const MlirAttr*> MlirTextParser::ParseHashAttr(const MlirType* type) {
  size_t start = pos_;
  STROP_TRY(Expect("#"));
  size_t end = pos_;
  while (end < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_' ||
                                text_[end] == '$' || text_[end] == '.'))
    ++end;
  std::string_view word = text_.substr(pos_, end - pos_);
  std::string_view name = text_.substr(start, end - start);
  if (word.empty()) return Error(pos_, "expected an attribute name after '#', found ", Found());
  pos_ = end;
  if (auto it = aliases_.find(name); it != aliases_.end()) {
    Alias& alias = it->second;
    if (alias.attr) return alias.attr;
    if (alias.reading) return Error(start, "attribute alias ", name, " refers to itself");
    alias.reading = true;
    size_t back = pos_;
    pos_ = alias.pos;
    Result<const MlirAttr*> attr = ParseAttr();
    alias.reading = false;
    alias.end = pos_;
    STROP_TRY(attr);
    alias.attr = *attr;
    pos_ = back;
    return alias.attr;
  }
  bool angle = word.find('.') == std::string_view::npos;
  if (angle && !(pos_ < text_.size() && text_[pos_] == '<'))
    return Error(start, "attribute alias ", name, " is not defined");
  std::string full(word);
  if (angle) {
    Try("<");
    StrAppend(full, ".", Word());
  }
  size_t body = pos_;
  STROP_ASSIGN(const MlirAttr* attr, ParseDialectAttr(full, start));
  if (attr) {
    if (angle) STROP_TRY(Expect(">"));
    return attr;
  }
  pos_ = angle ? end : body;
  return ParseOpaqueBody("", start);
}

// ---- locations
// --------------------------------------------------------------------------------------------------------

Status MlirTextParser::ParseOptionalLoc(const MlirAttr*& loc) {
  if (PeekWord() != "loc") return OkStatus();
  STROP_ASSIGN(loc, ParseLoc());
  return OkStatus();
}

Result<const MlirAttr*> MlirTextParser::ParseLoc() {
  STROP_TRY(ExpectWord("loc"));
  STROP_TRY(Expect("("));
  STROP_ASSIGN(const MlirAttr* loc, ParseLocBody());
  STROP_TRY(Expect(")"));
  return loc;
}

Result<const MlirAttr*> MlirTextParser::ParseLocBody() {
  Nested nested(depth_);
  STROP_TRY(CheckNesting());
  char c = Peek();
  size_t start = pos_;
  if (c == '#') {
    STROP_ASSIGN(const MlirAttr* loc, ParseHashAttr(nullptr));
    if (!loc->IsLocation()) return Error(start, "expected a location");
    return loc;
  }
  MlirAttr a;
  if (c == '"') {
    STROP_ASSIGN(a.text, QuotedString());
    if (Try(":")) {
      STROP_ASSIGN(int64_t line, Integer());
      STROP_TRY(Expect(":"));
      STROP_ASSIGN(int64_t column, Integer());
      if (!TryWord("to")) return m_.FileLoc(a.text, line, column);
      int64_t end_line = line;
      Status status;
      TryInteger(end_line, status);
      STROP_TRY(status);
      STROP_TRY(Expect(":"));
      STROP_ASSIGN(int64_t end_column, Integer());
      return m_.FileLoc(a.text, line, column, end_line, end_column);
    }
    a.kind = MlirAttrKind::NameLoc;
    const MlirAttr* child = m_.UnknownLoc();
    if (Try("(")) {
      STROP_ASSIGN(child, ParseLocBody());
      STROP_TRY(Expect(")"));
    }
    a.elements = m_.arena().CopyArray(std::span<const MlirAttr* const>(&child, 1));
    return m_.Make(a);
  }
  std::string_view word = Word();
  if (word == "unknown") return m_.UnknownLoc();
  std::vector<const MlirAttr*> parts;
  if (word == "callsite") {
    a.kind = MlirAttrKind::CallSiteLoc;
    STROP_TRY(Expect("("));
    STROP_ASSIGN(const MlirAttr* callee, ParseLocBody());
    STROP_TRY(ExpectWord("at"));
    STROP_ASSIGN(const MlirAttr* caller, ParseLocBody());
    STROP_TRY(Expect(")"));
    parts = {callee, caller};
  } else if (word == "fused") {
    a.kind = MlirAttrKind::FusedLoc;
    if (Try("<")) {
      STROP_ASSIGN(a.metadata, ParseAttr());
      STROP_TRY(Expect(">"));
    }
    STROP_TRY(Expect("["));
    if (!Try("]")) {
      do {
        STROP_ASSIGN(const MlirAttr* part, ParseLocBody());
        parts.push_back(part);
      } while (Try(","));
      STROP_TRY(Expect("]"));
    }
  } else {
    return Error(start, "expected a location, found ", word.empty() ? Found() : StrCat("'", word, "'"));
  }
  a.elements = m_.arena().CopyArray(parts);
  return m_.Make(a);
}

}  // namespace strop
