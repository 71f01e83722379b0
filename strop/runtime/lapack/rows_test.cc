// Small matrices side by side: every order and remainder of a batch, against double precision and against the same
// matrix alone; singular, tied, tiny, huge and NaN ones among others.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "strop/base/thread_pool.h"
#include "strop/runtime/executable.h"
#include "strop/runtime/lapack/lapack.h"
#include "strop/runtime/lapack/small_lu.h"

namespace strop {
namespace {

using lapack::Int;

// `count` matrices of m rows and n columns, row by row.
template <class T>
struct Rows {
  int64_t count, m, n;
  std::vector<T> data;
  Rows(int64_t count, int64_t m, int64_t n, T value = T())
      : count(count), m(m), n(n), data(static_cast<size_t>(count * m * n), value) {}
  T& operator()(int64_t b, int64_t i, int64_t j) { return data[static_cast<size_t>((b * m + i) * n + j)]; }
  T* at(int64_t b) { return data.data() + b * m * n; }
  Rows One(int64_t b) {
    Rows one(1, m, n);
    std::copy_n(at(b), m * n, one.data.data());
    return one;
  }
};

template <class T>
std::vector<double> Widened(Rows<T>& a, int64_t b) {
  return std::vector<double>(a.at(b), a.at(b) + a.m * a.n);
}

// The same bits, or both NaN.
template <class T>
testing::AssertionResult Same(const T* a, const T* b, int64_t elements) {
  for (int64_t e = 0; e < elements; ++e)
    if (std::memcmp(a + e, b + e, sizeof(T)) != 0 && !(a[e] != a[e] && b[e] != b[e]))
      return testing::AssertionFailure() << "element " << e << ": " << a[e] << " and " << b[e];
  return testing::AssertionSuccess();
}

template <class T>
class RowsTest : public testing::Test {
 protected:
  static constexpr double kEpsilon = std::numeric_limits<T>::epsilon();

  static Rows<T> Random(int64_t count, int64_t m, int64_t n) {
    std::mt19937 random(static_cast<unsigned>(count * 1009 + m * 131 + n));
    std::uniform_real_distribution<double> uniform(-1, 1);
    Rows<T> a(count, m, n);
    for (T& x : a.data) x = static_cast<T>(uniform(random));
    return a;
  }
  // a^T a + 1 / n of random ones.
  static Rows<T> Positive(int64_t count, int64_t n) {
    Rows<T> a = Random(count, n, n), s(count, n, n);
    for (int64_t b = 0; b < count; ++b)
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j) {
          T sum = T(i == j);
          for (int64_t k = 0; k < n; ++k) sum += a(b, k, i) * a(b, k, j) / static_cast<T>(n);
          s(b, i, j) = sum;
        }
    return s;
  }
  // Some that LU meets seldom: zeros, ties, columns without a pivot, tiny and huge ones, NaN.
  static Rows<T> Odd(int64_t count, int64_t m, int64_t n) {
    Rows<T> a = Random(count, m, n);
    for (int64_t b = 0; b < count; ++b)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          T& x = a(b, i, j);
          switch (b % 8) {
            case 1: x = T(0); break;
            case 2: x = T((i + j) % 2 ? 1 : -1); break;
            case 3: x = j == n / 2 ? T(0) : x; break;
            case 4: x *= std::numeric_limits<T>::min() / 4; break;
            case 5: x *= std::numeric_limits<T>::max() / 64; break;
            case 6: x = i == m / 2 && j == n / 2 ? std::numeric_limits<T>::quiet_NaN() : x; break;
            default: break;
          }
        }
    return a;
  }

