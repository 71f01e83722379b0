// The order of steps: few bytes alive at a time, so that the arena is small and what was just written is still in the
// cache.
//
// Four orders are made of each computation, all in time linear in its edges (but for a log), and the one with the
// lowest peak is taken; the list order wins unless another is clearly better, since neighbours in it are neighbours in
// the user's program. None that copies more is taken. In each of them, what reads an array goes before a step that
// overwrites it, where that saves copies of the array.
//   as written    operands before users, ties in list order
//   depth first   from the results; of several operands first the one whose computing needs the most beyond what it
//                 leaves behind (Sethi and Ullman)
//   forwards      of the steps that are ready the one that frees the most bytes
//   backwards     from the last step; of those whose readers are all placed the one that revives the fewest bytes
// Callees are ordered before their callers, which count the callees' peaks as theirs.
//
//   a = f(p); b = f(q); c = sum(a); d = sum(b)   ->   a = f(p); c = sum(a); b = f(q); d = sum(b)
#include "strop/plan/schedule.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop {
namespace {

using namespace plan_internal;
using Order = std::vector<int32_t>;

// A steps's score is the number of bytes that it would free; the best of the ready ones is next.
class ReadyList {
 public:
  ReadyList(size_t steps, bool first_wins) : score_(steps), ready_(steps), sign_(first_wins ? 1 : -1) {}
  void Add(int32_t step, int64_t bytes) {
    if (bytes == 0) return;
    if (ready_[step]) queue_.erase(Key(step));
    score_[step] += bytes;
    if (ready_[step]) queue_.insert(Key(step));
  }
  void MakeReady(int32_t step) {
    ready_[step] = true;
    queue_.insert(Key(step));
  }
  // -1: none is left.
  int32_t Take() {
    if (queue_.empty()) return -1;
    const int32_t step = queue_.begin()->second * sign_;
    queue_.erase(queue_.begin());
    ready_[step] = false;
    return step;
  }

 private:
  std::pair<int64_t, int32_t> Key(int32_t step) const { return {-score_[step], step * sign_}; }

