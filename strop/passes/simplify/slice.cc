// Rules of slice.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/reshape_groups.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* SliceOfWhole(Instruction* i, Builder&) {
  return i->operand(0)->shape().SameDims(i->shape()) ? i->operand(0) : nullptr;
}

// [2:8:2] of [1:20:3] -> [7:25:6]: the inner start and stride, scaled by the outer
Instruction* SliceSlice(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  if (inner->op() != Op::Slice) return nullptr;
  SliceDims both;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const SliceDim &x = inner->attrs<SliceAttrs>().slice[d], &y = i->attrs<SliceAttrs>().slice[d];
    const int64_t start = x.start + y.start * x.stride;
    const int64_t count = i->shape().dim(d);
    const int64_t stride = SaturatingMultiply(x.stride, y.stride);
    both.push_back(count == 0 ? SliceDim{0, 0, 1}
                              : SliceDim{start, start + (count - 1) * stride + 1, count == 1 ? 1 : stride});
  }
  return b.Make(Op::Slice, {inner->operand(0)}, SliceAttrs{both});
}

// Dimensions that the broadcast made are just made smaller; the operand is sliced along its own.
Instruction* SliceBroadcast(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() != Op::Broadcast) return nullptr;
  SliceDims own;
  for (int64_t d : x->dimensions()) own.push_back(i->attrs<SliceAttrs>().slice[d]);
  Instruction* operand = own.empty() ? x->operand(0) : b.Make(Op::Slice, {x->operand(0)}, SliceAttrs{own});
  return b.Broadcast(operand, i->shape().dims(), x->dimensions());
}

// Within one operand of a concatenation
Instruction* SliceConcatenate(Instruction* i, Builder& b) {
  const Instruction* concat = i->operand(0);
  if (concat->op() != Op::Concatenate) return nullptr;
  SliceDims slice = i->attrs<SliceAttrs>().slice;
  const int64_t along = concat->dimensions()[0];
  if (i->shape().dim(along) == 0) return nullptr;
  for (int64_t k = 0; k < concat->operand_count(); ++k) {
    const int64_t size = concat->operand(k)->shape().dim(along);
    if (slice[along].start < size) {
      if (slice[along].limit > size) return nullptr;
      return b.Make(Op::Slice, {concat->operand(k)}, SliceAttrs{slice});
    }
    slice[along].start -= size;
    slice[along].limit -= size;
  }
  return nullptr;
}

// Within what is padded
Instruction* SlicePad(Instruction* i, Builder& b) {
  const Instruction* pad = i->operand(0);
  if (pad->op() != Op::Pad) return nullptr;
  SliceDims slice = i->attrs<SliceAttrs>().slice;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const PaddingDim& p = pad->attrs<PadAttrs>().padding[d];
    slice[d].start -= p.low;
    slice[d].limit -= p.low;
    if (p.interior != 0 || slice[d].start < 0 || slice[d].limit > pad->operand(0)->shape().dim(d)) return nullptr;
  }
  return b.Make(Op::Slice, {pad->operand(0)}, SliceAttrs{slice});
}

// Full along the counted dimension: a smaller iota
Instruction* SliceIota(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->op() != Op::Iota) return nullptr;
  const int64_t along = x->attrs<IotaAttrs>().dimension;
  const SliceDim& s = i->attrs<SliceAttrs>().slice[along];
  if (s.start != 0 || s.stride != 1) return nullptr;
  return b.Iota(i->shape().WithoutLayout(), along);
}

// The slice is cut first: less is transposed.
Instruction* SliceTranspose(Instruction* i, Builder& b) {
  const Instruction* t = i->operand(0);
  if (t->op() != Op::Transpose || t->use_count() != 1) return nullptr;
  SliceDims slice(i->shape().rank());
  for (int64_t d = 0; d < i->shape().rank(); ++d) slice[t->dimensions()[d]] = i->attrs<SliceAttrs>().slice[d];
  return b.Transpose(b.Make(Op::Slice, {t->operand(0)}, SliceAttrs{slice}), t->dimensions());
}

// [1:4] of what was reversed is a slice from the other end, reversed.
Instruction* SliceReverse(Instruction* i, Builder& b) {
  const Instruction* reverse = i->operand(0);
  if (reverse->op() != Op::Reverse || reverse->use_count() != 1 || i->shape().num_elements() == 0) return nullptr;
  SliceDims slice = i->attrs<SliceAttrs>().slice;
  for (int64_t d : reverse->dimensions()) {
    const int64_t size = reverse->shape().dim(d), last = slice[d].start + (i->shape().dim(d) - 1) * slice[d].stride;
    slice[d] = {size - 1 - last, size - slice[d].start, slice[d].stride};
  }
  return b.Make(Op::Reverse, {b.Make(Op::Slice, {reverse->operand(0)}, SliceAttrs{slice})},
                DimensionsAttrs{reverse->dimensions()});
}

// A reshape that only adds and removes dimensions of one element comes after the slice, where it may meet another.
Instruction* SliceReshape(Instruction* i, Builder& b) {
  const Instruction* reshape = i->operand(0);
  if (reshape->op() != Op::Reshape || i->shape().num_elements() == 0) return nullptr;
  const Shape& from = reshape->operand(0)->shape();
  SliceDims slice(from.rank(), SliceDim{0, 1, 1});
  for (const ReshapeGroup& group : ReshapeGroups(from, reshape->shape())) {
    if (group.from.size() != 1 || group.to.size() != 1) return nullptr;
    slice[group.from[0]] = i->attrs<SliceAttrs>().slice[group.to[0]];
  }
  return b.Reshape(b.Make(Op::Slice, {reshape->operand(0)}, SliceAttrs{slice}), i->shape().dims());
}

constexpr Rule kRules[] = {
    {"slice-of-whole", Op::Slice, &SliceOfWhole},
    {"slice-slice", Op::Slice, &SliceSlice},
    {"slice-broadcast", Op::Slice, &SliceBroadcast},
    {"slice-concatenate", Op::Slice, &SliceConcatenate},
    {"slice-pad", Op::Slice, &SlicePad},
    {"slice-iota", Op::Slice, &SliceIota},
    {"slice-transpose", Op::Slice, &SliceTranspose},
    {"slice-reverse", Op::Slice, &SliceReverse},
    {"slice-reshape", Op::Slice, &SliceReshape},
};

}  // namespace

RuleSet SliceRules() { return kRules; }

}  // namespace strop::simplify
