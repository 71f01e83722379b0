// Powers of two that matrices are scaled by, which costs no digit.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace strop::lapack {

inline constexpr int kNoExponent = std::numeric_limits<int>::max();

// The exponent of the largest of what `add` is given: all are less than two to its power. kNoExponent if one is an
// infinity or no number, 0 of zeros.
template <class R>
class LargestExponent {
 public:
  void Add(const R* x, int64_t n) {
    R largest = largest_, sum = sum_;
    for (int64_t i = 0; i < n; ++i) {
      largest = std::max(largest, std::abs(x[i]));
      sum += x[i] * R(0);  // NaN of an infinity, too
    }
    largest_ = largest, sum_ = sum;
  }
  int Get() const {
    int exponent = 0;
    std::frexp(largest_, &exponent);
    return sum_ == R(0) ? exponent : kNoExponent;
  }
  // The same, but 0 where squares of elements are numbers with all their digits.
  int OfExtremes() const {
    constexpr int kSafe = std::numeric_limits<R>::max_exponent / 3;
    const int exponent = Get();
    return std::abs(exponent) <= kSafe ? 0 : exponent;
  }

 private:
  R largest_ = 0, sum_ = 0;
};

template <class R>
void ScaleBy(int exponent, R* x, int64_t n) {
  if (exponent != 0)
    for (int64_t i = 0; i < n; ++i) x[i] = std::ldexp(x[i], exponent);
}

}  // namespace strop::lapack
