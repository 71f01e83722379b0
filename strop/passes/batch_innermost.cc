// Loops over batches of small matrices are computed with the batch innermost, so that lanes are members of the batch:
//
//   x: f32[64,6]  p: f32[64,6,6]                              x: f32[6,64]  p: f32[6,6,64]
//   dot(p, x), lhs_batch_dims={0}, rhs_batch_dims={0}    ->   reduce(multiply(p, broadcast(x))), dimensions={1}
//
// So are loops that sum short rows of what they carry (state-space models), whose lanes would have to be added up.
//
// What jax.vmap makes of a step over small matrices (filters, controllers, integrators) has products of a few elements
// a side, one behind the other in memory: a product alone is too short for vectors, and reading every so manieth
// element costs more than the arithmetic. From the products the batch's dimension is followed through everything that
// keeps its members apart, in both directions, and through the loop's state, which is transposed once in front of the
// loop and once behind it, and filled up to whole vectors with copies of the last member. What else needs a value as it
// was reads it transposed, in every trip: the pass does nothing where that is not little beside what the products read
// and write.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/trip_count.h"
#include "strop/ir/physical_shape.h"
#include "strop/passes/batch_dimension.h"
#include "strop/passes/effects.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kFewestMembers = 16;  // of a batch
constexpr int64_t kVector = 16;         // members; a batch of others is filled up
constexpr int64_t kWideVector = 64;     // of larger batches: sums are made of four vectors at a time
constexpr int64_t kMostRows = 12;       // and columns; products of larger matrices fill vectors by themselves
constexpr int64_t kFewestTerms = 4;     // of a row that is summed; shorter ones are taken apart in registers as fast
constexpr int64_t kMostTerms = 16;
constexpr int64_t kCostOfTransposes = 16;  // beside the products that are computed of as much
constexpr int64_t kThin = 4;               // of a product: rows, columns, or terms
constexpr int64_t kMostThick = 3;          // beside what is gained
constexpr int64_t kMostOfOneVector = 10;   // rows, columns and terms of others
constexpr int64_t kMostBytesOfThick = 512 << 10;
constexpr int64_t kFewestTrips = 2;
constexpr int64_t kEnoughTrips = 8;  // to pay for the transposes around the loop
constexpr int64_t kCostAround = 8;   // of these, beside what fewer trips gain

bool IsPlain(const Instruction& i) {
  return i.shape().IsArray() && i.shape().IsStatic() && !i.HasControlEdges() && (!i.sharding() || i.IsParameter());
}

// The batch's dimension in the operands, if that of the result is `d`, and a product is one of small matrices.
std::optional<Dims> BatchOf(const Instruction& i, int64_t d) {
  std::optional<Dims> dims = BatchDimsOfOperands(i, d);
  if (!dims || i.op() != Op::Dot) return dims;
  for (int64_t k = 0; k < 2; ++k) {
    const Shape& shape = i.operand(k)->shape();
    const Dims& batches = k == 0 ? i.attrs<DotAttrs>().lhs_batch : i.attrs<DotAttrs>().rhs_batch;
    for (int64_t n = 0; n < shape.rank(); ++n)
      if (n != (*dims)[static_cast<size_t>(k)] && !Contains(batches, n) && shape.dim(n) > kMostRows)
        return std::nullopt;
  }
  return dims;
}

// A batch of products of small matrices.
bool IsSeed(const Instruction& i) {
  return i.op() == Op::Dot && IsPlain(i) && i.attrs<DotAttrs>().lhs_batch.size() == 1 &&
         i.shape().dim(0) >= kFewestMembers && BatchOf(i, 0);
}

// One element of each matrix of a batch, or of each short vector (linear-algebra-expander, x[0]): gives the dimension
// of the batch, the last one in front of the matrices.
std::optional<int64_t> BatchOfElements(const Instruction& i) {
  if (i.op() != Op::Slice || !IsPlain(i)) return std::nullopt;
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  int64_t d = from.rank() - 1;
  while (d >= 0 && to.dim(d) == 1 && from.dim(d) <= kMostRows) --d;
  if (d < 0 || d == from.rank() - 1 || from.dim(d) < kFewestMembers) return std::nullopt;
  for (int64_t k = 0; k <= d; ++k)
    if (from.dim(k) != to.dim(k)) return std::nullopt;
  return d;
}

