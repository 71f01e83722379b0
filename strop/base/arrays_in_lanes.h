// Small arrays that lie behind each other, side by side in vectors, one in each lane: what many little problems are
// computed by at once. A few elements of as many arrays as there are lanes are read at a time, the arrays of the second
// half behind those of the first, and turned inside the halves, where a shuffle is one instruction.
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
  static constexpr int kTile = kLanes / 2;  // elements of every array that are turned at once
  typedef T Vec __attribute__((vector_size(32)));
  using Integer = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef Integer Mask __attribute__((vector_size(32)));

  // s[e] = element e of `count` <= kLanes arrays of so many elements. Lanes behind the last array hold it again.
  static void Gather(int64_t elements, int64_t count, const T* a, Vec* s) {
    const auto of = [=](int64_t lane) { return a + std::min(lane, count - 1) * elements; };
    const auto tile = [=](int64_t e) {
      Vec v[kTile];
      for (int l = 0; l < kTile; ++l) Join(Load(of(l) + e), Load(of(l + kTile) + e), v[l]);
      Transpose(v);
      for (int l = 0; l < kTile; ++l) s[e + l] = v[l];
    };
    const auto one = [=](int64_t e) {
      for (int l = 0; l < kLanes; ++l) s[e][l] = of(l)[e];
    };
    ForEachTile(elements, tile, one);
  }
  // The way back; lanes behind the last array are not written.
  static void Scatter(int64_t elements, int64_t count, const Vec* s, T* a) {
    const auto tile = [=](int64_t e) {
      Vec v[kTile];
      for (int l = 0; l < kTile; ++l) v[l] = s[e + l];
      Transpose(v);
      for (int l = 0; l < kTile; ++l) {
        if (l < count) Store(v[l], 0, a + l * elements + e);
        if (l + kTile < count) Store(v[l], 1, a + (l + kTile) * elements + e);
      }
    };
    const auto one = [=](int64_t e) {
      for (int64_t l = 0; l < count; ++l) a[l * elements + e] = s[e][l];
    };
    ForEachTile(elements, tile, one);
  }

 private:
  typedef T Half __attribute__((vector_size(16)));
  typedef T Unaligned __attribute__((vector_size(16), aligned(sizeof(T)), may_alias));

  static Half Load(const T* from) { return *reinterpret_cast<const Unaligned*>(from); }
  static void Store(const Vec& v, int half, T* to) {
    if constexpr (sizeof(T) == 4)
      *reinterpret_cast<Unaligned*>(to) =
          half == 0 ? __builtin_shufflevector(v, v, 0, 1, 2, 3) : __builtin_shufflevector(v, v, 4, 5, 6, 7);
    else
      *reinterpret_cast<Unaligned*>(to) =
          half == 0 ? __builtin_shufflevector(v, v, 0, 1) : __builtin_shufflevector(v, v, 2, 3);
  }
  static void Join(Half low, Half high, Vec& v) {
    if constexpr (sizeof(T) == 4)
      v = __builtin_shufflevector(low, high, 0, 1, 2, 3, 4, 5, 6, 7);
    else
      v = __builtin_shufflevector(low, high, 0, 1, 2, 3);
  }

  // In each half of the vectors, lane l of vector e becomes lane e of vector l: they are zipped, once for each bit of a
  // lane's number.
  static void Transpose(Vec* v) {
    Mask low, high;
    for (int l = 0; l < kLanes; ++l) {
      low[l] = l / kTile * kTile + l % kTile / 2 + (l % 2 ? kLanes : 0);
      high[l] = low[l] + kTile / 2;
    }
    for (int stage = 1; stage < kTile; stage *= 2) {
      Vec zipped[kTile];
      for (int i = 0; i < kTile / 2; ++i) {
        zipped[2 * i] = ShuffleLanes(v[i], v[i + kTile / 2], low);
        zipped[2 * i + 1] = ShuffleLanes(v[i], v[i + kTile / 2], high);
      }
      for (int i = 0; i < kTile; ++i) v[i] = zipped[i];
    }
  }

  // Tiles, and what is left: a single element by itself, else a tile that overlaps the one before.
  template <class Tile, class One>
  static void ForEachTile(int64_t elements, Tile tile, One one) {
    int64_t e = 0;
    for (; e + kTile <= elements; e += kTile) tile(e);
    if (e < elements && e > 0 && elements - e > 1) return tile(elements - kTile);
    for (; e < elements; ++e) one(e);
  }
};

}  // namespace strop
