// Products of a few rows at a time by one B (of a batch): the rows come when they have been computed, and go on to what
// reads them while they lie in the cache. Each thread packs B for itself, once for all the rows that it is given.
#pragma once
#include <memory>

#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {

// Columns of a product that are wanted: of its row i, those from i / step + first to i / step + last; the others are
// left as they are. step = 0: all of them.
struct WantedColumns {
  int64_t step = 0, first = 0, last = 0;
};

class RowGemm {
 public:
  virtual ~RowGemm() = default;
  // `problem` is the whole product; each call computes `rows` of its rows, which are in one product of its batch.
  // Unimplemented for elements that are not summed as f32 or f64, but for bytes where kernels multiply squares of them.
  static Result<std::shared_ptr<const RowGemm>> Create(const GemmProblem& problem, int64_t rows,
                                                       const GemmIsa& isa = BestGemmIsa(),
                                                       const WantedColumns& wanted = {});

  // What Pack fills, though B be read where it lies. Both 64-byte aligned.
  int64_t packed_bytes() const { return packed_bytes_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  std::string tiles() const { return tiles_; }

  // `b` is the matrix of a product of the batch; a and c are the first of the rows, the row `first` of the product.
  // `packed` is what Pack filled, for this thread alone. kAdd adds to what c holds, which is of the type of the sums.
  enum class To : uint8_t { kSet, kAdd };
  virtual void Pack(const void* b, void* packed) const = 0;
  virtual void Run(const void* a, const void* b, void* packed, void* c, void* scratch, int64_t first = 0,
                   To to = To::kSet) const = 0;

 protected:
  int64_t packed_bytes_ = 0, scratch_bytes_ = 0;
  std::string tiles_;
};

}  // namespace strop::cpu
