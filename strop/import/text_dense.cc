// Constants in MLIR text: dense<[[1, 2], [3, 4]]>, dense<0.5> (splat), dense<"0x0000803F"> (bytes), complex, strings,
// dense_resource, sparse. The elements come before the type, so they are noted first and converted when it is known.
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "strop/import/text_parser_impl.h"

namespace strop {

Status MlirTextParser::ParseElement(ElementList& list, Element& element, bool inside_complex) {
  char c = Peek();
  size_t start = pos_;
  if (c == '(' && !inside_complex) {
    element.kind = Element::kComplex;
    ++pos_;
    Element re, im;
    STROP_TRY(ParseElement(list, re, true));
    STROP_TRY(Expect(","));
    STROP_TRY(ParseElement(list, im, true));
    STROP_TRY(Expect(")"));
    element.begin = list.parts.size();
    list.parts.push_back(re);
    list.parts.push_back(im);
    return OkStatus();
  }
  if (c == '"') {
    element.kind = Element::kString;
    element.begin = pos_;
    STROP_TRY(QuotedString());
    element.end = pos_;
    return OkStatus();
  }
  if (PeekWord() == "true" || PeekWord() == "false") {
    element.kind = Word() == "true" ? Element::kTrue : Element::kFalse;
    return OkStatus();
  }
  element.kind = Element::kNumber;
  element.negative = Try("-");
  element.begin = pos_;
  while (pos_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[pos_])) || text_[pos_] == '.' ||
                                 ((text_[pos_] == '-' || text_[pos_] == '+') && pos_ > element.begin &&
                                  (text_[pos_ - 1] == 'e' || text_[pos_ - 1] == 'E')))) {
    ++pos_;
  }
  element.end = pos_;
  if (element.begin == element.end || !std::isdigit(static_cast<unsigned char>(text_[element.begin]))) {
    return Error(start, "expected an element of a constant, found ", Found());
  }
  return OkStatus();
}

