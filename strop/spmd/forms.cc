#include "strop/spmd/forms.h"

#include <algorithm>

#include "strop/ir/builder.h"

namespace strop::spmd {
namespace {

// In place of i, with what the program says of it.
void Replace(Instruction* i, Instruction* by) {
  if (i->sharding()) by->set_sharding(*i->sharding());
  by->set_metadata(i->shared_metadata());
  i->parent()->Replace(i, by);
}

// Calls may say something about their operands; all else that has no effect says nothing to nobody.
void RemoveUnused(Computation& c) {
  for (Instruction* i = c.last(); i;) {
    Instruction* before = i->prev();
    const bool plain = i->called().empty() && i->op() != Op::CustomCall && !Is(i->op(), kCollective) &&
                       !Is(i->op(), kSideEffect) && !Is(i->op(), kAsync) && !i->IsParameter();
    if (plain && i->use_count() == 0 && i != c.root()) c.Remove(i);
    i = before;
  }
}

void SliceWhereKnown(Instruction* i) {
  if (i->op() != Op::DynamicSlice || i->operand_count() != 1 + i->shape().rank()) return;
  const Shape& from = i->operand(0)->shape();
  SliceAttrs attrs;
  for (int64_t d = 0; d < from.rank(); ++d) {
    const Instruction& start = *i->operand(1 + d);
    const int64_t size = i->shape().dim(d);
    if (!start.IsConstant() || !start.literal().has_values() || start.shape().type() == ElementType::U64) return;
    const int64_t first = std::clamp<int64_t>(start.literal().GetInt(0), 0, from.dim(d) - size);
    attrs.slice.push_back({first, first + size, 1});
  }
  Replace(i, i->parent()->Add(Op::Slice, i->shape(), {i->operand(0)}, std::move(attrs), {}, i));
}

bool IsPlain(const SliceDim& s, int64_t size) { return s.start == 0 && s.limit == size && s.stride == 1; }

// Dimensions of which one element is left, and goes: each by an op of its own, so that any of them may be cut.
void TakeOneElement(Instruction* i) {
  if (i->op() != Op::Slice || i->use_count() == 0 || i == i->parent()->root()) return;
  const bool goes =
      std::all_of(i->uses().begin(), i->uses().end(), [](const Use& use) { return use.user->op() == Op::Reshape; });
  if (!goes) return;
  Computation& c = *i->parent();
  SliceAttrs rest = i->attrs<SliceAttrs>();
  Instruction* value = i->operand(0);
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    if (i->shape().dim(d) != 1 || value->shape().dim(d) == 1) continue;
    Shape shape = value->shape().WithoutLayout();
    shape.set_dim(d, 1);
    std::vector<Instruction*> operands = {value};
    for (int64_t k = 0; k < shape.rank(); ++k) {
      const int64_t first = k == d ? rest.slice[d].start : 0;
      operands.push_back(c.AddConstant(Literal::ScalarOfInt(ElementType::S32, first), i));
    }
    const Dims sizes(shape.dims().begin(), shape.dims().end());
    value = c.Add(Op::DynamicSlice, shape, operands, DynamicSliceAttrs{sizes}, {}, i);
    value->set_metadata(i->shared_metadata());
    rest.slice[d] = {0, 1, 1};
  }
  if (value == i->operand(0)) return;
  bool all = true;
  for (int64_t d = 0; d < value->shape().rank(); ++d) all = all && IsPlain(rest.slice[d], value->shape().dim(d));
  Replace(i, all ? value : c.Add(Op::Slice, i->shape(), {value}, std::move(rest), {}, i));
}

void SliceOfPad(Instruction* i) {
  if (i->op() != Op::Slice || i->operand(0)->op() != Op::Pad) return;
  const Instruction& pad = *i->operand(0);
  // Made once where somebody else reads it.
  const bool sliced =
      std::all_of(pad.uses().begin(), pad.uses().end(), [](const Use& use) { return use.user->op() == Op::Slice; });
  PadAttrs attrs = pad.attrs<PadAttrs>();
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const SliceDim& s = i->attrs<SliceAttrs>().slice[d];
    if (!sliced || s.stride != 1 || i->shape().dim(d) == 0) return;
    attrs.padding[d].low -= s.start;
    attrs.padding[d].high -= pad.shape().dim(d) - s.limit;
  }
  Replace(i, i->parent()->Add(Op::Pad, i->shape(), {pad.operand(0), pad.operand(1)}, std::move(attrs), {}, i));
}

// A scalar, without what only hands it on.
const Instruction& ScalarOf(const Instruction& i) {
  const Instruction* at = &i;
  while ((at->op() == Op::Broadcast || at->op() == Op::Copy || at->op() == Op::Reshape) &&
         at->operand(0)->shape().rank() == 0)
    at = at->operand(0);
  return *at;
}

bool SameScalar(const Instruction& first, const Instruction& second) {
  const Instruction &a = ScalarOf(first), &b = ScalarOf(second);
  if (&a == &b) return true;
  const bool constants = a.IsConstant() && b.IsConstant() && a.literal().has_values() && b.literal().has_values();
  return constants && a.shape().Compatible(b.shape()) && std::ranges::equal(a.literal().bytes(), b.literal().bytes());
}

void WindowOverPad(Instruction* i) {
  if (i->op() != Op::ReduceWindow || i->operand_count() != 2 || i->operand(0)->op() != Op::Pad) return;
  const Instruction& pad = *i->operand(0);
  if (pad.use_count() != 1 || !SameScalar(*pad.operand(1), *i->operand(1))) return;
  WindowAttrs attrs = i->attrs<WindowAttrs>();
  for (size_t d = 0; d < attrs.window.dims.size(); ++d) {
    const PaddingDim& p = pad.attrs<PadAttrs>().padding[d];
    WindowDim& w = attrs.window.dims[d];
    if (p == PaddingDim{}) continue;
    if (w.base_dilation != 1 || p.low < 0 || p.high < 0) return;
    w.base_dilation = p.interior + 1;
    w.pad_low += p.low;
    w.pad_high += p.high;
  }
  Instruction* over =
      i->parent()->Add(Op::ReduceWindow, i->shape(), {pad.operand(0), i->operand(1)}, std::move(attrs), {}, i);
  over->set_called(i->called());
  Replace(i, over);
}

}  // namespace

void GiveForms(Module& module) {
  for (Computation* c : module.computations()) {
    RemoveUnused(*c);
    for (Instruction* i : c->PostOrder()) SliceWhereKnown(i);
    for (Instruction* i : c->PostOrder()) SliceOfPad(i);
    for (Instruction* i : c->PostOrder()) WindowOverPad(i);
    for (Instruction* i : c->PostOrder()) TakeOneElement(i);
    RemoveUnused(*c);
  }
}

}  // namespace strop::spmd
