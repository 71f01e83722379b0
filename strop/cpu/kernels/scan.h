// Scan: out[i] = x[0] * x[1] * ... * x[i] along one dimension of a dense row-major array seen as [outer][n][inner], for
// one of the combiners of combine.h as *; reversed, from i to n - 1. What jax.numpy.cumsum and its like are.
//
// Long lines are cut into segments of a fixed length (it depends on the shape alone, so the sums do not depend on
// threads): each segment is scanned on its own, the last elements of the segments are scanned, and each segment is
// combined with what came before it (Blelloch, "Prefix Sums and Their Applications", 1990). Where lines are
// neighbours in memory (inner > 1) the loop over them is the vector loop; where they are not, each vector of a line is
// scanned in itself (scan_vector.h) and combined with what came before it, so that the chain is one step a vector. Many
// lines shorter than a vector are turned, a line a lane, where combining two elements is several operations.
#pragma once
#include <cstdint>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/cpu/kernels/combine.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

struct ScanProblem {
  ElementType type = ElementType::F32;
  CombineKind combine = CombineKind::kAdd;
  bool reverse = false;
  int64_t outer = 1, n = 0, inner = 1;
};

// Unimplemented for a combination of type and combiner that has no meaning, and for products of complex numbers. Floats
// of 16 bits are summed in f32 and rounded once an element.
Status CheckScan(const ScanProblem& problem);
// `initial`, one element, is combined in front of every line; it must not change what it is combined with twice.
void RunScan(const ScanProblem& problem, const void* input, const void* initial, void* output, ThreadPool* pool);

}  // namespace strop::cpu