// Sums, or other reductions, of rows too short for vectors (the state of a state-space model): gives the dimension of
// the result that is the batch.
std::optional<int64_t> BatchOfShortRows(const Instruction& i) {
  if (i.op() != Op::Reduce || i.operand_count() != 2 || !IsPlain(i) || i.shape().rank() == 0) return std::nullopt;
  const Shape& from = i.operand(0)->shape();
  const int64_t kept = i.shape().rank();
  int64_t terms = 1;
  for (int64_t d : i.dimensions()) {
    if (d < kept) return std::nullopt;
    terms *= from.dim(d);
  }
  if (terms < kFewestTerms || terms > kMostTerms || i.shape().dim(kept - 1) < kFewestMembers) return std::nullopt;
  return kept - 1;
}

// One loop.
class Turner {
 public:
  // Of so many trips, as far as is known.
  Turner(Instruction* loop, int64_t trips)
      : loop_(loop), trips_(trips), body_(loop->body()), condition_(loop->condition()), next_(body_->root()) {}

  bool Run() {
    for (Instruction* i : body_->instructions()) {
      const std::optional<int64_t> d = IsSeed(*i) ? std::optional<int64_t>(0) : BatchOfElements(*i);
      if (d) Start(i, *d);
    }
    const bool of_rows = found_.empty();
    if (of_rows)
      for (Instruction* i : body_->instructions())
        if (const std::optional<int64_t> d = BatchOfShortRows(*i)) Start(i, *d);
    if (found_.empty()) return false;
    const int64_t vector = of_rows || members_ <= 2 * kVector ? kVector : kWideVector;
    padded_ = (members_ + vector - 1) / vector * vector;
    for (size_t n = 0; n < found_.size(); ++n) Spread(found_[n]);
    FindTurnedState();
    if (!Pays()) return false;
    Rewrite();
    return true;
  }

 private:
  // Operands before users.
  std::vector<Instruction*> All() const {
    std::vector<Instruction*> all = body_->PostOrder();
    const std::vector<Instruction*> condition = condition_->PostOrder();
    all.insert(all.end(), condition.begin(), condition.end());
    return all;
  }

  // ---- which values have a batch, and where

