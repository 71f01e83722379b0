// Reductions of what is computed from far fewer elements than are reduced:
//
//   pull[i,c] = sum over j of (p[j,c] - p[i,c]) * w[i,j],   w[i,j] = f(sum over c of square(p[j,c] - p[i,c]))
//
// The pairs are n x n and made of n: where everything is computed in the kernel of the sum, none of them is stored.
#pragma once
#include "strop/ir/module.h"

namespace strop {

// A reduction of so few elements that it is computed wherever its result is needed, like an elementwise op.
bool IsShortReduce(const Instruction& i);

// The nearest of some points: a choice (argmin) among sums of pairs, for which nothing as large as the pairs is read.
bool ChoosesAmongPairs(const Instruction& i);

// A reduction of a short last dimension whose elements take little code: with a result a lane, neighbours in memory are
// read together and dealt out to the lanes.
bool ReducesNeighbours(const Instruction& i);

// A sum (or its like) of pairs whose results come in short groups: coordinates, colours. A kernel computes the results
// of a group together, with lanes along the dimensions before, so that what does not depend on the place in the group
// is computed once.
bool ReducesPairsToGroups(const Instruction& i);

}  // namespace strop
