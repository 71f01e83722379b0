// What this machine can do at best, as our own code reaches it: the inner kernel of products on what the first cache
// level holds, and copies of blocks of some sizes. The best of a few tries each; all of it in some ten milliseconds.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "strop/base/thread_pool.h"
#include "strop/cpu/cpu_backend.h"
#include "strop/cpu/kernels/gemm_micro.h"

namespace strop::cpu {
namespace {

constexpr int64_t kPanelLength = 128;  // of what is multiplied
constexpr int kProducts = 500;
constexpr int64_t kFootprints[] = {256 << 10, 4 << 20, 32 << 20};  // a core's cache, a shared one, memory
constexpr int64_t kBytesATry = 32 << 20;                           // copied
constexpr int kTries = 4;
constexpr int64_t kPiece = 64 << 10;  // that a task copies at a time

template <class Fn>
double BestSeconds(Fn&& fn) {
  double best = 1e30;
  for (int n = 0; n < kTries; ++n) {
    const auto begin = std::chrono::steady_clock::now();
    fn();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return std::max(best, 1e-9);
}

std::unique_ptr<uint8_t[]> Touched(int64_t bytes) {
  std::unique_ptr<uint8_t[]> memory(new (std::nothrow) uint8_t[static_cast<size_t>(bytes)]);
  if (memory) std::memset(memory.get(), 0, static_cast<size_t>(bytes));
  return memory;
}

// Of the inner kernel of GEMM on panels that the first cache level holds: nothing but multiply-adds.
double MeasureFlops(ThreadPool& pool) {
  const MicroTable<float>& micro = BestGemmIsa().f32;
  const int64_t panel_bytes = (micro.mr + micro.nr) * kPanelLength * static_cast<int64_t>(sizeof(float));
  const int64_t bytes = (panel_bytes + micro.mr * micro.nr * static_cast<int64_t>(sizeof(float)) + 63) / 64 * 64;
  const int64_t tasks = pool.num_threads();
  const auto memory = Touched(bytes * tasks + 64);
  if (!memory) return 0;
  const uintptr_t first = (reinterpret_cast<uintptr_t>(memory.get()) + 63) / 64 * 64;
  const double seconds = BestSeconds([&] {
    pool.ParallelFor(tasks, [&](int64_t task) {
      const float* b = reinterpret_cast<const float*>(first + static_cast<uintptr_t>(task * bytes));
      const float* a = b + micro.nr * kPanelLength;
      float* c = const_cast<float*>(a + micro.mr * kPanelLength);
      for (int n = 0; n < kProducts; ++n) micro.kernel[micro.mr - 1](kPanelLength, a, b, micro.nr, c, micro.nr, false);
    });
  });
  return 2.0 * static_cast<double>(micro.mr * micro.nr * kPanelLength) * kProducts * static_cast<double>(tasks) /
         seconds;
}

// Of reading one half of the footprint and writing the other.
double MeasureBandwidth(ThreadPool& pool, int64_t footprint) {
  const auto memory = Touched(footprint);
  if (!memory) return 0;
  const int64_t half = footprint / 2, pieces = half / kPiece;
  const int64_t rounds = std::max<int64_t>(1, kBytesATry / footprint);
  const double seconds = BestSeconds([&] {
    for (int64_t round = 0; round < rounds; ++round)
      pool.ParallelFor(pieces, [&](int64_t piece) {
        std::memcpy(memory.get() + half + piece * kPiece, memory.get() + piece * kPiece, kPiece);
      });
  });
  return static_cast<double>(rounds * footprint) / seconds;
}

}  // namespace

MachinePeaks CpuBackend::MeasurePeaks() const {
  ThreadPool& pool = ThreadPool::Default();
  MachinePeaks peaks;
  peaks.flops_per_second = MeasureFlops(pool);
  for (int64_t footprint : kFootprints) {
    peaks.bandwidths.push_back({footprint, MeasureBandwidth(pool, footprint)});
  }
  // A larger block is not faster: where it seems so, the threads were still waking up.
  for (size_t k = peaks.bandwidths.size(); k-- > 1;)
    peaks.bandwidths[k - 1].bytes_per_second =
        std::max(peaks.bandwidths[k - 1].bytes_per_second, peaks.bandwidths[k].bytes_per_second);
  peaks.how = StrCat("measured with ", pool.num_threads(), " threads: multiply-adds of f32, copies of blocks");
  return peaks;
}

}  // namespace strop::cpu
