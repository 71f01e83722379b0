// Division and multiples, rounded up; for non-negative numbers.
#pragma once
#include <cstdint>

namespace strop::cpu {

inline int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
inline int64_t RoundUp(int64_t v, int64_t to) { return CeilDiv(v, to) * to; }

}  // namespace strop::cpu
