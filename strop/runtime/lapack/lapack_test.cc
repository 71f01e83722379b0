// Every routine for every type, batches and shapes: what the factors multiply to is the matrix again.
#include "strop/runtime/lapack/lapack.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "strop/base/thread_pool.h"
#include "strop/runtime/lapack/lapack_fixture.h"

namespace strop {
namespace {

TYPED_TEST_SUITE(LapackTest, Types);

constexpr std::pair<int64_t, int64_t> kSizes[] = {{1, 1}, {3, 5}, {5, 3}, {7, 7}, {1, 4}, {4, 1}, {40, 33}};
constexpr int64_t kOrders[] = {1, 2, 7, 33};

TYPED_TEST(LapackTest, Lu) {
  using T = TypeParam;
  for (auto [m, n] : kSizes) {
    const int64_t k = std::min(m, n), count = 3;
    Batch<T> a = RandomBatch<T>(count, m, n), lu = a;
    std::fill(lu.data.begin(), lu.data.end(), T());
    Batch<int32_t> pivots(count, k, 1), info(count, 1, 1);
    ASSERT_TRUE(this->Runs("getrf", "", {this->Arg(a)}, {this->Arg(lu), this->Vec(pivots), this->Num(info)}));
    for (int64_t b = 0; b < count; ++b) {
      Matrix f = Of(lu, b), l(m, k), u(k, n), pa = Of(a, b);
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i < m; ++i) {
          if (i <= j && i < k) u(i, j) = f(i, j);
          if (j < k) l(i, j) = i > j ? f(i, j) : i == j ? 1.0 : 0.0;
        }
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < n; ++j) std::swap(pa(i, j), pa(pivots(b, i, 0) - 1, j));
      EXPECT_LT(Distance(l * u, pa), this->tolerance_);
      EXPECT_EQ(info(b, 0, 0), 0);
    }
  }
}

// A column without a pivot is left, and the first is told: in small matrices, which are ours, as in large ones.
TYPED_TEST(LapackTest, SingularLu) {
  using T = TypeParam;
  for (int64_t n : {5, 6, 30}) {
    Batch<T> a = RandomBatch<T>(2, n, n), lu = a;
    for (int64_t i = 0; i < n; ++i) a(0, i, 2) = a(0, i, 4) = T(0);
    Batch<int32_t> pivots(2, n, 1), info(2, 1, 1);
    ASSERT_TRUE(this->Runs("getrf", "", {this->Arg(a)}, {this->Arg(lu), this->Vec(pivots), this->Num(info)}));
    EXPECT_EQ(info.data, (std::vector<int32_t>{3, 0})) << n;
    EXPECT_EQ(pivots(0, 2, 0), 3);
    EXPECT_EQ(lu(0, 2, 2), T(0));
  }
}

TYPED_TEST(LapackTest, Qr) {
  using T = TypeParam;
  for (auto [m, n] : kSizes) {
    const int64_t k = std::min(m, n), count = 2;
    Batch<T> a = RandomBatch<T>(count, m, n), qr = a, tau(count, k, 1);
    ASSERT_TRUE(this->Runs("geqrf", "", {this->Arg(a)}, {this->Arg(qr), this->Vec(tau)}));
    Batch<T> q = this->MakeQ(qr, tau);
    Batch<int32_t> free(count, n, 1), pivots(count, n, 1);
    Batch<T> pivoted = a, ptau = tau;
    ASSERT_TRUE(this->Runs("geqp3", "", {this->Arg(a), this->Vec(free)},
                           {this->Arg(pivoted), this->Vec(pivots), this->Vec(ptau)}));
    Batch<T> pq = this->MakeQ(pivoted, ptau);
    // Q applied to the identity is Q.
    Batch<T> one(count, m, m), applied(count, m, m);
    for (int64_t b = 0; b < count; ++b)
      for (int64_t i = 0; i < m; ++i) one(b, i, i) = T(1);
    ASSERT_TRUE(this->Runs(this->Either("ormqr", "unmqr"), "{left = true, transpose = false}",
                           {this->Arg(qr), this->Vec(tau), this->Arg(one)}, {this->Arg(applied)}));
    for (int64_t b = 0; b < count; ++b) {
      Matrix r = Upper(Of(qr, b)), pr = Upper(Of(pivoted, b)), top(k, n), ptop(k, n), ap(m, n);
      for (int64_t j = 0; j < n; ++j) {
        for (int64_t i = 0; i < k; ++i) top(i, j) = r(i, j), ptop(i, j) = pr(i, j);
        for (int64_t i = 0; i < m; ++i) ap(i, j) = Complex(a(b, i, pivots(b, j, 0) - 1));
      }
      EXPECT_LT(Distance(Of(q, b) * top, Of(a, b)), this->tolerance_);
      EXPECT_LT(Distance(Of(pq, b) * ptop, ap), this->tolerance_);
      EXPECT_LT(Distance(Adjoint(Of(q, b)) * Of(q, b), Identity(k)), this->tolerance_);
      Matrix full = Of(applied, b), first(m, k);
      for (int64_t j = 0; j < k; ++j)
        for (int64_t i = 0; i < m; ++i) first(i, j) = full(i, j);
      EXPECT_LT(Distance(first, Of(q, b)), this->tolerance_);
    }
  }
}

