// Radix sorts of items (sort_key.h) by their keys, all of them stable: digit by digit, least significant first, by one
// thread.
//
// Keys that are spread out are nearly all told apart by their two highest digits. Only by these are such sorted; what
// they leave out of order is little, and is put in order by insertion.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/sort_key.h"

namespace strop::cpu {

// The key of an item, in an integer one from bit `shift` on.
inline uint64_t KeyOf(const WideItem& item, int) { return item.key; }
template <class T>
  requires std::is_integral_v<T>
uint64_t KeyOf(T item, int shift) {
  return static_cast<uint64_t>(item) >> shift;
}
// kBits of the key from bit `low` on.
template <int kBits, class Item>
uint64_t Digit(const Item& item, int shift, int low) {
  return KeyOf(item, shift) >> low & ((1 << kBits) - 1);
}

// Do the two highest digits tell nearly all of the keys get(0..n-1) apart? The highest one of some is looked at; the
// other one is taken to be anything. (Floats have few exponents, and small integers no high digits at all.)
template <int kBits, class Get>
bool AreSpreadOut(int64_t n, int shift, int key_bits, const Get& get) {
  constexpr int64_t kSamples = 512, kBuckets = 1 << kBits;
  if (n < kSamples || n > std::numeric_limits<uint32_t>::max() || key_bits <= 2 * kBits) return false;
  uint16_t counts[kBuckets] = {};
  int64_t pairs = 0;  // of samples that agree
  for (int64_t i = 0; i < kSamples; ++i)
    pairs += counts[Digit<kBits>(get(i * (n / kSamples)), shift, key_bits - kBits)]++;
  const double agree = static_cast<double>(pairs) / static_cast<double>(kSamples * (kSamples - 1) / 2) / kBuckets;
  return agree * static_cast<double>(n) < 0.25;
}

// Items that are nearly in order. False if they take more moves: then they were moved, but none past an equal one.
template <class Item>
bool InsertionSort(Item* items, int64_t n, int shift, int64_t moves_left) {
  uint64_t before = 0;
  for (int64_t i = 0; i < n; ++i) {
    const Item moving = items[i];
    const uint64_t key = KeyOf(moving, shift);
    if (key >= before) {
      before = key;
      continue;
    }
    int64_t at = i;
    for (; at > 0 && KeyOf(items[at - 1], shift) > key; --at) items[at] = items[at - 1];
    items[at] = moving;
    if ((moves_left -= i - at) < 0) return false;
  }
  return true;
}

// By the lowest `key_bits` of the key, each digit by a pass over all items.
template <int kBits, class Item>
void RadixSort(Item* items, Item* spare, int64_t n, int shift, int key_bits) {
  constexpr int kMostDigits = 8, kBuckets = 1 << kBits;
  const int digits = (key_bits + kBits - 1) / kBits;
  int64_t counts[kMostDigits][kBuckets];
  for (int d = 0; d < digits; ++d) std::fill_n(counts[d], kBuckets, 0);
  for (int64_t i = 0; i < n; ++i) {
    for (int d = 0; d < digits; ++d) ++counts[d][Digit<kBits>(items[i], shift, kBits * d)];
  }
  Item *from = items, *to = spare;
  for (int d = 0; d < digits; ++d) {
    if (counts[d][Digit<kBits>(from[0], shift, kBits * d)] == n) continue;  // all equal in this digit
    int64_t sum = 0;
    for (int64_t& next : counts[d]) sum += std::exchange(next, sum);
    for (int64_t i = 0; i < n; ++i) to[counts[d][Digit<kBits>(from[i], shift, kBits * d)]++] = from[i];
    std::swap(from, to);
  }
  if (from != items) std::memcpy(static_cast<void*>(items), from, n * sizeof(Item));
}

// By the bits of the key, less `least`, from `low` on: by one digit, or by two, above which there are none. The items
// are in `from` then, and `to` is the other memory.
template <int kBits, class Item>
void SortByHighDigits(Item*& from, Item*& to, int64_t n, int shift, uint64_t least, int low, int digits) {
  WithVectors([&from, &to, n, shift, least, low, digits] {
    constexpr int kBuckets = 1 << kBits;
    uint32_t counts[2][kBuckets] = {};
    const Item* const all = from;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t key = (KeyOf(all[i], shift) - least) >> low;
      ++counts[0][key % kBuckets], ++counts[1][key / kBuckets];
    }
    for (int d = 0; d < digits; ++d) {
      uint32_t sum = 0;
      uint32_t* const next = counts[d];
      for (int bucket = 0; bucket < kBuckets; ++bucket) sum += std::exchange(next[bucket], sum);
      const Item* const source = from;
      Item* const target = to;
      for (int64_t i = 0; i < n; ++i) {
        const Item item = source[i];
        target[next[((KeyOf(item, shift) - least) >> (low + d * kBits)) % kBuckets]++] = item;
      }
      std::swap(from, to);
    }
  });
}

// By the two highest digits if these do.
template <int kBits, class Item>
void SortByDigits(Item* items, Item* spare, int64_t n, int shift, int key_bits) {
  if (!AreSpreadOut<kBits>(n, shift, key_bits, [items](int64_t i) { return items[i]; }))
    return RadixSort<kBits>(items, spare, n, shift, key_bits);
  Item *from = items, *to = spare;
  SortByHighDigits<kBits>(from, to, n, shift, 0, key_bits - 2 * kBits, 2);
  if (!InsertionSort(items, n, shift, n)) RadixSort<kBits>(items, spare, n, shift, key_bits);
}

// Fewer, larger digits need fewer passes; their buckets' ends fit the second-level cache as long as there are not too
// many items, and counting them is worth it if there are not too few. (Four and three passes over 32 bits: 3.5 and 2.8
// ns an item of 128 Ki, 6.7 and 10 of 4 Mi.)
inline constexpr int kFewBits = 8, kManyBits = 11;
inline bool TakesManyBits(int64_t n, int key_bytes) {
  return key_bytes >= 4 && n >= int64_t{1} << 14 && n <= int64_t{1} << 20;
}

}  // namespace strop::cpu
