// Chains of products over the same rows, as attention and dense layers have them: what the plan makes bands of.
#include <algorithm>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

// [batch..., rows, n] throughout; n changes with each product.
class Chain {
 public:
  Chain(Scope& scope, ElementType type) : scope_(scope), random_(scope.random()), type_(type) {
    for (int64_t d = random_.Between(int64_t{0}, int64_t{2}); d > 0; --d)
      lead_.push_back(random_.Between(int64_t{1}, int64_t{4}));
    rows_ = random_.Chance(40) ? 8 * random_.Between(int64_t{1}, int64_t{3}) : random_.Between(int64_t{1}, int64_t{20});
    // Right operands of the whole batch are matrices: the batch then is rows as well.
    batched_ = random_.Chance(60);
  }

  Instruction* Make() {
    if (random_.Chance(30)) return MakeAttention();
    Instruction* x = scope_.Value(type_, DimsOf(Width()));
    for (int64_t n = random_.Between(int64_t{2}, int64_t{4}); n > 0; --n) {
      x = Product(x);
      for (int64_t k = random_.Between(int64_t{0}, int64_t{3}); k > 0; --k) x = Step(x);
      if (!x) return nullptr;
    }
    return x;
  }

 private:
  int64_t Width() { return random_.Chance(30) ? 16 : random_.Between(int64_t{1}, int64_t{20}); }
  Int64Vector DimsOf(int64_t last) const {
    Int64Vector dims = lead_;
    dims.push_back(rows_);
    dims.push_back(last);
    return dims;
  }
  int64_t rank() const { return static_cast<int64_t>(lead_.size()) + 2; }

  // Scores of more columns than a tile has, of which a mask lets some through.
  Instruction* MakeAttention() {
    Instruction* x = Product(scope_.Value(type_, DimsOf(Width())), random_.Between(int64_t{20}, int64_t{90}));
    if (random_.Chance(30)) x = Step(x);
    x = AboutADiagonal(x);
    x = random_.Chance(70) ? Softmax(x) : Step(x);
    return Product(x, Width());
  }

  Instruction* Product(Instruction* x) { return Product(x, Width()); }
  Instruction* Product(Instruction* x, int64_t n) {
    if (!x) return nullptr;
    const int64_t k = x->shape().dim(rank() - 1);
    const bool turned = random_.Chance(40);
    Int64Vector dims;
    DotAttrs attrs;
    if (batched_) {
      dims = lead_;
      for (int64_t d = 0; d + 2 < rank(); ++d) attrs.lhs_batch.push_back(d), attrs.rhs_batch.push_back(d);
    }
    attrs.lhs_contracting = {rank() - 1};
    attrs.rhs_contracting = {static_cast<int64_t>(dims.size()) + (turned ? 1 : 0)};
    dims.push_back(turned ? n : k);
    dims.push_back(turned ? k : n);
    if (!scope_.Fits(dims) || !scope_.Fits(DimsOf(n))) return nullptr;
    return scope_.Try(Op::Dot, {x, scope_.Value(type_, dims)}, attrs);
  }

  Instruction* Broadcast(Instruction* value, Dims dimensions, const Shape& shape) {
    return scope_.Try(Op::Broadcast, {value}, DimensionsAttrs{std::move(dimensions)}, {}, &shape);
  }

  // Something of every row, in all its elements.
  Instruction* OfRow(Instruction* x, Op combiner, double init) {
    Computation* const called[] = {Combiner(scope_, combiner, type_)};
    Instruction* const operands[] = {x, scope_.Constant(type_, init)};
    Instruction* reduced = scope_.Try(Op::Reduce, operands, DimensionsAttrs{{rank() - 1}}, called);
    if (!reduced) return nullptr;
    Dims kept;
    for (int64_t d = 0; d + 1 < rank(); ++d) kept.push_back(d);
    return Broadcast(reduced, kept, x->shape().WithoutLayout());
  }

  Instruction* Softmax(Instruction* x) {
    if (!x) return nullptr;
    Instruction* e = scope_.Try(Op::Exp, {scope_.Try(Op::Subtract, {x, OfRow(x, Op::Maximum, -100)})});
    return e ? scope_.Try(Op::Divide, {e, OfRow(e, Op::Add, 0)}) : nullptr;
  }

  Instruction* Step(Instruction* x) {
    if (!x) return nullptr;
    const Shape shape = x->shape().WithoutLayout();
    switch (random_.Below(10)) {
      case 0: return Softmax(x);
      case 1: return scope_.Try(Op::Tanh, {x});
      case 2: return scope_.Try(Op::Maximum, {x, Broadcast(scope_.Constant(type_, 0), {}, shape)});
      case 3: {  // a bias
        Instruction* row = scope_.Value(type_, {shape.dim(rank() - 1)});
        return scope_.Try(Op::Add, {x, Broadcast(row, {rank() - 1}, shape)});
      }
      case 4: {  // a factor a row
        Instruction* column = scope_.Value(type_, {rows_});
        return scope_.Try(Op::Multiply, {x, Broadcast(column, {rank() - 2}, shape)});
      }
      case 5: {  // a mask
        Instruction* mask = scope_.Value(ElementType::Pred, shape.dims());
        return scope_.Try(Op::Select, {mask, x, Broadcast(scope_.Constant(type_, -2), {}, shape)});
      }
      case 6: return scope_.Try(Op::Add, {x, scope_.Value(type_, shape.dims())});
      case 7:
      case 8: return AboutADiagonal(x);
      default: return scope_.Try(Op::Subtract, {x, OfRow(x, Op::Add, 0)});
    }
  }

  // Of each row, columns up to its own, or inside of a window.
  Instruction* AboutADiagonal(Instruction* x) {
    if (!x) return nullptr;
    const Shape shape = x->shape().WithoutLayout(), places = shape.WithType(ElementType::S32);
    const auto index = [&](int64_t dimension) { return scope_.Add(Op::Iota, {}, IotaAttrs{dimension}, &places); };
    const auto compared = [&] {
      Instruction* shift =
          scope_.Constant(ElementType::S32, static_cast<double>(random_.Between(int64_t{-6}, int64_t{9})));
      Instruction* row = index(random_.Chance(80) ? rank() - 2 : 0);
      Instruction* shifted = scope_.Add(Op::Add, {row, scope_.Add(Op::Broadcast, {shift}, DimensionsAttrs{}, &places)});
      const CompareDirection direction = static_cast<CompareDirection>(random_.Below(6));
      return scope_.Add(Op::Compare, {shifted, index(rank() - 1)}, CompareAttrs{direction});
    };
    Instruction* mask = compared();
    if (random_.Chance(40)) mask = scope_.Add(random_.Chance(70) ? Op::And : Op::Or, {mask, compared()});
    if (random_.Chance(20)) mask = scope_.Add(Op::Not, {mask});
    Instruction* low = scope_.Add(Op::Broadcast, {scope_.Constant(type_, -2)}, DimensionsAttrs{}, &shape);
    if (random_.Chance(30)) return scope_.Try(Op::Select, {mask, low, x});
    return scope_.Try(Op::Select, {mask, x, low});
  }

  Scope& scope_;
  Random& random_;
  ElementType type_;
  Int64Vector lead_;
  int64_t rows_ = 1;
  bool batched_ = true;
};

}  // namespace

Instruction* MakeProducts(Scope& scope) {
  static constexpr ElementType kTypes[] = {ElementType::F32, ElementType::F32, ElementType::BF16, ElementType::F64,
                                           ElementType::F16};
  return Chain(scope, kTypes[scope.random().Below(5)]).Make();
}

}  // namespace strop::fuzz