TYPED_TEST(LapackTest, Cholesky) {
  using T = TypeParam;
  for (int64_t n : kOrders) {
    Batch<T> a = this->Hermitian(2, n), factor = a;
    for (int64_t i = 0; i < n; ++i) a(0, i, i) += T(static_cast<Real<T>>(2 * n));
    a(1, n - 1, n - 1) = T(-100);
    Batch<int32_t> info(2, 1, 1);
    ASSERT_TRUE(this->Runs("potrf", "{uplo = 85 : ui8}", {this->Arg(a)}, {this->Arg(factor), this->Num(info)}));
    Matrix u = Upper(Of(factor, 0));
    EXPECT_LT(Distance(Adjoint(u) * u, Of(a, 0)), this->tolerance_ * static_cast<double>(n));
    EXPECT_EQ(info(0, 0, 0), 0);
    EXPECT_GT(info(1, 0, 0), 0);  // said, not an error
    Batch<T> lower = a;
    ASSERT_TRUE(this->Runs("potrf", "{uplo = 76 : ui8}", {this->Arg(a)}, {this->Arg(lower), this->Num(info)}));
    Matrix l = Adjoint(Upper(Adjoint(Of(lower, 0))));
    EXPECT_LT(Distance(l * Adjoint(l), Of(a, 0)), this->tolerance_ * static_cast<double>(n));
  }
}

// Small matrices are factored side by side: the same bits wherever one stands in its batch, and alone.
TYPED_TEST(LapackTest, PlaceInTheBatchDoesNotChangeBits) {
  using T = TypeParam;
  for (int64_t n : {1, 2, 3, 6, 17, 32}) {
    constexpr int64_t kCount = 21;
    Batch<T> one = this->Hermitian(1, n);
    for (int64_t i = 0; i < n; ++i) one(0, i, i) += T(static_cast<Real<T>>(n));
    Batch<T> many = RandomBatch<T>(kCount, n, n);
    for (int64_t place = 0; place < kCount; place += 5)
      for (int64_t e = 0; e < n * n; ++e)
        many.data[static_cast<size_t>(place * n * n + e)] = one.data[static_cast<size_t>(e)];
    const auto factor = [&](const std::string& routine, Batch<T> a, int64_t count) {
      Batch<T> result = a;
      Batch<int32_t> pivots(count, n, 1), info(count, 1, 1);
      if (routine == "getrf")
        EXPECT_TRUE(this->Runs(routine, "", {this->Arg(a)}, {this->Arg(result), this->Vec(pivots), this->Num(info)}));
      else
        EXPECT_TRUE(this->Runs(routine, "{uplo = 76 : ui8}", {this->Arg(a)}, {this->Arg(result), this->Num(info)}));
      return result;
    };
    for (const char* routine : {"getrf", "potrf"}) {
      const Batch<T> alone = factor(routine, one, 1), among = factor(routine, many, kCount);
      for (int64_t place = 0; place < kCount; place += 5)
        EXPECT_EQ(std::memcmp(alone.data.data(), &among.data[static_cast<size_t>(place * n * n)],
                              static_cast<size_t>(n * n) * sizeof(T)),
                  0)
            << routine << " " << n << " at " << place;
    }
  }
}

