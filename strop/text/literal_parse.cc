// Elements are read straight into the literal's bytes: a number is parsed as a double or a 64-bit integer, checked
// against the element type, and stored. Finite text that no finite value of the type is near to is refused, as in XLA.
#include "strop/text/literal_parse.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace strop {
namespace {

constexpr int kMaxDepth = 256;  // of tuples in tuples

class ArrayReader {
 public:
  ArrayReader(Cursor& at, const Shape& shape, MadeUpValues& made_up)
      : at_(at), shape_(shape), type_(shape.type()), made_up_(made_up) {}

  Result<Literal> Read() {
    const size_t start = at_.offset();
    const int64_t elements = shape_.num_elements();
    const bool bare = shape_.rank() > 0 && at_.Peek() != '{' && shape_.byte_size() <= made_up_.bytes_left;
    if (bare) made_up_.bytes_left -= shape_.byte_size();
    if (!bare && elements > static_cast<int64_t>(at_.rest().size()))
      return at_.ErrorAt(start, "a constant of ", shape_.ToString(), " has ", elements,
                         " elements; the text ends before");
    Result<Literal> literal = Literal::Zeros(shape_);
    if (!literal.ok()) return at_.Locate(std::move(literal).status(), start);
    out_ = literal->mutable_bytes().data();
    if (bare) {
      if (elements > 0) STROP_TRY(ReadElement());
      return literal;
    }
    STROP_TRY(ReadDim(0));
    return literal;
  }

 private:
  Status ReadDim(int64_t dim) {
    if (dim == shape_.rank()) return ReadElement();
    STROP_TRY(at_.Expect('{'));
    const int64_t size = shape_.dim(dim);
    for (int64_t i = 0; i < size; ++i) {
      if (i && !at_.Consume(','))
        return at_.Expected(StrCat("',' (", i, " of ", size, " elements of dimension ", dim, " of ", shape_.ToString(),
                                   " were given)"));
      STROP_TRY(ReadDim(dim + 1));
    }
    at_.Consume(',');
    if (at_.Consume('}')) return OkStatus();
    return at_.Expected(StrCat("'}' after the ", size, " elements of dimension ", dim, " of ", shape_.ToString()));
  }

  template <class T>
  void Store(T value) {
    std::memcpy(out_, &value, sizeof(T));
    out_ += sizeof(T);
  }

  Status ReadElement() {
    switch (Kind(type_)) {
      case ElementKind::Pred: return ReadPred();
      case ElementKind::Signed:
      case ElementKind::Unsigned: return ReadInteger();
      case ElementKind::Float: return ReadFloat(type_);
      case ElementKind::Complex: {
        STROP_TRY(at_.Expect('('));
        STROP_TRY(ReadFloat(ComplexPart(type_)));
        STROP_TRY(at_.Expect(','));
        STROP_TRY(ReadFloat(ComplexPart(type_)));
        return at_.Expect(')');
      }
      case ElementKind::Other: break;
    }
    return at_.Error("a constant cannot have type ", Name(type_));
  }

  Status ReadPred() {
    int64_t number;
    if (at_.ConsumeWord("true"))
      number = 1;
    else if (at_.ConsumeWord("false"))
      number = 0;
    else if (!at_.Int(number))
      return at_.Expected("true, false, 0 or 1");
    Store<uint8_t>(number != 0);
    return OkStatus();
  }

  // As XLA: up to 2^64-1 for either kind of 64-bit integer; a negative number wraps in u64 only.
  Status ReadInteger() {
    at_.SkipSpace();
    const size_t start = at_.offset();
    const std::string_view rest = at_.rest();
    const bool negative = !rest.empty() && rest[0] == '-';
    uint64_t magnitude = 0;
    auto r = std::from_chars(rest.data() + negative, rest.data() + rest.size(), magnitude);
    const int bits = Bits(type_);
    if (r.ec == std::errc::invalid_argument) return at_.Expected(StrCat("an integer (", Name(type_), ")"));
    const uint64_t limit = bits == 64        ? (negative ? uint64_t{1} << 63 : ~uint64_t{0})
                           : IsSigned(type_) ? (uint64_t{1} << (bits - 1)) - (negative ? 0 : 1)
                                             : (negative ? 0 : (uint64_t{1} << bits) - 1);
    if (r.ec != std::errc{} || magnitude > limit)
      return at_.ErrorAt(start, "value ", std::string_view(rest.data(), r.ptr - rest.data()), " does not fit in ",
                         Name(type_));
    const char next = r.ptr == rest.data() + rest.size() ? '\0' : *r.ptr;
    if (next == '.' || next == 'e' || next == 'E') return at_.ErrorAt(start, "expected an integer (", Name(type_), ")");
    at_.set_offset(start + static_cast<size_t>(r.ptr - rest.data()));
    uint64_t code = negative ? ~magnitude + 1 : magnitude;
    switch (Bytes(type_)) {
      case 1: Store(static_cast<uint8_t>(IsUnsigned(type_) ? code & ((1u << bits) - 1) : code)); break;
      case 2: Store(static_cast<uint16_t>(code)); break;
      case 4: Store(static_cast<uint32_t>(code)); break;
      default: Store(code);
    }
    return OkStatus();
  }

  void StoreFloat(ElementType t, uint64_t code) {
    switch (Bytes(t)) {
      case 1: return Store(static_cast<uint8_t>(code));
      case 2: return Store(static_cast<uint16_t>(code));
      case 4: return Store(static_cast<uint32_t>(code));
      default: return Store(code);
    }
  }

