// A loop whose members of a batch never meet becomes one of parts of the batch, whose trips threads share:
//
//   h: f32[16,128], ys: f32[256,16,128] = while(...)     ->    p: s32, ys = while(...), independent trips: 2
//     h' = tanh(dot(h, w) + x[i]); ys[i] = h'                    h: f32[8,128], ys = while(...)
//                                                                  h' = tanh(dot(h, w) + x[i, 8p:]); ys[i, 8p:] = h'
//
// The steps of such a loop are too small to be worth a task each, a part of the batch through all its trips is worth
// many: recurrent nets, integrators and environments under jax.vmap, filters. From an element of the loop's state the
// batch's dimension is followed through everything that keeps its members apart, in both directions (the factors of
// spmd/rule.h say where it goes); where something mixes them, the loop stays, unless that is a sum which is only added
// to an element of the state (the gradient of weights): each part has one of its own then. State that is only read and
// written in slices which take the batch whole (what a scan reads and stacks) is not cut: its slices are taken further
// in.
//
// The number of parts follows from shapes alone, so that results do not depend on threads. The outer loop is marked
// (analysis/trip_count.h), and the plan makes it a region of so many tasks (plan/region.h).
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/positionwise_loop.h"
#include "strop/analysis/trip_count.h"
#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"
#include "strop/spmd/rule.h"

namespace strop {
namespace {

constexpr int64_t kMostParts = 8;
constexpr int64_t kFewestRows = 4;              // of a matrix, in a part
constexpr int64_t kEnoughRows = 16;             // as efficient as more; fewer in as few parts as there are
constexpr int64_t kFewestLanes = 32;            // where the batch is innermost
constexpr int64_t kMostInstructions = 300;      // of a body: a region's code is bounded
constexpr int64_t kUnknownTrips = 10;           // that a loop is thought to have
constexpr int64_t kMostAttempts = 16;           // dimensions of the state that are followed
constexpr int64_t kLeastKernelElements = 4096;  // loops over more, element by element, are kernels (loop-kernels)
constexpr double kLeastPartNs = 30e3;           // that pay for another thread
constexpr double kMostTripNs = 300e3;           // steps of longer trips are worth tasks themselves
constexpr double kMuch = 0.25;                  // of a trip
constexpr double kMostRepeated = 0.1;           // work that each part repeats, beside the rest
// Of matrices that every part multiplies few rows by: more comes from beyond a core's own caches, which takes as long
// as the products, and threads that share out a product read it once.
constexpr int64_t kMostReadBytes = 1 << 21;

// Can a region compute it, whatever its size?
bool IsKnown(const Instruction& i) {
  switch (i.op()) {
    case Op::Parameter:
    case Op::Constant:
    case Op::GetTupleElement:
    case Op::Tuple:
    case Op::Iota:
    case Op::Broadcast:
    case Op::Concatenate:
    case Op::Copy:
    case Op::Bitcast:
    case Op::BitcastConvert:
    case Op::Gather:
    case Op::DynamicSlice:
    case Op::DynamicUpdateSlice:
    case Op::Pad:
    case Op::Reshape:
    case Op::Reverse:
    case Op::Slice:
    case Op::Transpose:
    case Op::Reduce: return true;
    case Op::Dot: return i.operand_count() == 2 && !IsComplex(i.shape().type());
    default: return IsElementwise(i.op()) && !IsComplex(i.shape().type());
  }
}

// The factor that is all of dimension `d`, if its members are kept apart; -1: none.
int FactorAt(const spmd::Rule& rule, const spmd::TensorFactors& dims, int64_t d) {
  if (d >= static_cast<int64_t>(dims.size()) || dims[static_cast<size_t>(d)].size() != 1) return -1;
  const int factor = dims[static_cast<size_t>(d)][0];
  return rule.factors[static_cast<size_t>(factor)].kind == spmd::FactorKind::PassThrough ? factor : -1;
}

// The dimension that is this factor; -1: it is in none, -2: in one with others, or in several.
int64_t DimOf(const spmd::TensorFactors& dims, int factor) {
  int64_t found = -1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (std::find(dims[d].begin(), dims[d].end(), factor) == dims[d].end()) continue;
    if (found != -1 || dims[d].size() != 1) return -2;
    found = static_cast<int64_t>(d);
  }
  return found;
}

// What one element of a result costs, in nanoseconds of one thread: enough to tell loops worth cutting from others.
double Nanoseconds(const Instruction& i) {
  if (!i.shape().IsArray() || i.shape().rank() == 0) return 0;
  double elements = static_cast<double>(i.shape().num_elements());
  switch (i.op()) {
    case Op::Parameter:
    case Op::Constant:
    case Op::GetTupleElement:
    case Op::Broadcast:
    case Op::Iota:
    case Op::Reshape: return 0;
    case Op::DynamicUpdateSlice: return static_cast<double>(i.operand(1)->shape().num_elements()) / 16;
    case Op::Reduce: return static_cast<double>(i.operand(0)->shape().num_elements()) / 16;
    case Op::Dot: {
      for (int64_t d : i.attrs<DotAttrs>().lhs_contracting)
        elements *= static_cast<double>(i.operand(0)->shape().dim(d));
      return elements / 50;
    }
    default: return elements / (Is(i.op(), kFloatMath) ? 5 : 40);
  }
}

class LoopCutter {
 public:
  LoopCutter(Instruction* loop, int64_t trips, PassContext& context)
      : loop_(loop),
        body_(loop->body()),
        condition_(loop->condition()),
        next_(body_->root()),
        trips_(trips),
        context_(context) {}