TYPED_TEST(LapackTest, SingularValues) {
  using T = TypeParam;
  using R = Real<T>;
  for (const char* routine : {"gesdd", "gesvd"})
    for (auto [m, n] : kSizes)
      for (char mode : {'A', 'S', 'N'}) {
        const int64_t k = std::min(m, n), count = 2;
        Batch<T> a = RandomBatch<T>(count, m, n), lost = a;
        Batch<T> u(count, m, mode == 'A' ? m : k), vt(count, mode == 'A' ? n : k, n);
        Batch<R> s(count, k, 1);
        Batch<int32_t> info(count, 1, 1);
        ASSERT_TRUE(this->Runs(routine, "{mode = " + std::to_string(mode) + " : ui8}", {this->Arg(a)},
                               {this->Arg(lost), this->Vec(s), this->Arg(u), this->Arg(vt), this->Num(info)}));
        for (int64_t b = 0; b < count; ++b) {
          EXPECT_EQ(info(b, 0, 0), 0);
          double squares = 0, expected = 0;
          for (int64_t i = 0; i < k; ++i) squares += std::norm(Complex(s(b, i, 0)));
          for (const Complex& x : Of(a, b).data) expected += std::norm(x);
          EXPECT_NEAR(squares / expected, 1, this->tolerance_);
          if (mode == 'N') continue;
          Matrix us(m, k), v(k, n), left = Of(u, b), right = Of(vt, b);
          for (int64_t j = 0; j < k; ++j) {
            for (int64_t i = 0; i < m; ++i) us(i, j) = left(i, j) * Complex(s(b, j, 0));
            for (int64_t i = 0; i < n; ++i) v(j, i) = right(j, i);
          }
          EXPECT_LT(Distance(us * v, Of(a, b)), this->tolerance_) << routine << mode << m << "x" << n;
        }
      }
}

TYPED_TEST(LapackTest, HermitianEigenvalues) {
  using T = TypeParam;
  for (int64_t n : kOrders)
    for (const char* triangle : {"76", "85"}) {
      Batch<T> a = this->Hermitian(3, n), v = a;
      Batch<Real<T>> w(3, n, 1);
      Batch<int32_t> info(3, 1, 1);
      ASSERT_TRUE(this->Runs(this->Either("syevd", "heevd"), StrCat("{mode = 86 : ui8, uplo = ", triangle, " : ui8}"),
                             {this->Arg(a)}, {this->Arg(v), this->Vec(w), this->Num(info)}));
      for (int64_t b = 0; b < 3; ++b) {
        Matrix vw = Of(v, b);
        for (int64_t j = 0; j < n; ++j)
          for (int64_t i = 0; i < n; ++i) vw(i, j) *= Complex(w(b, j, 0));
        EXPECT_LT(Distance(Of(a, b) * Of(v, b), vw), this->tolerance_);
        EXPECT_EQ(info(b, 0, 0), 0);
      }
    }
}

TYPED_TEST(LapackTest, Eigenvalues) {
  using T = TypeParam;
  using C = std::complex<Real<T>>;
  for (int64_t n : kOrders) {
    const int64_t count = 3;
    Batch<T> a = RandomBatch<T>(count, n, n), wr(count, n, 1), wi(count, n, 1);
    a(2, 0, 0) = T(std::numeric_limits<Real<T>>::quiet_NaN());
    Batch<C> left(count, n, n), right(count, n, n);
    Batch<int32_t> info(count, 1, 1);
    std::vector<std::pair<Shape, void*>> results = {this->Vec(wr)};
    if (!kIsComplex<T>) results.push_back(this->Vec(wi));
    results.insert(results.end(), {this->Arg(left), this->Arg(right), this->Num(info)});
    ASSERT_TRUE(this->Runs("geev", "{compute_left = 86 : ui8, compute_right = 86 : ui8}", {this->Arg(a)}, results));
    for (int64_t b = 0; b < 2; ++b) {
      Matrix w(n, n), r = Of(right, b), l = Of(left, b);
      for (int64_t i = 0; i < n; ++i) w(i, i) = Complex(wr(b, i, 0)) + Complex(0, 1) * Complex(wi(b, i, 0));
      EXPECT_LT(Distance(Of(a, b) * r, r * w), this->tolerance_);
      EXPECT_LT(Distance(Adjoint(l) * Of(a, b), w * Adjoint(l)), this->tolerance_);
      EXPECT_EQ(info(b, 0, 0), 0);
    }
    EXPECT_EQ(info(2, 0, 0), -4);
    EXPECT_TRUE(std::isnan(std::real(right(2, 0, 0))) && std::isnan(std::real(wr(2, 0, 0))));
  }
}

