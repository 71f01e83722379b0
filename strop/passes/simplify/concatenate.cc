// Rules of concatenate.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* Concatenated(Builder& b, const std::vector<Instruction*>& operands, int64_t along) {
  if (operands.size() == 1) return operands[0];
  return b.Make(Op::Concatenate, operands, DimensionsAttrs{{along}}, {}, nullptr);
}

Instruction* ConcatenateOne(Instruction* i, Builder&) { return i->operand_count() == 1 ? i->operand(0) : nullptr; }

Instruction* ConcatenateEmpty(Instruction* i, Builder& b) {
  const int64_t along = i->dimensions()[0];
  std::vector<Instruction*> kept;
  for (Instruction* o : i->operands())
    if (o->shape().dim(along) != 0) kept.push_back(o);
  if (kept.empty() || static_cast<int64_t>(kept.size()) == i->operand_count()) return nullptr;
  return Concatenated(b, kept, along);
}

Instruction* ConcatenateConcatenate(Instruction* i, Builder& b) {
  const int64_t along = i->dimensions()[0];
  std::vector<Instruction*> flat;
  for (Instruction* o : i->operands()) {
    if (o->op() == Op::Concatenate && o->dimensions()[0] == along && o->use_count() == 1)
      for (Instruction* inner : o->operands()) flat.push_back(inner);
    else
      flat.push_back(o);
  }
  return static_cast<int64_t>(flat.size()) > i->operand_count() ? Concatenated(b, flat, along) : nullptr;
}

// [0:3] and [3:5] of the same array, side by side -> [0:5]
Instruction* ConcatenateSlices(Instruction* i, Builder& b) {
  const int64_t along = i->dimensions()[0];
  std::vector<Instruction*> merged;
  for (Instruction* o : i->operands()) {
    Instruction* last = merged.empty() ? nullptr : merged.back();
    const bool slices = last && last->op() == Op::Slice && o->op() == Op::Slice && last->operand(0) == o->operand(0);
    bool fits = slices;
    for (int64_t d = 0; fits && d < i->shape().rank(); ++d) {
      const SliceDim &x = last->attrs<SliceAttrs>().slice[d], &y = o->attrs<SliceAttrs>().slice[d];
      fits = d == along ? x.stride == 1 && y.stride == 1 && x.limit == y.start : x == y;
    }
    if (!fits) {
      merged.push_back(o);
      continue;
    }
    SliceDims slice = last->attrs<SliceAttrs>().slice;
    slice[along].limit = o->attrs<SliceAttrs>().slice[along].limit;
    merged.back() = b.Make(Op::Slice, {o->operand(0)}, SliceAttrs{slice});
  }
  return static_cast<int64_t>(merged.size()) < i->operand_count() ? Concatenated(b, merged, along) : nullptr;
}

// Neighbours that are copies of one scalar become one.
Instruction* ConcatenateScalars(Instruction* i, Builder& b) {
  const int64_t along = i->dimensions()[0];
  std::vector<Instruction*> merged;
  for (Instruction* o : i->operands()) {
    Instruction* last = merged.empty() ? nullptr : merged.back();
    Instruction *x = last ? SpreadScalar(last) : nullptr, *y = SpreadScalar(o);
    if (!x || !y || !SameScalar(x, y)) {
      merged.push_back(o);
      continue;
    }
    Int64Vector dims = o->shape().dims();
    dims[along] += last->shape().dim(along);
    merged.back() = b.Broadcast(y, dims, {});
  }
  return static_cast<int64_t>(merged.size()) < i->operand_count() ? Concatenated(b, merged, along) : nullptr;
}

// x, x, x, each of one element along the dimension: a broadcast
Instruction* ConcatenateRepeated(Instruction* i, Builder& b) {
  const int64_t along = i->dimensions()[0];
  Instruction* x = i->operand(0);
  if (i->operand_count() < 2 || x->shape().dim(along) != 1) return nullptr;
  for (const Instruction* o : i->operands())
    if (o != x) return nullptr;
  Int64Vector dims;
  Dims dimensions;
  for (int64_t d = 0; d < x->shape().rank(); ++d) {
    if (d == along) continue;
    dims.push_back(x->shape().dim(d));
    dimensions.push_back(d);
  }
  return b.Broadcast(b.Reshape(x, dims), i->shape().dims(), dimensions);
}

constexpr Rule kRules[] = {
    {"concatenate-one", Op::Concatenate, &ConcatenateOne},
    {"concatenate-empty", Op::Concatenate, &ConcatenateEmpty},
    {"concatenate-concatenate", Op::Concatenate, &ConcatenateConcatenate},
    {"concatenate-slices", Op::Concatenate, &ConcatenateSlices},
    {"concatenate-scalars", Op::Concatenate, &ConcatenateScalars},
    {"concatenate-repeated", Op::Concatenate, &ConcatenateRepeated},
};

}  // namespace

RuleSet ConcatenateRules() { return kRules; }

}  // namespace strop::simplify
