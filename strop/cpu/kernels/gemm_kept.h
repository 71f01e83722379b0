// Products in a loop whose right-hand side stays the same: it is packed once, and read from there in every trip. Where
// it lies, its rows are far apart: they meet in the same lines of the first-level cache, and no processor sees them
// coming from the second level. Packed, 8x64 by 64x256 takes two thirds of the time, 4x256 by 256x1024 half.
#pragma once
#include <memory>

#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {

class KeptGemm {
 public:
  virtual ~KeptGemm() = default;
  // Null if that does not suit: of other types than f32 and f64, or what is as fast where it lies.
  static std::shared_ptr<const KeptGemm> Create(const GemmProblem& problem, const GemmIsa& isa = BestGemmIsa());

  // From so many calls on, what they save is worth more than what packing takes.
  int64_t fewest_calls() const { return fewest_calls_; }
  // Both 64-byte aligned.
  int64_t kept_bytes() const { return kept_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& tiles() const { return tiles_; }

  virtual void Keep(const void* b, void* kept) const = 0;
  // `kept` is what Keep filled, and does not change.
  virtual void Run(const void* a, const void* kept, void* c, void* scratch) const = 0;

 protected:
  int64_t fewest_calls_ = 0, kept_bytes_ = 0, scratch_bytes_ = 0;
  std::string tiles_;
};

}  // namespace strop::cpu
