// Reductions, windows, sorts, maps. Combiners are associative and commutative and initial values identities of theirs:
// HLO leaves open in which order elements meet, and how often the initial value does.
#include <algorithm>
#include <cmath>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

double Lowest(ElementType type) {
  const FloatFormat& f = FormatOf(type);
  if (f.has_infinity) return -INFINITY;
  double lowest = INFINITY;
  for (uint64_t code = 0; code < (uint64_t{1} << f.bits); ++code)
    if (const double value = DecodeFloat(type, code); value < lowest) lowest = value;
  return lowest;
}

double Highest(ElementType type) {
  const FloatFormat& f = FormatOf(type);
  if (f.has_infinity) return INFINITY;
  double highest = -INFINITY;
  for (uint64_t code = 0; code < (uint64_t{1} << f.bits); ++code)
    if (const double value = DecodeFloat(type, code); value > highest) highest = value;
  return highest;
}

Literal IntEnd(ElementType type, bool highest) {
  const int bits = Bits(type);
  if (IsPred(type)) return Literal::ScalarOfInt(type, highest);
  if (IsSigned(type)) {
    const int64_t top = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
    return Literal::ScalarOfInt(type, highest ? top : -top - 1);
  }
  return Literal::ScalarOfInt(type, highest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0);
}

Literal Identity(Op op, ElementType type) {
  switch (op) {
    case Op::Multiply: return Literal::ScalarOf(type, 1);
    case Op::Maximum: return IsFloat(type) ? Literal::ScalarOf(type, Lowest(type)) : IntEnd(type, false);
    case Op::Minimum: return IsFloat(type) ? Literal::ScalarOf(type, Highest(type)) : IntEnd(type, true);
    case Op::And: return IsSigned(type) ? Literal::ScalarOfInt(type, -1) : IntEnd(type, true);
    default: return Literal::ScalarOf(type, 0);
  }
}

Instruction* AddConstant(Scope& scope, Literal literal) {
  return scope.Add(Op::Constant, {}, ConstantAttrs{std::move(literal)});
}

Window RandomWindow(Scope& scope, const Int64Vector& dims, bool dilated) {
  Random& random = scope.random();
  Window window;
  for (int64_t size : dims) {
    WindowDim w;
    if (random.Chance(60)) w.size = random.Between(int64_t{1}, std::min<int64_t>(size + 1, 5));
    if (size > 4 && random.Chance(10)) w.size = size;
    if (random.Chance(40)) w.stride = random.Between(int64_t{1}, int64_t{3});
    if (random.Chance(35)) w.pad_low = random.Between(int64_t{-1}, w.size);
    if (random.Chance(35)) w.pad_high = random.Between(int64_t{-1}, w.size);
    if (w.size == size && random.Chance(50)) {  // cumulative
      w.stride = 1;
      w.pad_low = std::max<int64_t>(size - 1, 0);
      w.pad_high = 0;
      if (random.Chance(40)) std::swap(w.pad_low, w.pad_high);
    }
    if (dilated && random.Chance(15)) w.base_dilation = random.Between(int64_t{1}, int64_t{3});
    if (dilated && random.Chance(15)) w.window_dilation = random.Between(int64_t{1}, int64_t{3});
    window.dims.push_back(w);
  }
  return window;
}

}  // namespace

Op AnyCombiner(Scope& scope, ElementType type) {
  using enum Op;
  static const std::vector<Op> kPred = {And, Or, Xor, And, Or, Maximum, Minimum},
                               kInt = {Add, Add, Multiply, Maximum, Minimum, And, Or, Xor},
                               kFloat = {Add, Add, Maximum, Minimum}, kComplex = {Add, Multiply},
                               kOrdered = {Maximum, Minimum};
  switch (Kind(type)) {
    case ElementKind::Pred: return scope.random().Pick(kPred);
    case ElementKind::Float: return scope.random().Pick(FormatOf(type).has_zero ? kFloat : kOrdered);
    case ElementKind::Complex: return scope.random().Pick(kComplex);
    default: return scope.random().Pick(kInt);
  }
}

Computation* Combiner(Scope& scope, Op op, ElementType type) {
  Computation* c = scope.NewComputation(Name(op));
  Builder b(c);
  Instruction* x = b.Parameter(0, Shape::Scalar(type));
  Instruction* y = b.Parameter(1, Shape::Scalar(type));
  if (scope.random().Chance(20)) std::swap(x, y);
  c->set_root(b.Make(op, {x, y}));
  return c;
}

