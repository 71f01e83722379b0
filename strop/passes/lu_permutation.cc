#include "strop/passes/lu_permutation.h"

#include "strop/analysis/trip_count.h"
#include "strop/rewrite/match.h"

namespace strop {
namespace {

Dims FirstDims(int64_t n) {
  Dims dims;
  for (int64_t d = 0; d < n; ++d) dims.push_back(d);
  return dims;
}

// One loop of which element `index` of the state may be the permutation, of arrays s32[batch..., n].
class Exchanges {
 public:
  Exchanges(const Instruction& loop, int64_t index)
      : loop_(loop), root_(loop.body()->root()), index_(index), batch_rank_(root_->operand(index)->shape().rank() - 1) {
    n_ = root_->operand(index)->shape().dim(batch_rank_);
  }

  // The pivots counted from zero, that come into the loop; null if it does something else.
  Instruction* Pivots() const {
    const Instruction* init = loop_.operand(0);
    if (!CountsRows(init->operand(index_))) return nullptr;
    Instruction* last = root_->operand(index_);
    if (!IsOverwrite(*last, true)) return nullptr;
    Instruction* first = last->operand(0);
    if (!IsOverwrite(*first, false) || !IsState(first->operand(0), index_)) return nullptr;
    Instruction* trip = WithoutWrap(Bare(first->operand(1)));
    if (!IsTrip(trip)) return nullptr;
    Instruction* there = Bare(WithoutWrap(Bare(last->operand(1))));
    if (!IsElementAt(*there, trip) || !IsElementAt(*Bare(last->operand(2)), trip)) return nullptr;
    if (!IsState(Bare(last->operand(2))->operand(0), index_) || !IsPicked(Bare(first->operand(2)), there))
      return nullptr;
    const int64_t pivots = StateOf(there->operand(0));
    if (pivots < 0 || pivots == index_ || !IsState(root_->operand(pivots), pivots)) return nullptr;
    return init->operand(pivots);
  }

 private:
  int64_t StateOf(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0)->IsParameter() ? i->tuple_index() : -1;
  }
  bool IsState(const Instruction* i, int64_t k) const { return StateOf(i) == k; }

  // 0 .. n-1 along the last dimension.
  bool CountsRows(const Instruction* i) const {
    if (i->op() == Op::Broadcast && i->dimensions() == Dims{batch_rank_}) {
      i = i->operand(0);
      return i->op() == Op::Iota && i->shape().rank() == 1;
    }
    return i->op() == Op::Iota && i->attrs<IotaAttrs>().dimension == batch_rank_;
  }

  // A value of the state that is the number of the trip, in a loop of n trips.
  bool IsTrip(Instruction* i) const {
    const int64_t k = StateOf(i);
    if (k < 0 || !loop_.operand(0)->operand(k)->IsSplat(0)) return false;
    using namespace match;
    Instruction* before = nullptr;
    if (!Match(root_->operand(k), Add(Any(&before), Scalar(1))) || !IsState(before, k)) return false;
    const std::optional<Counter> counter = FindCounter(loop_);
    return counter && counter->trips == n_;
  }

  // Element `trip` of each member of the batch of a value of the state.
  bool IsElementAt(const Instruction& i, Instruction* trip) const {
    if (i.operand_count() < 2 || StateOf(i.operand(0)) < 0 || i.shape().num_elements() != Members()) return false;
    if (i.op() == Op::Gather) {
      const GatherAttrs& a = i.attrs<GatherAttrs>();
      return a.start_index_map == Dims{batch_rank_} && a.operand_batching_dims.empty() &&
             a.slice_sizes[batch_rank_] == 1 && i.operand(1)->shape().num_elements() == 1 && IsAt(i.operand(1), trip);
    }
    if (i.op() != Op::DynamicSlice || i.operand_count() != batch_rank_ + 2) return false;
    return i.shape().dim(batch_rank_) == 1 && IsAt(i.operand(1 + batch_rank_), trip);
  }
  bool IsAt(Instruction* index, const Instruction* trip) const {
    const Instruction* i = WithoutWrap(Bare(index));
    return i == trip || (StateOf(i) >= 0 && StateOf(i) == StateOf(trip));
  }

