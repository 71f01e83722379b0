// Types in MLIR text.
#include <charconv>

#include "strop/import/text_parser_impl.h"

namespace strop {

Result<const MlirType*> MlirTextParser::ParseType() {
  Nested nested(depth_);
  STROP_TRY(CheckNesting());
  char c = Peek();
  size_t start = pos_;
  if (c == '!') return ParseDialectType();
  if (c == '(') return ParseFunctionType();
  std::string_view word = Word();
  if (word.empty()) return Error(start, "expected a type, found ", Found());
  return ParseBuiltinType(word, start);
}

Result<const MlirType*> MlirTextParser::ParseBuiltinType(std::string_view word, size_t start) {
  for (auto [prefix, sign] : {std::pair<std::string_view, MlirSign>{"si", MlirSign::Signed},
                              {"ui", MlirSign::Unsigned},
                              {"i", MlirSign::Signless}}) {
    if (!word.starts_with(prefix)) continue;
    std::optional<uint32_t> width = strop::ParseNumber<uint32_t>(word.substr(prefix.size()));
    if (width && *width > 0 && *width < (1u << 24)) return m_.Integer(*width, sign);
  }
  for (int i = 0; i < kNumMlirFloats; ++i) {
    if (word == InfoOf(static_cast<MlirFloat>(i)).name) return m_.Float(static_cast<MlirFloat>(i));
  }
  if (word == "index") return m_.Index();
  if (word == "none") return m_.None();
  if (word == "tensor") return ParseShaped(MlirTypeKind::Tensor);
  if (word == "vector") return ParseShaped(MlirTypeKind::Vector);
  if (word == "memref") return ParseShaped(MlirTypeKind::MemRef);
  if (word == "complex") {
    STROP_TRY(Expect("<"));
    STROP_ASSIGN(const MlirType* part, ParseType());
    STROP_TRY(Expect(">"));
    return m_.Composite(MlirTypeKind::Complex, {&part, 1});
  }
  if (word == "tuple") {
    STROP_TRY(Expect("<"));
    std::vector<const MlirType*> types;
    if (!Try(">")) {
      STROP_TRY(ParseTypeList(types));
      STROP_TRY(Expect(">"));
    }
    return m_.Composite(MlirTypeKind::Tuple, types);
  }
  return Error(start, "'", word, "' is not a type");
}

Status MlirTextParser::ParseDims(std::vector<int64_t>& dims) {
  while (true) {
    size_t start = pos_;
    char c = Peek();
    if (c == '?') {
      ++pos_;
      dims.push_back(kMlirDynamic);
    } else if (c >= '0' && c <= '9') {
      STROP_ASSIGN(int64_t dim, Integer());
      dims.push_back(dim);
    } else {
      pos_ = start;
      return OkStatus();
    }
    if (pos_ >= text_.size() || text_[pos_] != 'x')
      return Error(pos_, "expected 'x' after a dimension, found ", Found());
    ++pos_;
  }
}

Result<const MlirType*> MlirTextParser::ParseShaped(MlirTypeKind kind) {
  STROP_TRY(Expect("<"));
  std::vector<int64_t> dims;
  size_t start = pos_;
  if (Peek() == '*') {
    ++pos_;
    if (pos_ >= text_.size() || text_[pos_] != 'x') return Error(pos_, "expected 'x' after '*', found ", Found());
    ++pos_;
    kind = MlirTypeKind::UnrankedTensor;
  } else {
    STROP_TRY(ParseDims(dims));
  }
  STROP_ASSIGN(const MlirType* element, ParseType());
  const MlirAttr* encoding = nullptr;
  if (Try(",")) {
    if (kind == MlirTypeKind::MemRef) {  // layout and memory space: nothing reads them
      int angle = 1;
      while (pos_ < text_.size() && angle > 0) {
        char c = text_[pos_];
        angle += c == '<' ? 1 : c == '>' && text_[pos_ - 1] != '-' ? -1 : 0;
        if (angle > 0) ++pos_;
      }
    } else {
      STROP_ASSIGN(encoding, ParseAttr());
    }
  }
  STROP_TRY(Expect(">"));
  Result<const MlirType*> type =
      kind == MlirTypeKind::Tensor ? m_.Tensor(dims, element, encoding) : m_.Shaped(kind, dims, element);
  if (!type.ok()) return Error(start, type.status().message());
  return type;
}

Result<const MlirType*> MlirTextParser::ParseFunctionType() {
  std::vector<const MlirType*> types;
  STROP_TRY(ParseTypesInParens(types));
  uint32_t inputs = static_cast<uint32_t>(types.size());
  STROP_TRY(Expect("->"));
  STROP_TRY(ParseResultTypes(types));
  return m_.Composite(MlirTypeKind::Function, types, inputs);
}

Status MlirTextParser::ParseTypeList(std::vector<const MlirType*>& types) {
  do {
    STROP_ASSIGN(const MlirType* type, ParseType());
    types.push_back(type);
  } while (Try(","));
  return OkStatus();
}

Status MlirTextParser::ParseTypesInParens(std::vector<const MlirType*>& types) {
  STROP_TRY(Expect("("));
  if (Try(")")) return OkStatus();
  STROP_TRY(ParseTypeList(types));
  return Expect(")");
}

Status MlirTextParser::ParseResultTypes(std::vector<const MlirType*>& types) {
  if (Peek() == '(') return ParseTypesInParens(types);
  STROP_ASSIGN(const MlirType* type, ParseType());
  types.push_back(type);
  return OkStatus();
}

Result<const MlirType*> MlirTextParser::ParseDialectType() {
  size_t start = pos_;
  STROP_TRY(Expect("!"));
  std::string_view word = Word();
  if (word.empty()) return Error(pos_, "expected a type name after '!', found ", Found());
  std::string_view name = text_.substr(start, pos_ - start);
  if (auto it = aliases_.find(name); it != aliases_.end()) {
    Alias& alias = it->second;
    if (alias.type) return alias.type;
    if (alias.reading) return Error(start, "type alias ", name, " refers to itself");
    alias.reading = true;
    size_t back = pos_;
    pos_ = alias.pos;
    Result<const MlirType*> type = ParseType();
    alias.reading = false;
    alias.end = pos_;
    STROP_TRY(type);
    alias.type = *type;
    pos_ = back;
    return alias.type;
  }
  // The two spellings !stablehlo.token and !stablehlo<token>.
  bool angle = (word == "stablehlo" || word == "quant") && Try("<");
  std::string full(word);
  if (angle) {
    StrAppend(full, ".", Word());
    if (full == "stablehlo." || full == "quant.") return Error(pos_, "expected a type name, found ", Found());
  }
  if (full == "stablehlo.token" || full == "mhlo.token") {
    if (angle) STROP_TRY(Expect(">"));
    return m_.Token();
  }
  if (full == "stablehlo.future") {
    STROP_TRY(Expect("<"));
    std::vector<const MlirType*> types;
    if (!Try(">")) {
      STROP_TRY(ParseTypeList(types));
      STROP_TRY(Expect(">"));
    }
    if (angle) STROP_TRY(Expect(">"));
    return m_.Composite(MlirTypeKind::Future, types);
  }
  if (full == "quant.uniform") {
    STROP_ASSIGN(const MlirType* type, ParseQuantType());
    if (angle) STROP_TRY(Expect(">"));
    return type;
  }
  if (full.starts_with("stablehlo.")) return Error(start, "'!", full, "' is no StableHLO type");
  if (full.find('.') == std::string::npos && Peek() != '<') return Error(start, "type alias ", name, " is not defined");
  if (pos_ < text_.size() && text_[pos_] == '<') STROP_TRY(SkipBalanced());
  return m_.OpaqueType(text_.substr(start, pos_ - start));
}

// !quant.uniform<i8<-8:7>:f32, 0.1:5>   per axis: <i8:f32:1, {0.1:5, 0.2}>   blockwise: <i8:f32:{0:2, 1:4}, {{...}}>
Result<const MlirType*> MlirTextParser::ParseQuantType() {
  STROP_TRY(Expect("<"));
  size_t start = pos_;
  MlirQuant q;
  std::string_view word = Word();
  bool is_signed = !word.starts_with("u");
  size_t prefix = word.starts_with("si") || word.starts_with("ui") ? 2
                  : word.starts_with("i") || word.starts_with("u") ? 1
                                                                   : 0;
  std::optional<uint32_t> width = strop::ParseNumber<uint32_t>(word.substr(prefix));
  if (prefix == 0 || !width || *width == 0 || *width > 32) {
    return Error(start, "expected the storage type of a quantized type (i8, u8, ...), found '", word, "'");
  }
  q.flags = is_signed ? 1 : 0;
  q.storage_min = is_signed ? -(int64_t{1} << (*width - 1)) : 0;
  q.storage_max = is_signed ? (int64_t{1} << (*width - 1)) - 1 : (int64_t{1} << *width) - 1;
  if (Try("<")) {
    STROP_ASSIGN(q.storage_min, Integer());
    STROP_TRY(Expect(":"));
    STROP_ASSIGN(q.storage_max, Integer());
    STROP_TRY(Expect(">"));
  }
  STROP_TRY(Expect(":"));
  STROP_ASSIGN(const MlirType* expressed, ParseType());
  std::vector<int64_t> axes, sizes;
  if (Try(":")) {
    if (Try("{")) {
      q.axis = -2;
      if (!Try("}")) {
        do {
          STROP_ASSIGN(int64_t axis, Integer());
          STROP_TRY(Expect(":"));
          STROP_ASSIGN(int64_t size, Integer());
          axes.push_back(axis);
          sizes.push_back(size);
        } while (Try(","));
        STROP_TRY(Expect("}"));
      }
    } else {
      STROP_ASSIGN(q.axis, Integer());
      if (q.axis < 0) return Error(pos_, "the axis of a quantized type must not be negative");
    }
  }
  STROP_TRY(Expect(","));
  std::vector<double> scales;
  std::vector<int64_t> zeros;
  int braces = 0;  // blockwise parameters nest as their tensor does
  do {
    while (Try("{")) {
      if (++braces > kMaxNesting) return Error(pos_, "nested deeper than ", kMaxNesting);
    }
    STROP_ASSIGN(const MlirAttr* scale, ParseNumber(m_.Float(MlirFloat::F64)));
    scales.push_back(FloatValue(*scale));
    zeros.push_back(0);
    if (Try(":")) {
      STROP_ASSIGN(zeros.back(), Integer());
    }
    while (braces > 0 && Try("}")) --braces;
  } while (Try(","));
  if (braces > 0) return Error(pos_, "expected '}', found ", Found());
  STROP_TRY(Expect(">"));
  if (q.axis == -1 && scales.size() != 1)
    return Error(start, "a quantized type without an axis has ", scales.size(), " scales");
  q.scales = m_.arena().CopyArray(scales);
  q.zero_points = m_.arena().CopyArray(zeros);
  q.block_axes = m_.arena().CopyArray(axes);
  q.block_sizes = m_.arena().CopyArray(sizes);
  MlirQuant* quant = m_.arena().New<MlirQuant>();
  *quant = q;
  MlirType* type = m_.arena().New<MlirType>();
  type->kind = MlirTypeKind::Quantized;
  const MlirSign sign = word.starts_with("si") ? MlirSign::Signed : MlirSign::Signless;  // refused when it is used
  const MlirType* parts[] = {m_.Integer(*width, sign), expressed};
  type->types = m_.arena().CopyArray(std::span<const MlirType* const>(parts));
  type->quant = quant;
  type->tree_size = 1 + expressed->tree_size;
  return type;
}

}  // namespace strop
