// Moves what a while body computes anew in every trip, from state that never changes, in front of the loop.
//
//   body: %w = get-tuple-element(%s), index=2     (passed through unchanged)
//         %t = f32[64,64] transpose(%w)           before the loop: %t; state element 5; body: get-tuple-element(%s),
//         index=5
//
// Products of a few rows of what the loop walks along, by what does not change, are made one before it:
//
//   body: %x = f32[1,16,128] dynamic-slice(%xs, %i, 0, 0)        before the loop: %p = f32[200,16,512] dot(%xs, %w)
//         %d = f32[16,512] dot(reshape(%x), %w)                  body: reshape(dynamic-slice(%p, %i, 0, 0))
//
// What is computed of a trip's own part of such arrays alone is computed for all trips (steps_at_once.cc).
//
// Rows of a few numbers that are spread and summed within (distances of points to centres) are transposed in front of
// the loop: lanes are rows, and would read every so manieth number in each trip.
//
//   body: %b = f32[2000,10,8] broadcast(%x), dimensions={0,2}       before the loop: %t = f32[8,2000] transpose(%x)
//         %r = f32[2000,10] reduce(f(%b), 0), dimensions={2}        body: %b = broadcast(%t), dimensions={2,0}
//
// Small matrices whose rows are summed with a state are transposed likewise: lanes are results, and would gather.
//
//   body: %d = f32[21] dot(f32[21,21] %w, %h), contracting {1}, {0}     before the loop: %t = transpose(%w)
//                                                                       body: %d = dot(%t, %h), contracting {0}, {0}
//
// Collectives move where the loop certainly runs, as often on each device: the weights that every trip gathers are
// gathered once, unless they are so large that memory asks for gathering them again.
//
// Otherwise it is worth it only for what costs something and holds no more than it is made from: the loop would carry
// it. Sources (constants, iotas, broadcasts, reshapes) are cheaper to make again than to carry; they are cloned where
// something that moves needs them. Only effect-free instructions move: a loop of no trips then computes something in
// vain, nothing else.
#include <algorithm>
#include <map>
#include <set>

#include "strop/analysis/pairwise.h"
#include "strop/analysis/trip_count.h"
#include "strop/ir/builder.h"
#include "strop/passes/effects.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"
#include "strop/passes/steps_at_once.h"

namespace strop {
namespace {

constexpr int64_t kMinElements = 16;     // fewer are not worth a place in the state
constexpr int64_t kMostRows = 32;        // of a product; more are multiplied about as well inside the loop
constexpr int64_t kMostNarrowRows = 64;  // of types of 16 bits and fewer, which every product converts anew
constexpr int64_t kFewestProducts = 4096, kFewestSteps = 8;
constexpr int64_t kFewestTurned = 4, kMostTurned = 500;  // rows of a small matrix, and products: more are the library's
constexpr int64_t kFewestRows = 256, kFewestSums = 4;    // of rows that are turned, and trips
constexpr int64_t kMostGathered = int64_t{256} << 20;    // beyond what they are gathered from, in all
constexpr int64_t kMostBytes = int64_t{16} << 20, kMostGrowth = 8;  // of all products, beside what they are made from

bool IsCheap(const Instruction& i) {
  switch (i.op()) {
    case Op::Constant:
    case Op::Iota:
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Bitcast:
    case Op::Tuple:
    case Op::GetTupleElement: return true;
    default: return false;
  }
}

bool ReadsElementsOnly(const Instruction& tuple) {
  return std::all_of(tuple.uses().begin(), tuple.uses().end(),
                     [](const Use& u) { return u.user->op() == Op::GetTupleElement; });
}

class Mover {
 public:
  Mover(Instruction* loop, const Effects& effects)
      : loop_(loop), body_(loop->body()), root_(loop->body()->root()), effects_(effects) {
    if (const std::optional<Counter> counter = FindCounter(*loop)) trips_ = counter->trips;
  }

