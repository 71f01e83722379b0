// A sort by several keys becomes stable sorts by one key each, the least important key first:
//
//   sort(%a, %b, %c), to_apply=(a < a' || a == a' && b < b')   ->   %s = sort(%a, %b, %c), to_apply=(b < b')
//                                                                  sort(%s#0, %s#1, %s#2), to_apply=(a < a')
//
// A sort by one key in a known order is a radix sort; any other calls its comparator n log n times. What the last sorts
// move for nobody, the sort simplifier leaves out.
#include <unordered_map>
#include <vector>

#include "strop/analysis/scalar_pattern.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr size_t kMostKeys = 4;  // more are rarely looked at, and every sort moves all operands

// The comparator's parameters, and what `comparison` computes of them.
Computation* OnlyBy(const Computation& comparator, const Instruction& comparison) {
  Computation* c = comparator.module()->AddComputation(comparator.name());
  std::unordered_map<const Instruction*, Instruction*> made;
  for (const Instruction* p : comparator.parameters())
    made[p] = c->AddParameter(p->parameter_number(), p->shape(), p->name());
  std::vector<Instruction*> operands;
  for (const Instruction* i : comparator.instructions()) {
    if (i->IsParameter()) continue;
    operands.clear();
    for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(made.at(i->operand(k)));
    made[i] = c->AddClone(*i, i->shape(), operands);
  }
  c->set_root(made.at(&comparison));
  return c;
}

bool Split(Instruction* sort) {
  const std::vector<const Instruction*> keys = MatchSortKeys(*sort->to_apply());
  if (keys.size() < 2 || keys.size() > kMostKeys) return false;
  Builder b(sort->parent());
  b.set_insert_before(sort);
  b.set_metadata(sort->shared_metadata());
  std::vector<Instruction*> operands = sort->operands();
  Instruction* sorted = nullptr;
  for (size_t k = keys.size(); k-- > 0;) {
    if (sorted)
      for (size_t n = 0; n < operands.size(); ++n) operands[n] = b.GetTupleElement(sorted, static_cast<int64_t>(n));
    sorted = sort->parent()->AddClone(*sort, sort->shape(), operands, nullptr, sort);
    sorted->SetCalled(0, OnlyBy(*sort->to_apply(), *keys[k]));
    SortAttrs attrs = sort->attrs<SortAttrs>();
    attrs.is_stable = true;
    sorted->set_attrs(std::move(attrs));
  }
  sort->ReplaceAllUsesWith(sorted);
  if (sort->IsRoot()) sort->parent()->set_root(sorted);
  sort->parent()->Remove(sort);
  return true;
}

struct SortSplitter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    std::vector<Instruction*> sorts;
    for (Computation* c : module.computations())
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Sort && i->shape().IsTuple() && !i->HasControlEdges() && !i->sharding()) sorts.push_back(i);
    int64_t split = 0;
    for (Instruction* sort : sorts) split += Split(sort);
    context.Count("sort-splitter.sorts", split);
    if (split > 0) module.RemoveDeadComputations();
    return split > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSortSplitter() { return std::make_unique<SortSplitter>(); }

}  // namespace strop
