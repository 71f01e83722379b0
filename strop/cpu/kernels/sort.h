// Sort of one or more operands along one dimension, always stable, hence the same result however it is computed.
//
// Operands are dense row-major and seen as [outer][n][inner]; sorting is along n, in place. All operands have the same
// dimensions and move together.
//
// Two ways, chosen by the caller:
//   SortByKey       the comparator compares operand `key` in a known order. Keys become unsigned integers whose order
//   is
//                   that one; lines of up to 64 elements go a line a lane of vectors (short_sort.h), other short ones
//                   are merged (merge_sort.h), long ones radix-sorted, least significant digit first (radix_sort.h),
//                   those beyond 32 Ki elements most significant digit first, by several threads (partition_sort.h).
//   SortByFunction  any comparator: a stable merge sort of indices that calls the function for each comparison. Safe
//                   with comparators that are no strict weak order (the result is then some permutation).
#pragma once
#include <cstdint>
#include <span>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

struct SortOperand {
  void* data = nullptr;
  int64_t element_bytes = 0;  // 1, 2, 4, 8 or 16
};

struct SortShape {
  int64_t outer = 1;
  int64_t n = 0;
  int64_t inner = 1;
};

enum class KeyOrder : uint8_t {
  kIeee,   // a < b of integers and floats; -0 == +0; NaNs, which that order does not place, go last (descending: last,
           // too)
  kTotal,  // HLO's TOTALORDER: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN
  kNumpy,  // as jax.lax.sort: -0 == +0, all NaNs equal and greater than inf (descending: first)
};

struct SortKey {
  int64_t operand = 0;
  ElementType type = ElementType::F32;  // pred, integers of 8 bits or more or one per byte, f16, bf16, f32, f64, f8
  KeyOrder order = KeyOrder::kIeee;
  bool descending = false;
};

// Unimplemented for key types without an order (complex); InvalidArgument for bad element sizes.
Status SortByKey(const SortShape& shape, std::span<const SortOperand> operands, const SortKey& key, ThreadPool* pool);

// less(pairs, context): pairs[2*i] and pairs[2*i+1] are the addresses of the left and right element of operand i.
using SortLess = bool (*)(const void* const* pairs, void* context);

Status SortByFunction(const SortShape& shape, std::span<const SortOperand> operands, SortLess less, void* context,
                      ThreadPool* pool);

}  // namespace strop::cpu
