// What a scalar computation (the to_apply of reduce, scatter, sort, ...) does, if it is one of the common few.
#pragma once
#include <optional>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

// A sort comparator that looks at one operand: ascending or descending, in one of three orders.
struct SortOrder {
  enum class Kind { Ieee, Total, Canonical } kind = Kind::Ieee;  // Canonical: zeros equal, NaNs equal and last
  int64_t operand = 0;
  bool descending = false;
};
std::optional<SortOrder> MatchSortOrder(const Computation& comparator);

// The comparisons of one operand each, the one that counts most first, of a comparator that looks at the next operand
// where they are equal: a0 < b0 || (a0 == b0 && (a1 < b1 || ...)). Empty: it is none.
std::vector<const Instruction*> MatchSortKeys(const Computation& comparator);

}  // namespace strop
