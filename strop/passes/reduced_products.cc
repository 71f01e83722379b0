// Products whose short rows are reduced at once are computed transposed, so that lanes are results of the reduction:
//
//   %d = f32[8192,64] dot(f32[8192,16] %x, f32[64,16] %c)     ->   %d = f32[64,8192] dot(%c, %x)
//   %s = f32[8192,64] subtract(broadcast(%n), %d)                  %s = f32[64,8192] subtract(broadcast(%n), %d)
//   reduce(%s, ...), dimensions={1}                                reduce(%s, ...), dimensions={0}
//
// Along short rows the lanes of a vector would have to be combined for every result (nearest neighbours, classes of
// small heads); along columns they never meet. Everything between the product and the reduction is made anew, so it may
// have no other use.
//
// Where the nearest is chosen by products of few terms, these become sums of pairs, which the kernel that chooses
// computes itself (analysis/pairwise.h): in front of a choice, the product would take longer to write and read than to
// compute.
//
//   %d = f32[8192,64] dot(f32[8192,16] %x, f32[64,16] %c)     ->   %d = f32[8192,64] reduce(f32[8192,64,16] %p),
//   reduce(%d, %numbers, ...), dimensions={1}                        dimensions={2}, of %p, the pairs' products
//
// What else is reduced of the same rows (the least distances themselves, for their sum) joins the choice: one reduction
// gives both, and nobody else reads the product.
#include <algorithm>
#include <unordered_map>

#include "strop/analysis/pairwise.h"
#include "strop/ir/builder.h"
#include "strop/passes/joined_reductions.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kLongestRow = 256;
constexpr int64_t kFewestRows = 512;
constexpr int64_t kLongestSum = 256;      // of longer ones, the product takes the time
constexpr int64_t kMostTerms = 16;        // of sums of pairs
constexpr size_t kMostInstructions = 32;  // between product and reduction

class Turner {
 public:
  explicit Turner(Instruction* reduce) : reduce_(reduce), rows_(reduce->operand(0)->shape()) {}

  bool Run() {
    const int64_t inputs = reduce_->operand_count() / 2;
    if (reduce_->HasControlEdges() || reduce_->dimensions().size() != 1 || rows_.rank() != 2 ||
        reduce_->dimensions()[0] != 1)
      return false;
    if (!rows_.IsStatic() || rows_.dim(1) > kLongestRow || rows_.dim(1) < 2 || rows_.dim(0) < kFewestRows) return false;
    for (int64_t k = 0; k < inputs; ++k)
      if (!Find(reduce_->operand(k))) return false;
    if (products_ == 0) return false;
    if (inputs > 1) siblings_ = Siblings();
    if (IsSeen()) {
      siblings_.clear();
      return false;
    }
    for (Instruction* sibling : siblings_) Join(sibling);
    if (inputs > 1 && products_ == 1 && SumPairs()) return true;
    return TurnAll() || !siblings_.empty();
  }
  // What has joined another reduction.
  const std::vector<Instruction*>& siblings() const { return siblings_; }

 private:
  bool TurnAll() {
    const int64_t inputs = reduce_->operand_count() / 2;
    Builder b(reduce_->parent());
    b.set_insert_before(reduce_);
    std::vector<Instruction*> operands;
    for (Instruction* i : found_) Turn(i, b);
    for (int64_t k = 0; k < inputs; ++k) operands.push_back(turned_.at(reduce_->operand(k)));
    for (int64_t k = 0; k < inputs; ++k) operands.push_back(reduce_->operand(inputs + k));
    Computation* const called[] = {reduce_->to_apply()};
    if (reduce_->has_metadata()) b.set_metadata(reduce_->shared_metadata());
    Instruction* made = b.Make(Op::Reduce, operands, DimensionsAttrs{{0}}, called, nullptr);
    if (!b.status().ok()) return false;
    reduce_->parent()->Replace(reduce_, made);
    return true;
  }

