// What an op is to shardings, as data: the factors of its loop nest, and which of them each dimension of each operand
// and result is made of. Propagation and the partitioner are written once over these.
//
//   dot f32[8,64] x f32[64,32]:   ([i,k], [k,j]) -> ([i,j])  {i=8, j=32, k=64}, k reduction
//   reshape f32[8,4] to f32[32]:  ([i,j]) -> ([ij])          {i=8, j=4}
//
// The kinds of factors, and the rules, are Shardy's. Where a dimension has no factor, it is not cut.
#pragma once
#include "strop/ir/module.h"

namespace strop::spmd {

enum class FactorKind : uint8_t {
  PassThrough,      // cut alike everywhere, the op works on shards as it stands
  Reduction,        // in operands only: each device has a part of the result
  NeedReplication,  // a device that works on it needs all of it
  Permutation,      // needs what its neighbours have
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::PassThrough;
  bool blocked = false;  // shardings do not spread along it
};

// The factors of each dimension, major to minor; empty: none.
using TensorFactors = std::vector<SmallVector<int16_t, 2>>;

struct Rule {
  std::vector<Factor> factors;
  std::vector<TensorFactors> operands, results;  // results: one a leaf of the op's shape
  bool empty() const { return factors.empty(); }
};

// An empty rule for ops that say nothing about shardings, or that propagation sees through in another way (tuples,
// loops, calls).
Rule RuleOf(const Instruction& instruction);
// Dimension d of every operand and result is factor d.
Rule IdentityRule(const Shape& shape, int64_t operands);

// The one binary op that a combiner consists of, if its order does not matter; kEnd if there is none.
Op CombinerOf(const Instruction& reduction);

}  // namespace strop::spmd
