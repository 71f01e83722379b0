#include "strop/analysis/statistics.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/cost.h"
#include "strop/analysis/trip_count.h"
#include "strop/ir/hash.h"

namespace strop {
namespace {

bool IsContainer(const Instruction& i) { return i.op() == Op::Fusion || i.op() == Op::Call; }

bool IsPlainCopy(const Instruction& i) {
  if (i.op() != Op::Copy || !i.shape().IsArray() || !i.operand(0)->shape().IsArray()) return false;
  return i.shape().layout_or_default().minor_to_major == i.operand(0)->shape().layout_or_default().minor_to_major;
}

bool DoesWork(const Instruction& i) { return !OnlyRenames(i) && !IsContainer(i) && !IsPlainCopy(i); }

// ---- equal values ---------------------------------------------------------------------------------------------------

// Numbers the values of one computation such that equal ones have one number; what fusions and calls hold is numbered
// as if it stood in their place.
class Numbering {
 public:
  // Functions that call others twice, those others twice, ... are exponentially larger inlined: beyond a limit calls
  // are values like others.
  explicit Numbering(int64_t limit) : limit_(limit) {}

  // How many of the values do work.
  int64_t Run(const Computation& c) {
    Number(c, nullptr, 0);
    return distinct_;
  }

 private:
  using Numbers = std::vector<int64_t>;                                 // of the leaves of a value's outer tuple
  using Environment = std::unordered_map<const Instruction*, Numbers>;  // of one computation
  struct Value {
    const Instruction* instruction;
    Numbers operands;
    int64_t number;
  };
  static constexpr int kMaxDepth = 64;  // of calls in calls: deeper ones are values of their own

  static uint64_t HashCallee(const Computation& c) {
    uint64_t h = 0;
    for (const Instruction* i : c.instructions())
      h = HashCombine(h, HashCombine(static_cast<uint64_t>(i->op()), HashShape(i->shape())));
    return h;
  }
  static uint64_t HashOperation(const Instruction& i) {
    uint64_t h =
        HashCombine(static_cast<uint64_t>(i.op()), HashCombine(HashShape(i.shape()), HashAttrs(i.any_attrs())));
    for (const Computation* c : i.called()) h = HashCombine(h, HashCallee(*c));
    return h;
  }
  static bool SameOperation(const Instruction& a, const Instruction& b) {
    if (a.op() != b.op() || !a.shape().Compatible(b.shape()) || !(a.any_attrs() == b.any_attrs())) return false;
    if (a.called().size() != b.called().size()) return false;
    for (size_t k = 0; k < a.called().size(); ++k)
      if (HashCallee(*a.called()[k]) != HashCallee(*b.called()[k])) return false;
    return true;
  }
  static bool IsOneOfAKind(const Instruction& i) {
    return i.op() == Op::Rng || i.op() == Op::AfterAll || Is(i.op(), kAsync | kSideEffect | kControlFlow);
  }

  int64_t Fresh() { return next_++; }
  Numbers FreshLike(const Shape& shape) {
    Numbers numbers(shape.IsTuple() ? static_cast<size_t>(shape.tuple_size()) : 1);
    for (int64_t& n : numbers) n = Fresh();
    return numbers;
  }

  // A new value, or the number of an equal one.
  int64_t Find(const Instruction& i, Numbers operands) {
    if (Is(i.op(), kCommutative) && operands.size() == 2 && operands[0] > operands[1])
      std::swap(operands[0], operands[1]);
    uint64_t h = HashOperation(i);
    for (int64_t n : operands) h = HashCombine(h, static_cast<uint64_t>(n));
    std::vector<Value>& same = values_[h];
    for (const Value& v : same)
      if (v.operands == operands && SameOperation(*v.instruction, i)) return v.number;
    same.push_back({&i, std::move(operands), Fresh()});
    distinct_ += DoesWork(i);
    return same.back().number;
  }

  // `arguments` are the numbers of the parameters; null: they are new. Returns those of the root.
  Numbers Number(const Computation& c, const std::vector<Numbers>* arguments, int depth) {
    Environment known;
    for (const Instruction* i : c.instructions()) {
      std::vector<const Numbers*> operands;
      for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(&known.at(i->operand(k)));
      known[i] = NumberOne(*i, operands, arguments, depth);
    }
    return known.at(c.root());
  }

