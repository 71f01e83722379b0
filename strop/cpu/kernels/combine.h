// accumulator[i] = accumulator[i] combined with value[j], for element types known at run time: one typed function,
// chosen once.
#pragma once
#include "strop/cpu/kernels/scatter.h"

namespace strop::cpu {

// Combines `count` neighbours: a[i * a_stride] with b[i * b_stride] (strides in elements), from element offsets `a` and
// `b`.
using CombineFn = void (*)(void* a_base, int64_t a, int64_t a_stride, const void* b_base, int64_t b, int64_t b_stride,
                           int64_t count);
// Null if the type has no such combination.
CombineFn FindCombine(ElementType type, CombineKind kind);

}  // namespace strop::cpu
