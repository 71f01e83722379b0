// Memory that a program must not leave: blocks of whole pages of their own beside a page that nobody may touch. A read
// or write beyond the block ends the process with SIGSEGV where it happens, in generated code as well as in the
// library's, which sanitizers do not see; so does any use of a block that was given back. The option `guard` chooses it
// for all that an Allocator hands out. For tests: each block costs system calls and fresh pages.
#pragma once
#include <cstdint>

namespace strop {

enum class Guard {
  kNone = 0,
  kBehind = 1,   // the block ends where the guarded page begins, up to less than 64 bytes of alignment
  kInFront = 2,  // the block begins where the guarded page ends
};

// `bytes` >= 0 at an address that is a multiple of 64, filled with 0xff bytes (NaN, -1); null if the system has none.
void* GuardedAllocate(int64_t bytes, Guard guard);
// `data` and `bytes` as above.
void GuardedFree(void* data, int64_t bytes, Guard guard);

}  // namespace strop
