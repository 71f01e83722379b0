// Tuples, barriers, calls, loops and branches, and what one device does with asynchronous pairs and collectives.
#include <algorithm>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

constexpr int kMaxDepth = 3;

std::vector<Instruction*> SomeValues(Scope& scope, int64_t low, int64_t high) {
  std::vector<Instruction*> values;
  for (int64_t n = scope.random().Between(low, high); n > 0; --n) values.push_back(scope.AnyArray());
  return values;
}

// A computation of these parameters, grown; the root is left to the caller.
struct Body {
  Computation* computation;
  Scope scope;
  Body(Scope& outer, std::string_view name)
      : computation(outer.NewComputation(name)), scope(outer.recipe(), computation, outer.depth() + 1) {}

  void TakeEach(const std::vector<Instruction*>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i)
      scope.AddValue(computation->AddParameter(static_cast<int64_t>(i), arguments[i]->shape().WithoutLayout()));
  }
  void TakeTuple(const Shape& state) {
    Instruction* parameter = computation->AddParameter(0, state);
    for (int64_t i = 0; i < state.tuple_size(); ++i)
      scope.AddValue(scope.Add(Op::GetTupleElement, {parameter}, GetTupleElementAttrs{i}));
  }
  void ReturnTuple(const std::vector<Shape>& shapes, const std::vector<Instruction*>& first = {}) {
    std::vector<Instruction*> results = first;
    for (size_t i = first.size(); i < shapes.size(); ++i) results.push_back(scope.Value(shapes[i]));
    Builder b(computation);
    computation->set_root(b.Tuple(results));
  }
};

Instruction* PackedTuple(Scope& scope, const std::vector<Instruction*>& values) {
  Builder b(scope.computation());
  return b.Tuple(values);
}

bool TooDeep(Scope& scope) { return scope.depth() >= kMaxDepth || scope.recipe().instructions_left < 4; }

}  // namespace

Instruction* MakeTuple(Scope& scope, Op op) { return scope.Try(op, SomeValues(scope, 1, 4)); }

Instruction* MakeBarrier(Scope& scope, Op op) {
  if (scope.random().Chance(50)) return scope.Try(op, {scope.AnyArray()});
  return scope.Try(op, {PackedTuple(scope, SomeValues(scope, 1, 3))});
}

Instruction* MakeDependency(Scope& scope, Op op) {
  Builder b(scope.computation());
  Instruction* token = b.Make(Op::AfterAll, {});
  return scope.Try(Op::AddDependency, {scope.AnyArray(), token});
}

Instruction* MakeReplicaId(Scope& scope, Op op) { return scope.Try(op, {}); }

Instruction* MakeCall(Scope& scope, Op op) {
  if (TooDeep(scope)) return nullptr;
  const std::vector<Instruction*> arguments = SomeValues(scope, 0, 3);
  Body body(scope, "callee");
  body.TakeEach(arguments);
  body.scope.Grow(scope.random().Between(int64_t{1}, int64_t{4}));
  if (scope.random().Chance(60))
    body.computation->set_root(body.scope.AnyArray());
  else
    body.ReturnTuple({}, SomeValues(body.scope, 1, 3));
  Computation* const called[] = {body.computation};
  CallAttrs attrs;
  attrs.is_composite = scope.random().Chance(20);
  return scope.Try(op, arguments, attrs, called);
}

