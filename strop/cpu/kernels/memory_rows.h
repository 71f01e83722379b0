// What a kernel is going to read, and asks for ahead of time.
#pragma once
#include <cstdint>

namespace strop::cpu {

// Pieces of memory, `stride` bytes apart.
struct MemoryRows {
  const uint8_t* from = nullptr;
  int64_t stride = 0, rows = 0, row_bytes = 0;
};

}  // namespace strop::cpu
