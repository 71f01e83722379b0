// Ops that, cut along a dimension, need what their neighbours have: slices, pads, reversals and concatenations along
// it, windows, convolutions. What they need of each operand is a Span (halo.h); with that they work on shards.
//
//   slice f32[16], [2:14]           cut into 4 results of 3:   [3c + 2, 3c + 5) of the operand
//   reduce-window, size=3 pad=1_1   cut into pieces of 4:      [4c - 1, 4c + 5), then without padding
#pragma once
#include <optional>

#include "strop/spmd/halo.h"
#include "strop/spmd/local_op.h"

namespace strop::spmd {

// Do devices exchange parts of operands where this factor is cut? Not said: whether they can.
bool IsExchanged(const Instruction& i, const Rule& rule, int64_t factor);
bool CanExchange(const Instruction& i, const Rule& rule, const Values& values, int64_t factor, int64_t pieces);
// What leaves each device for that, in bytes.
double ExchangedBytes(const Instruction& i, const Rule& rule, const Values& values, const FactorAxes& axes);
// How operand k is wanted: what each device has as a whole along an exchanged dimension stays so.
Spec OperandSpec(const Instruction& i, const Rule& rule, const Values& values, int64_t k, const FactorAxes& axes);
// Gives operands what their neighbours have, and changes the op's attributes to match.
void ExchangeOperands(LocalOp& op);

// concatenate(slice(x, [m:]), slice(x, [:m])): x, and m. What comes first of the result is element m of x.
struct Rotation {
  const Instruction* of;
  int64_t dim, by;
};
std::optional<Rotation> RotationOf(const Instruction& i);
// Is made of the shards of x, where it is returned as x lies; null: in no such way.
Instruction* RotateShards(Builder& b, const Rotation& rotation, Values& values, const Spec& wanted);

}  // namespace strop::spmd
