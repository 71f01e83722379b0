// A slice of a stack that is updated and put back is updated where it lies:
//
//   %x = dynamic-slice(%stack, %i, 0, 0)
//   %y = dynamic-update-slice(%x, %row, 0, %at, 0)      ->   %new = dynamic-update-slice(%stack, %row, %i, %at, 0)
//   %new = dynamic-update-slice(%stack, %y, %i, 0, 0)        %y = dynamic-slice(%new, %i, 0, 0)
//
// so that a token's row is written, and not a layer's keys twice; the same of a scatter into the slice, which writes
// rows of a batch at places of their own. A loop over layers reads slices of one stack and puts the updated ones into
// another, which nobody sees as it was: both may be one, since each trip reads its slice before it is put back. A
// donated stack is then never copied, another one once, before the loop.
#include <algorithm>
#include <utility>

#include "strop/analysis/loop_position.h"
#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"
#include "strop/passes/simplify/constants.h"

namespace strop {
namespace {

using simplify::HasScalarStarts;
using simplify::SameStarts;

constexpr int64_t kLeastBytes = 4 << 10;  // of a slice that others read: smaller ones are copied in no time

// Through reshapes that only add and remove dimensions of one element.
Instruction* WithoutUnits(Instruction* i) {
  const auto sizes = [](const Shape& shape) {
    Dims out;
    for (int64_t d : shape.dims())
      if (d != 1) out.push_back(d);
    return out;
  };
  while (i->op() == Op::Reshape && sizes(i->shape()) == sizes(i->operand(0)->shape())) i = i->operand(0);
  return i;
}

// `put` = dynamic-update-slice(stack, updates of a slice of it, where the slice was cut).
struct StackUpdate {
  Instruction* put = nullptr;
  Instruction* slice = nullptr;
  std::vector<Instruction*> updates;  // of the slice, the first to come first
};

// Does each dimension of the slice have one element, or all?
bool IsPileOfWhole(const Instruction& slice) {
  for (int64_t d = 0; d < slice.shape().rank(); ++d)
    if (slice.shape().dim(d) != 1 && slice.shape().dim(d) != slice.operand(0)->shape().dim(d)) return false;
  return true;
}

// The only dimension of which the slice has one element and the stack more; -1 if there are several, or none.
int64_t Along(const Instruction& slice) {
  int64_t along = -1;
  for (int64_t d = 0; d < slice.shape().rank(); ++d)
    if (slice.shape().dim(d) != slice.operand(0)->shape().dim(d) && std::exchange(along, d) >= 0) return -1;
  return along;
}

bool CanUpdateStack(const Instruction& update, const Instruction& slice) {
  const ElementType type = slice.operand(1)->shape().type();
  if (update.op() == Op::DynamicUpdateSlice) return update.operand(2)->shape().type() == type;
  const int64_t along = Along(slice);
  Int64Vector dims = slice.shape().dims();
  if (along < 0 || Bits(type) < 32 || Bits(update.operand(1)->shape().type()) < 32) return false;
  dims.erase(dims.begin() + along);
  return update.shape().dims() == dims;
}

// The slice may be one of another stack.
std::optional<StackUpdate> UpdateOf(Instruction* put) {
  if (put->op() != Op::DynamicUpdateSlice || !HasScalarStarts(put, 2)) return std::nullopt;
  StackUpdate found{put, nullptr, {}};
  Instruction* at = WithoutUnits(put->operand(1));
  while ((at->op() == Op::DynamicUpdateSlice && HasScalarStarts(at, 2)) ||
         (at->op() == Op::Scatter && at->operand_count() == 3)) {
    if (!found.updates.empty() && at->use_count() != 1) return std::nullopt;
    found.updates.insert(found.updates.begin(), at);
    at = WithoutUnits(at->operand(0));
  }
  if (found.updates.empty() || at->op() != Op::DynamicSlice || at->use_count() != 1) return std::nullopt;
  if (!SameStarts(at, 1, put, 2) || !at->shape().SameDims(put->operand(1)->shape())) return std::nullopt;
  for (const Instruction* update : found.updates)
    if (!CanUpdateStack(*update, *at)) return std::nullopt;
  found.slice = at;
  return IsPileOfWhole(*at) ? std::optional(found) : std::nullopt;
}

// ---- two stacks of a loop become one --------------------------------------------------------------------------------

class StackJoiner {
 public:
  StackJoiner(Instruction* loop, const Counter& counter)
      : loop_(loop), body_(loop->body()), root_(body_->root()), counter_(counter) {}

  int64_t Run() {
    int64_t joined = 0;
    for (int64_t k = 0; k < root_->operand_count(); ++k) joined += Join(k);
    return joined;
  }

 private:
  bool IsElement(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0) == body_->parameter(0);
  }
  int64_t ReadsOf(int64_t element) const {
    int64_t reads = 0;
    for (const Computation* c : {loop_->condition(), body_})
      for (const Use& use : c->parameter(0)->uses())
        if (use.user->tuple_index() == element) reads += use.user->use_count();
    return reads;
  }

  bool Join(int64_t element) {
    Instruction* put = root_->operand(element);
    const std::optional<StackUpdate> update = UpdateOf(put);
    if (!update || put->use_count() != 1) return false;
    Instruction *written = put->operand(0), *read = update->slice->operand(0);
    if (!IsElement(written) || written->tuple_index() != element || ReadsOf(element) != 1) return false;
    if (!IsElement(read) || read == written || !(read->shape() == written->shape())) return false;
    // Handed on as it is, and read in this one place.
    if (root_->operand(read->tuple_index()) != read || ReadsOf(read->tuple_index()) != 2) return false;
    if (!ReplacesAll(*update)) return false;
    update->slice->SetOperand(0, written);
    Instruction* init = loop_->operand(0);
    Builder b(loop_->parent());
    b.set_insert_before(loop_);
    std::vector<Instruction*> elements = init->operands();
    elements[static_cast<size_t>(element)] = elements[static_cast<size_t>(read->tuple_index())];
    loop_->SetOperand(0, b.Tuple(elements));
    return true;
  }