  bool Run() {
    int64_t attempts = 0;
    for (int64_t k = 0; k < next_->operand_count(); ++k) {
      const Shape& shape = next_->operand(k)->shape();
      if (!shape.IsArray() || IsInvariant(k)) continue;
      for (int64_t d = 0; d < shape.rank() && attempts < kMostAttempts; ++d) {
        if (shape.dim(d) < 2 * kFewestRows) continue;
        ++attempts;
        if (!Follow(k, d) || !Choose()) {
          context_.Decide(*loop_, "not cut along dimension ", d, " of element ", k, ": ", why_not_);
          continue;
        }
        context_.Decide(*loop_, "cut into ", parts_, " parts of ", part_, " members, ", work_us_, " us of work");
        Rewrite();
        return true;
      }
    }
    return false;
  }

 private:
  // ---- which values have the batch, and where

  bool Has(const Instruction* i) const { return place_.contains(i); }
  int64_t StateRead(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0)->IsParameter() ? i->tuple_index() : -1;
  }
  bool IsInvariant(int64_t k) const { return StateRead(next_->operand(k)) == k; }

  std::vector<Instruction*> Reads(const Computation* c, int64_t k) const {
    std::vector<Instruction*> reads;
    for (const Use& use : c->parameter(0)->uses())
      if (use.user->tuple_index() == k) reads.push_back(use.user);
    return reads;
  }

  // False: something mixes the members, or wants them in two places.
  bool Follow(int64_t k, int64_t d) {
    place_.clear();
    found_.clear();
    sums_.clear();
    summed_.assign(static_cast<size_t>(next_->operand_count()), false);
    why_not_.clear();
    members_ = next_->operand(k)->shape().dim(d);
    if (!PlaceState(k, d)) return false;
    for (size_t n = 0; n < found_.size(); ++n)
      if (!Spread(found_[n])) return false;
    FindWhole();
    return true;
  }

  // Of several reasons the first counts.
  template <class... Parts>
  bool No(const Parts&... parts) {
    if (why_not_.empty()) why_not_ = StrCat(parts...);
    return false;
  }

  bool PlaceState(int64_t k, int64_t d) {
    if (!Reads(condition_, k).empty()) return No("the condition reads element ", k);
    for (Instruction* read : Reads(body_, k))
      if (!Place(read, d)) return false;
    return Place(next_->operand(k), d);
  }

  bool Place(Instruction* i, int64_t d) {
    if (const auto known = place_.find(i); known != place_.end())
      return known->second == d || No("%", i->name(), " would have it in two places");
    if (sums_.contains(i)) return No("%", i->name(), " would sum over it and have it");
    if (!CanPlace(*i, d)) return No("%", i->name(), " (", Name(i->op()), ") does not keep its members apart");
    place_.emplace(i, d);
    found_.push_back(i);
    return true;
  }

