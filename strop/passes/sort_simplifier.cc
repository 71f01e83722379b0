// Operands of a sort that are moved along for nobody: neither is their result read nor are they compared.
//
//   (f32[n], s32[n]) sort(%keys, %positions), to_apply=%less(a, b, i, j: a < b)
//   of which element 0 is read only                                   ->   f32[n] sort(%keys), to_apply=%less(a, b: a <
//   b)
//
// The comparator is cloned without the parameters of what goes. One operand stays in any case.
#include <algorithm>
#include <unordered_map>

#include "strop/passes/pass.h"

namespace strop {
namespace {

// Which operands somebody needs; all of them if the result is used as a whole.
std::vector<bool> Needed(const Instruction& sort) {
  std::vector<bool> needed(sort.operand_count(), sort.IsRoot());
  for (const Use& use : sort.uses()) {
    if (use.user->op() != Op::GetTupleElement) return std::vector<bool>(needed.size(), true);
    if (use.user->use_count() > 0 || use.user->IsRoot() || use.user->HasControlEdges())
      needed[use.user->tuple_index()] = true;
  }
  for (const Instruction* p : sort.to_apply()->parameters())
    if (p->use_count() > 0 || p->IsRoot()) needed[p->parameter_number() / 2] = true;
  return needed;
}

// The comparator with two parameters for each operand that stays.
Computation* Without(const Computation& comparator, const std::vector<bool>& needed) {
  Computation* smaller = comparator.module()->AddComputation(comparator.name());
  std::unordered_map<const Instruction*, Instruction*> map;
  int64_t number = 0;
  for (const Instruction* p : comparator.parameters())
    if (needed[p->parameter_number() / 2]) map[p] = smaller->AddParameter(number++, p->shape(), p->name());
  std::vector<Instruction*> operands;
  for (const Instruction* i : comparator.instructions()) {
    if (i->IsParameter()) continue;
    operands.clear();
    for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(map.at(i->operand(k)));
    map[i] = smaller->AddClone(*i, i->shape(), operands);
  }
  smaller->set_root(map.at(comparator.root()));
  return smaller;
}

int64_t Simplify(Instruction* sort) {
  const std::vector<bool> needed = Needed(*sort);
  const int64_t kept = std::count(needed.begin(), needed.end(), true);
  if (kept == 0 || kept == sort->operand_count()) return 0;
  Computation* c = sort->parent();
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;
  std::vector<int64_t> new_index(needed.size(), -1);
  for (int64_t k = 0; k < sort->operand_count(); ++k) {
    if (!needed[k]) continue;
    new_index[k] = static_cast<int64_t>(operands.size());
    operands.push_back(sort->operand(k));
    shapes.push_back(sort->shape().element(k));
  }
  const Shape shape = kept == 1 ? shapes[0] : Shape::Tuple(shapes);
  Computation* comparator = Without(*sort->to_apply(), needed);
  Instruction* smaller = c->AddClone(*sort, shape, operands, nullptr, sort);
  smaller->SetCalled(0, comparator);
  smaller->clear_sharding();
  for (const Use& use : std::vector<Use>(sort->uses().begin(), sort->uses().end())) {
    Instruction* read = use.user;
    const int64_t k = new_index[read->tuple_index()];
    if (k >= 0 && kept == 1) {
      read->ReplaceAllUsesWith(smaller);
    } else if (k >= 0) {
      read->SetOperand(0, smaller);
      read->set_attrs(GetTupleElementAttrs{k});
      continue;
    }
    c->Remove(read);
  }
  c->Remove(sort);
  return static_cast<int64_t>(needed.size()) - kept;
}

struct SortSimplifier final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    std::vector<Instruction*> sorts;
    for (Computation* c : module.computations())
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Sort && i->operand_count() > 1 && i->shape().IsTuple() && !i->HasControlEdges())
          sorts.push_back(i);
    int64_t removed = 0;
    for (Instruction* sort : sorts) {
      const bool edges = std::ranges::any_of(sort->uses(), [](const Use& u) { return u.user->HasControlEdges(); });
      if (!edges) removed += Simplify(sort);
    }
    context.Count("sort-simplifier.operands", removed);
    if (removed > 0) module.RemoveDeadComputations();
    return removed > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSortSimplifier() { return std::make_unique<SortSimplifier>(); }

}  // namespace strop
