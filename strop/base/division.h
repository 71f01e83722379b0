// Division of integers, rounded down.
#pragma once
#include <cstdint>

namespace strop {

inline int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

}  // namespace strop
