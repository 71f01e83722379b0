// Between which numbers the elements of an array of integers lie, as far as iotas, constants, counters of loops and
// arithmetic on them tell.
//
//   %i = s32[98] iota(); %j = multiply(%i, 160)   ->   0 .. 15520
#pragma once
#include <cstdint>
#include <functional>
#include <optional>

#include "strop/ir/instruction.h"

namespace strop {

struct IntegerRange {
  int64_t low = 0, high = 0;  // both included
  bool operator==(const IntegerRange&) const = default;
};

// What somebody else knows of values that are not computed where they are used: a loop's state.
using RangeOfState = std::function<std::optional<IntegerRange>(const Instruction& i)>;

// None if it is not known, or if an operation on the way may leave the range of its type.
std::optional<IntegerRange> RangeOf(const Instruction& i, const RangeOfState& of_state = {});

// The result of a comparison of integers that is the same for all elements, if it is known.
std::optional<bool> ComparisonOf(const Instruction& compare, const RangeOfState& of_state = {});

}  // namespace strop
