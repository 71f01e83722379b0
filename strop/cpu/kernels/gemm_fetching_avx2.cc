#include "strop/cpu/kernels/gemm_fetching.h"

#if defined(__AVX2__)
namespace strop::cpu {
namespace {

constexpr int kVectorBytes = 32, kVectors = 2;

template <class T, int kRows>
void Fetching(int64_t units, const T* a, const T* b, int64_t b_stride, T* c, int64_t c_stride, bool accumulate,
              const T* next) {
  typedef T V __attribute__((vector_size(kVectorBytes)));
  typedef T U __attribute__((vector_size(kVectorBytes), aligned(alignof(T)), may_alias));
  constexpr int kLanes = kVectorBytes / sizeof(T);
  V acc[kRows][kVectors] = {};
  const auto step = [&]() __attribute__((always_inline)) {
    V row[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) row[v] = *reinterpret_cast<const U*>(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) acc[r][v] += a[r] * row[v];
    }
    a += kRows;
    b += b_stride;
    // Steps that are reordered have too few registers.
    asm volatile("" : "+r"(a), "+r"(b));
  };
  for (; units >= kUnitsALine; units -= kUnitsALine, next += kLineBytes / sizeof(T)) {
    __builtin_prefetch(next, 0, 2);
#pragma GCC unroll 4
    for (int s = 0; s < kUnitsALine; ++s) step();
  }
  for (; units > 0; --units) step();
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      U* to = reinterpret_cast<U*>(c + r * c_stride + v * kLanes);
      *to = accumulate ? acc[r][v] + *to : acc[r][v];
    }
  }
}

template <class T>
constexpr FetchingKernel<T> kKernels[kFetchingRows] = {&Fetching<T, 1>, &Fetching<T, 2>, &Fetching<T, 3>,
                                                       &Fetching<T, 4>, &Fetching<T, 5>, &Fetching<T, 6>};

}  // namespace

const FetchingKernel<float>* FetchingAvx2(float) { return kKernels<float>; }
const FetchingKernel<double>* FetchingAvx2(double) { return kKernels<double>; }

}  // namespace strop::cpu
#endif
