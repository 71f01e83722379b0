// Discrete Fourier transforms over the last one to three dimensions, batched, any length.
//
// An FftPlan is made once for a shape (twiddles, factors) and is immutable: runs may overlap.
//   short lines   several at a time, one per vector lane (fft_strip.h): a Stockham autosort FFT with radices 4, 2, 3,
//   5, 7,
//                 11, 13; lengths with a larger prime factor by Bluestein's chirp z-transform over a power of two
//   long lines    one at a time as a matrix of short ones (fft_long.h, Bailey's four-step), in parallel
//   real lines    of even length as complex ones of half the length
// Twiddles have the accuracy of their type. Which way is taken depends on the shape only, so the bits never depend on
// the number of threads.
//
// Scaling as in HLO: forward none, inverse 1/n over all transformed dimensions.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"

namespace strop::cpu {

enum class FftKind : uint8_t { kFft = 0, kIfft = 1, kRfft = 2, kIrfft = 3 };  // XLA's FftType

class FftPlan {
 public:
  // `lengths`: fft_length, outermost first (1 to 3 entries; of the real side for real transforms). `double_precision`:
  // c128/f64 instead of c64/f32. InvalidArgument for other ranks and negative lengths; ResourceExhausted for lengths
  // beyond 2^31 and when there is no memory for the tables.
  static Result<std::shared_ptr<const FftPlan>> Create(FftKind kind, std::span<const int64_t> lengths,
                                                       bool double_precision);
  virtual ~FftPlan() = default;

  // `input` is [batch][in_dims], `output` [batch][out_dims], dense; they may be the same memory for complex transforms.
  // in_dims are the lengths, but the last is n/2+1 for kIrfft; out_dims likewise for kRfft. The imaginary parts of a
  // real transform's first (and, for even n, last) coefficient are ignored. ResourceExhausted without memory for the
  // work.
  virtual Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const = 0;
};

}  // namespace strop::cpu