TYPED_TEST(LapackTest, Schur) {
  using T = TypeParam;
  for (int64_t n : kOrders) {
    Batch<T> a = RandomBatch<T>(2, n, n), t = a, z = a, wr(2, n, 1), wi(2, n, 1);
    Batch<int32_t> selected(2, 1, 1), info(2, 1, 1);
    std::vector<std::pair<Shape, void*>> results = {this->Arg(t), this->Arg(z), this->Vec(wr)};
    if (!kIsComplex<T>) results.push_back(this->Vec(wi));
    results.insert(results.end(), {this->Num(selected), this->Num(info)});
    ASSERT_TRUE(this->Runs("gees", "{mode = 86 : ui8, sort = 78 : ui8}", {this->Arg(a)}, results));
    for (int64_t b = 0; b < 2; ++b) {
      EXPECT_LT(Distance(Of(z, b) * Of(t, b) * Adjoint(Of(z, b)), Of(a, b)), this->tolerance_);
      EXPECT_EQ(Distance(Upper(Of(t, b), -1), Of(t, b)), 0);
      EXPECT_EQ(info(b, 0, 0), 0);
    }
    EXPECT_EQ(this->Run("gees", "{mode = 86 : ui8, sort = 83 : ui8}", {this->Arg(a)}, results).code(),
              StatusCode::kUnimplemented);
  }
}

// Similar matrices have the same trace and, if unitarily so, the same norm.
void ExpectSimilar(const Matrix& a, const Matrix& b, double tolerance) {
  Complex trace = 0;
  double norm_a = 0, norm_b = 0;
  for (int64_t i = 0; i < a.rows; ++i) trace += a(i, i) - b(i, i);
  for (const Complex& x : a.data) norm_a += std::norm(x);
  for (const Complex& x : b.data) norm_b += std::norm(x);
  EXPECT_LT(std::abs(trace), tolerance);
  EXPECT_NEAR(norm_a / norm_b, 1, tolerance);
}

TYPED_TEST(LapackTest, Reductions) {
  using T = TypeParam;
  for (int64_t n : kOrders) {
    Batch<T> a = RandomBatch<T>(2, n, n), h = a, tau(2, n - 1, 1);
    Batch<int32_t> info(2, 1, 1);
    const std::string bounds = StrCat("{high = ", n, " : i32, low = 1 : i32}");
    ASSERT_TRUE(this->Runs("gehrd", bounds, {this->Arg(a)}, {this->Arg(h), this->Vec(tau), this->Num(info)}));
    for (int64_t b = 0; b < 2; ++b) ExpectSimilar(Upper(Of(h, b), -1), Of(a, b), this->tolerance_);

    Batch<T> s = this->Hermitian(2, n), reflectors = s;
    Batch<Real<T>> d(2, n, 1), e(2, n - 1, 1);
    ASSERT_TRUE(this->Runs(this->Either("sytrd", "hetrd"), "{uplo = 76 : ui8}", {this->Arg(s)},
                           {this->Arg(reflectors), this->Vec(d), this->Vec(e), this->Vec(tau), this->Num(info)}));
    for (int64_t b = 0; b < 2; ++b) {
      Matrix t(n, n);
      for (int64_t i = 0; i < n; ++i) t(i, i) = Complex(d(b, i, 0));
      for (int64_t i = 0; i + 1 < n; ++i) t(i, i + 1) = t(i + 1, i) = Complex(e(b, i, 0));
      ExpectSimilar(t, Of(s, b), this->tolerance_);
    }
  }
}

