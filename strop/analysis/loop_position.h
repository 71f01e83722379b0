// Positions that a loop's counter gives: 2 * i + 3, trips - 1 - i.
#pragma once
#include <optional>

#include "strop/analysis/trip_count.h"

namespace strop {

// position = factor * counter + offset
struct LoopPosition {
  int64_t factor = 0, offset = 0;
  bool operator==(const LoopPosition&) const = default;
};

// What sums and differences of the counter and constants make of it; nullopt if `i`, in the loop's body, is something
// else.
std::optional<LoopPosition> PositionOf(const Instruction* i, const Instruction& body_state, const Counter& counter);

// Does it go through 0, 1, ..., trips - 1, in this order or the other?
bool VisitsAll(const LoopPosition& position, const Counter& counter);

}  // namespace strop
