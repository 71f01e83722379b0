#include "strop/runtime/ffi_attributes.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "strop/types/shape.h"

namespace strop {
namespace {

constexpr int kMaxDepth = 32;

constexpr int64_t kMaxElements = int64_t{1} << 24;  // of a splat, which is written in full

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

// "i32", "ui8", "i1", "f32", "bf16", "index": the types that attributes may have.
std::optional<ElementType> MlirType(std::string_view name) {
  if (name == "i1") return ElementType::Pred;
  if (name == "index") return ElementType::S64;
  std::optional<ElementType> type;
  if (name.substr(0, 2) == "ui")
    type = ParseElementType(StrCat("u", name.substr(2)));
  else if (name.substr(0, 2) == "si")
    type = ParseElementType(StrCat("s", name.substr(2)));
  else if (name.substr(0, 1) == "i")
    type = ParseElementType(StrCat("s", name.substr(1)));
  else if (name.substr(0, 1) == "f" || name == "bf16")
    type = ParseElementType(LowerCase(name));  // f8E4M3FN
  if (type && !IsPred(*type) && !IsInteger(*type) && !IsFloat(*type)) return std::nullopt;
  return type;
}

// A number or true/false, as written.
std::string_view NumberText(Cursor& at) {
  at.SkipSpace();
  return at.Until(" \t\r\n,:}>])");
}

bool IsHex(std::string_view text) { return text.size() > 2 && text.substr(0, 2) == "0x"; }

// The bits behind "0x", if they are so many.
std::optional<uint64_t> ParseHex(std::string_view text, int bits) {
  uint64_t code;
  const auto r = std::from_chars(text.data() + 2, text.data() + text.size(), code, 16);
  if (r.ec != std::errc{} || r.ptr != text.data() + text.size()) return std::nullopt;
  if (bits < 64 && code >> bits != 0) return std::nullopt;
  return code;
}

// The low bits of an integer that the type can hold; i8 takes -128 to 255, as MLIR does for a type without a sign.
std::optional<uint64_t> ParseInteger(std::string_view text, ElementType type) {
  const int bits = Bits(type);
  if (std::optional<int64_t> number = strop::ParseNumber<int64_t>(text)) {
    const int64_t value = *number;
    if (value < 0 && (!IsSigned(type) || (bits < 64 && value < -(int64_t{1} << (bits - 1))))) return std::nullopt;
    if (value > 0 && bits < 63 && value >> bits != 0) return std::nullopt;
    return static_cast<uint64_t>(value);
  }
  if (bits < 64) return std::nullopt;
  return strop::ParseNumber<uint64_t>(text);
}

// `type` is one that MlirType gives.
Result<std::string> Encode(std::string_view text, ElementType type, const Cursor& at) {
  std::optional<uint64_t> code;
  if (text == "true" || text == "false") {
    if (!IsPred(type)) return at.Error(text, " is no ", Name(type));
    code = text == "true" ? 1 : 0;
  } else if (IsHex(text)) {
    code = ParseHex(text, IsPred(type) ? 1 : Bits(type));
  } else if (IsPred(type)) {
    if (text == "0" || text == "1") code = text == "1" ? 1 : 0;
  } else if (IsInteger(type)) {
    code = ParseInteger(text, type);
  } else if (std::optional<double> value = strop::ParseNumber<double>(text)) {
    if (type == ElementType::F64)
      code = std::bit_cast<uint64_t>(*value);
    else if (type == ElementType::F32)
      code = std::bit_cast<uint32_t>(static_cast<float>(*value));
    else
      code = EncodeFloat(type, *value);
  }
  if (!code) return at.Error("expected a number that is a ", Name(type), ", found '", text, "'");
  std::string bytes(sizeof *code, '\0');
  std::memcpy(bytes.data(), &*code, sizeof *code);
  bytes.resize(static_cast<size_t>(Bytes(type)));
  return bytes;
}

bool IsFloatText(std::string_view text) { return text.find_first_of(".eE") != text.npos && !IsHex(text); }

// Leaves of a dense literal, nesting ignored: the shape says how many there must be.
Status DenseElements(Cursor& at, std::vector<std::string_view>& out) {
  int depth = 0;
  do {
    while (at.Consume('[')) ++depth;
    if (at.Peek() != ']') out.push_back(NumberText(at));
    while (at.Consume(']')) --depth;
  } while (at.Consume(','));
  return depth == 0 ? OkStatus() : at.Expected("balanced brackets");
}

// "tensor<2x3xi32>" -> shape.
Result<Shape> TensorType(Cursor& at) {
  if (!at.ConsumeWord("tensor")) return at.Expected("tensor<");
  STROP_TRY(at.Expect('<'));
  std::string_view text = at.Until(">");
  STROP_TRY(at.Expect('>'));
  Int64Vector dims;
  for (;;) {
    size_t x = text.find('x');
    std::optional<int64_t> dim = x == text.npos ? std::nullopt : strop::ParseNumber<int64_t>(text.substr(0, x));
    if (!dim) break;
    dims.push_back(*dim);
    text.remove_prefix(x + 1);
  }
  std::optional<ElementType> type = MlirType(text);
  if (!type) return at.Error("unknown element type '", text, "'");
  Shape shape = Shape::Array(*type, dims);
  STROP_TRY(shape.Validate());
  return shape;
}

// The bytes of "0x0100...".
Result<std::string> DecodeBlob(std::string_view blob, const Cursor& at) {
  std::string bytes;
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  if (blob.substr(0, 2) != "0x" || blob.size() % 2 != 0) return at.Error("expected hexadecimal bytes");
  for (size_t i = 2; i < blob.size(); i += 2) {
    const int high = digit(blob[i]), low = digit(blob[i + 1]);
    if (high < 0 || low < 0) return at.Error("expected hexadecimal bytes, found '", blob.substr(i, 2), "'");
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

}  // namespace

Result<std::unique_ptr<FfiAttributes>> FfiAttributes::Parse(std::string_view text) {
  auto out = std::make_unique<FfiAttributes>();
  Cursor at(text);
  if (at.AtEnd()) {
    out->attrs_.struct_size = kFfiStructSize<XLA_FFI_Attrs>;
    return out;
  }
  STROP_TRY(out->ParseDictionary(at, out->attrs_, 0));
  if (!at.AtEnd()) return at.Expected("the end of the attributes");
  return out;
}

Status FfiAttributes::ParseDictionary(Cursor& at, XLA_FFI_Attrs& out, int depth) {
  if (depth > kMaxDepth) return at.Error("attributes nest deeper than ", kMaxDepth);
  struct Entry {
    std::string name;
    Value value;
  };
  std::vector<Entry> entries;
  STROP_TRY(at.Expect('{'));
  if (!at.Consume('}')) {
    do {
      Entry entry;
      if (at.Peek() == '"') {
        STROP_ASSIGN(entry.name, at.String());
      } else {
        entry.name = at.Word();
      }
      if (entry.name.empty()) return at.Expected("an attribute name");
      if (at.Consume('=')) {
        STROP_ASSIGN(entry.value, ParseValue(at, depth));
      } else {
        entry.value = Scalar(ElementType::Pred, std::string(1, '\1'));  // a unit attribute: present is true
      }
      entries.push_back(std::move(entry));
    } while (at.Consume(','));
    STROP_TRY(at.Expect('}'));
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.name < b.name; });
  for (size_t i = 1; i < entries.size(); ++i)
    if (entries[i].name == entries[i - 1].name) return at.Error("attribute '", entries[i].name, "' is given twice");
  auto& types = memory_.types.emplace_back();
  auto& names = memory_.names.emplace_back();
  auto& values = memory_.values.emplace_back();
  for (Entry& entry : entries) {
    const std::string& name = memory_.bytes.emplace_back(std::move(entry.name));
    types.push_back(entry.value.type);
    names.push_back(&memory_.spans.emplace_back(XLA_FFI_ByteSpan{name.data(), name.size()}));
    values.push_back(entry.value.value);
  }
  out = {kFfiStructSize<XLA_FFI_Attrs>,
         nullptr,
         static_cast<int64_t>(entries.size()),
         types.data(),
         names.data(),
         values.data()};
  return OkStatus();
}

Result<FfiAttributes::Value> FfiAttributes::ParseValue(Cursor& at, int depth) {
  const char next = at.Peek();
  if (next == '"') {
    STROP_ASSIGN(std::string text, at.String());
    const std::string& kept = memory_.bytes.emplace_back(std::move(text));
    return Value{XLA_FFI_AttrType_STRING, &memory_.spans.emplace_back(XLA_FFI_ByteSpan{kept.data(), kept.size()})};
  }
  if (next == '{') {
    XLA_FFI_Attrs& dictionary = memory_.dictionaries.emplace_back();
    STROP_TRY(ParseDictionary(at, dictionary, depth + 1));
    return Value{XLA_FFI_AttrType_DICTIONARY, &dictionary};
  }
  if (at.PeekWord() == "array") return ParseArray(at);
  if (at.PeekWord() == "dense") return ParseDense(at);
  return ParseNumber(at);
}

Result<FfiAttributes::Value> FfiAttributes::ParseNumber(Cursor& at) {
  std::string_view text = NumberText(at);
  ElementType type = text == "true" || text == "false" ? ElementType::Pred
                     : IsFloatText(text)               ? ElementType::F64
                                                       : ElementType::S64;
  if (at.Consume(':')) {
    std::string_view name = at.Word();
    std::optional<ElementType> named = MlirType(name);
    if (!named) return at.Error("unknown attribute type '", name, "'");
    type = *named;
  }
  STROP_ASSIGN(std::string bytes, Encode(text, type, at));
  return Scalar(type, std::move(bytes));
}

Result<FfiAttributes::Value> FfiAttributes::ParseArray(Cursor& at) {
  at.ConsumeWord("array");
  STROP_TRY(at.Expect('<'));
  std::string_view name = at.Word();
  std::optional<ElementType> type = MlirType(name);
  if (!type) return at.Error("unknown element type '", name, "'");
  std::string bytes;
  if (at.Consume(':')) {
    do {
      STROP_ASSIGN(std::string element, Encode(NumberText(at), *type, at));
      bytes += element;
    } while (at.Consume(','));
  }
  STROP_TRY(at.Expect('>'));
  return Array(*type, std::move(bytes));
}

Result<FfiAttributes::Value> FfiAttributes::ParseDense(Cursor& at) {
  at.ConsumeWord("dense");
  STROP_TRY(at.Expect('<'));
  std::string blob;
  std::vector<std::string_view> elements;
  if (at.Peek() == '"') {
    STROP_ASSIGN(blob, at.String());
  } else if (at.Peek() != '>') {
    STROP_TRY(DenseElements(at, elements));
  }
  STROP_TRY(at.Expect('>'));
  STROP_TRY(at.Expect(':'));
  STROP_ASSIGN(Shape shape, TensorType(at));
  std::string bytes;
  if (!blob.empty()) {
    STROP_ASSIGN(bytes, DecodeBlob(blob, at));
  } else {
    for (std::string_view element : elements) {
      STROP_ASSIGN(std::string encoded, Encode(element, shape.type(), at));
      bytes += encoded;
    }
  }
  const int64_t count = shape.num_elements();
  if (count != 1 && static_cast<int64_t>(bytes.size()) == Bytes(shape.type())) {  // a splat
    if (count > kMaxElements)
      return at.Error("a splat of ", count, " elements, at most ", kMaxElements, " are written");
    std::string all;
    all.reserve(bytes.size() * static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) all += bytes;
    bytes = std::move(all);
  }
  if (static_cast<int64_t>(bytes.size()) != shape.byte_size())
    return at.Error("dense attribute of ", bytes.size(), " bytes for ", shape.ToString());
  return Array(shape.type(), std::move(bytes));
}

FfiAttributes::Value FfiAttributes::Scalar(ElementType type, std::string bytes) {
  std::string& kept = memory_.bytes.emplace_back(std::move(bytes));
  return {XLA_FFI_AttrType_SCALAR,
          &memory_.scalars.emplace_back(XLA_FFI_Scalar{static_cast<XLA_FFI_DataType>(type), kept.data()})};
}

FfiAttributes::Value FfiAttributes::Array(ElementType type, std::string bytes) {
  std::string& kept = memory_.bytes.emplace_back(std::move(bytes));
  const size_t count = kept.size() / Bytes(type);
  return {XLA_FFI_AttrType_ARRAY,
          &memory_.arrays.emplace_back(XLA_FFI_Array{static_cast<XLA_FFI_DataType>(type), count, kept.data()})};
}

}  // namespace strop
