// Literal -> the text of an HLO constant.
//
// Numbers: f32 and f64 take the digits that every value of the type survives being printed with (6, 15) if this one
// reads back from them, and else as many as any value needs (9, 17); the small floats always take the latter. %g style.
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "strop/types/literal.h"

namespace strop {
namespace {

void AppendGeneral(std::string& out, double v, int digits) {
  char buf[64];
  auto r = std::to_chars(buf, buf + sizeof buf, v, std::chars_format::general, digits);
  out.append(buf, r.ptr);
}

// Digits that tell every value of the format apart: ceil(1 + bits of the significand * log10(2)).
int DigitsNeeded(ElementType t) {
  return static_cast<int>(std::ceil(1 + (FormatOf(t).mantissa_bits + 1) * 0.30102999566398120));
}

// "nan" or "-nan", and "(0x7)" where the bits below the quiet bit, or the quiet bit itself, are not those of the usual
// NaN.
void AppendNan(std::string& out, ElementType t, uint64_t code) {
  const FloatFormat& f = FormatOf(t);
  out += f.has_sign && f.has_negative_zero && ((code >> (f.bits - 1)) & 1) ? "-nan" : "nan";
  if (!f.has_infinity || f.mantissa_bits < 1) return;  // one NaN code only
  const uint64_t payload = code & ((uint64_t{1} << f.mantissa_bits) - 1);
  if (payload == uint64_t{1} << (f.mantissa_bits - 1)) return;
  char buf[20];
  auto r = std::to_chars(buf, buf + sizeof buf, payload, 16);
  StrAppend(out, "(0x", std::string_view(buf, r.ptr - buf), ")");
}

void AppendFloat(std::string& out, float v) {
  if (std::isnan(v)) return AppendNan(out, ElementType::F32, std::bit_cast<uint32_t>(v));
  const size_t start = out.size();
  AppendGeneral(out, v, 6);
  float back = 0;
  std::from_chars(out.data() + start, out.data() + out.size(), back);
  if (back == v) return;
  out.resize(start);
  AppendGeneral(out, v, 9);
}

void AppendDouble(std::string& out, double v) {
  if (std::isnan(v)) return AppendNan(out, ElementType::F64, std::bit_cast<uint64_t>(v));
  const size_t start = out.size();
  AppendGeneral(out, v, 15);
  double back = 0;
  std::from_chars(out.data() + start, out.data() + out.size(), back);
  if (back == v) return;
  out.resize(start);
  AppendGeneral(out, v, 17);
}

template <class T>
T Load(const Literal& literal, int64_t i) {
  T v;
  std::memcpy(&v, literal.bytes().data() + i * sizeof(T), sizeof(T));
  return v;
}

void AppendSmallFloat(std::string& out, const Literal& literal, int64_t i) {
  const ElementType t = literal.type();
  const uint64_t mask = (uint64_t{1} << Bits(t)) - 1;
  const uint64_t code = (Bytes(t) == 1 ? Load<uint8_t>(literal, i) : Load<uint16_t>(literal, i)) & mask;
  const double v = DecodeFloat(t, code);
  if (std::isnan(v)) return AppendNan(out, t, code);
  AppendGeneral(out, v, DigitsNeeded(t));
}

void AppendElement(std::string& out, const Literal& literal, int64_t i) {
  switch (literal.type()) {
    case ElementType::F32: return AppendFloat(out, Load<float>(literal, i));
    case ElementType::F64: return AppendDouble(out, Load<double>(literal, i));
    case ElementType::C64:
      out += '(';
      AppendFloat(out, Load<float>(literal, 2 * i));
      out += ", ";
      AppendFloat(out, Load<float>(literal, 2 * i + 1));
      out += ')';
      return;
    case ElementType::C128:
      out += '(';
      AppendDouble(out, Load<double>(literal, 2 * i));
      out += ", ";
      AppendDouble(out, Load<double>(literal, 2 * i + 1));
      out += ')';
      return;
    case ElementType::S32: return StrAppend(out, Load<int32_t>(literal, i));
    case ElementType::S64: return StrAppend(out, Load<int64_t>(literal, i));
    default: break;
  }
  switch (Kind(literal.type())) {
    case ElementKind::Pred: return StrAppend(out, literal.GetInt(i) != 0);
    case ElementKind::Signed: return StrAppend(out, literal.GetInt(i));
    case ElementKind::Unsigned: return StrAppend(out, static_cast<uint64_t>(literal.GetInt(i)));
    case ElementKind::Float: return AppendSmallFloat(out, literal, i);
    default: out += '?';
  }
}

// One array, dimension by dimension. Braces hug the elements of a vector; in higher ranks they stand apart, and beyond
// three dimensions each inner array says its index, for the reader ("{ /*i0=1*/ ").
class ArrayText {
 public:
  ArrayText(const Literal& literal, std::string& out) : literal_(literal), rank_(literal.shape().rank()), out_(out) {}

  void Append(int64_t dim, int64_t index) {
    const int64_t size = literal_.shape().dim(dim);
    const bool innermost = dim + 1 == rank_;
    const std::string_view gap = rank_ == 1 || (innermost && size <= 1) ? "" : " ";
    StrAppend(out_, "{");
    if (!innermost && rank_ > 3 && dim > 0)
      StrAppend(out_, " /*i", dim - 1, "=", index, "*/", size > 0 ? " " : "");
    else
      out_ += gap;
    for (int64_t i = 0; i < size; ++i) {
      if (i) out_ += ", ";
      if (!innermost)
        Append(dim + 1, i);
      else if (literal_.type() == ElementType::Pred)
        out_ += literal_.GetInt(next_++) ? '1' : '0';
      else
        AppendElement(out_, literal_, next_++);
    }
    StrAppend(out_, gap, "}");
  }

 private:
  const Literal& literal_;
  const int64_t rank_;
  std::string& out_;
  int64_t next_ = 0;
};

}  // namespace

std::string ElementToString(const Literal& literal, int64_t i) {
  std::string out;
  AppendElement(out, literal, i);
  return out;
}

void Literal::AppendText(std::string& out) const {
  if (shape_.IsTuple()) {
    out += "( ";
    for (size_t i = 0; i < elements_.size(); ++i) {
      if (i) out += ", ";
      elements_[i].AppendText(out);
    }
    out += " )";
  } else if (!shape_.IsArray()) {
    out += Name(type());
  } else if (shape_.rank() == 0) {
    AppendElement(out, *this, 0);
  } else {
    ArrayText(*this, out).Append(0, 0);
  }
}

std::string Literal::ToString() const {
  std::string out;
  AppendText(out);
  return out;
}

}  // namespace strop