// A loop over the slabs of its inputs: the body takes one of each and the carries, and returns slabs and carries.
Instruction* MakeScan(Scope& scope, Op op) {
  if (TooDeep(scope)) return nullptr;
  Random& random = scope.random();
  Instruction* x = scope.AnyArray();
  if (x->shape().rank() == 0) return nullptr;
  ScanAttrs attrs;
  const int64_t along = random.Below(x->shape().rank());
  attrs.dimensions = {along};
  attrs.is_reverse = random.Chance(40);
  const int64_t length = x->shape().dim(along);
  if (length > 20) return nullptr;
  Int64Vector slab;
  for (int64_t d = 0; d < x->shape().rank(); ++d)
    if (d != along) slab.push_back(x->shape().dim(d));
  std::vector<Instruction*> inputs = {x};
  if (random.Chance(30)) inputs.push_back(scope.Value(scope.AnyType(), x->shape().dims()));
  std::vector<Instruction*> carries = SomeValues(scope, 1, 2);
  attrs.num_carries = static_cast<int64_t>(carries.size());

  Body body(scope, "scanned");
  for (Instruction* input : inputs) {
    if (!input) return nullptr;
    const int64_t number = body.computation->parameter_count();
    body.scope.AddValue(body.computation->AddParameter(number, Shape::Array(input->shape().type(), slab)));
  }
  for (Instruction* carry : carries)
    body.scope.AddValue(
        body.computation->AddParameter(body.computation->parameter_count(), carry->shape().WithoutLayout()));
  body.scope.Grow(random.Between(int64_t{1}, int64_t{4}));
  std::vector<Shape> returned, results;
  for (int64_t outputs = random.Between(int64_t{1}, int64_t{2}); outputs > 0; --outputs) {
    returned.push_back(Shape::Array(scope.AnyType(), slab));
    results.push_back(x->shape().WithoutLayout().WithType(returned.back().type()));
  }
  for (Instruction* carry : carries) {
    returned.push_back(carry->shape().WithoutLayout());
    results.push_back(returned.back());
  }
  body.ReturnTuple(returned);
  const Shape declared = Shape::Tuple(results);
  std::vector<Instruction*> operands = inputs;
  operands.insert(operands.end(), carries.begin(), carries.end());
  Computation* const called[] = {body.computation};
  return scope.Try(op, operands, attrs, called, &declared);
}

// Marks that mean nothing on one device.
Instruction* MakeCustomCall(Scope& scope, Op op) {
  Random& random = scope.random();
  Instruction* x = scope.AnyArray();
  CustomCallAttrs attrs;
  static constexpr const char* kMarks[] = {"annotate_device_placement", "MoveToHost", "MoveToDevice",
                                           "AssumeGatherIndicesInBound", "LayoutConstraint"};
  attrs.target = kMarks[random.Below(std::size(kMarks))];
  const Shape declared = x->shape().WithoutLayout();
  return scope.Try(op, {x}, attrs, {}, &declared);
}

// What a framework might have fused: elementwise ops and moves.
Instruction* MakeFusion(Scope& scope, Op op) {
  if (TooDeep(scope)) return nullptr;
  const std::vector<Instruction*> arguments = SomeValues(scope, 1, 4);
  Body body(scope, "fused");
  body.TakeEach(arguments);
  static const std::vector<Op> kOps = {
      Op::Add,     Op::Multiply, Op::Maximum, Op::Tanh,      Op::Compare, Op::Select, Op::Broadcast, Op::Slice,
      Op::Reshape, Op::Pad,      Op::Reduce,  Op::Transpose, Op::Convert, Op::Negate, Op::Exp,       Op::Subtract};
  for (int64_t n = scope.random().Between(int64_t{1}, int64_t{6}); n > 0; --n) {
    const Op inner = scope.random().Pick(kOps);
    MakeFunction(inner)(body.scope, inner);
  }
  body.computation->set_root(body.scope.values().back());
  Computation* const called[] = {body.computation};
  return scope.Try(op, arguments, FusionAttrs{}, called);
}

Instruction* MakeConditional(Scope& scope, Op op) {
  if (TooDeep(scope)) return nullptr;
  Random& random = scope.random();
  const bool pred = random.Chance(50);
  const int64_t branches = pred ? 2 : random.Between(int64_t{1}, int64_t{4});
  std::vector<Shape> results;
  for (Instruction* value : SomeValues(scope, 1, 2)) results.push_back(value->shape().WithoutLayout());
  std::vector<Instruction*> operands = {scope.ScalarValue(pred ? ElementType::Pred : ElementType::S32)};
  std::vector<Computation*> called;
  for (int64_t i = 0; i < branches; ++i) {
    std::vector<Instruction*> arguments = SomeValues(scope, 1, 3);
    Body body(scope, "branch");
    if (arguments.size() == 1 && random.Chance(50)) {
      body.TakeEach(arguments);
      operands.push_back(arguments[0]);
    } else {
      operands.push_back(PackedTuple(scope, arguments));
      body.TakeTuple(operands.back()->shape());
    }
    body.scope.Grow(random.Between(int64_t{0}, int64_t{3}));
    body.ReturnTuple(results);
    called.push_back(body.computation);
  }
  return scope.Try(op, operands, DefaultAttrs(op), called);
}

