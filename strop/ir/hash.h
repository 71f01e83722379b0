// Hashes that agree with ==, for tables of equal instructions. Not stable between versions: for tables in memory only.
#pragma once
#include <cstdint>

#include "strop/ir/attrs.h"
#include "strop/types/shape.h"

namespace strop {

constexpr uint64_t HashCombine(uint64_t a, uint64_t b) {
  uint64_t x = (a ^ (b + 0x9E3779B97F4A7C15ull + (a << 6) + (a >> 2))) * 0xFF51AFD7ED558CCDull;
  return x ^ (x >> 32);
}

uint64_t HashAttrs(const Attrs& attrs);
// Types, dimensions and dynamic marks; layouts don't count.
uint64_t HashShape(const Shape& shape);

}  // namespace strop
