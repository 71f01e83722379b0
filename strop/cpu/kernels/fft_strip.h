// StripFft: complex FFTs of as many lines as a vector has lanes (8 of f32, 4 of f64), all of one length.
//
// Stockham's autosort algorithm, decimation in frequency. With nn the length still to do (n at first), s the number of
// interleaved transforms (1 at first) and p the next factor of nn = p m:
//
//   for q < m, j < s:   a_k = x[j + s (q + m k)],  b = DFT_p(a),  y[j + s (p q + k)] = b_k exp(-2 pi i q k / nn)
//
// then nn = m, s = s p, and x and y change places. A length with a prime factor above 13 is a convolution with a chirp
// instead (Bluestein): exp(-pi i j^2 / n) and a power of two M >= 2n - 1.
// The inverse transform is the forward one with real and imaginary parts exchanged before and after.
#pragma once
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "strop/cpu/kernels/isa.h"

namespace strop::cpu {

// exp(-2 pi i k / n) for 0 <= k < n: reduced to the first octant in integers, so that both parts are right to an ulp
// and multiples of a quarter turn are exact.
struct UnitRoot {
  UnitRoot(int64_t k, int64_t n) {
    using Wide = unsigned __int128;
    const Wide eight = Wide(k) * 8;
    const int octant = static_cast<int>(eight / Wide(n));  // 0..7
    const Wide rest = eight - Wide(octant) * Wide(n);      // in eighths of n, from the start of the octant
    const bool odd = octant % 2;
    const double part = static_cast<double>(odd ? Wide(n) - rest : rest) / static_cast<double>(n);  // 0..1 of an octant
    double c = std::cos(M_PI / 4 * part), s = std::sin(M_PI / 4 * part);
    if (part == 1) c = s = M_SQRT1_2;
    if (odd) std::swap(c, s);  // the angle counted from the next axis
    // (c, s) is now the point within its quadrant.
    switch (octant / 2) {
      case 0: re = c, im = s; break;
      case 1: re = -s, im = c; break;
      case 2: re = -c, im = -s; break;
      default: re = s, im = -c;
    }
    im = -im;
  }
  double re, im;
};

// The factors of n in the order of the passes, or nothing if a prime above 13 divides it.
inline std::vector<int> SmoothFactors(int64_t n) {
  std::vector<int> factors;
  for (int p : {4, 2, 3, 5, 7, 11, 13}) {
    for (; n > 1 && n % p == 0; n /= p) factors.push_back(p);
  }
  if (n > 1) return {};
  if (factors.empty()) factors.push_back(1);
  return factors;
}
inline bool IsSmooth(int64_t n) { return !SmoothFactors(n).empty(); }

template <class R>
struct LaneVector;
template <>
struct LaneVector<float> {
  typedef float Type __attribute__((vector_size(32)));
};
template <>
struct LaneVector<double> {
  typedef double Type __attribute__((vector_size(32)));
};

// One complex number in each lane. The alignment is stated because compilers give such vectors less without AVX.
template <class R>
struct alignas(32) Lane {
  using V = typename LaneVector<R>::Type;
  static constexpr int kCount = 32 / sizeof(R);
  V re, im;

  friend inline Lane operator+(const Lane& a, const Lane& b) { return {a.re + b.re, a.im + b.im}; }
  friend inline Lane operator-(const Lane& a, const Lane& b) { return {a.re - b.re, a.im - b.im}; }
  friend inline Lane operator*(R f, const Lane& a) { return {f * a.re, f * a.im}; }
  Lane Times(R wr, R wi) const { return {wr * re - wi * im, wr * im + wi * re}; }
  Lane TimesMinusI() const { return {im, -re}; }
  Lane Conjugate() const { return {re, -im}; }
  Lane Swapped() const { return {im, re}; }
};

namespace internal {

// b = DFT_P(a), forward. Odd primes in general: pairs a_j +- a_{P-j} share their cosines and sines.
template <class R, int P>
struct Butterfly {
  Butterfly() {
    for (int j = 0; j < P; ++j) {
      UnitRoot root(j, P);
      cosine[j] = static_cast<R>(root.re);
      sine[j] = static_cast<R>(-root.im);
    }
  }
  inline __attribute__((always_inline)) void operator()(const Lane<R>* a, Lane<R>* b) const {
    constexpr int kHalf = P / 2;
    Lane<R> sum[kHalf + 1], difference[kHalf + 1];
    b[0] = a[0];
    for (int j = 1; j <= kHalf; ++j) {
      sum[j] = a[j] + a[P - j];
      difference[j] = (a[j] - a[P - j]).TimesMinusI();
      b[0] = b[0] + sum[j];
    }
    for (int k = 1; k <= kHalf; ++k) {
      Lane<R> even = a[0], odd = sine[k] * difference[1];
      for (int j = 1; j <= kHalf; ++j) even = even + cosine[j * k % P] * sum[j];
      for (int j = 2; j <= kHalf; ++j) odd = odd + sine[j * k % P] * difference[j];
      b[k] = even + odd;
      b[P - k] = even - odd;
    }
  }
  R cosine[P], sine[P];
};
template <class R>
struct Butterfly<R, 2> {
  inline __attribute__((always_inline)) void operator()(const Lane<R>* a, Lane<R>* b) const {
    b[0] = a[0] + a[1];
    b[1] = a[0] - a[1];
  }
};
template <class R>
struct Butterfly<R, 4> {
  inline __attribute__((always_inline)) void operator()(const Lane<R>* a, Lane<R>* b) const {
    Lane<R> s02 = a[0] + a[2], d02 = a[0] - a[2], s13 = a[1] + a[3], d13 = (a[1] - a[3]).TimesMinusI();
    b[0] = s02 + s13;
    b[1] = d02 + d13;
    b[2] = s02 - s13;
    b[3] = d02 - d13;
  }
};

// One pass; twiddles are [q][k - 1] as pairs (re, im).
template <class R, int P>
inline __attribute__((always_inline)) void Pass(const Lane<R>* x, Lane<R>* y, int64_t m, int64_t s, const R* twiddles) {
  const Butterfly<R, P> butterfly;
  for (int64_t q = 0; q < m; ++q) {
    const R* w = twiddles + q * 2 * (P - 1);
    for (int64_t j = 0; j < s; ++j) {
      Lane<R> a[P], b[P];
      for (int k = 0; k < P; ++k) a[k] = x[j + s * (q + m * k)];
      butterfly(a, b);
      Lane<R>* to = y + j + s * P * q;
      to[0] = b[0];
      for (int k = 1; k < P; ++k) to[s * k] = b[k].Times(w[2 * k - 2], w[2 * k - 1]);
    }
  }
}

}  // namespace internal

template <class R>
class StripFft {
 public:
  using L = Lane<R>;

