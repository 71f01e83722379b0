// What fusion knows of single instructions: whether a kernel can compute them element by element, how dear that is, and
// how much of their operands they read. All sizes are of elements unless they say bytes.
#pragma once
#include "strop/ir/instruction.h"

namespace strop::plan_internal {

// How often computing this op again may be tolerated.
enum class Cost : uint8_t { Free, Cheap, Expensive };
Cost CostOf(const Instruction& i);

// Can a kernel compute it where it is used?
bool IsInlinable(const Instruction& i);
// Made of constants and positions alone: no kernel reads anything for it, so that any number of them may repeat it.
bool IsMadeFromNothing(const Instruction& i);
// One value a row: of such a length that the row stays in the cache while it is read again.
bool IsRowReduce(const Instruction& i);
// Does it repeat each element of its operand along a row of its own?
bool SpreadsAlongRows(const Instruction& i);

// Elements of the result per element of operand k where every position of the result computes the operand, and most
// throw it away: padding. (A broadcast repeats as much, but what it repeats stays in a register or in the cache.)
int64_t PaddingFactor(const Instruction& user, int64_t k);
// Does it read some of its operand's elements only, or places where there is none?
bool ReadsPart(Op op);
// Does it slice what is joined of parts, or padded, at a start that is not known, so that short runs of each row come
// from one part? Then it is written first: whole rows are copied, and of each part it is known where it lies.
bool CrossesParts(const Instruction& slice, const Instruction& joined);
// Is it joined of more than two parts, runs of which are shorter than a vector?
bool JoinsShortRuns(const Instruction& i);
// Does a concatenation of large parts read runs shorter than a vector in another order, through `moved` and two
// operands more? One loop for all parts gathers their elements; a loop of a part's own copies them run by run.
bool ReordersShortRuns(const Instruction& moved, const Instruction& joined);
// Is it a concatenation of parts of so many bytes at least, each one piece of memory in it?
bool JoinsOnePieces(const Instruction& i, int64_t least_bytes);
// Is it one of several stacks of short runs (x0 y0 z0 x1 y1 z1), beside others? A loop of a stack's own deals its lanes
// out; one over all of them asks for each lane which part of which stack it is.
bool JoinsStacks(const Instruction& i);
// Is it one of which most is computed apart: by kernels that compute nothing else (products, sorts), by short runs in
// another order, or as stacks? Then each part is computed where it lies in it (parts.cc), and none inside a kernel of
// its own.
bool IsComputedByParts(const Instruction& i);
// Reads of each element of operand k per element of the result, as a factor on how often the operand is computed.
int64_t RepeatFactor(const Instruction& user, int64_t k);

// Bytes that a kernel reads to compute it, as far as that can be told before it is decided which operands are in
// memory: those with one user that cost little are taken to be computed.
int64_t BytesRead(const Instruction& i);

}  // namespace strop::plan_internal
