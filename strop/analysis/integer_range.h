// Between which numbers the elements of an array of integers lie, as far as iotas, constants and arithmetic on them
// tell.
//
//   %i = s32[98] iota(); %j = multiply(%i, 160)   ->   0 .. 15520
#pragma once
#include <cstdint>
#include <optional>

#include "strop/ir/instruction.h"

namespace strop {

struct IntegerRange {
  int64_t low = 0, high = 0;  // both included
  bool operator==(const IntegerRange&) const = default;
};

// None if it is not known, or if an operation on the way may leave the range of its type.
std::optional<IntegerRange> RangeOf(const Instruction& i);

// The result of a comparison of integers that is the same for all elements, if it is known.
std::optional<bool> ComparisonOf(const Instruction& compare);

}  // namespace strop
