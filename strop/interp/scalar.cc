// Domains, normalisation, and the way between bytes and cells.
#include "strop/interp/scalar.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace strop::interp {

namespace {

int64_t SignExtend(uint64_t v, int bits) { return static_cast<int64_t>(v << (64 - bits)) >> (64 - bits); }
uint64_t ZeroExtend(uint64_t v, int bits) { return bits == 64 ? v : v & ((uint64_t{1} << bits) - 1); }

// The code of `value` in a format of 16 bits or fewer, if value and result are well inside its normal range; found on
// the bits of the double: rounds the mantissa to nearest even, a carry goes into the exponent. EncodeFloat knows the
// rest.
bool EncodeNormal(const FloatFormat& f, double value, uint64_t* code) {
  const uint64_t bits = std::bit_cast<uint64_t>(value);
  const int64_t exponent = static_cast<int64_t>(bits >> 52 & 0x7FF) - 1023 + f.bias;
  if (exponent < 1 || exponent > (1 << f.exponent_bits) - 3 || !f.has_sign) return false;
  const int drop = 52 - f.mantissa_bits;
  const uint64_t magnitude = static_cast<uint64_t>(exponent) << 52 | (bits & ((uint64_t{1} << 52) - 1));
  const uint64_t half = (uint64_t{1} << (drop - 1)) - 1 + (magnitude >> drop & 1);
  *code = (magnitude + half) >> drop | (bits >> 63) << (f.bits - 1);
  return true;
}
uint64_t Encode(ElementType t, const FloatFormat& f, double value) {
  uint64_t code;
  return EncodeNormal(f, value, &code) ? code : EncodeFloat(t, value);
}

// Decoding tables of the formats with at most 16 bits; filled once, on first use, with DecodeFloat.
const double* DecodeTable(ElementType t) {
  struct Tables {
    std::vector<double> of[kNumElementTypes];
    Tables() {
      for (int i = 0; i < kNumElementTypes; ++i) {
        ElementType type = static_cast<ElementType>(i);
        if (!IsArrayType(type) || !IsFloat(type) || Bits(type) > 16) continue;
        of[i].resize(size_t{1} << (8 * Bytes(type)));
        for (size_t code = 0; code < of[i].size(); ++code)
          of[i][code] = DecodeFloat(type, ZeroExtend(code, Bits(type)));
      }
    }
  };
  static const Tables tables;
  return tables.of[static_cast<int>(t)].data();
}

template <class T>
T Read(const uint8_t* bytes, int64_t i) {
  T v;
  std::memcpy(&v, bytes + i * static_cast<int64_t>(sizeof(T)), sizeof v);
  return v;
}
template <class T>
void Write(uint8_t* bytes, int64_t i, T v) {
  std::memcpy(bytes + i * static_cast<int64_t>(sizeof(T)), &v, sizeof v);
}

// Calls f(get) where get(i) is element i of the array, in the host type of t's domain.
template <class F>
void WithReader(ElementType t, const uint8_t* bytes, F&& f) {
  const int bits = Bits(t);
  switch (Kind(t)) {
    case ElementKind::Pred: return f([=](int64_t i) { return uint64_t{bytes[i] != 0}; });
    case ElementKind::Signed:
      switch (Bytes(t)) {
        case 1: return f([=](int64_t i) { return SignExtend(bytes[i], bits); });
        case 2: return f([=](int64_t i) { return int64_t{Read<int16_t>(bytes, i)}; });
        case 4: return f([=](int64_t i) { return int64_t{Read<int32_t>(bytes, i)}; });
        default: return f([=](int64_t i) { return Read<int64_t>(bytes, i); });
      }
    case ElementKind::Unsigned:
      switch (Bytes(t)) {
        case 1: return f([=](int64_t i) { return ZeroExtend(bytes[i], bits); });
        case 2: return f([=](int64_t i) { return uint64_t{Read<uint16_t>(bytes, i)}; });
        case 4: return f([=](int64_t i) { return uint64_t{Read<uint32_t>(bytes, i)}; });
        default: return f([=](int64_t i) { return Read<uint64_t>(bytes, i); });
      }
    case ElementKind::Float: {
      if (t == ElementType::F32) return f([=](int64_t i) { return double{Read<float>(bytes, i)}; });
      if (t == ElementType::F64) return f([=](int64_t i) { return Read<double>(bytes, i); });
      const double* table = DecodeTable(t);
      if (Bytes(t) == 1) return f([=](int64_t i) { return table[bytes[i]]; });
      return f([=](int64_t i) { return table[Read<uint16_t>(bytes, i)]; });
    }
    case ElementKind::Complex:
      if (t == ElementType::C64)
        return f(
            [=](int64_t i) { return std::complex<double>(Read<float>(bytes, 2 * i), Read<float>(bytes, 2 * i + 1)); });
      return f(
          [=](int64_t i) { return std::complex<double>(Read<double>(bytes, 2 * i), Read<double>(bytes, 2 * i + 1)); });
    default: return;
  }
}

Cell ToCell(int64_t v) { return Cell::Int(v); }
Cell ToCell(uint64_t v) { return Cell::Uint(v); }
Cell ToCell(double v) { return Cell::Real(v); }
Cell ToCell(std::complex<double> v) { return Cell::Complex(v); }

template <class T>
double RealOf(T v) {
  if constexpr (std::is_same_v<T, std::complex<double>>)
    return v.real();
  else
    return static_cast<double>(v);
}

void StoreSmallFloats(ElementType t, const Cell* cells, int64_t count, uint8_t* bytes, int64_t begin) {
  const FloatFormat& f = FormatOf(t);
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t code = Encode(t, f, cells[i].re);
    if (Bytes(t) == 1)
      bytes[begin + i] = static_cast<uint8_t>(code);
    else
      Write(bytes, begin + i, static_cast<uint16_t>(code));
  }
}

}  // namespace