  bool Has(const Instruction* i) const { return place_.contains(i); }
  int64_t StateRead(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0)->IsParameter() ? i->tuple_index() : -1;
  }

  // With the first of all, or with another one of its batch.
  void Start(Instruction* i, int64_t d) {
    if (found_.empty()) members_ = i->shape().dim(d);
    Add(i, d);
  }

  void Add(Instruction* i, int64_t d) {
    if (Has(i) || !IsPlain(*i) || i->shape().dim(d) != members_) return;
    const bool reads = StateRead(i) >= 0;
    if (!reads && !BatchOf(*i, d)) return;
    if (!reads && i->op() != Op::Iota && i->operand_count() == 0) return;
    place_.emplace(i, d);
    found_.push_back(i);
  }

  void Spread(Instruction* i) {
    const int64_t d = place_.at(i), state = StateRead(i);
    if (state >= 0) {
      Add(next_->operand(state), d);
      for (Instruction* read : Reads(state)) Add(read, d);
    } else {
      const Dims dims = *BatchOf(*i, d);
      for (size_t k = 0; k < dims.size(); ++k)
        if (dims[k] >= 0) Add(i->operand(static_cast<int64_t>(k)), dims[k]);
    }
    const std::vector<Use> uses(i->uses().begin(), i->uses().end());
    for (const Use& use : uses) {
      if (use.user == next_) {
        for (Instruction* read : Reads(use.operand_number)) Add(read, d);
      } else if (IsPlain(*use.user)) {
        for (int64_t to = 0; to < use.user->shape().rank(); ++to) {
          const std::optional<Dims> dims = BatchOf(*use.user, to);
          if (dims && (*dims)[use.operand_number] == d) Add(use.user, to);
        }
      }
    }
  }

  std::vector<Instruction*> Reads(int64_t k) const {
    std::vector<Instruction*> reads;
    for (const Computation* c : {body_, condition_})
      for (const Use& use : c->parameter(0)->uses())
        if (use.user->tuple_index() == k) reads.push_back(use.user);
    return reads;
  }

  // Elements of the state that have the batch where they are read, or where they are made if nothing reads them.
  void FindTurnedState() {
    turned_.assign(static_cast<size_t>(next_->operand_count()), -1);
    for (int64_t k = 0; k < next_->operand_count(); ++k) {
      const std::vector<Instruction*> reads = Reads(k);
      const Instruction* from = reads.empty() ? next_->operand(k) : reads[0];
      if (!Has(from)) continue;
      const int64_t d = place_.at(from);
      const auto agrees = [&](const Instruction* read) { return Has(read) && place_.at(read) == d; };
      if (std::all_of(reads.begin(), reads.end(), agrees)) turned_[static_cast<size_t>(k)] = d;
    }
    for (Instruction* read : found_)
      if (const int64_t k = StateRead(read); k >= 0 && turned_[static_cast<size_t>(k)] < 0) place_.erase(read);
  }

  // ---- what it costs

  // The dimension of operand k of `user` that is its batch; -1: the user reads it as it is.
  int64_t BatchDim(const Instruction& user, int64_t k) const {
    if (&user == next_) return turned_[static_cast<size_t>(k)];
    if (!Has(&user) || StateRead(&user) >= 0) return -1;
    return (*BatchOf(user, place_.at(&user)))[static_cast<size_t>(k)];
  }

  // By transposes in every trip. Of constants they are computed at once.
  int64_t BytesTransposed() const {
    int64_t bytes = 0;
    for (const Instruction* i : All()) {
      if (!i->shape().IsArray() || i->shape().rank() < 2 || i->IsConstant()) continue;
      const int64_t place = Has(i) ? place_.at(i) : -1;
      const bool is_free = place < 0 && i->op() == Op::Broadcast && i->operand(0)->shape().IsScalar();
      const bool moves = std::any_of(i->uses().begin(), i->uses().end(),
                                     [&](const Use& use) { return BatchDim(*use.user, use.operand_number) != place; });
      if (moves && !is_free) bytes = SaturatingAdd(bytes, i->shape().byte_size());
    }
    return bytes;
  }

  // Rows, columns and terms of each product: the least and the most of them.
  std::pair<int64_t, int64_t> SidesOf(const Instruction& dot) const {
    const DotAttrs& a = dot.attrs<DotAttrs>();
    const Dims batch = *BatchOf(dot, place_.at(&dot));
    int64_t sides[] = {1, 1}, summed = 1;
    for (int64_t k = 0; k < 2; ++k) {
      const Shape& shape = dot.operand(k)->shape();
      const Dims& contracting = k == 0 ? a.lhs_contracting : a.rhs_contracting;
      for (int64_t d = 0; d < shape.rank(); ++d)
        if (d != batch[static_cast<size_t>(k)] && !Contains(contracting, d) &&
            !Contains(k == 0 ? a.lhs_batch : a.rhs_batch, d))
          sides[k] *= shape.dim(d);
    }
    for (int64_t d : a.lhs_contracting) summed *= dot.operand(0)->shape().dim(d);
    return std::minmax({sides[0], sides[1], summed});
  }

  // Is what thin products, and slices of elements that lie apart, read and write much beside the rest? Products of
  // which all sides are longer the library computes as well, member by member, and large ones better than a single
  // vector does; where there are many, their rows should not leave the cache between the sums that read them.
  bool Pays() const {
    int64_t gained = 0, thick = 0;
    for (const Instruction* i : found_) {
      if (!Has(i)) continue;
      if (i->op() != Op::Dot) {
        if (BatchOfElements(*i) == place_.at(i)) gained = SaturatingAdd(gained, i->shape().byte_size());
        if (BatchOfShortRows(*i) == place_.at(i)) gained = SaturatingAdd(gained, i->operand(0)->shape().byte_size());
        continue;
      }
      int64_t bytes = i->shape().byte_size();
      for (int64_t k = 0; k < 2; ++k) bytes = SaturatingAdd(bytes, i->operand(k)->shape().byte_size());
      const auto [least, most] = SidesOf(*i);
      const bool is_thick = least > kThin;
      if (is_thick && (i->shape().byte_size() > kMostBytesOfThick || (padded_ == kVector && most > kMostOfOneVector)))
        return false;
      int64_t& sum = is_thick ? thick : gained;
      sum = SaturatingAdd(sum, bytes);
    }
    return SaturatingMultiply(BytesTransposed(), kCostOfTransposes) <= gained &&
           thick <= SaturatingMultiply(gained, kMostThick) &&
           (trips_ >= kEnoughTrips ||
            SaturatingMultiply(BytesTransposedAround(), kCostAround) <= SaturatingMultiply(gained, trips_));
  }

  // By transposes in front of the loop and behind it.
  int64_t BytesTransposedAround() const {
    int64_t bytes = 0;
    for (const Use& use : loop_->uses())
      if (use.user->op() == Op::GetTupleElement && turned_[static_cast<size_t>(use.user->tuple_index())] >= 0)
        bytes = SaturatingAdd(bytes, use.user->shape().byte_size());
    for (size_t k = 0; k < turned_.size(); ++k) {
      const Instruction* initial = loop_->operand(0)->operand(static_cast<int64_t>(k));
      if (turned_[k] >= 0) bytes = SaturatingAdd(bytes, initial->shape().byte_size());
    }
    return bytes;
  }

  // ---- doing it

  // `x` with dimension `d` innermost, and back.
  Instruction* Turned(Builder& b, Instruction* x, int64_t d) const {
    const int64_t rank = x->shape().rank();
    x = b.Transpose(x, WithInnermost(rank, d));
    if (padded_ == members_) return x;
    Dims start(static_cast<size_t>(rank), 0), limit(x->shape().dims().begin(), x->shape().dims().end());
    start.back() = members_ - 1;
    Instruction* last = b.Slice(x, start, limit, Dims(static_cast<size_t>(rank), 1));
    Int64Vector one, others;
    Dims to;
    for (int64_t k = 0; k + 1 < rank; ++k) {
      one.push_back(x->shape().dim(k));
      to.push_back(k);
    }
    others = one;
    others.push_back(padded_ - members_);
    last = b.Broadcast(b.Reshape(last, one), others, to);
    return b.Make(Op::Concatenate, {x, last}, DimensionsAttrs{{rank - 1}});
  }
  Instruction* Back(Builder& b, Instruction* x, int64_t d) const {
    const int64_t rank = x->shape().rank();
    if (padded_ != members_) {
      Dims limit(x->shape().dims().begin(), x->shape().dims().end());
      limit.back() = members_;
      x = b.Slice(x, Dims(static_cast<size_t>(rank), 0), limit, Dims(static_cast<size_t>(rank), 1));
    }
    return b.Transpose(x, InversePermutation(WithInnermost(rank, d)));
  }

  // `x` with dimension `d` innermost, or as it was (d < 0), before its users.
  Instruction* In(Instruction* x, int64_t d) {
    const int64_t place = Has(x) ? place_.at(x) : -1;
    if (place == d && d >= 0) return made_.at(x);
    if (place < 0 && d < 0) return x;
    const auto key = std::make_pair(x, d);
    const auto known = std::find_if(moved_.begin(), moved_.end(), [&](const auto& m) { return m.first == key; });
    if (known != moved_.end()) return known->second;
    Builder b(x->parent());
    b.set_insert_before(x->next());
    b.set_metadata(x->shared_metadata());
    Instruction* moved = d < 0 ? Back(b, made_.at(x), place) : Turned(b, place < 0 ? x : In(x, -1), d);
    moved_.push_back({key, moved});
    return moved;
  }

  void Rewrite() {
    const Shape shape = TurnState();
    const std::vector<Instruction*> all = All();
    for (Computation* c : {body_, condition_}) c->parameter(0)->set_shape(shape);
    for (Instruction* i : all) {
      if (!Has(i)) continue;
      Builder b(i->parent());
      b.set_insert_before(i->next());
      b.set_metadata(i->shared_metadata());
      const int64_t k = StateRead(i);
      Instruction* made = k >= 0 ? b.GetTupleElement(i->operand(0), k)
                                 : WithBatchInnermost(b, *i, place_.at(i), padded_,
                                                      [&](int64_t n) { return In(i->operand(n), BatchDim(*i, n)); });
      made_.emplace(i, made);
    }
    for (Instruction* i : all) {
      if (!Has(i)) continue;
      const std::vector<Use> uses(i->uses().begin(), i->uses().end());
      for (const Use& use : uses)
        if (use.user != next_ && !Has(use.user) && !IsOurs(use.user))
          use.user->SetOperand(use.operand_number, In(i, -1));
    }
    TurnNext(shape);
    for (size_t n = all.size(); n-- > 0;)
      if (Has(all[n]) && all[n]->use_count() == 0) all[n]->parent()->Remove(all[n]);
    for (Computation* c : {body_, condition_, loop_->parent()}) c->SortTopologically();
  }
  bool IsOurs(const Instruction* i) const {
    return std::any_of(moved_.begin(), moved_.end(), [&](const auto& m) { return m.second == i; });
  }

  // Transposes in front of the loop and behind it; returns the state's new shape.
  Shape TurnState() {
    Builder before(loop_->parent()), after(loop_->parent());
    before.set_insert_before(loop_);
    before.set_metadata(loop_->shared_metadata());
    after.set_insert_before(loop_->next());
    after.set_metadata(loop_->shared_metadata());
    std::vector<Instruction*> initial;
    for (size_t k = 0; k < turned_.size(); ++k) {
      Instruction* x = loop_->operand(0)->operand(static_cast<int64_t>(k));
      initial.push_back(turned_[k] < 0 ? x : Turned(before, x, turned_[k]));
    }
    const std::vector<Use> uses(loop_->uses().begin(), loop_->uses().end());
    loop_->SetOperand(0, before.Tuple(initial));
    loop_->set_shape(loop_->operand(0)->shape());
    for (const Use& use : uses) {
      const int64_t k = use.user->tuple_index(), d = turned_[static_cast<size_t>(k)];
      if (d < 0) continue;
      use.user->ReplaceAllUsesWith(Back(after, after.GetTupleElement(loop_, k), d));
    }
    for (const Use& use : uses)
      if (use.user->use_count() == 0 && !use.user->IsRoot()) loop_->parent()->Remove(use.user);
    return loop_->shape();
  }

  void TurnNext(const Shape& shape) {
    std::vector<Instruction*> next;
    for (int64_t k = 0; k < next_->operand_count(); ++k)
      next.push_back(In(next_->operand(k), turned_[static_cast<size_t>(k)]));
    Instruction* root = body_->Add(Op::Tuple, shape, next, NoAttrs{});
    root->CopyExtrasFrom(*next_);
    body_->set_root(root);
    body_->Remove(next_);
  }

  Instruction* loop_;
  int64_t trips_;
  Computation *body_, *condition_;
  Instruction* next_;
  int64_t members_ = 0, padded_ = 0;
  std::unordered_map<const Instruction*, int64_t> place_;  // of the batch among the dimensions
  std::vector<Instruction*> found_;                        // as they were
  Dims turned_;                                            // of the state's elements the batch's dimension, or -1
  std::unordered_map<const Instruction*, Instruction*> made_;
  std::vector<std::pair<std::pair<Instruction*, int64_t>, Instruction*>> moved_;  // transposes
};

// The trips of a loop that can be turned, at least; 0: it cannot be.
int64_t FitTrips(const Instruction& loop, const std::vector<int32_t>& callers) {
  if (!HasExplicitState(loop, callers)) return 0;
  const std::optional<Counter> counter = FindCounter(loop);
  return !counter ? kEnoughTrips : counter->trips >= kFewestTrips ? counter->trips : 0;
}

struct BatchInnermost final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t turned = 0;
    const std::vector<int32_t> callers = CallerCounts(module);
    for (Computation* c : module.PostOrder()) {  // inner loops first
      std::vector<std::pair<Instruction*, int64_t>> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While)
          if (const int64_t trips = FitTrips(*i, callers); trips > 0) loops.emplace_back(i, trips);
      for (const auto& [loop, trips] : loops) turned += Turner(loop, trips).Run();
    }
    context.Count("batch-innermost.loops", turned);
    return turned > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeBatchInnermost() { return std::make_unique<BatchInnermost>(); }

}  // namespace strop
