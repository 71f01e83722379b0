#include "strop/cpu/kernels/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

namespace strop::cpu {
namespace {

using Complex = std::complex<long double>;

// The definition, one axis at a time: [outer][n][inner].
std::vector<Complex> NaiveAxis(const std::vector<Complex>& x, int64_t n, int64_t inner, bool inverse) {
  std::vector<Complex> roots(n), y(x.size());
  for (int64_t k = 0; k < n; ++k) roots[k] = std::polar(1.0L, (inverse ? 2 : -2) * M_PIl * k / n);
  const int64_t outer = static_cast<int64_t>(x.size()) / (n * inner);
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t k = 0; k < n; ++k) {
      for (int64_t j = 0; j < n; ++j) {
        Complex w = roots[static_cast<int64_t>(static_cast<unsigned __int128>(k) * j % n)];
        for (int64_t i = 0; i < inner; ++i) y[(o * n + k) * inner + i] += x[(o * n + j) * inner + i] * w;
      }
    }
  }
  return y;
}

std::vector<Complex> Naive(std::vector<Complex> x, const std::vector<int64_t>& lengths, bool inverse) {
  int64_t inner = 1;
  for (size_t d = lengths.size(); d-- > 0; inner *= lengths[d]) x = NaiveAxis(x, lengths[d], inner, inverse);
  if (inverse) {
    for (Complex& v : x) v /= inner;
  }
  return x;
}

template <class R>
class Checker {
 public:
  Checker(std::vector<int64_t> lengths, int64_t batch, ThreadPool* pool)
      : lengths_(std::move(lengths)), batch_(batch), pool_(pool) {
    for (int64_t n : lengths_) total_ *= n;
    half_ = lengths_.back() / 2 + 1;
    rows_ = batch * total_ / lengths_.back();
    std::mt19937 random(static_cast<uint32_t>(total_));
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (int64_t i = 0; i < batch * total_; ++i)
      complex_.push_back({static_cast<R>(uniform(random)), static_cast<R>(uniform(random))});
    for (const std::complex<R>& v : complex_) real_.push_back(v.real());
  }

  void Complexes() {
    std::vector<Complex> x(complex_.begin(), complex_.end());
    for (FftKind kind : {FftKind::kFft, FftKind::kIfft}) {
      std::vector<std::complex<R>> out(complex_.size()), in_place = complex_;
      Run(kind, complex_.data(), out.data());
      Run(kind, in_place.data(), in_place.data());
      EXPECT_EQ(out, in_place);
      Compare(out, Naive(x, lengths_, kind == FftKind::kIfft), kind);
    }
  }

  void Reals() {
    std::vector<std::complex<R>> spectrum(rows_ * half_);
    Run(FftKind::kRfft, real_.data(), spectrum.data());
    std::vector<Complex> full = Naive({real_.begin(), real_.end()}, lengths_, false), expected;
    for (int64_t r = 0; r < rows_; ++r) {
      for (int64_t k = 0; k < half_; ++k) expected.push_back(full[r * lengths_.back() + k]);
    }
    Compare(spectrum, expected, FftKind::kRfft);
    // Back from the exact spectrum.
    for (size_t i = 0; i < spectrum.size(); ++i) spectrum[i] = std::complex<R>(expected[i]);
    std::vector<R> back(real_.size());
    Run(FftKind::kIrfft, spectrum.data(), back.data());
    Compare(back, {real_.begin(), real_.end()}, FftKind::kIrfft);
  }

 private:
  void Run(FftKind kind, const void* in, void* out) {
    Result<std::shared_ptr<const FftPlan>> plan = FftPlan::Create(kind, lengths_, sizeof(R) == 8);
    ASSERT_TRUE(plan.ok()) << plan.status().ToString();
    ASSERT_TRUE((*plan)->Run(batch_, in, out, pool_).ok());
  }
  // Relative error in the 2-norm: a few ulps times the number of passes.
  template <class T>
  void Compare(const std::vector<T>& got, const std::vector<Complex>& want, FftKind kind) {
    ASSERT_EQ(got.size(), want.size());
    long double error = 0, size = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      error += std::norm(Complex(got[i]) - want[i]);
      size += std::norm(want[i]);
    }
    long double bound = std::numeric_limits<R>::epsilon() * (2 + std::log2(static_cast<long double>(total_)));
    EXPECT_LT(std::sqrt(error), bound * std::sqrt(size) + 1e-30L)
        << "lengths " << Join(lengths_, "x") << " batch " << batch_ << " kind " << static_cast<int>(kind);
  }

  std::vector<int64_t> lengths_;
  int64_t batch_, total_ = 1, half_, rows_;
  ThreadPool* pool_;
  std::vector<std::complex<R>> complex_;
  std::vector<R> real_;
};

