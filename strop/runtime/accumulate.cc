// Elementwise reductions of collectives for every element type.
#include <cmath>
#include <complex>
#include <type_traits>

#include "strop/runtime/collectives.h"

namespace strop {
namespace {

template <class T>
T Combine(ReductionKind kind, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;  // wraps instead of overflowing; wide enough that no promotion interferes
    switch (kind) {
      case ReductionKind::kSum: return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
      case ReductionKind::kProduct: return static_cast<T>(uint64_t{static_cast<U>(a)} * uint64_t{static_cast<U>(b)});
      case ReductionKind::kMin: return a < b ? a : b;
      case ReductionKind::kMax: return a > b ? a : b;
      case ReductionKind::kAnd: return a & b;
      case ReductionKind::kOr: return a | b;
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    switch (kind) {
      case ReductionKind::kSum: return a + b;
      case ReductionKind::kProduct: return a * b;
      case ReductionKind::kMin: return a < b || std::isnan(a) ? a : b;  // NaN wins
      case ReductionKind::kMax: return a > b || std::isnan(a) ? a : b;
      default: break;
    }
  } else {
    switch (kind) {
      case ReductionKind::kSum: return a + b;
      case ReductionKind::kProduct:
        return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
      default: break;
    }
  }
  return a;
}

template <class T>
void Loop(ReductionKind kind, int64_t count, void* accumulator, const void* value) {
  T* a = static_cast<T*>(accumulator);
  const T* b = static_cast<const T*>(value);
  for (int64_t i = 0; i < count; ++i) a[i] = Combine(kind, a[i], b[i]);
}

// Formats of 16 bits or less: computed in double, rounded to the format after every step.
template <class Code>
void SmallFloatLoop(ElementType type, ReductionKind kind, int64_t count, void* accumulator, const void* value) {
  Code* a = static_cast<Code*>(accumulator);
  const Code* b = static_cast<const Code*>(value);
  for (int64_t i = 0; i < count; ++i) {
    double result = Combine(kind, DecodeFloat(type, a[i]), DecodeFloat(type, b[i]));
    a[i] = static_cast<Code>(EncodeFloat(type, result));
  }
}

// Types of less than 8 bits, one per byte, the value extended to the byte.
void SubByteLoop(ElementType type, ReductionKind kind, int64_t count, void* accumulator, const void* value) {
  int8_t* a = static_cast<int8_t*>(accumulator);
  const int8_t* b = static_cast<const int8_t*>(value);
  int unused = 8 - Bits(type);
  for (int64_t i = 0; i < count; ++i) {
    uint8_t raw = static_cast<uint8_t>(Combine<int8_t>(kind, a[i], b[i]) << unused);
    a[i] =
        IsSigned(type) ? static_cast<int8_t>(static_cast<int8_t>(raw) >> unused) : static_cast<int8_t>(raw >> unused);
  }
}

void PredLoop(ReductionKind kind, int64_t count, void* accumulator, const void* value) {
  uint8_t* a = static_cast<uint8_t*>(accumulator);
  const uint8_t* b = static_cast<const uint8_t*>(value);
  bool conjunction = kind == ReductionKind::kAnd || kind == ReductionKind::kMin || kind == ReductionKind::kProduct;
  for (int64_t i = 0; i < count; ++i) a[i] = conjunction ? (a[i] && b[i]) : (a[i] || b[i]);
}

}  // namespace

Status Accumulate(ElementType type, ReductionKind kind, int64_t count, void* accumulator, const void* value) {
  bool bitwise = kind == ReductionKind::kAnd || kind == ReductionKind::kOr;
  bool ordered = kind == ReductionKind::kMin || kind == ReductionKind::kMax;
  if ((IsFloat(type) && bitwise) || (IsComplex(type) && (bitwise || ordered)) || !IsArrayType(type)) {
    return Unimplemented("collective reduction: kind ", kind, " is not defined for ", Name(type));
  }
  switch (type) {
    case ElementType::Pred: PredLoop(kind, count, accumulator, value); return OkStatus();
    case ElementType::S8: Loop<int8_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::S16: Loop<int16_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::S32: Loop<int32_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::S64: Loop<int64_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::U8: Loop<uint8_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::U16: Loop<uint16_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::U32: Loop<uint32_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::U64: Loop<uint64_t>(kind, count, accumulator, value); return OkStatus();
    case ElementType::F32: Loop<float>(kind, count, accumulator, value); return OkStatus();
    case ElementType::F64: Loop<double>(kind, count, accumulator, value); return OkStatus();
    case ElementType::C64: Loop<std::complex<float>>(kind, count, accumulator, value); return OkStatus();
    case ElementType::C128: Loop<std::complex<double>>(kind, count, accumulator, value); return OkStatus();
    default: break;
  }
  if (IsInteger(type))
    SubByteLoop(type, kind, count, accumulator, value);
  else if (Bytes(type) == 2)
    SmallFloatLoop<uint16_t>(type, kind, count, accumulator, value);
  else
    SmallFloatLoop<uint8_t>(type, kind, count, accumulator, value);
  return OkStatus();
}

}  // namespace strop
