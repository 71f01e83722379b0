// How two elements become one in scans.
#pragma once
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace strop::cpu {

enum class CombineKind : uint8_t { kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr };

// a combined with b, for native integers and floats.
template <CombineKind kKind, class T>
inline T Combine(T a, T b) {
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

}  // namespace strop::cpu
