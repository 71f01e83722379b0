// What the tests of GEMM share: matrices with exact products, and how they lie.
#pragma once
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/testing/isas.h"
#include "strop/types/literal.h"

namespace strop::cpu {

inline Literal RandomMatrix(ElementType type, int64_t batch, int64_t rows, int64_t cols, std::mt19937& rng) {
  Literal l = *Literal::Zeros(Shape::Array(type, {batch, rows, cols}));
  for (int64_t i = 0; i < l.num_elements(); ++i) {
    double v = static_cast<int>(rng() % 17) - 8;  // small integers: exact in every type and order
    if (IsUnsigned(type) || IsPred(type)) v = std::fabs(v);
    if (IsPred(type)) v = rng() % 2;
    // The ends of the range, which saturating instructions get wrong.
    if (type == ElementType::S8 && rng() % 2) v = rng() % 4 ? -128 : 127;
    if (type == ElementType::U8 && rng() % 2) v = 255;
    if (type == ElementType::S16 && rng() % 2) v = rng() % 2 ? -3000 : 3000;
    l.SetComplex(i, {v, IsComplex(type) ? static_cast<double>(rng() % 5) - 2 : 0.0});
  }
  return l;
}

inline StridedMatrix Strides(ElementType type, int64_t rows, int64_t cols, bool transposed, int64_t heads = 0) {
  if (heads > 0 && transposed) return {type, 1, heads * rows, rows, heads * rows * cols};
  if (heads > 0) return {type, heads * cols, 1, cols, heads * rows * cols};
  if (transposed) return {type, 1, rows, rows * cols};
  return {type, cols, 1, rows * cols};
}

}  // namespace strop::cpu