// Each value with a combiner of its own, or of two values the larger and its number (as argmax does).
Reducer MakeReducer(Scope& scope, const std::vector<Instruction*>& inputs) {
  Reducer out;
  const size_t n = inputs.size();
  std::vector<ElementType> types;
  for (Instruction* input : inputs) types.push_back(input->shape().type());
  if (n == 1) {
    const Op op = AnyCombiner(scope, types[0]);
    out.init = {AddConstant(scope, Identity(op, types[0]))};
    out.to_apply = Combiner(scope, op, types[0]);
    return out;
  }
  out.to_apply = scope.NewComputation("reducer");
  Builder b(out.to_apply);
  std::vector<Instruction*> a, e, roots;
  for (size_t i = 0; i < n; ++i) a.push_back(b.Parameter(static_cast<int64_t>(i), Shape::Scalar(types[i])));
  for (size_t i = 0; i < n; ++i) e.push_back(b.Parameter(static_cast<int64_t>(n + i), Shape::Scalar(types[i])));
  const bool indexed = n == 2 && IsInteger(types[1]) && !IsComplex(types[0]) && scope.random().Chance(70);
  if (indexed) {
    const bool largest = scope.random().Chance(50);
    Instruction* better = b.Compare(a[0], e[0], largest ? CompareDirection::Gt : CompareDirection::Lt);
    Instruction* nan = b.Compare(a[0], a[0], CompareDirection::Ne);
    better = b.Make(Op::Or, {better, nan});
    Instruction* equal = b.Compare(a[0], e[0], CompareDirection::Eq);
    Instruction* earlier = b.Make(Op::And, {equal, b.Compare(a[1], e[1], CompareDirection::Lt)});
    roots = {b.Make(Op::Select, {better, a[0], e[0]}),
             b.Make(Op::Select, {b.Make(Op::Or, {better, earlier}), a[1], e[1]})};
    out.init = {AddConstant(scope, Identity(largest ? Op::Maximum : Op::Minimum, types[0])),
                AddConstant(scope, Literal::ScalarOf(types[1], 0))};
  } else {
    for (size_t i = 0; i < n; ++i) {
      const Op op = AnyCombiner(scope, types[i]);
      roots.push_back(b.Make(op, {a[i], e[i]}));
      out.init.push_back(AddConstant(scope, Identity(op, types[i])));
    }
  }
  out.to_apply->set_root(b.Tuple(roots));
  return out;
}

namespace {

// `x` and others of its dimensions; the second often numbers the elements.
std::vector<Instruction*> Inputs(Scope& scope, Instruction* x) {
  std::vector<Instruction*> inputs = {x};
  if (x->shape().rank() > 0 && scope.random().Chance(12)) {
    const Shape numbers = x->shape().WithType(ElementType::S32);
    inputs.push_back(scope.Add(Op::Iota, {}, IotaAttrs{scope.random().Below(numbers.rank())}, &numbers));
  }
  while (inputs.size() < 4 && scope.random().Chance(10))
    inputs.push_back(scope.Value(scope.AnyType(), x->shape().dims()));
  return inputs;
}

Instruction* TryReducing(Scope& scope, Op op, std::vector<Instruction*> inputs, Attrs attrs) {
  for (Instruction*& input : inputs) {
    if (!input) return nullptr;
    // A product that overflows and meets a zero depends on which comes first.
    const ElementType type = input->shape().type();
    if (IsComplex(type) || (IsFloat(type) && FormatOf(type).has_zero && scope.random().Chance(50)))
      input = Tamed(scope, input);
  }
  Reducer reducer = MakeReducer(scope, inputs);
  // One value that every result holds: the initial value of a reduction is met exactly once.
  if (op == Op::Reduce && inputs.size() == 1 && scope.random().Chance(20))
    reducer.init = {scope.ScalarValue(inputs[0]->shape().type())};
  inputs.insert(inputs.end(), reducer.init.begin(), reducer.init.end());
  Computation* const called[] = {reducer.to_apply};
  return scope.Try(op, inputs, std::move(attrs), called);
}

}  // namespace

Instruction* MakeReduce(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  DimensionsAttrs attrs;
  for (int64_t i = 0; i < x->shape().rank(); ++i)
    if (scope.random().Chance(55)) attrs.dimensions.push_back(i);
  return TryReducing(scope, op, Inputs(scope, x), attrs);
}

Instruction* MakeReduceWindow(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  return TryReducing(scope, op, Inputs(scope, x), WindowAttrs{RandomWindow(scope, x->shape().dims(), true)});
}

