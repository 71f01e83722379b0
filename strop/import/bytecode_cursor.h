// A bounds-checked reader over a part of a bytecode file, with MLIR's integer encodings. The first error sticks; after
// it, every read gives zero, so that a decoder may read a whole record and have ok() checked once. Lists are refused
// where they claim more entries than there are bytes left (every entry takes at least one).
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace strop {

class ByteCursor {
 public:
  ByteCursor() = default;
  // `base` is the offset of the first byte in the file, for messages.
  ByteCursor(std::span<const uint8_t> bytes, size_t base) : bytes_(bytes), base_(base) {}

  bool ok() const { return status_.ok(); }
  const Status& status() const { return status_; }
  bool empty() const { return pos_ == bytes_.size(); }
  size_t left() const { return ok() ? bytes_.size() - pos_ : 0; }
  size_t offset() const { return base_ + pos_; }

  template <class... Args>
  void Fail(const Args&... args) {
    if (ok()) status_ = InvalidArgument(args...).At(StrCat("byte ", offset()));
  }

  uint8_t Byte() {
    if (!ok() || empty()) {
      Fail("unexpected end of the bytecode section");
      return 0;
    }
    return bytes_[pos_++];
  }

  std::span<const uint8_t> Bytes(uint64_t n) {
    if (n > left()) {
      Fail("the bytecode claims ", n, " bytes where ", left(), " are left");
      return {};
    }
    std::span<const uint8_t> out = bytes_.subspan(pos_, n);
    pos_ += n;
    return out;
  }

  // The number of trailing zeros of the first byte is the number of bytes that follow.
  uint64_t Varint() {
    uint8_t first = Byte();
    if (first & 1) return first >> 1;
    int extra = first == 0 ? 8 : std::countr_zero(first);
    std::span<const uint8_t> rest = Bytes(extra);
    if (!ok()) return 0;
    uint64_t value = 0;
    std::memcpy(&value, rest.data(), extra);
    if (extra == 8) return value;
    return (value << 8 | first) >> (extra + 1);
  }

  int64_t SignedVarint() {
    uint64_t v = Varint();
    return static_cast<int64_t>((v >> 1) ^ (~(v & 1) + 1));
  }

  uint64_t VarintWithFlag(bool& flag) {
    uint64_t v = Varint();
    flag = v & 1;
    return v >> 1;
  }

  // Length of a list whose entries take at least one byte each.
  uint64_t Count(std::string_view what) {
    uint64_t n = Varint();
    if (n <= left()) return n;
    Fail("the bytecode claims ", n, " ", what, " where ", left(), " bytes are left");
    return 0;
  }

  std::string_view CString() {
    const void* end = left() ? std::memchr(bytes_.data() + pos_, 0, left()) : nullptr;
    if (!end) {
      Fail("a string has no terminating zero");
      return {};
    }
    const char* begin = reinterpret_cast<const char*>(bytes_.data() + pos_);
    size_t size = static_cast<const char*>(end) - begin;
    pos_ += size + 1;
    return {begin, size};
  }

  // Skips padding until the offset in the file is a multiple of `alignment`.
  void AlignTo(uint64_t alignment) {
    if (alignment == 0 || !std::has_single_bit(alignment))
      return Fail("section alignment ", alignment, " is not a power of two");
    while (ok() && offset() % alignment != 0) {
      if (Byte() != 0xCB) Fail("expected a padding byte (0xCB)");
    }
  }

  // id | aligned << 7, length, [alignment, padding], data
  ByteCursor Section(int& id) {
    uint8_t head = Byte();
    uint64_t length = Varint();
    if (head & 0x80) AlignTo(Varint());
    id = head & 0x7f;
    size_t at = offset();
    return ByteCursor(Bytes(length), at);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t base_ = 0;
  size_t pos_ = 0;
  Status status_;
};

}  // namespace strop
