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

#include "strop/analysis/trip_count.h"
#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

struct Interval {
  int64_t low = 0, high = 0;
};

constexpr int64_t kLargest = int64_t{1} << 40;  // of what is followed: sums and products of such don't overflow
constexpr int kMostSteps = 12;                  // from a value to what it is made of

std::optional<Interval> Within(ElementType type, Interval x) {
  if (x.low < -kLargest || x.high > kLargest) return std::nullopt;
  const int bits = std::min(Bits(type), 48);
  const int64_t low = IsSigned(type) ? -(int64_t{1} << (bits - 1)) : 0;
  const int64_t high = (int64_t{1} << (IsSigned(type) ? bits - 1 : bits)) - 1;
  if (x.low < low || x.high > high) return std::nullopt;  // it might wrap
  return x;
}

class Ranges {
 public:
  // Counted loops, and others whose state some loops inside hand on as it is.
  explicit Ranges(const Module& module) {
    const std::vector<int32_t> callers = CallerCounts(module);
    for (const Computation* c : module.PostOrder())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::While && HasExplicitState(*i, callers)) loops_[i->body()] = {i, FindCounter(*i)};
  }

  bool empty() const { return loops_.empty(); }
  bool IsBody(const Computation& c) const { return loops_.contains(&c); }

  // Of an array of one integer.
  std::optional<Interval> Of(const Instruction* i, int steps = 0) const {
    if (!i->shape().IsArray() || !IsInteger(i->shape().type()) || !i->shape().IsStatic() ||
        i->shape().num_elements() != 1 || steps > kMostSteps)
      return std::nullopt;
    const std::optional<Interval> range = Computed(*i, steps + 1);
    return range ? Within(i->shape().type(), *range) : std::nullopt;
  }

 private:
  struct Loop {
    const Instruction* loop = nullptr;
    std::optional<Counter> counter;
  };

  std::optional<Interval> Computed(const Instruction& i, int steps) const {
    switch (i.op()) {
      case Op::Constant: return Interval{i.literal().GetInt(0), i.literal().GetInt(0)};
      case Op::GetTupleElement: return OfState(i, steps);
      case Op::Reshape:
      case Op::Broadcast:
      case Op::Copy: return Of(i.operand(0), steps);
      case Op::Convert: return Of(i.operand(0), steps);
      case Op::Add:
      case Op::Subtract:
      case Op::Multiply:
      case Op::Minimum:
      case Op::Maximum:
      case Op::Remainder: break;
      case Op::Clamp: return Clamped(i, steps);
      default: return std::nullopt;
    }
    const std::optional<Interval> x = Of(i.operand(0), steps), y = x ? Of(i.operand(1), steps) : std::nullopt;
    return y ? Combined(i.op(), *x, *y) : std::nullopt;
  }

  static std::optional<Interval> Combined(Op op, Interval x, Interval y) {
    switch (op) {
      case Op::Add: return Interval{x.low + y.low, x.high + y.high};
      case Op::Subtract: return Interval{x.low - y.high, x.high - y.low};
      case Op::Minimum: return Interval{std::min(x.low, y.low), std::min(x.high, y.high)};
      case Op::Maximum: return Interval{std::max(x.low, y.low), std::max(x.high, y.high)};
      case Op::Multiply: {
        if (y.low != y.high) std::swap(x, y);
        if (y.low != y.high || std::abs(y.low) > (1 << 20)) return std::nullopt;
        const int64_t a = x.low * y.low, b = x.high * y.low;
        return Interval{std::min(a, b), std::max(a, b)};
      }
      case Op::Remainder:
        if (x.low < 0 || y.low != y.high || y.low <= 0) return std::nullopt;
        return Interval{0, std::min(x.high, y.low - 1)};
      default: return std::nullopt;
    }
  }

  std::optional<Interval> Clamped(const Instruction& i, int steps) const {
    const std::optional<Interval> low = Of(i.operand(0), steps), high = Of(i.operand(2), steps);
    if (!low || !high || low->high > high->low) return std::nullopt;
    const Interval x = Of(i.operand(1), steps).value_or(Interval{low->low, high->high});
    return Interval{std::clamp(x.low, low->low, high->high), std::clamp(x.high, low->low, high->high)};
  }

  // A counter, what is counted beside it, or what the loop hands on as it is.
  std::optional<Interval> OfState(const Instruction& i, int steps) const {
    const auto at = i.operand(0)->IsParameter() ? loops_.find(i.parent()) : loops_.end();
    if (at == loops_.end()) return std::nullopt;
    const auto& [loop, counter] = at->second;
    const int64_t element = i.tuple_index();
    const Instruction* next = i.parent()->root()->operand(element);
    const auto is_itself = [&](const Instruction* x) {
      return x->op() == Op::GetTupleElement && x->operand(0) == i.operand(0) && x->tuple_index() == element;
    };
    const Instruction* init = loop->operand(0)->operand(element);
    if (is_itself(next)) return Of(init, steps);
    if (!counter || counter->trips < 1 || next->op() != Op::Add) return std::nullopt;
    const Instruction* step = is_itself(next->operand(0)) ? next->operand(1) : next->operand(0);
    if (!step->IsConstant() || (!is_itself(next->operand(0)) && !is_itself(next->operand(1)))) return std::nullopt;
    const std::optional<Interval> first = Of(init, steps);
    if (!first) return std::nullopt;
    const __int128 way = static_cast<__int128>(step->literal().GetInt(0)) * (counter->trips - 1);
    if (way < -kLargest || way > kLargest) return std::nullopt;
    const int64_t last = static_cast<int64_t>(way);
    return Interval{first->low + std::min<int64_t>(last, 0), first->high + std::max<int64_t>(last, 0)};
  }

  std::unordered_map<const Computation*, Loop> loops_;
};