  // How many values moved, and inner loops were unrolled for it; the loop is replaced if any moved.
  int64_t Run() {
    FindInvariant();
    if (MultiplyRowsAtOnce()) FindInvariant();
    if (ComputeStepsAtOnce()) FindInvariant();
    if (TurnShortRows()) FindInvariant();
    if (TurnSmallMatrices()) FindInvariant();
    std::vector<Instruction*> moved = Boundary();
    if (moved.empty()) return unrolled_;
    std::vector<Instruction*> outside;
    for (Instruction* i : moved) outside.push_back(Clone(i));
    Extend(moved, outside);
    return unrolled_ + static_cast<int64_t>(moved.size());
  }

 private:
  bool MayMove(const Instruction& i) const {
    if (i.IsParameter() || Is(i.op(), kAsync | kSideEffect)) return false;
    if (Is(i.op(), kCollective) ? !MayCommunicateOnce(i) : effects_.Has(i)) return false;
    if (i.op() == Op::OptimizationBarrier || i.op() == Op::AfterAll || i.op() == Op::AddDependency) return false;
    return !i.HasControlEdges();
  }

  // Devices come to the loop equally often, or they could not meet in it; of a loop that may run no trips on some of
  // them nothing is known in front of it.
  bool MayCommunicateOnce(const Instruction& i) const {
    return trips_ > 0 && i.shape().IsArray() && i.shape().IsStatic() && gathered_ + Growth(i) <= kMostGathered;
  }

  static int64_t Growth(const Instruction& i) {
    int64_t growth = Is(i.op(), kCollective) ? i.shape().byte_size() : 0;
    for (int64_t k = 0; growth > 0 && k < i.operand_count(); ++k) growth -= i.operand(k)->shape().byte_size();
    return std::max<int64_t>(growth, 0);
  }

  // Instructions of the body whose value is the same in every trip.
  void FindInvariant() {
    invariant_.assign(body_->module()->id_bound(), false);
    gathered_ = 0;
    for (const Instruction* i : body_->instructions()) {
      if (i->op() == Op::GetTupleElement && i->operand(0) == body_->parameter(0)) {
        invariant_[i->id()] = root_->operand(i->tuple_index()) == i;
        continue;
      }
      bool all = MayMove(*i);
      for (int64_t k = 0; all && k < i->operand_count(); ++k) all = invariant_[i->operand(k)->id()];
      invariant_[i->id()] = all;
      if (all) gathered_ += Growth(*i);
    }
  }

  // The dynamic-slice that takes the next of the rows that a dot multiplies by something invariant, or null.
  const Instruction* NextRows(const Instruction& dot, int64_t trips) const {
    if (dot.op() != Op::Dot || dot.operand_count() != 2 || !MayMove(dot) || !invariant_[dot.operand(1)->id()])
      return nullptr;
    const DotAttrs& a = dot.attrs<DotAttrs>();
    const Instruction* slice = dot.operand(0);
    const bool reshaped = slice->op() == Op::Reshape;
    if (reshaped) slice = slice->operand(0);
    if (!a.lhs_batch.empty() || slice->op() != Op::DynamicSlice || !invariant_[slice->operand(0)->id()]) return nullptr;
    const Shape &all = slice->operand(0)->shape(), &next = slice->shape();
    if (!all.IsStatic() || !dot.shape().IsStatic() || next.rank() < 2 || next.dim(0) != 1 ||
        all.dim(0) < kFewestSteps || trips < all.dim(0) / 2)
      return nullptr;
    Int64Vector whole = all.dims(), rows;
    whole[0] = 1;
    for (int64_t d = 1; d < next.rank(); ++d) rows.push_back(next.dim(d));
    if (next.dims() != whole || (reshaped && dot.operand(0)->shape().dims() != rows)) return nullptr;
    const bool along =
        !reshaped && std::find(a.lhs_contracting.begin(), a.lhs_contracting.end(), 0) != a.lhs_contracting.end();
    if (along) return nullptr;
    int64_t summed = 1;
    for (int64_t d : a.lhs_contracting) summed = SaturatingMultiply(summed, dot.operand(0)->shape().dim(d));
    const int64_t results = dot.shape().num_elements(), bytes = SaturatingMultiply(all.dim(0), dot.shape().byte_size());
    const int64_t made_from = SaturatingAdd(all.byte_size(), dot.operand(1)->shape().byte_size());
    const int64_t most_rows = Bits(dot.operand(1)->shape().type()) <= 16 ? kMostNarrowRows : kMostRows;
    const bool few = next.num_elements() <= SaturatingMultiply(most_rows, summed);
    const bool pays = SaturatingMultiply(results, summed) >= kFewestProducts && bytes <= kMostBytes;
    return few && pays && bytes / kMostGrowth <= made_from ? slice : nullptr;
  }

