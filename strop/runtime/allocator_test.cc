#include "strop/runtime/allocator.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#ifdef __SANITIZE_ADDRESS__
// The sanitizer takes the signal that tests of guarded memory wait for.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() { return "handle_segv=0"; }
#endif

namespace strop {
namespace {

TEST(Allocator, AlignsAndRoundsUpByAtMostAnEighth) {
  Allocator allocator;
  for (int64_t bytes :
       {0, 1, 63, 64, 65, 512, 513, 576, 577, 1000, 1024, 1025, 4097, 1 << 20, (1 << 20) + 1, 5 << 20}) {
    Block block = *allocator.Allocate(bytes);
    ASSERT_NE(block.data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % kBufferAlignment, 0u);
    EXPECT_GE(block.capacity, bytes);
    EXPECT_LE(block.capacity, std::max<int64_t>(bytes + 64, bytes * 9 / 8)) << bytes;
    std::memset(block.data, 0xab, block.capacity);
    allocator.Free(block);
  }
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
}

TEST(Allocator, EveryCapacityIsItsOwnClass) {
  Allocator allocator;
  for (int64_t bytes = 1; bytes < 3 << 20; bytes += 1 + bytes / 37) {
    Block first = *allocator.Allocate(bytes);
    allocator.Free(first);
    Block again = *allocator.Allocate(first.capacity);
    EXPECT_EQ(again.data, first.data) << bytes;
    EXPECT_EQ(again.capacity, first.capacity);
    allocator.Free(again);
  }
}

TEST(Allocator, ReusesFreedBlocks) {
  Allocator allocator;
  for (int i = 0; i < 100; ++i) allocator.Free(*allocator.Allocate(8 << 20));
  AllocatorStats stats = allocator.stats();
  EXPECT_EQ(stats.num_allocs, 100);
  EXPECT_EQ(stats.num_system_allocs, 1);
  EXPECT_EQ(stats.largest_alloc_size, 8 << 20);
  EXPECT_EQ(stats.peak_bytes_in_use, 8 << 20);
  EXPECT_EQ(stats.bytes_cached, 8 << 20);
  EXPECT_EQ(allocator.TrimCache(), 8 << 20);
  EXPECT_EQ(allocator.stats().bytes_cached, 0);
}

TEST(Allocator, RefusesWhatDoesNotFit) {
  Allocator allocator({.bytes_limit = 1 << 20});
  Block half = *allocator.Allocate(512 << 10);
  Result<Block> refused = allocator.Allocate(768 << 10);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(
      refused.status().message(),
      "out of memory: cannot allocate 786432 bytes (768 KiB): over the limit; in use 524288 bytes (512 KiB), cached 0 "
      "bytes, limit 1048576 bytes (1 MiB)");
  EXPECT_EQ(allocator.Allocate(INT64_MAX).status().code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(allocator.Allocate(-1).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(allocator.stats().bytes_in_use, 512 << 10);
  allocator.Free(half);
}

TEST(Allocator, CacheGivesWayToTheLimitAndIsBounded) {
  Allocator allocator({.bytes_limit = 8 << 20, .cache_limit = 4 << 20});
  allocator.Free(*allocator.Allocate(3 << 20));
  allocator.Free(*allocator.Allocate(2 << 20));  // evicts the larger one
  EXPECT_EQ(allocator.stats().bytes_cached, 2 << 20);
  allocator.Free(*allocator.Allocate(5 << 20));  // larger than the whole cache: not kept
  EXPECT_EQ(allocator.stats().bytes_cached, 2 << 20);
  Block seven = *allocator.Allocate(7 << 20);  // needs the cache to be given up
  EXPECT_EQ(allocator.stats().bytes_cached, 0);
  allocator.Free(seven);
}

TEST(Allocator, IdleBlocksGoBackWhileOthersWork) {
  Allocator allocator({.trim_period_ms = 1});
  allocator.Free(*allocator.Allocate(6 << 20));
  auto start = std::chrono::steady_clock::now();
  while (allocator.stats().bytes_cached > 1 << 20 &&
         std::chrono::steady_clock::now() - start < std::chrono::seconds(20)) {
    for (int i = 0; i < 300; ++i) allocator.Free(*allocator.Allocate(100));
  }
  EXPECT_LT(allocator.stats().bytes_cached, 1 << 20);
}

TEST(Allocator, ThreadsShareIt) {
  Allocator allocator;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<Block> held;
      for (int i = 0; i < 2000; ++i) {
        Block block = *allocator.Allocate(1 + random() % 10000);
        std::memset(block.data, t, block.capacity);
        held.push_back(block);
        if (held.size() > 20) {
          size_t k = random() % held.size();
          for (int64_t b = 0; b < held[k].capacity; b += 61) ASSERT_EQ(static_cast<char*>(held[k].data)[b], t);
          allocator.Free(held[k]);
          held.erase(held.begin() + k);
        }
      }
      for (Block block : held) allocator.Free(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(allocator.stats().bytes_in_use, 0);
  EXPECT_EQ(allocator.stats().num_allocs, 8000);
}

// Volatile, so that no compiler leaves the access out.
void Touch(void* base, int64_t offset) { static_cast<volatile char*>(base)[offset] = 1; }

TEST(AllocatorDeathTest, GuardsWhatLiesBehindOrInFront) {
  for (int64_t bytes : {0, 1, 64, 100, 4096, 5000, 3 << 20}) {
    Allocator behind({.guard = Guard::kBehind}), in_front({.guard = Guard::kInFront});
    const Block before_page = *behind.Allocate(bytes), after_page = *in_front.Allocate(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(before_page.data) % kBufferAlignment, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(after_page.data) % kBufferAlignment, 0u);
    std::memset(before_page.data, 1, bytes);
    std::memset(after_page.data, 1, bytes);
    const int64_t end = std::max<int64_t>((bytes + 63) / 64, 1) * 64;
    EXPECT_EXIT(Touch(before_page.data, end), testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(Touch(after_page.data, -1), testing::KilledBySignal(SIGSEGV), "");
    behind.Free(before_page);
    in_front.Free(after_page);
    EXPECT_EXIT(Touch(before_page.data, 0), testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EQ(behind.stats().bytes_in_use, 0);
    EXPECT_EQ(behind.stats().bytes_cached, 0);
  }
}

}  // namespace
}  // namespace strop
