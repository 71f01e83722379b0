// Bytes being written, with MLIR's integer encodings: the counterpart of ByteCursor.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace strop {

class ByteSink {
 public:
  const std::string& bytes() const { return bytes_; }

  void Byte(uint8_t value) { bytes_ += static_cast<char>(value); }
  void Bytes(std::string_view data) { bytes_ += data; }

  // The number of trailing zeros of the first byte is the number of bytes that follow.
  void Varint(uint64_t value) {
    int extra = 0;
    while (extra < 8 && value >> (7 * (extra + 1)) != 0) ++extra;
    if (extra == 8) {
      Byte(0);
      for (int i = 0; i < 8; ++i) Byte(static_cast<uint8_t>(value >> (8 * i)));
      return;
    }
    const uint64_t word = (value << 1 | 1) << extra;
    for (int i = 0; i <= extra; ++i) Byte(static_cast<uint8_t>(word >> (8 * i)));
  }
  void SignedVarint(int64_t value) { Varint(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  void VarintWithFlag(uint64_t value, bool flag) { Varint(value << 1 | flag); }

  // An integer of a known width, of which `value` holds the bits.
  void Int(uint64_t value, uint32_t width) {
    if (width < 64) value &= (uint64_t{1} << width) - 1;
    if (width <= 8) {
      Byte(static_cast<uint8_t>(value));
    } else {
      SignedVarint(static_cast<int64_t>(value));
    }
  }
  void Blob(std::string_view data) {
    Varint(data.size());
    Bytes(data);
  }
  void Section(int id, const std::string& data) {
    Byte(static_cast<uint8_t>(id));
    Blob(data);
  }

 private:
  std::string bytes_;
};

}  // namespace strop
