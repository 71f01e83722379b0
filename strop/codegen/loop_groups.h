// Rows that end in a short digit (colours, coordinates, parts of a stack, elements with padding between them), which is
// less than a vector: the three ways to walk them by vectors nevertheless (LoopSpace::interleaved, step and period).
#pragma once
#include "strop/codegen/loop_space.h"

namespace strop {

// Is the last factor what a gather finds side by side, at a place of its own for each row, and long enough to be walked
// so?
bool GathersRows(const KernelBody& body, int64_t last);
// Are there rows of padding between rows of the last factor, or of several of them? Where a vector is in one row,
// whether it is padding is asked once for all lanes.
bool PadsBetweenRows(const KernelBody& body, int64_t last);
// Each takes the digit out of `sizes`, if it suits; SetStep says whether.
void Interleave(const KernelBody& body, LoopSpace& space, Int64Vector& sizes);
bool SetStep(const KernelBody& body, LoopSpace& space, Int64Vector& sizes);
void SetPeriod(const KernelBody& body, int vector_bytes, LoopSpace& space, Int64Vector& sizes);

// Do neighbours come from places at one distance, whatever the row?
bool IsAtKnownDistances(Op op);
// At least 1.
int RoundDownToPowerOfTwo(int64_t n);

}  // namespace strop
