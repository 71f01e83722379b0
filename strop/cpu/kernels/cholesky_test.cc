// Cholesky and triangular solve: residuals in double against the definition.
#include "strop/cpu/kernels/cholesky.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <random>
#include <vector>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/triangular_solve.h"
#include "strop/runtime/lapack/substitution.h"

namespace strop::cpu {
namespace {

using Complex = std::complex<double>;

constexpr ElementType kTypes[] = {ElementType::F32, ElementType::F64, ElementType::C64, ElementType::C128};

double Epsilon(ElementType type) { return type == ElementType::F32 || type == ElementType::C64 ? 1.2e-7 : 2.3e-16; }

// An array of any of the four types, read and written as complex numbers.
struct Array {
  Array(ElementType type, int64_t n) : type(type), bytes(n * Bytes(type)) {}
  Complex get(int64_t i) const {
    switch (type) {
      case ElementType::F32: return reinterpret_cast<const float*>(bytes.data())[i];
      case ElementType::F64: return reinterpret_cast<const double*>(bytes.data())[i];
      case ElementType::C64: return Complex(reinterpret_cast<const std::complex<float>*>(bytes.data())[i]);
      default: return reinterpret_cast<const Complex*>(bytes.data())[i];
    }
  }
  void set(int64_t i, Complex v) {
    switch (type) {
      case ElementType::F32: reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(v.real()); break;
      case ElementType::F64: reinterpret_cast<double*>(bytes.data())[i] = v.real(); break;
      case ElementType::C64: reinterpret_cast<std::complex<float>*>(bytes.data())[i] = std::complex<float>(v); break;
      default: reinterpret_cast<Complex*>(bytes.data())[i] = v;
    }
  }
  ElementType type;
  std::vector<uint8_t> bytes;
};

Array Random(ElementType type, int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Array a(type, n);
  for (int64_t i = 0; i < n; ++i) a.set(i, {uniform(random), IsComplex(type) ? uniform(random) : 0});
  return a;
}

void CheckCholesky(ElementType type, bool lower, int64_t batch, int64_t n, ThreadPool* pool) {
  // Positive definite: random Hermitian plus a heavy diagonal. The other triangle holds garbage.
  Array a = Random(type, batch * n * n, static_cast<uint32_t>(n));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) a.set(b * n * n + i * n + i, Complex(static_cast<double>(n) + 2, 0.5));
  }
  Array original = a;
  ASSERT_TRUE(Cholesky(type, lower, batch, n, a.bytes.data(), pool).ok());
  for (int64_t b = 0; b < batch; ++b) {
    auto l = [&](int64_t r, int64_t c) {  // the factor as a lower matrix
      Complex v = a.get(b * n * n + (lower ? r * n + c : c * n + r));
      return lower ? v : std::conj(v);
    };
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t c = r + 1; c < n; ++c) ASSERT_EQ(l(r, c), Complex(0));
      for (int64_t c = 0; c <= r; ++c) {
        Complex sum = 0;
        for (int64_t k = 0; k <= c; ++k) sum += l(r, k) * std::conj(l(c, k));
        Complex want = original.get(b * n * n + (lower ? r * n + c : c * n + r));
        if (!lower) want = std::conj(want);
        if (r == c) want = want.real();
        ASSERT_LT(std::abs(sum - want), 32 * Epsilon(type) * static_cast<double>(n + 2))
            << Name(type) << " n " << n << " at " << r << "," << c;
      }
    }
  }
}

TEST(Cholesky, Residuals) {
  ThreadPool pool(3);
  for (ElementType type : kTypes) {
    for (bool lower : {true, false}) {
      for (int64_t n : {1, 2, 5, 17, 64, 65, 130}) CheckCholesky(type, lower, 2, n, &pool);
    }
    CheckCholesky(type, true, 1, 300, &pool);
  }
}

