// Loops whose state is arrays of one size, each element of which is computed from the elements at its own position, and
// from what the loop does not change:
//
//   while: 60 trips of { z = select(|z| < 4, z z + c, z) }
//
// Each element may then run through all trips by itself, in registers.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

struct PositionwiseLoop {
  enum class Role : uint8_t { kCarried, kInvariant, kCounter };
  std::vector<Role> roles;  // of the elements of the state
  int64_t trips = 0;
  int64_t elements = 0;      // of a carried array
  int64_t instructions = 0;  // of a trip, that compute
};
std::optional<PositionwiseLoop> FindPositionwiseLoop(const Instruction& loop);

}  // namespace strop
