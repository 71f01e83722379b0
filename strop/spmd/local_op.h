// What of an op must be said differently when it works on shards: sizes in attributes, indices that count from the
// beginning of a shard, masks over padding, and what a part of a reduction begins with.
#pragma once
#include "strop/spmd/rule.h"
#include "strop/spmd/values.h"

namespace strop::spmd {

using FactorAxes = std::vector<Axes>;  // by factor

// The sharding of a tensor, or of a result with parts that are still to be summed, when the factors are cut so.
Spec SpecOf(const Mesh& mesh, const Rule& rule, const TensorFactors& dims, const FactorAxes& axes);
Spec ResultSpec(const Mesh& mesh, const Rule& rule, size_t leaf, const FactorAxes& axes);

// Can the op work on shards when this factor is cut into so many pieces?
bool CanCut(const Instruction& i, const Rule& rule, const Values& values, int64_t factor, int64_t pieces);

// What leaves each device, in bytes, where reductions of several values are joined.
double BytesToJoin(const Instruction& i, const Rule& rule, const Mesh& mesh, const FactorAxes& axes);

struct LocalOp {
  Instruction& i;  // as it was; its attributes are changed
  const Rule& rule;
  const FactorAxes& axes;
  Values& values;
  Builder& b;
  std::vector<Instruction*> operands;   // shards; may be replaced
  std::vector<Shape> wholes;            // of the operands
  Op combiner = Op::Add;                // of the parts of the result
  Instruction* joined_after = nullptr;  // a scalar to combine the sum of the parts with; null: none
  Instruction* instead = nullptr;       // the result, made by other ops; null: the op makes it
  // Of what the op makes, by dimension: where the shard begins, and how much there is; empty: it makes the shard.
  struct Part {
    int64_t first = 0, size = 0;
  };
  std::vector<Part> larger;
  Instruction* kept = nullptr;  // pred: the elements of the result that count, others are zeros; null: all
};
Status MakeLocal(LocalOp& op);

}  // namespace strop::spmd
