// What a scalar computation (the to_apply of reduce, scatter, sort, ...) does, if it is one of the common few.
#pragma once
#include <optional>

#include "strop/ir/module.h"

namespace strop {

// (a, b) -> a op b, where op is add, multiply, minimum, maximum, and, or; for the first operand alone or the second
// alone: the op is reported as Op::Parameter with the number.
struct Combiner {
  Op op = Op::kEnd;
  int64_t parameter = -1;  // Op::Parameter: which one is returned
};
std::optional<Combiner> MatchCombiner(const Computation& computation);

// (a, b) -> compare(a, b): the direction, for parameters in this order.
std::optional<CompareDirection> MatchComparison(const Computation& computation);

// A sort comparator that looks at one operand: ascending or descending, in one of three orders.
struct SortOrder {
  enum class Kind { Ieee, Total, Canonical } kind = Kind::Ieee;  // Canonical: zeros equal, NaNs equal and last
  int64_t operand = 0;
  bool descending = false;
};
std::optional<SortOrder> MatchSortOrder(const Computation& comparator);

}  // namespace strop
