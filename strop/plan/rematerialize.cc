// Rematerialisation: what is cheap to compute is computed again where it is needed late, instead of being kept.
//
//   b = broadcast(p)                         b = broadcast(p)
//   c = f(b)                                 c = f(b)
//   ... the peak, with b alive ...    ->     ... the peak, without ...
//   d = g(b)                                 b' = broadcast(p); d = g(b')
//
// Around the peak of the model of schedule.h, again and again: of the values that are alive but not read by the step at
// the peak, the one is taken that frees the most bytes for its cost, counting the operands that would have to be kept
// in its place. First only what is computed element by element; then products and reductions too. Never: effects,
// random states, calls of anything, what control edges order, and what somebody reads through a tuple or a barrier (a
// barrier is there to keep what was computed apart). What is computed again gives the same bits: it is the same kernel.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "strop/analysis/cost.h"
#include "strop/ir/source_line.h"
#include "strop/plan/plan.h"
#include "strop/plan/schedule.h"
#include "strop/plan/values.h"

namespace strop {
namespace {

using namespace plan_internal;

constexpr int kPatience = 64;            // values computed again without the peak getting lower
constexpr int kMostTimes = 8;            // that a value is computed again
constexpr int64_t kMostSteps = 4000000;  // looked at in all of them
constexpr int kMostViews = 32;           // of a value, one of the other
constexpr int kMostPlans = 6;            // until the plan agrees with the model
constexpr int64_t kFlopsOfAByte = 4;     // what moving one costs
constexpr int64_t kLeastGain = 64;       // bytes

enum class Effort : uint8_t { kElements, kProducts };

bool IsPure(const Instruction& i, Effort effort) {
  if (!i.shape().IsArray() || i.HasControlEdges()) return false;
  switch (i.op()) {
    case Op::Iota:
    case Op::Broadcast:
    case Op::Transpose:
    case Op::Reverse:
    case Op::Slice:
    case Op::Pad:
    case Op::Concatenate:
    case Op::DynamicSlice:
    case Op::Gather:
    case Op::BitcastConvert: return true;
    case Op::Dot:
    case Op::Convolution:
    case Op::Reduce:
    case Op::ReduceWindow: return effort == Effort::kProducts;
    case Op::Fusion: {
      const Computation& fused = *i.called(0);
      const auto pure = [effort](const Instruction* inner) {
        const bool leaf = inner->IsParameter() || inner->IsConstant() || inner->op() == Op::Reshape;
        return leaf || IsPure(*inner, effort);
      };
      for (const Instruction* inner : fused.instructions())
        if (!pure(inner)) return false;
      return true;
    }
    default: return IsElementwise(i.op());
  }
}

// Same bytes, another shape.
bool IsView(const Instruction& i) {
  return (i.op() == Op::Reshape || i.op() == Op::Bitcast || i.op() == Op::Copy) && !i.HasControlEdges();
}

class Rematerializer {
 public:
  Rematerializer(Computation& computation, const FactsOf& facts, int64_t goal, std::vector<Recomputation>& told)
      : c_(computation), facts_(facts), goal_(goal), told_(told) {}

  // The peak that is left.
  int64_t Run() {
    int64_t lowest = std::numeric_limits<int64_t>::max();
    for (int round = 0; round < kPatience; ++round) {
      Look();
      if (cost_.peak < lowest) round = 0;
      lowest = std::min(lowest, cost_.peak);
      looked_ += static_cast<int64_t>(g_.steps.size());
      if (cost_.peak <= goal_ || looked_ > kMostSteps) break;
      if (!TakeBest(Effort::kElements) && !TakeBest(Effort::kProducts)) break;
    }
    return cost_.peak;
  }

 private:
  struct Life {
    int64_t begin = -1, end = -1;  // numbers of steps
  };
  struct Candidate {
    int32_t buffer = -1;
    int64_t gain = 0, cost = 1;
    bool BetterThan(const Candidate& o) const {
      if (buffer < 0 || o.buffer < 0) return buffer >= 0;
      const double mine = static_cast<double>(gain) / static_cast<double>(cost);
      const double other = static_cast<double>(o.gain) / static_cast<double>(o.cost);
      return mine != other ? mine > other : gain > o.gain;
    }
  };

