// With z = x[0] + i x[1], x[2] + i x[3], ... of m = n / 2 points, Z its transform and w = e^(-2 pi i / n):
//
//   X[k] = E + w^k O,  X[m - k] = conj(E - w^k O),  E = (Z[k] + conj Z[m - k]) / 2,  O = (Z[k] - conj Z[m - k]) / 2i
//
// and back Z[k] = E + i O, of E and O that follow from X in the same way, with conj w^k. So both are one fold of what
// is at k and m - k.
#include "strop/cpu/kernels/fft_real.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include "strop/cpu/kernels/fft_pair.h"
#include "strop/cpu/kernels/fft_pair_kernels.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scratch.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskPoints = 1 << 13;    // what pays for a task
constexpr int64_t kNearPoints = 1 << 11;    // what the nearest cache keeps between two steps
constexpr int64_t kSharedPoints = 1 << 14;  // what pays for waking a thread
constexpr int64_t kWholeTransforms = 8;     // are shared out whole

template <class R>
class Real final : public FftReal {
 public:
  Real(const FftPairKernels<R>& kernels, std::unique_ptr<const FftPair> half, bool inverse, int64_t m)
      : kernels_(kernels), half_(std::move(half)), inverse_(inverse), m_(m) {
    for (int64_t k = 1; k <= m / 2; ++k) {  // w^k / 2i, or its conjugate
      const double angle = M_PI * static_cast<double>(k) / static_cast<double>(m);
      factors_.push_back(static_cast<R>(-std::sin(angle) / 2));
    }
    for (int64_t k = 1; k <= m / 2; ++k) {
      const double angle = M_PI * static_cast<double>(k) / static_cast<double>(m);
      factors_.push_back(static_cast<R>((inverse ? 1 : -1) * std::cos(angle) / 2));
    }
  }

  Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const override {
    if (batch * m_ < kSharedPoints) pool = nullptr;
    const R* in = static_cast<const R*>(input);
    R* out = static_cast<R*>(output);
    const int64_t many = std::max<int64_t>(1, kTaskPoints / m_);
    const bool whole = batch >= kWholeTransforms || !pool;
    const int64_t at_once = whole ? std::min(many, batch) : 1;
    std::atomic<bool> failed{false};
    const auto some = [&](int64_t first, int64_t end, ThreadPool* within) {
      const int64_t near = std::max<int64_t>(1, kNearPoints / m_);
      const Scratch<R> between(2 * m_ * std::min(near, end - first));
      bool done = between.get();
      for (int64_t i = first; i < end && done; i += near) {
        const int64_t next = std::min(end, i + near);
        done =
            inverse_ ? Back(i, next, in, between.get(), out, within) : Forth(i, next, in, between.get(), out, within);
      }
      if (!done) failed.store(true, std::memory_order_relaxed);
    };
    if (whole)
      ForEachPiece(pool, batch, at_once, [&](int64_t begin, int64_t end) { some(begin, end, nullptr); });
    else
      for (int64_t i = 0; i < batch; ++i) some(i, i + 1, pool);
    return failed.load() ? ResourceExhausted("fft: no memory for the work on ", 2 * m_, " points") : OkStatus();
  }

 private:
  bool Forth(int64_t first, int64_t end, const R* in, R* between, R* out, ThreadPool* pool) const {
    if (!half_->Run(end - first, in + first * 2 * m_, between, pool).ok()) return false;
    for (int64_t i = first; i < end; ++i) {
      const R* z = between + (i - first) * 2 * m_;
      R* x = out + i * 2 * (m_ + 1);
      const R re = z[0], im = z[1];
      x[0] = re + im, x[1] = 0;
      x[2 * m_] = re - im, x[2 * m_ + 1] = 0;
      Fold(z, x, pool);
    }
    return true;
  }

  bool Back(int64_t first, int64_t end, const R* in, R* between, R* out, ThreadPool* pool) const {
    for (int64_t i = first; i < end; ++i) {
      const R* x = in + i * 2 * (m_ + 1);
      R* z = between + (i - first) * 2 * m_;
      // Imaginary parts of these two are not looked at: no real numbers have any.
      z[0] = (x[0] + x[2 * m_]) / 2;
      z[1] = (x[0] - x[2 * m_]) / 2;
      Fold(x, z, pool);
    }
    return half_->Run(end - first, between, out + first * 2 * m_, pool).ok();
  }

  void Fold(const R* from, R* to, ThreadPool* pool) const {
    const R *re = factors_.data(), *im = re + m_ / 2;
    ForEachPiece(pool, m_ / 2, kTaskPoints,
                 [&](int64_t begin, int64_t end) { kernels_.fold(m_, begin, end, from, re, im, to); });
  }

  const FftPairKernels<R>& kernels_;
  std::unique_ptr<const FftPair> half_;
  bool inverse_;
  int64_t m_;
  std::vector<R> factors_;  // real parts, then imaginary ones
};

}  // namespace

std::unique_ptr<const FftReal> FftReal::Create(bool inverse, std::span<const int64_t> lengths, bool double_precision) {
  if (lengths.size() != 1 || lengths[0] % 2 != 0) return nullptr;
  const int64_t m = lengths[0] / 2;
  std::unique_ptr<const FftPair> half = FftPair::Create(inverse, {&m, 1}, double_precision);
  if (!half) return nullptr;
  const FftPairIsa& isa = *BestFftPairIsa();
  if (double_precision) return std::make_unique<Real<double>>(isa.f64, std::move(half), inverse, m);
  return std::make_unique<Real<float>>(isa.f32, std::move(half), inverse, m);
}

}  // namespace strop::cpu
