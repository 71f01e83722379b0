// After this pass every array is dense and row-major, and no shape says otherwise; what layouts meant is written as
// transposes.
//
//   entry_computation_layout={(f32[2,3]{0,1})->...}     %p = f32[3,2] parameter(0)
//   %p = f32[2,3]{0,1} parameter(0)                     %t = f32[2,3] transpose(%p), dimensions={1,0}
//
//   %b = f32[6]{0} bitcast(f32[2,3]{0,1} %x)            %t = f32[3,2] transpose(%x), dimensions={1,0}
//                                                       %b = f32[6] reshape(%t)
//
// - Parameters and root of the entry take the physical shapes of the entry layout (see ir/physical_shape.h); the entry
// layout
//   itself stays, and the module is marked.
// - `bitcast` reinterprets bytes: transpose to the operand's physical order, reshape (and bitcast-convert), transpose
// back.
// - `copy` only moves or changes layout: it goes. The plan makes the copies that memory needs.
// - A custom call sees its buffers in the layouts that it asked for: its operands and results keep them, and stand
// between
//   transposes and bitcasts. Those bitcasts, and the tuple elements of its result, are the only layouts that are left.
// - All other layouts inside are dropped.
#include "strop/ir/builder.h"
#include "strop/ir/physical_shape.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

bool IsRowMajor(const Shape& shape) {
  for (const Shape& leaf : shape.Leaves())
    if (leaf.IsArray() && !IsIdentityPermutation(MajorToMinor(leaf))) return false;
  return true;
}

// Builder that keeps the metadata of the instruction it works for and inserts before `before`.
Builder BuilderFor(const Instruction& i, Instruction* before) {
  Builder b(i.parent());
  b.set_insert_before(before);
  b.set_metadata(i.shared_metadata());
  return b;
}

Instruction* TransposeBy(Builder& b, Instruction* x, const Dims& permutation) {
  return IsIdentityPermutation(permutation) ? x : b.Transpose(x, permutation);
}

// ---- entry ----------------------------------------------------------------------------------------------------------

// The value `x` in its other view, leaf by leaf; `seen` is its logical shape with the layouts in question.
Instruction* ChangeView(Builder& b, Instruction* x, const Shape& seen, bool to_logical) {
  if (IsRowMajor(seen)) return x;
  if (seen.IsArray()) {
    const Dims order = MajorToMinor(seen);
    return TransposeBy(b, x, to_logical ? InversePermutation(order) : order);
  }
  std::vector<Instruction*> elements;
  for (int64_t i = 0; i < seen.tuple_size(); ++i)
    elements.push_back(ChangeView(b, b.GetTupleElement(x, i), seen.element(i), to_logical));
  return b.Tuple(elements);
}

Status MakeEntryPhysical(Module& module) {
  Computation* entry = module.entry();
  const EntryLayout layout = module.EffectiveEntryLayout();
  Instruction* body = entry->first();
  while (body && body->IsParameter()) body = body->next();
  // Parameters first, so that what is made of them comes before every user. They are there from the start, whatever
  // precedes them by a control edge.
  for (Instruction* p : entry->parameters()) {
    for (Instruction* before : p->control_predecessors())
      for (Instruction* after : p->control_successors()) after->AddControlPredecessor(before);
    p->ClearControlEdges();
    if (body) entry->MoveBefore(p, body);
  }
  for (int64_t n = 0; n < entry->parameter_count(); ++n) {
    Instruction* p = entry->parameter(n);
    const bool was_root = entry->root() == p;
    const std::vector<Use> uses(p->uses().begin(), p->uses().end());
    p->set_shape(PhysicalShape(layout.parameters[n]));
    Builder b = BuilderFor(*p, body);
    Instruction* logical = ChangeView(b, p, layout.parameters[n], true);
    STROP_TRY(b.status());
    if (logical == p) continue;
    if (p->sharding() && p->shape().IsArray()) {
      logical->set_sharding(*p->sharding());
      p->clear_sharding();
    }
    for (const Use& use : uses) use.user->SetOperand(use.operand_number, logical);
    if (was_root) entry->set_root(logical);
  }
  Builder b = BuilderFor(*entry->root(), nullptr);
  Instruction* physical = ChangeView(b, entry->root(), layout.result, false);
  STROP_TRY(b.status());
  entry->set_root(physical);
  module.config().entry_layout = layout;
  module.config().has_entry_layout = true;
  MarkPhysicalEntry(module);
  return OkStatus();
}