Instruction* MakeSelectAndScatter(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  const ElementType type = x->shape().type();
  if (IsComplex(type)) return nullptr;
  WindowAttrs attrs{RandomWindow(scope, x->shape().dims(), false)};
  for (WindowDim& w : attrs.window.dims)
    w.pad_low = std::max<int64_t>(w.pad_low, 0), w.pad_high = std::max<int64_t>(w.pad_high, 0);
  const Op combiner = scope.random().Chance(70) && (!IsFloat(type) || FormatOf(type).has_zero) && !IsPred(type)
                          ? Op::Add
                          : AnyCombiner(scope, type);
  Instruction* init = AddConstant(scope, Identity(combiner, type));
  Computation* scatter = Combiner(scope, combiner, type);
  const std::vector<const Shape*> shapes = {&x->shape(), &init->shape()};
  Computation* const called[] = {scatter};
  Result<Shape> windows = InferShape(Op::ReduceWindow, shapes, attrs, called, nullptr);
  if (!windows.ok() || !scope.Fits(windows->dims())) return nullptr;
  Computation* select = scope.NewComputation("select");
  Builder b(select);
  Instruction* p = b.Parameter(0, Shape::Scalar(type));
  Instruction* q = b.Parameter(1, Shape::Scalar(type));
  static constexpr CompareDirection kOrders[] = {CompareDirection::Ge, CompareDirection::Gt, CompareDirection::Le,
                                                 CompareDirection::Lt};
  select->set_root(b.Compare(p, q, kOrders[scope.random().Below(4)]));
  return scope.Try(op, {x, scope.Value(type, windows->dims()), init}, attrs, {select, scatter});
}

Instruction* MakeMap(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  std::vector<Instruction*> operands = {x};
  while (operands.size() < 3 && scope.random().Chance(40))
    operands.push_back(scope.Value(scope.AnyType(), x->shape().dims()));
  Computation* function = scope.NewComputation("function");
  Scope inner(scope.recipe(), function, scope.depth() + 1, true);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) return nullptr;
    inner.AddValue(function->AddParameter(static_cast<int64_t>(i), Shape::Scalar(operands[i]->shape().type())));
  }
  inner.Grow(scope.random().Between(int64_t{1}, int64_t{5}));
  function->set_root(inner.values().back());
  DimensionsAttrs attrs;
  for (int64_t i = 0; i < x->shape().rank(); ++i) attrs.dimensions.push_back(i);
  Computation* const called[] = {function};
  return scope.Try(op, operands, attrs, called);
}

// By the first operand in its total order, stable where others come with it.
Instruction* MakeSort(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  const ElementType key = x->shape().type();
  if (x->shape().rank() == 0 || IsComplex(key)) return nullptr;
  std::vector<Instruction*> operands = {x};
  while (operands.size() < 3 && scope.random().Chance(40))
    operands.push_back(scope.Value(scope.AnyType(), x->shape().dims()));
  Computation* before = scope.NewComputation("before");
  Builder b(before);
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i]) return nullptr;
    for (int64_t side = 0; side < 2; ++side)
      b.Parameter(static_cast<int64_t>(2 * i) + side, Shape::Scalar(operands[i]->shape().type()));
  }
  CompareAttrs compare;
  compare.direction = scope.random().Chance(60) ? CompareDirection::Lt : CompareDirection::Gt;
  if (IsFloat(key)) compare.order = CompareOrder::TotalOrder;
  before->set_root(b.Make(Op::Compare, {before->parameter(0), before->parameter(1)}, compare));
  SortAttrs attrs;
  attrs.dimensions = {scope.random().Below(x->shape().rank())};
  attrs.is_stable = operands.size() > 1 || scope.random().Chance(50);
  Computation* const called[] = {before};
  return scope.Try(op, operands, attrs, called);
}

Instruction* MakeTopK(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  if (x->shape().rank() == 0 || IsComplex(x->shape().type()) || IsPred(x->shape().type())) return nullptr;
  TopKAttrs attrs;
  attrs.k = scope.random().Between(int64_t{0}, x->shape().dims().back());
  attrs.largest = scope.random().Chance(70);
  Computation* before = scope.NewComputation("before");
  Builder b(before);
  Instruction* p = b.Parameter(0, Shape::Scalar(x->shape().type()));
  Instruction* q = b.Parameter(1, Shape::Scalar(x->shape().type()));
  CompareAttrs compare{attrs.largest ? CompareDirection::Gt : CompareDirection::Lt};
  if (IsFloat(x->shape().type())) compare.order = CompareOrder::TotalOrder;
  before->set_root(b.Make(Op::Compare, {p, q}, compare));
  return scope.Try(op, {x}, attrs, {before});
}

}  // namespace strop::fuzz