  std::vector<int64_t> score_;
  std::vector<bool> ready_;
  std::set<std::pair<int64_t, int32_t>> queue_;
  int32_t sign_;
};

Order ListOrder(const ScheduleGraph& g) {
  Order order(g.steps.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Room that a result takes while what it could rewrite is still read, and none later.
int64_t Waits(const ScheduleBuffer& b) { return !b.own && b.rewrites >= 0 ? b.size : 0; }

Order Forwards(const ScheduleGraph& g) {
  ReadyList ready(g.steps.size(), true);
  std::vector<int32_t> unread, sum_of_readers, missing;
  // Of the readers to come: when one is left, it is their sum.
  for (const ScheduleBuffer& b : g.buffers) {
    unread.push_back(static_cast<int32_t>(b.readers.size()));
    sum_of_readers.push_back(0);
    for (int32_t r : b.readers) sum_of_readers.back() ^= r;
  }
  std::vector<std::vector<int32_t>> rewriters(g.buffers.size());
  const auto frees = [&](int32_t b) { return g.buffers[b].own ? g.buffers[b].size : 0; };
  for (size_t b = 0; b < g.buffers.size(); ++b) {
    const ScheduleBuffer& buffer = g.buffers[b];
    if (buffer.rewrites >= 0) rewriters[buffer.rewrites].push_back(static_cast<int32_t>(b));
    if (buffer.writer >= 0) ready.Add(buffer.writer, -(buffer.own ? buffer.size : Waits(buffer)));
    if (unread[b] == 1) ready.Add(sum_of_readers[b], frees(static_cast<int32_t>(b)));
  }
  for (size_t s = 0; s < g.steps.size(); ++s) {
    missing.push_back(static_cast<int32_t>(g.steps[s].before.size()));
    if (missing[s] == 0) ready.MakeReady(static_cast<int32_t>(s));
  }
  Order order;
  for (int32_t s = ready.Take(); s >= 0; s = ready.Take()) {
    order.push_back(s);
    for (int32_t b : g.steps[s].reads) {
      sum_of_readers[b] ^= s;
      --unread[b];
      if (unread[b] == 1) ready.Add(sum_of_readers[b], frees(b));
      for (int32_t w : rewriters[b])
        if (unread[b] == 0 || (unread[b] == 1 && sum_of_readers[b] == g.buffers[w].writer)) {
          ready.Add(g.buffers[w].writer, Waits(g.buffers[w]));
          rewriters[b].clear();
          break;
        }
    }
    for (int32_t n : g.steps[s].after)
      if (--missing[n] == 0) ready.MakeReady(n);
  }
  return order;
}

Order Backwards(const ScheduleGraph& g) {
  ReadyList ready(g.steps.size(), false);
  std::vector<bool> alive(g.buffers.size());
  std::vector<int32_t> missing;
  const auto size = [&](int32_t b) { return g.buffers[b].own ? g.buffers[b].size : 0; };
  for (size_t s = 0; s < g.steps.size(); ++s) {
    for (int32_t r : g.steps[s].reads) ready.Add(static_cast<int32_t>(s), -size(r));
    for (int32_t w : g.steps[s].writes) ready.Add(static_cast<int32_t>(s), size(w));
  }
  for (size_t s = 0; s < g.steps.size(); ++s) {
    missing.push_back(static_cast<int32_t>(g.steps[s].after.size()));
    if (missing[s] == 0) ready.MakeReady(static_cast<int32_t>(s));
  }
  Order order;
  for (int32_t s = ready.Take(); s >= 0; s = ready.Take()) {
    order.push_back(s);
    for (int32_t b : g.steps[s].reads) {
      if (alive[b]) continue;
      alive[b] = true;
      for (int32_t other : g.buffers[b].readers) ready.Add(other, size(b));
    }
    for (int32_t n : g.steps[s].before)
      if (--missing[n] == 0) ready.MakeReady(n);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

class DepthFirst {
 public:
  explicit DepthFirst(const ScheduleGraph& g) : g_(g), needs_(g.steps.size()), leaves_(g.steps.size()) {
    for (size_t s = 0; s < g.steps.size(); ++s) Measure(static_cast<int32_t>(s));
  }

  Order Run() const {
    Order order, stack;
    std::vector<uint8_t> state(g_.steps.size(), kNew);
    for (size_t start = 0; start < g_.steps.size(); ++start) {
      if (!g_.steps[start].after.empty()) continue;
      stack.push_back(static_cast<int32_t>(start));
      while (!stack.empty()) {
        const int32_t s = stack.back();
        if (state[s] != kNew) {
          stack.pop_back();
          if (state[s] == kOpen) order.push_back(s);
          state[s] = kDone;
          continue;
        }
        state[s] = kOpen;
        const Order operands = HungriestFirst(s);
        for (size_t k = operands.size(); k-- > 0;)
          if (state[operands[k]] == kNew) stack.push_back(operands[k]);
      }
    }
    return order;
  }

 private:
  enum : uint8_t { kNew, kOpen, kDone };

  Order HungriestFirst(int32_t s) const {
    Order operands = g_.steps[s].before;
    std::stable_sort(operands.begin(), operands.end(),
                     [this](int32_t a, int32_t b) { return needs_[a] - leaves_[a] > needs_[b] - leaves_[b]; });
    return operands;
  }

  // As if the graph was a tree: what several steps read is counted for each.
  void Measure(int32_t s) {
    constexpr int64_t kMost = int64_t{1} << 60;
    int64_t held = 0, needs = 0;
    for (int32_t o : HungriestFirst(s)) {
      needs = std::max(needs, std::min(held + needs_[o], kMost));
      held = std::min(held + leaves_[o], kMost);
    }
    for (int32_t w : g_.steps[s].writes)
      if (g_.buffers[w].own) leaves_[s] = std::min(leaves_[s] + g_.buffers[w].size, kMost);
    needs_[s] = std::max(needs, std::min(held + leaves_[s] + g_.steps[s].inner, kMost));
  }

  const ScheduleGraph& g_;
  std::vector<int64_t> needs_, leaves_;  // bytes at most while computing it, and after
};

// The same order, but for readers of what a step overwrites: those that do not wait for this step go before it, with
// what they need.
class ReadersFirst {
 public:
  explicit ReadersFirst(const ScheduleGraph& g) : g_(g), placed_(g.steps.size()), waits_for_(g.steps.size(), -1) {}

  Order Run(const Order& order) {
    for (int32_t s : order) {
      if (placed_[s]) continue;
      for (int32_t b : g_.steps[s].required) PlaceReaders(b, s);
      Place(s);
    }
    return std::move(made_);
  }

 private:
  static constexpr int64_t kMostVisits = 64;  // of each step, on average: beyond, readers stay where they are

  void PlaceReaders(int32_t buffer, int32_t overwriter) {
    Order readers;
    for (int32_t r : g_.buffers[buffer].readers)
      if (r != overwriter && !placed_[r]) readers.push_back(r);
    if (readers.empty() || !MarkWaiting(overwriter)) return;
    for (int32_t r : readers)
      if (waits_for_[r] != overwriter) Place(r);
  }

  // Whatever comes after `s`. False: it would take too long.
  bool MarkWaiting(int32_t s) {
    Order stack = {s};
    waits_for_[s] = s;
    while (!stack.empty()) {
      const int32_t at = stack.back();
      stack.pop_back();
      if (++visits_ > kMostVisits * static_cast<int64_t>(g_.steps.size())) return false;
      for (int32_t n : g_.steps[at].after) {
        if (waits_for_[n] == s) continue;
        waits_for_[n] = s;
        stack.push_back(n);
      }
    }
    return true;
  }

  // The step, behind all that comes before it.
  void Place(int32_t step) {
    Order stack = {step};
    while (!stack.empty()) {
      const int32_t s = stack.back();
      const size_t waiting = stack.size();
      for (int32_t b : g_.steps[s].before)
        if (!placed_[b]) stack.push_back(b);
      if (stack.size() > waiting) continue;
      stack.pop_back();
      if (!placed_[s]) made_.push_back(s);
      placed_[s] = true;
    }
  }

  const ScheduleGraph& g_;
  Order made_;
  std::vector<bool> placed_;
  std::vector<int32_t> waits_for_;  // the last overwriter that it was found to wait for
  int64_t visits_ = 0;
};

// Another order than the written one must be worth it.
constexpr int64_t kWorthwhile = 32;  // one part of so many

struct Choice {
  ScheduleOrder name = ScheduleOrder::kAsWritten;
  Order order;
  OrderCost cost;
};

// The order, or that with readers first if it copies less.
Choice Candidate(const ScheduleGraph& g, ScheduleOrder name, Order order) {
  STROP_CHECK(order.size() == g.steps.size());
  const OrderCost cost = CostOfOrder(g, order);
  if (cost.copied == 0) return {name, std::move(order), cost};
  Order other = ReadersFirst(g).Run(order);
  const OrderCost other_cost = CostOfOrder(g, other);
  if (other_cost.copied < cost.copied) return {name, std::move(other), other_cost};
  return {name, std::move(order), cost};
}

Choice Choose(const ScheduleGraph& g, int64_t& written_peak) {
  const Order list = ListOrder(g);
  written_peak = CostOfOrder(g, list).peak;
  Choice best = Candidate(g, ScheduleOrder::kAsWritten, list);
  const OrderCost written = best.cost;
  const auto consider = [&](ScheduleOrder name, Order order) {
    Choice candidate = Candidate(g, name, std::move(order));
    const OrderCost& cost = candidate.cost;
    const bool better = cost.peak < best.cost.peak && cost.peak <= written.peak - written.peak / kWorthwhile;
    if (better && cost.copied <= written.copied) best = std::move(candidate);
  };
  consider(ScheduleOrder::kDepthFirst, DepthFirst(g).Run());
  consider(ScheduleOrder::kForwards, Forwards(g));
  consider(ScheduleOrder::kBackwards, Backwards(g));
  return best;
}

// What is no step goes right before its first user.
void Apply(Computation& computation, const ScheduleGraph& g, const Order& order) {
  std::vector<Instruction*> others;
  std::vector<bool> is_step(static_cast<size_t>(computation.module()->id_bound()));
  for (const ScheduleStep& step : g.steps) is_step[static_cast<size_t>(step.instruction->id())] = true;
  for (Instruction* i : computation.instructions())
    if (!is_step[static_cast<size_t>(i->id())]) others.push_back(i);
  for (int32_t s : order) computation.MoveBefore(g.steps[s].instruction, nullptr);
  for (Instruction* i : others) computation.MoveBefore(i, nullptr);
  computation.SortTopologically();
}

}  // namespace

std::string_view Name(ScheduleOrder order) {
  switch (order) {
    case ScheduleOrder::kAsWritten: return "as written";
    case ScheduleOrder::kDepthFirst: return "depth first";
    case ScheduleOrder::kForwards: return "forwards";
    case ScheduleOrder::kBackwards: return "backwards";
  }
  return "";
}

Status ScheduleModule(Module& module, std::vector<ScheduleDecision>* decisions) {
  const std::vector<Computation*> of_steps = StepComputations(module);
  const std::set<const Computation*> scheduled(of_steps.begin(), of_steps.end());
  FactsOf facts;
  for (Computation* c : module.PostOrder()) {  // callees first
    c->SortTopologically();
    if (!scheduled.count(c)) continue;
    ScheduleGraph g = MakeScheduleGraph(*c, facts);
    ScheduleDecision decision;
    const Choice choice = Choose(g, decision.written_peak);
    if (!std::is_sorted(choice.order.begin(), choice.order.end())) Apply(*c, g, choice.order);
    facts[c] = {choice.cost.peak, std::move(g.invariant)};
    decision.computation = c;
    decision.order = choice.name;
    decision.peak = choice.cost.peak;
    if (decisions) decisions->push_back(decision);
  }
  module.config().is_scheduled = true;
  module.set_stage(Stage::Scheduled);
  return OkStatus();
}

}  // namespace strop
