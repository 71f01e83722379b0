// The frontend attribute of a reduction that is one of two steps on purpose (reduction-splitter): the algebra, which
// makes one of two, leaves it alone, also when an optimised program is optimised again.
#pragma once

namespace strop {

inline constexpr char kPartialReduction[] = "strop.partial_reduction";

}  // namespace strop
