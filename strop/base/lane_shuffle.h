// Lanes of vectors in an order that is known when the code is compiled: GCC's __builtin_shuffle, which Clang lacks.
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

}  // namespace strop