  template <class U>
  static std::pair<Shape, void*> Arg(Rows<U>& a) {
    return {Shape::Array(ElementTypeOf<U>(), {a.count, a.m, a.n}), a.data.data()};
  }
  // Without the last dimension, or without both.
  template <class U>
  static std::pair<Shape, void*> Vec(Rows<U>& a) {
    return {Shape::Array(ElementTypeOf<U>(), {a.count, a.m}), a.data.data()};
  }
  template <class U>
  static std::pair<Shape, void*> Num(Rows<U>& a) {
    return {Shape::Array(ElementTypeOf<U>(), {a.count}), a.data.data()};
  }
  Status Run(const std::string& routine, const std::string& attributes, std::vector<std::pair<Shape, void*>> operands,
             std::vector<std::pair<Shape, void*>> results) {
    const std::string letter = sizeof(T) == 4 ? "s" : "d";
    CustomCallSite site{
        .target = "lapack_" + letter + routine + "_rows_ffi", .api = CustomCallApi::kTypedFfi, .opaque = attributes};
    std::vector<void*> in, out;
    for (auto& [shape, data] : operands) site.operands.push_back(shape), in.push_back(data);
    for (auto& [shape, data] : results) site.results.push_back(shape), out.push_back(data);
    EXPECT_TRUE(IsLapackCall(site)) << site.target;
    STROP_ASSIGN(std::shared_ptr<CustomCall> call, BindLapack(site, "no such library"));
    RunArgs run;
    run.pool = pool_;
    return call->Run({in, out, run});
  }

  struct Lu {
    Rows<T> factors;
    Rows<Int> pivots, info;
  };
  Lu Factor(Rows<T> a) {
    Lu lu{a, Rows<Int>(a.count, std::min(a.m, a.n), 1), Rows<Int>(a.count, 1, 1)};
    EXPECT_TRUE(Run("getrf", "{}", {Arg(a)}, {Arg(lu.factors), Vec(lu.pivots), Num(lu.info)}).ok());
    return lu;
  }
  Rows<T> Solve(Rows<T> a, Rows<T> b) {
    Rows<T> x = b;
    EXPECT_TRUE(Run("gesv", "{}", {Arg(a), Arg(b)}, {Arg(x)}).ok());
    return x;
  }
  Rows<T> Inverse(Rows<T> a) {
    Rows<T> x = a;
    EXPECT_TRUE(Run("gesv", "{}", {Arg(a)}, {Arg(x)}).ok());
    return x;
  }
  Rows<T> Cholesky(Rows<T> a, char triangle, bool symmetrize) {
    Rows<T> x = a;
    EXPECT_TRUE(Run("cholesky", Triangle(triangle, symmetrize), {Arg(a)}, {Arg(x)}).ok());
    return x;
  }
  Rows<T> SolvePositive(Rows<T> a, Rows<T> b, char triangle) {
    Rows<T> x = b;
    EXPECT_TRUE(Run("posv", Triangle(triangle, false), {Arg(a), Arg(b)}, {Arg(x)}).ok());
    return x;
  }
  static std::string Triangle(char triangle, bool symmetrize) {
    return StrCat("{uplo = ", static_cast<int>(triangle), " : ui8, symmetrize = ", symmetrize ? 1 : 0, " : i32}");
  }
  struct Reflected {
    Rows<T> r, tau, q;
  };
  Reflected Qr(Rows<T> a) {
    const int64_t k = std::min(a.m, a.n);
    Reflected result{a, Rows<T>(a.count, k, 1), Rows<T>(a.count, a.m, k)};
    EXPECT_TRUE(Run("geqrf", "{}", {Arg(a)}, {Arg(result.r), Vec(result.tau)}).ok());
    Rows<T> v(a.count, a.m, k);
    for (int64_t b = 0; b < a.count; ++b)
      for (int64_t i = 0; i < a.m; ++i) std::copy_n(&result.r(b, i, 0), k, &v(b, i, 0));
    EXPECT_TRUE(Run("orgqr", "{}", {Arg(v), Vec(result.tau)}, {Arg(result.q)}).ok());
    return result;
  }

  // Vectors, values, info.
  std::tuple<Rows<T>, Rows<T>, Rows<Int>> Eigen(Rows<T> a, char triangle) {
    Rows<T> vectors = a, values(a.count, a.n, 1);
    Rows<Int> info(a.count, 1, 1);
    const std::string attributes = StrCat("{mode = 86 : ui8, uplo = ", static_cast<int>(triangle), " : ui8}");
    EXPECT_TRUE(Run("syevd", attributes, {Arg(a)}, {Arg(vectors), Vec(values), Num(info)}).ok());
    return {vectors, values, info};
  }

