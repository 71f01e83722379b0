// Rules of dynamic-slice.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/reshape_groups.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* DynamicSliceConstant(Instruction* i, Builder& b) {
  SliceDims slice;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const int64_t size = i->shape().dim(d);
    const int64_t start = ConstantStart(i, 1, d, i->operand(0)->shape().dim(d), size);
    if (start < 0) return nullptr;
    slice.push_back({start, start + size, 1});
  }
  return b.Make(Op::Slice, {i->operand(0)}, SliceAttrs{slice});
}

Instruction* DynamicSliceScalarBroadcast(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() != Op::Broadcast || !x->operand(0)->shape().IsScalar()) return nullptr;
  return b.Broadcast(x->operand(0), i->shape().dims(), {});
}

Instruction* Sliced(Builder& b, Instruction* x, const std::vector<Instruction*>& starts, const Dims& sizes) {
  std::vector<Instruction*> operands{x};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{sizes}, {}, nullptr);
}

// Dimensions that the broadcast made are just made smaller; the operand is sliced along its own.
Instruction* DynamicSliceBroadcast(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() != Op::Broadcast || x->operand(0)->shape().IsScalar() || !HasScalarStarts(i, 1)) return nullptr;
  std::vector<Instruction*> starts;
  Dims sizes;
  for (int64_t d : x->dimensions()) {
    starts.push_back(i->operand(1 + d));
    sizes.push_back(i->shape().dim(d));
  }
  return b.Broadcast(Sliced(b, x->operand(0), starts, sizes), i->shape().dims(), x->dimensions());
}

// The slice is cut first: less is transposed.
Instruction* DynamicSliceTranspose(Instruction* i, Builder& b) {
  const Instruction* t = i->operand(0);
  if (t->op() != Op::Transpose || t->use_count() != 1 || !HasScalarStarts(i, 1)) return nullptr;
  std::vector<Instruction*> starts(i->shape().rank());
  Dims sizes(i->shape().rank(), 0);
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    starts[t->dimensions()[d]] = i->operand(1 + d);
    sizes[t->dimensions()[d]] = i->shape().dim(d);
  }
  return b.Transpose(Sliced(b, t->operand(0), starts, sizes), t->dimensions());
}

// A reshape that only adds and removes dimensions of one element comes after the slice.
Instruction* DynamicSliceReshape(Instruction* i, Builder& b) {
  const Instruction* reshape = i->operand(0);
  if (reshape->op() != Op::Reshape || !HasScalarStarts(i, 1) || i->shape().num_elements() == 0) return nullptr;
  const Shape& from = reshape->operand(0)->shape();
  if (from.rank() == 0) return nullptr;
  std::vector<Instruction*> starts(from.rank(), nullptr);
  Dims sizes(from.rank(), 1);
  for (const ReshapeGroup& group : ReshapeGroups(from, reshape->shape())) {
    if (group.from.size() != 1 || group.to.size() != 1) return nullptr;
    starts[group.from[0]] = i->operand(1 + group.to[0]);
    sizes[group.from[0]] = i->shape().dim(group.to[0]);
  }
  for (Instruction*& start : starts)
    if (!start) start = b.Scalar(i->operand(1)->shape().type(), 0);
  return b.Reshape(Sliced(b, reshape->operand(0), starts, sizes), i->shape().dims());
}

// What was just written is read.
Instruction* DynamicSliceOfUpdate(Instruction* i, Builder&) {
  const Instruction* update = i->operand(0);
  if (update->op() != Op::DynamicUpdateSlice || !update->operand(1)->shape().SameDims(i->shape())) return nullptr;
  return SameStarts(i, 1, update, 2) ? update->operand(1) : nullptr;
}

constexpr Rule kRules[] = {
    {"dynamic-slice-constant", Op::DynamicSlice, &DynamicSliceConstant},
    {"dynamic-slice-scalar-broadcast", Op::DynamicSlice, &DynamicSliceScalarBroadcast},
    {"dynamic-slice-broadcast", Op::DynamicSlice, &DynamicSliceBroadcast},
    {"dynamic-slice-transpose", Op::DynamicSlice, &DynamicSliceTranspose},
    {"dynamic-slice-reshape", Op::DynamicSlice, &DynamicSliceReshape},
    {"dynamic-slice-of-update", Op::DynamicSlice, &DynamicSliceOfUpdate},
};

}  // namespace

RuleSet DynamicSliceRules() { return kRules; }

}  // namespace strop::simplify
