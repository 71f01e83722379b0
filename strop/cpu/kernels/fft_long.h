// LongFft: one complex FFT of a long line, as a matrix of short ones (Bailey, "FFTs in external or hierarchical
// memory", 1990). With n = n1 n2 and x seen as [n1][n2]:
//
//   1. transform the columns (length n1), several at a time, and multiply entry (k1, j2) with exp(-2 pi i k1 j2 / n)
//   2. transform the rows (length n2), several at a time; result (k1, k2) goes to k1 + n1 k2
//
// Strips of columns and of rows are independent tasks. Lengths with a prime factor above 13 go through Bluestein's
// chirp, as in fft_strip.h, over a long power of two.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <vector>

#include "strop/cpu/kernels/fft_strip.h"
#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/scratch.h"

namespace strop::cpu {

template <class R>
class LongFft {
 public:
  using L = Lane<R>;

  explicit LongFft(int64_t n) : n_(n) {
    if (IsSmooth(n))
      MakeMatrix();
    else
      MakeChirp();
  }

  // Reals of the memory that Run works in.
  int64_t work_size() const { return convolution_ ? 2 * convolution_->n_ + convolution_->work_size() : 2 * n_; }

  // In place; `x` is n pairs (re, im). False: no memory for strips.
  bool Run(R* x, R* work, ThreadPool* pool) const {
    return convolution_ ? RunChirp(x, work, pool) : RunMatrix(x, work, pool);
  }

 private:
  template <class>
  friend class LongFft;
  static constexpr int64_t kLanes = L::kCount;

  void MakeMatrix() {
    // Of the divisors of n the one nearest to its root from below.
    int64_t n1 = 1;
    for (int64_t d = 1; d * d <= n_; ++d) {
      if (n_ % d == 0) n1 = d;
    }
    columns_ = std::make_unique<StripFft<R>>(n1);
    rows_ = std::make_unique<StripFft<R>>(n_ / n1);
    const int64_t n2 = n_ / n1, strips = (n2 + kLanes - 1) / kLanes;
    twiddles_.resize(strips * n1 * 2 * kLanes);
    // exp(-2 pi i e / n) as the product of a coarse and a fine step: two small tables instead of n sines.
    int64_t step = 1;
    while (step * step < n_) step *= 2;
    std::vector<UnitRoot> fine, coarse;
    for (int64_t e = 0; e < step; ++e) fine.emplace_back(e % n_, n_);
    for (int64_t e = 0; e < n_; e += step) coarse.emplace_back(e, n_);
    for (int64_t j = 0; j < n2; ++j) {
      for (int64_t k = 0; k < n1; ++k) {
        const int64_t e = k * j;  // < n
        const UnitRoot &a = coarse[e / step], &b = fine[e % step];
        R* to = &twiddles_[((j / kLanes) * n1 + k) * 2 * kLanes + j % kLanes];
        to[0] = static_cast<R>(a.re * b.re - a.im * b.im);
        to[kLanes] = static_cast<R>(a.re * b.im + a.im * b.re);
      }
    }
  }

  void MakeChirp() {
    int64_t m = 1;
    while (m < 2 * n_ - 1) m *= 2;
    convolution_ = std::make_unique<LongFft<R>>(m);
    LongFft<double> transform(m);
    std::vector<double> filter(2 * m), work(transform.work_size());
    chirp_.resize(2 * n_);
    for (int64_t j = 0; j < n_; ++j) {
      UnitRoot w(static_cast<int64_t>(static_cast<unsigned __int128>(j) * j % (2 * n_)), 2 * n_);
      chirp_[2 * j] = static_cast<R>(w.re);
      chirp_[2 * j + 1] = static_cast<R>(w.im);
      for (int64_t at : {j, (m - j) % m}) {
        filter[2 * at] = w.re / static_cast<double>(m);
        filter[2 * at + 1] = -w.im / static_cast<double>(m);
      }
    }
    if (!transform.Run(filter.data(), work.data(), nullptr)) throw std::bad_alloc();  // caught where plans are made
    filter_.assign(filter.begin(), filter.end());
  }