template <class R>
void CheckAll(const std::vector<int64_t>& lengths, int64_t batch, ThreadPool* pool) {
  Checker<R> checker(lengths, batch, pool);
  checker.Complexes();
  checker.Reals();
}

TEST(Fft, SmallLengths) {
  for (int64_t n = 1; n <= 70; ++n) {
    CheckAll<float>({n}, 11, nullptr);
    CheckAll<double>({n}, 3, nullptr);
  }
}

TEST(Fft, LongLengthsOfAllKinds) {
  ThreadPool pool(3);
  // smooth, prime, twice a prime, powers; some long as strips, some as matrices
  for (int64_t n : {128, 143, 512, 521, 600, 1018}) {
    CheckAll<float>({n}, 1, &pool);
    CheckAll<double>({n}, 5, &pool);
  }
}

// Some coefficients of lines for which all would take too long.
TEST(Fft, SampledCoefficients) {
  ThreadPool pool(3);
  for (int64_t n : {2187, 4096, 4099, 8192, 10010, 65536, 65537}) {
    for (int64_t batch : {1, 9}) {
      std::vector<std::complex<float>> x(n * batch), y(x.size());
      std::mt19937 random(static_cast<uint32_t>(n));
      for (std::complex<float>& v : x)
        v = {static_cast<float>(random() % 100) - 50, static_cast<float>(random() % 100) - 50};
      std::vector<int64_t> lengths = {n};
      ASSERT_TRUE((*FftPlan::Create(FftKind::kFft, lengths, false))->Run(batch, x.data(), y.data(), &pool).ok());
      for (int64_t k : {int64_t{0}, int64_t{1}, n / 3, n / 2, n - 1}) {
        const std::complex<float>* line = x.data() + (batch - 1) * n;
        Complex want = 0;
        for (int64_t j = 0; j < n; ++j) want += Complex(line[j]) * std::polar(1.0L, -2 * M_PIl * (j * k % n) / n);
        long double size = 41 * std::sqrt(static_cast<long double>(n));  // of a typical coefficient
        EXPECT_LT(std::abs(Complex(y[(batch - 1) * n + k]) - want), 1e-5L * size) << n << " " << k;
      }
    }
  }
}

TEST(Fft, SeveralDimensions) {
  ThreadPool pool(3);
  for (std::vector<int64_t> lengths :
       {std::vector<int64_t>{4, 6}, {5, 7}, {16, 16}, {1, 8}, {9, 1}, {3, 4, 5}, {8, 2, 17}, {2, 600}, {600, 3}}) {
    CheckAll<float>(lengths, 2, &pool);
    CheckAll<double>(lengths, 1, nullptr);
  }
}

// By kernels of our own: the fewest points, lengths with and without a pass by two, transforms shared out whole or not.
TEST(Fft, PowersOfTwo) {
  ThreadPool pool(3);
  for (std::vector<int64_t> lengths :
       {std::vector<int64_t>{64, 64}, {16, 256}, {512, 16}, {32, 512}, {16, 1024}, {2048, 16}}) {
    CheckAll<float>(lengths, 1, &pool);
    CheckAll<double>(lengths, 1, &pool);
  }
  CheckAll<float>({4096}, 1, &pool);
  CheckAll<float>({32, 128}, 9, &pool);
  CheckAll<double>({128, 64}, 2, &pool);
}

// From and to real numbers by complex transforms of half the length, shared out whole or not.
TEST(Fft, RealPowersOfTwo) {
  ThreadPool pool(3);
  for (int64_t n : {512, 1024, 2048}) {
    CheckAll<float>({n}, 20, &pool);
    CheckAll<double>({n}, 9, nullptr);
    CheckAll<double>({n}, 1, &pool);
  }
}

// There and back, the same bits with and without threads: by kernels of our own, and a few long rows of another length,
// some of which are transformed together.
TEST(Fft, LongRowsOfRealNumbers) {
  ThreadPool pool(3);
  for (int64_t n : {1 << 15, 5000, 4099}) {
    for (int64_t batch : {1, 3, 7, 30}) {
      std::vector<float> in(n * batch), back(in.size()), again(in.size());
      for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 17) - 8;
      std::vector<std::complex<float>> a((n / 2 + 1) * batch), b(a.size());
      std::vector<int64_t> lengths = {n};
      std::shared_ptr<const FftPlan> forth = *FftPlan::Create(FftKind::kRfft, lengths, false);
      std::shared_ptr<const FftPlan> inverse = *FftPlan::Create(FftKind::kIrfft, lengths, false);
      ASSERT_TRUE(forth->Run(batch, in.data(), a.data(), nullptr).ok());
      ASSERT_TRUE(forth->Run(batch, in.data(), b.data(), &pool).ok());
      EXPECT_EQ(a, b);
      ASSERT_TRUE(inverse->Run(batch, a.data(), back.data(), nullptr).ok());
      ASSERT_TRUE(inverse->Run(batch, a.data(), again.data(), &pool).ok());
      EXPECT_EQ(back, again);
      for (size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(in[i], back[i], 1e-4);
    }
  }
}

