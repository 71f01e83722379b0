// TopK: the k largest elements of each row with their indices, in descending order, or the k smallest in ascending
// order; equal elements by ascending index.
//
// Floats are compared in total order, as HLO's topk does: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN. Rows are
// [outer][n]; values and indices [outer][k]. One pass compares with the worst of the best so far and keeps a buffer of
// up to 2k candidates (expected O(n + k log k log(n/k))); for large k the row is sorted. Of short rows the best are
// kept in order while the elements pass by, a row a lane, or by insertion if there is one row. InvalidArgument unless 0
// <= k
// <= n < 2^31; Unimplemented for types without an order.
#pragma once
#include <cstdint>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

Status TopK(ElementType type, bool largest, int64_t outer, int64_t n, int64_t k, const void* input, void* values,
            int32_t* indices, ThreadPool* pool);

}  // namespace strop::cpu
