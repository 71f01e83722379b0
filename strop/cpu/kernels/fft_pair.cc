#include "strop/cpu/kernels/fft_pair.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <complex>
#include <vector>

#include "strop/cpu/kernels/fft_pair_kernels.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scratch.h"

namespace strop::cpu {

const FftPairIsa* BestFftPairIsa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  static const bool kAvx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                              __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  static const bool kAvx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (kAvx512) return &FftPairAvx512();
  if (kAvx2) return &FftPairAvx2();
#endif
  return nullptr;
}

namespace {

constexpr int64_t kLeastLength = 16, kMostLength = 1 << 12;  // of either side: more do not fit the second-level cache
constexpr int64_t kLeastPoints = 1 << 8;
constexpr int64_t kTaskPoints = 1 << 13;    // what pays for a task
constexpr int64_t kSharedPoints = 1 << 15;  // what pays for waking a thread

template <class R>
std::complex<R> Root(int64_t k, int64_t n) {
  const double angle = -2 * M_PI * static_cast<double>(k % n) / static_cast<double>(n);
  return {static_cast<R>(std::cos(angle)), static_cast<R>(std::sin(angle))};
}

// Where the decimation in frequency of fft_pair.inc leaves frequency k of n.
int32_t PlaceOf(int64_t k, int64_t n) {
  int64_t place = 0;
  while (n > 16) {
    const int64_t radix = n >= 256 ? 16 : n > 32 ? 4 : 2;
    n /= radix;
    place += k % radix * n;
    k /= radix;
  }
  return static_cast<int32_t>(place + k);
}

template <class R>
struct Length {
  explicit Length(int64_t n) : n(n) {
    for (int64_t k = 0; k < n; ++k) {
      roots.push_back(Root<R>(k, n));
      place.push_back(PlaceOf(k, n));
    }
  }
  FftRoots<R> view() const { return {n, reinterpret_cast<const R*>(roots.data()), place.data()}; }
  int64_t n;
  std::vector<std::complex<R>> roots;
  std::vector<int32_t> place;
};

template <class R>
class Pair final : public FftPair {
 public:
  Pair(const FftPairKernels<R>& kernels, bool inverse, int64_t n1, int64_t n2, bool one_dimension)
      : kernels_(kernels), first_(n1), second_(n2), inverse_(inverse) {
    if (!one_dimension) return;
    const int64_t lanes = kernels.lanes;
    for (int64_t k = 0; k < n1; ++k) {
      for (int64_t l = 0; l < lanes; ++l) near_.push_back(Root<R>(k * l, n1 * n2).real());
      for (int64_t l = 0; l < lanes; ++l) near_.push_back(Root<R>(k * l, n1 * n2).imag());
      for (int64_t l = 0; l < n2; l += lanes) far_.push_back(Root<R>(k * l, n1 * n2));
    }
  }

  Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const override {
    const int64_t points = first_.n * second_.n;
    if (batch * points < kSharedPoints) pool = nullptr;
    // Many transforms are shared out whole.
    const bool whole = batch >= kWholeTransforms || !pool;
    return whole ? RunMany(batch, input, output, pool) : RunEach(batch, input, output, pool);
  }

 private:
  static constexpr int64_t kWholeTransforms = 8;

  FftPairTables<R> tables() const {
    const bool turned = !near_.empty();
    return {first_.view(),
            second_.view(),
            turned ? near_.data() : nullptr,
            turned ? reinterpret_cast<const R*>(far_.data()) : nullptr,
            inverse_,
            inverse_ ? R(1) / static_cast<R>(first_.n * second_.n) : R(1)};
  }
  Status NoMemory() const {
    return ResourceExhausted("fft: no memory for the work on ", first_.n, " x ", second_.n, " points");
  }

  Status RunMany(int64_t batch, const void* input, void* output, ThreadPool* pool) const {
    const FftPairTables<R> t = tables();
    const int64_t n1 = t.first.n, n2 = t.second.n, lanes = kernels_.lanes, size = 2 * n1 * n2;
    const int64_t grain = std::max<int64_t>(1, kTaskPoints / (n1 * n2));
    std::atomic<bool> failed{false};
    ForEachPiece(pool, batch, grain, [&](int64_t begin, int64_t end) {
      const Scratch<R> between(size), work(2 * n1 * lanes);
      if (!between.get() || !work.get()) return failed.store(true, std::memory_order_relaxed);
      for (int64_t i = begin; i < end; ++i) {
        const R* in = static_cast<const R*>(input) + i * size;
        R* out = static_cast<R*>(output) + i * size;
        for (int64_t g = 0; g < n2 / lanes; ++g) kernels_.columns(t, g, in, work.get(), between.get());
        for (int64_t g = 0; g < n1 / lanes; ++g) kernels_.rows(t, g, between.get(), out);
      }
    });
    return failed.load() ? NoMemory() : OkStatus();
  }

  Status RunEach(int64_t batch, const void* input, void* output, ThreadPool* pool) const {
    const FftPairTables<R> t = tables();
    const int64_t n1 = t.first.n, n2 = t.second.n, lanes = kernels_.lanes, size = 2 * n1 * n2;
    const Scratch<R> between(size);
    if (!between.get()) return NoMemory();
    std::atomic<bool> failed{false};
    for (int64_t i = 0; i < batch; ++i) {
      const R* in = static_cast<const R*>(input) + i * size;
      R* out = static_cast<R*>(output) + i * size;
      ForEachPiece(pool, n2 / lanes, std::max<int64_t>(1, kTaskPoints / (n1 * lanes)), [&](int64_t begin, int64_t end) {
        const Scratch<R> work(2 * n1 * lanes);
        if (!work.get()) return failed.store(true, std::memory_order_relaxed);
        for (int64_t g = begin; g < end; ++g) kernels_.columns(t, g, in, work.get(), between.get());
      });
      if (failed.load()) return NoMemory();
      ForEachPiece(pool, n1 / lanes, std::max<int64_t>(1, kTaskPoints / (n2 * lanes)), [&](int64_t begin, int64_t end) {
        for (int64_t g = begin; g < end; ++g) kernels_.rows(t, g, between.get(), out);
      });
    }
    return OkStatus();
  }

  const FftPairKernels<R>& kernels_;
  Length<R> first_, second_;
  std::vector<R> near_;
  std::vector<std::complex<R>> far_;
  bool inverse_;
};

}  // namespace

std::unique_ptr<const FftPair> FftPair::Create(bool inverse, std::span<const int64_t> lengths, bool double_precision) {
  const FftPairIsa* isa = BestFftPairIsa();
  if (!isa || lengths.empty() || lengths.size() > 2) return nullptr;
  for (int64_t n : lengths)
    if (n <= 0 || n > kMostLength * kMostLength || !std::has_single_bit(static_cast<uint64_t>(n))) return nullptr;
  const bool one = lengths.size() == 1;
  const int half = one ? std::countr_zero(static_cast<uint64_t>(lengths[0])) / 2 : 0;
  const int64_t n1 = one ? int64_t{1} << half : lengths[0], n2 = one ? lengths[0] >> half : lengths[1];
  if (std::min(n1, n2) < kLeastLength || std::max(n1, n2) > kMostLength || n1 * n2 < kLeastPoints) return nullptr;
  if (double_precision) return std::make_unique<Pair<double>>(isa->f64, inverse, n1, n2, one);
  return std::make_unique<Pair<float>>(isa->f32, inverse, n1, n2, one);
}

}  // namespace strop::cpu
