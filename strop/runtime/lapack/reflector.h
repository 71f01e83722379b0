// One elementary reflector of real numbers.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strop::lapack {

// H = I - tau (1, v)(1, v)^T with H (alpha, x) = (beta, 0): x -> v; beta is returned (LAPACK's larfg). `squares` is the
// sum of the squares of the `n` elements of x.
template <class R>
R MakeReflector(R alpha, R squares, int64_t n, R* x, R* tau) {
  R scale(1);
  // Squares that are small have lost digits.
  if (squares < std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon()) {
    R largest(0);
    for (int64_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(x[i]));
    if (largest == R(0)) {
      *tau = R(0);
      return alpha;
    }
    int exponent = 0;
    std::frexp(std::max(largest, std::abs(alpha)), &exponent);
    exponent = std::max(exponent, std::numeric_limits<R>::min_exponent + 1);  // 1 / scale is a number
    scale = std::ldexp(R(1), exponent);
    alpha /= scale;
    squares = R(0);
    for (int64_t i = 0; i < n; ++i) {
      x[i] /= scale;
      squares += x[i] * x[i];
    }
  }
  const R beta = -std::copysign(std::sqrt(alpha * alpha + squares), alpha), factor = R(1) / (alpha - beta);
  for (int64_t i = 0; i < n; ++i) x[i] *= factor;
  *tau = (beta - alpha) / beta;
  return beta * scale;
}

}  // namespace strop::lapack
