// Fourier transforms from and to real numbers, over one dimension whose length is a power of two: n of them are taken
// for n / 2 complex ones, which FftPair transforms.
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"

namespace strop::cpu {

class FftReal {
 public:
  // Null where other code is to be used. `inverse`: from n / 2 + 1 complex numbers to n real ones.
  static std::unique_ptr<const FftReal> Create(bool inverse, std::span<const int64_t> lengths, bool double_precision);
  virtual ~FftReal() = default;
  // As FftPlan::Run.
  virtual Status Run(int64_t batch, const void* input, void* output, ThreadPool* pool) const = 0;
};

}  // namespace strop::cpu