  bool RunMatrix(R* x, R* work, ThreadPool* pool) const {
    const int64_t n1 = columns_->length(), n2 = rows_->length();
    std::atomic<bool> ok{true};
    ForEachTask(pool, (n2 + kLanes - 1) / kLanes, [&](int64_t strip) {
      Scratch<L> memory(2 * columns_->work_size());
      if (!memory.get()) return ok.store(false, std::memory_order_relaxed);
      Columns(strip, n1, n2, x, work, memory.get());
    });
    ForEachTask(pool, (n1 + kLanes - 1) / kLanes, [&](int64_t strip) {
      Scratch<L> memory(2 * rows_->work_size());
      if (!memory.get()) return ok.store(false, std::memory_order_relaxed);
      Rows(strip, n1, n2, work, x, memory.get());
    });
    return ok.load();
  }

  void Columns(int64_t strip, int64_t n1, int64_t n2, const R* x, R* out, L* memory) const {
    const int64_t first = strip * kLanes, used = std::min(kLanes, n2 - first);
    for (int64_t j = 0; j < n1; ++j) {
      L lane = {};
      const R* from = x + 2 * (j * n2 + first);
      for (int64_t v = 0; v < used; ++v) lane.re[v] = from[2 * v], lane.im[v] = from[2 * v + 1];
      memory[j] = lane;
    }
    const L* result = columns_->Run(memory, memory + columns_->work_size());
    const R* w = &twiddles_[strip * n1 * 2 * kLanes];
    for (int64_t k = 0; k < n1; ++k, w += 2 * kLanes) {
      R* to = out + 2 * (k * n2 + first);
      for (int64_t v = 0; v < used; ++v) {
        const R re = result[k].re[v], im = result[k].im[v];
        to[2 * v] = re * w[v] - im * w[kLanes + v];
        to[2 * v + 1] = re * w[kLanes + v] + im * w[v];
      }
    }
  }

  void Rows(int64_t strip, int64_t n1, int64_t n2, const R* x, R* out, L* memory) const {
    const int64_t first = strip * kLanes, used = std::min(kLanes, n1 - first);
    for (int64_t j = 0; j < n2; ++j) memory[j] = L{};
    for (int64_t v = 0; v < used; ++v) {
      const R* from = x + 2 * (first + v) * n2;
      for (int64_t j = 0; j < n2; ++j) memory[j].re[v] = from[2 * j], memory[j].im[v] = from[2 * j + 1];
    }
    const L* result = rows_->Run(memory, memory + rows_->work_size());
    for (int64_t k = 0; k < n2; ++k) {
      R* to = out + 2 * (k * n1 + first);
      for (int64_t v = 0; v < used; ++v) to[2 * v] = result[k].re[v], to[2 * v + 1] = result[k].im[v];
    }
  }

  bool RunChirp(R* x, R* work, ThreadPool* pool) const {
    const int64_t m = convolution_->n_;
    R *a = work, *rest = work + 2 * m;
    std::memset(a, 0, 2 * m * sizeof(R));
    MultiplyInto(x, chirp_.data(), n_, a);
    if (!convolution_->Run(a, rest, pool)) return false;
    MultiplyInto(a, filter_.data(), m, a);
    Swap(a, m);
    if (!convolution_->Run(a, rest, pool)) return false;
    Swap(a, n_);
    MultiplyInto(a, chirp_.data(), n_, x);
    return true;
  }
  static void MultiplyInto(const R* a, const R* b, int64_t n, R* out) {
    for (int64_t j = 0; j < n; ++j) {
      const R re = a[2 * j] * b[2 * j] - a[2 * j + 1] * b[2 * j + 1];
      const R im = a[2 * j] * b[2 * j + 1] + a[2 * j + 1] * b[2 * j];
      out[2 * j] = re;
      out[2 * j + 1] = im;
    }
  }
  static void Swap(R* a, int64_t n) {
    for (int64_t j = 0; j < n; ++j) std::swap(a[2 * j], a[2 * j + 1]);
  }

  int64_t n_;
  std::unique_ptr<StripFft<R>> columns_, rows_;
  std::vector<R> twiddles_;  // [strip of columns][k1][re, im][lane]
  // Bluestein
  std::unique_ptr<LongFft<R>> convolution_;
  std::vector<R> chirp_, filter_;
};

}  // namespace strop::cpu
