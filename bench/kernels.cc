// The library's kernels by themselves, beside OpenBLAS where that has the same (opened at run time, left out without
// it): `./dev bench --kernels [--benchmark_filter=REGEX]`. `of peak`: the share of what the machine can do at best, by
// arithmetic (MachinePeaks::flops_per_second, of f32) or by reading memory.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "strop/base/thread_pool.h"
#include "strop/cpu/cpu_backend.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/sort.h"

namespace strop::cpu {
namespace {

const MachinePeaks& Peaks() {
  static const MachinePeaks peaks = CpuBackend().MeasurePeaks();
  return peaks;
}

// Aligned to a cache line, filled with numbers between -1 and 1 (of integers, between -8 and 8).
template <class T>
class Array {
 public:
  explicit Array(int64_t size) : memory_(static_cast<size_t>(size) + 64 / sizeof(T)) {
    std::mt19937 random(static_cast<uint32_t>(size));
    for (T& x : memory_) {
      if constexpr (sizeof(T) == 4)
        x = static_cast<float>(random() % 2001) / 1000 - 1;
      else if constexpr (sizeof(T) == 2)
        x = static_cast<T>(0x3f00 | (random() & 0x807f));  // a bf16
      else
        x = static_cast<T>(static_cast<int>(random() % 17) - 8);
    }
  }
  T* data() { return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(memory_.data()) + 63) / 64 * 64); }

 private:
  std::vector<T> memory_;
};

void RunGemm(const Gemm& gemm, GemmCall call, uint8_t* shared, uint8_t* scratch, int64_t scratch_bytes) {
  ThreadPool& pool = ThreadPool::Default();
  call.shared = shared;
  for (call.round = 0; call.round < gemm.rounds(); ++call.round) {
    pool.ParallelForRuns(gemm.prepare_tasks(),
                         [&](int64_t begin, int64_t end, int) { gemm.Prepare(call, begin, end); });
    pool.ParallelForRuns(gemm.num_tasks(), [&](int64_t begin, int64_t end, int participant) {
      gemm.Run(call, begin, end, scratch + participant * scratch_bytes);
    });
  }
}

// C = A B, row-major; m, n and k are the arguments.
template <class T, class Sum>
void Product(benchmark::State& state, ElementType type, ElementType sum) {
  const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  const GemmProblem problem{1, m, n, k, {type, k, 1, m * k}, {type, n, 1, k * n}, {sum, n, 1, m * n}};
  Array<T> a(m * k), b(k * n);
  Array<Sum> c(m * n);
  if (SplitGemm::Suits(problem)) {
    const auto split = SplitGemm::Create(problem);
    for (auto _ : state)
      if (!(*split)->Run(a.data(), b.data(), c.data(), &ThreadPool::Default()).ok()) state.SkipWithError("no memory");
  } else {
    const auto gemm = Gemm::Create(problem);
    const int64_t scratch_bytes = ((*gemm)->scratch_bytes() + 63) / 64 * 64;
    Array<uint8_t> shared((*gemm)->shared_bytes()), scratch(scratch_bytes * ThreadPool::Default().num_threads());
    for (auto _ : state) RunGemm(**gemm, {a.data(), b.data(), c.data()}, shared.data(), scratch.data(), scratch_bytes);
  }
  const double flops = 2.0 * static_cast<double>(m * n * k), bytes = static_cast<double>(k * n * sizeof(T));
  const double least = std::max(flops / Peaks().flops_per_second, bytes / Peaks().bandwidths.back().bytes_per_second);
  using benchmark::Counter;
  state.counters["flop/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
  state.counters["of peak"] = Counter(least, Counter::kIsIterationInvariantRate);
}
void F32(benchmark::State& state) { Product<float, float>(state, ElementType::F32, ElementType::F32); }
void Bf16(benchmark::State& state) { Product<uint16_t, float>(state, ElementType::BF16, ElementType::F32); }
void S8(benchmark::State& state) { Product<int8_t, int32_t>(state, ElementType::S8, ElementType::S32); }

// The same by OpenBLAS.
void OpenBlas(benchmark::State& state) {
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int, float, float*, int);
  static void* const library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
  const auto sgemm = library ? reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm")) : nullptr;
  if (!sgemm) return state.SkipWithError("there is no libopenblas.so.0");
  constexpr int kRowMajor = 101, kAsItIs = 111;
  const int m = static_cast<int>(state.range(0)), n = static_cast<int>(state.range(1)),
            k = static_cast<int>(state.range(2));
  Array<float> a(m * k), b(k * n), c(m * n);
  for (auto _ : state) sgemm(kRowMajor, kAsItIs, kAsItIs, m, n, k, 1, a.data(), k, b.data(), n, 0, c.data(), n);
  using benchmark::Counter;
  const double flops = 2.0 * m * n * k;
  state.counters["flop/s"] = Counter(flops, Counter::kIsIterationInvariantRate);
  state.counters["of peak"] = Counter(flops / Peaks().flops_per_second, Counter::kIsIterationInvariantRate);
}

void Shapes(benchmark::internal::Benchmark* b) {
  for (int64_t n : {32, 128, 512, 1024, 2048}) b->Args({n, n, n});
  for (int64_t m : {1, 4, 64}) b->Args({m, 4096, 4096});
  b->Args({64, 64, 16384})->ArgNames({"m", "n", "k"})->UseRealTime()->Unit(benchmark::kMicrosecond);
}
BENCHMARK(F32)->Apply(Shapes);
BENCHMARK(OpenBlas)->Apply(Shapes);
BENCHMARK(Bf16)->Apply(Shapes);
BENCHMARK(S8)->Apply(Shapes);

// Sorts of floats, the copy into place included, which std::sort pays too.
void Sort(benchmark::State& state) {
  Array<float> from(state.range(0)), to(state.range(0));
  const SortOperand operand{to.data(), sizeof(float)};
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(state.range(0)) * sizeof(float));
    if (!SortByKey({1, state.range(0), 1}, {&operand, 1}, {}, &ThreadPool::Default()).ok())
      state.SkipWithError("failed");
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
void StdSort(benchmark::State& state) {
  Array<float> from(state.range(0)), to(state.range(0));
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), static_cast<size_t>(state.range(0)) * sizeof(float));
    std::sort(to.data(), to.data() + state.range(0));
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(Sort)->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20)->UseRealTime()->Unit(benchmark::kMicrosecond);
BENCHMARK(StdSort)->Arg(1 << 10)->Arg(1 << 16)->Arg(1 << 20)->UseRealTime()->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace strop::cpu

BENCHMARK_MAIN();
