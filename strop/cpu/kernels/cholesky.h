// Cholesky factorisation: what HLO's cholesky means, for dense row-major batches.
//
// Left-looking in columns of 64: the column block is updated with all columns to its left, its diagonal block is
// factored, and the rows below are solved for. Updates and solves are those of triangular_strip.h. Batches run in
// parallel, or else the rows of a column block. Golub and Van Loan, "Matrix Computations", 4.2.
#pragma once
#include <cstdint>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

// a = L L^H (lower) or U^H U (upper) in place: [batch][n][n]. Only the named triangle of `a` is read, and the real part
// of its diagonal; the other triangle becomes zero. A matrix that is not positive definite gives NaNs throughout and no
// error, as in XLA. f32, f64, c64, c128; Unimplemented for others, ResourceExhausted without memory for a copy.
Status Cholesky(ElementType type, bool lower, int64_t batch, int64_t n, void* a, ThreadPool* pool);

}  // namespace strop::cpu