  // u, s, vt, info.
  std::tuple<Rows<T>, Rows<T>, Rows<T>, Rows<Int>> Svd(Rows<T> a) {
    Rows<T> destroyed = a, u = a, values(a.count, a.n, 1), vt = a;
    Rows<Int> info(a.count, 1, 1);
    EXPECT_TRUE(
        Run("gesdd", "{mode = 65 : ui8}", {Arg(a)}, {Arg(destroyed), Vec(values), Arg(u), Arg(vt), Num(info)}).ok());
    return {u, values, vt, info};
  }
  // How far rows (or columns) of a matrix are from orthonormal ones.
  static double Skew(Rows<T>& q, int64_t b, bool columns) {
    double skew = 0;
    for (int64_t i = 0; i < q.n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t k = 0; k < q.n; ++k)
          product += static_cast<double>(columns ? q(b, k, i) : q(b, i, k)) *
                     static_cast<double>(columns ? q(b, k, j) : q(b, j, k));
        skew = std::max(skew, std::abs(product - (i == j)));
      }
    return skew;
  }

  // The largest |a x - b| of one system, by the largest |a| |x| + |b|.
  static double BackwardError(Rows<T>& a, Rows<T>& x, Rows<T>& b, int64_t k) {
    double error = 0, scale = 0;
    for (int64_t i = 0; i < a.m; ++i)
      for (int64_t c = 0; c < b.n; ++c) {
        double sum = -static_cast<double>(b(k, i, c)), size = std::abs(sum);
        for (int64_t j = 0; j < a.n; ++j) {
          sum += static_cast<double>(a(k, i, j)) * static_cast<double>(x(k, j, c));
          size += std::abs(static_cast<double>(a(k, i, j)) * static_cast<double>(x(k, j, c)));
        }
        error = std::max(error, std::abs(sum));
        scale = std::max(scale, size);
      }
    return scale > 0 ? error / scale : error;
  }

  ThreadPool own_pool_{3};
  ThreadPool* pool_ = &own_pool_;
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(RowsTest, Types);

constexpr int64_t kOrders[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32};

// The bits of the factorisation of one matrix, which is LAPACK's unblocked one.
TYPED_TEST(RowsTest, LuIsThatOfOneMatrix) {
  using T = TypeParam;
  std::vector<std::pair<int64_t, int64_t>> sizes = {{3, 5}, {5, 3}, {1, 4}, {4, 1}, {32, 17}, {17, 32}};
  for (int64_t n : kOrders) sizes.emplace_back(n, n);
  for (auto [m, n] : sizes)
    for (int64_t count : {1, 5, 8, 19}) {
      Rows<T> a = this->Odd(count, m, n);
      auto lu = this->Factor(a);
      for (int64_t b = 0; b < count; ++b) {
        Rows<T> columns(1, n, m), rows(1, m, n);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) columns(0, j, i) = a(b, i, j);
        std::vector<Int> pivots(static_cast<size_t>(std::min(m, n)));
        Int info = 0;
        lapack::SmallLu<T>(static_cast<Int>(m), static_cast<Int>(n), columns.at(0), pivots.data(), &info);
        for (int64_t i = 0; i < m; ++i)
          for (int64_t j = 0; j < n; ++j) rows(0, i, j) = columns(0, j, i);
        EXPECT_TRUE(Same(lu.factors.at(b), rows.at(0), m * n)) << m << "x" << n << " at " << b;
        EXPECT_TRUE(Same(lu.pivots.at(b), pivots.data(), std::min(m, n))) << m << "x" << n << " at " << b;
        EXPECT_EQ(lu.info(b, 0, 0), info) << m << "x" << n << " at " << b;
      }
    }
}

TYPED_TEST(RowsTest, SystemsAreSolved) {
  using T = TypeParam;
  for (int64_t n : kOrders)
    for (int64_t columns : {1, 3, 4, 9}) {
      const int64_t count = 8 + n % 5;
      Rows<T> a = this->Random(count, n, n), b = this->Random(count, n, columns);
      for (int64_t i = 0; i < n; ++i) a(1, i, i) *= T(100);
      for (int64_t e = 0; e < n * n; ++e) a.at(2)[e] *= std::numeric_limits<T>::min();
      for (int64_t e = 0; e < n * n; ++e) a.at(3)[e] *= std::numeric_limits<T>::max() / T(1024);
      Rows<T> x = this->Solve(a, b);
      for (int64_t k = 0; k < count; ++k) {
        if (k == 2) continue;  // its solutions may be infinite
        EXPECT_LT(this->BackwardError(a, x, b, k), 8 * static_cast<double>(n) * this->kEpsilon) << n << " at " << k;
      }
    }
}

