// Conditionals: those whose branch is known, results that nobody reads, and small ones that are cheaper computed both
// ways.
//
//   %c = conditional(constant(true), %x, %y), true_computation=%t, false_computation=%f     the body of %t with %x
//   (a, b) conditional(...), of which only element 1 is read                                (b) conditional(...)
//   conditional(%p, ...) of branches of a few elementwise ops on a few elements             select(%p, both bodies)
//   conditional(%k, ...) of several that are a few instructions together                    select(%k == 0, one, ...)
//
// An s32 index outside the branches takes the last one. Callees are visited first: branches may hold conditionals.
#include <algorithm>
#include <functional>

#include "strop/ir/builder.h"
#include "strop/passes/effects.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Elements that both branches together may compute to become a select: choosing between two kernels costs about as much
// as a thousand additions.
constexpr int64_t kMaxSelected = 1024;
// The same of several branches, in instructions: what a jump to a place that was not foreseen costs.
constexpr int64_t kMaxSelectedOfSeveral = 64, kMaxBranches = 8, kFloatMathCode = 8;

// The branch that is taken, or -1.
int64_t KnownBranch(const Instruction& i) {
  const int64_t branches = static_cast<int64_t>(i.called().size());
  if (branches == 1) return 0;
  const Instruction* index = i.operand(0);
  if (!index->IsConstant()) return -1;
  const int64_t value = index->literal().GetInt(0);
  if (IsPred(index->shape().type())) return value ? 0 : 1;
  return value < 0 || value >= branches ? branches - 1 : value;
}

// ---- select -------------------------------------------------------------------------------------------------------

// Elements that the branch computes, functions of floats counted `of_math` times, or more than any limit if it does
// something that a select should not do in vain.
int64_t Work(const Computation& branch, int64_t of_math) {
  int64_t n = 0;
  for (const Instruction* i : branch.instructions()) {
    if (i->HasControlEdges()) return kMaxSelected + 1;
    switch (i->op()) {
      case Op::Parameter:
      case Op::Constant:
      case Op::Tuple:
      case Op::GetTupleElement:
      case Op::Reshape: continue;
      case Op::Broadcast:
      case Op::Iota:
      case Op::Slice:
      case Op::Transpose: break;
      default:
        if (!IsElementwise(i->op())) return kMaxSelected + 1;
    }
    if (!i->shape().IsArray() || !i->shape().IsStatic()) return kMaxSelected + 1;
    const int64_t times = Is(i->op(), kFloatMath) || i->op() == Op::Divide ? of_math : 1;
    n = SaturatingAdd(n, SaturatingMultiply(times, i->shape().num_elements()));
  }
  return n;
}

bool IsArrayOrTupleOfArrays(const Shape& shape) {
  const auto is_array = [](const Shape& s) { return s.IsArray() && s.IsStatic(); };
  return shape.IsTuple() ? std::ranges::all_of(shape.elements(), is_array) : is_array(shape);
}

bool IsBetterSelected(const Instruction& i) {
  const auto branches = static_cast<int64_t>(i.called().size());
  if (branches > kMaxBranches || i.HasControlEdges() || !IsArrayOrTupleOfArrays(i.shape())) return false;
  const bool several = branches > 2;
  // (One of two by a number is a jump that is mostly foreseen: JAX's cond of a predicate.)
  if (!several && !IsPred(i.operand(0)->shape().type())) return false;
  int64_t n = 0;
  for (const Shape& leaf : i.shape().Leaves())
    n = SaturatingAdd(n, SaturatingMultiply(leaf.num_elements(), branches - 1));
  for (const Computation* branch : i.called()) n = SaturatingAdd(n, Work(*branch, several ? kFloatMathCode : 1));
  return n <= (several ? kMaxSelectedOfSeveral : kMaxSelected);
}

Status ReplaceBySelect(Instruction* i) {
  std::vector<Instruction*> values;
  for (int64_t k = 0; k < static_cast<int64_t>(i->called().size()); ++k) {
    Instruction* argument = i->operand(k + 1);
    values.push_back(CloneBodyBefore(*i->called(k), {&argument, 1}, i));
  }
  Builder b(i->parent());
  b.set_insert_before(i);
  b.set_metadata(i->shared_metadata());
  Instruction* const selector = i->operand(0);
  // The predicate, or the number, says which branch; none of the numbers before it, the last.
  std::vector<Instruction*> taken;
  for (size_t k = 0; k + 1 < values.size(); ++k) {
    const bool pred = IsPred(selector->shape().type());
    taken.push_back(
        pred ? selector
             : b.Compare(selector, b.Scalar(selector->shape().type(), static_cast<double>(k)), CompareDirection::Eq));
  }
  const auto select = [&](const std::function<Instruction*(Instruction*)>& part) {
    Instruction* chosen = part(values.back());
    const Shape shape = chosen->shape();
    for (size_t k = values.size() - 1; k-- > 0;) {
      Instruction* here = shape.IsScalar() ? taken[k] : b.Broadcast(taken[k], shape.dims(), {});
      chosen = b.Make(Op::Select, {here, part(values[k]), chosen});
    }
    return chosen;
  };
  Instruction* value;
  if (i->shape().IsTuple()) {
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < i->shape().tuple_size(); ++k)
      elements.push_back(select([&](Instruction* x) { return b.GetTupleElement(x, k); }));
    value = b.Tuple(elements);
  } else {
    value = select([](Instruction* x) { return x; });
  }
  STROP_TRY(b.status());
  if (i->sharding()) value->set_sharding(*i->sharding());
  i->ReplaceAllUsesWith(value);
  i->parent()->Remove(i);
  return OkStatus();
}

