// Chooses in which order values lie in memory, so that transposes vanish: what a user wrote as a transpose is a matter
// of layout wherever those who compute and read the value take any order.
//
//   %t = f32[5,4] transpose(%x), dimensions={1,0}       %e = f32[4,5] exponential(%x)
//   %e = f32[5,4] exponential(%t)                       %r = f32[5] reduce(%e, %zero), dimensions={0}
//   %r = f32[5] reduce(%e, %zero), dimensions={1}
//
// Every array is row-major here (layout-normalization), so that a value in another order is one with permuted
// dimensions. A transpose x -> t proposes two such orders: t's for x, and x's for t. From there the order is carried to
// what is computed elementwise or moved along, as far as it goes: a region, in which every value has two choices, 0 as
// it is and 1 in its other order. What costs is a value that is needed in the order that it is not computed in: it is
// read and written once more. Where that is settled:
//   - a transpose to the other order costs if its operand chooses 0, one from it if somebody needs its result as it is;
//   - arguments, results, sorts, gathers, ... take and give what is 0; scalars, broadcasts and iotas are as well made
//     in one order as in another; a dot reads operands in any order that leaves it a product of matrices, and writes
//     its result with its sides exchanged;
//   - a reduction of the innermost dimension stays one if others read its operand too: rows are what softmax and norms
//     are computed by.
// The best choice is a minimum cut (minimum_cut.h), so two users that want different orders get exactly one move. It is
// taken only if it moves considerably fewer bytes than before, which also is why this ends.
#include <algorithm>
#include <deque>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "strop/ir/builder.h"
#include "strop/ir/physical_shape.h"
#include "strop/passes/dot_sides.h"
#include "strop/passes/minimum_cut.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

using Order = Dims;  // the dimensions of a value, major to minor

constexpr size_t kMaxRegion = 256;  // values

int64_t PositionOf(const Order& order, int64_t d) { return std::find(order.begin(), order.end(), d) - order.begin(); }

Shape Permuted(const Shape& shape, const Order& order) {
  Int64Vector dims;
  for (int64_t d : order) dims.push_back(shape.dim(d));
  return Shape::Array(shape.type(), dims);
}

// No element changes its place: at most dimensions of size one do.
bool MovesNothing(const Shape& shape, const Order& order) {
  int64_t last = -1;
  for (int64_t d : order) {
    if (shape.dim(d) == 1) continue;
    if (d < last) return false;
    last = d;
  }
  return true;
}

bool IsPlain(const Instruction& i) {
  return i.shape().IsArray() && i.shape().IsStatic() && !i.HasControlEdges() && (!i.sharding() || i.IsParameter());
}

// Can be made in any order at no cost.
bool IsFree(const Instruction& i) {
  return i.shape().IsScalar() || ((i.op() == Op::Broadcast || i.op() == Op::Iota) && IsPlain(i));
}

// ---- how orders of operands and results belong together -------------------------------------------------------------

// One operand, whose dimensions are the result's with some left out.
bool IsReduction(const Instruction& i) { return i.op() == Op::Reduce && i.operand_count() == 2 && IsPlain(i); }

// Computed in any order, if operands have the same.
bool KeepsOrder(const Instruction& i) {
  if (!IsPlain(i) || i.shape().rank() < 2) return false;
  switch (i.op()) {
    case Op::Slice:
    case Op::Pad:
    case Op::Reverse:
    case Op::Concatenate: break;
    default:
      if (!IsElementwise(i.op())) return false;
  }
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape& x = i.operand(k)->shape();
    if (!x.IsArray() || !x.IsStatic() || (x.rank() != i.shape().rank() && !x.IsScalar())) return false;
  }
  return true;
}

