#include "strop/runtime/sub_byte.h"

namespace strop {

void PackSubByte(ElementType type, int64_t count, const void* bytes, void* packed) {
  const int bits = Bits(type), a_byte = 8 / bits;
  const uint8_t mask = static_cast<uint8_t>((1 << bits) - 1);
  const uint8_t* in = static_cast<const uint8_t*>(bytes);
  uint8_t* out = static_cast<uint8_t*>(packed);
  for (int64_t i = 0; i < count; ++out) {
    unsigned byte = 0;
    for (int k = 0; k < a_byte && i < count; ++k, ++i) byte |= static_cast<unsigned>(in[i] & mask) << (bits * k);
    *out = static_cast<uint8_t>(byte);
  }
}

void UnpackSubByte(ElementType type, int64_t count, const void* packed, void* bytes) {
  const int bits = Bits(type), a_byte = 8 / bits, unused = 8 - bits;
  const uint8_t* in = static_cast<const uint8_t*>(packed);
  uint8_t* out = static_cast<uint8_t*>(bytes);
  for (int64_t i = 0; i < count; ++i) {
    const uint8_t raw = static_cast<uint8_t>(in[i / a_byte] >> (bits * (i % a_byte)) << unused);
    out[i] = IsSigned(type) ? static_cast<uint8_t>(static_cast<int8_t>(raw) >> unused) : raw >> unused;
  }
}

}  // namespace strop