TYPED_TEST(LapackTest, Solves) {
  using T = TypeParam;
  for (int64_t n : kOrders) {
    Batch<T> a = RandomBatch<T>(2, n, n), y = RandomBatch<T>(2, 3, n), x = y;
    for (int64_t b = 0; b < 2; ++b)
      for (int64_t i = 0; i < n; ++i) a(b, i, i) += T(static_cast<Real<T>>(n));
    const std::string letters = "{diag = 78 : ui8, side = 82 : ui8, trans_x = 67 : ui8, uplo = 85 : ui8}";
    ASSERT_TRUE(this->Runs("trsm", letters, {this->Arg(a), this->Arg(y)}, {this->Arg(x)}));
    for (int64_t b = 0; b < 2; ++b)
      EXPECT_LT(Distance(Of(x, b) * Adjoint(Upper(Of(a, b))), Of(y, b)), this->tolerance_);

    Batch<T> dl = RandomBatch<T>(2, n, 1), d = RandomBatch<T>(2, n, 1), du = RandomBatch<T>(2, n, 1);
    for (T& x : d.data) x += T(4);
    Batch<T> rhs = RandomBatch<T>(2, n, 2), solution = rhs, dl2 = dl, d2 = d, du2 = du;
    Batch<int32_t> info(2, 1, 1);
    ASSERT_TRUE(this->Runs("gtsv", "", {this->Vec(dl), this->Vec(d), this->Vec(du), this->Arg(rhs)},
                           {this->Vec(dl2), this->Vec(d2), this->Vec(du2), this->Arg(solution), this->Num(info)}));
    for (int64_t b = 0; b < 2; ++b) {
      Matrix t(n, n);
      for (int64_t i = 0; i < n; ++i) {
        t(i, i) = Complex(d(b, i, 0));
        if (i > 0) t(i, i - 1) = Complex(dl(b, i, 0));
        if (i + 1 < n) t(i, i + 1) = Complex(du(b, i, 0));
      }
      EXPECT_LT(Distance(t * Of(solution, b), Of(rhs, b)), this->tolerance_);
    }
  }
}

// Nothing without elements reaches the library, which would end the process or answer with an error.
TYPED_TEST(LapackTest, Empty) {
  using T = TypeParam;
  using R = Real<T>;
  Batch<T> a(2, 0, 0), same = a, v(2, 0, 1);
  Batch<int32_t> none(2, 0, 1), info(2, 1, 1);
  info.data = {7, 7};
  ASSERT_TRUE(this->Runs("getrf", "", {this->Arg(a)}, {this->Arg(same), this->Vec(none), this->Num(info)}));
  EXPECT_EQ(info.data, (std::vector<int32_t>{0, 0}));
  Batch<T> wide(2, 0, 3), wide_out = wide, u(2, 0, 0), vt(2, 3, 3);
  Batch<R> s(2, 0, 1);
  ASSERT_TRUE(this->Runs("gesdd", "{mode = 65 : ui8}", {this->Arg(wide)},
                         {this->Arg(wide_out), this->Vec(s), this->Arg(u), this->Arg(vt), this->Num(info)}));
  EXPECT_EQ(Distance(Of(vt, 1), Identity(3)), 0);
  Batch<T> many(0, 4, 4), out = many, tau(0, 4, 1);
  EXPECT_TRUE(this->Runs("geqrf", "", {this->Arg(many)}, {this->Arg(out), this->Vec(tau)}));
  // No reflectors at all: Q is columns of the identity.
  Batch<T> start = RandomBatch<T>(2, 4, 2), q = start, no_tau(2, 0, 1);
  ASSERT_TRUE(this->Runs(this->Either("orgqr", "ungqr"), "", {this->Arg(start), this->Vec(no_tau)}, {this->Arg(q)}));
  EXPECT_EQ(q(1, 0, 0), T(1));
  EXPECT_EQ(q(1, 3, 1), T(0));
}

