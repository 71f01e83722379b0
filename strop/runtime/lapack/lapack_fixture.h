// What tests of LAPACK's routines share: batches of matrices, their products in double precision, and calls.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "strop/base/options.h"
#include "strop/base/thread_pool.h"
#include "strop/runtime/executable.h"
#include "strop/runtime/lapack/lapack.h"
#include "strop/runtime/lapack/library.h"
#include "strop/runtime/lapack/site.h"

namespace strop {

using lapack::kIsComplex;
using lapack::Real;
using Complex = std::complex<double>;

// STROP_LAPACK_LIBRARY names the library to be tested.
inline std::string LibraryPath() {
  const Result<Options> options = OptionsFromEnvironment();
  return options.ok() ? options->lapack_library : "";
}
inline bool HaveLibrary() { return lapack::Library::Open(LibraryPath()).ok(); }

// A batch of matrices, column by column.
template <class T>
struct Batch {
  int64_t count, rows, columns;
  std::vector<T> data;
  Batch(int64_t count, int64_t rows, int64_t columns)
      : count(count), rows(rows), columns(columns), data(static_cast<size_t>(count * rows * columns)) {}
  T& operator()(int64_t b, int64_t i, int64_t j) { return data[static_cast<size_t>((b * columns + j) * rows + i)]; }
  Shape shape() const { return Shape::Array(ElementTypeOf<T>(), {count, rows, columns}); }
};

template <class T>
T Random(std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  if constexpr (kIsComplex<T>) {
    const double re = uniform(random), im = uniform(random);
    return T(static_cast<Real<T>>(re), static_cast<Real<T>>(im));
  } else {
    return static_cast<T>(uniform(random));
  }
}
template <class T>
Batch<T> RandomBatch(int64_t count, int64_t rows, int64_t columns) {
  std::mt19937 random(static_cast<unsigned>(rows * 131 + columns));
  Batch<T> batch(count, rows, columns);
  for (T& x : batch.data) x = Random<T>(random);
  return batch;
}

// One matrix, in double precision.
struct Matrix {
  int64_t rows, columns;
  std::vector<Complex> data;
  Matrix(int64_t rows, int64_t columns) : rows(rows), columns(columns), data(static_cast<size_t>(rows * columns)) {}
  Complex& operator()(int64_t i, int64_t j) { return data[static_cast<size_t>(j * rows + i)]; }
  Complex operator()(int64_t i, int64_t j) const { return data[static_cast<size_t>(j * rows + i)]; }
};
template <class T>
Matrix Of(Batch<T>& batch, int64_t b) {
  Matrix m(batch.rows, batch.columns);
  for (int64_t j = 0; j < m.columns; ++j)
    for (int64_t i = 0; i < m.rows; ++i) m(i, j) = Complex(batch(b, i, j));
  return m;
}
inline Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (int64_t j = 0; j < b.columns; ++j)
    for (int64_t k = 0; k < a.columns; ++k)
      for (int64_t i = 0; i < a.rows; ++i) c(i, j) += a(i, k) * b(k, j);
  return c;
}
inline Matrix Adjoint(const Matrix& a) {
  Matrix t(a.columns, a.rows);
  for (int64_t j = 0; j < a.columns; ++j)
    for (int64_t i = 0; i < a.rows; ++i) t(j, i) = std::conj(a(i, j));
  return t;
}
// The elements on and above diagonal `d`.
inline Matrix Upper(Matrix a, int64_t d = 0) {
  for (int64_t j = 0; j < a.columns; ++j)
    for (int64_t i = 0; i < a.rows; ++i)
      if (j - i < d) a(i, j) = 0;
  return a;
}
inline Matrix Identity(int64_t n) {
  Matrix m(n, n);
  for (int64_t i = 0; i < n; ++i) m(i, i) = 1;
  return m;
}
inline double Distance(const Matrix& a, const Matrix& b) {
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.columns, b.columns);
  double most = 0;
  for (size_t i = 0; i < a.data.size(); ++i) most = std::max(most, std::abs(a.data[i] - b.data[i]));
  return most;
}

