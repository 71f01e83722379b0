// The inner loops of GEMM, one table per instruction set. gemm_micro.inc is compiled once for each with its own flags;
// those files include nothing that could emit an inline function for the wrong processor.
#pragma once
#include <cstdint>

namespace strop::cpu {

// tile[mr][nr] = sum over k of a[k][mr] * b[k][nr], where a and b are packed panels (b_stride: distance of the rows of
// b, nr when packed). The sum runs over k in order, one fused multiply-add per term where the processor has it.
template <class T>
using MicroKernel = void (*)(int64_t k, const T* a, const T* b, int64_t b_stride, T* tile);

// out[r] = sum over k of x[k] * rows[r][k], for `count` <= 4 rows with distance row_stride; the sum runs over lanes
// first, so it is another order than MicroKernel's, but always the same.
template <class T>
using DotKernel = void (*)(int64_t k, const T* x, const T* rows, int64_t row_stride, int count, T* out);

template <class T>
struct MicroTable {
  int mr = 0, nr = 0;
  // kernel[i] computes i + 1 rows (a is packed with that many); kernel[mr - 1] is the full one.
  MicroKernel<T> kernel[16] = {};
  DotKernel<T> dot = nullptr;
  void (*multiply_add)(int64_t n, const T* x, const T* y, T* sums) = nullptr;  // sums[i] += x[i] * y[i]
  void (*scale_add)(int64_t n, const T* x, T factor, T* sums) = nullptr;       // sums[i] += x[i] * factor
};

struct GemmIsa {
  const char* name;
  MicroTable<float> f32;
  MicroTable<double> f64;
  MicroTable<int32_t> s32;
  MicroTable<int64_t> s64;
};

const GemmIsa& GemmBaseline();
const GemmIsa& GemmAvx2();    // x86 only
const GemmIsa& GemmAvx512();  // x86 only
// The best that this processor runs.
const GemmIsa& BestGemmIsa();

}  // namespace strop::cpu