  // Other reductions of what is chosen from, if only elements of the choice are read.
  std::vector<Instruction*> Siblings() const {
    std::vector<Instruction*> siblings;
    const auto moves = [](const Instruction* i) { return i->op() == Op::Constant || i->op() == Op::Iota; };
    const auto is_element = [](const Use& use) { return use.user->op() == Op::GetTupleElement; };
    if (reduce_->IsRoot() || !std::all_of(reduce_->uses().begin(), reduce_->uses().end(), is_element)) return siblings;
    for (int64_t k = 1; k < reduce_->operand_count(); ++k)  // they must be able to stand before the first of both
      if (!moves(reduce_->operand(k))) return siblings;
    for (const Use& use : reduce_->operand(0)->uses()) {
      Instruction* other = use.user;
      if (other != reduce_ && other->op() == Op::Reduce && other->operand_count() == 2 && use.operand_number == 0 &&
          other->dimensions() == reduce_->dimensions() && !other->HasControlEdges() && !other->IsRoot() &&
          moves(other->operand(1)))
        siblings.push_back(other);
    }
    return siblings;
  }

  static bool Precedes(const Instruction* x, const Instruction* y) {
    while (y && y != x) y = y->prev();
    return y != nullptr;
  }

  // One reduction in the place of reduce_ and the sibling, whose result is the last element.
  void Join(Instruction* sibling) {
    const int64_t n = reduce_->operand_count() / 2;
    Instruction* first = Precedes(sibling, reduce_) ? sibling : reduce_;
    Instruction* const both[] = {reduce_, sibling};
    for (const Instruction* i : both)
      for (Instruction* operand : i->operands())
        if (!Precedes(operand, first)) reduce_->parent()->MoveBefore(operand, first);
    Instruction* joined = JoinedReduction(both, first);
    Builder b(reduce_->parent());
    b.set_insert_before(first);
    const std::vector<Use> uses(reduce_->uses().begin(), reduce_->uses().end());
    for (const Use& use : uses) use.user->SetOperand(0, joined);
    reduce_->parent()->Replace(sibling, b.GetTupleElement(joined, n));
    reduce_->parent()->Remove(reduce_);
    reduce_ = joined;
  }

  // Fills found_ with what computes `root`, operands first. False: something cannot be turned.
  bool Find(Instruction* root) {
    std::vector<std::pair<Instruction*, int64_t>> stack = {{root, 0}};  // with the next operand to look at
    while (!stack.empty()) {
      auto& [i, next] = stack.back();
      if (turned_.contains(i)) {
        stack.pop_back();
        continue;
      }
      if (next == 0 && !MayTurn(*i)) return false;
      if (IsElementwise(i->op()) && next < i->operand_count()) {
        Instruction* operand = i->operand(next++);
        stack.push_back({operand, 0});
        continue;
      }
      turned_[i] = nullptr;
      found_.push_back(i);
      products_ += i->op() == Op::Dot;
      if (found_.size() > kMostInstructions) return false;
      stack.pop_back();
    }
    return true;
  }

  bool MayTurn(const Instruction& i) const {
    if (i.HasControlEdges() || !i.shape().IsArray() || !i.shape().SameDims(rows_)) return false;
    if (i.op() == Op::Iota || i.op() == Op::Broadcast) return true;
    if (i.op() == Op::Dot)
      return i.operand_count() == 2 && i.attrs<DotAttrs>().lhs_batch.empty() && i.operand(0)->shape().rank() == 2 &&
             i.operand(1)->shape().rank() == 2 && i.operand(0)->shape().num_elements() / rows_.dim(0) <= kLongestSum;
    return IsElementwise(i.op());
  }

