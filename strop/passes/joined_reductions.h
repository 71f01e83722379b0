// Several reductions as one: what reduction-joiner and reduced-products share.
#pragma once
#include <span>

#include "strop/ir/module.h"

namespace strop {

// One reduction of all that `reduces` reduce, of equal dimensions and along the same ones, in front of `before`, where
// their operands must be. Its results are theirs, one after the other. The old ones stay.
Instruction* JoinedReduction(std::span<Instruction* const> reduces, Instruction* before);

}  // namespace strop