TEST(Fft, SameBitsWithAnyNumberOfThreads) {
  ThreadPool pool(4);
  for (int64_t n : {60, 4096, 10007, 65536}) {
    for (int64_t batch : {1, 5, 20}) {
      std::vector<std::complex<float>> in(n * batch), a(in.size()), b(in.size());
      for (size_t i = 0; i < in.size(); ++i) in[i] = {static_cast<float>(i % 17), static_cast<float>(i % 5)};
      std::vector<int64_t> lengths = {n};
      std::shared_ptr<const FftPlan> plan = *FftPlan::Create(FftKind::kFft, lengths, false);
      ASSERT_TRUE(plan->Run(batch, in.data(), a.data(), nullptr).ok());
      ASSERT_TRUE(plan->Run(batch, in.data(), b.data(), &pool).ok());
      EXPECT_EQ(a, b) << n;
    }
  }
}

// More lengths than the library keeps tables of, made and dropped by several threads at a time.
TEST(Fft, RunsOfManyLengthsMayOverlap) {
  ThreadPool pool(4);
  const int64_t runs = 60;
  std::vector<std::vector<std::complex<float>>> results(runs);
  const auto run = [&](int64_t i) {
    const int64_t n = 100 + i % 20;
    std::vector<std::complex<float>> in(n);
    for (int64_t j = 0; j < n; ++j) in[j] = {static_cast<float>(j % 7), 1};
    results[i].resize(n);
    std::vector<int64_t> lengths = {n};
    ASSERT_TRUE((*FftPlan::Create(FftKind::kFft, lengths, false))->Run(1, in.data(), results[i].data(), nullptr).ok());
  };
  pool.ParallelFor(runs, run);
  const auto parallel = results;
  for (int64_t i = 0; i < runs; ++i) run(i);
  EXPECT_EQ(parallel, results);
}

TEST(Fft, LargeRoundTrip) {
  ThreadPool pool(2);
  for (int64_t n : {1 << 18, 262147}) {  // the second is prime
    std::vector<std::complex<double>> x(n), y(n);
    for (int64_t i = 0; i < n; ++i) x[i] = {std::sin(0.1 * static_cast<double>(i)), 1.0 / static_cast<double>(i + 1)};
    std::vector<int64_t> lengths = {n};
    ASSERT_TRUE((*FftPlan::Create(FftKind::kFft, lengths, true))->Run(1, x.data(), y.data(), &pool).ok());
    ASSERT_TRUE((*FftPlan::Create(FftKind::kIfft, lengths, true))->Run(1, y.data(), y.data(), &pool).ok());
    double worst = 0;
    for (int64_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
    EXPECT_LT(worst, 1e-13) << n;
  }
}

TEST(Fft, IgnoresImaginaryPartsOfRealCoefficients) {
  std::complex<float> spectrum[3] = {{4, 9}, {0, 0}, {0, -7}};
  float out[4];
  std::vector<int64_t> lengths = {4};
  ASSERT_TRUE((*FftPlan::Create(FftKind::kIrfft, lengths, false))->Run(1, spectrum, out, nullptr).ok());
  for (float v : out) EXPECT_EQ(v, 1);
  std::vector<std::complex<float>> longer(513);
  longer[0] = {1024, 9}, longer[512] = {0, -7};
  std::vector<float> ones(1024);
  lengths = {1024};
  ASSERT_TRUE((*FftPlan::Create(FftKind::kIrfft, lengths, false))->Run(1, longer.data(), ones.data(), nullptr).ok());
  for (float v : ones) EXPECT_EQ(v, 1);
}

TEST(Fft, Refusals) {
  EXPECT_EQ(FftPlan::Create(FftKind::kFft, {}, false).status().code(), StatusCode::kInvalidArgument);
  std::vector<int64_t> four = {2, 2, 2, 2}, negative = {-1}, huge = {int64_t{1} << 40}, zero = {0, 4};
  EXPECT_EQ(FftPlan::Create(FftKind::kFft, four, false).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FftPlan::Create(FftKind::kFft, negative, false).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(FftPlan::Create(FftKind::kFft, huge, false).status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE((*FftPlan::Create(FftKind::kFft, zero, false))->Run(3, nullptr, nullptr, nullptr).ok());
}

}  // namespace
}  // namespace strop::cpu
