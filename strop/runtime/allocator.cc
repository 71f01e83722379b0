#include "strop/runtime/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "strop/base/host_limits.h"
#include "strop/base/options.h"
#include "strop/base/spin_lock.h"

namespace strop {
namespace {

constexpr int64_t kSmallestBlock = 64;
constexpr int64_t kMapBytes = 1 << 20;   // from here on blocks are mapped, not malloc'ed
constexpr int64_t kHugeBytes = 4 << 20;  // from here on huge pages are asked for
constexpr int64_t kHugePage = 2 << 20;
constexpr int64_t kLargestBlock = int64_t{1} << 46;
constexpr int kClassesPerDoubling = 8;

// Class c holds blocks of ClassBytes(c): 64, 128, 192, ..., 512, then eight steps per doubling.
int ClassOf(int64_t bytes) {
  bytes = std::max(bytes, kSmallestBlock);
  if (bytes <= kSmallestBlock * kClassesPerDoubling)
    return static_cast<int>((bytes + kSmallestBlock - 1) / kSmallestBlock) - 1;
  int log2 = 63 - std::countl_zero(static_cast<uint64_t>(bytes - 1));  // 2^log2 < bytes <= 2^(log2+1)
  int64_t step = (int64_t{1} << log2) / kClassesPerDoubling;
  int within = static_cast<int>((bytes - (int64_t{1} << log2) + step - 1) / step);  // 1..8
  return kClassesPerDoubling * (log2 - 9 + 1) + within - 1;
}
constexpr int64_t ClassBytes(int c) {
  if (c < kClassesPerDoubling) return (c + 1) * kSmallestBlock;
  int64_t base = int64_t{1} << (c / kClassesPerDoubling - 1 + 9);
  return base + base / kClassesPerDoubling * (c % kClassesPerDoubling + 1);
}
constexpr int kNumClasses = kClassesPerDoubling * (46 - 9 + 1);

void* MapPages(int64_t bytes) {
  bool huge = bytes >= kHugeBytes;
  // Over-map by a huge page and give the unaligned ends back, so that the block starts on a huge page.
  int64_t mapped = huge ? bytes + kHugePage : bytes;
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  if (!huge) return p;
  char* begin = static_cast<char*>(p);
  int64_t head = (kHugePage - static_cast<int64_t>(reinterpret_cast<uintptr_t>(p) % kHugePage)) % kHugePage;
  if (head) munmap(begin, head);
  if (int64_t tail = mapped - head - bytes) munmap(begin + head + bytes, tail);
  madvise(begin + head, bytes, MADV_HUGEPAGE);  // advice: a kernel without huge pages may refuse
  return begin + head;
}

Guard GuardOfEnvironment() {
  const Result<Options> options = OptionsFromEnvironment();
  return options.ok() ? static_cast<Guard>(options->guard) : Guard::kNone;
}

void* SystemAllocate(int64_t bytes, Guard guard) {
  if (guard != Guard::kNone) return GuardedAllocate(bytes, guard);
  if (bytes >= kMapBytes) return MapPages(bytes);
  return std::aligned_alloc(kBufferAlignment, bytes);
}

void SystemFree(void* data, int64_t bytes, Guard guard) {
  if (guard != Guard::kNone)
    GuardedFree(data, bytes, guard);
  else if (bytes >= kMapBytes)
    munmap(data, bytes);
  else
    std::free(data);
}

// "1536 bytes (1.5 KiB)"
std::string Amount(int64_t bytes) {
  static constexpr const char* kUnits[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  int unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit < 6) {
    value /= 1024;
    ++unit;
  }
  if (unit == 0) return StrCat(bytes, " bytes");
  return StrCat(bytes, " bytes (", static_cast<int64_t>(value * 10) / 10.0, " ", kUnits[unit], ")");
}

// Cached blocks of one class, linked through their first word. Ninety percent of all calls touch just one of these.
struct alignas(64) FreeList {
  SpinLock lock;
  void* head = nullptr;
  int64_t count = 0;
  int64_t low_water = 0;  // fewest cached since the last trim: so many were not needed
};

}  // namespace

struct Allocator::Impl {
  Options options;
  std::array<FreeList, kNumClasses> lists;
  std::atomic<int64_t> in_use{0}, peak{0}, allocs{0}, system_allocs{0}, largest{0}, cached{0};
  std::atomic<uint32_t> frees{0};
  std::atomic<int64_t> next_trim_ms{0};

  void* Pop(int c) {
    FreeList& list = lists[c];
    std::lock_guard<SpinLock> lock(list.lock);
    void* p = list.head;
    if (!p) return nullptr;
    list.head = *static_cast<void**>(p);
    --list.count;
    list.low_water = std::min(list.low_water, list.count);
    return p;
  }
  void Push(int c, void* p) {
    FreeList& list = lists[c];
    std::lock_guard<SpinLock> lock(list.lock);
    *static_cast<void**>(p) = list.head;
    list.head = p;
    ++list.count;
  }

  static int64_t NowMs() {
    using namespace std::chrono;
    return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
  }

