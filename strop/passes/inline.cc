#include "strop/passes/inline.h"

#include <algorithm>
#include <unordered_map>

#include "strop/passes/layouts_of_uses.h"

namespace strop {

Instruction* CloneBodyBefore(const Computation& callee, std::span<Instruction* const> arguments, Instruction* before) {
  Computation* into = before->parent();
  std::unordered_map<const Instruction*, Instruction*> map;
  std::vector<Instruction*> operands;
  for (const Instruction* i : callee.instructions()) {
    if (i->IsParameter()) {
      map[i] = arguments[i->parameter_number()];
      continue;
    }
    operands.clear();
    for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(map.at(i->operand(k)));
    if (i->op() == Op::Bitcast) operands[0] = LyingAs(operands[0], i->operand(0)->shape(), before);
    Instruction* clone = into->AddClone(*i, i->shape(), operands, nullptr, before);
    for (Instruction* p : i->control_predecessors())
      if (!p->IsParameter()) clone->AddControlPredecessor(map.at(p));
    map[i] = clone;
  }
  return map.at(callee.root());
}

// A function that several callers share (as JAX lowers jnp.sort and its like) knows names relative to its caller and no
// lines: what it does, it does at the caller's line.
static void LocateInside(const Instruction& caller, Instruction* begin) {
  if (!caller.has_metadata() || caller.metadata().Location().empty()) return;
  std::unordered_map<const OpMetadata*, std::shared_ptr<const OpMetadata>> located;
  for (Instruction* i = begin; i != &caller; i = i->next()) {
    if (!i->metadata().Location().empty()) continue;
    std::shared_ptr<const OpMetadata>& metadata = located[i->has_metadata() ? &i->metadata() : nullptr];
    if (!metadata) {
      OpMetadata joined = caller.metadata();
      const std::string& name = i->metadata().op_name;
      if (!name.empty()) joined.op_name += joined.op_name.empty() ? name : StrCat("/", name);
      joined.op_type = i->metadata().op_type;
      metadata = std::make_shared<const OpMetadata>(std::move(joined));
    }
    i->set_metadata(metadata);
  }
}

void InlineInPlaceOf(Instruction* caller, const Computation& callee, std::span<Instruction* const> arguments) {
  Computation* into = caller->parent();
  Instruction* const neighbour = caller->prev();
  Instruction* root = CloneBodyBefore(callee, arguments, caller);
  LocateInside(*caller, neighbour ? neighbour->next() : into->first());
  // What precedes the caller precedes its body, what follows it follows the body.
  if (caller->HasControlEdges()) {
    const std::vector<Instruction*> earlier = caller->control_predecessors(), later = caller->control_successors();
    caller->ClearControlEdges();
    for (Instruction* i = neighbour ? neighbour->next() : into->first(); i != caller; i = i->next()) {
      for (Instruction* p : earlier) i->AddControlPredecessor(p);
      for (Instruction* s : later) s->AddControlPredecessor(i);
    }
  }
  if (caller->sharding() && !root->sharding() && !root->IsParameter()) root->set_sharding(*caller->sharding());
  ReplaceAllUsesKeepingLayout(caller, root);
  into->Remove(caller);
}

namespace {

void CountCallers(const Instruction& i, std::vector<int32_t>& counts) {
  for (const Computation* callee : i.called()) {
    if (static_cast<int64_t>(counts.size()) <= callee->id()) counts.resize(callee->id() + 1, 0);
    ++counts[callee->id()];
  }
}

}  // namespace

std::vector<int32_t> CallerCounts(const Module& module) {
  std::vector<int32_t> counts;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions()) CountCallers(*i, counts);
  return counts;
}

namespace {
bool ReadsElementsOnly(const Instruction& tuple) {
  return !tuple.IsRoot() && std::all_of(tuple.uses().begin(), tuple.uses().end(),
                                        [](const Use& u) { return u.user->op() == Op::GetTupleElement; });
}
}  // namespace

bool HasExplicitState(const Instruction& loop, const std::vector<int32_t>& callers) {
  if (loop.HasControlEdges() || loop.sharding()) return false;
  for (const Computation* c : {loop.condition(), loop.body()})
    if (callers[static_cast<size_t>(c->id())] != 1 || !c->parameter(0)->shape().IsTuple() ||
        !ReadsElementsOnly(*c->parameter(0)))
      return false;
  return loop.operand(0)->op() == Op::Tuple && loop.body()->root()->op() == Op::Tuple && ReadsElementsOnly(loop);
}

void OwnCallee(Instruction* caller, int64_t k, std::vector<int32_t>& callers, Effects& effects) {
  Computation* original = caller->called(k);
  if (original->id() >= static_cast<int64_t>(callers.size()) || callers[original->id()] <= 1) return;
  Computation* copy = caller->module()->AddComputation(original->name());
  std::unordered_map<const Instruction*, Instruction*> map;
  std::vector<Instruction*> operands;
  for (const Instruction* i : original->instructions()) {
    operands.clear();
    for (int64_t n = 0; n < i->operand_count(); ++n) operands.push_back(map.at(i->operand(n)));
    map[i] = copy->AddClone(*i, i->shape(), operands);
    for (Instruction* p : i->control_predecessors()) map[i]->AddControlPredecessor(map.at(p));
    CountCallers(*i, callers);
  }
  copy->set_root(map.at(original->root()));
  copy->set_execution_thread(original->execution_thread());
  effects.Inherit(*original, *copy);
  --callers[original->id()];
  caller->SetCalled(k, copy);
}

}  // namespace strop
