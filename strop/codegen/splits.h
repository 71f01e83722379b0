// Where the loops over a result are cut, so that no condition is asked of every element.
//
//   concatenate(x[m,3], y[m,5]):  columns [0,3) and [3,8) are walked apart      pad, reduce-window: border and inside
//
// The places are found by emitting the kernel once in vain: a condition on a subscript that is a digit of the walk plus
// something known (0 <= digit - 3 < 5) notes where it changes. So this holds for any nest of ops, and says nothing of
// any.
#pragma once
#include "strop/codegen/kernel_frame.h"

namespace strop {

// Sets space.splits; false if some along the row would be too many. The builder stays where it is.
bool ChooseSplits(VectorBuilder& b, const KernelBody& body, std::span<const int> in_place, const KernelFrame::Cut& cut,
                  LoopSpace& space);

}  // namespace strop
