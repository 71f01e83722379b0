#include "strop/types/literal.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

namespace strop {

Result<Literal> Literal::Zeros(const Shape& shape) {
  STROP_TRY(shape.Validate());
  Literal out;
  out.shape_ = shape;
  if (shape.IsTuple()) {
    for (const Shape& e : shape.elements()) {
      STROP_ASSIGN(Literal element, Zeros(e));
      out.elements_.push_back(std::move(element));
    }
    return out;
  }
  if (!shape.IsArray()) return out;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape.is_unbounded(i))
      return InvalidArgument("no array of shape ", shape.ToString(), ": a size marked ? is not known");
  try {
    out.bytes_ = std::make_shared<std::vector<uint8_t>>(shape.byte_size());
  } catch (const std::exception&) {  // bad_alloc, length_error
    return ResourceExhausted("out of memory: ", shape.byte_size(), " bytes for a literal of ", shape.ToString());
  }
  return out;
}

Result<Literal> Literal::FromBytes(const Shape& shape, std::span<const uint8_t> bytes) {
  if (!shape.IsArray()) return InvalidArgument("Literal::FromBytes needs an array shape, not ", shape.ToString());
  if (shape.byte_size() != static_cast<int64_t>(bytes.size()))
    return InvalidArgument("literal of ", shape.ToString(), " takes ", shape.byte_size(), " bytes, got ", bytes.size());
  STROP_ASSIGN(Literal out, Zeros(shape));
  if (!bytes.empty()) std::memcpy(out.bytes_->data(), bytes.data(), bytes.size());
  return out;
}

Literal Literal::Tuple(std::vector<Literal> elements) {
  Literal out;
  std::vector<Shape> shapes;
  for (const Literal& e : elements) shapes.push_back(e.shape());
  out.shape_ = Shape::Tuple(std::move(shapes));
  out.elements_ = std::move(elements);
  return out;
}

Literal Literal::Token() {
  Literal out;
  out.shape_ = Shape::Token();
  return out;
}

Literal Literal::WithoutValues(Shape shape) {
  Literal out;
  out.shape_ = std::move(shape);
  return out;
}

bool Literal::has_values() const {
  if (shape_.IsTuple()) {
    for (const Literal& e : elements_)
      if (!e.has_values()) return false;
    return static_cast<int64_t>(elements_.size()) == shape_.tuple_size();
  }
  return !shape_.IsArray() || bytes_ != nullptr;
}

Literal Literal::ScalarOf(ElementType type, double value) {
  Literal out = *Zeros(Shape::Scalar(type));
  out.SetDouble(0, value);
  return out;
}

Literal Literal::ScalarOfInt(ElementType type, int64_t value) {
  Literal out = *Zeros(Shape::Scalar(type));
  out.SetInt(0, value);
  return out;
}

std::span<const uint8_t> Literal::bytes() const {
  return bytes_ ? std::span<const uint8_t>(*bytes_) : std::span<const uint8_t>();
}

std::span<uint8_t> Literal::mutable_bytes() {
  if (!bytes_) return {};
  if (bytes_.use_count() > 1) bytes_ = std::make_shared<std::vector<uint8_t>>(*bytes_);
  return *bytes_;
}

namespace {

template <class T>
T LoadAt(const uint8_t* base, int64_t i) {
  T v;
  std::memcpy(&v, base + i * sizeof(T), sizeof v);
  return v;
}
template <class T>
void StoreAt(uint8_t* base, int64_t i, T v) {
  std::memcpy(base + i * sizeof(T), &v, sizeof v);
}

// The code of an element as an unsigned number; not for complex.
uint64_t LoadCode(const uint8_t* base, int bytes, int64_t i) {
  switch (bytes) {
    case 1: return LoadAt<uint8_t>(base, i);
    case 2: return LoadAt<uint16_t>(base, i);
    case 4: return LoadAt<uint32_t>(base, i);
    default: return LoadAt<uint64_t>(base, i);
  }
}
void StoreCode(uint8_t* base, int bytes, int64_t i, uint64_t code) {
  switch (bytes) {
    case 1: return StoreAt<uint8_t>(base, i, static_cast<uint8_t>(code));
    case 2: return StoreAt<uint16_t>(base, i, static_cast<uint16_t>(code));
    case 4: return StoreAt<uint32_t>(base, i, static_cast<uint32_t>(code));
    default: return StoreAt<uint64_t>(base, i, code);
  }
}

int64_t SignExtend(uint64_t code, int bits) {
  int shift = 64 - bits;
  return static_cast<int64_t>(code << shift) >> shift;
}
uint64_t ZeroExtend(uint64_t code, int bits) { return bits == 64 ? code : code & ((uint64_t{1} << bits) - 1); }

// Sub-byte signed elements are kept sign-extended in their byte, as ml_dtypes does.
uint64_t IntegerCode(ElementType t, int64_t value) {
  if (IsSigned(t)) return static_cast<uint64_t>(SignExtend(static_cast<uint64_t>(value), Bits(t)));
  return ZeroExtend(static_cast<uint64_t>(value), Bits(t));
}

}  // namespace

