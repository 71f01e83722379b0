// Allocator: the caching allocator behind device buffers and the arena of each execution.
//
// Fresh memory from the system costs a page fault per 4 KB, more than most kernels take to fill it; so freed blocks are
// kept and handed out again. Sizes are rounded up to eight classes per power of two (waste <= 12.5 %). Each class is a
// free list under its own spin lock, held for a few instructions. Blocks of >= 1 MB are mapped, those of >= 4 MB
// aligned to and advised for huge pages; smaller ones come from the C library. The cache is bounded, and blocks that
// nobody asked for during two trim periods go back to the system (checked every few hundred frees, so idle memory
// shrinks while anything runs; TrimCache() returns all of it).
//
// Memory is 64-byte aligned and not zeroed. Thread-safe.
//
// With STROP_GUARD=1 or 2 nothing is cached: each block lies beside a page that nobody may touch (guarded_memory.h).
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "strop/base/status.h"
#include "strop/runtime/guarded_memory.h"

namespace strop {

inline constexpr int64_t kBufferAlignment = 64;

struct Block {
  void* data = nullptr;  // never null after a successful Allocate, even for 0 bytes
  int64_t capacity = 0;  // bytes usable at data, >= what was asked for
};

struct AllocatorStats {
  int64_t bytes_in_use = 0;  // handed out and not returned (capacities)
  int64_t peak_bytes_in_use = 0;
  int64_t num_allocs = 0;         // calls of Allocate that succeeded
  int64_t num_system_allocs = 0;  // of these, not served from the cache
  int64_t largest_alloc_size = 0;
  int64_t bytes_cached = 0;
  int64_t bytes_limit = 0;
};

class Allocator {
 public:
  struct Options {
    int64_t bytes_limit = 0;  // in use + cached; 0: the memory this process may use (UsableMemory)
    int64_t cache_limit = 0;  // 0: a quarter of bytes_limit
    int64_t trim_period_ms = 1000;
    std::optional<Guard> guard;  // without: as STROP_GUARD has it
  };
  Allocator() : Allocator(Options{}) {}
  explicit Allocator(Options options);
  ~Allocator();  // all blocks must have been returned
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  // InvalidArgument for negative sizes; ResourceExhausted, saying how much was asked, used and cached, when there is no
  // more (after the cache was given up).
  Result<Block> Allocate(int64_t bytes);
  void Free(Block block);

  AllocatorStats stats() const;
  void ResetPeak();
  // Returns every cached block to the system; the bytes returned.
  int64_t TrimCache();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace strop
