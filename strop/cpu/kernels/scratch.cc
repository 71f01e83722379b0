#include "strop/cpu/kernels/scratch.h"

namespace strop::cpu {

Allocator& ScratchAllocator() {
  // Never destroyed: threads may still run kernels while the process ends.
  static Allocator& allocator = *new Allocator({.cache_limit = int64_t{256} << 20});
  return allocator;
}

}  // namespace strop::cpu