TYPED_TEST(RowsTest, AnInverseSolvesForTheUnitMatrix) {
  using T = TypeParam;
  for (int64_t n : kOrders) {
    Rows<T> a = this->Random(11, n, n), unit(11, n, n);
    for (int64_t b = 0; b < 11; ++b)
      for (int64_t i = 0; i < n; ++i) unit(b, i, i) = T(1);
    Rows<T> inverse = this->Inverse(a), x = this->Solve(a, unit);
    EXPECT_TRUE(Same(inverse.at(0), x.at(0), 11 * n * n)) << n;
  }
}

// Division by a pivot that is zero, as in a triangular solve; neighbours are not touched.
TYPED_TEST(RowsTest, SingularSystemsHaveNoFiniteSolution) {
  using T = TypeParam;
  for (int64_t n : {2, 3, 6, 7, 16, 32}) {
    Rows<T> a = this->Random(9, n, n), b = this->Random(9, n, 2);
    for (int64_t i = 0; i < n; ++i) a(4, i, n - 1) = T(0);
    a(6, 0, 0) = std::numeric_limits<T>::quiet_NaN();
    Rows<T> x = this->Solve(a, b);
    for (int64_t k = 0; k < 9; ++k) EXPECT_EQ(std::isfinite(x(k, n - 1, 0)), k != 4 && k != 6) << n << " at " << k;
  }
}

TYPED_TEST(RowsTest, CholeskyFactors) {
  using T = TypeParam;
  for (int64_t n : kOrders)
    for (char triangle : {'L', 'U'}) {
      Rows<T> a = this->Positive(13, n);
      a(3, n - 1, n - 1) = T(-1);
      a(7, 0, 0) = std::numeric_limits<T>::quiet_NaN();
      Rows<T> factor = this->Cholesky(a, triangle, false), torn = a;
      for (int64_t k = 0; k < 13; ++k) {
        const bool fails = k == 3 || k == 7;
        double error = 0;
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) {
            const bool inside = triangle == 'L' ? i >= j : i <= j;
            const T f = factor(k, i, j);
            EXPECT_TRUE(inside ? std::isnan(f) == fails : f == T(0)) << n << triangle << " at " << k;
            double sum = -static_cast<double>(a(k, i, j));
            for (int64_t l = 0; l < n; ++l)
              sum += triangle == 'L' ? static_cast<double>(factor(k, i, l)) * static_cast<double>(factor(k, j, l))
                                     : static_cast<double>(factor(k, l, i)) * static_cast<double>(factor(k, l, j));
            error = std::max(error, std::abs(sum));
          }
        if (!fails) {
          EXPECT_LT(error, 8 * static_cast<double>(n) * this->kEpsilon) << n << " at " << k;
        }
      }
      // Only the triangle is read, unless the mean of both is asked for.
      for (int64_t k = 0; k < 13; ++k)
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j)
            if (triangle == 'L' ? i < j : i > j) torn(k, i, j) = T(77);
      Rows<T> same = this->Cholesky(torn, triangle, false);
      EXPECT_TRUE(Same(factor.at(0), same.at(0), 13 * n * n)) << n;
      Rows<T> skew = this->Random(13, n, n), halves = a;
      for (int64_t k = 0; k < 13; ++k)
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j) {
            skew(k, i, j) += i == j ? static_cast<T>(2 * n) : T(0);
            halves(k, i, j) = (skew(k, i, j) + skew(k, j, i)) * T(0.5);
          }
      for (int64_t k = 0; k < 13; ++k)
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < i; ++j) halves(k, j, i) = halves(k, i, j) = (skew(k, i, j) + skew(k, j, i)) * T(0.5);
      Rows<T> of_mean = this->Cholesky(skew, triangle, true), of_halves = this->Cholesky(halves, triangle, false);
      EXPECT_TRUE(Same(of_mean.at(0), of_halves.at(0), 13 * n * n)) << n;
    }
}

