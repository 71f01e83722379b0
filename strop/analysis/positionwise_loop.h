// Loops whose state is arrays of one size, each element of which is computed from the elements at its own position, and
// from what the loop does not change:
//
//   while: 60 trips of { z = select(|z| < 4, z z + c, z) }
//
// Each element may then run through all trips by itself, in registers. So it may if the loop goes on while any element
// of a predicate of the state is true, and an element for which it is false stays as it is (a vmapped while_loop):
//
//   while any(p) and i < 100: { x = select(p, f(x, i), x), p = p & g(x), i = i + 1 }
//
// Scalars that are computed from scalars are the same for all positions in each trip.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

struct PositionwiseLoop {
  enum class Role : uint8_t { kCarried, kInvariant, kUniform };
  std::vector<Role> roles;  // of the elements of the state
  int64_t trips = 0;        // a guess if `going_on` says when a position's end
  int64_t going_on = -1;    // element of the state: a position makes trips as long as it is true; -1: all make `trips`
  // Of the condition, beside `going_on`: scalars all of which must be true.
  std::vector<const Instruction*> limits;
  int64_t elements = 0;      // of a carried array
  int64_t instructions = 0;  // of a trip, that compute
};
std::optional<PositionwiseLoop> FindPositionwiseLoop(const Instruction& loop);

}  // namespace strop
