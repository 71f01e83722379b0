// Where the elements of a kernel's result are told apart: which dimensions its rows must not run over (loop_space.h).
#pragma once
#include <map>
#include <set>

#include "strop/codegen/kernel_body.h"

namespace strop {

// A boundary between digits of a result is named by the number of elements behind it: 3 in [512][3].
using Cuts = std::set<int64_t>;

// Of all that the kernel computes.
std::map<const Instruction*, Cuts> AllCuts(const KernelBody& body);
// The factors of `total` between the cuts, as far as each divides the one before.
Int64Vector Factors(int64_t total, const Cuts& cuts);
// The last two factors become one.
void MergeLast(Int64Vector& sizes);

}  // namespace strop
