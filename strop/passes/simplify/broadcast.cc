// Rules of broadcast.
#include <algorithm>

#include "strop/ir/physical_shape.h"
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// To its own shape: nothing, or a transpose
Instruction* BroadcastToSelf(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->shape().rank() != i->shape().rank()) return nullptr;
  if (IsIdentityPermutation(i->dimensions())) return i->operand(0);
  return b.Transpose(i->operand(0), InversePermutation(i->dimensions()));
}

Instruction* BroadcastBroadcast(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  if (inner->op() != Op::Broadcast) return nullptr;
  Dims dimensions;
  for (int64_t d : inner->dimensions()) dimensions.push_back(i->dimensions()[d]);
  return b.Broadcast(inner->operand(0), i->shape().dims(), dimensions);
}

// broadcast(reshape(f32[3] -> f32[1,3])) -> broadcast: sizes of one need no dimension of their own.
Instruction* BroadcastReshape(Instruction* i, Builder& b) {
  Instruction* reshape = i->operand(0);
  if (reshape->op() != Op::Reshape) return nullptr;
  Int64Vector dims;
  Dims dimensions;
  for (int64_t d = 0; d < reshape->shape().rank(); ++d) {
    if (reshape->shape().dim(d) == 1) continue;
    dims.push_back(reshape->shape().dim(d));
    dimensions.push_back(i->dimensions()[d]);
  }
  if (static_cast<int64_t>(dims.size()) == reshape->shape().rank()) return nullptr;
  return b.Broadcast(b.Reshape(reshape->operand(0), dims), i->shape().dims(), dimensions);
}

// f32[n] -> f32[n,1]: repeats nothing, and as a reshape needs no memory. (A single element may be spread further.)
Instruction* BroadcastToReshape(Instruction* i, Builder& b) {
  const Shape& from = i->operand(0)->shape();
  if (from.num_elements() <= 1 || from.num_elements() != i->shape().num_elements()) return nullptr;
  if (!from.IsStatic() || !i->shape().IsStatic()) return nullptr;
  if (!std::is_sorted(i->dimensions().begin(), i->dimensions().end())) return nullptr;
  return b.Reshape(i->operand(0), i->shape().dims());
}

constexpr Rule kRules[] = {
    {"broadcast-to-self", Op::Broadcast, &BroadcastToSelf},
    {"broadcast-broadcast", Op::Broadcast, &BroadcastBroadcast},
    {"broadcast-reshape", Op::Broadcast, &BroadcastReshape},
    {"broadcast-to-reshape", Op::Broadcast, &BroadcastToReshape},
};

}  // namespace

RuleSet BroadcastRules() { return kRules; }

}  // namespace strop::simplify
