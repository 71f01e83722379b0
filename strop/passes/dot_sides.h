// A dot as a GEMM sees it: two sides, whose dimensions of each role (contracting, free) should lie in memory like one
// dimension with a stride, those of the batch like one or two. Which transposes of operands are only other dimension
// numbers.
#pragma once
#include <array>

#include "strop/ir/module.h"

namespace strop {

Dims FreeDims(int64_t rank, const Dims& batch, const Dims& contracting);

struct DotSide {
  Shape shape;
  Dims batch, contracting;
  bool Fits() const;  // in the form that a GEMM reads without help
};
using DotSides = std::array<DotSide, 2>;

DotSides SidesOf(const Instruction& dot);
// The order of contracting pairs that suits most sides: as given, sorted by lhs, or sorted by rhs.
DotSides WithBestPairing(const DotSides& given);
// The sides if operand `k` were what it is a transpose of: an array of shape `operand`, transposed by `permutation`.
// False, and then `sides` are of no use, if free dimensions would change their order (unless they may: then the
// result's do, too) or a side would no longer fit.
enum class FreeOrder : uint8_t { kStays, kMayChange };
bool FoldTranspose(const Dims& permutation, const Shape& operand, DotSides& sides, size_t k,
                   FreeOrder order = FreeOrder::kStays);

}  // namespace strop
