// Sums of products that a loop adds up, one a trip, are made one product behind it:
//
//   body: %x = f32[5,200] reshape(dynamic-slice(%xs, %i, 0, 0))     body: %g = ...; gs[i] = %g
//         %g = f32[5,30] ...                                   ->   behind the loop:
//         %d = f32[200,30] dot(%x, %g), contracting {0}, {0}        %d = f32[200,30] dot(%xs, %gs), contracting
//         sum = sum + %d                                                 {0,1}, {0,1};  sum = sum + %d
//
// So are gradients of weights made in every trip of a recurrent net's way back: a product of a few rows by a few
// columns that writes, and adds, as much as the weights are. What a trip puts aside instead is as small as its state;
// what it reads from a stack of all trips lies there already. The order of the sum changes, as where loops are split
// (loop_splitter.cc).
#include <algorithm>
#include <map>

#include "strop/analysis/loop_position.h"
#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kFewestTrips = 8;
constexpr int64_t kMostTerms = 128;                     // of a trip's sums: more are multiplied as well in the loop
constexpr int64_t kLeastSum = 512;                      // elements
constexpr int64_t kMostStackBytes = int64_t{64} << 20;  // of all trips

class Sinker {
 public:
  Sinker(Instruction* loop, const Counter& counter)
      : loop_(loop), body_(loop->body()), root_(body_->root()), counter_(counter) {}

  bool Run() {
    for (int64_t k = 0; k < root_->operand_count(); ++k)
      if (std::optional<Product> product = ProductOf(k)) products_.push_back(std::move(*product));
    if (products_.empty()) return false;
    Extend();
    for (Product& product : products_) Multiply(product);
    return true;
  }

 private:
  // What is stacked, or was by another: the values of all trips.
  struct Side {
    const Instruction* stack = nullptr;  // an element of the state that never changes; null: `value` is put aside
    Instruction* value = nullptr;
    LoopPosition at;
    Instruction* position = nullptr;  // null: the counter
  };
  struct Product {
    int64_t element = 0;  // of the state
    Instruction* dot = nullptr;
    Side sides[2];
  };
  struct Stack {
    Instruction* value = nullptr;
    Instruction* position = nullptr;
    int64_t element = 0;
  };

  // The dimensions of an array of so many such arrays.
  static Int64Vector WithFirst(int64_t size, const Shape& shape) {
    Int64Vector dims = {size};
    for (int64_t d : shape.dims()) dims.push_back(d);
    return dims;
  }

