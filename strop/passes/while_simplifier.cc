// Loops: constant and unchanged state, dead state, trip counts, loops of no or one trip.
//
//   state (i, limit, x, unused)            state (i, x)
//     limit = 10, never changed     ->       condition and body hold constant(10) themselves
//     unused, read by itself only            gone
//     i = 0, i < 10, i += 1                  backend_config={"known_trip_count":{"n":"10"}}
//
// In this order, for each loop, inner loops first:
//   1. own     condition and body are cloned if another instruction calls them as well: they are about to change
//   2. merge   integers that begin alike and to which the body adds alike are one (fori_loop counts beside the loop)
//   3. sink    an element that the body passes through unchanged: its users after the loop read the initial value; if
//              that is a constant (or a broadcast of one, or an iota), users inside read a copy of it
//   4. shrink  elements that neither the condition nor anything after the loop nor a live element needs are removed
//   5. count   the trip count is recorded; none: the loop is its initial state; one: the body stands in its place; the
//              value of the counter after the loop is a constant
// A loop whose state is used as a whole, and of which 3 or 5 know an element, has its state put together again after
// it, element by element.
// Each is linear in the loop. Dead loops themselves are dce's.
#include <algorithm>
#include <unordered_set>

#include "strop/analysis/trip_count.h"
#include "strop/ir/builder.h"
#include "strop/passes/effects.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// A loop whose state is a tuple that its operand and its body put together explicitly.
struct Loop {
  Instruction* loop;
  Instruction* init;  // Op::Tuple
  Instruction* next;  // Op::Tuple: the body's root
  int64_t size() const { return init->operand_count(); }
  Computation* condition() const { return loop->condition(); }
  Computation* body() const { return loop->body(); }
};

// Makes `value`, a tuple, an explicit Op::Tuple before `before` (null: at the end of its computation).
Instruction* Explicit(Instruction* value, Instruction* before, Computation* c) {
  if (value->op() == Op::Tuple) return value;
  Builder b(c);
  b.set_insert_before(before);
  b.set_metadata(value->shared_metadata());
  std::vector<Instruction*> elements;
  for (int64_t k = 0; k < value->shape().tuple_size(); ++k) elements.push_back(b.GetTupleElement(value, k));
  return b.Tuple(elements);
}

bool ReadsElementsOnly(const Instruction& tuple) {
  return std::all_of(tuple.uses().begin(), tuple.uses().end(),
                     [](const Use& u) { return u.user->op() == Op::GetTupleElement; });
}

// The element that `i` reads of parameter 0 of its computation, or -1.
int64_t StateRead(const Instruction& i) {
  return i.op() == Op::GetTupleElement && i.operand(0)->IsParameter() ? i.tuple_index() : -1;
}

class Simplifier {
 public:
  Simplifier(Module& module, PassContext& context) : module_(module), context_(context), effects_(module) {}