TYPED_TEST(RowsTest, PotrfTellsWhichColumnFails) {
  using T = TypeParam;
  for (int64_t n : {2, 5, 16}) {
    Rows<T> a = this->Positive(9, n), factor = a;
    Rows<Int> info(9, 1, 1);
    a(2, n - 1, n - 1) = T(-1);
    a(5, 0, 0) = T(0);
    ASSERT_TRUE(this->Run("potrf", "{uplo = 76 : ui8}", {this->Arg(a)}, {this->Arg(factor), this->Num(info)}).ok());
    Rows<T> clean = this->Cholesky(a, 'L', false);
    for (int64_t k = 0; k < 9; ++k) {
      EXPECT_EQ(info(k, 0, 0), k == 2 ? n : k == 5 ? 1 : 0);
      for (int64_t i = 0; i < n && info(k, 0, 0) == 0; ++i) {
        EXPECT_TRUE(Same(&factor(k, i, 0), &clean(k, i, 0), i + 1));
        for (int64_t j = i + 1; j < n; ++j) EXPECT_EQ(factor(k, i, j), a(k, i, j));
      }
    }
  }
}

TYPED_TEST(RowsTest, PositiveSystemsAreSolved) {
  using T = TypeParam;
  for (int64_t n : kOrders)
    for (char triangle : {'L', 'U'}) {
      Rows<T> a = this->Positive(10, n), b = this->Random(10, n, 3);
      a(6, n - 1, n - 1) = T(-1);
      Rows<T> x = this->SolvePositive(a, b, triangle);
      for (int64_t k = 0; k < 10; ++k) {
        if (k == 6) {
          EXPECT_TRUE(std::isnan(x(k, 0, 0)) && std::isnan(x(k, n - 1, 2)));
        } else {
          EXPECT_LT(this->BackwardError(a, x, b, k), 8 * static_cast<double>(n) * this->kEpsilon) << n << " at " << k;
        }
      }
    }
}

// R's diagonal has the sign opposite to what it was made of, as LAPACK's; tiny and huge columns keep their digits.
TYPED_TEST(RowsTest, Qr) {
  using T = TypeParam;
  std::vector<std::pair<int64_t, int64_t>> sizes = {{3, 5}, {5, 3}, {1, 4}, {4, 1}, {60, 17}, {17, 32}};
  for (int64_t n : kOrders) sizes.emplace_back(n, n);
  for (auto [m, n] : sizes) {
    Rows<T> a = this->Random(13, m, n);
    for (int64_t e = 0; e < m * n; ++e) {
      a.at(2)[e] *= std::numeric_limits<T>::min() * T(1024);
      a.at(3)[e] *= std::numeric_limits<T>::max() / T(1024);
      a.at(4)[e] = T(0);
      a.at(5)[e] = e % n == 0 ? T(0) : a.at(5)[e];
      a.at(6)[e] = e / n == 0 ? a.at(6)[e] : T(0);
    }
    auto qr = this->Qr(a);
    const int64_t k = std::min(m, n);
    for (int64_t b = 0; b < 13; ++b) {
      std::vector<double> q = Widened(qr.q, b), r = Widened(qr.r, b), from = Widened(a, b);
      double largest = 0, error = 0, orthogonality = 0;
      for (double x : from) largest = std::max(largest, std::abs(x));
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = -from[static_cast<size_t>(i * n + j)];
          for (int64_t l = 0; l < k && l <= j; ++l)
            sum += q[static_cast<size_t>(i * k + l)] * r[static_cast<size_t>(l * n + j)];
          error = std::max(error, std::abs(sum));
        }
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < k; ++j) {
          double sum = -(i == j);
          for (int64_t l = 0; l < m; ++l) sum += q[static_cast<size_t>(l * k + i)] * q[static_cast<size_t>(l * k + j)];
          orthogonality = std::max(orthogonality, std::abs(sum));
        }
      const double rounding = 8 * static_cast<double>(m) * this->kEpsilon;
      EXPECT_LE(error, rounding * largest) << m << "x" << n << " at " << b;
      EXPECT_LT(orthogonality, rounding) << m << "x" << n << " at " << b;
      if (m > 1 && (b < 4 || b > 6)) {
        EXPECT_NE(r[0] < 0, from[0] < 0) << m << "x" << n << " at " << b;
      }
    }
  }
}