  // The permutation's element that each member's pivot names.
  bool IsPicked(Instruction* i, const Instruction* there) const {
    if (i->operand_count() < 2 || !IsState(i->operand(0), index_) || !IsIndex(i->operand(1), there)) return false;
    if (i->op() != Op::Gather) return batch_rank_ == 0 && i->op() == Op::DynamicSlice;
    const GatherAttrs& a = i->attrs<GatherAttrs>();
    const Dims batch = FirstDims(batch_rank_);
    return a.start_index_map == Dims{batch_rank_} && a.operand_batching_dims == batch &&
           a.start_indices_batching_dims == batch && i->operand(1)->shape().num_elements() == Members();
  }
  bool IsIndex(Instruction* i, const Instruction* there) const { return Bare(WithoutWrap(Bare(i))) == there; }

  // A scatter that writes one element of each member, where the members' own indices say, or at one place for all.
  bool IsOverwrite(const Instruction& i, bool own_indices) const {
    if (i.op() != Op::Scatter || i.operand_count() != 3) return false;
    const Instruction* value = i.to_apply()->root();
    if (!value->IsParameter() || value->parameter_number() != 1) return false;
    const ScatterAttrs& a = i.attrs<ScatterAttrs>();
    const Dims last{batch_rank_}, batch = FirstDims(batch_rank_), none;
    if (a.inserted_window_dims != last || a.scatter_dims_to_operand_dims != last) return false;
    if (own_indices)
      return a.input_batching_dims == batch && a.scatter_indices_batching_dims == batch &&
             a.update_window_dims == none && i.operand(1)->shape().num_elements() == Members();
    return a.input_batching_dims == none && a.update_window_dims == batch && i.operand(1)->shape().num_elements() == 1;
  }
  int64_t Members() const { return root_->operand(index_)->shape().num_elements() / n_; }

  const Instruction& loop_;
  const Instruction* root_;
  int64_t index_, batch_rank_, n_ = 0;
};

}  // namespace

bool IsReshape(const Instruction& i) {
  if (i.op() == Op::Reshape) return true;
  if (i.op() != Op::Broadcast || i.shape().num_elements() != i.operand(0)->shape().num_elements()) return false;
  const Dims& to = i.dimensions();
  for (size_t d = 1; d < to.size(); ++d)
    if (to[d - 1] > to[d]) return false;
  return true;
}

Instruction* Bare(Instruction* i) {
  const auto is_integer = [](const Instruction* x) { return IsInteger(x->shape().type()); };
  while (IsReshape(*i) || (i->op() == Op::Convert && is_integer(i) && is_integer(i->operand(0)))) i = i->operand(0);
  return i;
}

Instruction* WithoutWrap(Instruction* index) {
  using namespace match;
  if (index->op() != Op::Select) return index;
  Instruction *x = index->operand(2), *from_end = nullptr;
  if (!Match(index->operand(0), Compare(Same(x), Scalar(0))) ||
      index->operand(0)->attrs<CompareAttrs>().direction != CompareDirection::Lt)
    return index;
  return Match(index->operand(1), Add(Any(&from_end), Splat())) && Bare(from_end) == Bare(x) ? x : index;
}

Instruction* PivotsOfPermutation(const Instruction& permutation) {
  if (permutation.op() != Op::GetTupleElement || !permutation.shape().IsArray() || permutation.shape().rank() < 1 ||
      permutation.shape().type() != ElementType::S32 || permutation.shape().num_elements() == 0)
    return nullptr;
  const Instruction* loop = permutation.operand(0);
  if (loop->op() != Op::While || loop->operand(0)->op() != Op::Tuple || loop->body()->root()->op() != Op::Tuple)
    return nullptr;
  Instruction* pivots = Exchanges(*loop, permutation.tuple_index()).Pivots();
  using namespace match;
  Instruction* from_one = nullptr;
  if (!pivots || !Match(pivots, AnyOf(Add(Any(&from_one), Scalar(-1)), Subtract(Any(&from_one), Scalar(1)))))
    return nullptr;
  return from_one;
}

}  // namespace strop
