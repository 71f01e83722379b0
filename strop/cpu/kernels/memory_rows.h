// What a kernel is going to read, and asks for or copies ahead of time.
#pragma once
#include <algorithm>
#include <cstdint>

#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {

// Pieces of memory, `stride` bytes apart.
struct MemoryRows {
  const uint8_t* from = nullptr;
  int64_t stride = 0, rows = 0, row_bytes = 0;
};

// Rows of memory in pieces of so many elements, row by row. Those that are copied become panels as wide as a piece; all
// distances are in elements.
template <class T>
struct PiecesAhead {
  const T* from = nullptr;        // the next piece
  int64_t stride = 0, a_row = 1;  // of rows, and the pieces of one
  int64_t count = 0;              // of pieces
  T* to = nullptr;                // where the next piece is copied to; null: nowhere
  int64_t distance = 0;           // of panels
  int64_t piece = 0;              // of its row, the next one

  static PiecesAhead Of(const MemoryRows& memory, int64_t width) {
    constexpr int64_t kBytes = sizeof(T);
    const int64_t a_row = CeilDiv(memory.row_bytes, width * kBytes);
    return {reinterpret_cast<const T*>(memory.from), memory.stride / kBytes, a_row, memory.rows * a_row};
  }
  // The share of a part of so many.
  PiecesAhead Part(int64_t part, int64_t parts, int64_t width) const {
    const int64_t begin = count * part / parts, row = begin / a_row;
    PiecesAhead share = *this;
    share.count = count * (part + 1) / parts - begin;
    share.piece = begin % a_row;
    share.from += row * stride + share.piece * width;
    if (to) share.to += row * width + share.piece * distance;
    return share;
  }
  // Copies the pieces, or asks for them, here and now.
  void Finish(int64_t width) const {
    const T* source = from;
    T* target = to;
    for (int64_t i = 0, n = piece; i < count; ++i) {
      if (to)
        std::copy_n(source, width, target);
      else
        for (int64_t j = 0; j < width; j += 64 / static_cast<int64_t>(sizeof(T))) __builtin_prefetch(source + j, 0, 2);
      source += width, target += distance;
      if (++n == a_row) n = 0, source += stride - a_row * width, target += width - a_row * distance;
    }
    // GCC takes what only prefetches for a function without effects, and drops the calls of it.
    asm volatile("");
  }
};

}  // namespace strop::cpu
