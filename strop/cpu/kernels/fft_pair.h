// Complex Fourier transforms of powers of two, over one long dimension or two, by kernels of our own
// (fft_pair_kernels.h).
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"

namespace strop::cpu {

class FftPair {
 public:
  // Null where other code is to be used: lengths that are no powers of two, too few or too many points, a processor
  // without AVX2. One or two lengths.
  static std::unique_ptr<const FftPair> Create(bool inverse, std::span<const int64_t> lengths, bool double_precision);
  virtual ~FftPair() = default;
  // As FftPlan::Run.
  virtual Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const = 0;
};

}  // namespace strop::cpu