bool IsReduced(const Instruction& reduce, int64_t d) {
  const Dims& dims = reduce.dimensions();
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

Order OrderAfterReduce(const Instruction& reduce, const Order& order) {
  Dims rank_of(order.size(), 0);  // the result's number of an operand's dimension
  int64_t kept = 0;
  for (size_t d = 0; d < order.size(); ++d)
    if (!IsReduced(reduce, static_cast<int64_t>(d))) rank_of[d] = kept++;
  Order result;
  for (int64_t d : order)
    if (!IsReduced(reduce, d)) result.push_back(rank_of[static_cast<size_t>(d)]);
  return result;
}

// Reduced dimensions stay behind the one that they are behind, so that both are in order for what is broadcast along
// others; those at either end stay there.
Order OrderBeforeReduce(const Instruction& reduce, const Order& result) {
  const int64_t rank = reduce.operand(0)->shape().rank();
  Dims kept;
  for (int64_t d = 0; d < rank; ++d)
    if (!IsReduced(reduce, d)) kept.push_back(d);
  if (kept.empty()) return Order();
  Order order;
  for (int64_t d = 0; d < kept.front(); ++d) order.push_back(d);
  for (int64_t n : result) {
    order.push_back(kept[static_cast<size_t>(n)]);
    const bool last = n + 1 == static_cast<int64_t>(kept.size());
    for (int64_t d = kept[static_cast<size_t>(n)] + 1; !last && d < kept[static_cast<size_t>(n) + 1]; ++d)
      order.push_back(d);
  }
  for (int64_t d = kept.back() + 1; d < rank; ++d) order.push_back(d);
  return order;
}

// Whether the innermost dimension of those with elements is summed.
bool ReducesRows(const Instruction& reduce, const Order& order) {
  for (size_t n = order.size(); n-- > 0;)
    if (reduce.operand(0)->shape().dim(order[n]) != 1) return IsReduced(reduce, order[n]);
  return false;
}

bool MayReduceIn(const Instruction& reduce, const Order& order) {
  Order as_is(order.size());
  for (size_t d = 0; d < order.size(); ++d) as_is[d] = static_cast<int64_t>(d);
  return !ReducesRows(reduce, as_is) || ReducesRows(reduce, order) || reduce.operand(0)->use_count() == 1;
}

bool IsProduct(const Instruction& i) {
  return i.op() == Op::Dot && i.operand_count() == 2 && IsPlain(i) && IsPlain(*i.operand(0)) && IsPlain(*i.operand(1));
}

// transpose(dot) by this order is the dot with its sides exchanged.
bool ExchangesSides(const Instruction& dot, const Order& order) {
  const DotAttrs& a = dot.attrs<DotAttrs>();
  const int64_t batch = static_cast<int64_t>(a.lhs_batch.size()), rank = dot.shape().rank();
  const int64_t lhs = dot.operand(0)->shape().rank() - batch - static_cast<int64_t>(a.lhs_contracting.size());
  const int64_t rhs = rank - batch - lhs;
  for (int64_t d = 0; d < rank; ++d)
    if (order[static_cast<size_t>(d)] != (d < batch ? d : d < batch + rhs ? d + lhs : d - rhs)) return false;
  return lhs > 0 && rhs > 0;
}

// The dot reads operand `k` in this order as well as it does now.
bool TakesOperandIn(const Instruction& dot, int64_t k, const Order& order) {
  if (!IsProduct(dot)) return false;
  DotSides sides = SidesOf(dot);
  return FoldTranspose(InversePermutation(order), Permuted(dot.operand(k)->shape(), order), sides,
                       static_cast<size_t>(k));
}

// ---- regions --------------------------------------------------------------------------------------------------------

enum class Kind : uint8_t {
  Computed,  // by an instruction of the region
  Product,   // a dot, in either order
  Undone,    // a transpose that its other order undoes
  Given,     // as it is
};

struct Value {
  Instruction* i;
  Kind kind;
  Order order;          // that it has if it chooses 1
  Order operand_order;  // that its operands have then
  int node = -1;
};

class Region {
 public:
  // Of everything that can have the order that `seed` has in `order`.
  Region(Instruction* seed, const Order& order) {
    Add(seed, order);
    for (size_t n = 0; n < values_.size(); ++n) Spread(n);
  }

  bool Improves() {
    AddCosts();
    constexpr int64_t kLeastGain = 16;  // parts of what it costs: less is gained where parts of a row move than is lost
    const int64_t before = CostAsItIs();
    return cut_.Solve() < before - before / kLeastGain;
  }
  Status Apply();

  // Transposes whose proposals this region has considered.
  template <class Fn>
  void ForEachTranspose(Fn fn) const {
    for (const Value& v : values_) {
      if (v.kind == Kind::Undone) fn(v.i, /*from=*/true);
      if (v.kind == Kind::Computed || v.kind == Kind::Product)
        for (const Use& use : v.i->uses())
          if (IsMatching(v, *use.user)) fn(use.user, /*from=*/false);
    }
  }

 private:
  static bool IsMatching(const Value& v, const Instruction& user) {
    return user.op() == Op::Transpose && user.dimensions() == v.order && IsPlain(user);
  }
  // Is a transpose read by broadcasts alone, which find elements in one order as in another?
  static bool IsForBroadcasts(const Instruction& transpose) {
    const auto is_broadcast = [](const Use& use) { return use.user->op() == Op::Broadcast; };
    return !transpose.IsRoot() && std::ranges::all_of(transpose.uses(), is_broadcast);
  }
  const Value* Find(const Instruction* i) const {
    const auto at = index_.find(i);
    return at == index_.end() ? nullptr : &values_[at->second];
  }

  void Add(Instruction* i, const Order& order);
  void Spread(size_t n);
  void AddCosts();
  void AddUses(const Value& v, int64_t cost);
  int64_t CostAsItIs() const;
  int64_t CostOf(const Value& v) const {
    return MovesNothing(v.i->shape(), v.order) ? 0 : SaturatingMultiply(2, v.i->shape().byte_size());
  }
  Instruction* InOrder(Builder& b, const Value& user, Instruction* x);
  Instruction* Rebuild(const Value& v);
  Status Redirect(const Value& v, const std::unordered_set<const Instruction*>& chosen);

  std::deque<Value> values_;  // as they were found
  std::unordered_map<const Instruction*, size_t> index_;
  MinimumCut cut_;
  std::unordered_map<const Instruction*, Instruction*> made_;  // values in their other order
};

void Region::Add(Instruction* i, const Order& order) {
  if (IsFree(*i) || index_.contains(i)) return;
  Value v{i, Kind::Given, order, {}};
  if (values_.size() < kMaxRegion && IsPlain(*i)) {
    if (i->op() == Op::Transpose && InversePermutation(i->dimensions()) == order) v.kind = Kind::Undone;
    if (KeepsOrder(*i)) {
      v.kind = Kind::Computed;
      v.operand_order = order;
    }
    if (IsReduction(*i)) {
      v.operand_order = OrderBeforeReduce(*i, order);
      if (MayReduceIn(*i, v.operand_order)) v.kind = Kind::Computed;
    }
    if (IsProduct(*i) && ExchangesSides(*i, order)) v.kind = Kind::Product;
  }
  index_.emplace(i, values_.size());
  values_.push_back(std::move(v));
}

void Region::Spread(size_t n) {
  const Value v = values_[n];
  if (v.kind == Kind::Given) return;
  if (v.kind == Kind::Computed)
    for (int64_t k = 0; k < (v.i->op() == Op::Reduce ? 1 : v.i->operand_count()); ++k)
      Add(v.i->operand(k), v.operand_order);
  if (IsIdentityPermutation(v.order)) return;  // whoever reads it sees no difference
  for (Instruction* user : v.i->users()) {
    if (values_.size() >= kMaxRegion || index_.contains(user)) continue;
    if (IsReduction(*user) && user->operand(0) == v.i) {
      if (!MayReduceIn(*user, v.order)) continue;
      index_.emplace(user, values_.size());
      values_.push_back({user, Kind::Computed, OrderAfterReduce(*user, v.order), v.order});
    } else if (KeepsOrder(*user)) {
      Add(user, v.order);
    }
  }
}

// What each user of `v` needs, and what that costs.
void Region::AddUses(const Value& v, int64_t cost) {
  int other = -1, same = -1;  // 0 unless somebody needs the order of 1, and the reverse
  bool fixed_zero = v.i->IsRoot(), fixed_one = false;
  for (const Use& use : v.i->uses()) {
    const Instruction& user = *use.user;
    const Value* u = Find(&user);
    if (u && u->kind == Kind::Computed) {
      if (IsReduction(user) && use.operand_number == 1) continue;  // a scalar
      if (same < 0) {
        same = cut_.AddNode();
        cut_.AddCost(same, v.node, cost);
      }
      cut_.AddCost(u->node, same, MinimumCut::kNever);
      if (u->operand_order != v.order) {  // needs a third order if it chooses 1
        cut_.AddCost(MinimumCut::kZero, u->node, cost);
        continue;
      }
      if (other < 0) {
        other = cut_.AddNode();
        cut_.AddCost(v.node, other, cost);
      }
      cut_.AddCost(other, u->node, MinimumCut::kNever);
    } else if (IsMatching(v, user)) {
      fixed_one |= !IsForBroadcasts(user);
    } else if (user.op() == Op::Transpose || user.op() == Op::Broadcast ||
               TakesOperandIn(user, use.operand_number, v.order)) {
      continue;  // costs the same either way
    } else {
      fixed_zero = true;
    }
  }
  if (fixed_zero) cut_.AddCost(MinimumCut::kZero, v.node, cost);
  if (fixed_one) cut_.AddCost(v.node, MinimumCut::kOne, cost);
}

void Region::AddCosts() {
  for (Value& v : values_)
    v.node = v.kind == Kind::Given ? MinimumCut::kZero : v.kind == Kind::Undone ? MinimumCut::kOne : cut_.AddNode();
  for (const Value& v : values_) AddUses(v, CostOf(v));
}

// Of the transposes that a choice of 0 everywhere keeps.
int64_t Region::CostAsItIs() const {
  int64_t cost = 0;
  for (const Value& v : values_) {
    const int64_t here = std::min(CostOf(v), MinimumCut::kMostCost);
    bool kept = v.kind == Kind::Undone && v.i->IsRoot();
    for (const Use& use : v.i->uses()) {
      if (v.kind == Kind::Undone)
        kept |= use.user->op() != Op::Transpose && use.user->op() != Op::Broadcast &&
                !TakesOperandIn(*use.user, use.operand_number, v.order);
      else
        kept |= IsMatching(v, *use.user) && !IsForBroadcasts(*use.user);
    }
    if (kept) cost += here;
  }
  return cost;
}

// ---- doing it -------------------------------------------------------------------------------------------------------

// Operand `x` of `user`, in the order that it needs.
Instruction* Region::InOrder(Builder& b, const Value& user, Instruction* x) {
  const Order& order = user.operand_order;
  if (x->shape().IsScalar()) return x;
  if (x->op() == Op::Broadcast && IsFree(*x)) {
    Dims positions;
    for (int64_t d : x->dimensions()) positions.push_back(PositionOf(order, d));
    return b.Broadcast(x->operand(0), Permuted(x->shape(), order).dims(), positions);
  }
  if (x->op() == Op::Iota && IsFree(*x))
    return b.Iota(Permuted(x->shape(), order), PositionOf(order, x->attrs<IotaAttrs>().dimension));
  const Value* v = Find(x);
  if (!v || v->order != order || (v->kind != Kind::Undone && !cut_.IsOne(v->node))) return b.Transpose(x, order);
  return v->kind == Kind::Undone ? x->operand(0) : made_.at(x);
}

// The instruction of a value that chose 1, with permuted dimensions.
Instruction* Region::Rebuild(const Value& v) {
  Builder b(v.i->parent());
  b.set_insert_before(v.i);
  b.set_metadata(v.i->shared_metadata());
  if (v.kind == Kind::Product) return b.Transpose(v.i, v.order);  // dot-canonicalizer exchanges the sides
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < v.i->operand_count(); ++k) operands.push_back(InOrder(b, v, v.i->operand(k)));
  if (!b.status().ok()) return nullptr;
  Dims positions;  // of dimensions that are named
  switch (v.i->op()) {
    case Op::Reduce:
      for (int64_t d : v.i->dimensions()) positions.push_back(PositionOf(v.operand_order, d));
      std::sort(positions.begin(), positions.end());
      return b.Reduce(operands[0], operands[1], positions, v.i->to_apply());
    case Op::Reverse:
    case Op::Concatenate:
      for (int64_t d : v.i->dimensions()) positions.push_back(PositionOf(v.order, d));
      return b.Make(v.i->op(), operands, DimensionsAttrs{positions}, {}, nullptr);
    case Op::Slice: {
      SliceAttrs attrs;
      for (int64_t d : v.order) attrs.slice.push_back(v.i->attrs<SliceAttrs>().slice[static_cast<size_t>(d)]);
      return b.Make(Op::Slice, operands, std::move(attrs), {}, nullptr);
    }
    case Op::Pad: {
      PadAttrs attrs;
      for (int64_t d : v.order) attrs.padding.push_back(v.i->attrs<PadAttrs>().padding[static_cast<size_t>(d)]);
      return b.Make(Op::Pad, operands, std::move(attrs), {}, nullptr);
    }
    default: {
      const Shape shape = Permuted(v.i->shape(), v.order);
      return b.Make(v.i->op(), operands, v.i->any_attrs(), {}, &shape);
    }
  }
}

