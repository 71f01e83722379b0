// Sort of a long line of items (sort_key.h) by their keys, stable, by several threads or by one: most significant
// digit first, then in parts that fit the first-level cache.
//
// The items are dealt out to groups of about kGroup items by their highest digit: ranges of digits, chosen by how often
// each occurs, so that groups are alike whatever the keys are (few exponents, small integers). Each thread deals out a
// part of the items, behind those of the parts before it. A group is then a task of its own, that no other thread
// touches: a radix sort by the two highest of its digits that differ, and insertion of the few items which these do not
// tell apart. Groups that stay large, of one digit, are dealt out once more.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/radix_sort.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {

struct KeyRange {
  uint64_t least, most;
  int bits() const { return static_cast<int>(std::bit_width(most - least)); }
};

// What the keys of a line are.
struct KeysSeen {
  KeyRange range;
  bool in_order;
};

// key(i) for all i in [0, n), once for each, and before it that of i - 1 if there is one.
template <class K, class Key>
KeysSeen LookAtKeys(int64_t n, ThreadPool* pool, const Key& key) {
  constexpr int64_t kPiece = 1 << 14, kBlock = 256;
  std::vector<KeysSeen> pieces(CeilDiv(n, kPiece));
  ForEachPiece(pool, n, kPiece, [&](int64_t begin, int64_t end) {
    WithVectors([=, &pieces, &key] {
      const Key own = key;
      K least = static_cast<K>(~K{0}), most = 0, descents = 0;
      K keys[kBlock + 1];  // and the one before them
      keys[0] = begin == 0 ? K{0} : own.Peek(begin - 1);
      for (int64_t i = begin; i < end; i += kBlock) {
        const int64_t count = std::min(kBlock, end - i);
        for (int64_t j = 0; j < count; ++j) keys[j + 1] = own(i + j);
        for (int64_t j = 0; j < count; ++j) {
          least = std::min(least, keys[j + 1]), most = std::max(most, keys[j + 1]);
          descents |= static_cast<K>(keys[j + 1] < keys[j]);
        }
        keys[0] = keys[count];
      }
      pieces[begin / kPiece] = {{least, most}, descents == 0};
    });
  });
  KeysSeen all = pieces[0];
  for (const KeysSeen& piece : pieces) {
    all.range = {std::min(all.range.least, piece.range.least), std::max(all.range.most, piece.range.most)};
    all.in_order &= piece.in_order;
  }
  return all;
}

// Keys are what lies from bit kShift of an item on.
template <class Item, int kShift>
class PartitionSort {
 public:
  PartitionSort(int key_bits, ThreadPool* pool) : key_bits_(key_bits), pool_(pool) {}

  // put(i, item) gets the i-th of items[0, n) in order, whose keys are as `seen`; it may write to items[i]. `spare` is
  // memory for n items.
  template <class Put>
  void Sort(Item* items, Item* spare, int64_t n, const KeysSeen& seen, const Put& put) const {
    Sort(items, spare, n, seen, 0, put);
  }
  template <class Put>
  void Sort(Item* items, Item* spare, int64_t n, const Put& put) const {
    Sort(items, spare, n, Look(items, n), 0, put);
  }

 private:
  // The same of a range of items that comes after `first` others.
  template <class Put>
  void Sort(Item* items, Item* spare, int64_t n, const KeysSeen& seen, int64_t first, const Put& put) const {
    if (seen.in_order)
      return ForEachPiece(pool_, n, kPiece, [&](int64_t begin, int64_t end) {
        HandOver(items + begin, end - begin, first + begin, put);
      });
    Deal deal(*this, seen.range, n);
    deal.Run(items, spare);
    ForEachTask(pool_, deal.num_groups(), [&](int64_t g) {
      const int64_t begin = deal.begin(g), size = deal.begin(g + 1) - begin;
      if (deal.IsInOrder(g))
        HandOver(spare + begin, size, first + begin, put);
      else if (size <= kHomeGroup) {
        Item home[kHomeGroup];
        SortGroup<8>(spare + begin, home, size, deal.RangeOf(g), first + begin, put);
      } else if (size <= kSmallGroup)
        SortGroup<8>(spare + begin, items + begin, size, deal.RangeOf(g), first + begin, put);
      else if (size <= kLargeGroup)
        SortGroup<11>(spare + begin, items + begin, size, deal.RangeOf(g), first + begin, put);
    });
    for (int64_t g = 0; g < deal.num_groups(); ++g) {
      const int64_t begin = deal.begin(g), size = deal.begin(g + 1) - begin;
      if (size > kLargeGroup && !deal.IsInOrder(g))
        Sort(spare + begin, items + begin, size, Look(spare + begin, size), first + begin, put);
    }
  }

  static constexpr int kDealtBits = 11;
  static constexpr int64_t kGroup = (int64_t{1} << 14) / static_cast<int64_t>(sizeof(Item)), kMostGroups = 256,
                           kHomeGroup = 2 * kGroup, kSmallGroup = int64_t{1} << 13, kLargeGroup = int64_t{1} << 16;
  static constexpr int64_t kLeastPart = int64_t{1} << 13, kPiece = int64_t{1} << 14;
  static constexpr int64_t kFew = 24;

  // The items by the highest digit of what the keys are above the least one.
  class Deal {
   public:
    Deal(const PartitionSort& sort, KeyRange range, int64_t n)
        : n_(n),
          part_(CeilDiv(n, std::clamp<int64_t>(n / kLeastPart, 1, sort.pool_ ? sort.pool_->num_threads() : 1))),
          parts_(CeilDiv(n, part_)),
          low_(std::max(0, range.bits() - kDealtBits)),
          digits_(((range.most - range.least) >> low_) + 1),
          range_(range),
          pool_(sort.pool_) {}

