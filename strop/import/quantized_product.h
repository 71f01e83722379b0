// A product (dot, convolution) of quantised tensors as one of their integers.
#pragma once
#include <optional>

#include "strop/import/mlir.h"
#include "strop/ir/builder.h"

namespace strop {

// `product` is the product of floats that `op` was imported as, of what the stored integers `lhs` and `rhs` express.
// Gives the sums of their integers as floats, and the scale of these for each index of a dimension of the result, or
// for all (dimension -1). Nothing if the product is small, or the sums might not fit into s32.
struct IntegerProduct {
  Instruction* sums = nullptr;
  std::vector<double> scales;
  int64_t dimension = -1;
};
std::optional<IntegerProduct> MultiplyIntegers(Builder& b, const MlirOp& op, Instruction* product, Instruction* lhs,
                                               Instruction* rhs);

}  // namespace strop
