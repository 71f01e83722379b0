// How many neighbouring rows a walk takes at a time, where one reads what the next reads as well: of a stencil.
//
//   x[r] + x[r+1] + x[r+2], four rows r at a time: six rows of x are read for four results each, not twelve
//
// A vector that begins anywhere lies across two lines of the cache and is read in two cycles, longer than its product
// takes. Read once, it stays in a register for the rows that need it.
//
// Of a gather along the last dimension, rows have their indices in common, which are read, put into range and taken
// apart once for all of them.
#pragma once
#include "strop/codegen/loop_space.h"

namespace strop {

// 1, 2 or 4.
int64_t RowsAtATime(const KernelBody& body, const LoopSpace& space);
// Are elements picked by indices that all rows have in common, or several elements of the last digit if that is
// interleaved?
bool SharesIndices(const KernelBody& body, const LoopSpace& space);

}  // namespace strop
