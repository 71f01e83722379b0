// What this machine can do at best, as our own code reaches it: the product of two matrices that fit the second cache
// level, and copies of blocks of some sizes. The best of a few tries each; all of it in some ten milliseconds.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>

#include "strop/base/thread_pool.h"
#include "strop/cpu/cpu_backend.h"
#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSide = 512;                                     // of the matrices
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

double MeasureFlops(ThreadPool& pool) {
  GemmProblem problem;
  problem.m = problem.n = problem.k = kSide;
  problem.a = problem.b = problem.c = {ElementType::F32, kSide, 1, kSide * kSide};
  Result<std::shared_ptr<const Gemm>> gemm = Gemm::Create(problem);
  if (!gemm.ok()) return 0;
  const int64_t scratch_bytes = ((*gemm)->scratch_bytes() + 63) / 64 * 64;
  const auto matrices = Touched(3 * kSide * kSide * 4 + 64);
  const auto scratch = Touched(scratch_bytes * pool.num_threads() + 64);
  if (!matrices || !scratch) return 0;
  const auto aligned = [](uint8_t* p) {
    return reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(p) + 63) / 64 * 64);
  };
  uint8_t* a = aligned(matrices.get());
  uint8_t* b = a + kSide * kSide * 4;
  uint8_t* c = b + kSide * kSide * 4;
  const double seconds = BestSeconds([&] {
    pool.ParallelForRuns((*gemm)->num_tasks(), [&](int64_t begin, int64_t end, int participant) {
      (*gemm)->Run(a, b, c, begin, end, aligned(scratch.get()) + participant * scratch_bytes);
    });
  });
  return 2.0 * kSide * kSide * kSide / seconds;
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
  peaks.how = StrCat("measured with ", pool.num_threads(), " threads: a product of ", kSide, "x", kSide,
                     " matrices of f32, copies of blocks");
  return peaks;
}

}  // namespace strop::cpu
