// Rules of dynamic-slice and dynamic-update-slice. Starts outside the array move the slice to where it fits, for both
// alike; so a slice at the very starts of an update is that update.
#include <algorithm>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/reshape_groups.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Start index `d` if it is constant, put where the slice fits; -1 if unknown. An index of no consequence is 0.
int64_t ConstantStart(const Instruction* i, int64_t first, int64_t d, int64_t size, int64_t slice) {
  if (size == slice) return 0;
  if (i->operand_count() - first == 1 && i->operand(first)->shape().rank() == 1) return -1;
  const Literal* index = Splat(i->operand(first + d));
  if (!index) return -1;
  const int64_t value = index->GetInt(0);
  const bool huge = index->type() == ElementType::U64 && value < 0;
  return huge ? size - slice : std::clamp<int64_t>(value, 0, size - slice);
}

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

// An update as large as its operand replaces it, an empty one changes nothing.
Instruction* UpdateOfWhole(Instruction* i, Builder&) {
  if (i->operand(1)->shape().SameDims(i->shape())) return i->operand(1);
  return i->operand(1)->shape().num_elements() == 0 ? i->operand(0) : nullptr;
}

// One scalar a dimension, not one list of all
bool HasScalarStarts(const Instruction* i, int64_t first) {
  return i->shape().rank() > 0 && i->operand_count() - first == i->shape().rank() &&
         i->operand(first)->shape().IsScalar();
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

bool SameStarts(const Instruction* x, int64_t first_x, const Instruction* y, int64_t first_y) {
  if (x->operand_count() - first_x != y->operand_count() - first_y) return false;
  for (int64_t k = 0; k < x->operand_count() - first_x; ++k)
    if (x->operand(first_x + k) != y->operand(first_y + k)) return false;
  return true;
}

// What was just written is read.
Instruction* DynamicSliceOfUpdate(Instruction* i, Builder&) {
  const Instruction* update = i->operand(0);
  if (update->op() != Op::DynamicUpdateSlice || !update->operand(1)->shape().SameDims(i->shape())) return nullptr;
  return SameStarts(i, 1, update, 2) ? update->operand(1) : nullptr;
}

// What was just read is written back.
Instruction* UpdateByOwnSlice(Instruction* i, Builder&) {
  const Instruction* slice = i->operand(1);
  if (slice->op() != Op::DynamicSlice || slice->operand(0) != i->operand(0)) return nullptr;
  return SameStarts(slice, 1, i, 2) ? i->operand(0) : nullptr;
}

// The same place is written twice.
Instruction* UpdateOfUpdate(Instruction* i, Builder& b) {
  const Instruction* inner = i->operand(0);
  if (inner->op() != Op::DynamicUpdateSlice || !inner->operand(1)->shape().SameDims(i->operand(1)->shape()) ||
      !SameStarts(inner, 2, i, 2))
    return nullptr;
  std::vector<Instruction*> operands = i->operands();
  operands[0] = inner->operand(0);
  return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
}

// Into copies of a scalar, at a known place: padding
Instruction* UpdateOfScalar(Instruction* i, Builder& b) {
  Instruction* value = SpreadScalar(i->operand(0));
  if (!value || i->shape().IsScalar()) return nullptr;
  PaddingConfig padding;
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const int64_t size = i->shape().dim(d), part = i->operand(1)->shape().dim(d);
    const int64_t start = ConstantStart(i, 2, d, size, part);
    if (start < 0) return nullptr;
    padding.push_back({start, size - start - part, 0});
  }
  return b.Make(Op::Pad, {i->operand(1), value}, PadAttrs{padding});
}

constexpr Rule kRules[] = {
    {"dynamic-slice-constant", Op::DynamicSlice, &DynamicSliceConstant},
    {"dynamic-slice-scalar-broadcast", Op::DynamicSlice, &DynamicSliceScalarBroadcast},
    {"dynamic-slice-broadcast", Op::DynamicSlice, &DynamicSliceBroadcast},
    {"dynamic-slice-transpose", Op::DynamicSlice, &DynamicSliceTranspose},
    {"dynamic-slice-reshape", Op::DynamicSlice, &DynamicSliceReshape},
    {"dynamic-slice-of-update", Op::DynamicSlice, &DynamicSliceOfUpdate},
    {"update-of-whole", Op::DynamicUpdateSlice, &UpdateOfWhole},
    {"update-by-own-slice", Op::DynamicUpdateSlice, &UpdateByOwnSlice},
    {"update-of-update", Op::DynamicUpdateSlice, &UpdateOfUpdate},
    {"update-of-scalar", Op::DynamicUpdateSlice, &UpdateOfScalar},
};

}  // namespace

RuleSet DynamicSliceRules() { return kRules; }

}  // namespace strop::simplify
