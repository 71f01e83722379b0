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

// Turns elements of one type into keys of their own width. K: uint8_t, uint16_t, uint32_t or uint64_t.
template <class K>
class KeyMaker {
 public:
  explicit KeyMaker(const SortKey& key) : descending_(key.descending), order_(key.order), type_(key.type) {
    if constexpr (sizeof(K) == 1) {
      FillTable();
      return;
    }
    const bool is_float = IsFloat(type_), total = order_ == KeyOrder::kTotal;
    fill_ = is_float ? kOnes : K{0};
    flip_ = is_float || IsSigned(type_) ? kSign : K{0};
    turn_ = descending_ ? kOnes : K{0};
    if (!is_float || total) return;
    merge_ = kSign;
    nan_ = order_ == KeyOrder::kIeee ? kOnes : static_cast<K>(~turn_);
    const int mantissa = FormatOf(type_).mantissa_bits;
    infinity_ = static_cast<K>(((K{1} << (Bits(type_) - 1 - mantissa)) - 1) << mantissa);
  }

  // Without branches: signs are as good as random.
  K operator()(K bits) const {
    if constexpr (sizeof(K) == 1) return table_[bits];
    const K value = static_cast<K>(bits ^ (bits == kSign ? merge_ : K{0}));
    const K key = static_cast<K>(value ^ ((SignOf(value) & fill_) | flip_) ^ turn_);
    return IsNan(bits) ? nan_ : key;
  }
  // May there be such as the next function tells?
  bool SharesAny() const { return sizeof(K) == 1 || merge_ != 0; }
  // Are keys the elements with the bits of Turned() turned?
  bool OnlyTurns() const { return sizeof(K) > 1 && fill_ == 0; }
  K Turned() const { return flip_ ^ turn_; }
  // Several different elements share this key: it cannot be turned back.
  bool IsShared(K bits) const {
    if constexpr (sizeof(K) == 1) return shared_[bits];
    return IsNan(bits) | ((bits == kSign) & (merge_ != 0));
  }
  // The element of a key that is not shared.
  K Invert(K key) const {
    if constexpr (sizeof(K) == 1) return inverse_[key];
    key ^= turn_;
    return static_cast<K>(key ^ ((~SignOf(key) & fill_) | flip_));
  }

 private:
  static constexpr K kSign = static_cast<K>(K{1} << (8 * sizeof(K) - 1)), kOnes = static_cast<K>(~K{0});

  // All ones if the sign is set.
  static K SignOf(K bits) { return static_cast<K>(K{0} - static_cast<K>(bits >> (8 * sizeof(K) - 1))); }
  bool IsNan(K bits) const { return static_cast<K>(bits & ~kSign) > infinity_; }

  // One-byte types: the key is the rank among all 256 codes, whatever the format (bits that a type does not use are
  // ignored for unsigned types and extend the sign of signed ones, as everywhere).
  void FillTable() {
    std::array<std::pair<double, double>, 256> place;  // order, then total order among equals
    std::array<bool, 256> last = {};
    constexpr double kInf = std::numeric_limits<double>::infinity();
    for (int code = 0; code < 256; ++code) {
      if (IsFloat(type_)) {
        uint64_t bits = static_cast<uint64_t>(code) & ((uint64_t{1} << Bits(type_)) - 1);
        double value = DecodeFloat(type_, bits);
        bool negative = FormatOf(type_).has_sign && (bits >> (Bits(type_) - 1));
        if (std::isnan(value) && !FormatOf(type_).has_negative_zero) negative = false;  // the code of -0 is the NaN
        if (order_ == KeyOrder::kTotal) {
          double sign = negative ? -1 : 1;
          place[code] = std::isnan(value) ? std::pair{sign * kInf, sign * static_cast<double>(1 + (bits & 0x7f))}
                                          : std::pair{value, std::signbit(value) && value == 0 ? -0.5 : 0.0};
        } else {
          place[code] = std::isnan(value) ? std::pair{kInf, 1.0} : std::pair{value + 0.0, 0.0};
          last[code] = std::isnan(value) && order_ == KeyOrder::kIeee;
        }
      } else {
        place[code] = {IsSigned(type_) ? static_cast<int8_t>(code) : code, 0.0};
      }
    }
    auto before = [&](int a, int b) {
      if (last[a] || last[b]) return !last[a] && last[b];
      return descending_ ? place[b] < place[a] : place[a] < place[b];
    };
    std::array<int, 256> codes;
    for (int i = 0; i < 256; ++i) codes[i] = i;
    std::stable_sort(codes.begin(), codes.end(), before);
    int rank = -1;
    for (int i = 0; i < 256; ++i) {
      if (i == 0 || before(codes[i - 1], codes[i]))
        inverse_[++rank] = static_cast<K>(codes[i]);
      else
        shared_[codes[i]] = shared_[inverse_[rank]] = true;
      table_[codes[i]] = static_cast<K>(rank);
    }
  }

  bool descending_;
  KeyOrder order_;
  ElementType type_;
  K fill_ = 0;          // what the sign turns of a key, beside itself
  K flip_ = 0;          // what is turned of every key
  K turn_ = 0;          // all ones if descending
  K merge_ = 0;         // turns -0 into 0 where these are equal
  K nan_ = 0;           // the key of what is beyond infinity
  K infinity_ = kOnes;  // all ones if NaN has a place of its own, or there is none
  std::array<K, sizeof(K) == 1 ? 256 : 1> table_ = {}, inverse_ = {};
  std::array<bool, sizeof(K) == 1 ? 256 : 1> shared_ = {};
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
