// Lanes of vectors in an order that is known when the code is compiled, by GCC's __builtin_shuffle, which Clang lacks.
#pragma once

namespace strop {

// Lane l is lane mask[l] of `a`, or of `b` from as many as they have on.
template <class Vec, class Mask>
[[gnu::always_inline]] inline Vec ShuffleLanes(Vec a, Vec b, Mask mask) {
#ifdef __clang__
  constexpr int kLanes = sizeof(Vec) / sizeof(a[0]);
  Vec out;
  for (int l = 0; l < kLanes; ++l) out[l] = mask[l] < kLanes ? a[mask[l]] : b[mask[l] - kLanes];
  return out;
#else
  return __builtin_shuffle(a, b, mask);
#endif
}

// Exchanges rows and columns of as many vectors as they have lanes: a perfect shuffle of the rows' addresses, as often
// as an index has bits.
template <class Vec, int kLanes>
[[gnu::always_inline]] inline void TransposeLanes(Vec (&x)[kLanes]) {
  constexpr int kHalf = kLanes / 2;
  static_assert(sizeof(Vec) == kLanes * sizeof(x[0][0]));
  typedef decltype(Vec{} < Vec{}) Mask;
  Mask low, high;
#pragma GCC unroll 16
  for (int l = 0; l < kLanes; ++l) {
    low[l] = l / 2 + l % 2 * kLanes;
    high[l] = low[l] + kHalf;
  }
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
    Vec y[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      y[2 * i] = ShuffleLanes(x[i], x[i + kHalf], low);
      y[2 * i + 1] = ShuffleLanes(x[i], x[i + kHalf], high);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) x[i] = y[i];
  }
}

}  // namespace strop
