// Sorts of short lines, a line a lane: elements r of several lines lie side by side in row r, and a network
// of comparisons, the same for all lines, is a minimum and a maximum of two rows each time (merge exchange: Knuth, The
// Art of Computer Programming 3, 5.2.2, algorithm M).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/sort_key.h"

namespace strop::cpu {

inline constexpr int64_t kShortLine = 64;   // elements of one at most
inline constexpr int64_t kShortLines = 32;  // side by side
template <class K>
inline constexpr int64_t kFewLines = std::max<int64_t>(8, 32 / sizeof(K));  // a vector of keys

// Of a key type: the key alone, or with the element's position in the lowest bits, which makes items distinct.
template <class K, bool kPositioned>
struct ShortItem {
  static constexpr int kShift = kPositioned ? 8 * static_cast<int>(sizeof(K)) : 0;
  static constexpr int kBytes = static_cast<int>(sizeof(K)) * (kPositioned ? 2 : 1);
  using Wide = std::conditional_t<
      kBytes == 1, uint8_t,
      std::conditional_t<kBytes == 2, uint16_t, std::conditional_t<kBytes == 4, uint32_t, uint64_t>>>;
  using Type = std::conditional_t<kBytes == 8, int64_t, Wide>;
  static constexpr Wide kTurned = kBytes == 8 ? Wide{1} << (8 * sizeof(Wide) - 1) : Wide{0};
  static Type Pack(K key, int64_t position) {
    Wide item = key;
    if constexpr (kPositioned) item = static_cast<Wide>(item << kShift | static_cast<Wide>(position));
    return static_cast<Type>(item ^ kTurned);
  }
  static K Key(Type item) { return static_cast<K>((static_cast<Wide>(item) ^ kTurned) >> kShift); }
  static uint8_t Position(Type item) { return static_cast<uint8_t>(item); }
};

// Every lane of n rows, by order(a, b) of pairs of rows.
template <class Order>
inline void SortRows(int64_t n, const Order& order) {
  if (n < 2) return;
  const int64_t top = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n - 1)));
  for (int64_t p = top; p > 0; p /= 2) {
    for (int64_t q = top, r = 0, d = p;; d = q - p, q /= 2, r = p) {
      for (int64_t first = r; first < n - d; first += 2 * p)
        for (int64_t i = first; i < std::min(first + p, n - d); ++i) order(i, i + d);
      if (q == p) break;
    }
  }
}

template <int64_t kLines, class Item>
inline void SortRows(Item (*rows)[kLines], int64_t n) {
  constexpr int64_t kBytes = kLines * static_cast<int64_t>(sizeof(Item));
  typedef Item Vector __attribute__((vector_size(32)));
  static_assert(kBytes % 32 == 0);
  SortRows(n, [rows](int64_t first, int64_t second) {
    Item *a = rows[first], *b = rows[second];
    for (int64_t v = 0; v < kBytes / 32; ++v, a += 32 / sizeof(Item), b += 32 / sizeof(Item)) {
      Vector x, y;
      std::memcpy(&x, a, 32), std::memcpy(&y, b, 32);
      const Vector low = x < y ? x : y, high = x < y ? y : x;
      std::memcpy(a, &low, 32), std::memcpy(b, &high, 32);
    }
  });
}

// The positions of the elements of each line in order of their keys.
template <int64_t kLines, class Maker, class K>
inline void ShortOrder(const Maker& make_key, const K (*elements)[kLines], int64_t n, uint8_t (*positions)[kLines]) {
  WithVectors([=, &make_key] {
    // Local values: bytes that are stored could be those of anything else.
    const Maker key = make_key;
    const int64_t rows = n;
    const K(*const from)[kLines] = elements;
    uint8_t (*const to)[kLines] = positions;
    if constexpr (sizeof(K) < 8) {
      using Traits = ShortItem<K, true>;
      typename Traits::Type items[kShortLine][kLines];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < kLines; ++l) items[r][l] = Traits::Pack(key(from[r][l]), r);
      SortRows<kLines>(items, rows);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < kLines; ++l) to[r][l] = Traits::Position(items[r][l]);
    } else {
      typedef int64_t Vector __attribute__((vector_size(32)));
      using Traits = ShortItem<K, false>;
      int64_t keys[kShortLine][kLines], places[kShortLine][kLines];
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < kLines; ++l) keys[r][l] = Traits::Pack(key(from[r][l]), 0), places[r][l] = r;
      SortRows(rows, [&keys, &places](int64_t a, int64_t b) {
        for (int64_t l = 0; l < kLines; l += 4) {
          Vector x, y, x_place, y_place;
          std::memcpy(&x, &keys[a][l], 32), std::memcpy(&y, &keys[b][l], 32);
          std::memcpy(&x_place, &places[a][l], 32), std::memcpy(&y_place, &places[b][l], 32);
          const Vector turned = (y < x) | ((y == x) & (y_place < x_place));
          const Vector differ = (x ^ y) & turned, places_differ = (x_place ^ y_place) & turned;
          x ^= differ, y ^= differ, x_place ^= places_differ, y_place ^= places_differ;
          std::memcpy(&keys[a][l], &x, 32), std::memcpy(&keys[b][l], &y, 32);
          std::memcpy(&places[a][l], &x_place, 32), std::memcpy(&places[b][l], &y_place, 32);
        }
      });
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < kLines; ++l) to[r][l] = static_cast<uint8_t>(places[r][l]);
    }
  });
}

// The elements of each line in order of their keys. False, and nothing done, if several different elements share a key.
template <int64_t kLines, class Maker, class K>
inline bool SortShortAlone(const Maker& make_key, K (*elements)[kLines], int64_t n) {
  using Traits = ShortItem<K, false>;
  bool done = false;
  WithVectors([=, &make_key, &done] {
    const Maker key = make_key;
    const int64_t rows = n;
    K(*const line)[kLines] = elements;
    if (key.SharesAny()) {
      K shared = 0;  // as wide as what it is made of
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t l = 0; l < kLines; ++l) shared |= static_cast<K>(key.IsShared(line[r][l]));
      if (shared) return;
    }
    typename Traits::Type items[kShortLine][kLines];
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t l = 0; l < kLines; ++l) items[r][l] = Traits::Pack(key(line[r][l]), 0);
    SortRows<kLines>(items, rows);
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t l = 0; l < kLines; ++l) line[r][l] = key.Invert(Traits::Key(items[r][l]));
    done = true;
  });
  return done;
}

}  // namespace strop::cpu