  bool MultiplyRowsAtOnce() {
    if (trips_ == 0) return false;
    std::vector<std::pair<Instruction*, const Instruction*>> found;
    for (Instruction* i : body_->instructions())
      if (const Instruction* slice = NextRows(*i, trips_)) found.push_back({i, slice});
    for (auto [dot, slice] : found) {
      Builder b(body_);
      b.set_insert_before(dot);
      if (dot->has_metadata()) b.set_metadata(dot->shared_metadata());
      DotAttrs attrs = dot->attrs<DotAttrs>();
      if (dot->operand(0) != slice)
        for (int64_t& d : attrs.lhs_contracting) ++d;
      Instruction* all = b.Dot(slice->operand(0), dot->operand(1), attrs, dot->shape().type());
      if (!all) continue;
      DynamicSliceAttrs next;
      for (int64_t d = 0; d < all->shape().rank(); ++d) next.sizes.push_back(d == 0 ? 1 : all->shape().dim(d));
      std::vector<Instruction*> operands = {all, slice->operand(1)};
      while (static_cast<int64_t>(operands.size()) <= all->shape().rank())
        operands.push_back(b.Scalar(slice->operand(1)->shape().type(), 0));
      Instruction* part = b.Make(Op::DynamicSlice, operands, next, {}, nullptr);
      Instruction* product = part ? b.Reshape(part, dot->shape().dims()) : nullptr;
      if (!product) continue;
      dot->ReplaceAllUsesWith(product);
      body_->Remove(dot);
      at_once_.insert(all);
    }
    return !found.empty();
  }

  bool ComputeStepsAtOnce() {
    constexpr int kMostInARow = 8;  // loops, each of which begins with what the one before made
    const std::optional<Counter> counter = FindCounter(*loop_);
    if (!counter) return false;
    StepsAtOnce steps(loop_, *counter);
    const auto invariant = [&](const Instruction& i) {
      return static_cast<size_t>(i.id()) < invariant_.size() && invariant_[i.id()];
    };
    for (int k = 0; k < kMostInARow && steps.UnrollLoopsOfInputs(invariant); ++k) {
      FindInvariant();
      ++unrolled_;
    }
    bool changed = false;
    for (const Instruction* all : steps.Compute(invariant)) changed |= at_once_.insert(all).second;
    return changed;
  }

  // Is it summed, perhaps after elementwise ops, over its last dimension?
  static bool IsSummedInRows(const Instruction& i) {
    constexpr size_t kMost = 16;  // instructions that are looked at
    std::vector<const Instruction*> found = {&i};
    for (size_t n = 0; n < found.size() && found.size() < kMost; ++n) {
      for (const Use& use : found[n]->uses()) {
        const Instruction& user = *use.user;
        if (IsShortReduce(user)) {
          if (user.dimensions() == Dims{i.shape().rank() - 1}) return true;
        } else if (IsElementwise(user.op()) && user.shape().IsArray() && user.shape().dims() == i.shape().dims() &&
                   std::find(found.begin(), found.end(), &user) == found.end()) {
          found.push_back(&user);
        }
      }
    }
    return false;
  }

  bool TurnShortRows() {
    if (trips_ > 0 && trips_ < kFewestSums) return false;
    std::vector<Instruction*> found;
    for (Instruction* i : body_->instructions()) {
      if (i->op() != Op::Broadcast || invariant_[i->id()] == false || !MayMove(*i)) continue;
      const Instruction* x = i->operand(0);
      if (x->op() != Op::GetTupleElement || x->shape().rank() != 2 || x->shape().dim(0) < kFewestRows ||
          i->dimensions() != Dims{0, i->shape().rank() - 1} || i->shape().rank() != 3)
        continue;
      if (IsSummedInRows(*i)) found.push_back(i);
    }
    for (Instruction* i : found) {
      Builder b(body_);
      b.set_insert_before(i);
      b.set_metadata(i->shared_metadata());
      Instruction* turned = b.Broadcast(b.Transpose(i->operand(0), {1, 0}), i->shape().dims(), {2, 0});
      if (!turned) continue;
      i->ReplaceAllUsesWith(turned);
      body_->Remove(i);
    }
    return !found.empty();
  }