TEST(Cholesky, SameBitsWithAnyNumberOfThreads) {
  ThreadPool pool(4);
  const int64_t n = 333;
  Array a = Random(ElementType::F32, n * n, 1);
  for (int64_t i = 0; i < n; ++i) a.set(i * n + i, 400);
  Array b = a;
  ASSERT_TRUE(Cholesky(ElementType::F32, true, 1, n, a.bytes.data(), nullptr).ok());
  ASSERT_TRUE(Cholesky(ElementType::F32, true, 1, n, b.bytes.data(), &pool).ok());
  EXPECT_EQ(a.bytes, b.bytes);
}

// NaN, infinity and a negative pivot, in small matrices and in every block of one that is cut.
TEST(Cholesky, WhatIsNotPositiveDefiniteGivesNansThroughout) {
  ThreadPool pool(2);
  const double infinity = std::numeric_limits<double>::infinity();
  for (int64_t n : {3, 40, 300}) {
    for (double bad : {std::nan(""), infinity, -infinity, -1e5}) {
      for (bool lower : {true, false}) {
        for (auto [row, column] :
             {std::pair(n - 1, n - 1), std::pair(n / 2, int64_t{1}), std::pair(int64_t{0}, int64_t{0})}) {
          Array a(ElementType::F64, n * n);
          for (int64_t i = 0; i < n; ++i) a.set(i * n + i, 2);
          a.set(lower ? row * n + column : column * n + row, bad);
          ASSERT_TRUE(Cholesky(ElementType::F64, lower, 1, n, a.bytes.data(), &pool).ok());
          for (int64_t i = 0; i < n * n; ++i)
            ASSERT_TRUE(std::isnan(a.get(i).real())) << n << " " << bad << " " << row << "," << column << " at " << i;
        }
      }
    }
  }
}

TEST(Cholesky, IndefiniteGivesNans) {
  float a[2][4] = {{1, 0, 2, 1}, {4, 0, 2, 5}};
  ASSERT_TRUE(Cholesky(ElementType::F32, true, 2, 2, a, nullptr).ok());
  for (float v : a[0]) EXPECT_TRUE(std::isnan(v));
  EXPECT_EQ(a[1][0], 2);
  EXPECT_EQ(a[1][3], 2);
  EXPECT_EQ(Cholesky(ElementType::F16, true, 1, 1, a, nullptr).code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(Cholesky(ElementType::F32, true, 0, 5, nullptr, nullptr).ok());
}

void CheckSolve(ElementType type, TriangularOptions options, int64_t batch, int64_t m, int64_t n, ThreadPool* pool) {
  const int64_t k = options.left_side ? m : n;
  Array a = Random(type, batch * k * k, 5), b = Random(type, batch * m * n, 6);
  for (int64_t i = 0; i < batch * k * k; ++i) a.set(i, a.get(i) / static_cast<double>(k));
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t i = 0; i < k; ++i) a.set(s * k * k + i * k + i, a.get(s * k * k + i * k + i) + 2.0);
  }
  for (int64_t s = 0; s < batch; ++s) {  // what is not read may hold anything
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < k; ++j)
        if ((options.lower ? j > i : j < i) || (i == j && options.unit_diagonal))
          a.set(s * k * k + i * k + j, std::nan(""));
  }
  Array x = b;
  ASSERT_TRUE(TriangularSolve(type, options, batch, m, n, a.bytes.data(), x.bytes.data(), pool).ok());
  for (int64_t s = 0; s < batch; ++s) {
    auto op = [&](int64_t r, int64_t c) -> Complex {
      if (options.transpose != TriangularTranspose::kNone) std::swap(r, c);
      if (r == c && options.unit_diagonal) return 1;
      if (options.lower ? c > r : c < r) return 0;
      Complex v = a.get(s * k * k + r * k + c);
      return options.transpose == TriangularTranspose::kAdjoint ? std::conj(v) : v;
    };
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        Complex sum = 0;
        for (int64_t t = 0; t < k; ++t) {
          sum += options.left_side ? op(i, t) * x.get(s * m * n + t * n + j) : x.get(s * m * n + i * n + t) * op(t, j);
        }
        ASSERT_LT(std::abs(sum - b.get(s * m * n + i * n + j)), 100 * Epsilon(type))
            << Name(type) << " " << m << "x" << n << " left " << options.left_side << " lower " << options.lower
            << " transpose " << static_cast<int>(options.transpose);
      }
    }
  }
}

