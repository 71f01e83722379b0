#include "strop/runtime/guarded_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace strop {
namespace {

constexpr int64_t kAlignment = 64;

// Where the pages of a block lie: [guard][pages] or [pages][guard], with the block at the guarded end.
struct Layout {
  Layout(int64_t bytes, Guard guard) : page(sysconf(_SC_PAGESIZE)) {
    const int64_t used = std::max((bytes + kAlignment - 1) / kAlignment, int64_t{1}) * kAlignment;
    const int64_t pages = (used + page - 1) / page * page;
    mapped = pages + page;
    block = guard == Guard::kBehind ? pages - used : page;
    guarded = guard == Guard::kBehind ? pages : 0;
  }

  int64_t page;
  int64_t mapped;          // bytes
  int64_t block, guarded;  // bytes from the mapping's begin
};

}  // namespace

void* GuardedAllocate(int64_t bytes, Guard guard) {
  const Layout layout(bytes, guard);
  void* mapping = mmap(nullptr, layout.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return nullptr;
  char* begin = static_cast<char*>(mapping);
  if (mprotect(begin + layout.guarded, layout.page, PROT_NONE) != 0) {
    munmap(mapping, layout.mapped);
    return nullptr;
  }
  std::memset(begin + layout.block, 0xff, bytes);
  return begin + layout.block;
}

void GuardedFree(void* data, int64_t bytes, Guard guard) {
  const Layout layout(bytes, guard);
  munmap(static_cast<char*>(data) - layout.block, layout.mapped);
}

}  // namespace strop
