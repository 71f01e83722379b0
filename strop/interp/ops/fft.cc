// Fourier transforms over the last dimensions. A line of n numbers is transformed by splitting off the smallest prime
// factor p of n (Cooley and Tukey), and directly where n is prime; in long double, with each root of unity computed on
// its own.
#include <cmath>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

using Wide = std::complex<long double>;

Wide Times(Wide a, Wide b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

int64_t SmallestFactor(int64_t n) {
  for (int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

// out[k] = sum_j in[j * stride] * root^(j k), root = roots[total / n] an n-th root of unity. `n` divides total =
// roots.size().
void Transform(const Wide* in, int64_t stride, int64_t n, const std::vector<Wide>& roots, Wide* out) {
  if (n == 1) {
    *out = *in;
    return;
  }
  const int64_t total = static_cast<int64_t>(roots.size()), p = SmallestFactor(n), m = n / p;
  std::vector<Wide> parts(static_cast<size_t>(n));  // parts[r * m + k]: transform of the elements r, r+p, r+2p, ...
  for (int64_t r = 0; r < p; ++r) {
    if (m == 1)
      parts[static_cast<size_t>(r)] = in[r * stride];
    else
      Transform(in + r * stride, stride * p, m, roots, parts.data() + r * m);
  }
  for (int64_t k = 0; k < n; ++k) {
    Wide sum = 0;
    for (int64_t r = 0; r < p; ++r)
      sum += Times(parts[static_cast<size_t>(r * m + k % m)], roots[static_cast<size_t>(r * k % n * (total / n))]);
    out[k] = sum;
  }
}

std::vector<Wide> Roots(int64_t n, bool inverse) {
  std::vector<Wide> roots;
  for (int64_t k = 0; k < n; ++k) {
    const long double angle = 2 * acosl(-1.0L) * static_cast<long double>(k) / static_cast<long double>(n);
    roots.emplace_back(std::cos(angle), inverse ? std::sin(angle) : -std::sin(angle));
  }
  return roots;
}

struct Array {
  Int64Vector dims;
  std::vector<Wide> values;
};

// Every line along dimension d, in place.
Status TransformAlong(const Evaluator& evaluator, Array& array, size_t d, bool inverse) {
  const int64_t n = array.dims[d];
  if (n <= 1) return OkStatus();
  const std::vector<Wide> roots = Roots(n, inverse);
  const Int64Vector strides = RowMajorStrides(array.dims);
  Int64Vector lines = array.dims;
  lines[d] = 1;
  std::vector<Wide> out(static_cast<size_t>(n));
  for (IndexWalk line(lines, {strides}); !line.done(); line.Next()) {
    STROP_TRY(evaluator.Poll());
    Wide* first = array.values.data() + line.offset(0);
    Transform(first, strides[d], n, roots, out.data());
    for (int64_t k = 0; k < n; ++k)
      first[k * strides[d]] =
          inverse ? out[static_cast<size_t>(k)] / static_cast<long double>(n) : out[static_cast<size_t>(k)];
  }
  return OkStatus();
}

// The first half of a line determines the rest: x[n - k] = conj(x[k]). The imaginary parts of x[0] and x[n/2] are
// ignored.
Array CompleteByConjugates(const Array& half, int64_t n) {
  Array full{half.dims, {}};
  const int64_t kept = half.dims.back(), lines = kept == 0 ? 0 : static_cast<int64_t>(half.values.size()) / kept;
  full.dims.back() = n;
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < n; ++k) {
      const int64_t from = k < kept ? k : n - k;
      Wide v = half.values[static_cast<size_t>(line * kept + from)];
      if (k == 0 || 2 * k == n) v = v.real();
      full.values.push_back(k < kept ? v : std::conj(v));
    }
  return full;
}
Array FirstHalf(const Array& full, int64_t kept) {
  Array half{full.dims, {}};
  const int64_t n = full.dims.back(), lines = n == 0 ? 0 : static_cast<int64_t>(full.values.size()) / n;
  half.dims.back() = kept;
  for (int64_t line = 0; line < lines; ++line)
    for (int64_t k = 0; k < kept; ++k) half.values.push_back(full.values[static_cast<size_t>(line * n + k)]);
  return half;
}

}  // namespace

Result<Literal> EvalFft(OpCall& call) {
  const auto& a = call.attrs<FftAttrs>();
  STROP_ASSIGN(Literal result, call.NewResult());
  if (result.num_elements() == 0 || call.in(0).num_elements() == 0) return result;
  Array array{call.in(0).shape().dims(), {}};
  for (std::complex<double> v : LoadComplexes(call.in(0))) array.values.emplace_back(v.real(), v.imag());
  const size_t rank = array.dims.size(), count = a.length.size(), last = rank - 1;
  const bool inverse = a.type == FftType::Ifft || a.type == FftType::Irfft;
  if (a.type == FftType::Irfft) {
    for (size_t d = rank - count; d < last; ++d) STROP_TRY(TransformAlong(call.evaluator, array, d, inverse));
    array = CompleteByConjugates(array, a.length.back());
    STROP_TRY(TransformAlong(call.evaluator, array, last, inverse));
  } else {
    STROP_TRY(TransformAlong(call.evaluator, array, last, inverse));
    if (a.type == FftType::Rfft) array = FirstHalf(array, call.shape.dims().back());
    for (size_t d = rank - count; d < last; ++d) STROP_TRY(TransformAlong(call.evaluator, array, d, inverse));
  }
  std::vector<Cell> cells;
  for (const Wide& v : array.values)
    cells.push_back(Cell::Complex(static_cast<double>(v.real()), static_cast<double>(v.imag())));
  if (static_cast<int64_t>(cells.size()) != result.num_elements())
    return Internal("interpreter: fft sizes do not agree");
  StoreCells(result.type(), cells.data(), result.num_elements(), result.mutable_bytes().data(), 0);
  return result;
}

}  // namespace strop::interp