// ---- results that nobody reads --------------------------------------------------------------------------------------

std::vector<bool> LiveResults(const Instruction& i) {
  std::vector<bool> live(i.shape().tuple_size(), false);
  for (const Use& use : i.uses()) {
    if (use.user->op() != Op::GetTupleElement) return std::vector<bool>(live.size(), true);
    if (use.user->use_count() > 0 || use.user->IsRoot() || use.user->HasControlEdges())
      live[use.user->tuple_index()] = true;
  }
  return live;
}

size_t SmallestResult(const Instruction& i) {
  const std::vector<Shape>& results = i.shape().elements();
  const auto bytes = [](const Shape& s) {
    int64_t n = 0;
    for (const Shape& leaf : s.Leaves())
      if (leaf.IsArray()) n = SaturatingAdd(n, leaf.byte_size());
    return n;
  };
  return static_cast<size_t>(
      std::ranges::min_element(results, [&](const Shape& a, const Shape& b) { return bytes(a) < bytes(b); }) -
      results.begin());
}

bool HasConditional(const Module& module) {
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->op() == Op::Conditional) return true;
  return false;
}

struct ConditionalSimplifier final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    if (!HasConditional(module)) return false;
    callers_ = CallerCounts(module);
    Effects effects(module);
    int64_t inlined = 0, selected = 0, dead = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> conditionals;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Conditional) conditionals.push_back(i);
      for (Instruction* i : conditionals) {
        const int64_t branch = KnownBranch(*i);
        if (branch >= 0) {
          Instruction* argument = i->operand(branch + 1);
          InlineInPlaceOf(i, *i->called(branch), {&argument, 1});
          ++inlined;
        } else if (IsBetterSelected(*i)) {
          STROP_TRY(ReplaceBySelect(i));
          ++selected;
        } else {
          STROP_ASSIGN(int64_t removed, RemoveDeadResults(i, effects));
          dead += removed;
        }
      }
    }
    context.Count("conditional-simplifier.inlined", inlined);
    context.Count("conditional-simplifier.selected", selected);
    context.Count("conditional-simplifier.dead-results", dead);
    if (inlined + selected + dead == 0) return false;
    module.RemoveDeadComputations();
    return true;
  }

 private:
  // Branches return what is read only. One result stays in any case: of a conditional that is there for its effects,
  // the smallest.
  Result<int64_t> RemoveDeadResults(Instruction* i, Effects& effects) {
    if (!i->shape().IsTuple() || i->IsRoot() || i->HasControlEdges()) return 0;
    std::vector<bool> live = LiveResults(*i);
    if (live.empty()) return 0;
    if (std::ranges::none_of(live, [](bool read) { return read; })) live[SmallestResult(*i)] = true;
    const int64_t kept = std::count(live.begin(), live.end(), true);
    if (kept == i->shape().tuple_size()) return 0;
    Shape shape;
    for (int64_t k = 0; k < static_cast<int64_t>(i->called().size()); ++k) {
      OwnCallee(i, k, callers_, effects);
      Computation* branch = i->called(k);
      Instruction* root = branch->root();
      Builder b(branch);
      b.set_metadata(root->shared_metadata());
      std::vector<Instruction*> elements;
      for (size_t e = 0; e < live.size(); ++e)
        if (live[e]) elements.push_back(root->op() == Op::Tuple ? root->operand(e) : b.GetTupleElement(root, e));
      Instruction* smaller = b.Tuple(elements);
      STROP_TRY(b.status());
      branch->set_root(smaller);
      shape = smaller->shape();
    }
    Instruction* smaller = i->parent()->AddClone(*i, shape, i->operands(), nullptr, i);
    smaller->clear_sharding();
    std::vector<int64_t> new_index(live.size(), -1);
    for (size_t e = 0, n = 0; e < live.size(); ++e)
      if (live[e]) new_index[e] = static_cast<int64_t>(n++);
    for (const Use& use : std::vector<Use>(i->uses().begin(), i->uses().end())) {
      const int64_t k = new_index[use.user->tuple_index()];
      if (k < 0) {
        use.user->parent()->Remove(use.user);
        continue;
      }
      use.user->SetOperand(0, smaller);
      use.user->set_attrs(GetTupleElementAttrs{k});
    }
    i->parent()->Remove(i);
    return static_cast<int64_t>(live.size()) - kept;
  }

  std::vector<int32_t> callers_;
};

}  // namespace

std::unique_ptr<Pass> MakeConditionalSimplifier() { return std::make_unique<ConditionalSimplifier>(); }

}  // namespace strop