  Result<bool> Run() {
    callers_ = CallerCounts(module_);
    for (const Computation* c : module_.computations())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::Fusion) fused_.insert(i->called(0));
    for (Computation* c : module_.PostOrder()) {
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && !i->HasControlEdges()) loops.push_back(i);
      for (Instruction* loop : loops)
        if (loop->parent() == c) Visit(loop);
    }
    if (changed_) module_.RemoveDeadComputations();
    return changed_;
  }

 private:
  void Count(std::string_view what, int64_t n = 1) {
    if (n == 0) return;
    context_.Count(what, n);
    changed_ = true;
  }

  void Visit(Instruction* loop) {
    const bool tuple = loop->shape().IsTuple() && ReadsElementsOnly(*loop->condition()->parameter(0)) &&
                       ReadsElementsOnly(*loop->body()->parameter(0)) && loop->body()->root()->shape().IsTuple();
    if (tuple) {
      for (int64_t k = 0; k < 2; ++k) OwnCallee(loop, k, callers_, effects_);
      Loop l{loop, loop->operand(0), loop->body()->root()};
      if (l.next->op() != Op::Tuple) {
        l.next = Explicit(l.next, nullptr, l.body());
        l.body()->set_root(l.next);
        Count("while-simplifier.spelled-out");
      }
      if (l.init->op() != Op::Tuple) {
        l.init = Explicit(l.init, loop, loop->parent());
        loop->SetOperand(0, l.init);
        Count("while-simplifier.spelled-out");
      }
      SpellOutResult(l);
      Merge(l);
      Sink(l);
      Shrink(l);
    }
    CountTrips(loop);
  }

  // Whole uses of a loop become uses of a tuple of its elements, if some element will not be read from the loop then.
  void SpellOutResult(const Loop& l) {
    if (ReadsElementsOnly(*l.loop) && !l.loop->IsRoot()) return;
    if (fused_.contains(l.loop->parent())) return;  // what left it whole when it fused knows why
    const std::optional<Counter> counter = FindCounter(*l.loop);
    bool known = counter && counter->trips > 1;
    for (int64_t k = 0; k < l.size(); ++k) known |= StateRead(*l.next->operand(k)) == k;
    if (!known) return;
    std::vector<Use> whole;
    for (const Use& use : l.loop->uses())
      if (use.user->op() != Op::GetTupleElement) whole.push_back(use);
    Builder b(l.loop->parent());
    b.set_insert_before(l.loop->next());
    b.set_metadata(l.loop->shared_metadata());
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < l.size(); ++k) elements.push_back(b.GetTupleElement(l.loop, k));
    Instruction* state = b.Tuple(elements);
    const bool was_root = l.loop->IsRoot();
    for (const Use& use : whole) use.user->SetOperand(use.operand_number, state);
    if (was_root) l.loop->parent()->set_root(state);
    if (l.loop->sharding()) state->set_sharding(*l.loop->sharding());
    Count("while-simplifier.spelled-out");
  }

  // ---- merge --------------------------------------------------------------------------------------------------------

  // The constant that each trip adds to element k, an integer; null if that is not what becomes of it.
  static const Instruction* StepOf(const Loop& l, int64_t k) {
    const Instruction* next = l.next->operand(k);
    if (next->op() != Op::Add || !next->shape().IsScalar() || !IsInteger(next->shape().type())) return nullptr;
    for (int64_t o = 0; o < 2; ++o)
      if (StateRead(*next->operand(o)) == k && next->operand(1 - o)->IsConstant()) return next->operand(1 - o);
    return nullptr;
  }
  static bool IsSame(const Instruction* x, const Instruction* y) {
    return x == y || (x->IsConstant() && y->IsConstant() && x->literal() == y->literal());
  }
  static void Renumber(Instruction* tuple, int64_t from, int64_t to) {
    for (const Use& use : std::vector<Use>(tuple->uses().begin(), tuple->uses().end()))
      if (use.user->op() == Op::GetTupleElement && use.user->tuple_index() == from)
        use.user->set_attrs(GetTupleElementAttrs{to});
  }

  void Merge(const Loop& l) {
    std::vector<std::pair<int64_t, const Instruction*>> counters;
    for (int64_t k = 0; k < l.size(); ++k) {
      const Instruction* step = StepOf(l, k);
      if (!step) continue;
      const auto same = std::ranges::find_if(counters, [&](const auto& c) {
        return IsSame(c.second, step) && IsSame(l.init->operand(c.first), l.init->operand(k));
      });
      if (same == counters.end()) {
        counters.push_back({k, step});
        continue;
      }
      for (Instruction* tuple : {l.condition()->parameter(0), l.body()->parameter(0), l.loop})
        Renumber(tuple, k, same->first);
      Count("while-simplifier.merged-counters");
    }
  }

  // ---- sink ---------------------------------------------------------------------------------------------------------

  // A value that is cheaper to make again than to carry. `Clone` makes it at the top of another computation.
  static bool IsCheapSource(const Instruction& i) {
    if (i.op() == Op::Broadcast) return i.operand(0)->IsConstant() && i.operand(0)->shape().IsScalar();
    return i.op() == Op::Iota || (i.IsConstant() && i.shape().IsArray() && i.shape().byte_size() <= 1024);
  }
  static Instruction* Clone(const Instruction& source, Computation* into) {
    Instruction* at = into->first();
    std::vector<Instruction*> operands;
    for (int64_t k = 0; k < source.operand_count(); ++k) operands.push_back(Clone(*source.operand(k), into));
    return into->AddClone(source, source.shape(), operands, nullptr, at);
  }

  void Sink(const Loop& l) {
    std::vector<bool> unchanged(l.size(), false);
    for (int64_t k = 0; k < l.size(); ++k) {
      const Instruction* next = l.next->operand(k);
      unchanged[k] = StateRead(*next) == k;
    }
    int64_t after = 0, sunk = 0;
    for (const Use& use : std::vector<Use>(l.loop->uses().begin(), l.loop->uses().end())) {
      if (use.user->op() != Op::GetTupleElement || !unchanged[use.user->tuple_index()] || use.user->HasControlEdges())
        continue;
      Instruction* initial = l.init->operand(use.user->tuple_index());
      if (!initial->shape().Compatible(use.user->shape())) continue;
      if (use.user->use_count() == 0 && !use.user->IsRoot()) continue;
      use.user->ReplaceAllUsesWith(initial);
      ++after;
    }
    for (Computation* c : {l.condition(), l.body()}) {
      const std::vector<Use> reads(c->parameter(0)->uses().begin(), c->parameter(0)->uses().end());
      for (const Use& use : reads) {
        const int64_t k = use.user->tuple_index();
        if (!unchanged[k] || !IsCheapSource(*l.init->operand(k))) continue;
        // The body still passes the element on; it is removed as dead when nothing else reads it.
        std::vector<Use> uses;
        for (const Use& u : use.user->uses())
          if (!(u.user == l.next && static_cast<int64_t>(u.operand_number) == k)) uses.push_back(u);
        const bool is_root = c->root() == use.user;
        if (uses.empty() && !is_root) continue;
        Instruction* constant = Clone(*l.init->operand(k), c);
        for (const Use& u : uses) u.user->SetOperand(u.operand_number, constant);
        if (is_root) c->set_root(constant);
        ++sunk;
      }
    }
    Count("while-simplifier.invariant-results", after);
    Count("while-simplifier.sunk-constants", sunk);
  }

  // ---- shrink -------------------------------------------------------------------------------------------------------

  // Elements that something needs: liveness flows from the condition, from uses after the loop and from effects in the
  // body back to the elements that are read on the way.
  std::vector<bool> LiveElements(const Loop& l) {
    std::vector<bool> live(l.size(), false);
    std::vector<int64_t> pending;
    auto need = [&](int64_t k) {
      if (live[k]) return;
      live[k] = true;
      pending.push_back(k);
    };
    if (l.loop->IsRoot() || !ReadsElementsOnly(*l.loop)) return std::vector<bool>(l.size(), true);
    for (const Use& use : l.loop->uses())
      if (use.user->use_count() > 0 || use.user->IsRoot()) need(use.user->tuple_index());
    for (const Use& use : l.condition()->parameter(0)->uses())
      if (use.user->use_count() > 0 || use.user->IsRoot()) need(use.user->tuple_index());
    std::vector<bool> seen(module_.id_bound(), false);
    std::vector<const Instruction*> stack;
    auto visit_all = [&] {
      while (!stack.empty()) {
        const Instruction* i = stack.back();
        stack.pop_back();
        if (seen[i->id()]) continue;
        seen[i->id()] = true;
        if (StateRead(*i) >= 0) need(StateRead(*i));
        for (int64_t k = 0; k < i->operand_count(); ++k) stack.push_back(i->operand(k));
        for (const Instruction* p : i->control_predecessors()) stack.push_back(p);
      }
    };
    for (const Instruction* i : l.body()->instructions())
      if (effects_.Has(*i)) stack.push_back(i);
    visit_all();
    while (!pending.empty()) {
      const int64_t k = pending.back();
      pending.pop_back();
      stack.push_back(l.next->operand(k));
      visit_all();
    }
    return live;
  }

  void Shrink(const Loop& l) {
    const std::vector<bool> live = LiveElements(l);
    const int64_t kept = std::count(live.begin(), live.end(), true);
    if (kept == l.size() || kept == 0) return;
    std::vector<int64_t> new_index(l.size(), -1);
    int64_t n = 0;
    for (int64_t k = 0; k < l.size(); ++k)
      if (live[k]) new_index[k] = n++;
    Instruction* init = Select(l.init, live, l.loop);
    for (Computation* c : {l.condition(), l.body()}) ShrinkComputation(c, live, new_index, init->shape());
    Instruction* loop = l.loop->parent()->AddClone(*l.loop, init->shape(), {&init, 1}, nullptr, l.loop);
    loop->clear_sharding();
    // What else a configuration says names elements by their old numbers.
    const std::optional<int64_t> trips = RecordedTripCount(*l.loop);
    loop->set_backend_config("");
    if (trips) RecordTripCount(loop, *trips);
    for (const Use& use : std::vector<Use>(l.loop->uses().begin(), l.loop->uses().end())) {
      Instruction* read = use.user;
      const int64_t k = new_index[read->tuple_index()];
      if (k < 0) {
        read->parent()->Remove(read);  // nobody uses it, or it would be live
        continue;
      }
      read->SetOperand(0, loop);
      read->set_attrs(GetTupleElementAttrs{k});
    }
    Count("while-simplifier.dead-elements", l.size() - kept);
    RemoveWithDeadOperands(l.loop);
    replaced_by_ = loop;
  }

  static Instruction* Select(Instruction* tuple, const std::vector<bool>& live, Instruction* before) {
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < tuple->operand_count(); ++k)
      if (live[k]) elements.push_back(tuple->operand(k));
    Builder b(tuple->parent());
    b.set_insert_before(before);
    b.set_metadata(tuple->shared_metadata());
    return b.Tuple(elements);
  }

  // New parameter shape, reads renumbered, root rebuilt; what only dead elements needed goes.
  static void ShrinkComputation(Computation* c, const std::vector<bool>& live, const std::vector<int64_t>& new_index,
                                const Shape& state) {
    Instruction* root = c->root();
    if (root->op() == Op::Tuple && root->shape().tuple_size() == static_cast<int64_t>(live.size()) &&
        root->shape().tuple_size() != state.tuple_size()) {
      c->set_root(Select(root, live, nullptr));
      RemoveWithDeadOperands(root);
    }
    Instruction* parameter = c->parameter(0);
    parameter->set_shape(state);
    parameter->clear_sharding();
    for (const Use& use : std::vector<Use>(parameter->uses().begin(), parameter->uses().end())) {
      const int64_t k = new_index[use.user->tuple_index()];
      if (k >= 0)
        use.user->set_attrs(GetTupleElementAttrs{k});
      else
        RemoveWithDeadUsers(use.user);
    }
  }

  // Removes `i` and everything that uses it; none of it is live.
  static void RemoveWithDeadUsers(Instruction* i) {
    std::vector<Instruction*> stack = {i};
    while (!stack.empty()) {
      Instruction* at = stack.back();
      if (at->parent() == nullptr) {
        stack.pop_back();
        continue;
      }
      if (at->use_count() > 0) {
        stack.push_back(at->uses().back().user);
        continue;
      }
      stack.pop_back();
      at->parent()->Remove(at);
    }
  }

  static void RemoveWithDeadOperands(Instruction* i) {
    std::vector<Instruction*> stack = {i};
    while (!stack.empty()) {
      Instruction* at = stack.back();
      stack.pop_back();
      if (!at->parent() || at->use_count() > 0 || at->IsRoot() || at->IsParameter()) continue;
      if (at != i && (at->HasSideEffect() || at->HasControlEdges())) continue;
      std::vector<Instruction*> operands = at->operands();
      at->parent()->Remove(at);
      stack.insert(stack.end(), operands.begin(), operands.end());
    }
  }

  // ---- count --------------------------------------------------------------------------------------------------------

  void CountTrips(Instruction* loop) {
    if (replaced_by_) loop = replaced_by_;
    replaced_by_ = nullptr;
    std::optional<Counter> counter = FindCounter(*loop);
    const Instruction& more = *loop->condition()->root();
    if (more.IsConstant() && more.literal().has_values() && !more.literal().GetInt(0)) counter = Counter{};
    if (!counter) return;
    if (counter->trips == 0) {
      Count("while-simplifier.no-trip");
      loop->ReplaceAllUsesWith(loop->operand(0));
      loop->parent()->Remove(loop);
    } else if (counter->trips == 1) {
      Count("while-simplifier.one-trip");
      Instruction* state = loop->operand(0);
      InlineInPlaceOf(loop, *loop->body(), {&state, 1});
    } else {
      if (loop->backend_config().empty()) {
        RecordTripCount(loop, counter->trips);
        Count("while-simplifier.trip-counts");
      }
      FinalCounter(loop, *counter);
    }
  }

  void FinalCounter(Instruction* loop, const Counter& counter) {
    const Shape& state = loop->shape();
    const ElementType type = (state.IsTuple() ? state.element(counter.element) : state).type();
    const auto steps = static_cast<uint64_t>(counter.trips) * static_cast<uint64_t>(counter.step);
    const auto last = static_cast<int64_t>(static_cast<uint64_t>(counter.init) + steps);
    for (const Use& use : std::vector<Use>(loop->uses().begin(), loop->uses().end())) {
      Instruction* read = use.user;
      if (!state.IsTuple() || read->op() != Op::GetTupleElement || read->tuple_index() != counter.element) continue;
      if (read->HasControlEdges() || (read->use_count() == 0 && !read->IsRoot())) continue;
      Builder b(loop->parent());
      b.set_insert_before(read);
      read->ReplaceAllUsesWith(b.Constant(Literal::ScalarOfInt(type, last)));
      Count("while-simplifier.final-counters");
    }
  }

  Module& module_;
  PassContext& context_;
  Effects effects_;
  std::vector<int32_t> callers_;
  std::unordered_set<const Computation*> fused_;
  Instruction* replaced_by_ = nullptr;
  bool changed_ = false;
};

bool HasLoop(const Module& module) {
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->op() == Op::While) return true;
  return false;
}

struct WhileSimplifier final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    return HasLoop(module) ? Simplifier(module, context).Run() : Result<bool>(false);
  }
};

}  // namespace

std::unique_ptr<Pass> MakeWhileSimplifier() { return std::make_unique<WhileSimplifier>(); }

}  // namespace strop