  // Makes the product a sum of pairs in place.
  bool SumPairs() {
    Instruction* dot = *std::find_if(found_.begin(), found_.end(), [](Instruction* i) { return i->op() == Op::Dot; });
    const DotAttrs& a = dot->attrs<DotAttrs>();
    const ElementType type = dot->shape().type();
    if ((type != ElementType::F32 && type != ElementType::F64) || a.lhs_contracting.size() != 1) return false;
    if (dot->operand(0)->shape().type() != type || dot->operand(1)->shape().type() != type) return false;
    const int64_t terms = dot->operand(0)->shape().dim(a.lhs_contracting[0]);
    if (terms < 2 || terms > kMostTerms) return false;
    const Int64Vector pairs = {rows_.dim(0), rows_.dim(1), terms};
    Builder b(dot->parent());
    b.set_insert_before(dot);
    if (dot->has_metadata()) b.set_metadata(dot->shared_metadata());
    const auto spread = [&](int64_t k, int64_t contracting) {
      Instruction* x = dot->operand(k);
      if (contracting == 0) x = b.Transpose(x, {1, 0});
      return b.Broadcast(x, pairs, {k, 2});
    };
    Instruction* product = b.Make(Op::Multiply, {spread(0, a.lhs_contracting[0]), spread(1, a.rhs_contracting[0])});
    Computation* add = dot->module()->AddComputation("sum");
    const Shape scalar = Shape::Array(type, {});
    Instruction *x = add->AddParameter(0, scalar), *y = add->AddParameter(1, scalar);
    add->set_root(add->Add(Op::Add, scalar, {x, y}));
    Instruction* sum = b.Reduce(product, b.Scalar(type, 0), {2}, add);
    if (!b.status().ok()) return false;
    dot->ReplaceAllUsesWith(sum);
    const bool short_sum = IsShortReduce(*sum);  // asks who uses it
    if (!short_sum) sum->ReplaceAllUsesWith(dot);
    sum->parent()->Remove(short_sum ? dot : sum);
    return short_sum;
  }

  // Does anything else read what is turned?
  bool IsSeen() const {
    return std::any_of(found_.begin(), found_.end(), [&](const Instruction* i) {
      if (i->op() == Op::Iota || i->op() == Op::Broadcast) return false;
      return i->IsRoot() || std::any_of(i->uses().begin(), i->uses().end(), [&](const Use& use) {
               return use.user != reduce_ && !turned_.contains(use.user) &&
                      std::find(siblings_.begin(), siblings_.end(), use.user) == siblings_.end();
             });
    });
  }

  void Turn(Instruction* i, Builder& b) {
    if (i->has_metadata()) b.set_metadata(i->shared_metadata());
    const Int64Vector dims = {rows_.dim(1), rows_.dim(0)};
    Instruction* made = nullptr;
    if (i->op() == Op::Iota) {
      made = b.Iota(Shape::Array(i->shape().type(), dims), 1 - i->attrs<IotaAttrs>().dimension);
    } else if (i->op() == Op::Broadcast) {
      Dims to = i->dimensions();
      for (int64_t& d : to) d = 1 - d;
      Instruction* operand = i->operand(0);
      if (to.size() == 2 && to[0] > to[1]) {
        operand = b.Transpose(operand, {1, 0});
        std::swap(to[0], to[1]);
      }
      made = b.Broadcast(operand, dims, to);
    } else if (i->op() == Op::Dot) {
      DotAttrs attrs = i->attrs<DotAttrs>();
      std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
      std::reverse(attrs.operand_precision.begin(), attrs.operand_precision.end());
      made = b.Dot(i->operand(1), i->operand(0), attrs, i->shape().type());
    } else {
      std::vector<Instruction*> operands;
      for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(turned_.at(i->operand(k)));
      Shape shape = i->shape().WithoutLayout();
      made = reduce_->parent()->AddClone(*i, Shape::Array(shape.type(), dims), operands, nullptr, reduce_);
    }
    turned_[i] = made;
  }

  Instruction* reduce_;
  std::vector<Instruction*> siblings_;
  const Shape rows_;
  std::vector<Instruction*> found_;  // operands first
  std::unordered_map<const Instruction*, Instruction*> turned_;
  int products_ = 0;
};

struct ReducedProducts final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t turned = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> reduces;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Reduce && i->operand(0)->shape().IsArray()) reduces.push_back(i);
      std::vector<const Instruction*> gone;
      for (Instruction* reduce : reduces) {
        if (std::find(gone.begin(), gone.end(), reduce) != gone.end()) continue;
        Turner turner(reduce);
        turned += turner.Run();
        gone.insert(gone.end(), turner.siblings().begin(), turner.siblings().end());
      }
    }
    context.Count("reduced-products.turned", turned);
    return turned > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeReducedProducts() { return std::make_unique<ReducedProducts>(); }

}  // namespace strop