  // A product for which code is generated in the loop, whose lanes are rows of operand `k`.
  bool SumsRowsOf(const Instruction& dot, int64_t k) const {
    if (dot.op() != Op::Dot || dot.operand_count() != 2 || !MayMove(dot)) return false;
    const DotAttrs& a = dot.attrs<DotAttrs>();
    const Instruction *matrix = dot.operand(k), *other = dot.operand(1 - k);
    const Dims& contracting = k == 0 ? a.lhs_contracting : a.rhs_contracting;
    if (!a.lhs_batch.empty() || contracting != Dims{1} || matrix->shape().rank() != 2 || !invariant_[matrix->id()])
      return false;
    const bool last = k == 1 || other->shape().rank() == 1;  // of the result's dimensions, its rows
    const ElementType type = dot.shape().type();
    const int64_t products = SaturatingMultiply(dot.shape().num_elements(), matrix->shape().dim(1));
    return last && (type == ElementType::F32 || type == ElementType::F64) && matrix->shape().type() == type &&
           matrix->shape().dim(0) >= kFewestTurned && products <= kMostTurned;
  }

  bool TurnSmallMatrices() {
    if (trips_ > 0 && trips_ < kFewestSteps) return false;
    std::vector<std::pair<Instruction*, int64_t>> found;
    for (Instruction* i : body_->instructions()) {
      if (SumsRowsOf(*i, 0) || SumsRowsOf(*i, 1)) found.push_back({i, SumsRowsOf(*i, 0) ? 0 : 1});
    }
    for (auto [dot, k] : found) {
      Builder b(body_);
      b.set_insert_before(dot);
      if (dot->has_metadata()) b.set_metadata(dot->shared_metadata());
      DotAttrs attrs = dot->attrs<DotAttrs>();
      (k == 0 ? attrs.lhs_contracting : attrs.rhs_contracting) = {0};
      Instruction* operands[] = {dot->operand(0), dot->operand(1)};
      operands[k] = b.Transpose(operands[k], {1, 0});
      Instruction* made = b.Dot(operands[0], operands[1], attrs, dot->shape().type());
      if (!made) continue;
      dot->ReplaceAllUsesWith(made);
      body_->Remove(dot);
    }
    return !found.empty();
  }

  bool IsWorthCarrying(const Instruction& i) const {
    if (at_once_.contains(&i) || Is(i.op(), kCollective)) return true;
    if (IsCheap(i) || !i.shape().IsArray() || !i.shape().IsStatic() || i.shape().num_elements() < kMinElements)
      return false;
    int64_t made_from = 0;
    for (int64_t k = 0; k < i.operand_count(); ++k)
      if (i.operand(k)->shape().IsArray() && i.operand(k)->op() != Op::Broadcast)
        made_from = SaturatingAdd(made_from, i.operand(k)->shape().byte_size());
    return i.shape().byte_size() <= made_from;
  }

  // The last invariant values: those that something variant, or the root, uses.
  std::vector<Instruction*> Boundary() const {
    std::vector<Instruction*> boundary;
    for (Instruction* i : body_->instructions()) {
      if (!invariant_[i->id()] || !IsWorthCarrying(*i)) continue;
      const bool used = std::any_of(i->uses().begin(), i->uses().end(),
                                    [&](const Use& u) { return !invariant_[u.user->id()] || !CanLeave(*u.user); });
      if (used) boundary.push_back(i);
    }
    return boundary;
  }

  // Will this invariant user move out as well? Not if it is no worth carrying and nothing that moves needs it.
  bool CanLeave(const Instruction& user) const { return IsWorthCarrying(user); }

