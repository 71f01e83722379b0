// What dot, scaled-dot and ragged-dot share: operands packed as [batch][free][contracting], and sums of products that
// are rounded once. Integers wrap; floats are summed in double, f64 and c128 in long double.
#pragma once
#include <complex>
#include <vector>

#include "strop/interp/scalar.h"
#include "strop/interp/strided.h"

namespace strop::interp {

template <class T>
struct PackedOperand {
  std::vector<T> values;  // [(b * free + f) * contracting + k]
  int64_t batch = 1, free = 1, contracting = 1;
  Int64Vector free_dims, contracting_dims, batch_dims;  // sizes

  const T* Row(int64_t b, int64_t f) const { return values.data() + (b * free + f) * contracting; }
};

// Free dimensions are those in none of the lists.
Dims FreeDimensions(int64_t rank, const Dims& batch, const Dims& contracting, const Dims& others = {});

template <class T>
PackedOperand<T> PackOperand(const std::vector<T>& values, const Int64Vector& dims, const Dims& batch, const Dims& free,
                             const Dims& contracting, int64_t offset = 0) {
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
  take(free, &out.free, &out.free_dims);
  take(contracting, &out.contracting, &out.contracting_dims);
  out.values.resize(static_cast<size_t>(out.batch * out.free * out.contracting));
  if (!out.values.empty())
    CopyStrided(sizeof(T), order_dims, reinterpret_cast<uint8_t*>(out.values.data()), RowMajorStrides(order_dims),
                reinterpret_cast<const uint8_t*>(values.data() + offset), order_strides);
  return out;
}

inline Cell SumOfProducts(const int64_t* a, const int64_t* b, int64_t n, bool) {
  uint64_t sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += static_cast<uint64_t>(a[k]) * static_cast<uint64_t>(b[k]);
  return Cell::Uint(sum);
}
template <class Sum>
Cell SumReals(const double* a, const double* b, int64_t n) {
  Sum sum = 0;
  for (int64_t k = 0; k < n; ++k) sum += static_cast<Sum>(a[k]) * b[k];
  return Cell::Real(static_cast<double>(sum));
}
inline Cell SumOfProducts(const double* a, const double* b, int64_t n, bool wide) {
  return wide ? SumReals<long double>(a, b, n) : SumReals<double>(a, b, n);
}
inline Cell SumOfProducts(const std::complex<double>* a, const std::complex<double>* b, int64_t n, bool) {
  long double re = 0, im = 0;
  for (int64_t k = 0; k < n; ++k) {
    const long double ar = a[k].real(), ai = a[k].imag(), br = b[k].real(), bi = b[k].imag();
    re += ar * br - ai * bi;
    im += ar * bi + ai * br;
  }
  return Cell::Complex(static_cast<double>(re), static_cast<double>(im));
}

// Calls f(T{}) with the host type in which results of type t are summed.
template <class F>
auto WithSumType(ElementType t, F&& f) {
  switch (DomainOf(t)) {
    case Domain::Real: return f(double{});
    case Domain::Complex: return f(std::complex<double>{});
    default: return f(int64_t{});
  }
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
// Is `t` summed with more digits than double has?
inline bool SumsWide(ElementType t) { return t == ElementType::F64; }
// Integer results need integer operands: their products are exact.
Status CheckContractionTypes(Op op, ElementType lhs, ElementType rhs, ElementType result);

}  // namespace strop::interp
