#include <algorithm>
#include <unordered_map>

#include "strop/plan/plan.h"
#include "strop/plan/schedule.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kMaxSize = int64_t{1} << 40;  // sums stay far from overflow; nothing larger can run

struct LeafValue {
  int32_t buffer;
  int32_t step;  // that hands it on, or -1: whoever reads it comes later
};
using LeafValues = std::vector<LeafValue>;

// Gives its operand's memory another name.
bool RenamesArray(Op op) {
  switch (op) {
    case Op::Reshape:
    case Op::Bitcast:
    case Op::Copy:
    case Op::OptimizationBarrier:
    case Op::Domain:
    case Op::AddDependency: return true;
    default: return false;
  }
}

// Hands its operand's memory on without a step (as BuildPlan does). With control edges it is a step that does nothing.
bool IsPassedOn(const Instruction& i) {
  if (i.HasControlEdges()) return false;
  return i.op() == Op::Tuple || i.op() == Op::GetTupleElement || RenamesArray(i.op());
}

class GraphMaker {
 public:
  GraphMaker(const Computation& computation, const FactsOf& facts) : computation_(computation), facts_(facts) {}

  ScheduleGraph Make() {
    parameters_.resize(static_cast<size_t>(computation_.parameter_count()));
    for (Instruction* i : computation_.instructions()) of_[i] = Visit(i);
    MarkResults();
    for (size_t s = 0; s < graph_.steps.size(); ++s) {
      std::vector<int32_t>& before = graph_.steps[s].before;
      std::sort(before.begin(), before.end());
      before.erase(std::unique(before.begin(), before.end()), before.end());
      for (int32_t b : before) graph_.steps[b].after.push_back(static_cast<int32_t>(s));
    }
    return std::move(graph_);
  }

 private:
  LeafValue NewBuffer(const Shape& leaf, bool own, int32_t writer) {
    ScheduleBuffer b;
    b.size = std::min(leaf.byte_size(), kMaxSize);
    b.size = (b.size + kAlignment - 1) / kAlignment * kAlignment;
    b.own = own;
    b.fixed = !own;
    b.writer = writer;
    graph_.buffers.push_back(std::move(b));
    return {static_cast<int32_t>(graph_.buffers.size() - 1), writer};
  }

  LeafValues Visit(Instruction* i) {
    if (IsPassedOn(*i)) return PassOn(*i);
    LeafValues results;
    if (i->IsParameter() || i->IsConstant()) {
      for (const Shape& leaf : i->shape().Leaves()) results.push_back(NewBuffer(leaf, false, -1));
      if (i->IsParameter()) parameters_[static_cast<size_t>(i->parameter_number())] = results;
      return results;
    }
    return AddStep(i);
  }

  LeafValues PassOn(const Instruction& i) const {
    if (i.op() != Op::GetTupleElement && i.op() != Op::Tuple) return of_.at(i.operand(0));
    LeafValues out;
    if (i.op() == Op::Tuple) {
      for (int64_t k = 0; k < i.operand_count(); ++k) {
        const LeafValues& leaves = of_.at(i.operand(k));
        out.insert(out.end(), leaves.begin(), leaves.end());
      }
      return out;
    }
    const LeafValues& tuple = of_.at(i.operand(0));
    const int64_t first = LeafOffset(i.operand(0)->shape(), i.tuple_index());
    out.assign(tuple.begin() + first, tuple.begin() + first + i.shape().num_leaves());
    return out;
  }

  LeafValues AddStep(Instruction* i) {
    const int32_t number = static_cast<int32_t>(graph_.steps.size());
    ScheduleStep step;
    step.instruction = i;
    for (int64_t k = 0; k < i->operand_count(); ++k)
      for (const LeafValue& leaf : of_.at(i->operand(k))) {
        if (leaf.step >= 0) step.before.push_back(leaf.step);
        step.reads.push_back(leaf.buffer);
      }
    std::sort(step.reads.begin(), step.reads.end());
    step.reads.erase(std::unique(step.reads.begin(), step.reads.end()), step.reads.end());
    for (int32_t b : step.reads) graph_.buffers[b].readers.push_back(number);
    for (Instruction* p : i->control_predecessors()) {
      const auto is_step = number_.find(p);
      if (is_step != number_.end())
        step.before.push_back(is_step->second);
      else  // a parameter, a constant, or something that is passed on: what wrote it comes before
        for (const LeafValue& leaf : of_.at(p))
          if (leaf.step >= 0) step.before.push_back(leaf.step);
    }
    if (i->HasSideEffect()) {
      if (last_effect_ >= 0) step.before.push_back(last_effect_);
      last_effect_ = number;
    }
    for (const Computation* c : Is(i->op(), kControlFlow) ? i->called() : SmallVector<Computation*, 2>{})
      if (const auto at = facts_.find(c); at != facts_.end()) step.inner = std::max(step.inner, at->second.peak);
    LeafValues results = i->op() == Op::While ? LoopResults(*i, number, step) : KernelResults(*i, number, step);
    number_[i] = number;
    graph_.steps.push_back(std::move(step));
    return results;
  }

