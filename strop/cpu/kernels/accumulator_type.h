// The C++ types in which products are summed (float, double, s32, s64): their element type and their inner loops.
// Not for the files of one instruction set: these templates must be compiled for every processor.
#pragma once
#include <cstdint>
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

template <class T>
const MicroTable<T>& MicroOf() {
  const GemmIsa& isa = BestGemmIsa();
  if constexpr (std::is_same_v<T, float>)
    return isa.f32;
  else if constexpr (std::is_same_v<T, double>)
    return isa.f64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return isa.s32;
  else
    return isa.s64;
}

template <class T>
constexpr ElementType TypeOf() {
  if constexpr (std::is_same_v<T, float>)
    return ElementType::F32;
  else if constexpr (std::is_same_v<T, double>)
    return ElementType::F64;
  else if constexpr (std::is_same_v<T, int32_t>)
    return ElementType::S32;
  else
    return ElementType::S64;
}

}  // namespace strop::cpu
