// Which elements of an array its users look at, where they choose by comparing indices: those about a diagonal, as
// below a causal mask or inside of a sliding window of attention.
//
//   %seen = compare(iota dimension 0, iota dimension 1), direction=GE
//   %s = select(%seen, %scores, -inf)      ->      of %scores: column - row <= 0
#pragma once
#include <cstdint>

#include "strop/ir/instruction.h"

namespace strop {

// Columns less rows, both ends included.
struct DiagonalWindow {
  static constexpr int64_t kFar = int64_t{1} << 40;  // beyond any array's end
  int64_t low = -kFar, high = kFar;
  bool everything() const { return low <= -kFar && high >= kFar; }
  bool operator==(const DiagonalWindow&) const = default;
};

// Of an array of a computation that is its own or a fusion's: what of it anybody reads or returns. Rows and columns are
// indices along two of its dimensions. Everything, if comparisons of indices do not tell.
DiagonalWindow WindowThatIsRead(const Instruction& array, int64_t row_dimension, int64_t column_dimension);

}  // namespace strop
