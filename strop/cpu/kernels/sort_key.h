// Sort keys: unsigned integers whose natural order is the order of the elements; and sorting of items made of them.
//
//   element bits --KeyMaker--> key --> Item: the key alone, or with the element's position, which makes items distinct,
//   so that any sort is a stable one.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "strop/cpu/kernels/sort.h"

namespace strop::cpu {

// Whether elements of the type have an order that sorting can use.
inline bool HasOrder(ElementType type) { return IsArrayType(type) && !IsComplex(type); }

// Turns elements of one type into keys of their own width. K: uint8_t (of no floats), uint16_t, uint32_t or uint64_t.
template <class K>
class KeyMaker {
 public:
  explicit KeyMaker(const SortKey& key) {
    const bool is_float = IsFloat(key.type), total = key.order == KeyOrder::kTotal;
    fill_ = is_float ? kOnes : K{0};
    flip_ = is_float || IsSigned(key.type) ? kSign : K{0};
    turn_ = key.descending ? kOnes : K{0};
    if (!is_float || total) return;
    merge_ = kSign;
    nan_ = key.order == KeyOrder::kIeee ? kOnes : static_cast<K>(~turn_);
    const int mantissa = FormatOf(key.type).mantissa_bits;
    infinity_ = static_cast<K>(((K{1} << (Bits(key.type) - 1 - mantissa)) - 1) << mantissa);
  }

  // Without branches: signs are as good as random.
  K operator()(K bits) const {
    const K value = static_cast<K>(bits ^ (bits == kSign ? merge_ : K{0}));
    const K key = static_cast<K>(value ^ ((SignOf(value) & fill_) | flip_) ^ turn_);
    return IsNan(bits) ? nan_ : key;
  }
  // May there be such as the next function tells?
  bool SharesAny() const { return merge_ != 0; }
  // What is turned of every key.
  K Turned() const { return flip_ ^ turn_; }
  // Several different elements share this key: it cannot be turned back.
  bool IsShared(K bits) const { return IsNan(bits) | ((bits == kSign) & (merge_ != 0)); }
  // NaN that has no place of its own; the key that all of these have.
  bool IsNan(K bits) const { return static_cast<K>(bits & ~kSign) > infinity_; }
  K nan_key() const { return nan_; }
  // The element of a key that is not shared.
  K Invert(K key) const {
    key ^= turn_;
    return static_cast<K>(key ^ ((~SignOf(key) & fill_) | flip_));
  }

 private:
  static constexpr K kSign = static_cast<K>(K{1} << (8 * sizeof(K) - 1)), kOnes = static_cast<K>(~K{0});

  // All ones if the sign is set.
  static K SignOf(K bits) { return static_cast<K>(K{0} - static_cast<K>(bits >> (8 * sizeof(K) - 1))); }

  K fill_ = 0;          // what the sign turns of a key, beside itself
  K flip_ = 0;          // what is turned of every key
  K turn_ = 0;          // all ones if descending
  K merge_ = 0;         // turns -0 into 0 where these are equal
  K nan_ = 0;           // the key of what is beyond infinity
  K infinity_ = kOnes;  // all ones if NaN has a place of its own, or there is none
};

// The same of integers.
template <class K>
class IntegerKeyMaker {
 public:
  explicit IntegerKeyMaker(const SortKey& key) : turned_(KeyMaker<K>(key).Turned()) {}
  K operator()(K bits) const { return static_cast<K>(bits ^ turned_); }
  bool SharesAny() const { return false; }
  bool IsShared(K) const { return false; }
  K Invert(K key) const { return static_cast<K>(key ^ turned_); }

 private:
  K turned_;
};

// Formats of one byte are many: the key of a code is its rank among all 256 (bits that a type does not use are
// ignored).
class TableKeyMaker {
 public:
  explicit TableKeyMaker(const SortKey& key) : table_(&TableOf(key)) {}
  uint8_t operator()(uint8_t bits) const { return table_->keys[bits]; }
  bool SharesAny() const { return table_->shares_any; }
  bool IsShared(uint8_t bits) const { return table_->shared[bits]; }
  uint8_t Invert(uint8_t key) const { return table_->codes[key]; }

 private:
  struct Table {
    explicit Table(const SortKey& key);
    std::array<uint8_t, 256> keys = {}, codes = {};  // a code of each key
    std::array<bool, 256> shared = {};               // codes that are not the only one of their key
    bool shares_any = false;
  };
  static const Table& TableOf(const SortKey& key);  // made once

  const Table* table_;
};

// ---- items ----------------------------------------------------------------------------------------------------------

// A key of 64 bits with its position.
struct WideItem {
  uint64_t key;
  uint64_t position;
  friend bool operator<(const WideItem& a, const WideItem& b) {
    return (a.key < b.key) | ((a.key == b.key) & (a.position < b.position));  // without branches
  }
};

// Items of a key type: Positioned carries the position (n < 2^32 for the packed one).
template <class K>
struct ItemTraits {
  using Positioned = std::conditional_t<sizeof(K) <= 4, uint64_t, WideItem>;
  static Positioned Pack(K key, int64_t position) {
    if constexpr (sizeof(K) <= 4)
      return uint64_t{key} << 32 | static_cast<uint64_t>(position);
    else
      return WideItem{key, static_cast<uint64_t>(position)};
  }
  static int64_t Position(const Positioned& item) {
    if constexpr (sizeof(K) <= 4)
      return static_cast<int64_t>(item & 0xffffffffu);
    else
      return static_cast<int64_t>(item.position);
  }
};

// Calls fn with a value of the unsigned type of `bytes` (1, 2, 4 or 8) bytes.
template <class Fn>
auto WithKeyType(int bytes, Fn&& fn) {
  switch (bytes) {
    case 1: return fn(uint8_t{});
    case 2: return fn(uint16_t{});
    case 4: return fn(uint32_t{});
    default: return fn(uint64_t{});
  }
}

}  // namespace strop::cpu