  // Carries are rewritten in place: the loop takes the initial values over, or copies them. What the body does not
  // change is the initial value.
  LeafValues LoopResults(const Instruction& i, int32_t number, ScheduleStep& step) {
    const auto body = facts_.find(i.body());
    const LeafValues& init = of_.at(i.operand(0));
    const std::vector<Shape> shapes = i.shape().Leaves();
    LeafValues results;
    for (size_t k = 0; k < shapes.size(); ++k) {
      if (body != facts_.end() && body->second.invariant[k]) {
        results.push_back({init[k].buffer, number});
        continue;
      }
      results.push_back(NewBuffer(shapes[k], true, number));
      step.writes.push_back(results.back().buffer);
      step.reuse.push_back({init[k].buffer, results.back().buffer});
      step.required.push_back(init[k].buffer);
    }
    return results;
  }

  LeafValues KernelResults(const Instruction& i, int32_t number, ScheduleStep& step) {
    LeafValues results;
    if (RenamesArray(i.op())) {
      for (const LeafValue& leaf : of_.at(i.operand(0))) results.push_back({leaf.buffer, number});
      return results;
    }
    for (const Shape& leaf : i.shape().Leaves()) {
      results.push_back(NewBuffer(leaf, true, number));
      step.writes.push_back(results.back().buffer);
    }
    if (Is(i.op(), kControlFlow)) return results;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const LeafValues& operand = of_.at(i.operand(k));
      if (operand.size() != 1) continue;
      for (size_t r = 0; r < results.size(); ++r) {
        const InPlace reuse = CanReuseOperand(i, k, static_cast<int64_t>(r));
        if (reuse == InPlace::No) continue;
        step.reuse.push_back({operand[0].buffer, results[r].buffer});
        if (reuse == InPlace::Required) step.required.push_back(operand[0].buffer);
      }
    }
    return results;
  }

  // Results are memory of the caller's. A loop's body rewrites its carries, the program what is donated to it.
  void MarkResults() {
    LeafValues parameters;
    for (const LeafValues& p : parameters_) parameters.insert(parameters.end(), p.begin(), p.end());
    const LeafValues& results = of_.at(computation_.root());
    const bool entry = computation_.IsEntry();
    const std::map<int64_t, int64_t> donated = entry ? DonatedParameters(*computation_.module()) : Carries(results);
    for (size_t k = 0; k < results.size(); ++k) {
      ScheduleBuffer& b = graph_.buffers[results[k].buffer];
      const bool same = k < parameters.size() && results[k].buffer == parameters[k].buffer;
      graph_.invariant.push_back(same);
      if (!b.own) continue;
      b.own = false;
      const auto at = donated.find(static_cast<int64_t>(k));
      if (at != donated.end() && at->second < static_cast<int64_t>(parameters.size()))
        b.rewrites = parameters[static_cast<size_t>(at->second)].buffer;
      if (b.rewrites >= 0) graph_.buffers[b.rewrites].carried = true;
    }
  }

  // Whether this is a loop's body only its caller knows; a result as large as the parameter's leaf of that number is
  // taken for a carry.
  std::map<int64_t, int64_t> Carries(const LeafValues& results) const {
    std::map<int64_t, int64_t> out;
    if (parameters_.size() != 1 || parameters_[0].size() != results.size()) return out;
    for (size_t k = 0; k < results.size(); ++k)
      if (graph_.buffers[parameters_[0][k].buffer].size == graph_.buffers[results[k].buffer].size)
        out[static_cast<int64_t>(k)] = static_cast<int64_t>(k);
    return out;
  }

  const Computation& computation_;
  const FactsOf& facts_;
  ScheduleGraph graph_;
  std::unordered_map<const Instruction*, LeafValues> of_;
  std::unordered_map<const Instruction*, int32_t> number_;  // of steps
  std::vector<LeafValues> parameters_;
  int32_t last_effect_ = -1;
};