  Numbers NumberOne(const Instruction& i, const std::vector<const Numbers*>& operands,
                    const std::vector<Numbers>* arguments, int depth) {
    if (i.IsParameter()) return arguments ? (*arguments)[i.parameter_number()] : FreshLike(i.shape());
    if (IsContainer(i) && depth < kMaxDepth && i.called(0)->instruction_count() <= limit_) {
      limit_ -= i.called(0)->instruction_count();
      std::vector<Numbers> inner;
      for (const Numbers* o : operands) inner.push_back(*o);
      return Number(*i.called(0), &inner, depth + 1);
    }
    if (IsOneOfAKind(i)) {
      distinct_ += DoesWork(i);
      return FreshLike(i.shape());
    }
    if (IsPlainCopy(i)) return *operands[0];
    Numbers flat;
    for (const Numbers* o : operands) flat.insert(flat.end(), o->begin(), o->end());
    if (i.op() == Op::Tuple && flat.size() == static_cast<size_t>(i.shape().tuple_size())) return flat;
    if (i.op() == Op::GetTupleElement && operands[0]->size() > 1 && !i.shape().IsTuple())
      return {(*operands[0])[i.tuple_index()]};
    const int64_t number = Find(i, std::move(flat));
    if (!i.shape().IsTuple() || i.shape().tuple_size() < 2) return {number};
    // Elements of one value: numbers that belong to it.
    Numbers& elements = elements_[number];
    if (elements.empty()) elements = FreshLike(i.shape());
    return elements;
  }

  std::unordered_map<uint64_t, std::vector<Value>> values_;
  std::unordered_map<int64_t, Numbers> elements_;
  int64_t limit_, next_ = 0, distinct_ = 0;
};

// ---- the walk -------------------------------------------------------------------------------------------------------

constexpr int64_t kInlined = 16;  // times the module's own size

class Walk {
 public:
  explicit Walk(const Module& module) : module_(module) {}

  ModuleStatistics Run() {
    // Callers first: how often a computation runs is known when it is looked at.
    std::vector<Computation*> order = module_.PostOrder();
    std::reverse(order.begin(), order.end());
    times_[module_.entry()] = 1;
    for (const Computation* c : order) {
      if (times_.contains(c)) Outside(*c);
      if (inside_.contains(c) || times_.contains(c)) Count(*c);
    }
    return std::move(s_);
  }

 private:
  void Count(const Computation& c) {
    for (const Instruction* i : c.instructions()) {
      if (IsContainer(*i) && !times_.contains(&c)) inside_.insert(i->called(0));
      if (!DoesWork(*i)) continue;
      ++s_.instructions;
      ++s_.by_op[Name(i->op())];
    }
  }

  void Reach(const Computation* c, int64_t times) { times_[c] = SaturatingAdd(times_[c], times); }

  // A computation whose instructions are kernels.
  void Outside(const Computation& c) {
    const int64_t times = times_[&c];
    if (counted_.insert(&c).second && !called_.contains(&c))
      s_.distinct += Numbering(kInlined * module_.instruction_count()).Run(c);
    for (const Instruction* i : c.instructions()) {
      switch (i->op()) {
        case Op::While: {
          const int64_t trips = std::max<int64_t>(RecordedTripCount(*i).value_or(1), 0);
          Reach(i->body(), SaturatingMultiply(times, trips));
          Reach(i->condition(), SaturatingMultiply(times, SaturatingAdd(trips, 1)));
          continue;
        }
        case Op::Conditional:
          for (const Computation* branch : i->called()) Reach(branch, times);
          continue;
        case Op::Call:
          called_.insert(i->called(0));
          Reach(i->called(0), times);
          continue;
        case Op::Fusion: inside_.insert(i->called(0)); break;
        default: break;
      }
      if (OnlyRenames(*i)) continue;
      ++s_.kernels;
      s_.bytes_touched = SaturatingAdd(s_.bytes_touched, SaturatingMultiply(times, BytesAccessed(*i)));
    }
  }

  const Module& module_;
  ModuleStatistics s_;
  std::unordered_map<const Computation*, int64_t> times_;  // computations of kernels, and how often they run
  std::unordered_set<const Computation*> inside_;          // what fusions hold
  std::unordered_set<const Computation*> called_;          // counted where they are called from
  std::unordered_set<const Computation*> counted_;
};

}  // namespace

ModuleStatistics StatisticsOf(const Module& module) { return Walk(module).Run(); }

}  // namespace strop
