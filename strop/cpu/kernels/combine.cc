#include "strop/cpu/kernels/combine.h"

#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>

#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

template <CombineKind kKind, class T>
T Combine(T a, T b) {
  if constexpr (kKind == CombineKind::kReplace) return b;
  if constexpr (kKind == CombineKind::kAdd) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b));
    else
      return a + b;
  }
  if constexpr (kKind == CombineKind::kMultiply) {
    if constexpr (std::is_integral_v<T>)
      return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
      return a * b;
  }
  if constexpr (std::is_floating_point_v<T>) {
    // NaN wins; of zeros, -0 is the smaller.
    if (a != a || b != b) return a != a ? a : b;
    if constexpr (kKind == CombineKind::kMinimum) return a < b || (a == b && std::signbit(a)) ? a : b;
    if constexpr (kKind == CombineKind::kMaximum) return a > b || (a == b && !std::signbit(a)) ? a : b;
  } else {
    if constexpr (kKind == CombineKind::kMinimum) return a < b ? a : b;
    if constexpr (kKind == CombineKind::kMaximum) return a > b ? a : b;
    if constexpr (kKind == CombineKind::kAnd) return a & b;
    if constexpr (kKind == CombineKind::kOr) return a | b;
  }
  return b;
}

template <CombineKind kKind, class T>
void Native(void* a_base, int64_t a, int64_t a_stride, const void* b_base, int64_t b, int64_t b_stride, int64_t count) {
  T* to = static_cast<T*>(a_base) + a;
  const T* from = static_cast<const T*>(b_base) + b;
  for (int64_t i = 0; i < count; ++i) to[i * a_stride] = Combine<kKind, T>(to[i * a_stride], from[i * b_stride]);
}

// Floats of 16 bits and less: each step is computed in f32 and rounded.
template <CombineKind kKind, ElementType kType>
void Small(void* a_base, int64_t a, int64_t a_stride, const void* b_base, int64_t b, int64_t b_stride, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    const float x = LoadAs<float>(kType, a_base, a + i * a_stride), y = LoadAs<float>(kType, b_base, b + i * b_stride);
    StoreAs<float>(kType, a_base, a + i * a_stride, Combine<kKind, float>(x, y));
  }
}

template <CombineKind kKind, class T>
void ComplexPairs(void* a_base, int64_t a, int64_t a_stride, const void* b_base, int64_t b, int64_t b_stride,
                  int64_t count) {
  auto* to = static_cast<std::complex<T>*>(a_base) + a;
  auto* from = static_cast<const std::complex<T>*>(b_base) + b;
  for (int64_t i = 0; i < count; ++i) {
    std::complex<T>& at = to[i * a_stride];
    const std::complex<T> v = from[i * b_stride];
    if constexpr (kKind == CombineKind::kReplace)
      at = v;
    else if constexpr (kKind == CombineKind::kAdd)
      at = {at.real() + v.real(), at.imag() + v.imag()};
    else
      at = {at.real() * v.real() - at.imag() * v.imag(), at.real() * v.imag() + at.imag() * v.real()};
  }
}

template <CombineKind kKind>
CombineFn Find(ElementType type) {
  constexpr bool kBits = kKind == CombineKind::kAnd || kKind == CombineKind::kOr;
  constexpr bool kOrdered = kKind == CombineKind::kMinimum || kKind == CombineKind::kMaximum;
  switch (type) {
    case ElementType::Pred:
      return kKind == CombineKind::kMultiply || kKind == CombineKind::kAdd ? nullptr : &Native<kKind, uint8_t>;
    case ElementType::S8: return &Native<kKind, int8_t>;
    case ElementType::S16: return &Native<kKind, int16_t>;
    case ElementType::S32: return &Native<kKind, int32_t>;
    case ElementType::S64: return &Native<kKind, int64_t>;
    case ElementType::U8: return &Native<kKind, uint8_t>;
    case ElementType::U16: return &Native<kKind, uint16_t>;
    case ElementType::U32: return &Native<kKind, uint32_t>;
    case ElementType::U64: return &Native<kKind, uint64_t>;
    default: break;
  }
  if constexpr (!kBits) {
    switch (type) {
      case ElementType::F32: return &Native<kKind, float>;
      case ElementType::F64: return &Native<kKind, double>;
      case ElementType::F16: return &Small<kKind, ElementType::F16>;
      case ElementType::BF16: return &Small<kKind, ElementType::BF16>;
      default: break;
    }
    if constexpr (!kOrdered) {
      if (type == ElementType::C64) return &ComplexPairs<kKind, float>;
      if (type == ElementType::C128) return &ComplexPairs<kKind, double>;
    }
    if constexpr (kKind == CombineKind::kReplace) {
      if (Bytes(type) == 1) return &Native<kKind, uint8_t>;  // f8, f4, s4, ...
    }
  }
  return nullptr;
}

}  // namespace

CombineFn FindCombine(ElementType type, CombineKind kind) {
  switch (kind) {
    case CombineKind::kReplace: return Find<CombineKind::kReplace>(type);
    case CombineKind::kAdd: return Find<CombineKind::kAdd>(type);
    case CombineKind::kMultiply: return Find<CombineKind::kMultiply>(type);
    case CombineKind::kMinimum: return Find<CombineKind::kMinimum>(type);
    case CombineKind::kMaximum: return Find<CombineKind::kMaximum>(type);
    case CombineKind::kAnd: return Find<CombineKind::kAnd>(type);
    case CombineKind::kOr: return Find<CombineKind::kOr>(type);
  }
  return nullptr;
}

}  // namespace strop::cpu
