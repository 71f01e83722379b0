// Scratch memory shared out, each part aligned as the whole.
#pragma once
#include <cstdint>

namespace strop::lapack {

template <class E>
int64_t ScratchBytes(int64_t elements) {
  constexpr int64_t kAlign = 64;
  return (elements * static_cast<int64_t>(sizeof(E)) + kAlign - 1) / kAlign * kAlign;
}

struct ScratchParts {
  // Room for so many elements, behind what was taken before.
  template <class E>
  void Take(E** at, int64_t elements) {
    *at = reinterpret_cast<E*>(next);
    next += ScratchBytes<E>(elements);
  }
  char* next;  // 64-byte aligned
};

}  // namespace strop::lapack