// ---- inside ---------------------------------------------------------------------------------------------------------

// The same bytes as elements of another type, both row-major; the result has `count` elements if the widths differ.
Instruction* ReinterpretType(Builder& b, Instruction* x, ElementType type) {
  const int from = Bits(x->shape().type()), to = Bits(type);
  if (from == to) return b.BitcastConvert(x, type);
  const int64_t n = x->shape().num_elements();
  if (from > to) return b.Reshape(b.BitcastConvert(b.Reshape(x, {n}), type), {n * (from / to)});
  const int64_t parts = to / from;
  return b.BitcastConvert(b.Reshape(x, {n / parts, parts}), type);
}

Result<Instruction*> ExpandBitcast(Instruction* bitcast, const Shape& from, const Shape& to) {
  Instruction* x = bitcast->operand(0);
  if (!from.IsArray() || !to.IsArray()) return x;
  const int64_t bits_from = SaturatingMultiply(from.num_elements(), Bits(from.type()));
  const int64_t bits_to = SaturatingMultiply(to.num_elements(), Bits(to.type()));
  if (!from.IsStatic() || !to.IsStatic() || bits_from != bits_to)
    return Unimplemented("bitcast %", bitcast->name(), " from ", from.ToStringWithLayout(), " to ",
                         to.ToStringWithLayout(), ": padded or dynamic layouts are not supported")
        .At(bitcast->Where());
  Builder b = BuilderFor(*bitcast, bitcast);
  Instruction* y = TransposeBy(b, x, MajorToMinor(from));
  if (from.type() != to.type()) y = ReinterpretType(b, y, to.type());
  y = b.Reshape(y, PhysicalShape(to).dims());
  y = TransposeBy(b, y, InversePermutation(MajorToMinor(to)));
  STROP_TRY(b.status());
  return y;
}

// x (row-major) -> the same value in `wanted`'s layout: transposed, then relabelled by a bitcast that moves nothing.
Instruction* ToLayout(Builder& b, Instruction* x, const Shape& wanted) {
  if (IsRowMajor(wanted) || !wanted.IsArray()) return x;
  return b.MakeWithShape(Op::Bitcast, wanted, {b.Transpose(x, MajorToMinor(wanted))});
}

// The inverse, for a value that lies in `given`'s layout.
Instruction* FromLayout(Builder& b, Instruction* x, const Shape& given) {
  if (IsRowMajor(given) || given.IsToken()) return x;
  if (given.IsArray()) {
    const Shape physical = PhysicalShape(given);
    return b.Transpose(b.MakeWithShape(Op::Bitcast, physical, {x}), InversePermutation(MajorToMinor(given)));
  }
  std::vector<Instruction*> elements;
  for (int64_t i = 0; i < given.tuple_size(); ++i) {
    Instruction* element = b.GetTupleElement(x, i);
    if (element && !IsRowMajor(given.element(i))) element->set_shape(given.element(i));
    elements.push_back(FromLayout(b, element, given.element(i)));
  }
  return b.Tuple(elements);
}

bool WantsLayouts(const Instruction& i) {
  if (i.op() != Op::CustomCall || !i.attrs<CustomCallAttrs>().has_layout_constraints) return false;
  if (!IsRowMajor(i.shape())) return true;
  for (const Shape& s : i.attrs<CustomCallAttrs>().operand_layout_constraints)
    if (!IsRowMajor(s)) return true;
  return false;
}