Cell Normalize(ElementType t, Cell c) {
  switch (t) {
    case ElementType::F32: c.re = static_cast<float>(c.re); return c;
    case ElementType::F64:
    case ElementType::C128:
    case ElementType::S64:
    case ElementType::U64: return c;
    case ElementType::S32: c.i = static_cast<int32_t>(c.u); return c;
    case ElementType::U32: c.u = static_cast<uint32_t>(c.u); return c;
    case ElementType::C64:
      c.re = static_cast<float>(c.re);
      c.im = static_cast<float>(c.im);
      return c;
    default: break;
  }
  switch (Kind(t)) {
    case ElementKind::Pred: c.u = c.u != 0; return c;
    case ElementKind::Signed: c.i = SignExtend(c.u, Bits(t)); return c;
    case ElementKind::Unsigned: c.u = ZeroExtend(c.u, Bits(t)); return c;
    case ElementKind::Float: c.re = DecodeTable(t)[Encode(t, FormatOf(t), c.re)]; return c;
    default: return c;
  }
}

void LoadCells(ElementType t, const uint8_t* bytes, int64_t begin, int64_t count, Cell* out) {
  WithReader(t, bytes, [&](auto get) {
    for (int64_t i = 0; i < count; ++i) out[i] = ToCell(get(begin + i));
  });
}