  void Look() {
    g_ = MakeScheduleGraph(c_, facts_);
    std::vector<int32_t> order(g_.steps.size());
    std::iota(order.begin(), order.end(), 0);
    cost_ = CostOfOrder(g_, order);
    lives_.assign(g_.buffers.size(), {});
    for (size_t b = 0; b < g_.buffers.size(); ++b) {
      lives_[b].begin = lives_[b].end = g_.buffers[b].writer;
      for (int32_t r : g_.buffers[b].readers) lives_[b].end = std::max<int64_t>(lives_[b].end, r);
    }
  }

  // Memory of the caller's, or alive at the peak and then: keeping it costs nothing.
  bool IsThere(int32_t b, int64_t late) const {
    const int64_t peak = static_cast<int64_t>(cost_.peak_at);
    if (!g_.buffers[b].own) return true;
    return lives_[b].begin <= peak && lives_[b].end >= late;
  }

  Candidate Consider(int32_t b, Effort effort) const {
    const int64_t peak = static_cast<int64_t>(cost_.peak_at);
    const ScheduleBuffer& buffer = g_.buffers[b];
    if (!buffer.own || buffer.writer < 0 || lives_[b].begin >= peak || lives_[b].end <= peak) return {};
    const ScheduleStep& maker = g_.steps[buffer.writer];
    if (!IsPure(*maker.instruction, effort) || maker.writes.size() != 1) return {};
    int64_t late = std::numeric_limits<int64_t>::max();
    for (int32_t r : buffer.readers) {
      if (r == peak) return {};
      if (r > peak) late = std::min<int64_t>(late, r);
    }
    if (!ReadersAreDirect(*maker.instruction) || TimesOf(*maker.instruction) >= kMostTimes) return {};
    Candidate found{b, buffer.size, 1};
    for (int32_t o : maker.reads) {
      if (IsThere(o, late)) continue;
      if (lives_[o].end < peak) found.gain -= g_.buffers[o].size;  // would be alive at the peak instead
    }
    if (found.gain < kLeastGain) return {};
    const Instruction& i = *maker.instruction;
    found.cost = std::max<int64_t>(1, Flops(i) + 20 * Transcendentals(i) + kFlopsOfAByte * BytesAccessed(i));
    return found;
  }

  // Nobody gets it through a tuple or a barrier.
  static bool ReadersAreDirect(const Instruction& value, int depth = 0) {
    if (depth > kMostViews) return false;
    for (const Use& use : value.uses()) {
      const Instruction& user = *use.user;
      if (IsView(user)) {
        if (!ReadersAreDirect(user, depth + 1)) return false;
        continue;
      }
      switch (user.op()) {
        case Op::Tuple:
        case Op::OptimizationBarrier:
        case Op::AddDependency:
        case Op::Domain: return false;
        default: break;
      }
    }
    return !value.IsRoot();
  }

  int TimesOf(const Instruction& i) const {
    const auto at = times_.find(i.id());
    return at == times_.end() ? 0 : at->second;
  }

  bool TakeBest(Effort effort) {
    Candidate best;
    for (size_t b = 0; b < g_.buffers.size(); ++b) {
      const Candidate candidate = Consider(static_cast<int32_t>(b), effort);
      if (candidate.BetterThan(best)) best = candidate;
    }
    if (best.buffer < 0) return false;
    ComputeAgain(best);
    return true;
  }

  void ComputeAgain(const Candidate& candidate) {
    const ScheduleBuffer& buffer = g_.buffers[candidate.buffer];
    Instruction* value = g_.steps[buffer.writer].instruction;
    std::set<const Instruction*> late;
    Instruction* first = nullptr;
    for (int32_t r : buffer.readers) {
      if (r <= static_cast<int64_t>(cost_.peak_at)) continue;
      late.insert(g_.steps[r].instruction);
      if (!first) first = g_.steps[r].instruction;  // readers are in order
    }
    Instruction* again = c_.AddClone(*value, value->shape(), value->operands(), nullptr, first);
    if (value->op() == Op::Fusion) again->set_called({c_.module()->CloneComputation(*value->called(0))});
    if (value->has_metadata()) again->set_metadata(value->shared_metadata());
    times_[again->id()] = times_[value->id()] = TimesOf(*value) + 1;
    Redirect(value, again, late, first);
    const bool moved = value->use_count() == 0;
    told_.push_back({value->name(), moved ? "" : again->name(), SourceLine(*value), candidate.gain});
    if (moved) c_.Remove(value);
  }