// One bracket level. The first list at each depth sets the size that the others must have.
Status MlirTextParser::ParseElements(ElementList& list, size_t depth) {
  if (depth > 64) return Error(pos_, "a constant has more than 64 dimensions");
  size_t start = pos_;
  STROP_TRY(Expect("["));
  if (list.dims.size() == depth) {
    if (!list.elements.empty()) return Error(start, "lists of different depth in a constant");
    list.dims.push_back(-1);
  }
  int64_t count = 0;
  if (!Try("]")) {
    do {
      if (Peek() == '[') {
        STROP_TRY(ParseElements(list, depth + 1));
      } else {
        if (list.dims.size() != depth + 1) return Error(pos_, "lists of different depth in a constant");
        Element element;
        STROP_TRY(ParseElement(list, element, false));
        list.elements.push_back(element);
      }
      ++count;
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  if (list.dims[depth] == -1) {
    list.dims[depth] = count;
  } else if (list.dims[depth] != count) {
    return Error(start, "a list of ", count, " elements where the others have ", list.dims[depth]);
  }
  return OkStatus();
}

Result<std::string_view> MlirTextParser::HexBytes(std::string_view hex, size_t start) {
  if (!hex.starts_with("0x") || hex.size() % 2 != 0) return Error(start, "expected hexadecimal bytes \"0x...\"");
  std::span<char> bytes = m_.arena().NewArray<char>(hex.size() / 2 - 1);
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint8_t v = 0;
    const char* p = hex.data() + 2 + 2 * i;
    auto r = std::from_chars(p, p + 2, v, 16);
    if (r.ec != std::errc{} || r.ptr != p + 2)
      return Error(start, "'", std::string_view(p, 2), "' is no hexadecimal byte");
    bytes[i] = static_cast<char>(v);
  }
  return std::string_view(bytes.data(), bytes.size());
}

Result<const MlirAttr*> MlirTextParser::ParseDense() {
  size_t start = pos_;
  Word();
  STROP_TRY(Expect("<"));
  ElementList list;
  size_t body = pos_;
  if (Peek() == '[') {
    STROP_TRY(ParseElements(list, 0));
  } else if (Peek() == '"') {
    size_t p = pos_;
    STROP_ASSIGN(list.hex_text, QuotedString());
    list.hex = list.hex_text.starts_with("0x");
    if (!list.hex) {
      pos_ = p;
      Element element;
      STROP_TRY(ParseElement(list, element, false));
      list.elements.push_back(element);
    }
  } else if (Peek() != '>') {
    Element element;
    STROP_TRY(ParseElement(list, element, false));
    list.elements.push_back(element);
  }
  (void)body;
  STROP_TRY(Expect(">"));
  STROP_TRY(Expect(":"));
  STROP_ASSIGN(const MlirType* type, ParseType());
  return MakeDense(list, type, start);
}

Status MlirTextParser::WriteElement(const ElementList& list, const Element& element, const MlirType& type, char* out) {
  size_t at = element.kind == Element::kComplex ? pos_ : element.begin;
  if (type.kind == MlirTypeKind::Complex) {
    if (element.kind != Element::kComplex) return Error(at, "expected a complex element (re, im)");
    const MlirType& part = *type.element();
    STROP_TRY(WriteElement(list, list.parts[element.begin], part, out));
    return WriteElement(list, list.parts[element.begin + 1], part, out + ElementBytes(part));
  }
  if (type.kind == MlirTypeKind::Quantized) return WriteElement(list, element, *type.types[0], out);
  bool is_bool = type.kind == MlirTypeKind::Integer && type.width == 1;
  if (element.kind == Element::kTrue || element.kind == Element::kFalse) {
    if (!is_bool) return Error(at ? at : pos_, "true and false are elements of i1 only, not of ", PrintType(type));
    *out = element.kind == Element::kTrue;
    return OkStatus();
  }
  if (element.kind != Element::kNumber) return Error(at, "this element does not fit the type ", PrintType(type));
  std::string_view digits = text_.substr(element.begin, element.end - element.begin);
  if (type.kind == MlirTypeKind::Float && digits.find('.') == std::string_view::npos && !digits.starts_with("0x")) {
    return Error(at, "expected a floating-point element of type ", PrintType(type), ", found ", digits);
  }
  // The plain cases first: a constant may have millions of elements.
  uint64_t bits = 0;
  std::string_view plain = digits;
  if (type.kind == MlirTypeKind::Float && InfoOf(type.float_kind).element != ElementType::Invalid &&
      !digits.starts_with("0x")) {
    double value = 0;
    auto r = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    if (r.ec == std::errc{} && r.ptr == plain.data() + plain.size()) {
      bits = EncodeFloat(InfoOf(type.float_kind).element, element.negative ? -value : value);
      std::memcpy(out, &bits, ElementBytes(type));
      return OkStatus();
    }
    if (r.ec == std::errc{}) return Error(at, "'", digits, "' is no number");
  }
  STROP_ASSIGN(const MlirAttr* value, MakeNumber(digits, element.negative, &type, at));
  bits = value->bits;
  uint32_t width = type.kind == MlirTypeKind::Index ? 64 : type.width;
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  std::memcpy(out, &bits, std::min<int64_t>(8, ElementBytes(type)));
  return OkStatus();
}

Result<const MlirAttr*> MlirTextParser::MakeDense(const ElementList& list, const MlirType* type, size_t start) {
  bool shaped = type->kind == MlirTypeKind::Tensor || type->kind == MlirTypeKind::Vector;
  std::optional<int64_t> n = shaped ? NumElements(*type) : std::nullopt;
  if (!n) return Error(start, "a constant must have a static tensor type, not ", PrintType(*type));
  const MlirType& element = *type->element();
  MlirAttr a;
  a.type = type;
  a.splat = list.dims.empty() && *n != 1;
  bool strings = !list.elements.empty() && list.elements[0].kind == Element::kString && ElementBytes(element) == 0;
  if (!list.hex && !list.dims.empty()) {
    bool empty = list.elements.empty() && *n == 0;
    if (!empty && !std::ranges::equal(list.dims, type->dims)) {
      return Error(start, "the elements have the shape [", Join(list.dims, ","), "], which does not match ",
                   PrintType(*type));
    }
  }
  if (!list.hex && list.dims.empty() && list.elements.empty() && *n != 0) {
    return Error(start, "a constant of type ", PrintType(*type), " has no elements");
  }
  if (strings) {
    a.kind = MlirAttrKind::DenseString;
    std::vector<const MlirAttr*> values;
    for (const Element& e : list.elements) {
      size_t back = std::exchange(pos_, e.begin);
      STROP_ASSIGN(std::string_view text, QuotedString());
      pos_ = back;
      values.push_back(m_.String(text));
    }
    a.elements = m_.arena().CopyArray(values);
    return m_.Make(a);
  }
  a.kind = MlirAttrKind::Dense;
  int64_t bytes = ElementBytes(element);
  if (bytes == 0) return Error(start, "constants of type ", PrintType(element), " are not supported");
  if (list.hex) {
    STROP_ASSIGN(a.data, HexBytes(list.hex_text, start));
    a.splat = static_cast<int64_t>(a.data.size()) == bytes && *n != 1;
    if (!a.splat && (*n > INT64_MAX / bytes || static_cast<int64_t>(a.data.size()) != *n * bytes)) {
      return Error(start, "a constant of type ", PrintType(*type), " has ", a.data.size(), " bytes");
    }
    return m_.Make(a);
  }
  std::span<char> data = m_.arena().NewArray<char>(list.elements.size() * bytes);
  for (size_t i = 0; i < list.elements.size(); ++i)
    STROP_TRY(WriteElement(list, list.elements[i], element, data.data() + i * bytes));
  a.data = {data.data(), data.size()};
  bool equal = *n > 1;
  for (int64_t i = 1; i < *n && equal && !a.splat; ++i)
    equal = std::memcmp(data.data(), data.data() + i * bytes, bytes) == 0;
  if (equal) {
    a.splat = true;
    a.data = a.data.substr(0, bytes);
  }
  return m_.Make(a);
}

Result<const MlirAttr*> MlirTextParser::ParseDenseResource() {
  size_t start = pos_;
  Word();
  STROP_TRY(Expect("<"));
  std::string_view key;
  if (Peek() == '"') {
    STROP_ASSIGN(key, QuotedString());
  } else {
    key = Word();
  }
  STROP_TRY(Expect(">"));
  STROP_TRY(Expect(":"));
  STROP_ASSIGN(const MlirType* type, ParseType());
  MlirAttr a;
  a.kind = MlirAttrKind::DenseResource;
  a.text = m_.arena().CopyString(key);
  a.type = type;
  auto it = resources_.find(key);
  if (it != resources_.end()) {
    // Four bytes of alignment come before the elements.
    std::string_view bytes = it->second->text;
    if (bytes.size() < 4) return Error(start, "resource '", key, "' is too short");
    a.data = bytes.substr(4);
  }
  return m_.Make(a);
}

// sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>
Result<const MlirAttr*> MlirTextParser::ParseSparse() {
  size_t start = pos_;
  Word();
  STROP_TRY(Expect("<"));
  ElementList indices, values;
  if (Peek() != '>') {
    for (ElementList* list : {&indices, &values}) {
      if (list == &values) STROP_TRY(Expect(","));
      if (Peek() == '[') {
        STROP_TRY(ParseElements(*list, 0));
      } else {
        Element element;
        STROP_TRY(ParseElement(*list, element, false));
        list->elements.push_back(element);
      }
    }
  }
  STROP_TRY(Expect(">"));
  STROP_TRY(Expect(":"));
  MlirAttr a;
  a.kind = MlirAttrKind::Sparse;
  STROP_ASSIGN(a.type, ParseType());
  if (!a.type->IsTensor()) return Error(start, "a sparse constant must have a tensor type");
  int64_t rank = static_cast<int64_t>(a.type->dims.size());
  int64_t n = indices.dims.size() == 2 ? indices.dims[0] : indices.elements.empty() ? 0 : 1;
  int64_t index_dims[] = {n, rank};
  if (indices.dims.size() == 1) indices.dims = {1, indices.dims[0]};
  STROP_ASSIGN(const MlirType* index_type, m_.Tensor(index_dims, m_.Integer(64)));
  STROP_ASSIGN(const MlirType* value_type, m_.Tensor({&n, 1}, a.type->element()));
  STROP_ASSIGN(const MlirAttr* index_attr, MakeDense(indices, index_type, start));
  STROP_ASSIGN(const MlirAttr* value_attr, MakeDense(values, value_type, start));
  if (value_attr->kind != MlirAttrKind::Dense) return Error(start, "a sparse constant of strings");
  const MlirAttr* parts[] = {index_attr, value_attr};
  a.elements = m_.arena().CopyArray(std::span<const MlirAttr* const>(parts));
  return m_.Make(a);
}

// {-# dialect_resources: { builtin: { key: "0x08000000..." } }, external_resources: {...} #-} at the end of the file
Status MlirTextParser::ParseResources() {
  size_t at = text_.rfind("{-#");
  if (at == std::string_view::npos || (at > 0 && text_[at - 1] != '\n')) return OkStatus();
  size_t back = std::exchange(pos_, at + 3);
  while (!Try("#-}")) {
    std::string_view section = Word();
    if (section.empty()) return Error(pos_, "expected 'dialect_resources', found ", Found());
    STROP_TRY(Expect(":"));
    if (section != "dialect_resources") {
      SkipSpace();
      STROP_TRY(SkipBalanced());
      Try(",");
      continue;
    }
    STROP_TRY(Expect("{"));
    while (!Try("}")) {
      if (Word().empty()) return Error(pos_, "expected the name of a dialect, found ", Found());
      STROP_TRY(Expect(":"));
      STROP_TRY(Expect("{"));
      while (!Try("}")) {
        std::string_view key;
        if (Peek() == '"') {
          STROP_ASSIGN(key, QuotedString());
        } else {
          key = Word();
        }
        if (key.empty()) return Error(pos_, "expected the key of a resource, found ", Found());
        STROP_TRY(Expect(":"));
        size_t start = pos_;
        STROP_ASSIGN(std::string_view hex, QuotedString());
        STROP_ASSIGN(std::string_view bytes, HexBytes(hex, start));
        resources_[key] = m_.String(bytes);
        Try(",");
      }
      Try(",");
    }
    Try(",");
  }
  text_ = text_.substr(0, at);
  pos_ = back;
  return OkStatus();
}

}  // namespace strop
