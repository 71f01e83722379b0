// Plain data as bytes and back. A struct lists its fields once, for both ways:
//
//   template <class Archive>
//   void Fields(Archive& a, Slot& s) {
//     a(s.index, s.offset);
//     a.Enum(s.kind, SlotKind::kOutput);   // the last of its values
//   }
//   ByteWriter w;  w(slot);      ByteReader r(bytes);  r(slot);  STROP_TRY(r.Finish("a slot"));
//
// Numbers are little endian and of their own width; text and lists follow their count. A reader takes the bytes for
// hostile: after the first mistake it reads nothing more, and a list grows only as far as there are bytes for it.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "strop/base/status.h"

namespace strop {

static_assert(std::endian::native == std::endian::little);

namespace internal {
template <class T>
concept IsNumber = std::is_integral_v<T> || std::is_floating_point_v<T>;
template <class T>
concept IsList = requires(T& list, typename T::value_type value) {
  list.push_back(value);
  list.begin();
} && !std::is_same_v<T, std::string>;
}  // namespace internal

class ByteWriter {
 public:
  template <class... T>
  void operator()(const T&... values) {
    (Put(values), ...);
  }
  template <class E>
  void Enum(const E& value, E /*last*/) {
    Put(static_cast<uint8_t>(value));
  }
  const std::string& bytes() const { return bytes_; }
  std::string Take() { return std::move(bytes_); }

 private:
  template <class T>
  void Put(const T& value) {
    if constexpr (std::is_convertible_v<const T&, std::string_view>) {
      const std::string_view text = value;
      Put(static_cast<uint64_t>(text.size()));
      bytes_.append(text);
    } else if constexpr (internal::IsNumber<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (internal::IsList<T>) {
      Put(static_cast<uint64_t>(value.size()));
      for (const auto& element : value) Put(element);
    } else {
      Fields(*this, const_cast<T&>(value));  // which only reads it
    }
  }
  template <class A, class B>
  void Put(const std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class... T>
  void operator()(T&... values) {
    (Get(values), ...);
  }
  template <class E>
  void Enum(E& value, E last) {
    uint8_t number = 0;
    Get(number);
    if (number > static_cast<uint8_t>(last)) Fail();
    if (!failed_) value = static_cast<E>(number);
  }
  // Of what only the reader of a field can see.
  void Fail() { failed_ = true; }
  bool failed() const { return failed_; }
  std::string_view rest() const { return bytes_; }
  // InvalidArgument if the bytes were not of this kind, or there are more of them.
  Status Finish(std::string_view what) const {
    if (failed_) return InvalidArgument("damaged bytes where ", what, " should be");
    if (!bytes_.empty()) return InvalidArgument(bytes_.size(), " bytes too many after ", what);
    return OkStatus();
  }

 private:
  std::string_view TakeBytes(uint64_t size) {
    if (failed_ || size > bytes_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  template <class T>
  void Get(T& value) {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, std::string_view>) {
      uint64_t size = 0;
      Get(size);
      value = T(TakeBytes(size));
    } else if constexpr (std::is_same_v<T, bool>) {
      uint8_t number = 0;
      Get(number);
      if (number > 1) Fail();
      value = number == 1;
    } else if constexpr (internal::IsNumber<T>) {
      const std::string_view taken = TakeBytes(sizeof value);
      if (!failed_) std::memcpy(&value, taken.data(), sizeof value);
    } else if constexpr (internal::IsList<T>) {
      uint64_t size = 0;
      Get(size);
      if (size > bytes_.size()) Fail();  // an element takes a byte at least
      for (uint64_t n = 0; n < size && !failed_; ++n) {
        typename T::value_type element{};
        Get(element);
        value.push_back(std::move(element));
      }
    } else {
      Fields(*this, value);
    }
  }
  template <class A, class B>
  void Get(std::pair<A, B>& pair) {
    (*this)(pair.first, pair.second);
  }
  std::string_view bytes_;
  bool failed_ = false;
};

}  // namespace strop