// Whoever needs `v` as it was reads it transposed back; whoever wanted the other order reads what was made.
Status Region::Redirect(const Value& v, const std::unordered_set<const Instruction*>& chosen) {
  Instruction* fresh = made_.at(v.i);
  Computation* c = v.i->parent();
  if (v.kind == Kind::Product) c->MoveBefore(fresh, v.i->next());  // it is a transpose of the dot
  Builder b(c);
  b.set_metadata(v.i->shared_metadata());
  b.set_insert_before(v.kind == Kind::Product ? fresh->next() : v.i->next());
  Instruction* as_it_was = IsIdentityPermutation(v.order) ? fresh : nullptr;
  const auto back = [&] {
    if (!as_it_was) as_it_was = b.Transpose(fresh, InversePermutation(v.order));
    return as_it_was;
  };
  const std::vector<Use> uses(v.i->uses().begin(), v.i->uses().end());
  for (const Use& use : uses) {
    if (use.user == fresh || chosen.contains(use.user)) continue;
    if (IsMatching(v, *use.user))
      use.user->ReplaceAllUsesWith(fresh);
    else if (Instruction* x = back())
      use.user->SetOperand(use.operand_number, x);
  }
  if (v.i->IsRoot())
    if (Instruction* x = back()) c->set_root(x);
  return b.status();
}

