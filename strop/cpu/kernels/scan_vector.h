// ScanVector: the scan of the lanes of one vector, in log2(lanes) steps: each combines every lane with the one 1, 2, 4,
// ... lanes before it (Hillis and Steele, "Data Parallel Algorithms", 1986).
//
//   a b c d -> a ab bc cd -> a ab abc abcd
//
// An element of kParts lanes, a complex number, is combined part by part: the lanes before it are then 2, 4, ... away.
//
// A vector has 32 bytes on every processor (the compiler splits it where registers are shorter): the order in which
// elements are combined, and so the bits, do not depend on the instruction set.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "strop/cpu/kernels/combine.h"

namespace strop::cpu {

// Vectors are passed by reference: by value they would need AVX in functions that are compiled for the baseline as
// well.
template <CombineKind kKind, class T, bool kReverse, int kParts = 1>
struct ScanVector {
  static constexpr bool kFloat = std::is_floating_point_v<T>;
  static constexpr int kLanes = 32 / sizeof(T);
  using Wrapping = std::make_unsigned<std::conditional_t<kFloat, int, T>>;
  // Sums and products of integers wrap.
  using Lane = std::conditional_t<!kFloat && (kKind == CombineKind::kAdd || kKind == CombineKind::kMultiply),
                                  typename Wrapping::type, T>;
  using Bits = std::conditional_t<sizeof(T) == 8, int64_t, int32_t>;  // of floats
  typedef Lane Vec __attribute__((vector_size(32)));
  typedef Bits Pattern __attribute__((vector_size(32)));

  static inline void Fill(T value, Vec& out) {
    for (int l = 0; l < kLanes; ++l) out[l] = static_cast<Lane>(value);
  }
  // The element whose parts these are in all lanes.
  static inline void FillParts(const T (&parts)[kParts], Vec& out) {
    if constexpr (kParts == 1) return Fill(parts[0], out);
    for (int l = 0; l < kLanes; ++l) out[l] = static_cast<Lane>(parts[l % kParts]);
  }

  static inline void Combined(const Vec& a, const Vec& b, Vec& out) {
    if constexpr (kKind == CombineKind::kAdd) out = a + b;
    if constexpr (kKind == CombineKind::kMultiply) out = a * b;
    if constexpr (kKind == CombineKind::kAnd) out = a & b;
    if constexpr (kKind == CombineKind::kOr) out = a | b;
    if constexpr (kKind == CombineKind::kMinimum || kKind == CombineKind::kMaximum) {
      constexpr bool kMin = kKind == CombineKind::kMinimum;
      Vec chosen = kMin ? (a < b ? a : b) : (a > b ? a : b);
      if constexpr (kFloat) {
        // As in combine.h, NaN wins, and of zeros -0 is the smaller: choices made both ways differ there alone, and the
        // bits of both together are NaN, or -0.
        const Pattern one = (Pattern)chosen, other = (Pattern)(kMin ? (b < a ? b : a) : (b > a ? b : a));
        constexpr Bits kMagnitude = std::numeric_limits<Bits>::max();
        chosen = (Vec)(kMin ? one | other : (one & other) | ((one | other) & kMagnitude));
      }
      out = chosen;
    }
  }

  // The same, and of NaNs the first, as combine.h has it.
  static inline void CombinedInOrder(const Vec& a, const Vec& b, Vec& out) {
    constexpr bool kExtreme = kKind == CombineKind::kMinimum || kKind == CombineKind::kMaximum;
    Vec chosen;
    Combined(a, b, chosen);
    if constexpr (kFloat && kExtreme) chosen = a != a ? a : (b != b ? b : chosen);
    out = chosen;
  }

  // Every lane combined with those before it.
  static inline void Inside(Vec& v) { Steps(v, std::make_integer_sequence<int, kLanes>()); }
  // The last element in all of them.
  static inline void Last(const Vec& v, Vec& out) { Spread(v, out, std::make_integer_sequence<int, kLanes>()); }

 private:
  template <int... kLane>
  static inline void Spread(const Vec& v, Vec& out, std::integer_sequence<int, kLane...>) {
    out = __builtin_shufflevector(v, v, ((kReverse ? 0 : kLanes - kParts) + kLane % kParts)...);
  }

  static constexpr int From(int lane, int by) {
    const int before = kReverse ? lane + by : lane - by;
    return before >= 0 && before < kLanes ? before : kLanes + lane;
  }
  template <int kBy, int... kLane>
  static inline void Step(Vec& v, const Vec& beyond, std::integer_sequence<int, kLane...>) {
    const Vec before = __builtin_shufflevector(v, beyond, From(kLane, kBy)...);
    Combined(before, v, v);
  }
  template <int... kLane>
  static inline void Steps(Vec& v, std::integer_sequence<int, kLane...> lanes) {
    Vec beyond;  // combined with lanes that have none so far before them; an extreme, and, or is unmoved by itself
    Fill(kKind == CombineKind::kMultiply ? T{1} : kFloat ? static_cast<T>(-0.0) : T{0}, beyond);
    const auto neutral = [&]() -> const Vec& {
      return kKind == CombineKind::kAdd || kKind == CombineKind::kMultiply ? beyond : v;
    };
    if constexpr (kParts == 1) Step<1>(v, neutral(), lanes);
    if constexpr (kLanes > 2) Step<2>(v, neutral(), lanes);
    if constexpr (kLanes > 4) Step<4>(v, neutral(), lanes);
    if constexpr (kLanes > 8) Step<8>(v, neutral(), lanes);
    if constexpr (kLanes > 16) Step<16>(v, neutral(), lanes);
  }
};

}  // namespace strop::cpu