  bool CanPlace(const Instruction& i, int64_t d) const {
    const std::vector<Shape> leaves = i.shape().Leaves();
    if (i.HasControlEdges() || i.sharding()) return false;
    for (const Shape& leaf : leaves)
      if (!leaf.IsArray() || !leaf.IsStatic() || d >= leaf.rank() || leaf.dim(d) != members_) return false;
    if (i.op() == Op::GetTupleElement) return true;
    if (i.op() == Op::Iota || i.IsConstant() || i.IsParameter()) return false;
    const spmd::Rule rule = spmd::RuleOf(i);
    return !rule.empty() && FactorAt(rule, rule.results[0], d) >= 0;
  }

  // Values that are the same wherever they are made: not worth a batch of their own.
  static bool IsSource(const Instruction& i) {
    return i.IsConstant() || i.op() == Op::Iota || (i.op() == Op::Broadcast && i.operand(0)->shape().IsScalar());
  }

  bool Spread(Instruction* i) {
    const int64_t d = place_.at(i), state = StateRead(i);
    if (state >= 0) {
      if (!PlaceState(state, d)) return false;
    } else if (i->op() == Op::GetTupleElement) {
      if (!Place(i->operand(0), d)) return false;
    } else {
      const spmd::Rule rule = spmd::RuleOf(*i);
      const int factor = FactorAt(rule, rule.results[0], d);
      for (const spmd::TensorFactors& result : rule.results)
        if (DimOf(result, factor) != d) return No("%", i->name(), " has several results");
      for (size_t k = 0; k < rule.operands.size(); ++k) {
        const int64_t from = DimOf(rule.operands[k], factor);
        Instruction* operand = i->operand(static_cast<int64_t>(k));
        if (from == -2) return No("%", i->name(), " (", Name(i->op()), ") takes it apart");
        // What cannot be placed is sliced, unless it turns out to have the batch elsewhere.
        if (from >= 0 && !IsSource(*operand) && (Has(operand) || CanPlace(*operand, from)) && !Place(operand, from))
          return false;
      }
    }
    for (const Use& use : i->uses()) {
      if (use.user == next_) {
        if (!PlaceState(use.operand_number, d)) return false;
      } else if (use.user->op() == Op::GetTupleElement) {
        if (!Place(use.user, d)) return false;
      } else {
        const spmd::Rule rule = spmd::RuleOf(*use.user);
        const int factor = rule.empty() ? -1 : FactorAt(rule, rule.operands[use.operand_number], d);
        const int64_t to = factor < 0 ? -1 : DimOf(rule.results[0], factor);
        if (to < 0 && IsSum(*use.user, rule, use.operand_number, d)) {
          if (!AddSum(use.user)) return false;
          continue;
        }
        if (to < 0) return No("%", use.user->name(), " (", Name(use.user->op()), ") mixes its members");
        if (!Place(use.user, to)) return false;
      }
    }
    return true;
  }

  // Does it sum over all that dimension d of operand k has, from zero?
  static bool IsSum(const Instruction& i, const spmd::Rule& rule, int64_t k, int64_t d) {
    if (i.op() == Op::Reduce) {
      if (i.operand_count() != 2 || spmd::CombinerOf(i) != Op::Add || !i.operand(1)->IsSplat(0)) return false;
    } else if (i.op() != Op::Dot) {
      return false;
    }
    const spmd::TensorFactors& dims = rule.operands[static_cast<size_t>(k)];
    return IsFloat(i.shape().type()) && dims[static_cast<size_t>(d)].size() == 1 &&
           rule.factors[static_cast<size_t>(dims[static_cast<size_t>(d)][0])].kind == spmd::FactorKind::Reduction;
  }

  // Each part has a sum over its members. That will do if it is added to an element of the state that nothing else
  // reads: the parts' sums are added up behind the loop.
  bool AddSum(Instruction* sum) {
    if (!sums_.insert(sum).second) return true;
    if (Has(sum)) return No("%", sum->name(), " would sum over it and have it");
    const auto mixes = [&] { return No("%", sum->name(), " (", Name(sum->op()), ") mixes its members"); };
    if (sum->op() == Op::Dot || sum->op() == Op::Reduce)
      for (int64_t k = 0; k < sum->operand_count(); ++k)
        if (!PlaceSummed(*sum, k)) return false;
    for (const Use& use : sum->uses()) {
      Instruction* user = use.user;
      if (user == next_) return mixes();
      if (user->op() == Op::Transpose || user->op() == Op::Reshape || user->op() == Op::Copy) {
        if (!AddSum(user)) return false;
        continue;
      }
      if (user->op() != Op::Add || user->use_count() != 1 || user->uses()[0].user != next_) return mixes();
      const int64_t k = user->uses()[0].operand_number;
      const Instruction* other = user->operand(1 - use.operand_number);
      if (StateRead(other) != k || other->use_count() != 1 || Reads(body_, k).size() != 1 ||
          !Reads(condition_, k).empty())
        return mixes();
      summed_[static_cast<size_t>(k)] = true;
    }
    return true;
  }

