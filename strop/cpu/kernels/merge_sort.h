// Sorts of few items (sort_key.h): merges without branches, which random keys would mispredict every other time.
//
// Halves are sorted, and merged from both ends at once: the two chains of comparisons do not wait for each other, and
// as neither half is longer than the other by more than one, neither end runs out of items before the middle is
// reached. (The idea is Orson Peters', of glidesort and of Rust's standard library.) What is left at the bottom goes
// through a network of comparisons.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "strop/cpu/kernels/sort_key.h"

namespace strop::cpu {

inline constexpr int64_t kNetworkItems = 8;

template <class Item>
constexpr Item LargestItem() {
  if constexpr (std::is_same_v<Item, WideItem>)
    return {std::numeric_limits<uint64_t>::max(), std::numeric_limits<uint64_t>::max()};
  else
    return std::numeric_limits<Item>::max();
}

// The lesser one first. By masks: compilers make branches of choices.
template <class Item>
void Order(Item& a, Item& b) {
  const uint64_t turned = uint64_t{0} - static_cast<uint64_t>(b < a);
  if constexpr (std::is_same_v<Item, WideItem>) {
    const uint64_t key = (a.key ^ b.key) & turned, position = (a.position ^ b.position) & turned;
    a = {a.key ^ key, a.position ^ position};
    b = {b.key ^ key, b.position ^ position};
  } else {
    const Item differ = static_cast<Item>((a ^ b) & turned);
    a ^= differ;
    b ^= differ;
  }
}

// Sorts n <= kNetworkItems items by a network of 4 or of 8: those that are missing are the largest there are.
template <class Item>
void SortByNetwork(const Item* items, Item* sorted, int64_t n) {
  const int64_t width = n <= kNetworkItems / 2 ? kNetworkItems / 2 : kNetworkItems;
  Item a[kNetworkItems];
  for (int64_t i = 0; i < width; ++i) a[i] = i < n ? items[i] : LargestItem<Item>();
  if (width < kNetworkItems) {
    Order(a[0], a[1]), Order(a[2], a[3]);
    Order(a[0], a[2]), Order(a[1], a[3]);
    Order(a[1], a[2]);
  } else {
    Order(a[0], a[1]), Order(a[2], a[3]), Order(a[4], a[5]), Order(a[6], a[7]);
    Order(a[0], a[2]), Order(a[1], a[3]), Order(a[4], a[6]), Order(a[5], a[7]);
    Order(a[1], a[2]), Order(a[5], a[6]), Order(a[0], a[4]), Order(a[3], a[7]);
    Order(a[1], a[5]), Order(a[2], a[6]);
    Order(a[1], a[4]), Order(a[3], a[6]);
    Order(a[2], a[4]), Order(a[3], a[5]);
    Order(a[3], a[4]);
  }
  for (int64_t i = 0; i < n; ++i) sorted[i] = a[i];
}

// Sorts n <= kNetworkItems items, however that is fastest.
template <class Item>
void SortFew(const Item* items, Item* sorted, int64_t n) {
  if constexpr (std::is_same_v<Item, WideItem>) {  // of two words, to compare and to move
    if (sorted != items) std::copy_n(items, n, sorted);
    std::sort(sorted, sorted + n);
  } else {
    SortByNetwork(items, sorted, n);
  }
}

// Two sorted halves [0, n/2) and [n/2, n) of `from`, n >= 2, become one of `to`.
template <class Item>
void MergeHalves(const Item* from, Item* to, int64_t n) {
  const int64_t half = n / 2;
  const Item *left = from, *right = from + half;                // the least that are not taken
  const Item *left_end = right - 1, *right_end = from + n - 1;  // the largest ones
  for (int64_t i = 0; i < half; ++i) {
    const bool take_right = *right < *left;
    to[i] = *(take_right ? right : left);
    right += take_right;
    left += !take_right;
    const bool take_left = *right_end < *left_end;
    to[n - 1 - i] = *(take_left ? left_end : right_end);
    left_end -= take_left;
    right_end -= !take_left;
  }
  if (n % 2 != 0) to[half] = left <= left_end ? *left : *right;
}

// Sorts n items of `items`, which end in `spare` if `elsewhere`; each is memory for n.
template <class Item>
void MergeSort(Item* items, Item* spare, int64_t n, bool elsewhere = false) {
  if (n <= kNetworkItems) return SortFew(items, elsewhere ? spare : items, n);
  const int64_t half = n / 2;
  MergeSort(items, spare, half, !elsewhere);
  MergeSort(items + half, spare + half, n - half, !elsewhere);
  if (elsewhere)
    MergeHalves(items, spare, n);
  else
    MergeHalves(spare, items, n);
}

}  // namespace strop::cpu
