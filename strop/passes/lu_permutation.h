// The permutation of an LU factorisation, as jax.lax.linalg.lu_pivots_to_permutation writes it on a CPU: a loop that
// exchanges two elements of the numbers 0 .. n-1 in each trip.
#pragma once
#include "strop/ir/module.h"

namespace strop {

// The pivots, s32[batch..., n] counted from one as getrf gives them, of which `permutation` is the permutation; null if
// it is none.
Instruction* PivotsOfPermutation(const Instruction& permutation);

// x of select(x < 0, x + n, x), by which negative indices count from the end, for an x that is none; any other value is
// given back.
Instruction* WithoutWrap(Instruction* index);

// A reshape, or a broadcast that adds dimensions of one element.
bool IsReshape(const Instruction& i);
// What `i` is behind reshapes, and conversions of integers, which indices of a loop of few trips survive.
Instruction* Bare(Instruction* i);

}  // namespace strop
