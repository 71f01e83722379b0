// A part of what is computed element by element, computed from parts of what that reads:
//
//   slice(exp(add(%x, broadcast(%b))), [0:96])  ->  exp(add(slice(%x, [0:96]), broadcast(%b)))
#pragma once
#include <map>
#include <utility>

#include "strop/ir/module.h"

namespace strop {

// Of a value, along a dimension.
using PartsMade = std::map<std::pair<const Instruction*, int64_t>, Instruction*>;

// The elements [begin, end) of a value along a dimension. Where it is computed by many instructions, what some of
// them make is sliced as it is. What is made comes before `before`; `made` keeps it for others of the same part.
// Null where the program has no such slice.
Instruction* PartOf(Instruction* value, int64_t dimension, int64_t begin, int64_t end, Instruction* before,
                    PartsMade& made);

}  // namespace strop
