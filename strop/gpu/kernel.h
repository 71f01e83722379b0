// A kernel of a plan as one function of PTX: a thread computes one element of each result. Grid: blocks of
// kBlockThreads threads, as many as the largest result needs; parameters: the addresses of the operands, then of the
// results.
#pragma once
#include <string>

#include "strop/backend/backend.h"

namespace strop {
class VectorBuilder;
}

namespace strop::gpu {

inline constexpr int64_t kBlockThreads = 256;

// Is there code for it: element by element, and not in the place of an operand?
Decision CanEmitKernel(const Instruction& kernel);
// Adds the function `symbol`.
Status EmitKernel(const KernelSpec& spec, VectorBuilder& b, const std::string& symbol);
// Of its grid.
int64_t BlocksOf(const KernelSpec& spec);
// For reports: "8192 blocks of 256 threads".
std::string TilesOf(const KernelSpec& spec);

}  // namespace strop::gpu
