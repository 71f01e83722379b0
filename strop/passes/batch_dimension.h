// Where a batch's dimension is in operands and results, and the same instruction with that dimension innermost.
#pragma once
#include <functional>

#include "strop/ir/builder.h"

namespace strop {

// Of each operand the dimension that is the batch if that of the result is `d`, -1 for operands without; nullopt if the
// instruction mixes members of the batch, or its op is not known here.
std::optional<Dims> BatchDimsOfOperands(const Instruction& i, int64_t d);

// The dimensions of an array of that rank, `d` behind all others.
Dims WithInnermost(int64_t rank, int64_t d);

// `i` with the batch innermost in its result, whose dimension `d` it is, and of `members`. `operand` gives operand k
// so, or as it is if that has no batch. Products become sums of multiplied arrays: lanes are members of the batch.
Instruction* WithBatchInnermost(Builder& b, const Instruction& i, int64_t d, int64_t members,
                                const std::function<Instruction*(int64_t k)>& operand);

}  // namespace strop
