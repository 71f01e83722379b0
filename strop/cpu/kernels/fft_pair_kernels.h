// Complex Fourier transforms of n1 x n2 points, both powers of two, as n2 transforms of n1 points and then n1 of n2: a
// transform over two dimensions, or over one whose points n2 i + j are taken for a matrix (four steps: columns, turning
// factors, rows, transposition).
//
// `lanes` transforms run side by side, real and imaginary parts in vectors of their own, so nothing within one crosses
// lanes; matrices of lanes x lanes are transposed on the way between. fft_pair.inc is compiled once for each
// instruction set with its own flags; it includes nothing that could emit an inline function for the wrong processor.
#pragma once
#include <cstdint>

namespace strop::cpu {

// Of one length: the roots of unity e^(-2 pi i k / n), and where a transform in place leaves frequency k.
template <class R>
struct FftRoots {
  int64_t n = 0;
  const R* roots = nullptr;
  const int32_t* place = nullptr;
};

template <class R>
struct FftPairTables {
  FftRoots<R> first, second;  // n1 and n2
  // e^(-2 pi i k l / (n1 n2)) is near[k][l % lanes] far[k][l / lanes]; null for two dimensions. `near` has the real
  // parts of a k before the imaginary ones.
  const R* near = nullptr;
  const R* far = nullptr;
  bool inverse = false;
  R scale = 1;
};

template <class R>
struct FftPairKernels {
  int lanes = 0;
  // The transforms of n1 points from column group * lanes on; `work` is for 2 n1 lanes numbers, `between` for 2 n1 n2.
  void (*columns)(const FftPairTables<R>& t, int64_t group, const R* in, R* work, R* between) = nullptr;
  // Those of n2 points from row group * lanes on, in place.
  void (*rows)(const FftPairTables<R>& t, int64_t group, R* between, R* out) = nullptr;
  // With a at k and b the conjugate of what is at m - k: (a + b) / 2 + f (a - b) to k, and the conjugate of
  // (a + b) / 2 - f (a - b) to m - k, for k - 1 and the factors f from `begin` to `end`, multiples of the lanes.
  void (*fold)(int64_t m, int64_t begin, int64_t end, const R* from, const R* re, const R* im, R* to) = nullptr;
};

struct FftPairIsa {
  FftPairKernels<float> f32;
  FftPairKernels<double> f64;
};

const FftPairIsa* BestFftPairIsa();  // of this processor, or null
const FftPairIsa& FftPairAvx2();     // x86 only
const FftPairIsa& FftPairAvx512();   // x86 only

}  // namespace strop::cpu
