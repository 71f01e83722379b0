// Scratch<T>: uninitialised, 64-byte aligned memory for the duration of a kernel; get() is null when there is none.
#pragma once
#include <cstdint>
#include <type_traits>

#include "strop/runtime/allocator.h"

namespace strop::cpu {

// What library kernels work in beside the memory that a plan gives them: one for the process, since they know no
// device. It keeps up to 256 MiB for the next kernel.
Allocator& ScratchAllocator();

template <class T>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kBufferAlignment);

 public:
  explicit Scratch(int64_t n) {
    int64_t bytes;
    if (__builtin_mul_overflow(n, static_cast<int64_t>(sizeof(T)), &bytes)) return;
    if (Result<Block> block = ScratchAllocator().Allocate(bytes); block.ok()) block_ = *block;
  }
  ~Scratch() {
    if (block_.data) ScratchAllocator().Free(block_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  T* get() const { return static_cast<T*>(block_.data); }

 private:
  Block block_;
};

}  // namespace strop::cpu