  // The batch in operand k of a sum over it.
  bool PlaceSummed(const Instruction& sum, int64_t k) {
    const std::optional<int64_t> d = SummedDim(sum, k);
    Instruction* operand = sum.operand(k);
    if (!d || IsSource(*operand)) return true;
    if (Has(operand) || CanPlace(*operand, *d)) return Place(operand, *d);
    return true;  // it is sliced
  }

  // Which dimension of operand k goes with the batch of the others: a dot contracts a pair of dimensions.
  std::optional<int64_t> SummedDim(const Instruction& sum, int64_t k) const {
    for (int64_t known = 0; known < sum.operand_count(); ++known) {
      if (!Has(sum.operand(known))) continue;
      const int64_t d = place_.at(sum.operand(known));
      if (sum.op() == Op::Reduce) return known == k ? std::optional<int64_t>(d) : std::nullopt;
      const auto& a = sum.attrs<DotAttrs>();
      const Dims& from = known == 0 ? a.lhs_contracting : a.rhs_contracting;
      const auto at = std::find(from.begin(), from.end(), d);
      if (at == from.end()) continue;
      return (k == 0 ? a.lhs_contracting : a.rhs_contracting)[static_cast<size_t>(at - from.begin())];
    }
    return std::nullopt;
  }

  // State of which slices are read and written that take the batch whole.
  void FindWhole() {
    whole_.clear();
    whole_state_.assign(static_cast<size_t>(next_->operand_count()), false);
    for (int64_t k = 0; k < next_->operand_count(); ++k) {
      if (!Has(next_->operand(k))) continue;
      std::vector<const Instruction*> chain;
      for (const Instruction* read : Reads(body_, k)) chain.push_back(read);
      bool fits = true;
      for (size_t n = 0; fits && n < chain.size(); ++n) {
        for (const Use& use : chain[n]->uses()) {
          const Op op = use.user->op();
          if (use.user == next_)
            fits &= use.operand_number == k;
          else if (op == Op::DynamicUpdateSlice && use.operand_number == 0)
            chain.push_back(use.user);
          else
            fits &= op == Op::DynamicSlice && use.operand_number == 0;
        }
      }
      fits &= std::find(chain.begin(), chain.end(), next_->operand(k)) != chain.end();
      if (!fits) continue;
      whole_state_[static_cast<size_t>(k)] = true;
      whole_.insert(chain.begin(), chain.end());
    }
  }

  // ---- how many parts

  bool Choose() {
    double shared = 0, repeated = 0, innermost = 0;
    int64_t read_by_all = 0;  // bytes of matrices
    for (const Instruction* i : body_->instructions()) {
      if (i->op() == Op::Dot && Has(i))
        for (const Instruction* operand : i->operands())
          if (!Has(operand)) read_by_all += operand->shape().byte_size();
      const double ns = Nanoseconds(*i);
      (Has(i) || sums_.contains(i) ? shared : repeated) += ns;
      if (Has(i) && i->shape().IsArray() && place_.at(i) == i->shape().rank() - 1) innermost += ns;
    }
    const double total = shared * static_cast<double>(trips_);
    work_us_ = static_cast<int64_t>(total / 1e3);
    if (shared > kMostTripNs) return No("its steps are worth tasks themselves");
    if (repeated > kMostRepeated * shared) return No("each part would repeat much that has no batch");
    const int64_t enough =
        innermost > kMuch * shared ? kFewestLanes : std::clamp(members_ / 2, kFewestRows, kEnoughRows);
    for (parts_ = std::min(kMostParts, members_ / enough); parts_ > 1; --parts_)
      if (members_ % parts_ == 0 && total >= kLeastPartNs * static_cast<double>(parts_)) break;
    part_ = parts_ > 1 ? members_ / parts_ : members_;
    if (parts_ > 1 && part_ < kEnoughRows && read_by_all > kMostReadBytes)
      return No("each part would read ", read_by_all, " bytes of matrices for ", part_, " members");
    return parts_ > 1 || No(members_, " members, ", work_us_, " us of work");
  }