  bool IsElement(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0) == body_->parameter(0);
  }
  bool NeverChanges(const Instruction* i) const { return IsElement(i) && root_->operand(i->tuple_index()) == i; }

  // Is the element read once, by the sum?
  bool IsReadOnce(int64_t element) const {
    int64_t reads = 0;
    for (const Computation* c : {loop_->condition(), body_})
      for (const Use& use : c->parameter(0)->uses())
        if (use.user->tuple_index() == element) reads += c == body_ ? use.user->use_count() : 2;
    return reads == 1;
  }

  // A slice of a stack, one a trip.
  std::optional<Side> SliceOf(Instruction* x) const {
    const Instruction* slice = x->op() == Op::Reshape ? x->operand(0) : nullptr;
    if (!slice || slice->op() != Op::DynamicSlice || !NeverChanges(slice->operand(0))) return std::nullopt;
    const Shape& all = slice->operand(0)->shape();
    if (all.rank() == 0 || all.dim(0) != counter_.trips ||
        all.num_elements() != counter_.trips * x->shape().num_elements())
      return std::nullopt;
    Int64Vector whole = all.dims();
    whole[0] = 1;
    if (WithFirst(1, x->shape()) != whole) return std::nullopt;
    const std::optional<LoopPosition> at = PositionOf(slice->operand(1), *body_->parameter(0), counter_);
    if (slice->shape().dims() != whole || !at || !VisitsAll(*at, counter_)) return std::nullopt;
    return Side{slice->operand(0), x, *at, slice->operand(1)};
  }

  std::optional<Product> ProductOf(int64_t element) const {
    Instruction* sum = root_->operand(element);
    if (sum->op() != Op::Add || sum->use_count() != 1 || !sum->shape().IsArray() || !IsReadOnce(element))
      return std::nullopt;
    const ElementType type = sum->shape().type();
    if (type != ElementType::F32 && type != ElementType::F64) return std::nullopt;
    for (int64_t k = 0; k < 2; ++k) {
      Instruction* dot = sum->operand(1 - k);
      const bool carries = IsElement(sum->operand(k)) && sum->operand(k)->tuple_index() == element;
      if (!carries || dot->op() != Op::Dot || dot->use_count() != 1 || dot->operand_count() != 2) continue;
      Product product{element, dot, {}};
      if (Suits(product)) return product;
    }
    return std::nullopt;
  }

  bool Suits(Product& product) const {
    const DotAttrs& a = product.dot->attrs<DotAttrs>();
    const Instruction* dot = product.dot;
    const ElementType type = dot->shape().type();
    int64_t terms = 1, stacked = 0;
    for (int64_t d : a.lhs_contracting) terms = SaturatingMultiply(terms, dot->operand(0)->shape().dim(d));
    if (!a.lhs_batch.empty() || terms > kMostTerms || dot->shape().num_elements() < kLeastSum) return false;
    for (int64_t k = 0; k < 2; ++k) {
      Instruction* x = dot->operand(k);
      if (x->shape().type() != type || !x->shape().IsStatic() || x->shape().rank() == 0) return false;
      if (const std::optional<Side> slice = SliceOf(x)) {
        product.sides[k] = *slice;
      } else {
        product.sides[k].value = x;
        stacked += x->shape().num_elements();
      }
    }
    const bool fits = SaturatingMultiply(stacked, counter_.trips) * Bytes(type) <= kMostStackBytes;
    return fits && 2 * stacked <= dot->shape().num_elements() && Place(product);
  }

  // Both sides are to lie in one order: that of what is sliced, or that of the counter.
  bool Place(Product& product) const {
    Side *first = &product.sides[0], *second = &product.sides[1];
    if (first->stack && second->stack) return first->at == second->at;
    if (!first->stack) std::swap(first, second);
    if (!first->stack) {
      first->at = {1, 0};
      for (const Product& other : products_)  // as they lie already, if they do
        for (const Side& side : other.sides)
          if (!side.stack && (side.value == first->value || side.value == second->value))
            first->at = side.at, first->position = side.position;
      if (!VisitsAll(first->at, counter_)) return false;
    }
    second->at = first->at;
    second->position = first->position;
    return true;
  }

  // The state's new element that the side's values are put aside in.
  int64_t ElementOf(const Side& side) {
    for (const Stack& stack : stacks_)
      if (stack.value == side.value && stack.position == side.position) return stack.element;
    stacks_.push_back({side.value, side.position, root_->operand_count() + static_cast<int64_t>(stacks_.size())});
    return stacks_.back().element;
  }

  // The same loop, which puts values aside and leaves the sums as they are.
  void Extend() {
    for (Product& product : products_)
      for (const Side& side : product.sides)
        if (!side.stack) ElementOf(side);
    Computation* around = loop_->parent();
    std::vector<Instruction*> init = loop_->operand(0)->operands(), next = root_->operands();
    Builder outside(around);
    outside.set_insert_before(loop_);
    for (const Stack& stack : stacks_) {
      const Shape& shape = stack.value->shape();
      init.push_back(outside.Splat(shape.type(), 0, WithFirst(counter_.trips, shape)));
    }
    std::vector<Shape> elements;
    for (const Instruction* i : init) elements.push_back(i->shape().WithoutLayout());
    const Shape state = Shape::Tuple(std::move(elements));
    for (Computation* c : {loop_->condition(), body_}) {
      c->parameter(0)->set_shape(state);
      c->parameter(0)->clear_sharding();
    }
    Builder inside(body_);
    for (const Product& product : products_)
      next[static_cast<size_t>(product.element)] = inside.GetTupleElement(body_->parameter(0), product.element);
    for (const Stack& stack : stacks_) next.push_back(PutAside(inside, stack));
    Instruction* old_root = root_;
    root_ = inside.Tuple(next);
    body_->set_root(root_);
    body_->Remove(old_root);
    Instruction* new_init = outside.Tuple(init);
    Instruction* loop = around->AddClone(*loop_, state, {&new_init, 1}, nullptr, loop_);
    loop->clear_sharding();
    for (const Use& use : std::vector<Use>(loop_->uses().begin(), loop_->uses().end()))
      use.user->SetOperand(use.operand_number, loop);
    around->Remove(loop_);
    loop_ = loop;
  }

  Instruction* PutAside(Builder& b, const Stack& stack) {
    Instruction* all = b.GetTupleElement(body_->parameter(0), stack.element);
    const Int64Vector one = WithFirst(1, stack.value->shape());
    Instruction* position = stack.position ? stack.position : b.GetTupleElement(body_->parameter(0), counter_.element);
    std::vector<Instruction*> operands = {all, b.Reshape(stack.value, one), position};
    while (static_cast<int64_t>(operands.size()) < all->shape().rank() + 2)
      operands.push_back(b.Scalar(position->shape().type(), 0));
    return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
  }

  // Behind the loop.
  void Multiply(const Product& product) {
    Builder b(loop_->parent());
    b.set_insert_before(loop_->next());
    if (product.dot->has_metadata()) b.set_metadata(product.dot->shared_metadata());
    DotAttrs attrs = product.dot->attrs<DotAttrs>();
    const bool rows = attrs.lhs_contracting == Dims{0} && attrs.rhs_contracting == Dims{0};
    Instruction* all[2];
    for (int64_t k = 0; k < 2; ++k) {
      const Side& side = product.sides[k];
      all[k] = side.stack ? loop_->operand(0)->operand(side.stack->tuple_index())
                          : b.GetTupleElement(loop_, ElementOf(side));
      Dims& contracting = k == 0 ? attrs.lhs_contracting : attrs.rhs_contracting;
      if (rows) {  // the trips' rows, one after the other
        Int64Vector dims = {counter_.trips * all[k]->shape().dim(1)};
        for (int64_t d = 2; d < all[k]->shape().rank(); ++d) dims.push_back(all[k]->shape().dim(d));
        all[k] = b.Reshape(all[k], dims);
      } else {
        for (int64_t& d : contracting) ++d;
        contracting.insert(contracting.begin(), 0);
      }
    }
    Instruction* dot = b.Dot(all[0], all[1], attrs, product.dot->shape().type());
    Instruction* init = loop_->operand(0)->operand(product.element);
    // A sum of products is never -0 that began with 0.
    const bool from_zero =
        init->op() == Op::Broadcast && init->operand(0)->IsConstant() && init->operand(0)->literal().IsAllEqualTo(0);
    Instruction* sum = from_zero ? dot : b.Make(Op::Add, {init, dot});
    for (const Use& use : std::vector<Use>(loop_->uses().begin(), loop_->uses().end()))
      if (use.user->op() == Op::GetTupleElement && use.user->tuple_index() == product.element && use.user != sum)
        use.user->ReplaceAllUsesWith(sum);
  }

  Instruction* loop_;
  Computation* body_;
  Instruction* root_;
  const Counter counter_;
  std::vector<Product> products_;
  std::vector<Stack> stacks_;
};

struct LoopProductSinking final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    const std::vector<int32_t> callers = CallerCounts(module);
    int64_t sunk = 0;
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && HasExplicitState(*i, callers)) loops.push_back(i);
      for (Instruction* loop : loops) {
        const std::optional<Counter> counter = FindCounter(*loop);
        if (counter && counter->trips >= kFewestTrips) sunk += Sinker(loop, *counter).Run();
      }
    }
    context.Count("loop-product-sinking.loops", sunk);
    return sunk > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopProductSinking() { return std::make_unique<LoopProductSinking>(); }

}  // namespace strop
