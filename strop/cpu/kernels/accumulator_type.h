// The C++ types in which products are summed (float, double, s32, s64): their inner loops.
// Not for the files of one instruction set: these templates must be compiled for every processor.
#pragma once
#include <cstdint>
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/types/literal.h"

namespace strop::cpu {

// Types that fit into s16, in which pairs are multiplied.
inline bool IsSmallInteger(ElementType type) {
  switch (type) {
    case ElementType::Pred:
    case ElementType::S2:
    case ElementType::S4:
    case ElementType::S8:
    case ElementType::S16:
    case ElementType::U2:
    case ElementType::U4:
    case ElementType::U8: return true;
    default: return false;
  }
}

// The inner loops for products of these types, summed in T.
template <class T>
const MicroTable<T>& MicroOf(const GemmIsa& isa, ElementType a = ElementTypeOf<T>(),
                             ElementType b = ElementTypeOf<T>()) {
  if constexpr (std::is_same_v<T, float>)
    return isa.f32;
  else if constexpr (std::is_same_v<T, double>)
    return isa.f64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return IsSmallInteger(a) && IsSmallInteger(b) ? isa.s16 : isa.s32;
  else
    return isa.s64;
}

// Those that multiply four bytes at a time; null: there are none for these types.
inline const MicroTable<int32_t>* MicroOfBytes(const GemmIsa& isa, PackSource a, PackSource b) {
  const auto is_byte = [](PackSource source) { return source == PackSource::S8 || source == PackSource::U8; };
  if (!is_byte(a) || !is_byte(b)) return nullptr;
  const MicroTable<int32_t>& micro = isa.bytes[a == PackSource::U8][b == PackSource::U8];
  return micro.mr > 0 ? &micro : nullptr;
}

}  // namespace strop::cpu