  // The value of `i` before the loop.
  Instruction* Clone(Instruction* i) {
    std::vector<Instruction*> stack = {i};
    while (!stack.empty()) {
      Instruction* at = stack.back();
      if (outside_.count(at)) {
        stack.pop_back();
        continue;
      }
      if (at->op() == Op::GetTupleElement && at->operand(0) == body_->parameter(0)) {
        outside_[at] = loop_->operand(0)->operand(at->tuple_index());
        stack.pop_back();
        continue;
      }
      std::vector<Instruction*> operands;
      for (int64_t k = 0; k < at->operand_count(); ++k) {
        auto it = outside_.find(at->operand(k));
        if (it == outside_.end())
          stack.push_back(at->operand(k));
        else
          operands.push_back(it->second);
      }
      if (static_cast<int64_t>(operands.size()) < at->operand_count()) continue;
      outside_[at] = loop_->parent()->AddClone(*at, at->shape(), operands, nullptr, loop_);
      stack.pop_back();
    }
    return outside_.at(i);
  }

  void Extend(const std::vector<Instruction*>& moved, const std::vector<Instruction*>& outside) {
    std::vector<Instruction*> init = loop_->operand(0)->operands(), next = root_->operands();
    const int64_t first = static_cast<int64_t>(init.size());
    init.insert(init.end(), outside.begin(), outside.end());
    std::vector<Shape> elements;
    for (const Instruction* i : init) elements.push_back(i->shape().WithoutLayout());
    const Shape state = Shape::Tuple(std::move(elements));
    Computation* around = loop_->parent();
    Instruction* new_init = around->Add(Op::Tuple, state, init, NoAttrs{}, {}, loop_);
    for (Computation* c : {loop_->condition(), body_}) {
      c->parameter(0)->set_shape(state);
      c->parameter(0)->clear_sharding();
    }
    for (size_t k = 0; k < moved.size(); ++k) {
      Instruction* read = body_->Add(Op::GetTupleElement, moved[k]->shape(), {body_->parameter(0)},
                                     GetTupleElementAttrs{first + static_cast<int64_t>(k)}, {}, moved[k]);
      next.push_back(read);
      moved[k]->ReplaceAllUsesWith(read);
      for (Instruction*& n : next)
        if (n == moved[k]) n = read;
    }
    Instruction* new_root = body_->Add(Op::Tuple, state, next, NoAttrs{});
    Instruction* old_root = root_;
    body_->set_root(new_root);
    body_->Remove(old_root);
    Instruction* loop = around->AddClone(*loop_, state, {&new_init, 1}, nullptr, loop_);
    loop->clear_sharding();
    for (const Use& use : std::vector<Use>(loop_->uses().begin(), loop_->uses().end()))
      use.user->SetOperand(use.operand_number, loop);
    Instruction* old_init = loop_->operand(0);
    around->Remove(loop_);
    if (old_init->use_count() == 0 && !old_init->IsRoot()) around->Remove(old_init);
  }

  Instruction* loop_;
  Computation* body_;
  Instruction* root_;
  const Effects& effects_;
  int64_t trips_ = 0;     // 0: not known
  int64_t unrolled_ = 0;  // times that inner loops were
  int64_t gathered_ = 0;  // bytes, of what is invariant
  std::vector<bool> invariant_;
  std::map<const Instruction*, Instruction*> outside_;
  std::set<const Instruction*> at_once_;  // products of all rows; looked up only
};

// State, body and uses are in the form that while-simplifier leaves.
bool IsPlain(const Instruction& loop) {
  return loop.shape().IsTuple() && loop.operand(0)->op() == Op::Tuple && loop.body()->root()->op() == Op::Tuple &&
         loop.body()->root()->use_count() == 0 && !loop.IsRoot() && ReadsElementsOnly(loop) &&
         ReadsElementsOnly(*loop.condition()->parameter(0)) && ReadsElementsOnly(*loop.body()->parameter(0)) &&
         !loop.HasControlEdges();
}

struct LoopInvariantCodeMotion final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    Effects effects(module);
    std::vector<int32_t> callers = CallerCounts(module);
    int64_t moved = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && IsPlain(*i)) loops.push_back(i);
      for (Instruction* loop : loops) {
        for (int64_t k = 0; k < 2; ++k) OwnCallee(loop, k, callers, effects);
        moved += Mover(loop, effects).Run();
      }
    }
    if (moved > 0) module.RemoveDeadComputations();
    context.Count("loop-invariant-code-motion.moved", moved);
    return moved > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopInvariantCodeMotion() { return std::make_unique<LoopInvariantCodeMotion>(); }

}  // namespace strop
