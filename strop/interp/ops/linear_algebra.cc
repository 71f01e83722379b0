// cholesky and triangular-solve, by the textbook recurrences in long double.
#include <cmath>
#include <limits>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

struct WideComplex {
  long double re = 0, im = 0;
  WideComplex operator+(WideComplex o) const { return {re + o.re, im + o.im}; }
  WideComplex operator-(WideComplex o) const { return {re - o.re, im - o.im}; }
  WideComplex operator*(WideComplex o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
  WideComplex operator/(WideComplex o) const {
    const std::complex<long double> q = std::complex<long double>(re, im) / std::complex<long double>(o.re, o.im);
    return {q.real(), q.imag()};
  }
};
long double Conjugate(long double v) { return v; }
WideComplex Conjugate(WideComplex v) { return {v.re, -v.im}; }
long double RealPart(long double v) { return v; }
long double RealPart(WideComplex v) { return v.re; }
void FromReal(long double v, long double& out) { out = v; }
void FromReal(long double v, WideComplex& out) { out = {v, 0}; }
void FromCell(Cell c, long double& out) { out = c.re; }
void FromCell(Cell c, WideComplex& out) { out = {c.re, c.im}; }
Cell ToCell(long double v) { return Cell::Real(static_cast<double>(v)); }
Cell ToCell(WideComplex v) { return Cell::Complex(static_cast<double>(v.re), static_cast<double>(v.im)); }

template <class T>
std::vector<T> LoadWide(const Literal& literal) {
  const std::vector<Cell> cells = LoadAll(literal);
  std::vector<T> out(cells.size());
  for (size_t i = 0; i < cells.size(); ++i) FromCell(cells[i], out[i]);
  return out;
}
template <class T>
void StoreWide(const std::vector<T>& values, Literal& out) {
  std::vector<Cell> cells;
  for (const T& v : values) cells.push_back(ToCell(v));
  StoreCells(out.type(), cells.data(), static_cast<int64_t>(cells.size()), out.mutable_bytes().data(), 0);
}

// L with L L^H = A, from the lower triangle of a; false if A is not positive definite. a(i, j), l(i, j) are accessors.
template <class T>
bool Factor(int64_t n, const std::vector<T>& a, std::vector<T>& l) {
  auto at = [n](int64_t i, int64_t j) { return static_cast<size_t>(i * n + j); };
  for (int64_t j = 0; j < n; ++j) {
    long double pivot = RealPart(a[at(j, j)]);
    for (int64_t k = 0; k < j; ++k) pivot -= RealPart(l[at(j, k)] * Conjugate(l[at(j, k)]));
    if (!(pivot > 0)) return false;
    FromReal(std::sqrt(pivot), l[at(j, j)]);
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a[at(i, j)];
      for (int64_t k = 0; k < j; ++k) sum = sum - l[at(i, k)] * Conjugate(l[at(j, k)]);
      l[at(i, j)] = sum / l[at(j, j)];
    }
  }
  return true;
}

template <class T>
void CholeskyOf(bool lower, int64_t n, Literal& result, const Literal& operand) {
  std::vector<T> all = LoadWide<T>(operand), out(all.size());
  const int64_t size = n * n, count = size == 0 ? 0 : static_cast<int64_t>(all.size()) / size;
  std::vector<T> a(static_cast<size_t>(size)), l(static_cast<size_t>(size));
  for (int64_t m = 0; m < count; ++m) {
    // An upper factor U = L^H comes from the upper triangle: A's lower triangle is its conjugate transpose.
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        const T& given = all[static_cast<size_t>(m * size + (lower ? i * n + j : j * n + i))];
        a[static_cast<size_t>(i * n + j)] = lower ? given : Conjugate(given);
      }
    std::fill(l.begin(), l.end(), T{});
    if (!Factor(n, a, l)) {
      T nan{};
      FromReal(std::numeric_limits<long double>::quiet_NaN(), nan);
      std::fill(l.begin(), l.end(), nan);
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        out[static_cast<size_t>(m * size + i * n + j)] =
            lower ? l[static_cast<size_t>(i * n + j)] : Conjugate(l[static_cast<size_t>(j * n + i)]);
  }
  StoreWide(out, result);
}

// Solves op(A) X = B, or X op(A) = B as op(A)^T X^T = B^T, by substitution.
template <class T>
void Solve(const TriangularSolveAttrs& attrs, int64_t n, int64_t rows, int64_t columns, const Literal& a_literal,
           Literal& result) {
  const std::vector<T> a = LoadWide<T>(a_literal);
  std::vector<T> x = LoadWide<T>(result);
  const int64_t count = rows * columns == 0 ? 0 : static_cast<int64_t>(x.size()) / (rows * columns);
  const bool transposed = attrs.transpose_a == TransposeA::Transpose || attrs.transpose_a == TransposeA::Adjoint;
  const bool conjugated = attrs.transpose_a == TransposeA::Adjoint;
  const bool swap = transposed == attrs.left_side;  // read A transposed? (left, transposed) or (right, not transposed)
  const bool forward = attrs.lower != swap;         // the matrix as read is lower triangular
  const int64_t systems = attrs.left_side ? columns : rows;
  for (int64_t m = 0; m < count; ++m) {
    auto matrix = [&](int64_t i, int64_t j) {
      const T v = a[static_cast<size_t>(m * n * n + (swap ? j * n + i : i * n + j))];
      return conjugated ? Conjugate(v) : v;
    };
    for (int64_t s = 0; s < systems; ++s) {
      auto unknown = [&](int64_t i) -> T& {
        return x[static_cast<size_t>(m * rows * columns + (attrs.left_side ? i * columns + s : s * columns + i))];
      };
      for (int64_t step = 0; step < n; ++step) {
        const int64_t i = forward ? step : n - 1 - step;
        T sum = unknown(i);
        for (int64_t k = 0; k < step; ++k) {
          const int64_t j = forward ? k : n - 1 - k;
          sum = sum - matrix(i, j) * unknown(j);
        }
        unknown(i) = attrs.unit_diagonal ? sum : sum / matrix(i, i);
      }
    }
  }
  StoreWide(x, result);
}

}  // namespace

Result<Literal> EvalCholesky(OpCall& call) {
  const Literal& operand = call.in(0);
  const bool lower = call.attrs<CholeskyAttrs>().lower;
  STROP_ASSIGN(Literal result, call.NewResult());
  const int64_t n = operand.shape().dims().back();
  if (IsComplex(operand.type()))
    CholeskyOf<WideComplex>(lower, n, result, operand);
  else if (IsFloat(operand.type()))
    CholeskyOf<long double>(lower, n, result, operand);
  else
    return Unimplemented("cholesky of ", Name(operand.type()));
  return result;
}

// Operands: A (only the named triangle is read), B.
Result<Literal> EvalTriangularSolve(OpCall& call) {
  const auto& attrs = call.attrs<TriangularSolveAttrs>();
  const Literal& a = call.in(0);
  Literal result = call.in(1);
  const Int64Vector& dims = result.shape().dims();
  const int64_t n = a.shape().dims().back(), rows = dims[dims.size() - 2], columns = dims.back();
  if (IsComplex(a.type()))
    Solve<WideComplex>(attrs, n, rows, columns, a, result);
  else if (IsFloat(a.type()))
    Solve<long double>(attrs, n, rows, columns, a, result);
  else
    return Unimplemented("triangular-solve of ", Name(a.type()));
  return result;
}

}  // namespace strop::interp