// A counter that ends the loop after a few trips, now and then with a second condition on the data.
// A loop over a batch, as vmap writes a while_loop: it goes on while any member is asked for more, and a member's state
// changes as long as it is.
static Instruction* MakeLoopOverMembers(Scope& scope) {
  Random& random = scope.random();
  const Int64Vector dims = scope.AnyArray()->shape().dims();
  if (dims.empty()) return nullptr;
  const ElementType s32 = ElementType::S32;
  Builder outside(scope.computation());
  Instruction* places = outside.Make(Op::And, {scope.Value(s32, dims), outside.Splat(s32, 3, dims)});
  std::vector<Instruction*> carried = {places};
  for (int64_t n = random.Between(int64_t{1}, int64_t{3}); n > 0; --n)
    carried.push_back(scope.Value(scope.AnyType(), dims));
  Instruction* state = PackedTuple(scope, carried);
  if (!outside.status().ok()) return nullptr;
  const double bound = static_cast<double>(random.Between(int64_t{2}, int64_t{6}));
  const auto asked = [&](Builder& b, Instruction* place) {
    Instruction* scaled = b.Convert(b.Make(Op::Multiply, {place, b.Splat(s32, 2, dims)}), ElementType::F32);
    return b.Compare(b.Make(Op::Subtract, {scaled, b.Splat(ElementType::F32, 0.25, dims)}),
                     b.Splat(ElementType::F32, 2 * bound, dims), CompareDirection::Lt);
  };
  Body condition(scope, "any_goes_on");
  condition.TakeTuple(state->shape());
  Builder c(condition.computation);
  Dims all;
  for (size_t d = 0; d < dims.size(); ++d) all.push_back(static_cast<int64_t>(d));
  Computation* const combiner[] = {Combiner(scope, Op::Or, ElementType::Pred)};
  Instruction* const reduced[] = {asked(c, condition.scope.values()[0]), c.Scalar(ElementType::Pred, 0)};
  condition.computation->set_root(c.Make(Op::Reduce, reduced, DimensionsAttrs{all}, combiner, nullptr));

  Body body(scope, "member_step");
  body.TakeTuple(state->shape());
  const std::vector<Instruction*> old = body.scope.values();
  Builder b(body.computation);
  Instruction* on = asked(b, old[0]);
  std::vector<Instruction*> next = {b.Make(Op::Select, {on, b.Make(Op::Add, {old[0], b.Splat(s32, 1, dims)}), old[0]})};
  for (int64_t n = random.Between(int64_t{1}, int64_t{4}); n > 0; --n) {
    static const std::vector<Op> kOps = {Op::Add, Op::Multiply, Op::Maximum, Op::Negate, Op::Subtract, Op::Tanh};
    const Op inner = random.Pick(kOps);
    MakeFunction(inner)(body.scope, inner);
  }
  for (size_t k = 1; k < old.size(); ++k)
    next.push_back(b.Make(Op::Select, {on, body.scope.Value(old[k]->shape()), old[k]}));
  if (!c.status().ok() || !b.status().ok()) return nullptr;
  body.computation->set_root(b.Tuple(next));
  return scope.Try(Op::While, {state}, NoAttrs{}, {condition.computation, body.computation});
}

