// What a loop's counter can be decides what depends on it:
//
//   fori_loop(0, 6, ...):  select(i < 0, i + 6, i)   ->   i
//                          x.at[i].set(y)            ->   an update in place, for no index is outside
//
// Programs write x[i] so, whatever i is. Ranges are intervals of the integers that a scalar takes in any trip: of
// constants, of counters of this loop and of those around it, and of sums, differences and so on of such.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "strop/analysis/integer_range.h"
#include "strop/analysis/trip_count.h"
#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Ranges of the state of counted loops, and of what they hand on as it is.
class Ranges {
 public:
  explicit Ranges(const Module& module) {
    const std::vector<int32_t> callers = CallerCounts(module);
    for (const Computation* c : module.PostOrder())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::While && HasExplicitState(*i, callers)) loops_[i->body()] = {i, FindCounter(*i)};
  }

  bool empty() const { return loops_.empty(); }
  bool IsBody(const Computation& c) const { return loops_.contains(&c); }

  std::optional<IntegerRange> Of(const Instruction& i) const { return RangeOf(i, of_state_); }
  std::optional<bool> OutcomeOf(const Instruction& compare) const { return ComparisonOf(compare, of_state_); }

 private:
  struct Loop {
    const Instruction* loop = nullptr;
    std::optional<Counter> counter;
  };

  // A counter, what is counted beside it, or what the loop hands on as it is.
  std::optional<IntegerRange> OfState(const Instruction& i) const {
    const auto at = i.operand(0)->IsParameter() ? loops_.find(i.parent()) : loops_.end();
    if (at == loops_.end()) return std::nullopt;
    const auto& [loop, counter] = at->second;
    const int64_t element = i.tuple_index();
    const Instruction* next = i.parent()->root()->operand(element);
    const bool handed_on =
        next->op() == Op::GetTupleElement && next->operand(0) == i.operand(0) && next->tuple_index() == element;
    if (handed_on) return Of(*loop->operand(0)->operand(element));
    if (!counter || counter->trips < 1) return std::nullopt;
    const std::optional<Progression> counted = FindProgression(*loop, element);
    if (!counted) return std::nullopt;
    const __int128 last = counted->init + static_cast<__int128>(counted->step) * (counter->trips - 1);
    if (last < INT32_MIN || last > INT32_MAX) return std::nullopt;
    const int64_t end = static_cast<int64_t>(last);
    return IntegerRange{std::min(counted->init, end), std::max(counted->init, end)};
  }

  std::unordered_map<const Computation*, Loop> loops_;
  const RangeOfState of_state_ = [this](const Instruction& i) { return OfState(i); };
};

class Decider {
 public:
  explicit Decider(const Ranges& ranges) : ranges_(ranges) {}

  // What `i` is in every trip, or null.
  Instruction* Decide(Instruction* i) const {
    if (!i->shape().IsArray() || !i->shape().IsStatic() || i->shape().num_elements() != 1) return nullptr;
    switch (i->op()) {
      case Op::Compare: return Compared(i);
      case Op::Clamp: {
        const std::optional<IntegerRange> low = Of(i->operand(0)), high = Of(i->operand(2));
        return low && high ? Inside(i->operand(1), low->high, high->low) : nullptr;
      }
      case Op::Maximum:
      case Op::Minimum: return Extreme(*i);
      case Op::Remainder: {
        const std::optional<IntegerRange> n = Of(i->operand(1));
        return n ? Inside(i->operand(0), 0, n->low - 1) : nullptr;
      }
      default: return nullptr;
    }
  }

