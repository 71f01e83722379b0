// Singular values and eigenvalues of matrices that are cut into parts: what the factors multiply to, that vectors are
// orthogonal, the order of values, and the same bits on any number of threads; singular, repeated, graded, tiny, huge
// and NaN ones among others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "strop/runtime/lapack/lapack_fixture.h"

namespace strop {
namespace {

template <class T>
class SpectraTest : public LapackTest<T> {
 protected:
  using R = Real<T>;
  enum class Kind { kRandom, kZero, kOnes, kIdentity, kLowRank, kGraded, kTwoValues, kTiny, kHuge };
  static constexpr Kind kKinds[] = {Kind::kRandom, Kind::kZero,      Kind::kOnes, Kind::kIdentity, Kind::kLowRank,
                                    Kind::kGraded, Kind::kTwoValues, Kind::kTiny, Kind::kHuge};

  // Hermitian if it is square and of one of these kinds by symmetry.
  static Batch<T> Make(Kind kind, int64_t m, int64_t n, bool hermitian) {
    Batch<T> a = hermitian ? LapackTest<T>::Hermitian(1, n) : RandomBatch<T>(1, m, n);
    const double eps = std::numeric_limits<R>::epsilon();
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        T& x = a(0, i, j);
        const R along = static_cast<R>(std::pow(eps, static_cast<double>(i + j) / static_cast<double>(m + n)));
        const double di = static_cast<double>(i), dj = static_cast<double>(j);
        switch (kind) {
          case Kind::kRandom: break;
          case Kind::kZero: x = T(0); break;
          case Kind::kOnes: x = T(1); break;
          case Kind::kIdentity: x = T(i == j ? 1 : 0); break;
          case Kind::kLowRank:
            x = T(static_cast<R>(std::cos(0.3 * (di - dj)) + 0.5 * std::cos(1.7 * (di - dj))));
            break;
          case Kind::kGraded: x *= along; break;
          // I plus twice a projection: two values, of many each
          case Kind::kTwoValues:
            x = T(static_cast<R>(
                (i == j ? 1.0 : 0.0) +
                (i % 4 == j % 4 ? 2.0 / std::ceil((static_cast<double>(n) - static_cast<double>(j % 4)) / 4) : 0.0)));
            break;
          case Kind::kTiny: x *= std::numeric_limits<R>::min() * R(64); break;
          case Kind::kHuge: x *= std::numeric_limits<R>::max() / R(1024); break;
        }
      }
    return a;
  }
  static double Largest(Batch<R>& values) {
    double largest = 0;
    for (R x : values.data) largest = std::max(largest, std::abs(static_cast<double>(x)));
    return largest > 0 ? largest : 1;
  }
  static Matrix Scaled(Matrix a, double by) {
    for (Complex& x : a.data) x /= by;
    return a;
  }
  // solve() on 1, 2 and 5 threads gives the same bits in `result`.
  template <class U, class Fn>
  void OnAnyThreads(std::vector<U>& result, const Fn& solve) {
    std::vector<U> first;
    for (int threads : {1, 2, 5}) {
      ThreadPool pool(threads);
      this->pool_ = &pool;
      solve();
      if (first.empty()) first = result;
      EXPECT_EQ(std::memcmp(first.data(), result.data(), first.size() * sizeof(U)), 0) << threads << " threads";
    }
    this->pool_ = &this->own_pool_;
  }
  // A few units in the last place for each of n elements.
  static double Tolerance(int64_t n) {
    return 8 * std::sqrt(static_cast<double>(n)) * std::numeric_limits<R>::epsilon();
  }
};
TYPED_TEST_SUITE(SpectraTest, Types);

TYPED_TEST(SpectraTest, Hermitian) {
  using T = TypeParam;
  using R = Real<T>;
  for (int64_t n : {64, 81, 130})
    for (auto kind : TestFixture::kKinds) {
      SCOPED_TRACE(StrCat("order ", n, ", kind ", static_cast<int>(kind)));
      Batch<T> a = this->Make(kind, n, n, true), v = a;
      Batch<R> w(1, n, 1);
      Batch<int32_t> info(1, 1, 1);
      this->OnAnyThreads(v.data, [&] {
        ASSERT_TRUE(this->Runs(this->Either("syevd", "heevd"), "{mode = 86 : ui8, uplo = 76 : ui8}", {this->Arg(a)},
                               {this->Arg(v), this->Vec(w), this->Num(info)}));
      });
      EXPECT_EQ(info(0, 0, 0), 0);
      EXPECT_TRUE(std::is_sorted(w.data.begin(), w.data.end()));
      const double scale = this->Largest(w), tolerance = this->Tolerance(n);
      Matrix vectors = Of(v, 0), vw = vectors;
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < n; ++i) vw(i, j) *= static_cast<double>(w(0, j, 0)) / scale;
      EXPECT_LT(Distance(this->Scaled(Of(a, 0), scale) * vectors, vw), tolerance);
      EXPECT_LT(Distance(Adjoint(vectors) * vectors, Identity(n)), tolerance);
    }
}