TEST(TriangularSolve, AllVariants) {
  ThreadPool pool(3);
  for (ElementType type : kTypes) {
    for (int variant = 0; variant < 24; ++variant) {
      TriangularOptions options{variant % 2 == 0, variant / 2 % 2 == 0, variant / 4 % 2 == 0,
                                static_cast<TriangularTranspose>(1 + variant / 8)};
      CheckSolve(type, options, 2, 5, 3, nullptr);
      CheckSolve(type, options, 1, 33, 70, &pool);
      CheckSolve(type, options, 19, 6, 1, &pool);  // small ones side by side, the last lanes empty
      CheckSolve(type, options, 3, 16, 16, nullptr);
      CheckSolve(type, options, 1, 1, 1, nullptr);
      CheckSolve(type, options, 1, 6, 13, nullptr);  // a small one alone
    }
    CheckSolve(type, {}, 1, 200, 150, &pool);
  }
}

// Real systems with several right-hand sides: widths of every number of vectors and parts of them, more unknowns than
// a pass has, sizes that are no multiples of a block.
TEST(TriangularSolve, Panels) {
  ThreadPool pool(3);
  for (ElementType type : {ElementType::F32, ElementType::F64}) {
    for (int64_t columns : {4, 15, 17, 33, 50, 64, 65, 300}) CheckSolve(type, {}, 2, 37, columns, &pool);
    for (int variant = 0; variant < 16; ++variant) {
      TriangularOptions options{variant % 2 == 0, variant / 2 % 2 == 0, variant / 4 % 2 == 0,
                                static_cast<TriangularTranspose>(1 + variant / 8)};
      CheckSolve(type, options, 1, options.left_side ? 523 : 20, options.left_side ? 20 : 523, &pool);
    }
  }
}

// Fewer right-hand sides than fill a panel: sizes that are no multiples of a vector, by the vectors of every processor.
TEST(TriangularSolve, OneByOne) {
  ThreadPool pool(3);
  for (ElementType type : {ElementType::F32, ElementType::F64})
    for (int variant = 0; variant < 16; ++variant) {
      const TriangularOptions options{variant % 2 == 0, variant / 2 % 2 == 0, variant / 4 % 2 == 0,
                                      static_cast<TriangularTranspose>(1 + variant / 8)};
      for (int64_t size : {17, 23, 31, 32, 33, 40, 47, 48, 63, 129})
        for (int64_t columns : {1, 2, 3})
          CheckSolve(type, options, size < 40 ? 3 : 1, options.left_side ? size : columns,
                     options.left_side ? columns : size, &pool);
    }
}

template <class T>
void CheckOne(const lapack::SubstitutionKernels<T>& kernels, int64_t size, bool by_rows, bool lower, bool unit) {
  constexpr int64_t kBetween = 3;  // behind each row or column
  const int64_t stride = size + kBetween;
  std::mt19937 random(static_cast<uint32_t>(size));
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> a(size * stride, std::numeric_limits<T>::quiet_NaN()), x(size);
  const auto at = [&](int64_t i, int64_t j) -> T& { return by_rows ? a[i * stride + j] : a[i + j * stride]; };
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = lower ? 0 : i; j < (lower ? i + 1 : size); ++j)
      if (i != j || !unit) at(i, j) = static_cast<T>(i == j ? 2 : uniform(random) / static_cast<double>(size));
    x[i] = static_cast<T>(uniform(random));
  }
  const std::vector<T> b = x;
  kernels.solve_one({size, a.data(), stride, by_rows, lower, unit}, x.data());
  for (int64_t i = 0; i < size; ++i) {
    double sum = unit ? x[i] : double{at(i, i)} * x[i];
    for (int64_t j = lower ? 0 : i + 1; j < (lower ? i : size); ++j) sum += double{at(i, j)} * x[j];
    ASSERT_NEAR(sum, b[i], 20 * std::numeric_limits<T>::epsilon())
        << kernels.width << " " << size << " " << by_rows << lower << unit << " unknown " << i;
  }
}