  // The indices of the one window of a scatter, said to be inside (rule scatter-one-window asks); null if they are not
  // known to be.
  Instruction* IndicesInside(Instruction& scatter) const {
    const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
    Instruction* indices = scatter.operand(1);
    const int64_t components = static_cast<int64_t>(a.scatter_dims_to_operand_dims.size());
    if (scatter.operand_count() != 3 || indices->shape().num_elements() != components || indices->IsConstant() ||
        !a.input_batching_dims.empty() || components == 0)
      return nullptr;
    Dims most;  // of a window's start
    size_t next = 0;
    for (int64_t d = 0; d < scatter.shape().rank(); ++d) {
      const bool inserted = Contains(a.inserted_window_dims, d);
      const int64_t size = inserted ? 1 : scatter.operand(2)->shape().dim(a.update_window_dims[next++]);
      most.push_back(scatter.shape().dim(d) - size);
    }
    std::vector<Instruction*> parts;
    for (int64_t k = 0; k < components; ++k) {
      Instruction* part = Component(indices, k);
      const bool was_said = part && part->op() == Op::Clamp;
      if (!part || was_said || !Inside(part, 0, most[a.scatter_dims_to_operand_dims[k]])) return nullptr;
      parts.push_back(part);
    }
    Builder b(scatter.parent());
    b.set_insert_before(&scatter);
    const ElementType type = indices->shape().type();
    for (int64_t k = 0; k < components; ++k) {
      const double high = static_cast<double>(most[a.scatter_dims_to_operand_dims[k]]);
      parts[k] = b.Make(Op::Clamp, {b.Splat(type, 0, {1}), b.Reshape(parts[k], {1}), b.Splat(type, high, {1})});
    }
    Instruction* list = components == 1 ? parts[0] : b.Make(Op::Concatenate, parts, DimensionsAttrs{{0}}, {}, nullptr);
    return b.Reshape(list, indices->shape().dims());
  }

 private:
  std::optional<IntegerRange> Of(const Instruction* i) const { return ranges_.Of(*i); }

  // `x` if it is never below `low` nor above `high`.
  Instruction* Inside(Instruction* x, int64_t low, int64_t high) const {
    const std::optional<IntegerRange> range = Of(x);
    return range && range->low >= low && range->high <= high ? x : nullptr;
  }

  Instruction* Extreme(const Instruction& i) const {
    const std::optional<IntegerRange> x = Of(i.operand(0)), y = x ? Of(i.operand(1)) : std::nullopt;
    if (!y) return nullptr;
    const bool largest = i.op() == Op::Maximum;
    if (x->low >= y->high) return i.operand(largest ? 0 : 1);
    return y->low >= x->high ? i.operand(largest ? 1 : 0) : nullptr;
  }

  // What element `k` of a list of numbers is computed as, alone; null if it is not.
  static Instruction* Component(Instruction* list, int64_t k) {
    for (;;) {
      if (list->op() == Op::Reshape || (list->op() == Op::Broadcast && list->operand(0)->shape().IsScalar())) {
        list = list->operand(0);
      } else if (list->op() == Op::Concatenate) {
        int64_t n = 0;
        while (k >= list->operand(n)->shape().num_elements()) k -= list->operand(n++)->shape().num_elements();
        list = list->operand(n);
      } else {
        return list->shape().num_elements() == 1 ? list : nullptr;
      }
      if (list->shape().IsScalar()) return list;
    }
  }

  Instruction* Compared(Instruction* i) const {
    if (!IsInteger(i->operand(0)->shape().type())) return nullptr;
    const std::optional<bool> outcome = ranges_.OutcomeOf(*i);
    if (!outcome) return nullptr;
    Builder b(i->parent());
    b.set_insert_before(i);
    return b.Splat(ElementType::Pred, *outcome, i->shape().dims());
  }

  const Ranges& ranges_;
};

struct CounterRanges final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const Ranges ranges(module);
    if (ranges.empty()) return false;
    const Decider decider(ranges);
    int64_t decided = 0, inside = 0;
    for (Computation* c : module.PostOrder()) {
      if (!ranges.IsBody(*c)) continue;
      for (Instruction* i : c->instructions()) {
        if (i->use_count() == 0) continue;
        if (Instruction* always = decider.Decide(i)) {
          i->ReplaceAllUsesWith(always);
          ++decided;
        } else if (Instruction* indices = i->op() == Op::Scatter ? decider.IndicesInside(*i) : nullptr) {
          i->SetOperand(1, indices);
          ++inside;
        }
      }
    }
    context.Count("counter-ranges.decided", decided);
    context.Count("counter-ranges.scatters-inside", inside);
    return decided + inside > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCounterRanges() { return std::make_unique<CounterRanges>(); }

}  // namespace strop