template <class T>
class LapackTest : public testing::Test {
 protected:
  using R = Real<T>;
  static constexpr ElementType kType = ElementTypeOf<T>();
  static constexpr ElementType kReal = ElementTypeOf<R>();
  static constexpr ElementType kInt = ElementType::S32;
  const double tolerance_ = std::is_same_v<R, float> ? 2e-4 : 1e-11;

  void SetUp() override {
    if (!HaveLibrary()) GTEST_SKIP() << "no LAPACK library on this machine";
  }
  static std::string Target(const std::string& routine) {
    const char letter = std::is_same_v<T, float>                 ? 's'
                        : std::is_same_v<T, double>              ? 'd'
                        : std::is_same_v<T, std::complex<float>> ? 'c'
                                                                 : 'z';
    return "lapack_" + std::string(1, letter) + routine + "_ffi";
  }
  static std::string Either(const char* real, const char* complex) { return kIsComplex<T> ? complex : real; }

  Status Run(const std::string& routine, const std::string& attributes, std::vector<std::pair<Shape, void*>> operands,
             std::vector<std::pair<Shape, void*>> results) {
    CustomCallSite site{.target = Target(routine), .api = CustomCallApi::kTypedFfi, .opaque = attributes};
    std::vector<void*> in, out;
    for (auto& [shape, data] : operands) site.operands.push_back(shape), in.push_back(data);
    for (auto& [shape, data] : results) site.results.push_back(shape), out.push_back(data);
    EXPECT_TRUE(IsLapackCall(site)) << site.target;
    STROP_ASSIGN(std::shared_ptr<CustomCall> call, BindLapack(site, LibraryPath()));
    RunArgs run;
    run.pool = pool_;
    return call->Run({in, out, run});
  }
  testing::AssertionResult Runs(const std::string& routine, const std::string& attributes,
                                std::vector<std::pair<Shape, void*>> operands,
                                std::vector<std::pair<Shape, void*>> results) {
    const Status status = Run(routine, attributes, std::move(operands), std::move(results));
    if (status.ok()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << status.message();
  }
  template <class U>
  static std::pair<Shape, void*> Arg(Batch<U>& batch) {
    return {batch.shape(), batch.data.data()};
  }
  // Vectors and numbers of a batch are matrices of one column or element without that dimension.
  template <class U>
  static std::pair<Shape, void*> Vec(Batch<U>& batch) {
    return {Shape::Array(ElementTypeOf<U>(), {batch.count, batch.rows}), batch.data.data()};
  }
  template <class U>
  static std::pair<Shape, void*> Num(Batch<U>& batch) {
    return {Shape::Array(ElementTypeOf<U>(), {batch.count}), batch.data.data()};
  }
  static Batch<T> Hermitian(int64_t count, int64_t n) {
    Batch<T> a = RandomBatch<T>(count, n, n);
    for (int64_t b = 0; b < count; ++b)
      for (int64_t j = 0; j < n; ++j)
        for (int64_t i = 0; i <= j; ++i) {
          if constexpr (kIsComplex<T>) {
            a(b, j, i) = std::conj(a(b, i, j));
            if (i == j) a(b, i, i) = a(b, i, i).real();
          } else {
            a(b, j, i) = a(b, i, j);
          }
        }
    return a;
  }
  // Q from reflectors and tau.
  Batch<T> MakeQ(Batch<T> reflectors, Batch<T> tau) {
    const int64_t k = tau.rows;
    Batch<T> v(reflectors.count, reflectors.rows, k), q = v;
    for (int64_t b = 0; b < v.count; ++b)
      for (int64_t j = 0; j < k; ++j)
        for (int64_t i = 0; i < v.rows; ++i) v(b, i, j) = reflectors(b, i, j);
    EXPECT_TRUE(Runs(Either("orgqr", "ungqr"), "", {Arg(v), Vec(tau)}, {Arg(q)}));
    return q;
  }

  ThreadPool own_pool_{3};
  ThreadPool* pool_ = &own_pool_;
};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;

}  // namespace strop