double Literal::GetDouble(int64_t i) const { return GetComplex(i).real(); }
double Literal::GetImag(int64_t i) const { return GetComplex(i).imag(); }

std::complex<double> Literal::GetComplex(int64_t i) const {
  const uint8_t* base = bytes().data();
  const ElementType t = type();
  switch (Kind(t)) {
    case ElementKind::Complex:
      if (t == ElementType::C64) return {LoadAt<float>(base, 2 * i), LoadAt<float>(base, 2 * i + 1)};
      return {LoadAt<double>(base, 2 * i), LoadAt<double>(base, 2 * i + 1)};
    case ElementKind::Float: return DecodeFloat(t, ZeroExtend(LoadCode(base, Bytes(t), i), Bits(t)));
    case ElementKind::Unsigned: return static_cast<double>(static_cast<uint64_t>(GetInt(i)));
    default: return static_cast<double>(GetInt(i));
  }
}

int64_t Literal::GetInt(int64_t i) const {
  const uint8_t* base = bytes().data();
  const ElementType t = type();
  switch (Kind(t)) {
    case ElementKind::Pred: return base[i] != 0;
    case ElementKind::Signed: return SignExtend(LoadCode(base, Bytes(t), i), Bits(t));
    case ElementKind::Unsigned: return static_cast<int64_t>(ZeroExtend(LoadCode(base, Bytes(t), i), Bits(t)));
    default: {
      double v = GetDouble(i);
      if (!(v > -9.3e18)) return v != v ? 0 : INT64_MIN;
      return v < 9223372036854775808.0 ? static_cast<int64_t>(v) : INT64_MAX;
    }
  }
}

void Literal::SetDouble(int64_t i, double value) { SetComplex(i, {value, 0.0}); }

void Literal::SetComplex(int64_t i, std::complex<double> value) {
  uint8_t* base = mutable_bytes().data();
  const ElementType t = type();
  switch (Kind(t)) {
    case ElementKind::Complex:
      if (t == ElementType::C64) {
        StoreAt<float>(base, 2 * i, static_cast<float>(value.real()));
        StoreAt<float>(base, 2 * i + 1, static_cast<float>(value.imag()));
      } else {
        StoreAt<double>(base, 2 * i, value.real());
        StoreAt<double>(base, 2 * i + 1, value.imag());
      }
      return;
    case ElementKind::Float: return StoreCode(base, Bytes(t), i, EncodeFloat(t, value.real()));
    case ElementKind::Pred: base[i] = value.real() != 0; return;
    default: {
      double v = value.real();
      int64_t n = v != v                        ? 0
                  : v >= 18446744073709551616.0 ? -1
                  : v >= 9223372036854775808.0  ? static_cast<int64_t>(static_cast<uint64_t>(v))
                  : v <= -9223372036854775808.0 ? INT64_MIN
                                                : static_cast<int64_t>(v);
      SetInt(i, n);
    }
  }
}

void Literal::SetInt(int64_t i, int64_t value) {
  const ElementType t = type();
  if (IsPred(t)) {
    mutable_bytes()[i] = value != 0;
  } else if (IsInteger(t)) {
    StoreCode(mutable_bytes().data(), Bytes(t), i, IntegerCode(t, value));
  } else {
    SetDouble(i, static_cast<double>(value));
  }
}

Literal Literal::WithShape(Shape shape) const {
  STROP_CHECK(shape.type() == shape_.type() && shape.num_elements() == shape_.num_elements());
  Literal out = *this;
  out.shape_ = std::move(shape);
  return out;
}

bool Literal::operator==(const Literal& other) const {
  if (!shape_.Compatible(other.shape_) || elements_ != other.elements_) return false;
  std::span<const uint8_t> a = bytes(), b = other.bytes();
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

bool Literal::IsAllEqualTo(double value) const {
  if (!shape_.IsArray() || num_elements() == 0) return false;
  if (!AllElementsEqual()) {
    // Different codes can compare equal: 0 and -0.
    for (int64_t i = 0; i < num_elements(); ++i)
      if (GetComplex(i) != std::complex<double>(value)) return false;
    return true;
  }
  return GetComplex(0) == std::complex<double>(value);
}

bool Literal::AllElementsEqual() const {
  std::span<const uint8_t> b = bytes();
  const size_t width = Bytes(type());
  if (b.empty()) return false;
  return b.size() == width || std::memcmp(b.data(), b.data() + width, b.size() - width) == 0;
}

uint64_t Literal::Hash() const {  // FNV-1a over 8-byte words, then the tail
  uint64_t h = 0xcbf29ce484222325u ^ static_cast<uint64_t>(type());
  auto mix = [&h](uint64_t v) {
    h = (h ^ v) * 0x100000001b3u;
    h ^= h >> 29;
  };
  for (int64_t d : shape_.dims()) mix(static_cast<uint64_t>(d));
  std::span<const uint8_t> b = bytes();
  size_t i = 0;
  for (; i + 8 <= b.size(); i += 8) mix(LoadAt<uint64_t>(b.data() + i, 0));
  for (; i < b.size(); ++i) mix(b[i]);
  for (const Literal& e : elements_) mix(e.Hash());
  return h;
}

}  // namespace strop