Status Region::Apply() {
  std::unordered_set<const Instruction*> chosen, touched;
  Computation* c = values_.front().i->parent();
  for (const Value& v : values_) {
    touched.insert(v.i);
    for (const Use& use : v.i->uses())
      if (IsMatching(v, *use.user)) touched.insert(use.user);
    if (v.kind != Kind::Given && v.kind != Kind::Undone && cut_.IsOne(v.node)) chosen.insert(v.i);
  }
  std::vector<const Value*> ones;
  for (Instruction* i : c->instructions())  // operands before users
    if (chosen.contains(i)) ones.push_back(Find(i));
  for (const Value* v : ones) {
    Instruction* fresh = Rebuild(*v);
    if (!fresh) return Internal("layout-propagation cannot write %", v->i->name(), " in another order");
    made_.emplace(v->i, fresh);
  }
  for (const Value* v : ones) STROP_TRY(Redirect(*v, chosen));
  std::vector<Instruction*> dead;
  for (Instruction* i : c->instructions())
    if (touched.contains(i) && !i->IsParameter()) dead.push_back(i);
  for (size_t n = dead.size(); n-- > 0;)
    if (dead[n]->use_count() == 0 && !dead[n]->IsRoot() && !dead[n]->HasSideEffect()) c->Remove(dead[n]);
  return OkStatus();
}

struct LayoutPropagation final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t regions = 0;
    for (Computation* c : module.computations()) {
      std::vector<Instruction*> transposes;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Transpose && IsPlain(*i)) transposes.push_back(i);
      std::unordered_set<const Instruction*> proposed_to, proposed_from;
      for (Instruction* t : transposes)
        for (const bool from : {false, true}) {
          if (t->parent() != c || (t->use_count() == 0 && !t->IsRoot())) continue;
          if ((from ? proposed_from : proposed_to).contains(t)) continue;
          Region region(from ? t : t->operand(0), from ? InversePermutation(t->dimensions()) : t->dimensions());
          region.ForEachTranspose([&](const Instruction* known, bool known_from) {
            (known_from ? proposed_from : proposed_to).insert(known);
          });
          if (!region.Improves()) continue;
          STROP_TRY(region.Apply());
          ++regions;
        }
    }
    context.Count("layout-propagation.regions", regions);
    return regions > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLayoutPropagation() { return std::make_unique<LayoutPropagation>(); }

}  // namespace strop
