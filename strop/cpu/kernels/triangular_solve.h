// Triangular solve: what HLO's triangular-solve means, for dense row-major batches. Real systems with several
// right-hand sides are solved in panels, those with fewer one by one (substitution.h), many small ones side by side
// (small_systems.h); complex ones by Eigen (eigen_kernels.h).
//
// Transposes, adjoints and solves from the right are the same memory, read the other way round. The right-hand sides
// are cut into pieces of a fixed number of columns; pieces and batches run in parallel, so the bits do not depend on
// the threads.
#pragma once
#include <cstdint>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

enum class TriangularTranspose : uint8_t { kNone = 1, kTranspose = 2, kAdjoint = 3 };  // XLA's numbers

struct TriangularOptions {
  bool left_side = true;       // op(a) x = b, else x op(a) = b
  bool lower = true;           // which triangle of `a` is read
  bool unit_diagonal = false;  // the diagonal counts as ones and is not read
  TriangularTranspose transpose = TriangularTranspose::kNone;
};

// Solves for x in place of b: a is [batch][k][k] with k = m (left side) or n, b is [batch][m][n]. A zero on the
// diagonal gives inf or NaN, no error. f32, f64, c64, c128; Unimplemented for others, ResourceExhausted without memory
// for panels and blocks.
Status TriangularSolve(ElementType type, const TriangularOptions& options, int64_t batch, int64_t m, int64_t n,
                       const void* a, void* b, ThreadPool* pool);

}  // namespace strop::cpu
