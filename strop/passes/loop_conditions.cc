// Loops over batches (a vmapped while_loop) go on while any member does, and their bodies ask each member again whether
// its state changes. What both compute becomes a part of the state.
//
//   condition: any(P(state))                                condition: any(p)
//   body: select(P(state), new, state)        ->            body: state' = select(p, new, state),  p' = P(state')
//
// So it is computed once a trip; and what is rounded otherwise in the body than in the condition (a product that is
// added to something, a sum in another order) cannot make a loop that goes on for a member whose state never changes.
// Where members' states are single elements that stay as they are once they have ended, p' is p & P(state'), which is
// the same and says so (analysis/positionwise_loop.h).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/combiner.h"
#include "strop/ir/builder.h"
#include "strop/ir/hash.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"
#include "strop/passes/same_operation.h"

namespace strop {
namespace {

using Map = std::unordered_map<const Instruction*, Instruction*>;

// The element of its computation's state that this is, or -1.
int64_t StateElement(const Instruction& i) {
  return i.op() == Op::GetTupleElement && i.operand(0)->IsParameter() ? i.tuple_index() : -1;
}

class Carrier {
 public:
  explicit Carrier(Instruction* loop) : loop_(loop), condition_(loop->condition()), body_(loop->body()) {}

  bool Run() {
    FindSame();
    const Instruction* asked = FindAsked();
    if (!asked) return false;
    Extend(*asked);
    return true;
  }

 private:
  static uint64_t Key(const Instruction& i, const std::vector<Instruction*>& operands) {
    uint64_t h = HashOperation(i);
    for (const Instruction* o : operands) h = HashCombine(h, static_cast<uint64_t>(o->id()));
    return h;
  }

  // What the body computes of its state as the condition does.
  void FindSame() {
    std::unordered_map<uint64_t, std::vector<Instruction*>> of_body;
    for (Instruction* i : body_->instructions())
      if (!i->IsParameter()) of_body[Key(*i, i->operands())].push_back(i);
    same_[condition_->parameter(0)] = body_->parameter(0);
    for (const Instruction* i : condition_->instructions()) {
      std::vector<Instruction*> operands;
      for (const Instruction* o : i->operands())
        if (const auto at = same_.find(o); at != same_.end()) operands.push_back(at->second);
      if (i->op() == Op::Rng || Is(i->op(), kSideEffect | kAsync | kCollective)) continue;  // not the same twice
      if (i->IsParameter() || static_cast<int64_t>(operands.size()) != i->operand_count()) continue;
      const auto found = of_body.find(Key(*i, operands));
      if (found == of_body.end()) continue;
      for (Instruction* other : found->second)
        if (SameOperation(*i, *other) && other->operands() == operands) same_[i] = other;
    }
  }

  // The members' answers, if the body asks them as well; null: none.
  const Instruction* FindAsked() const {
    for (const Instruction* i : condition_->instructions()) {
      if (i->op() != Op::Reduce || i->operand_count() != 2 || !IsPred(i->shape().type())) continue;
      if (RecognizeCombiner(*i->to_apply()).op != Op::Or) continue;
      const Instruction* asked = i->operand(0);
      const auto at = same_.find(asked);
      if (at != same_.end() && at->second->use_count() > 0 && StateElement(*asked) < 0 && asked->operand_count() > 0)
        return asked;
    }
    return nullptr;
  }

  // The condition's `asked` of another state, before `before`.
  Instruction* Ask(const Instruction& asked, const std::vector<Instruction*>& state, Instruction* before) const {
    Map made;
    std::vector<const Instruction*> stack = {&asked};
    while (!stack.empty()) {
      const Instruction* i = stack.back();
      const int64_t element = StateElement(*i);
      if (element >= 0) made[i] = state[static_cast<size_t>(element)];
      bool ready = true;
      std::vector<Instruction*> operands;
      for (int64_t k = 0; element < 0 && k < i->operand_count(); ++k) {
        const auto at = made.find(i->operand(k));
        if (at == made.end()) {
          stack.push_back(i->operand(k));
          ready = false;
        } else {
          operands.push_back(at->second);
        }
      }
      if (!ready) continue;
      stack.pop_back();
      if (!made.contains(i)) made[i] = before->parent()->AddClone(*i, i->shape(), operands, nullptr, before);
    }
    return made.at(&asked);
  }