  // Is every slice of the stack put into it in some trip?
  bool ReplacesAll(const StackUpdate& update) const {
    const int64_t along = Along(*update.slice);
    if (along < 0 || update.put->shape().dim(along) != counter_.trips) return false;
    const auto at = PositionOf(update.put->operand(2 + along), *body_->parameter(0), counter_);
    return at && VisitsAll(*at, counter_);
  }

  Instruction* loop_;
  Computation* body_;
  Instruction* root_;
  const Counter counter_;
};

// ---- updates in place -----------------------------------------------------------------------------------------------

// An update of the slice as one of the stack. Where the slice has one element, starts are clamped as the slice's are;
// where it has all, as those of the update.
Instruction* UpdateStack(Builder& b, Instruction* stack, const Instruction& slice, const Instruction& update) {
  Instruction* part = update.operand(1);
  std::vector<Instruction*> starts;
  Int64Vector sizes;
  int64_t inner = 0;
  for (int64_t d = 0; d < slice.shape().rank(); ++d) {
    if (slice.shape().dim(d) == 1) {
      starts.push_back(slice.operand(1 + d));
      sizes.push_back(1);
      continue;
    }
    while (update.shape().dim(inner) == 1) ++inner;
    starts.push_back(update.operand(2 + inner));
    sizes.push_back(part->shape().dim(inner++));
  }
  std::vector<Instruction*> operands = {stack, b.Reshape(part, sizes)};
  operands.insert(operands.end(), starts.begin(), starts.end());
  return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
}

// A scatter into the slice as one into the stack: the slice's start, which is clamped, is one more index of each.
Instruction* ScatterIntoStack(Builder& b, Instruction* stack, const Instruction& slice, const Instruction& scatter) {
  const int64_t along = Along(slice);
  ScatterAttrs attrs = scatter.attrs<ScatterAttrs>();
  Instruction* indices = scatter.operand(1);
  Instruction* start = slice.operand(1 + along);
  const ElementType type = start->shape().type();
  start = b.Make(Op::Clamp, {b.Scalar(type, 0), start, b.Scalar(type, stack->shape().dim(along) - 1)});
  if (indices->shape().type() != type) start = b.Convert(start, indices->shape().type());
  Int64Vector one = indices->shape().dims();
  if (attrs.index_vector_dim == static_cast<int64_t>(one.size())) {  // indices that are no vectors
    one.push_back(1);
    indices = b.Reshape(indices, one);
  }
  one[static_cast<size_t>(attrs.index_vector_dim)] = 1;
  indices = b.Make(Op::Concatenate, {indices, b.Broadcast(start, one, {})}, DimensionsAttrs{{attrs.index_vector_dim}});
  for (Dims* dims : {&attrs.inserted_window_dims, &attrs.scatter_dims_to_operand_dims, &attrs.input_batching_dims})
    for (int64_t& d : *dims) d += d >= along;
  attrs.scatter_dims_to_operand_dims.push_back(along);
  Dims& inserted = attrs.inserted_window_dims;
  inserted.insert(std::upper_bound(inserted.begin(), inserted.end(), along), along);
  return b.Make(Op::Scatter, {stack, indices, scatter.operand(2)}, attrs, {scatter.to_apply()});
}

bool UpdateInPlace(Instruction* put) {
  const std::optional<StackUpdate> update = UpdateOf(put);
  if (!update || update->slice->operand(0) != put->operand(0)) return false;
  for (const Use& use : put->operand(0)->uses())  // others may have to read the stack before it changes
    if (use.user != put && use.user != update->slice) return false;
  Instruction* last = update->updates.back();
  if (last->use_count() > 1 && last->shape().byte_size() < kLeastBytes) return false;
  Builder b(put->parent());
  b.set_insert_before(last->next());
  if (put->has_metadata()) b.set_metadata(put->shared_metadata());
  Instruction* stack = put->operand(0);
  for (const Instruction* u : update->updates)
    stack = u->op() == Op::Scatter ? ScatterIntoStack(b, stack, *update->slice, *u)
                                   : UpdateStack(b, stack, *update->slice, *u);
  put->ReplaceAllUsesWith(stack);
  Instruction* slice = update->slice;
  std::vector<Instruction*> operands = slice->operands();
  operands[0] = stack;
  Instruction* seen = b.Make(Op::DynamicSlice, operands, slice->attrs<DynamicSliceAttrs>(), {}, nullptr);
  last->ReplaceAllUsesWith(b.Reshape(seen, last->shape().dims()));
  return true;
}

struct StackUpdates final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const std::vector<int32_t> callers = CallerCounts(module);
    int64_t joined = 0, in_place = 0;
    const std::vector<Computation*> computations = module.PostOrder();
    for (Computation* c : computations) {
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && HasExplicitState(*i, callers)) loops.push_back(i);
      for (Instruction* loop : loops)
        if (const std::optional<Counter> counter = FindCounter(*loop)) joined += StackJoiner(loop, *counter).Run();
    }
    for (Computation* c : computations) {
      std::vector<Instruction*> puts;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::DynamicUpdateSlice) puts.push_back(i);
      for (Instruction* put : puts) in_place += UpdateInPlace(put);
    }
    context.Count("stack-updates.joined", joined);
    context.Count("stack-updates.in-place", in_place);
    return joined + in_place > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeStackUpdates() { return std::make_unique<StackUpdates>(); }

}  // namespace strop