// `shape` is the call's, with its layouts; the call keeps it.
Status WrapCustomCall(Instruction* call, const Shape& shape) {
  const auto& constraints = call->attrs<CustomCallAttrs>().operand_layout_constraints;
  Builder before = BuilderFor(*call, call);
  for (int64_t k = 0; k < call->operand_count(); ++k)
    call->SetOperand(k, ToLayout(before, call->operand(k), constraints[k]));
  STROP_TRY(before.status());
  if (IsRowMajor(shape)) return OkStatus();
  call->set_shape(shape);
  const std::vector<Use> uses(call->uses().begin(), call->uses().end());
  const bool was_root = call->IsRoot();
  Builder after = BuilderFor(*call, call->next());
  Instruction* value = FromLayout(after, call, shape);
  STROP_TRY(after.status());
  for (const Use& use : uses) use.user->SetOperand(use.operand_number, value);
  if (was_root) call->parent()->set_root(value);
  return OkStatus();
}

struct Work {  // what a computation holds that layouts mean something to
  Instruction* instruction;
  Shape from, to;
};

// A bitcast that this pass made: between a custom call that keeps its layouts and its transposes.
bool IsRelabelling(const Instruction& i) {
  if (i.op() != Op::Bitcast || !i.shape().IsArray() || !i.operand(0)->shape().IsArray()) return false;
  if (!IsRowMajor(i.shape()))
    for (const Use& use : i.uses())
      if (use.user->op() == Op::CustomCall) return true;
  const Instruction* source = i.operand(0);
  while (source->op() == Op::GetTupleElement) source = source->operand(0);
  return source->op() == Op::CustomCall && !IsRowMajor(i.operand(0)->shape());
}

Result<bool> NormalizeComputation(Computation* c, bool is_normal) {
  std::vector<Work> work;
  bool changed = false;
  for (Instruction* i : c->instructions()) {
    if (i->op() == Op::Copy) work.push_back({i, {}, {}});
    if (i->op() == Op::Bitcast && !(is_normal && IsRelabelling(*i)))
      work.push_back({i, i->operand(0)->shape(), i->shape()});
    if (!is_normal && WantsLayouts(*i)) work.push_back({i, {}, i->shape()});
  }
  for (Instruction* i : c->instructions()) {
    const bool keep =
        is_normal && (i->op() == Op::Bitcast || i->op() == Op::CustomCall || i->op() == Op::GetTupleElement);
    if (keep && !IsRowMajor(i->shape())) continue;
    changed |= !IsRowMajor(i->shape());
    i->set_shape(i->shape().WithoutLayout());
  }
  for (const Work& w : work) {
    changed = true;
    Instruction* i = w.instruction;
    if (i->op() == Op::CustomCall) {
      STROP_TRY(WrapCustomCall(i, w.to));
      continue;
    }
    Instruction* value = i->operand(0);
    if (i->op() == Op::Bitcast) {
      STROP_ASSIGN(value, ExpandBitcast(i, w.from, w.to));
    }
    i->ReplaceAllUsesWith(value);
    c->Remove(i);
  }
  return changed;
}

struct LayoutNormalization final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const bool is_normal = HasPhysicalEntry(module);
    // Bitcasts first: they read the layouts that the entry's parameters are written with.
    bool changed = false;
    for (Computation* c : module.computations()) {
      if (c == module.entry() && !is_normal) {
        // The effective layout may come from the very shapes that are about to lose theirs.
        module.config().entry_layout = module.EffectiveEntryLayout();
        module.config().has_entry_layout = true;
      }
      STROP_ASSIGN(bool here, NormalizeComputation(c, is_normal));
      changed |= here;
    }
    if (is_normal) return changed;
    STROP_TRY(MakeEntryPhysical(module));
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLayoutNormalization() { return std::make_unique<LayoutNormalization>(); }

}  // namespace strop
