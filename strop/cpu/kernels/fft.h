// Discrete Fourier transforms over the last one to three dimensions, batched, any length, by ducc0 (fft_ducc.h).
//
// The library divides its work among as many threads as it is told there are. It is told a number that follows from the
// size of the transform, and its threads are tasks of our pool, so the bits never depend on the number of threads.
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

// Immutable: runs may overlap.
class FftPlan {
 public:
  // `lengths`: fft_length, outermost first (1 to 3 entries; of the real side for real transforms). `double_precision`:
  // c128/f64 instead of c64/f32. InvalidArgument for other ranks and negative lengths; ResourceExhausted for lengths
  // beyond 2^31.
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