  // The late readers of `from`, through views as well, read `to`.
  void Redirect(Instruction* from, Instruction* to, const std::set<const Instruction*>& late, Instruction* before) {
    const std::vector<Use> uses(from->uses().begin(), from->uses().end());
    std::vector<Instruction*> views;
    for (const Use& use : uses) {
      if (late.count(use.user)) {
        use.user->SetOperand(use.operand_number, to);
      } else if (IsView(*use.user) && std::find(views.begin(), views.end(), use.user) == views.end()) {
        views.push_back(use.user);
      }
    }
    for (Instruction* view : views) {
      Instruction* again = c_.AddClone(*view, view->shape(), std::vector<Instruction*>{to}, nullptr, before);
      Redirect(view, again, late, before);
      if (again->use_count() == 0) c_.Remove(again);
      if (view->use_count() == 0) c_.Remove(view);
    }
  }

  Computation& c_;
  const FactsOf& facts_;
  const int64_t goal_;
  std::vector<Recomputation>& told_;
  ScheduleGraph g_;
  OrderCost cost_;
  std::vector<Life> lives_;
  int64_t looked_ = 0;
  std::map<int64_t, int> times_;  // by id: how often it was computed again, or what it is again of
};

// Callees first, each towards the goal: what they leave is part of their callers' peaks.
void Rematerialize(Module& module, int64_t goal, std::vector<Recomputation>& told) {
  const std::vector<Computation*> of_steps = StepComputations(module);
  const std::set<const Computation*> scheduled(of_steps.begin(), of_steps.end());
  FactsOf facts;
  for (Computation* c : module.PostOrder()) {
    if (!scheduled.count(c)) continue;
    const int64_t peak = Rematerializer(*c, facts, goal, told).Run();
    facts[c] = {peak, MakeScheduleGraph(*c, facts).invariant};
  }
}

int64_t WholeRun(const MemoryProfile& m) { return m.arguments + m.constants + m.results + m.temporaries; }

std::string AtPeak(const MemoryProfile& memory) {
  std::string out;
  for (size_t n = 0; n < std::min<size_t>(memory.at_peak.size(), 3); ++n) {
    const MemoryProfile::Value& v = memory.at_peak[n];
    if (!v.instruction) continue;
    StrAppend(out, out.empty() ? "" : ", ", v.bytes, " of ");
    if (v.instruction->shape().IsArray()) StrAppend(out, v.instruction->shape().WithoutLayout(), " ");
    StrAppend(out, OriginOf(*v.instruction));
  }
  return out;
}

}  // namespace

std::string Recomputation::ToString() const {
  return StrCat("%", value, again.empty() ? " later" : StrCat(" again as %", again), ", ", bytes,
                " bytes less at the peak", where.empty() ? "" : StrCat(" (", where, ")"));
}

Result<Plan> BuildPlanWithin(Module& module, const TargetInfo& target, int64_t limit, bool profile_memory,
                             std::vector<Recomputation>* told) {
  STROP_ASSIGN(Plan plan, BuildPlan(module, target, true));
  const int64_t fixed = WholeRun(plan.memory) - plan.memory.temporaries;
  if (fixed > limit)
    return ResourceExhausted("the memory limit is ", limit, " bytes, and arguments (", plan.memory.arguments,
                             "), results (", plan.memory.results, ") and constants (", plan.memory.constants,
                             ") alone take ", fixed);
  std::vector<Recomputation> recomputed;
  // The model is not the plan: where it promised too much, more is asked of it.
  int64_t goal = limit - fixed;
  for (int n = 0; n < kMostPlans && WholeRun(plan.memory) > limit; ++n) {
    const size_t before = recomputed.size();
    Rematerialize(module, goal, recomputed);
    if (recomputed.size() == before && n > 0) break;
    if (recomputed.size() > before) {
      STROP_ASSIGN(plan, BuildPlan(module, target, true));
    }
    goal = std::max<int64_t>(0, goal - std::max<int64_t>(WholeRun(plan.memory) - limit, 0));
  }
  if (WholeRun(plan.memory) > limit)
    return ResourceExhausted("the program needs ", WholeRun(plan.memory), " bytes, more than the memory limit of ",
                             limit, ", after ", recomputed.size(),
                             " values were made to be computed again: ", plan.memory.temporaries,
                             " of temporaries, at the peak ", AtPeak(plan.memory));
  if (told) told->insert(told->end(), recomputed.begin(), recomputed.end());
  if (!profile_memory) plan.memory = {};
  return plan;
}

}  // namespace strop