Instruction* MakeWhile(Scope& scope, Op op) {
  if (TooDeep(scope)) return nullptr;
  Random& random = scope.random();
  if (random.Chance(25)) return MakeLoopOverMembers(scope);
  const ElementType counter = random.Chance(80) ? ElementType::S32 : ElementType::U8;
  std::vector<Instruction*> carried = SomeValues(scope, 1, 4);
  carried.insert(carried.begin(), random.Chance(80) ? scope.Constant(counter, 0) : scope.ScalarValue(counter));
  Instruction* state = PackedTuple(scope, carried);

  Body condition(scope, "condition");
  condition.TakeTuple(state->shape());
  const double trips = static_cast<double>(random.Below(random.Chance(10) ? 12 : 5));
  Builder b(condition.computation);
  Instruction* more = b.Compare(condition.scope.values()[0], b.Scalar(counter, trips), CompareDirection::Lt);
  if (random.Chance(15)) more = b.Make(Op::And, {more, condition.scope.ScalarValue(ElementType::Pred)});
  condition.computation->set_root(more);

  Body body(scope, "body");
  body.TakeTuple(state->shape());
  Instruction* next = body.scope.Add(
      Op::Add, {body.scope.values()[0],
                body.scope.Constant(counter, static_cast<double>(random.Between(int64_t{1}, int64_t{2})))});
  body.scope.Grow(random.Between(int64_t{1}, int64_t{5}));
  std::vector<Shape> shapes;
  for (const Shape& element : state->shape().elements()) shapes.push_back(element.WithoutLayout());
  body.ReturnTuple(shapes, {next});
  return scope.Try(op, {state}, NoAttrs{}, {condition.computation, body.computation});
}

Instruction* MakeAsync(Scope& scope, Op op) {
  if (TooDeep(scope)) return nullptr;
  const std::vector<Instruction*> arguments = SomeValues(scope, 1, 2);
  Body body(scope, "async");
  body.TakeEach(arguments);
  body.scope.Grow(scope.random().Between(int64_t{1}, int64_t{3}));
  body.computation->set_root(body.scope.AnyArray());
  Builder b(scope.computation());
  Computation* const called[] = {body.computation};
  Instruction* handle = b.Make(Op::AsyncStart, arguments, AsyncAttrs{}, called, nullptr);
  if (handle && scope.random().Chance(30)) handle = b.Make(Op::AsyncUpdate, {handle}, AsyncAttrs{}, {body.computation});
  return handle ? scope.Try(Op::AsyncDone, {handle}, AsyncAttrs{}, {body.computation}) : nullptr;
}

// Among one device, in two steps.
Instruction* MakeCollectiveDone(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  Builder b(scope.computation());
  const Shape shape = x->shape().WithoutLayout();
  const Shape both = Shape::Tuple({shape, shape});
  Instruction* const operands[] = {x};
  CollectiveAttrs attrs;
  if (scope.random().Chance(50)) attrs.replica_groups.lists = {{0}};
  Instruction* start = nullptr;
  if (op == Op::CollectivePermuteDone) {
    PermuteAttrs permute;
    permute.source_target_pairs = {{0, 0}};
    start = b.Make(Op::CollectivePermuteStart, operands, permute, {}, &both);
  } else if (op == Op::AllGatherDone) {
    if (shape.rank() == 0) return nullptr;
    attrs.dimensions = {scope.random().Below(shape.rank())};
    attrs.has_dimensions = true;
    start = b.Make(Op::AllGatherStart, operands, attrs, {}, &both);
  } else {
    Computation* const called[] = {Combiner(scope, AnyCombiner(scope, shape.type()), shape.type())};
    start = b.Make(Op::AllReduceStart, operands, attrs, called, &shape);
  }
  return start ? scope.Try(op, {start}) : nullptr;
}

// Among one device.
Instruction* MakeCollective(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  if (op == Op::CollectivePermute) {
    PermuteAttrs attrs;
    if (scope.random().Chance(70)) attrs.source_target_pairs = {{0, 0}};
    return scope.Try(op, {x}, attrs);
  }
  CollectiveAttrs attrs;
  if (scope.random().Chance(50)) attrs.replica_groups.lists = {{0}};
  if (op != Op::AllReduce && op != Op::CollectiveBroadcast) {
    if (x->shape().rank() == 0) return nullptr;
    attrs.dimensions = {scope.random().Below(x->shape().rank())};
    attrs.has_dimensions = true;
  }
  const ElementType type = x->shape().type();
  if (op == Op::AllReduce || op == Op::ReduceScatter)
    return scope.Try(op, {x}, attrs, {Combiner(scope, AnyCombiner(scope, type), type)}, &x->shape());
  return scope.Try(op, {x}, attrs, {}, &x->shape());
}

}  // namespace strop::fuzz
