// Elements of less than 8 bits: buffers hold one a byte, FFI handlers expect them packed, the first in the low bits.
#pragma once
#include <cstdint>

#include "strop/types/element_type.h"

namespace strop {

// ceil(count * Bits(type) / 8); what the last byte has to spare is zero.
void PackSubByte(ElementType type, int64_t count, const void* bytes, void* packed);
// The other way; signed integers are extended to the byte.
void UnpackSubByte(ElementType type, int64_t count, const void* packed, void* bytes);

}  // namespace strop