// Factored block by block, with and without a last block that is narrower, columns beyond the last reflector, and
// columns of Q without one of their own.
TYPED_TEST(LapackTest, LargeQr) {
  using T = TypeParam;
  for (auto [m, n, columns] : {std::array<int64_t, 3>{150, 130, 130}, {96, 160, 96}, {140, 96, 140}}) {
    const int64_t k = std::min(m, n);
    Batch<T> a = RandomBatch<T>(1, m, n), qr = a, tau(1, k, 1), reflectors(1, m, columns), q = reflectors;
    std::vector<T> first;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      this->pool_ = &pool;
      ASSERT_TRUE(this->Runs("geqrf", "", {this->Arg(a)}, {this->Arg(qr), this->Vec(tau)}));
      std::copy_n(qr.data.begin(), m * std::min(n, columns), reflectors.data.begin());
      ASSERT_TRUE(
          this->Runs(this->Either("orgqr", "ungqr"), "", {this->Arg(reflectors), this->Vec(tau)}, {this->Arg(q)}));
      if (first.empty()) first = q.data;
      EXPECT_EQ(first, q.data);
    }
    this->pool_ = &this->own_pool_;
    Matrix r = Upper(Of(qr, 0)), top(k, n), thin(m, k), whole = Of(q, 0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < k; ++i) top(i, j) = r(i, j);
    for (int64_t j = 0; j < k; ++j)
      for (int64_t i = 0; i < m; ++i) thin(i, j) = whole(i, j);
    EXPECT_LT(Distance(thin * top, Of(a, 0)), 4 * this->tolerance_);
    EXPECT_LT(Distance(Adjoint(whole) * whole, Identity(columns)), this->tolerance_);
  }
}

// Matrices that lie row by row: strips and blocks that end early, blocks of 32 columns and of more.
TYPED_TEST(LapackTest, LargeLu) {
  using T = TypeParam;
  const auto by_rows = [](Batch<T>& from, Batch<T>& to) {
    for (int64_t i = 0; i < from.rows; ++i)
      for (int64_t j = 0; j < from.columns; ++j) to.data[static_cast<size_t>(i * from.columns + j)] = from(0, i, j);
  };
  for (auto [m, n] : {std::array<int64_t, 2>{300, 260}, {256, 340}, {290, 290}, {50, 70}, {640, 620}}) {
    const int64_t k = std::min(m, n);
    Batch<T> a = RandomBatch<T>(1, m, n), lu = a, rows = a, factored = a;
    if (m == n)  // two columns without a pivot, not in the first block
      for (int64_t i = 0; i < n; ++i) a(0, i, 100) = a(0, i, 200) = T(0);
    by_rows(a, rows);
    Batch<int32_t> pivots(1, k, 1), info(1, 1, 1);
    std::vector<T> first;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      this->pool_ = &pool;
      ASSERT_TRUE(this->Runs("getrf_by_rows", "", {this->Arg(rows)},
                             {this->Arg(factored), this->Vec(pivots), this->Num(info)}));
      if (first.empty()) first = factored.data;
      EXPECT_EQ(first, factored.data);
    }
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) lu(0, i, j) = factored.data[static_cast<size_t>(i * n + j)];
    this->pool_ = &this->own_pool_;
    EXPECT_EQ(info(0, 0, 0), m == n ? 101 : 0);
    Matrix f = Of(lu, 0), l(m, k), u(k, n), pa = Of(a, 0);
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) {
        if (i <= j && i < k) u(i, j) = f(i, j);
        if (j < k) l(i, j) = i > j ? f(i, j) : i == j ? 1.0 : 0.0;
      }
    for (int64_t i = 0; i < k; ++i)
      for (int64_t j = 0; j < n; ++j) std::swap(pa(i, j), pa(pivots(0, i, 0) - 1, j));
    EXPECT_LT(Distance(l * u, pa), 4 * this->tolerance_);
  }
}

TYPED_TEST(LapackTest, LargeCholesky) {
  using T = TypeParam;
  for (int64_t n : {96, 129, 300})
    for (int64_t bad : {-1, 70}) {
      Batch<T> a = this->Hermitian(1, n), factor = a;
      for (int64_t i = 0; i < n; ++i) a(0, i, i) = T(static_cast<Real<T>>(i == bad ? -1 : n));
      Batch<int32_t> info(1, 1, 1);
      std::vector<T> first;
      for (int threads : {1, 3}) {
        ThreadPool pool(threads);
        this->pool_ = &pool;
        ASSERT_TRUE(this->Runs("potrf", "{uplo = 76 : ui8}", {this->Arg(a)}, {this->Arg(factor), this->Num(info)}));
        if (first.empty()) first = factor.data;
        EXPECT_EQ(first, factor.data);
      }
      this->pool_ = &this->own_pool_;
      EXPECT_EQ(info(0, 0, 0), bad + 1);
      for (int64_t j = 0; j < n; ++j)  // the other triangle stays
        for (int64_t i = 0; i < j; ++i) EXPECT_EQ(factor(0, i, j), a(0, i, j));
      if (bad >= 0) continue;
      const Matrix l = Adjoint(Upper(Adjoint(Of(factor, 0))));
      EXPECT_LT(Distance(l * Adjoint(l), Of(a, 0)), static_cast<double>(n) * this->tolerance_);
    }
}

