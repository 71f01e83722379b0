// What dot, scaled-dot and ragged-dot share: operands packed as [batch][free][contracting], and sums of products that
// are rounded once. Integers wrap; floats are summed in double, f64 and c128 in long double. Short sums of dots are
// taken as the specification's interpreter takes them: products and partial sums in the result's type, if that has 32
// bits at least.
#pragma once
#include <complex>
#include <vector>

#include "strop/interp/scalar.h"
#include "strop/interp/scalar_function.h"
#include "strop/interp/strided.h"

namespace strop::interp {

template <class T>
struct PackedOperand {
  std::vector<T> values;  // [(b * rows + r) * inner + i]
  int64_t batch = 1, rows = 1, inner = 1;
  Int64Vector batch_dims, row_dims, inner_dims;  // sizes

  const T* Row(int64_t b, int64_t r) const { return values.data() + (b * rows + r) * inner; }
};

// Free dimensions are those in none of the lists.
Dims FreeDimensions(int64_t rank, const Dims& batch, const Dims& contracting, const Dims& others = {});

// The array with its dimensions in the order of the lists, each list taken as one dimension.
template <class T>
PackedOperand<T> PackOperand(const std::vector<T>& values, const Int64Vector& dims, const Dims& batch, const Dims& rows,
                             const Dims& inner, int64_t offset = 0) {
  PackedOperand<T> out;
  const Int64Vector strides = RowMajorStrides(dims);
  Int64Vector order_dims, order_strides;
  auto take = [&](const Dims& list, int64_t* size, Int64Vector* sizes) {
    for (int64_t d : list) {
      *size *= dims[static_cast<size_t>(d)];
      sizes->push_back(dims[static_cast<size_t>(d)]);
      order_dims.push_back(dims[static_cast<size_t>(d)]);
      order_strides.push_back(strides[static_cast<size_t>(d)]);
    }
  };
  take(batch, &out.batch, &out.batch_dims);
  take(rows, &out.rows, &out.row_dims);
  take(inner, &out.inner, &out.inner_dims);
  out.values.resize(static_cast<size_t>(out.batch * out.rows * out.inner));
  if (!out.values.empty())
    CopyStrided(sizeof(T), order_dims, reinterpret_cast<uint8_t*>(out.values.data()), RowMajorStrides(order_dims),
                reinterpret_cast<const uint8_t*>(values.data() + offset), order_strides);
  return out;
}

// sums[j] += a * b[j]
template <class T, class Sum>
void AddProducts(T a, const T* b, Sum* sums, int64_t n) {
  const Sum wide = static_cast<Sum>(a);
  for (int64_t j = 0; j < n; ++j) sums[j] += wide * static_cast<Sum>(b[j]);
}
// sums[j] += a[0] * b[j], then a[1] * b[stride + j], and so on: the same bits as four AddProducts.
template <class T, class Sum>
void AddFourProducts(const T* a, const T* b, int64_t stride, Sum* sums, int64_t n) {
  if constexpr (std::is_arithmetic_v<T>) {
    const Sum a0 = static_cast<Sum>(a[0]), a1 = static_cast<Sum>(a[1]), a2 = static_cast<Sum>(a[2]),
              a3 = static_cast<Sum>(a[3]);
    const T *b1 = b + stride, *b2 = b1 + stride, *b3 = b2 + stride;
    for (int64_t j = 0; j < n; ++j)
      sums[j] = sums[j] + a0 * static_cast<Sum>(b[j]) + a1 * static_cast<Sum>(b1[j]) + a2 * static_cast<Sum>(b2[j]) +
                a3 * static_cast<Sum>(b3[j]);
  } else {
    for (int64_t k = 0; k < 4; ++k) AddProducts(a[k], b + k * stride, sums, n);
  }
}
template <class R>
struct ComplexSum {
  R re = 0, im = 0;
};
template <class R>
void AddProducts(std::complex<double> a, const std::complex<double>* b, ComplexSum<R>* sums, int64_t n) {
  const R ar = static_cast<R>(a.real()), ai = static_cast<R>(a.imag());
  for (int64_t j = 0; j < n; ++j) {
    const R br = static_cast<R>(b[j].real()), bi = static_cast<R>(b[j].imag());
    sums[j].re += ar * br - ai * bi;
    sums[j].im += ar * bi + ai * br;
  }
}

// A sum as a cell of the result's domain, not yet rounded.
inline Cell SumCell(uint64_t sum, ElementType) { return Cell::Uint(sum); }
template <class R>
Cell SumCell(ComplexSum<R> sum, ElementType) {
  return Cell::Complex(static_cast<double>(sum.re), static_cast<double>(sum.im));
}
template <class Sum>
  requires(std::is_floating_point_v<Sum>)
Cell SumCell(Sum sum, ElementType result) {
  const Cell cell = Cell::Real(static_cast<double>(sum));
  if (DomainOf(result) == Domain::Real) return cell;
  ScalarInfo info;  // an integer result of floats: truncated and saturated, as convert does
  info.operand = ElementType::F64;
  info.result = result;
  return ConvertFunction(ElementType::F64, result)(cell, {}, {}, info);
}

template <class T, class Sum>
struct SumTypes {
  using Element = T;
  using Total = Sum;
};
inline constexpr int64_t kLongSum = INT64_MAX;
// Calls f(SumTypes<...>{}) with the host types in which `terms` products of lhs and rhs are summed for a result of type
// `result`.
template <class F>
Status WithSumTypes(ElementType lhs, ElementType rhs, ElementType result, int64_t terms, F&& f) {
  const bool is_short = terms <= kShortSum && Bits(result) >= 32;
  if (IsComplex(lhs) || IsComplex(rhs) || IsComplex(result)) {
    using T = std::complex<double>;
    if (!is_short) return f(SumTypes<T, ComplexSum<long double>>{});
    return result == ElementType::C64 ? f(SumTypes<T, ComplexSum<float>>{}) : f(SumTypes<T, ComplexSum<double>>{});
  }
  if (IsFloat(lhs) || IsFloat(rhs) || IsFloat(result)) {
    const bool wide = lhs == ElementType::F64 || rhs == ElementType::F64 || result == ElementType::F64;
    if (is_short) return wide ? f(SumTypes<double, double>{}) : f(SumTypes<double, float>{});
    return wide ? f(SumTypes<double, long double>{}) : f(SumTypes<double, double>{});
  }
  return f(SumTypes<int64_t, uint64_t>{});
}
template <class T>
std::vector<T> LoadAs(const Literal& literal) {
  if constexpr (std::is_same_v<T, double>)
    return LoadReals(literal);
  else if constexpr (std::is_same_v<T, int64_t>)
    return LoadInts(literal);
  else
    return LoadComplexes(literal);
}
// A complex sum has no other result than a complex one.
Status CheckContractionTypes(Op op, ElementType lhs, ElementType rhs, ElementType result);

}  // namespace strop::interp