// Whatever stands beside a matrix, and however many threads there are.
// Residuals and orthogonality in double precision, beside the largest element; values ascend.
TYPED_TEST(RowsTest, EigenvectorsOfSymmetricMatrices) {
  using T = TypeParam;
  for (int64_t n : {1, 2, 3, 4, 7, 12, 24, 32})
    for (char triangle : {'L', 'U'}) {
      const int64_t count = 45;
      Rows<T> a = this->Odd(count, n, n);
      const auto decomposed = this->Eigen(a, triangle);
      for (int64_t b = 0; b < count; ++b) {
        auto [vectors, values, info] = decomposed;
        if (b % 8 == 6) {
          EXPECT_NE(info(b, 0, 0), 0);  // NaN
          continue;
        }
        ASSERT_EQ(info(b, 0, 0), 0);
        const auto at = [&](int64_t i, int64_t j) {
          const bool read = triangle == 'L' ? i >= j : i <= j;
          return static_cast<double>(read ? a(b, i, j) : a(b, j, i));
        };
        double largest = 0, residual = 0;
        for (int64_t k = 0; k < n; ++k) {
          if (k > 0) {
            EXPECT_LE(values(b, k - 1, 0), values(b, k, 0));
          }
          for (int64_t i = 0; i < n; ++i) {
            double sum = 0;
            for (int64_t j = 0; j < n; ++j) {
              largest = std::max(largest, std::abs(at(i, j)));
              sum += at(i, j) * static_cast<double>(vectors(b, j, k));
            }
            residual = std::max(
                residual, std::abs(sum - static_cast<double>(values(b, k, 0)) * static_cast<double>(vectors(b, i, k))));
          }
        }
        const double bound = 8 * static_cast<double>(n) * TestFixture::kEpsilon;
        // Subnormal numbers have fewer digits.
        EXPECT_LE(residual, bound * std::max<double>(largest, std::numeric_limits<T>::min())) << n << " at " << b;
        EXPECT_LE(this->Skew(vectors, b, true), bound) << n << " at " << b;
      }
    }
}

// The product of the factors, in double precision beside the largest element; singular matrices have vectors, too.
TYPED_TEST(RowsTest, SingularVectors) {
  using T = TypeParam;
  for (int64_t n : {1, 2, 3, 4, 7, 16, 29}) {
    const int64_t count = 45;
    Rows<T> a = this->Odd(count, n, n);
    auto [u, values, vt, info] = this->Svd(a);
    for (int64_t b = 0; b < count; ++b) {
      if (b % 8 == 6) {
        EXPECT_NE(info(b, 0, 0), 0);  // NaN
        continue;
      }
      ASSERT_EQ(info(b, 0, 0), 0);
      double largest = std::numeric_limits<T>::min(), residual = 0;
      for (int64_t k = 0; k < n; ++k) {
        EXPECT_GE(values(b, k, 0), T(0));
        if (k > 0) {
          EXPECT_GE(values(b, k - 1, 0), values(b, k, 0));
        }
        for (int64_t i = 0; i < n; ++i) {
          double sum = -static_cast<double>(a(b, i, k));
          largest = std::max(largest, std::abs(sum));
          for (int64_t j = 0; j < n; ++j)
            sum += static_cast<double>(u(b, i, j)) * static_cast<double>(values(b, j, 0)) *
                   static_cast<double>(vt(b, j, k));
          residual = std::max(residual, std::abs(sum));
        }
      }
      const double bound = 8 * static_cast<double>(n) * TestFixture::kEpsilon;
      EXPECT_LE(residual, bound * largest) << n << " at " << b;
      EXPECT_LE(this->Skew(u, b, true), bound) << n << " at " << b;
      EXPECT_LE(this->Skew(vt, b, false), bound) << n << " at " << b;
    }
  }
}