TYPED_TEST(LapackTest, ThreadsDoNotChangeBits) {
  using T = TypeParam;
  Batch<T> a = RandomBatch<T>(40, 24, 24);
  std::vector<T> first;
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    this->pool_ = &pool;
    Batch<T> lost = a, u = a, vt = a;
    Batch<Real<T>> s(40, 24, 1);
    Batch<int32_t> info(40, 1, 1);
    ASSERT_TRUE(this->Runs("gesdd", "{mode = 83 : ui8}", {this->Arg(a)},
                           {this->Arg(lost), this->Vec(s), this->Arg(u), this->Arg(vt), this->Num(info)}));
    if (threads == 1) first = u.data;
    EXPECT_EQ(std::memcmp(first.data(), u.data.data(), first.size() * sizeof(T)), 0) << threads;
  }
}

TYPED_TEST(LapackTest, Refusals) {
  using T = TypeParam;
  Batch<T> a(2, 3, 4), square(2, 4, 4), wrong(2, 4, 3);
  Batch<int32_t> pivots(2, 3, 1), info(2, 1, 1);
  auto message = [&](const Status& status) {
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.message();
    return std::string(status.message());
  };
  EXPECT_NE(message(this->Run("getrf", "", {this->Arg(a)}, {this->Arg(wrong), this->Vec(pivots), this->Num(info)}))
                .find("result 0 is "),
            std::string::npos);
  EXPECT_NE(message(this->Run("getrf", "", {this->Arg(a)}, {this->Arg(a)})).find("takes 1 operands and gives 3"),
            std::string::npos);
  EXPECT_NE(message(this->Run("potrf", "{uplo = 76 : ui8}", {this->Arg(a)}, {this->Arg(a), this->Num(info)}))
                .find("not square"),
            std::string::npos);
  EXPECT_NE(message(this->Run("potrf", "", {this->Arg(square)}, {this->Arg(square), this->Num(info)}))
                .find("attribute uplo is missing"),
            std::string::npos);
  EXPECT_NE(message(this->Run("potrf", "{uplo = 1 : ui8}", {this->Arg(square)}, {this->Arg(square), this->Num(info)}))
                .find("not one of the letters LU"),
            std::string::npos);
  Batch<T> tau(2, 3, 1);
  EXPECT_NE(message(this->Run("gehrd", "{high = 9 : i32, low = 1 : i32}", {this->Arg(square)},
                              {this->Arg(square), this->Vec(tau), this->Num(info)}))
                .find("not in [1, 4]"),
            std::string::npos);
}

TEST(LapackLibrary, IsOpenedWhenItIsThere) {
  CustomCallSite site{.target = "lapack_dgetrf_ffi", .api = CustomCallApi::kTypedFfi};
  Result<std::shared_ptr<CustomCall>> call = BindLapack(site, "/nonexistent/liblapack.so");
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.status().code(), StatusCode::kNotFound);
  const std::string message(call.status().message());
  for (const char* part :
       {"lapack_dgetrf_ffi needs LAPACK", "/nonexistent/liblapack.so", "libopenblas0", "STROP_LAPACK_LIBRARY"})
    EXPECT_NE(message.find(part), std::string::npos) << message;
  EXPECT_EQ(BindLapack(site, "libm.so.6").status().code(), StatusCode::kNotFound);
}

TEST(LapackLibrary, OnlyItsNamesAreTaken) {
  auto is = [](const char* target, CustomCallApi api) { return IsLapackCall({.target = target, .api = api}); };
  EXPECT_TRUE(is("lapack_zungqr_ffi", CustomCallApi::kTypedFfi));
  EXPECT_FALSE(is("lapack_zungqr_ffi", CustomCallApi::kStatus));
  for (const char* name : {"lapack_zorgqr_ffi", "lapack_dungqr_ffi", "lapack_ffi", "lapack__ffi", "lapack_dgetrf",
                           "lapack_xgetrf_ffi", "dgetrf"})
    EXPECT_FALSE(is(name, CustomCallApi::kTypedFfi)) << name;
}

}  // namespace
}  // namespace strop