// Follows an order: which buffers are merged, and how many bytes are alive.
class Walk {
 public:
  explicit Walk(const ScheduleGraph& graph) : g_(graph) {
    unread_.reserve(g_.buffers.size());
    for (const ScheduleBuffer& b : g_.buffers) unread_.push_back(static_cast<int32_t>(b.readers.size()));
    place_.resize(g_.buffers.size());
    for (size_t b = 0; b < place_.size(); ++b) place_[b] = static_cast<int32_t>(b);
    takes_room_.resize(g_.buffers.size());
    taken_.resize(g_.buffers.size());
    for (size_t b = 0; b < g_.buffers.size(); ++b) takes_room_[b] = g_.buffers[b].own;
  }

  OrderCost Run(std::span<const int32_t> order) {
    for (int32_t s : order) Merge(s);
    for (size_t b = 0; b < g_.buffers.size(); ++b) unread_[b] = static_cast<int32_t>(g_.buffers[b].readers.size());
    members_.assign(g_.buffers.size(), 0);
    int64_t live = 0;
    for (const int32_t& s : order) {
      const ScheduleStep& step = g_.steps[s];
      for (int32_t w : step.writes)
        if (members_[place_[w]]++ == 0 && takes_room_[place_[w]]) live += g_.buffers[w].size;
      if (live + step.inner > cost_.peak) {
        cost_.peak = live + step.inner;
        cost_.peak_at = static_cast<size_t>(&s - order.data());
      }
      for (int32_t r : step.reads)
        if (--unread_[r] == 0) Leave(r, live);
      for (int32_t w : step.writes)
        if (g_.buffers[w].readers.empty()) Leave(w, live);
    }
    return cost_;
  }

 private:
  void Leave(int32_t b, int64_t& live) {
    if (g_.buffers[b].fixed) return;
    if (--members_[place_[b]] == 0 && takes_room_[place_[b]]) live -= g_.buffers[b].size;
  }

  // Decides where the step's results go.
  void Merge(int32_t s) {
    const ScheduleStep& step = g_.steps[s];
    for (int32_t r : step.required)
      if ((g_.buffers[r].fixed && !g_.buffers[r].carried) || unread_[r] > 1) cost_.copied += g_.buffers[r].size;
    for (auto [operand, result] : step.reuse) {
      const ScheduleBuffer& from = g_.buffers[operand];
      if (from.fixed || unread_[operand] > 1 || taken_[operand] || place_[result] != result) continue;
      if (from.size != g_.buffers[result].size) continue;
      if (!g_.buffers[operand].own && !g_.buffers[result].own) continue;  // two of the caller's
      taken_[operand] = true;
      place_[result] = place_[operand];
    }
    for (int32_t w : step.writes) {
      const ScheduleBuffer& b = g_.buffers[w];
      if (b.own) continue;
      const bool blocked = b.rewrites >= 0 && StillRead(b.rewrites, s, w);
      if (blocked) cost_.copied += b.size;
      takes_room_[place_[w]] = blocked;
    }
    for (int32_t r : step.reads) --unread_[r];
  }

  // By another step, or by this one at other places than where it writes?
  bool StillRead(int32_t old, int32_t s, int32_t result) const {
    const ScheduleStep& step = g_.steps[s];
    if (unread_[old] == 0) return false;
    if (unread_[old] > 1 || !std::binary_search(step.reads.begin(), step.reads.end(), old)) return true;
    return std::find(step.reuse.begin(), step.reuse.end(), std::pair(old, result)) == step.reuse.end();
  }

  const ScheduleGraph& g_;
  OrderCost cost_;
  std::vector<int32_t> unread_;   // readers to come
  std::vector<int32_t> place_;    // the buffer whose memory this one has
  std::vector<bool> takes_room_;  // by place
  std::vector<bool> taken_;
  std::vector<int32_t> members_;  // alive, by place
};

}  // namespace

ScheduleGraph MakeScheduleGraph(const Computation& computation, const FactsOf& facts) {
  return GraphMaker(computation, facts).Make();
}

OrderCost CostOfOrder(const ScheduleGraph& graph, std::span<const int32_t> order) { return Walk(graph).Run(order); }

}  // namespace strop::plan_internal