  // Gives back up to `max_bytes` of class `c`, at most `max_count` blocks; the bytes given back.
  int64_t Release(int c, int64_t max_count) {
    int64_t bytes = ClassBytes(c), released = 0;
    for (; max_count > 0; --max_count) {
      void* p = Pop(c);
      if (!p) break;
      SystemFree(p, bytes, *options.guard);
      released += bytes;
    }
    cached.fetch_sub(released, std::memory_order_relaxed);
    return released;
  }
  // Gives back what nobody asked for since the last call.
  void TrimIdle() {
    for (int c = 0; c < kNumClasses; ++c) {
      FreeList& list = lists[c];
      int64_t idle;
      {
        std::lock_guard<SpinLock> lock(list.lock);
        idle = list.low_water;
        list.low_water = list.count;
      }
      if (idle > 0) Release(c, idle);
    }
  }
  void TrimIfDue() {
    if (frees.fetch_add(1, std::memory_order_relaxed) % 256 != 255) return;
    int64_t now = NowMs(), due = next_trim_ms.load(std::memory_order_relaxed);
    if (now < due || !next_trim_ms.compare_exchange_strong(due, now + options.trim_period_ms)) return;
    if (due != 0) TrimIdle();
  }
  int64_t TrimAll() {
    int64_t released = 0;
    for (int c = kNumClasses - 1; c >= 0; --c) released += Release(c, INT64_MAX);
    return released;
  }
  // Makes room for `bytes` more in the cache, giving up large blocks first.
  void EvictFor(int64_t bytes) {
    for (int c = kNumClasses - 1; c >= 0; --c) {
      while (cached.load(std::memory_order_relaxed) + bytes > options.cache_limit) {
        if (Release(c, 1) == 0) break;
      }
    }
  }
  Status Exhausted(int64_t bytes, const char* why) {
    return ResourceExhausted("out of memory: cannot allocate ", Amount(bytes), ": ", why, "; in use ",
                             Amount(in_use.load()), ", cached ", Amount(cached.load()), ", limit ",
                             Amount(options.bytes_limit));
  }
};

Allocator::Allocator(Options options) : impl_(std::make_unique<Impl>()) {
  if (options.bytes_limit <= 0) options.bytes_limit = UsableMemory();
  if (options.cache_limit <= 0) options.cache_limit = options.bytes_limit / 4;
  if (!options.guard) options.guard = GuardOfEnvironment();
  if (*options.guard != Guard::kNone) options.cache_limit = 0;
  impl_->options = options;
}

Allocator::~Allocator() { impl_->TrimAll(); }

Result<Block> Allocator::Allocate(int64_t bytes) {
  Impl& impl = *impl_;
  if (bytes < 0) return InvalidArgument("cannot allocate ", bytes, " bytes");
  if (bytes > kLargestBlock) return impl.Exhausted(bytes, "more than any machine has");
  int c = ClassOf(bytes);
  const Guard guard = *impl.options.guard;
  int64_t capacity = guard == Guard::kNone ? ClassBytes(c) : bytes;
  int64_t in_use = impl.in_use.fetch_add(capacity, std::memory_order_relaxed) + capacity;
  void* p = impl.Pop(c);  // nothing is cached where blocks are guarded
  if (p) {
    impl.cached.fetch_sub(capacity, std::memory_order_relaxed);
  } else {
    bool within = in_use <= impl.options.bytes_limit;
    if (within && in_use + impl.cached.load(std::memory_order_relaxed) > impl.options.bytes_limit) impl.TrimAll();
    if (within) p = SystemAllocate(capacity, guard);
    if (!p && within && impl.TrimAll() > 0) p = SystemAllocate(capacity, guard);
    if (!p) {
      impl.in_use.fetch_sub(capacity, std::memory_order_relaxed);
      return impl.Exhausted(bytes, within ? "the system has no more" : "over the limit");
    }
    impl.system_allocs.fetch_add(1, std::memory_order_relaxed);
  }
  impl.allocs.fetch_add(1, std::memory_order_relaxed);
  for (auto [counter, value] : {std::pair{&impl.peak, in_use}, std::pair{&impl.largest, capacity}}) {
    int64_t seen = counter->load(std::memory_order_relaxed);
    while (value > seen && !counter->compare_exchange_weak(seen, value, std::memory_order_relaxed)) {}
  }
  return Block{p, capacity};
}

void Allocator::Free(Block block) {
  if (!block.data) return;
  Impl& impl = *impl_;
  impl.in_use.fetch_sub(block.capacity, std::memory_order_relaxed);
  if (const Guard guard = *impl.options.guard; guard != Guard::kNone || block.capacity > impl.options.cache_limit) {
    SystemFree(block.data, block.capacity, guard);
    return;
  }
  if (impl.cached.load(std::memory_order_relaxed) + block.capacity > impl.options.cache_limit) {
    impl.EvictFor(block.capacity);
  }
  impl.cached.fetch_add(block.capacity, std::memory_order_relaxed);
  impl.Push(ClassOf(block.capacity), block.data);
  impl.TrimIfDue();
}

AllocatorStats Allocator::stats() const {
  const Impl& impl = *impl_;
  return {.bytes_in_use = impl.in_use,
          .peak_bytes_in_use = impl.peak,
          .num_allocs = impl.allocs,
          .num_system_allocs = impl.system_allocs,
          .largest_alloc_size = impl.largest,
          .bytes_cached = impl.cached,
          .bytes_limit = impl.options.bytes_limit};
}

void Allocator::ResetPeak() { impl_->peak = impl_->in_use.load(); }

int64_t Allocator::TrimCache() { return impl_->TrimAll(); }

}  // namespace strop