TEST(TriangularSolve, OneByOneOnEveryProcessor) {
  std::vector<const lapack::SubstitutionIsa*> isas = {&lapack::SubstitutionBaseline()};
#if defined(__x86_64__)
  if (HasAvx2()) isas.push_back(&lapack::SubstitutionAvx2());
#endif
  isas.push_back(&lapack::BestSubstitutionIsa());
  for (const lapack::SubstitutionIsa* isa : isas)
    for (int64_t size = 1; size <= 50; ++size)
      for (int form = 0; form < 8; ++form) {
        CheckOne(isa->f32, size, form % 2 == 0, form / 2 % 2 == 0, form / 4 == 0);
        CheckOne(isa->f64, size, form % 2 == 0, form / 2 % 2 == 0, form / 4 == 0);
      }
}

TEST(TriangularSolve, SmallOnesHaveTheSameBitsAloneAndSideBySide) {
  for (ElementType type : {ElementType::F32, ElementType::F64}) {
    for (int variant = 0; variant < 16; ++variant) {
      const TriangularOptions options{variant % 2 == 0, variant / 2 % 2 == 0, variant / 4 % 2 == 0,
                                      static_cast<TriangularTranspose>(1 + variant / 8)};
      const int64_t n = 7, columns = 11, batch = 3;
      const int64_t rows = options.left_side ? n : columns, across = options.left_side ? columns : n;
      Array a = Random(type, batch * n * n, 3), b = Random(type, batch * n * columns, 4);
      for (int64_t i = 0; i < batch * n * n; i += i % (n * n) == n * n - 1 ? 1 : n + 1) a.set(i, 3);
      std::vector<uint8_t> alone(b.bytes.begin(), b.bytes.end());
      const size_t matrix = a.bytes.size() / batch, system = alone.size() / batch;
      for (size_t k = 0; k < batch; ++k)
        ASSERT_TRUE(TriangularSolve(type, options, 1, rows, across, a.bytes.data() + k * matrix,
                                    alone.data() + k * system, nullptr)
                        .ok());
      ASSERT_TRUE(TriangularSolve(type, options, batch, rows, across, a.bytes.data(), b.bytes.data(), nullptr).ok());
      EXPECT_TRUE(std::equal(alone.begin(), alone.end(), b.bytes.begin())) << variant;
    }
  }
}

TEST(TriangularSolve, SameBitsWithAnyNumberOfThreads) {
  ThreadPool pool(4);
  const int64_t n = 333, columns = 150;
  for (TriangularTranspose transpose : {TriangularTranspose::kNone, TriangularTranspose::kTranspose}) {
    Array a = Random(ElementType::F32, n * n, 1), b = Random(ElementType::F32, n * columns, 2);
    for (int64_t i = 0; i < n; ++i) a.set(i * n + i, 400);
    Array c = b;
    const TriangularOptions options{.transpose = transpose};
    ASSERT_TRUE(
        TriangularSolve(ElementType::F32, options, 1, n, columns, a.bytes.data(), b.bytes.data(), nullptr).ok());
    ASSERT_TRUE(TriangularSolve(ElementType::F32, options, 1, n, columns, a.bytes.data(), c.bytes.data(), &pool).ok());
    EXPECT_EQ(b.bytes, c.bytes);
  }
}

TEST(TriangularSolve, EdgeCases) {
  float a[] = {0}, b[] = {1};
  ASSERT_TRUE(TriangularSolve(ElementType::F32, {}, 1, 1, 1, a, b, nullptr).ok());
  EXPECT_TRUE(std::isinf(b[0]));
  EXPECT_TRUE(TriangularSolve(ElementType::F32, {}, 3, 0, 4, nullptr, nullptr, nullptr).ok());
  EXPECT_EQ(TriangularSolve(ElementType::S32, {}, 1, 1, 1, a, b, nullptr).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(TriangularSolve(ElementType::F32, {}, -1, 1, 1, a, b, nullptr).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace strop::cpu