  explicit StripFft(int64_t n) : n_(n), factors_(SmoothFactors(n)) {
    if (factors_.empty())
      MakeChirp();
    else
      MakeTwiddles();
  }

  int64_t length() const { return n_; }
  // Lanes of each of the two arrays that Run works in.
  int64_t work_size() const { return convolution_ ? convolution_->n_ : n_; }

  // Transforms the first length() entries of `data`; the result is in `data` or in `work`, whichever is returned.
  L* Run(L* data, L* work) const {
    if (!convolution_) return RunPasses(data, work);
    const int64_t m = convolution_->n_;
    for (int64_t j = 0; j < n_; ++j) data[j] = data[j].Times(chirp_[2 * j], chirp_[2 * j + 1]);
    for (int64_t j = n_; j < m; ++j) data[j] = L{};
    L* spectrum = convolution_->RunPasses(data, work);
    for (int64_t k = 0; k < m; ++k) spectrum[k] = spectrum[k].Times(filter_[2 * k], filter_[2 * k + 1]).Swapped();
    L* result = convolution_->RunPasses(spectrum, spectrum == data ? work : data);
    for (int64_t j = 0; j < n_; ++j) result[j] = result[j].Swapped().Times(chirp_[2 * j], chirp_[2 * j + 1]);
    return result;
  }

 private:
  template <class>
  friend class StripFft;

  void MakeTwiddles() {
    int64_t nn = n_;
    for (int p : factors_) {
      int64_t m = nn / p;
      for (int64_t q = 0; q < m; ++q) {
        for (int k = 1; k < p; ++k) {
          UnitRoot w(q * k % nn, nn);
          twiddles_.push_back(static_cast<R>(w.re));
          twiddles_.push_back(static_cast<R>(w.im));
        }
      }
      nn = m;
    }
  }

  void MakeChirp() {
    int64_t m = 1;
    while (m < 2 * n_ - 1) m *= 2;
    convolution_ = std::make_unique<StripFft<R>>(m);
    // The filter is transformed in double, so that its error does not add to that of the data.
    StripFft<double> transform(m);
    std::vector<Lane<double>> filter(m), work(m);
    for (int64_t j = 0; j < n_; ++j) {
      UnitRoot w(static_cast<int64_t>(static_cast<unsigned __int128>(j) * j % (2 * n_)), 2 * n_);
      chirp_.push_back(static_cast<R>(w.re));
      chirp_.push_back(static_cast<R>(w.im));
      filter[j].re[0] = filter[(m - j) % m].re[0] = w.re / static_cast<double>(m);
      filter[j].im[0] = filter[(m - j) % m].im[0] = -w.im / static_cast<double>(m);
    }
    const Lane<double>* spectrum = transform.RunPasses(filter.data(), work.data());
    for (int64_t k = 0; k < m; ++k) {
      filter_.push_back(static_cast<R>(spectrum[k].re[0]));
      filter_.push_back(static_cast<R>(spectrum[k].im[0]));
    }
  }

  L* RunPasses(L* x, L* y) const {
    auto passes = [&] { x = AllPasses(x, y); };
    WithVectors(passes);
    return x;
  }

  inline __attribute__((always_inline)) L* AllPasses(L* x, L* y) const {
    int64_t nn = n_, s = 1;
    const R* twiddles = twiddles_.data();
    for (int p : factors_) {
      if (p == 1) break;
      const int64_t m = nn / p;
      switch (p) {
        case 2: internal::Pass<R, 2>(x, y, m, s, twiddles); break;
        case 3: internal::Pass<R, 3>(x, y, m, s, twiddles); break;
        case 4: internal::Pass<R, 4>(x, y, m, s, twiddles); break;
        case 5: internal::Pass<R, 5>(x, y, m, s, twiddles); break;
        case 7: internal::Pass<R, 7>(x, y, m, s, twiddles); break;
        case 11: internal::Pass<R, 11>(x, y, m, s, twiddles); break;
        default: internal::Pass<R, 13>(x, y, m, s, twiddles); break;
      }
      twiddles += 2 * (p - 1) * m;
      nn = m;
      s *= p;
      std::swap(x, y);
    }
    return x;
  }

  int64_t n_;
  std::vector<int> factors_;
  std::vector<R> twiddles_;
  // Bluestein
  std::unique_ptr<StripFft<R>> convolution_;
  std::vector<R> chirp_, filter_;
};

}  // namespace strop::cpu