TYPED_TEST(RowsTest, PlaceInTheBatchDoesNotChangeBits) {
  using T = TypeParam;
  for (int64_t n : {2, 5, 8, 17, 32}) {
    const int64_t count = n < 10 ? 4099 : 515;
    Rows<T> odd = this->Odd(count, n, n), a = this->Random(count, n, n), b = this->Random(count, n, 2);
    Rows<T> positive = this->Positive(count, n);
    for (int64_t e = 0; e < n * n; ++e) std::swap(positive.at(3)[e], odd.at(6)[e]);
    for (int64_t k = 1; k < count; k += 7)
      for (int64_t e = 0; e < n * n; ++e) a.at(k)[e] = odd.at(k)[e];
    const auto everything = [&](auto of) {
      return std::tuple{this->Factor(of(a)).factors,
                        this->Solve(of(a), of(b)),
                        this->Inverse(of(a)),
                        this->Cholesky(of(positive), 'L', true),
                        this->SolvePositive(of(positive), of(b), 'U'),
                        this->Qr(of(a)).q,
                        std::get<0>(this->Eigen(n <= 17 ? of(a) : Rows<T>(1, 1, 1), 'L')),
                        std::get<0>(this->Svd(n <= 8 ? of(a) : Rows<T>(1, 1, 1)))};
    };
    auto all = everything([](Rows<T>& x) { return x; });
    this->pool_ = nullptr;
    auto alone_thread = everything([](Rows<T>& x) { return x; });
    const auto same = [](auto& x, auto& y) { return Same(x.at(0), y.at(0), x.count * x.m * x.n); };
    EXPECT_TRUE(same(std::get<0>(all), std::get<0>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<1>(all), std::get<1>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<2>(all), std::get<2>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<3>(all), std::get<3>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<4>(all), std::get<4>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<5>(all), std::get<5>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<6>(all), std::get<6>(alone_thread))) << n;
    EXPECT_TRUE(same(std::get<7>(all), std::get<7>(alone_thread))) << n;
    for (int64_t k = 0; k < count; k = k < 24 ? k + 1 : k + 97) {
      auto one = everything([&](Rows<T>& x) { return x.One(k); });
      const auto is = [&](auto& x, auto& y) { return Same(x.at(0), y.at(k), x.m * x.n); };
      EXPECT_TRUE(is(std::get<0>(one), std::get<0>(all))) << n << " at " << k;
      EXPECT_TRUE(is(std::get<1>(one), std::get<1>(all))) << n << " at " << k;
      EXPECT_TRUE(is(std::get<2>(one), std::get<2>(all))) << n << " at " << k;
      EXPECT_TRUE(is(std::get<3>(one), std::get<3>(all))) << n << " at " << k;
      EXPECT_TRUE(is(std::get<4>(one), std::get<4>(all))) << n << " at " << k;
      EXPECT_TRUE(is(std::get<5>(one), std::get<5>(all))) << n << " at " << k;
      if (n <= 17) {
        EXPECT_TRUE(is(std::get<6>(one), std::get<6>(all))) << n << " at " << k;
      }
      if (n <= 8) {
        EXPECT_TRUE(is(std::get<7>(one), std::get<7>(all))) << n << " at " << k;
      }
    }
    this->pool_ = &this->own_pool_;
  }
}

TYPED_TEST(RowsTest, Refusals) {
  using T = TypeParam;
  Rows<T> large(2, 33, 33), tall(2, 33, 1), small(2, 3, 3), wrong(2, 4, 1);
  Rows<Int> pivots(2, 33, 1), info(2, 1, 1);
  EXPECT_FALSE(
      this->Run("getrf", "{}", {this->Arg(large)}, {this->Arg(large), this->Vec(pivots), this->Num(info)}).ok());
  EXPECT_FALSE(this->Run("gesv", "{}", {this->Arg(large), this->Arg(tall)}, {this->Arg(tall)}).ok());
  EXPECT_FALSE(this->Run("gesv", "{}", {this->Arg(small), this->Arg(wrong)}, {this->Arg(wrong)}).ok());
  EXPECT_FALSE(this->Run("posv", "{uplo = 76 : ui8, symmetrize = 0 : i32}", {this->Arg(small), this->Arg(wrong)},
                         {this->Arg(wrong)})
                   .ok());
  EXPECT_FALSE(
      this->Run("cholesky", "{uplo = 78 : ui8, symmetrize = 0 : i32}", {this->Arg(small)}, {this->Arg(small)}).ok());
  Rows<T> values(2, 33, 1);
  EXPECT_FALSE(this->Run("syevd", "{mode = 86 : ui8, uplo = 76 : ui8}", {this->Arg(large)},
                         {this->Arg(large), this->Vec(values), this->Num(info)})
                   .ok());
  CustomCallSite site{.target = "lapack_cgesv_rows_ffi", .api = CustomCallApi::kTypedFfi};
  EXPECT_FALSE(IsLapackCall(site));
}

}  // namespace
}  // namespace strop
