// Small arrays that lie behind each other, side by side in vectors, one in each lane: what many little problems are
// computed by at once. Blocks of as many elements as there are lanes are read as vectors and turned.
//
// For code inside WithVectors (isa.h).
#pragma once
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "strop/base/lane_shuffle.h"

namespace strop {

template <class T>
struct ArraysInLanes {
  static constexpr int kLanes = 32 / sizeof(T);
  typedef T Vec __attribute__((vector_size(32)));
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Integer Mask __attribute__((vector_size(32)));

  // s[e] = element e of `count` <= kLanes arrays of so many elements. Lanes behind the last array hold it again.
  static void Gather(int64_t elements, int64_t count, const T* a, Vec* s) {
    const auto of = [=](int64_t lane) { return a + std::min(lane, count - 1) * elements; };
    const auto block = [=](int64_t e) {
      Vec v[kLanes];
      for (int l = 0; l < kLanes; ++l) v[l] = *reinterpret_cast<const Unaligned*>(of(l) + e);
      Transpose(v);
      for (int l = 0; l < kLanes; ++l) s[e + l] = v[l];
    };
    const auto one = [=](int64_t e) {
      for (int l = 0; l < kLanes; ++l) s[e][l] = of(l)[e];
    };
    ForEachBlock(elements, block, one);
  }
  // The way back; lanes behind the last array are not written.
  static void Scatter(int64_t elements, int64_t count, const Vec* s, T* a) {
    const auto block = [=](int64_t e) {
      Vec v[kLanes];
      for (int l = 0; l < kLanes; ++l) v[l] = s[e + l];
      Transpose(v);
      for (int64_t l = 0; l < count; ++l) *reinterpret_cast<Unaligned*>(a + l * elements + e) = v[l];
    };
    const auto one = [=](int64_t e) {
      for (int64_t l = 0; l < count; ++l) a[l * elements + e] = s[e][l];
    };
    ForEachBlock(elements, block, one);
  }

 private:
  typedef T Unaligned __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));

  // Lane l of vector e becomes lane e of vector l: the halves of the vectors zipped, once for each bit of a lane's
  // number.
  static void Transpose(Vec* v) {
    constexpr int kHalf = kLanes / 2;
    Mask low, high;
    for (int l = 0; l < kLanes; ++l) {
      low[l] = l / 2 + (l % 2 ? kLanes : 0);
      high[l] = low[l] + kHalf;
    }
    for (int stage = 1; stage < kLanes; stage *= 2) {
      Vec zipped[kLanes];
      for (int i = 0; i < kHalf; ++i) {
        zipped[2 * i] = ShuffleLanes(v[i], v[i + kHalf], low);
        zipped[2 * i + 1] = ShuffleLanes(v[i], v[i + kHalf], high);
      }
      for (int i = 0; i < kLanes; ++i) v[i] = zipped[i];
    }
  }

  // Blocks of kLanes, and what is left: one by one if that is little, else a block that overlaps the one before.
  template <class Block, class One>
  static void ForEachBlock(int64_t elements, Block block, One one) {
    constexpr int64_t kLittle = 2;
    int64_t e = 0;
    for (; e + kLanes <= elements; e += kLanes) block(e);
    if (e < elements && e > 0 && elements - e > kLittle) return block(elements - kLanes);
    for (; e < elements; ++e) one(e);
  }
};

}  // namespace strop
