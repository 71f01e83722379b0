// How long the elements of a kernel wait for themselves: the longest chain of operations from an input to a result.
//
// A processor computes several iterations of a loop at once, as far as its window of instructions reaches (some 200 of
// them). Where the chain of one iteration is longer than the window hides, the units stand idle; two or four vectors in
// each iteration then cost little more than one.
#pragma once
#include "strop/codegen/kernel_body.h"

namespace strop {

// In cycles of a recent x86 (sources: uops.info, and the chains of codegen/math counted), loads excluded. 0: something
// in the kernel is no elementwise op, broadcast, iota or change of shape.
int64_t CriticalPath(const KernelBody& body);
// About how many instructions a math function is for a vector.
int64_t InstructionsOfMath(Op op);
// How many vectors an iteration over the kernel's elements takes at once: 1, 2 or 4.
int VectorsAtATime(const KernelBody& body, int vector_bytes);

}  // namespace strop