// What a comparison says, if it says the same in every trip.
std::optional<bool> Outcome(CompareDirection direction, Interval x, Interval y) {
  const auto decided = [](bool always, bool never) {
    return always ? std::optional(true) : never ? std::optional(false) : std::nullopt;
  };
  switch (direction) {
    case CompareDirection::Lt: return decided(x.high < y.low, x.low >= y.high);
    case CompareDirection::Le: return decided(x.high <= y.low, x.low > y.high);
    case CompareDirection::Gt: return decided(x.low > y.high, x.high <= y.low);
    case CompareDirection::Ge: return decided(x.low >= y.high, x.high < y.low);
    case CompareDirection::Eq:
    case CompareDirection::Ne: {
      const std::optional<bool> equal =
          decided(x.low == x.high && y.low == y.high && x.low == y.low, x.high < y.low || x.low > y.high);
      return equal && direction == CompareDirection::Ne ? std::optional(!*equal) : equal;
    }
  }
  return std::nullopt;
}

class Decider {
 public:
  explicit Decider(const Ranges& ranges) : ranges_(ranges) {}

  // What `i` is in every trip, or null.
  Instruction* Decide(Instruction* i) const {
    if (!i->shape().IsArray() || !i->shape().IsStatic() || i->shape().num_elements() != 1) return nullptr;
    switch (i->op()) {
      case Op::Compare: return Compared(i);
      case Op::Clamp: {
        const std::optional<Interval> low = Of(i->operand(0)), high = Of(i->operand(2));
        return low && high ? Inside(i->operand(1), low->high, high->low) : nullptr;
      }
      case Op::Maximum:
      case Op::Minimum: return Extreme(*i);
      case Op::Remainder: {
        const std::optional<Interval> n = Of(i->operand(1));
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
        !a.input_batching_dims.empty() || components == 0 || Component(indices, 0, components)->op() == Op::Clamp)
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
      parts.push_back(Component(indices, k, components));
      if (!parts.back() || !Inside(parts.back(), 0, most[a.scatter_dims_to_operand_dims[k]])) return nullptr;
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
  std::optional<Interval> Of(const Instruction* i) const { return ranges_.Of(i); }

  // `x` if it is never below `low` nor above `high`.
  Instruction* Inside(Instruction* x, int64_t low, int64_t high) const {
    const std::optional<Interval> range = Of(x);
    return range && range->low >= low && range->high <= high ? x : nullptr;
  }

  Instruction* Extreme(const Instruction& i) const {
    const std::optional<Interval> x = Of(i.operand(0)), y = x ? Of(i.operand(1)) : std::nullopt;
    if (!y) return nullptr;
    const bool largest = i.op() == Op::Maximum;
    if (x->low >= y->high) return i.operand(largest ? 0 : 1);
    return y->low >= x->high ? i.operand(largest ? 1 : 0) : nullptr;
  }

  // Scalar `k` of a list of them; null if it is something else.
  static Instruction* Component(Instruction* list, int64_t k, int64_t count) {
    while (list->op() == Op::Reshape) list = list->operand(0);
    if (count == 1 || list->op() == Op::Broadcast) return list->op() == Op::Broadcast ? list->operand(0) : list;
    if (list->op() != Op::Concatenate) return nullptr;
    for (Instruction* part : list->operands()) {
      if (k < part->shape().num_elements()) return part->shape().num_elements() == 1 ? part : nullptr;
      k -= part->shape().num_elements();
    }
    return nullptr;
  }

  Instruction* Compared(Instruction* i) const {
    const std::optional<Interval> x = Of(i->operand(0)), y = x ? Of(i->operand(1)) : std::nullopt;
    if (!y || i->operand(0)->IsConstant() == i->operand(1)->IsConstant()) return nullptr;
    const std::optional<bool> outcome = Outcome(i->attrs<CompareAttrs>().direction, *x, *y);
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
