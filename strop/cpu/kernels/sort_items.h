// Sort of items (sort_key.h), stable if they come in order of position or are as long as LeastOfRadix says: by one
// thread, whichever way is fastest.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/cpu/kernels/merge_sort.h"
#include "strop/cpu/kernels/partition_sort.h"
#include "strop/cpu/kernels/radix_sort.h"

namespace strop::cpu {

inline constexpr int64_t kLongLine = 1 << 15;  // items that are sorted in parts, if there are threads by these

// Items that are sorted digit by digit; fewer ones by comparing them. (Cycles an item of 130: 72 and 79 by std::sort,
// 34 by merges, 79 and 33 by digits, of 8 and of 4 bytes.) `wide`: as WideItem is.
inline int64_t LeastOfRadix(int64_t key_bytes, bool wide = false) {
  if (wide) return 96;
  return key_bytes < 8 ? 48 * key_bytes : 512;
}

// The library puts so few in order by insertion, with no more mistakes than merges save.
inline constexpr int64_t kFewItems = 16;

// Two passes over all items are faster than parts, where they suffice and what they write to fits the caches; and so
// are three, of packed items (an item of 1 Mi by one thread: 8.6 and 10.3 ns; of keys alone: 7.6 and 6.2 ns).
template <class Item, class Get>
bool IsForPartition(int64_t n, int shift, int key_bytes, const Get& get) {
  if (n < kLongLine || key_bytes < 4) return false;
  if (!TakesManyBits(n, key_bytes)) return true;
  if (key_bytes == 4 && sizeof(Item) == 8) return false;
  return !AreSpreadOut<kManyBits>(n, shift, 8 * key_bytes, get);
}

// Sorts n items; `spare` is memory for n more. Radix sort by the `key_bytes` of the key from bit kShift on is stable,
// and items that come in order of position stay so.
template <int kShift, class Item>
void SortItems(Item* items, Item* spare, int64_t n, int key_bytes) {
  if (n <= kFewItems)
    std::sort(items, items + n);
  else if (n < LeastOfRadix(key_bytes, sizeof(Item) > sizeof(uint64_t)))
    MergeSort(items, spare, n);
  else if (IsForPartition<Item>(n, kShift, key_bytes, [items](int64_t i) { return items[i]; }))
    PartitionSort<Item, kShift>(8 * key_bytes, nullptr).Sort(items, spare, n, [items](int64_t i, const Item& item) {
      items[i] = item;
    });
  else if (TakesManyBits(n, key_bytes))
    SortByDigits<kManyBits>(items, spare, n, kShift, 8 * key_bytes);
  else
    SortByDigits<kFewBits>(items, spare, n, kShift, 8 * key_bytes);
}

}  // namespace strop::cpu
