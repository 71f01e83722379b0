// Layouts as what they mean: the row-major shape of the same bytes.
//
//   f32[2,3]{0,1}  is in memory  f32[3,2]{1,0}
//
// A module "with a physical entry" has had its layouts made explicit (pass layout-normalization): parameters and root
// of the entry computation have the physical shapes of config().entry_layout, which stays what the caller sees. The
// mark is a frontend attribute of the module, so that it survives printing and reading back.
#pragma once
#include "strop/ir/module.h"

namespace strop {

// Dimensions in the order of the layout, major first; tuples element by element. The result has no layout. Tiling is
// left out.
Shape PhysicalShape(const Shape& shape);
// The dimensions of a shape, major to minor, in its layout: transposing by it gives the physical array.
Dims MajorToMinor(const Shape& shape);
// The permutation that undoes `permutation`.
Dims InversePermutation(const Dims& permutation);
bool IsIdentityPermutation(const Dims& permutation);

bool HasPhysicalEntry(const Module& module);
void MarkPhysicalEntry(Module& module);

}  // namespace strop
