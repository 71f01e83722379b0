// Radix sorts of items (sort_key.h) by their keys, all of them stable: digit by digit, least significant first.
//
// Keys that are spread out are nearly all told apart by their two highest digits. Only by these are such sorted; what
// they leave out of order is little, and is put in order by insertion.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/merge_sort.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/rounding.h"
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

// Items that are nearly in order. False if they are not: then they were moved, but none past an equal one.
template <class Item>
bool InsertionSort(Item* items, int64_t n, int shift) {
  int64_t moves_left = n;
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

// ---- one thread -----------------------------------------------------------------------------------------------------

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

// By the two highest digits if these do.
template <int kBits, class Item>
void SortByDigits(Item* items, Item* spare, int64_t n, int shift, int key_bits) {
  constexpr int kBuckets = 1 << kBits;
  if (!AreSpreadOut<kBits>(n, shift, key_bits, [items](int64_t i) { return items[i]; }))
    return RadixSort<kBits>(items, spare, n, shift, key_bits);
  const int low = key_bits - 2 * kBits;
  uint32_t counts[2][kBuckets] = {};
  for (int64_t i = 0; i < n; ++i) {
    ++counts[0][Digit<kBits>(items[i], shift, low)];
    ++counts[1][Digit<kBits>(items[i], shift, low + kBits)];
  }
  Item *from = items, *to = spare;
  for (int d = 0; d < 2; ++d) {
    uint32_t sum = 0;
    for (uint32_t& next : counts[d]) sum += std::exchange(next, sum);
    for (int64_t i = 0; i < n; ++i) to[counts[d][Digit<kBits>(from[i], shift, low + kBits * d)]++] = from[i];
    std::swap(from, to);
  }
  if (!InsertionSort(items, n, shift)) RadixSort<kBits>(items, spare, n, shift, key_bits);
}

// Fewer, larger digits need fewer passes; their buckets' ends fit the second-level cache as long as there are not too
// many items, and counting them is worth it if there are not too few. (Four and three passes over 32 bits: 3.5 and 2.8
// ns an item of 128 Ki, 6.7 and 10 of 4 Mi.)
inline constexpr int kFewBits = 8, kManyBits = 11;
inline bool TakesManyBits(int64_t n, int key_bytes) {
  return key_bytes >= 4 && n >= int64_t{1} << 14 && n <= int64_t{1} << 20;
}

// Items that are sorted digit by digit; fewer ones by comparing them. (Cycles an item of 130: 72 and 79 by std::sort,
// 34 by merges, 79 and 33 by digits, of 8 and of 4 bytes.) `wide`: as WideItem is.
inline int64_t LeastOfRadix(int64_t key_bytes, bool wide = false) {
  if (wide) return 96;
  return key_bytes < 8 ? 48 * key_bytes : 512;
}

// The library puts so few in order by insertion, with no more mistakes than merges save.
inline constexpr int64_t kFewItems = 16;

// Sorts n items; `spare` is memory for n more. Radix sort by the `key_bytes` of the key from bit `shift` on is stable,
// and items that come in order of position stay so.
template <class Item>
void SortItems(Item* items, Item* spare, int64_t n, int shift, int key_bytes) {
  if (n <= kFewItems)
    std::sort(items, items + n);
  else if (n < LeastOfRadix(key_bytes, sizeof(Item) > sizeof(uint64_t)))
    MergeSort(items, spare, n);
  else if (TakesManyBits(n, key_bytes))
    SortByDigits<kManyBits>(items, spare, n, shift, 8 * key_bytes);
  else
    SortByDigits<kFewBits>(items, spare, n, shift, 8 * key_bytes);
}

// ---- several threads ------------------------------------------------------------------------------------------------

// One line by several threads: each counts the digits of a part of the items, and then puts that part's items behind
// those of the parts before it, to the same places however many parts there are. The first pass makes the items, and
// the last one hands them over: get(i) gives element i, put(i, item) takes the i-th in order, and may write where `get`
// reads.
template <int kBits, class Item>
class SortByParts {
 public:
  SortByParts(int64_t n, int shift, int key_bits, ThreadPool* pool)
      : n_(n),
        part_(CeilDiv(n, std::clamp<int64_t>(n / kLeastPart, 1, pool->num_threads()))),
        parts_(CeilDiv(n, part_)),
        shift_(shift),
        key_bits_(key_bits),
        pool_(pool),
        places_(parts_ * kBuckets) {}

  // `first` and `second` are memory for n items each, the second one perhaps where `get` reads.
  template <class Get, class Put>
  void Sort(Item* first, Item* second, const Get& get, const Put& put) {
    const bool high_digits = AreSpreadOut<kBits>(n_, shift_, key_bits_, get);
    Item *from = nullptr, *to = first;
    for (int low = high_digits ? key_bits_ - 2 * kBits : 0; low < key_bits_; low += kBits) {
      const auto made = [from](int64_t i) { return from[i]; };
      if (from ? !Pass(low, made, to) : !Pass(low, get, to)) continue;
      from = to;
      to = to == first ? second : first;
    }
    if (!from) return HandOver(get, put);
    if (high_digits) Finish(from, to);
    HandOver([from](int64_t i) { return from[i]; }, put);
  }

 private:
  static constexpr int kBuckets = 1 << kBits;
  static constexpr int64_t kLeastPart = 1 << 13, kPiece = 1 << 14;

  // False, and nothing done, if all are equal in this digit.
  template <class Get>
  bool Pass(int low, const Get& get, Item* to) {
    ForEachPiece(pool_, n_, part_, [this, &get, low, shift = shift_](int64_t begin, int64_t end) {
      const Get own = get;  // known not to change as numbers are written
      uint32_t counts[kBuckets] = {};
      for (int64_t i = begin; i < end; ++i) ++counts[Digit<kBits>(own(i), shift, low)];
      std::copy_n(counts, kBuckets, &places_[begin / part_ * kBuckets]);
    });
    int64_t sum = 0, most = 0;
    for (int bucket = 0; bucket < kBuckets; ++bucket) {
      const int64_t before = sum;
      for (int64_t p = 0; p < parts_; ++p) sum += std::exchange(places_[p * kBuckets + bucket], sum);
      most = std::max(most, sum - before);
    }
    if (most == n_) return false;
    ForEachPiece(pool_, n_, part_, [this, &get, to, low, shift = shift_](int64_t begin, int64_t end) {
      const Get own = get;
      int64_t next[kBuckets];
      std::copy_n(&places_[begin / part_ * kBuckets], kBuckets, next);
      for (int64_t i = begin; i < end; ++i) {
        const Item item = own(i);
        to[next[Digit<kBits>(item, shift, low)]++] = item;
      }
    });
    return true;
  }

  template <class Get, class Put>
  void HandOver(const Get& get, const Put& put) {
    ForEachPiece(pool_, n_, kPiece, [&get, &put](int64_t begin, int64_t end) {
      const Get own_get = get;
      const Put own_put = put;
      for (int64_t i = begin; i < end; ++i) own_put(i, own_get(i));
    });
  }

  // Items in order of the highest digits, so that what is left is within a bucket of the last pass.
  void Finish(Item* items, Item* spare) {
    std::vector<int64_t> begins = {0};
    for (int bucket = 0; bucket < kBuckets; ++bucket)
      if (places_[bucket] - begins.back() >= kLeastPart) begins.push_back(places_[bucket]);
    begins.push_back(n_);
    ForEachTask(pool_, static_cast<int64_t>(begins.size()) - 1, [&](int64_t task) {
      const int64_t begin = begins[task], size = begins[task + 1] - begin;
      if (!InsertionSort(items + begin, size, shift_))
        RadixSort<kBits>(items + begin, spare + begin, size, shift_, key_bits_);
    });
  }

  int64_t n_, part_, parts_;
  int shift_, key_bits_;
  ThreadPool* pool_;
  std::vector<int64_t> places_;  // of each part's next item of a digit
};

}  // namespace strop::cpu