    void Run(const Item* items, Item* to) {
      Count(items);
      FormGroups();
      ForEachPiece(pool_, n_, part_, [&](int64_t begin, int64_t end) {
        const uint16_t* group = group_.data();
        // Its own copy: where parts' places meet in a line of the cache, two threads take 1.3 times as long.
        std::vector<int64_t> places(num_groups());
        std::copy_n(&places_[begin / part_ * num_groups()], num_groups(), places.data());
        int64_t* next = places.data();
        WithVectors([=, least = range_.least, low = low_] {
          for (int64_t i = begin; i < end; ++i) {
            const Item item = items[i];
            to[next[group[(KeyOf(item, kShift) - least) >> low]]++] = item;
          }
        });
      });
    }
    int64_t num_groups() const { return static_cast<int64_t>(begins_.size()) - 1; }
    int64_t begin(int64_t group) const { return begins_[group]; }
    bool IsInOrder(int64_t group) const { return low_ == 0 && first_digit_[group + 1] - first_digit_[group] == 1; }
    KeyRange RangeOf(int64_t group) const {
      return {range_.least + (first_digit_[group] << low_), range_.least + (first_digit_[group + 1] << low_) - 1};
    }

   private:
    void Count(const Item* items) {
      counts_.resize(parts_ * digits_);
      ForEachPiece(pool_, n_, part_, [&](int64_t begin, int64_t end) {
        // Two, since neighbours often are alike, and would wait for each other.
        uint32_t even[1 << kDealtBits] = {}, odd[1 << kDealtBits] = {};
        WithVectors([=, &even, &odd, least = range_.least, low = low_] {
          int64_t i = begin;
          for (; i + 1 < end; i += 2) {
            ++even[(KeyOf(items[i], kShift) - least) >> low];
            ++odd[(KeyOf(items[i + 1], kShift) - least) >> low];
          }
          if (i < end) ++even[(KeyOf(items[i], kShift) - least) >> low];
        });
        for (uint64_t digit = 0; digit < digits_; ++digit)
          counts_[begin / part_ * digits_ + digit] = int64_t{even[digit]} + odd[digit];
      });
    }
    void FormGroups() {
      // Digits that tell everything are groups of their own.
      const int64_t wanted = low_ == 0 ? 1 : std::max(kGroup, CeilDiv(n_, kMostGroups));
      group_.resize(digits_);
      int64_t size = 0, begin = 0;
      for (uint64_t digit = 0; digit < digits_; ++digit) {
        int64_t count = 0;
        for (int64_t p = 0; p < parts_; ++p) count += counts_[p * digits_ + digit];
        if (begins_.empty() || size >= wanted || (size > 0 && count >= wanted)) {
          begins_.push_back(begin), first_digit_.push_back(digit);
          size = 0;
        }
        group_[digit] = static_cast<uint16_t>(begins_.size() - 1);
        size += count, begin += count;
      }
      begins_.push_back(begin), first_digit_.push_back(digits_);
      places_.resize(parts_ * num_groups());
      for (uint64_t digit = 0; digit < digits_; ++digit)
        for (int64_t p = 0; p < parts_; ++p) places_[p * num_groups() + group_[digit]] += counts_[p * digits_ + digit];
      for (int64_t g = 0; g < num_groups(); ++g) {
        int64_t at = begins_[g];
        for (int64_t p = 0; p < parts_; ++p) at += std::exchange(places_[p * num_groups() + g], at);
      }
    }

    int64_t n_, part_, parts_;
    int low_;  // where the digit begins
    uint64_t digits_;
    KeyRange range_;
    ThreadPool* pool_;
    std::vector<int64_t> counts_;  // of each part's items with each digit
    std::vector<uint16_t> group_;  // of each digit
    std::vector<int64_t> begins_;
    std::vector<uint64_t> first_digit_;
    std::vector<int64_t> places_;  // of each part's next item of a group
  };

  KeysSeen Look(const Item* items, int64_t n) const {
    using Key = std::conditional_t<std::is_integral_v<Item> && kShift == 0, Item, uint64_t>;
    return LookAtKeys<Key>(n, pool_, KeyOfItem{items});
  }
  struct KeyOfItem {
    auto operator()(int64_t i) const { return KeyOf(items[i], kShift); }
    auto Peek(int64_t i) const { return KeyOf(items[i], kShift); }
    const Item* items;
  };

  template <class Put>
  static void HandOver(const Item* items, int64_t n, int64_t first, const Put& put) {
    WithVectors([=, &put] {
      const Put own = put;  // known not to change as elements are written
      for (int64_t i = 0; i < n; ++i) own(first + i, items[i]);
    });
  }

  template <int kGroupBits, class Put>
  void SortGroup(Item* items, Item* spare, int64_t n, KeyRange range, int64_t first, const Put& put) const {
    if (n <= kFew) {
      InsertionSort(items, n, kShift, kFew * kFew);
      return HandOver(items, n, first, put);
    }
    const int bits = range.bits(), low = std::max(0, bits - 2 * kGroupBits);
    Item *from = items, *to = spare;
    SortByHighDigits<kGroupBits>(from, to, n, kShift, range.least, low, bits > kGroupBits ? 2 : 1);
    if (low > 0 && !InsertionSort(from, n, kShift, n)) RadixSort<kGroupBits>(from, to, n, kShift, key_bits_);
    HandOver(from, n, first, put);
  }

  int key_bits_;
  ThreadPool* pool_;
};

}  // namespace strop::cpu