void StoreCells(ElementType t, const Cell* cells, int64_t count, uint8_t* bytes, int64_t begin) {
  auto each = [&](auto put) {
    for (int64_t i = 0; i < count; ++i) put(begin + i, cells[i]);
  };
  const int bits = Bits(t);
  switch (Kind(t)) {
    case ElementKind::Pred: return each([=](int64_t i, Cell c) { bytes[i] = c.u != 0; });
    case ElementKind::Signed:
    case ElementKind::Unsigned:
      if (bits < 8) {
        const bool is_signed = IsSigned(t);
        return each([=](int64_t i, Cell c) {
          bytes[i] =
              static_cast<uint8_t>(is_signed ? static_cast<uint64_t>(SignExtend(c.u, bits)) : ZeroExtend(c.u, bits));
        });
      }
      switch (bits) {
        case 8: return each([=](int64_t i, Cell c) { bytes[i] = static_cast<uint8_t>(c.u); });
        case 16: return each([=](int64_t i, Cell c) { Write(bytes, i, static_cast<uint16_t>(c.u)); });
        case 32: return each([=](int64_t i, Cell c) { Write(bytes, i, static_cast<uint32_t>(c.u)); });
        default: return each([=](int64_t i, Cell c) { Write(bytes, i, c.u); });
      }
    case ElementKind::Float:
      if (t == ElementType::F32) return each([=](int64_t i, Cell c) { Write(bytes, i, static_cast<float>(c.re)); });
      if (t == ElementType::F64) return each([=](int64_t i, Cell c) { Write(bytes, i, c.re); });
      return StoreSmallFloats(t, cells, count, bytes, begin);
    case ElementKind::Complex:
      if (t == ElementType::C64)
        return each([=](int64_t i, Cell c) {
          Write(bytes, 2 * i, static_cast<float>(c.re));
          Write(bytes, 2 * i + 1, static_cast<float>(c.im));
        });
      return each([=](int64_t i, Cell c) {
        Write(bytes, 2 * i, c.re);
        Write(bytes, 2 * i + 1, c.im);
      });
    default: return;
  }
}

Cell LoadCell(const Literal& literal, int64_t linear) {
  Cell c;
  LoadCells(literal.type(), literal.bytes().data(), linear, 1, &c);
  return c;
}

std::vector<Cell> LoadAll(const Literal& literal) {
  std::vector<Cell> out(literal.num_elements());
  LoadCells(literal.type(), literal.bytes().data(), 0, static_cast<int64_t>(out.size()), out.data());
  return out;
}

std::vector<double> LoadReals(const Literal& literal) {
  std::vector<double> out(literal.num_elements());
  WithReader(literal.type(), literal.bytes().data(), [&](auto get) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = RealOf(get(static_cast<int64_t>(i)));
  });
  return out;
}

std::vector<int64_t> LoadInts(const Literal& literal) {
  std::vector<int64_t> out(literal.num_elements());
  WithReader(literal.type(), literal.bytes().data(), [&](auto get) {
    for (size_t i = 0; i < out.size(); ++i) {
      auto v = get(static_cast<int64_t>(i));
      if constexpr (std::is_integral_v<decltype(v)>) out[i] = static_cast<int64_t>(v);
    }
  });
  return out;
}

std::vector<std::complex<double>> LoadComplexes(const Literal& literal) {
  std::vector<std::complex<double>> out(literal.num_elements());
  WithReader(literal.type(), literal.bytes().data(), [&](auto get) {
    for (size_t i = 0; i < out.size(); ++i) {
      auto v = get(static_cast<int64_t>(i));
      if constexpr (std::is_same_v<decltype(v), std::complex<double>>)
        out[i] = v;
      else
        out[i] = static_cast<double>(v);
    }
  });
  return out;
}

// ---- comparison
// -------------------------------------------------------------------------------------------------------