  // Is a member's answer a function of its own elements of the state, and are these left as they are once it is no?
  bool EndsForGood(const Instruction& asked, const Instruction& carried, const std::vector<Instruction*>& next) const {
    std::vector<const Instruction*> stack = {&asked};
    std::unordered_set<const Instruction*> seen;
    while (!stack.empty()) {
      const Instruction* i = stack.back();
      stack.pop_back();
      if (!seen.insert(i).second || IsConstantOrSpread(*i)) continue;
      if (!i->shape().SameDims(asked.shape())) return false;
      if (const int64_t element = StateElement(*i); element >= 0) {
        if (!IsKept(*next[static_cast<size_t>(element)], element, carried)) return false;
        continue;
      }
      if (!IsElementwise(i->op()) && i->op() != Op::Reshape && i->op() != Op::Broadcast && i->op() != Op::Copy)
        return false;
      for (int64_t k = 0; k < i->operand_count(); ++k) stack.push_back(i->operand(k));
    }
    return true;
  }
  static bool IsConstantOrSpread(const Instruction& i) {
    if (i.op() == Op::Broadcast && i.operand(0)->shape().IsScalar()) return IsConstantOrSpread(*i.operand(0));
    return i.IsConstant();
  }
  static bool IsKept(const Instruction& next, int64_t element, const Instruction& carried) {
    if (StateElement(next) == element) return true;
    const Instruction* chosen = next.op() == Op::Select ? next.operand(0) : nullptr;
    while (chosen && (chosen->op() == Op::Broadcast || chosen->op() == Op::Copy) &&
           chosen->shape().SameDims(chosen->operand(0)->shape()))
      chosen = chosen->operand(0);
    return chosen == &carried && StateElement(*next.operand(2)) == element;
  }

  void Extend(const Instruction& asked) {
    Instruction *init = loop_->operand(0), *root = body_->root();
    std::vector<Instruction*> begin = init->operands(), next = root->operands();
    begin.push_back(Ask(asked, init->operands(), loop_));
    std::vector<Shape> elements;
    for (const Instruction* i : begin) elements.push_back(i->shape().WithoutLayout());
    const Shape state = Shape::Tuple(std::move(elements));
    const int64_t number = static_cast<int64_t>(begin.size()) - 1;
    for (Computation* c : {condition_, body_}) {
      c->parameter(0)->set_shape(state);
      c->parameter(0)->clear_sharding();
    }
    Instruction* in_body = same_.at(&asked);
    Instruction* carried = Element(*body_, asked.shape(), number);
    in_body->ReplaceAllUsesWith(carried);
    for (Instruction*& n : next)
      if (n == in_body) n = carried;
    Instruction* again = Ask(asked, next, root);
    if (EndsForGood(asked, *carried, next))
      again = body_->Add(Op::And, asked.shape(), {carried, again}, NoAttrs{}, "going_on", root);
    next.push_back(again);
    Instruction* new_root = body_->Add(Op::Tuple, state, next, NoAttrs{}, root->name(), root);
    body_->set_root(new_root);
    body_->Remove(root);

    Instruction* at_home = const_cast<Instruction*>(&asked);  // of the loop's own condition
    at_home->ReplaceAllUsesWith(Element(*condition_, asked.shape(), number));

    Computation* around = loop_->parent();
    Instruction* new_init = around->Add(Op::Tuple, state, begin, NoAttrs{}, init->name(), loop_);
    Instruction* loop = around->AddClone(*loop_, state, {&new_init, 1}, nullptr, loop_);
    loop->clear_sharding();
    for (const Use& use : std::vector<Use>(loop_->uses().begin(), loop_->uses().end()))
      use.user->SetOperand(use.operand_number, loop);
    around->Remove(loop_);
  }

  static Instruction* Element(Computation& c, const Shape& shape, int64_t number) {
    Instruction* state = c.parameter(0);
    return c.Add(Op::GetTupleElement, shape.WithoutLayout(), {state}, GetTupleElementAttrs{number}, "going_on",
                 state->next());
  }

  Instruction* loop_;
  Computation *condition_, *body_;
  Map same_;  // looked up only
};

struct LoopConditions final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const std::vector<int32_t> callers = CallerCounts(module);
    int64_t carried = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && HasExplicitState(*i, callers)) loops.push_back(i);
      for (Instruction* loop : loops) carried += Carrier(loop).Run();
    }
    context.Count("loop-conditions.carried", carried);
    return carried > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopConditions() { return std::make_unique<LoopConditions>(); }

}  // namespace strop