  Status ReadFloat(ElementType t) {
    at_.SkipSpace();
    const size_t start = at_.offset();
    double value;
    if (!at_.Number(value)) return ReadNan(t);
    if (std::isinf(value) && at_.Since(start).find("inf") == std::string_view::npos)
      return at_.ErrorAt(start, "value ", at_.Since(start), " does not fit in a double");
    const uint64_t code = EncodeFloat(t, value);
    const bool lost = std::isfinite(value) && !std::isfinite(DecodeFloat(t, code));
    if (lost) return at_.ErrorAt(start, "value ", at_.Since(start), " does not fit in ", Name(t));
    StoreFloat(t, code);
    return OkStatus();
  }

  // nan, -nan, nan(0x7) with the mantissa bits of the type.
  Status ReadNan(ElementType t) {
    const size_t start = at_.offset();
    const bool negative = at_.Consume('-');
    if (!at_.ConsumeWord("nan")) {
      at_.set_offset(start);
      return at_.Expected(StrCat("a number (", Name(t), ")"));
    }
    uint64_t code = EncodeFloat(t, std::copysign(std::nan(""), negative ? -1.0 : 1.0));
    if (t == ElementType::F32) code = negative ? 0xffc00000u : 0x7fc00000u;
    if (t == ElementType::F64) code = negative ? 0xfff8000000000000u : 0x7ff8000000000000u;
    if (at_.Consume("(0x")) {
      const std::string_view digits = at_.Until(")");
      uint64_t payload = 0;
      auto r = std::from_chars(digits.data(), digits.data() + digits.size(), payload, 16);
      const FloatFormat& f = FormatOf(t);
      const uint64_t mask = (uint64_t{1} << f.mantissa_bits) - 1;
      if (r.ec != std::errc{} || r.ptr != digits.data() + digits.size() || payload == 0 || payload > mask ||
          !f.has_infinity)
        return at_.ErrorAt(start, "'", at_.Since(start), ")' is no NaN of ", Name(t));
      code = (code & ~mask) | payload;
      STROP_TRY(at_.Expect(')'));
    }
    StoreFloat(t, code);
    return OkStatus();
  }

  Cursor& at_;
  const Shape& shape_;
  const ElementType type_;
  MadeUpValues& made_up_;
  uint8_t* out_ = nullptr;
};

Result<Literal> ParseNested(Cursor& at, const Shape& shape, MadeUpValues& made_up, int depth) {
  if (depth > kMaxDepth) return at.Error("constant is nested more than ", kMaxDepth, " deep");
  if (shape.IsArray()) {
    if (!shape.IsStatic()) {
      for (int64_t i = 0; i < shape.rank(); ++i)
        if (shape.is_unbounded(i)) return at.Error("a constant cannot have the unbounded shape ", shape.ToString());
    }
    return ArrayReader(at, shape, made_up).Read();
  }
  if (shape.IsToken()) {
    if (!at.ConsumeWord("token")) return at.Expected("token");
    return Literal::Token();
  }
  if (!shape.IsTuple()) return at.Error("a constant cannot have shape ", shape.ToString());
  STROP_TRY(at.Expect('('));
  std::vector<Literal> elements;
  for (int64_t i = 0; i < shape.tuple_size(); ++i) {
    if (i) STROP_TRY(at.Expect(','));
    STROP_ASSIGN(Literal element, ParseNested(at, shape.element(i), made_up, depth + 1));
    elements.push_back(std::move(element));
  }
  STROP_TRY(at.Expect(')'));
  return Literal::Tuple(std::move(elements));
}

Result<Literal> ParseTyped(Cursor& at, int depth) {
  if (depth > kMaxDepth) return at.Error("literal is nested more than ", kMaxDepth, " deep");
  if (at.Peek() != '(') {
    STROP_ASSIGN(Shape shape, ParseShape(at));
    MadeUpValues none{.bytes_left = 0};
    return ParseNested(at, shape, none, depth);
  }
  std::vector<Literal> elements;
  at.Consume('(');
  if (at.Consume(')')) return Literal::Tuple({});
  do {
    STROP_ASSIGN(Literal element, ParseTyped(at, depth + 1));
    elements.push_back(std::move(element));
  } while (at.Consume(','));
  STROP_TRY(at.Expect(')'));
  return Literal::Tuple(std::move(elements));
}

}  // namespace

Result<Literal> ParseLiteral(Cursor& at, const Shape& shape, MadeUpValues& made_up) {
  return ParseNested(at, shape, made_up, 0);
}
Result<Literal> ParseTypedLiteral(Cursor& at) { return ParseTyped(at, 0); }

bool ConsumeElided(Cursor& at) {
  const size_t start = at.offset();
  if (at.Consume('{') && at.Consume("...") && at.Consume('}')) return true;
  at.set_offset(start);
  return false;
}

Literal ElidedLiteral(const Shape& shape, MadeUpValues& made_up) {
  if (shape.byte_size() > made_up.bytes_left) return Literal::WithoutValues(shape);
  Result<Literal> zeros = Literal::Zeros(shape);
  if (!zeros.ok()) return Literal::WithoutValues(shape);
  made_up.bytes_left -= shape.byte_size();
  std::span<uint8_t> bytes = zeros->mutable_bytes();
  const uint32_t mask = shape.type() == ElementType::Pred ? 0x01010101u : 0xffffffffu;
  for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    const uint32_t word = made_up.next_word++ & mask;
    std::memcpy(bytes.data() + i, &word, sizeof word);
  }
  if (IsSubByte(shape.type())) {  // one element a byte: keep to the codes of the type
    for (int64_t i = 0; i < shape.num_elements(); ++i) zeros->SetInt(i, bytes[i]);
  }
  return *std::move(zeros);
}

}  // namespace strop