int64_t TotalOrderKey(double v) {
  int64_t bits = std::bit_cast<int64_t>(v);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

double Maximum(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double Minimum(double a, double b) {
  if (std::isnan(a)) return a;
  if (std::isnan(b)) return b;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

namespace {

template <class T>
bool CompareAs(CompareDirection direction, T a, T b) {
  switch (direction) {
    case CompareDirection::Eq: return a == b;
    case CompareDirection::Ne: return a != b;
    case CompareDirection::Ge: return a >= b;
    case CompareDirection::Gt: return a > b;
    case CompareDirection::Le: return a <= b;
    case CompareDirection::Lt: return a < b;
  }
  return false;
}

// Eq and Ne by parts; the orders are lexicographic, as StableHLO has them.
bool CompareComplex(CompareDirection direction, Cell a, Cell b) {
  if (direction == CompareDirection::Eq) return a.re == b.re && a.im == b.im;
  if (direction == CompareDirection::Ne) return !(a.re == b.re && a.im == b.im);
  return a.re == b.re ? CompareAs(direction, a.im, b.im) : CompareAs(direction, a.re, b.re);
}

}  // namespace

bool CompareCells(Domain domain, CompareDirection direction, CompareOrder order, Cell a, Cell b) {
  switch (domain) {
    case Domain::Int: return CompareAs(direction, a.i, b.i);
    case Domain::Bool:
    case Domain::Uint: return CompareAs(direction, a.u, b.u);
    case Domain::Real:
      if (order == CompareOrder::TotalOrder) return CompareAs(direction, TotalOrderKey(a.re), TotalOrderKey(b.re));
      return CompareAs(direction, a.re, b.re);
    case Domain::Complex: return CompareComplex(direction, a, b);
  }
  return false;
}

// ---- choosing the function
// --------------------------------------------------------------------------------------------

namespace {

template <Domain D>
Cell CompareFn(Cell a, Cell b, Cell, const ScalarInfo& info) {
  return Cell::Bool(CompareCells(D, info.direction, info.order, a, b));
}
Cell SelectFn(Cell a, Cell b, Cell c, const ScalarInfo&) { return a.u ? b : c; }
Cell IdentityFn(Cell a, Cell, Cell, const ScalarInfo&) { return a; }

ScalarFn CompareFunction(Domain domain) {
  switch (domain) {
    case Domain::Bool: return CompareFn<Domain::Bool>;
    case Domain::Int: return CompareFn<Domain::Int>;
    case Domain::Uint: return CompareFn<Domain::Uint>;
    case Domain::Real: return CompareFn<Domain::Real>;
    case Domain::Complex: return CompareFn<Domain::Complex>;
  }
  return nullptr;
}

ScalarFn FunctionOf(Op op, ElementType operand, ElementType result) {
  const Domain domain = DomainOf(operand);
  switch (op) {
    case Op::Compare: return CompareFunction(domain);
    case Op::Select: return SelectFn;
    case Op::Convert: return ConvertFunction(operand, result);
    case Op::ReducePrecision: return domain == Domain::Real ? ReducePrecisionFunction() : nullptr;
    case Op::StochasticConvert: return domain == Domain::Real ? StochasticConvertFunction() : nullptr;
    case Op::Copy: return IdentityFn;
    default: break;
  }
  switch (domain) {
    case Domain::Bool: return BoolFunction(op);
    case Domain::Int: return IntFunction(op);
    case Domain::Uint: return UintFunction(op);
    case Domain::Real: return RealFunction(op);
    case Domain::Complex: return ComplexFunction(op);
  }
  return nullptr;
}

}  // namespace

Result<ScalarOp> MakeScalarOp(Op op, ElementType operand, ElementType result, const Attrs& attrs) {
  ScalarOp out;
  if (IsArrayType(operand) && IsArrayType(result)) out.fn = FunctionOf(op, operand, result);
  if (!out.fn) return Unimplemented(Name(op), " has no meaning for elements of type ", Name(operand));
  out.info.operand = operand;
  out.info.result = result;
  out.info.bits = Bits(operand);
  if (const auto* compare = attrs.get_if<CompareAttrs>()) {
    out.info.direction = compare->direction;
    out.info.order = compare->order;
  } else if (const auto* reduce = attrs.get_if<ReducePrecisionAttrs>()) {
    out.info.exponent_bits = static_cast<int>(reduce->exponent_bits);
    out.info.mantissa_bits = static_cast<int>(reduce->mantissa_bits);
  }
  return out;
}

}  // namespace strop::interp
