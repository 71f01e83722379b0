// Cholesky factorisation: what HLO's cholesky means, for dense row-major batches, by Eigen (eigen_kernels.h).
//
// Matrices of order up to 256 are Eigen's whole, a few a task. Larger ones are cut as LAPACK's potrf is: the diagonal
// block of 128 columns is factored, the rows below are solved for, and what is right of them is updated; rows and tiles
// of a step run in parallel. The cut follows from the size alone, so the bits do not depend on the threads.
#pragma once
#include <cstdint>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

// a = L L^H (lower) or U^H U (upper) in place: [batch][n][n]. Only the named triangle of `a` is read, and the real part
// of its diagonal; the other triangle becomes zero. A matrix that is not positive definite gives NaNs throughout and no
// error, as in XLA. f32, f64, c64, c128; Unimplemented for others, ResourceExhausted without memory for Eigen's blocks.
Status Cholesky(ElementType type, bool lower, int64_t batch, int64_t n, void* a, ThreadPool* pool);

}  // namespace strop::cpu