  // ---- doing it

  Shape PartOf(const Shape& shape, int64_t d) const {
    if (shape.IsTuple()) {
      std::vector<Shape> elements;
      for (const Shape& element : shape.elements()) elements.push_back(PartOf(element, d));
      return Shape::Tuple(std::move(elements));
    }
    Int64Vector dims = shape.dims();
    dims[static_cast<size_t>(d)] = part_;
    return Shape::Array(shape.type(), dims);
  }

  static Instruction* Number(Builder& b, int64_t n, ElementType type = ElementType::S32) {
    return b.Constant(Literal::ScalarOfInt(type, n));
  }

  // Starts of a slice or an update along dimension d, of a value of that rank.
  static std::vector<Instruction*> Starts(Builder& b, Instruction* at, int64_t d, int64_t rank) {
    std::vector<Instruction*> starts;
    for (int64_t k = 0; k < rank; ++k) starts.push_back(k == d ? at : Number(b, 0));
    return starts;
  }

  Instruction* Sliced(Builder& b, Instruction* x, int64_t d, Instruction* at) const {
    if (x->op() == Op::Broadcast && x->operand(0)->shape().IsScalar())
      return b.Broadcast(x->operand(0), PartOf(x->shape(), d).dims(), {});
    if (x->op() == Op::Iota) {
      const int64_t along = x->attrs<IotaAttrs>().dimension;
      Instruction* part = b.Iota(PartOf(x->shape(), d), along);
      if (along != d) return part;
      return b.Make(Op::Add, {part, b.Broadcast(b.Convert(at, x->shape().type()), part->shape().dims(), {})});
    }
    std::vector<Instruction*> operands = Starts(b, at, d, x->shape().rank());
    operands.insert(operands.begin(), x);
    const Int64Vector sizes = PartOf(x->shape(), d).dims();
    return b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{Dims(sizes.begin(), sizes.end())}, {}, nullptr);
  }

  static Instruction* Updated(Builder& b, Instruction* x, Instruction* part, int64_t d, Instruction* at) {
    std::vector<Instruction*> operands = Starts(b, at, d, x->shape().rank());
    operands.insert(operands.begin(), {x, part});
    return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
  }

  // What an element of the state is to those behind the loop.
  enum class Result : uint8_t { kUnused, kInvariant, kWhole, kParts, kSum, kRepeated };

  Result ResultOf(int64_t k) const {
    if (IsInvariant(k)) return Result::kInvariant;
    if (whole_state_[static_cast<size_t>(k)]) return Result::kWhole;
    const bool used = std::any_of(loop_->uses().begin(), loop_->uses().end(),
                                  [&](const Use& use) { return use.user->tuple_index() == k; });
    if (!used) return Result::kUnused;
    if (summed_[static_cast<size_t>(k)]) return Result::kSum;
    return Has(next_->operand(k)) ? Result::kParts : Result::kRepeated;
  }

  int64_t PlaceOfState(int64_t k) const { return Has(next_->operand(k)) ? place_.at(next_->operand(k)) : -1; }

  // The state of the loop over parts: the number of the part, what the loop began with, the results.
  struct Outer {
    std::vector<Instruction*> init = {};  // in front of the loop
    std::vector<int64_t> initial = {};    // by element of the old state: where its first value is; -1: made inside
    std::vector<int64_t> results = {};    // by element of the old state: where its result is, or -1
  };

  Outer OuterState(Builder& b) const {
    Outer outer;
    outer.init.push_back(Number(b, 0));
    const int64_t n = next_->operand_count();
    for (int64_t k = 0; k < n; ++k) {
      Instruction* first = loop_->operand(0)->operand(k);
      const Result result = ResultOf(k);
      outer.results.push_back(-1);
      outer.initial.push_back(-1);
      const auto place = [&](Instruction* value) {
        outer.init.push_back(value);
        return static_cast<int64_t>(outer.init.size()) - 1;
      };
      if (result == Result::kWhole) {
        outer.results.back() = outer.initial.back() = place(first);
        continue;
      }
      if (!IsSplat(*first) && result != Result::kSum) outer.initial.back() = place(first);
      Int64Vector dims = next_->operand(k)->shape().dims();
      if (result == Result::kRepeated || result == Result::kSum) dims.insert(dims.begin(), parts_);
      if (result == Result::kParts || result == Result::kSum || result == Result::kRepeated)
        outer.results.back() = place(b.Splat(first->shape().type(), 0, dims));
    }
    return outer;
  }

  // A scalar constant, or a broadcast of one: made again in another computation.
  static bool IsSplat(const Instruction& i) {
    const Instruction& scalar = i.op() == Op::Broadcast ? *i.operand(0) : i;
    return scalar.IsConstant() && scalar.shape().IsScalar();
  }
  static Instruction* MadeAgain(Builder& b, const Instruction& source) {
    if (source.IsConstant()) return b.computation()->AddClone(source, source.shape(), {});
    Instruction* scalar = b.computation()->AddClone(*source.operand(0), source.operand(0)->shape(), {});
    return b.Broadcast(scalar, source.shape().dims(), {});
  }

  void Rewrite() {
    Builder before(loop_->parent());
    before.set_insert_before(loop_);
    before.set_metadata(loop_->shared_metadata());
    const Outer outer = OuterState(before);
    Instruction* init = before.Tuple(outer.init);
    Computation* body = OuterBody(outer, init->shape());
    Computation* called[] = {OuterCondition(init->shape()), body};
    Instruction* made = before.Make(Op::While, {&init, 1}, NoAttrs{}, called, &init->shape());
    MarkIndependentTrips(made, parts_);
    const std::vector<Use> uses(loop_->uses().begin(), loop_->uses().end());
    for (const Use& use : uses) {
      const int64_t k = use.user->tuple_index();
      Instruction* value = loop_->operand(0)->operand(k);
      if (const int64_t at = outer.results[static_cast<size_t>(k)]; at >= 0) value = before.GetTupleElement(made, at);
      if (ResultOf(k) == Result::kSum) {
        const ElementType type = value->shape().type();
        value = before.Make(
            Op::Add, {loop_->operand(0)->operand(k), before.Reduce(value, before.Scalar(type, 0), {0}, Adder(type))});
      }
      if (ResultOf(k) == Result::kRepeated) {
        Dims start(static_cast<size_t>(value->shape().rank()), 0), stride(start.size(), 1);
        Dims limit(value->shape().dims().begin(), value->shape().dims().end());
        limit[0] = 1;
        value = before.Reshape(before.Slice(value, start, limit, stride), use.user->shape().dims());
      }
      use.user->ReplaceAllUsesWith(value);
    }
    for (const Use& use : uses) loop_->parent()->Remove(use.user);
    loop_->parent()->Remove(loop_);
  }

  Computation* Adder(ElementType type) const {
    Computation* c = loop_->module()->AddComputation("sum");
    const Shape scalar = Shape::Array(type, {});
    Instruction *x = c->AddParameter(0, scalar), *y = c->AddParameter(1, scalar);
    c->set_root(c->Add(Op::Add, scalar, {x, y}));
    return c;
  }

  Computation* OuterCondition(const Shape& state) const {
    Computation* c = loop_->module()->AddComputation("is_part");
    Instruction* parameter = c->AddParameter(0, state);
    Builder b(c);
    c->set_root(b.Compare(b.GetTupleElement(parameter, 0), Number(b, parts_), CompareDirection::Lt));
    return c;
  }

  Computation* OuterBody(const Outer& outer, const Shape& state) {
    Computation* c = loop_->module()->AddComputation("part");
    Instruction* parameter = c->AddParameter(0, state);
    Builder b(c);
    b.set_metadata(loop_->shared_metadata());
    std::vector<Instruction*> next;
    for (int64_t k = 0; k < state.tuple_size(); ++k) next.push_back(b.GetTupleElement(parameter, k));
    Instruction* part = next[0];
    Instruction* at = b.Make(Op::Multiply, {part, Number(b, part_)});
    std::vector<Instruction*> first;
    for (int64_t k = 0; k < next_->operand_count(); ++k) {
      const int64_t from = outer.initial[static_cast<size_t>(k)], d = PlaceOfState(k);
      const Instruction& initial = *loop_->operand(0)->operand(k);
      Instruction* value = from >= 0                     ? next[static_cast<size_t>(from)]
                           : ResultOf(k) == Result::kSum ? b.Splat(initial.shape().type(), 0, initial.shape().dims())
                                                         : MadeAgain(b, initial);
      first.push_back(d >= 0 && !whole_state_[static_cast<size_t>(k)] ? Sliced(b, value, d, at) : value);
    }
    first.push_back(at);
    Instruction* init = b.Tuple(first);
    Computation* called[] = {InnerCondition(init->shape()), InnerBody(init->shape())};
    Instruction* inner = b.Make(Op::While, {&init, 1}, NoAttrs{}, called, &init->shape());
    inner->CopyExtrasFrom(*loop_);
    for (int64_t k = 0; k < next_->operand_count(); ++k) {
      const int64_t to = outer.results[static_cast<size_t>(k)];
      if (to < 0) continue;
      Instruction*& value = next[static_cast<size_t>(to)];
      Instruction* result = b.GetTupleElement(inner, k);
      const Result kind = ResultOf(k);
      if (kind == Result::kWhole) {
        value = result;
      } else if (kind == Result::kParts) {
        value = Updated(b, value, result, PlaceOfState(k), at);
      } else {
        Int64Vector dims = result->shape().dims();
        dims.insert(dims.begin(), 1);
        value = Updated(b, value, b.Reshape(result, dims), 0, part);
      }
    }
    next[0] = b.Make(Op::Add, {part, Number(b, 1)});
    c->set_root(b.Tuple(next));
    return c;
  }

  Computation* InnerCondition(const Shape& state) const {
    Computation* c = loop_->module()->AddComputation(condition_->name());
    std::unordered_map<const Instruction*, Instruction*> made;
    for (const Instruction* i : condition_->instructions()) made[i] = Clone(*c, *i, state, made);
    c->set_root(made.at(condition_->root()));
    return c;
  }

  static Instruction* Clone(Computation& c, const Instruction& i, const Shape& state,
                            const std::unordered_map<const Instruction*, Instruction*>& made) {
    if (i.IsParameter()) return c.AddParameter(0, state);
    std::vector<Instruction*> operands;
    for (int64_t k = 0; k < i.operand_count(); ++k) operands.push_back(made.at(i.operand(k)));
    return c.AddClone(i, i.shape(), operands);
  }

  Computation* InnerBody(const Shape& state) {
    Computation* c = loop_->module()->AddComputation(body_->name());
    Builder b(c);
    std::unordered_map<const Instruction*, Instruction*> made;
    Instruction* parameter = made[body_->parameter(0)] = c->AddParameter(0, state);
    Instruction* at = b.GetTupleElement(parameter, state.tuple_size() - 1);
    for (const Instruction* i : body_->PostOrder()) {
      if (i == next_ || i->IsParameter()) continue;
      made[i] = Has(i)              ? Part(b, *i, made, at)
                : sums_.contains(i) ? PartOfSum(b, *i, made, at)
                                    : Clone(*c, *i, state, made);
    }
    std::vector<Instruction*> next;
    for (int64_t k = 0; k < next_->operand_count(); ++k) next.push_back(made.at(next_->operand(k)));
    next.push_back(at);
    Instruction* root = b.Tuple(next);
    root->CopyExtrasFrom(*next_);
    c->set_root(root);
    return c;
  }

  Instruction* PartOfSum(Builder& b, const Instruction& i,
                         const std::unordered_map<const Instruction*, Instruction*>& made, Instruction* at) {
    std::vector<Instruction*> operands;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      Instruction* operand = made.at(i.operand(k));
      const bool sums = i.op() == Op::Dot || i.op() == Op::Reduce;
      const std::optional<int64_t> d = sums && !Has(i.operand(k)) ? SummedDim(i, k) : std::nullopt;
      operands.push_back(d ? Sliced(b, operand, *d, at) : operand);
    }
    return b.computation()->AddClone(i, i.shape(), operands);
  }

  Instruction* Part(Builder& b, const Instruction& i, const std::unordered_map<const Instruction*, Instruction*>& made,
                    Instruction* at) {
    const int64_t d = place_.at(&i);
    b.set_metadata(i.shared_metadata());
    if (i.op() == Op::GetTupleElement) return b.GetTupleElement(made.at(i.operand(0)), i.tuple_index());
    const spmd::Rule rule = spmd::RuleOf(i);
    const int factor = FactorAt(rule, rule.results[0], d);
    std::vector<Instruction*> operands;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      Instruction* operand = made.at(i.operand(k));
      const int64_t from = DimOf(rule.operands[static_cast<size_t>(k)], factor);
      operands.push_back(from >= 0 && !Has(i.operand(k)) ? Sliced(b, operand, from, at) : operand);
    }
    const bool updates = i.op() == Op::DynamicUpdateSlice;
    if (whole_.contains(i.operand_count() > 0 ? i.operand(0) : nullptr)) {
      Instruction*& start = operands[static_cast<size_t>(d + (updates ? 2 : 1))];
      start = start->shape().type() == ElementType::S32 ? at : b.Convert(at, start->shape().type());
    }
    Instruction* part =
        b.computation()->AddClone(i, updates && whole_.contains(&i) ? i.shape() : PartOf(i.shape(), d), operands);
    if (i.op() == Op::Slice) {
      SliceAttrs attrs = i.attrs<SliceAttrs>();
      attrs.slice[static_cast<size_t>(d)] = {0, part_, 1};
      part->set_attrs(std::move(attrs));
    } else if (i.op() == Op::DynamicSlice) {
      DynamicSliceAttrs attrs = i.attrs<DynamicSliceAttrs>();
      attrs.sizes[static_cast<size_t>(d)] = part_;
      part->set_attrs(std::move(attrs));
    } else if (i.op() == Op::Gather) {
      GatherAttrs attrs = i.attrs<GatherAttrs>();
      const int64_t from = DimOf(rule.operands[0], factor);
      if (from >= 0 && attrs.slice_sizes[static_cast<size_t>(from)] == members_)
        attrs.slice_sizes[static_cast<size_t>(from)] = part_;
      part->set_attrs(std::move(attrs));
    }
    return part;
  }

  Instruction* loop_;
  Computation *body_, *condition_;
  Instruction* next_;
  int64_t trips_;
  PassContext& context_;
  std::string why_not_;
  int64_t work_us_ = 0;  // an estimate, of one thread
  int64_t members_ = 0, parts_ = 1, part_ = 0;
  std::unordered_map<const Instruction*, int64_t> place_;  // of the batch among the dimensions
  std::vector<Instruction*> found_;
  std::unordered_set<const Instruction*> whole_;  // values of state that is not cut
  std::vector<bool> whole_state_;
  std::unordered_set<const Instruction*> sums_;  // over the members of a part
  std::vector<bool> summed_;                     // by element of the state: sums are added to it
};

