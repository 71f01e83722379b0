// Rules of reshape.
#include <algorithm>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/reshape_groups.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* ReshapeToSelf(Instruction* i, Builder&) {
  return i->operand(0)->shape().SameDims(i->shape()) ? i->operand(0) : nullptr;
}

Instruction* ReshapeReshape(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  return inner->op() == Op::Reshape ? b.Reshape(inner->operand(0), i->shape().dims()) : nullptr;
}

Instruction* ReshapeConstant(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (!x->IsConstant() || !x->literal().has_values()) return nullptr;
  return b.Constant(x->literal().WithShape(i->shape().WithoutLayout()));
}

// Dimensions of the operand and dimensions that the broadcast made do not mix: the operand is reshaped, and spread to
// where the result has its dimensions.
Instruction* ReshapeBroadcast(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->op() != Op::Broadcast || !std::is_sorted(x->dimensions().begin(), x->dimensions().end())) return nullptr;
  if (i->shape().num_elements() == 0) return nullptr;
  Int64Vector dims;  // of the operand, reshaped
  Dims dimensions;
  for (const ReshapeGroup& group : ReshapeGroups(x->shape(), i->shape())) {
    const int64_t own =
        std::count_if(group.from.begin(), group.from.end(), [&](int64_t d) { return Contains(x->dimensions(), d); });
    if (own == 0) continue;
    if (own != static_cast<int64_t>(group.from.size())) return nullptr;
    for (int64_t d : group.to) {
      dims.push_back(i->shape().dim(d));
      dimensions.push_back(d);
    }
  }
  if (i->shape().IsScalar()) return b.Reshape(x->operand(0), {});
  return b.Broadcast(b.Reshape(x->operand(0), dims), i->shape().dims(), dimensions);
}

// The counted dimension stays as it is.
Instruction* ReshapeIota(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->op() != Op::Iota) return nullptr;
  const int64_t along = x->attrs<IotaAttrs>().dimension;
  for (const ReshapeGroup& group : ReshapeGroups(x->shape(), i->shape())) {
    if (!Contains(group.from, along)) continue;
    if (group.from.size() != 1 || group.to.size() != 1) return nullptr;
    return b.Iota(i->shape().WithoutLayout(), group.to[0]);
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"reshape-to-self", Op::Reshape, &ReshapeToSelf},    {"reshape-reshape", Op::Reshape, &ReshapeReshape},
    {"reshape-constant", Op::Reshape, &ReshapeConstant}, {"reshape-broadcast", Op::Reshape, &ReshapeBroadcast},
    {"reshape-iota", Op::Reshape, &ReshapeIota},
};

}  // namespace

RuleSet ReshapeRules() { return kRules; }

}  // namespace strop::simplify
