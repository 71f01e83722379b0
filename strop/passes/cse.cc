// Common subexpressions: instructions of one computation with the same op, operands, attributes, callees and shape
// become one.
//
//   %a = f32[] add(%x, %y)    %b = f32[] add(%y, %x)    uses of %b use %a
//
// One walk in list order with a hash table: operands are merged before their users are seen, so one walk finds chains.
// Equal computations (the many copies of `add` that a front end makes) are merged first, so that what calls them can be
// equal. Equal collectives merge as well: every participant runs this program, so all of them leave out the same one;
// which channel each would have used is no difference. Left alone: effects, random numbers, barriers, anything with
// control edges, and values with unequal shardings.
#include <algorithm>
#include <unordered_map>

#include "strop/ir/hash.h"
#include "strop/passes/effects.h"
#include "strop/passes/pass.h"
#include "strop/passes/same_operation.h"

namespace strop {
namespace {

// Operands by id, in a fixed order for commutative ops.
SmallVector<int64_t, 4> OperandIds(const Instruction& i) {
  SmallVector<int64_t, 4> ids;
  for (int64_t k = 0; k < i.operand_count(); ++k) ids.push_back(i.operand(k)->id());
  if (Is(i.op(), kCommutative) && ids.size() == 2 && ids[0] > ids[1]) std::swap(ids[0], ids[1]);
  return ids;
}

bool MayMerge(const Instruction& i, const Effects& effects) {
  switch (i.op()) {
    case Op::Parameter:
    case Op::OptimizationBarrier:
    case Op::AfterAll:
    case Op::AddDependency:
    case Op::Rng: return false;
    default: break;
  }
  if (Is(i.op(), kAsync | kSideEffect)) return false;
  if (!Is(i.op(), kCollective) && effects.Has(i)) return false;
  return !i.HasControlEdges();
}

// ---- equal computations ---------------------------------------------------------------------------------------------

// Larger ones are hardly ever equal, and comparing them costs.
constexpr int64_t kMaxComputationSize = 64;

// Position of each instruction in its list: operands are compared by position.
std::unordered_map<const Instruction*, int64_t> Positions(const Computation& c) {
  std::unordered_map<const Instruction*, int64_t> positions;
  for (const Instruction* i : c.instructions()) positions.emplace(i, static_cast<int64_t>(positions.size()));
  return positions;
}

bool SameComputation(const Computation& a, const Computation& b) {
  if (a.instruction_count() != b.instruction_count() || a.execution_thread() != b.execution_thread()) return false;
  const auto in_a = Positions(a), in_b = Positions(b);
  if (in_a.at(a.root()) != in_b.at(b.root())) return false;
  const Instruction* y = b.first();
  for (const Instruction* x = a.first(); x; x = x->next(), y = y->next()) {
    if (!SameOperation(*x, *y) || x->operand_count() != y->operand_count()) return false;
    if (x->control_predecessors().size() + y->control_predecessors().size() > 0) return false;
    for (int64_t k = 0; k < x->operand_count(); ++k)
      if (in_a.at(x->operand(k)) != in_b.at(y->operand(k))) return false;
  }
  return true;
}

uint64_t HashComputation(const Computation& c) {
  uint64_t h = static_cast<uint64_t>(c.instruction_count());
  for (const Instruction* i : c.instructions()) h = HashCombine(h, HashOperation(*i));
  return h;
}

// Callees first, so that callers of merged computations can be equal. Computations that control flow owns (a while
// body, a branch, a fusion) keep one caller each: passes change them in place.
int64_t MergeComputations(Module& module) {
  std::unordered_map<uint64_t, std::vector<Computation*>> by_hash;
  std::unordered_map<const Computation*, Computation*> merged;
  for (Computation* c : module.PostOrder()) {
    bool shared_only = true;  // nothing inside but scalar functions
    for (Instruction* i : c->instructions()) {
      for (size_t k = 0; k < i->called().size(); ++k) {
        auto it = merged.find(i->called(static_cast<int64_t>(k)));
        const bool function = !Is(i->op(), kControlFlow | kAsync) && i->op() != Op::Fusion && i->op() != Op::CustomCall;
        if (it != merged.end() && function) i->SetCalled(static_cast<int64_t>(k), it->second);
      }
      shared_only &= i->shape().IsScalar() || i->op() == Op::Tuple;
    }
    if (!shared_only || c->IsEntry() || c->instruction_count() > kMaxComputationSize || !c->root()) continue;
    std::vector<Computation*>& same = by_hash[HashComputation(*c)];
    auto it = std::find_if(same.begin(), same.end(), [&](Computation* s) { return SameComputation(*s, *c); });
    if (it != same.end())
      merged.emplace(c, *it);
    else
      same.push_back(c);
  }
  return static_cast<int64_t>(merged.size());
}

// ---- the walk -------------------------------------------------------------------------------------------------------

int64_t MergeInstructions(Computation* c, const Effects& effects) {
  int64_t merged = 0;
  std::unordered_map<uint64_t, std::vector<Instruction*>> seen;
  for (Instruction* i : c->instructions()) {
    if (!MayMerge(*i, effects)) continue;
    const SmallVector<int64_t, 4> ids = OperandIds(*i);
    uint64_t h = HashOperation(*i);
    for (int64_t id : ids) h = HashCombine(h, static_cast<uint64_t>(id));
    std::vector<Instruction*>& same = seen[h];
    Instruction* found = nullptr;
    for (Instruction* s : same)
      if (SameOperation(*s, *i) && std::ranges::equal(OperandIds(*s), ids)) found = s;
    if (!found) {
      same.push_back(i);
      continue;
    }
    i->ReplaceAllUsesWith(found);
    c->Remove(i);
    ++merged;
  }
  return merged;
}

struct Cse final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const int64_t computations = MergeComputations(module);
    const Effects effects(module);
    int64_t merged = 0;
    for (Computation* c : module.computations()) merged += MergeInstructions(c, effects);
    context.Count("cse.instructions", merged);
    // Merged computations are left to dce; that alone is no change that other passes would have to look at again.
    return merged > 0 || (computations > 0 && module.RemoveDeadComputations() > 0);
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCse() { return std::make_unique<Cse>(); }

}  // namespace strop