// Can a region compute all of the loop, and is its state the loop's alone?
bool IsFit(const Instruction& loop, const std::vector<int32_t>& callers, PassContext& context) {
  if (!HasExplicitState(loop, callers)) return false;
  for (const Computation* c : {loop.condition(), loop.body()}) {
    if (c->instruction_count() > kMostInstructions) return false;
    for (const Instruction* i : c->instructions()) {
      if (IsKnown(*i)) continue;
      context.Decide(loop, "not cut: %", i->name(), " (", Name(i->op()), ") may not be code of a region");
      return false;
    }
  }
  return true;
}

struct LoopSplitter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t cut = 0;
    const std::vector<int32_t> callers = CallerCounts(module);
    std::vector<Instruction*> loops;
    std::unordered_set<const Computation*> parts;  // bodies of loops that were made by this pass
    for (const Computation* c : module.computations())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::While && IndependentTrips(*i) > 0) parts.insert(i->body());
    for (Computation* c : module.PostOrder()) {
      if (parts.contains(c)) continue;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && !parts.contains(i->body()) && IsFit(*i, callers, context)) loops.push_back(i);
    }
    for (Instruction* loop : loops) {
      const std::optional<Counter> counter = FindCounter(*loop);
      if (counter && counter->trips < 2) continue;
      const std::optional<PositionwiseLoop> kernel = FindPositionwiseLoop(*loop);
      if (kernel && kernel->elements >= kLeastKernelElements) continue;
      cut += LoopCutter(loop, counter ? counter->trips : kUnknownTrips, context).Run();
    }
    context.Count("loop-splitter.loops", cut);
    if (cut > 0) module.RemoveDeadComputations();
    return cut > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopSplitter() { return std::make_unique<LoopSplitter>(); }

}  // namespace strop