TYPED_TEST(SpectraTest, SingularValues) {
  using T = TypeParam;
  using R = Real<T>;
  for (auto [m, n] : {std::pair<int64_t, int64_t>{40, 40}, {64, 64}, {97, 66}, {66, 97}, {130, 129}})
    for (auto kind : TestFixture::kKinds)
      for (char mode : {'A', 'S'}) {
        if (mode == 'S' && m == n) continue;
        SCOPED_TRACE(StrCat(m, "x", n, ", kind ", static_cast<int>(kind), ", mode ", std::string(1, mode)));
        const int64_t k = std::min(m, n);
        Batch<T> a = this->Make(kind, m, n, false), lost = a;
        Batch<T> u(1, m, mode == 'A' ? m : k), vt(1, mode == 'A' ? n : k, n);
        Batch<R> s(1, k, 1);
        Batch<int32_t> info(1, 1, 1);
        std::vector<T> both;
        this->OnAnyThreads(both, [&] {
          ASSERT_TRUE(this->Runs("gesdd", "{mode = " + std::to_string(mode) + " : ui8}", {this->Arg(a)},
                                 {this->Arg(lost), this->Vec(s), this->Arg(u), this->Arg(vt), this->Num(info)}));
          both = u.data;
          both.insert(both.end(), vt.data.begin(), vt.data.end());
        });
        EXPECT_EQ(info(0, 0, 0), 0);
        EXPECT_TRUE(std::is_sorted(s.data.rbegin(), s.data.rend()));
        EXPECT_GE(s.data.back(), R(0));
        const double scale = this->Largest(s), tolerance = 2 * this->Tolerance(std::max(m, n));
        Matrix us(m, k), v(k, n), left = Of(u, 0), right = Of(vt, 0);
        for (int64_t j = 0; j < k; ++j) {
          for (int64_t i = 0; i < m; ++i) us(i, j) = left(i, j) * (static_cast<double>(s(0, j, 0)) / scale);
          for (int64_t i = 0; i < n; ++i) v(j, i) = right(j, i);
        }
        EXPECT_LT(Distance(us * v, this->Scaled(Of(a, 0), scale)), tolerance);
        EXPECT_LT(Distance(Adjoint(left) * left, Identity(left.columns)), tolerance);
        EXPECT_LT(Distance(right * Adjoint(right), Identity(right.rows)), tolerance);
      }
}

TYPED_TEST(SpectraTest, NoNumbers) {
  using T = TypeParam;
  using R = Real<T>;
  for (R bad : {std::numeric_limits<R>::quiet_NaN(), std::numeric_limits<R>::infinity()}) {
    const int64_t n = 70;
    Batch<T> a = this->Hermitian(1, n), v = a, u = a;
    a(0, 9, 9) = bad;
    Batch<R> w(1, n, 1);
    Batch<int32_t> info(1, 1, 1);
    ASSERT_TRUE(this->Runs(this->Either("syevd", "heevd"), "{mode = 86 : ui8, uplo = 76 : ui8}", {this->Arg(a)},
                           {this->Arg(v), this->Vec(w), this->Num(info)}));
    EXPECT_TRUE(std::isnan(w(0, 0, 0)) && std::isnan(std::real(v(0, 0, 0))));
    EXPECT_EQ(info(0, 0, 0), -4);
    if (kIsComplex<T>) continue;  // singular values of complex ones are the library's
    Batch<T> lost = a;
    ASSERT_TRUE(this->Runs("gesdd", "{mode = 83 : ui8}", {this->Arg(a)},
                           {this->Arg(lost), this->Vec(w), this->Arg(u), this->Arg(v), this->Num(info)}));
    EXPECT_TRUE(std::isnan(w(0, 0, 0)) && std::isnan(std::real(v(0, 0, 0))));
    EXPECT_EQ(info(0, 0, 0), -4);
  }
}

}  // namespace
}  // namespace strop
