#include "strop/codegen/elemental.h"

#include <algorithm>
#include <set>
#include <utility>

#include "strop/analysis/positionwise_loop.h"
#include "strop/base/division.h"
#include "strop/ir/contraction.h"
#include "strop/ir/unrounded.h"
#include "strop/runtime/cancelled_scope.h"

namespace strop {

using V = llvm::Value*;

namespace {

// Beyond these a fusion is refused: deep recursion needs stack, and repeated expansion compile time.
constexpr int kMaxDepth = 400;
constexpr int64_t kMaxEmitted = 100000;

// Ops whose result has the element of each array operand at the same linear position.
bool SameIndex(Op op) {
  return IsElementwise(op) || op == Op::Reshape || op == Op::Copy || op == Op::OptimizationBarrier ||
         op == Op::AddDependency;
}

std::vector<V> Flat(const Vals& vals) {
  std::vector<V> flat;
  for (const Val& v : vals) {
    flat.push_back(v.re);
    flat.push_back(v.im);
  }
  return flat;
}

}  // namespace

using RuleFn = Vals (ElementalEmitter::*)(const Instruction&, const ArrayIndex&);

struct ElementRules {
  using E = ElementalEmitter;
  static constexpr RuleFn kElementwise = &E::Elementwise;
  static constexpr RuleFn kUnsupported = &E::Unsupported;
  static constexpr OpColumn<RuleFn>::Entry kEntries[] = {
      {Op::Reshape, &E::PassThrough},
      {Op::Copy, &E::PassThrough},
      {Op::AddDependency, &E::PassThrough},
      {Op::OptimizationBarrier, &E::PassThrough},
      {Op::Bitcast, &E::BitcastRule},
      {Op::BitcastConvert, &E::BitcastRule},
      {Op::Constant, &E::ConstantRule},
      {Op::Iota, &E::Iota},
      {Op::Broadcast, &E::Broadcast},
      {Op::Transpose, &E::Transpose},
      {Op::Slice, &E::Slice},
      {Op::Reverse, &E::Reverse},
      {Op::Pad, &E::Pad},
      {Op::Concatenate, &E::Concatenate},
      {Op::DynamicSlice, &E::DynamicSlice},
      {Op::DynamicUpdateSlice, &E::DynamicUpdateSlice},
      {Op::Gather, &E::Gather},
      {Op::Reduce, &E::Reduce},
      {Op::ReduceWindow, &E::ReduceWindow},
      {Op::Map, &E::Map},
      {Op::Fusion, &E::FusionRule},
      {Op::GetTupleElement, &E::GetTupleElement},
      {Op::While, &E::While},
      {Op::Tuple, &E::Unsupported},
      {Op::GetDimensionSize, &E::GetDimensionSize},
      {Op::Dot, &E::Dot},
      {Op::Convolution, &E::Convolution},
      // Bound by whoever emits the kernel, or no function of single elements.
      {Op::Parameter, &E::Unsupported},
      {Op::PartitionId, &E::Unsupported},
      {Op::ReplicaId, &E::Unsupported},
      {Op::CopyDone, &E::Unsupported},
      {Op::CopyStart, &E::Unsupported},
      {Op::DynamicReshape, &E::Unsupported},
      {Op::Scatter, &E::Unsupported},
      {Op::Shuffle, &E::Unsupported},
      {Op::SetDimensionSize, &E::Unsupported},
      {Op::RaggedDot, &E::Unsupported},
      {Op::ScaledDot, &E::Unsupported},
      {Op::Scan, &E::Unsupported},
      {Op::SelectAndScatter, &E::Unsupported},
      {Op::Sort, &E::Unsupported},
      {Op::TopK, &E::Unsupported},
      {Op::BatchNormGrad, &E::Unsupported},
      {Op::BatchNormInference, &E::Unsupported},
      {Op::BatchNormTraining, &E::Unsupported},
      {Op::Cholesky, &E::Unsupported},
      {Op::Fft, &E::Unsupported},
      {Op::TriangularSolve, &E::Unsupported},
      {Op::Rng, &E::Unsupported},
      {Op::RngBitGenerator, &E::Unsupported},
      {Op::RngGetAndUpdateState, &E::Unsupported},
      {Op::AfterAll, &E::Unsupported},
      {Op::Domain, &E::Unsupported},
      {Op::AsyncDone, &E::Unsupported},
      {Op::AsyncStart, &E::Unsupported},
      {Op::AsyncUpdate, &E::Unsupported},
      {Op::Call, &E::Unsupported},
      {Op::Conditional, &E::Unsupported},
      {Op::CustomCall, &E::Unsupported},
      {Op::AllGather, &E::Unsupported},
      {Op::AllGatherDone, &E::Unsupported},
      {Op::AllGatherStart, &E::Unsupported},
      {Op::AllReduce, &E::Unsupported},
      {Op::AllReduceDone, &E::Unsupported},
      {Op::AllReduceStart, &E::Unsupported},
      {Op::AllToAll, &E::Unsupported},
      {Op::CollectiveBroadcast, &E::Unsupported},
      {Op::CollectivePermute, &E::Unsupported},
      {Op::CollectivePermuteDone, &E::Unsupported},
      {Op::CollectivePermuteStart, &E::Unsupported},
      {Op::CollectiveReduce, &E::Unsupported},
      {Op::RaggedAllToAll, &E::Unsupported},
      {Op::ReduceScatter, &E::Unsupported},
      {Op::Infeed, &E::Unsupported},
      {Op::Outfeed, &E::Unsupported},
      {Op::Recv, &E::Unsupported},
      {Op::RecvDone, &E::Unsupported},
      {Op::Send, &E::Unsupported},
      {Op::SendDone, &E::Unsupported}};
};
static constexpr OpColumn<RuleFn> kRules(ElementRules::kElementwise, ElementRules::kEntries);
STROP_COMPLETE(kRules);

ElementalEmitter::ElementalEmitter(VectorBuilder& b, LoopScopes& scopes, int lanes)
    : b_(b), scopes_(scopes), elements_(b), scalars_(elements_), indices_(b, scopes, lanes) {}

void ElementalEmitter::BindBuffer(const Instruction* instruction, const ElementBuilder::Memory& memory) {
  buffers_[instruction] = memory;
}

void ElementalEmitter::BindAlias(const Instruction* instruction, const Instruction* actual) {
  aliases_[instruction] = actual;
}

const Instruction* ElementalEmitter::Resolve(const Instruction* i) const {
  for (auto alias = aliases_.find(i); alias != aliases_.end(); alias = aliases_.find(i)) i = alias->second;
  return i;
}

Vals ElementalEmitter::Fail(Status status, const Shape& shape) {
  if (status_.ok()) status_ = std::move(status);
  Vals poison;
  for (const Shape& leaf : shape.Leaves()) poison.push_back(elements_.Poison(leaf.type(), 1));
  return poison;
}

int ElementalEmitter::LevelOf(const ArrayIndex& index) const {
  if (index.sizes.empty() && loops_.empty()) return 0;  // a scalar can be read anywhere
  int level = std::max(index.level(), scopes_.innermost_conditional());
  if (mask_.value && !index.uniform()) level = std::max(level, mask_.level);
  return level;
}

LoopScopes::Key ElementalEmitter::KeyOf(const Instruction* i, const ArrayIndex& index) const {
  LoopScopes::Key key{0, reinterpret_cast<uint64_t>(i), 0};
  if (mask_.value && !index.uniform()) key[2] = reinterpret_cast<uint64_t>(mask_.value);
  for (size_t d = 0; d < index.digits.size(); ++d) {
    const LaneIndex& digit = index.digits[d];
    key.push_back(reinterpret_cast<uint64_t>(digit.lanes));
    key.push_back(reinterpret_cast<uint64_t>(digit.base));
    key.push_back(static_cast<uint64_t>(digit.stride));
    key.push_back(static_cast<uint64_t>(index.sizes[d]));
  }
  if (!index.uniform()) key.push_back(static_cast<uint64_t>(lanes()));  // parts of a row differ in it
  if (trip_ > 0) key.push_back(trip_);
  return key;
}

Val ElementalEmitter::Emit(const Instruction* instruction, const ArrayIndex& index) {
  return EmitAll(instruction, index)[0];
}

// Long chains of elementwise ops must not recurse: their operands at the same position are emitted from the leaves up.
void ElementalEmitter::EmitSameIndexOperands(const Instruction* root, const ArrayIndex& index) {
  const int level = LevelOf(index);
  std::vector<std::pair<const Instruction*, int64_t>> stack{{root, 0}};
  const auto expand = [&](const Instruction* i) {
    return SameIndex(i->op()) && !buffers_.contains(i) && !aliases_.contains(i) &&
           !scopes_.Find(level, KeyOf(i, index));
  };
  while (!stack.empty()) {
    auto& [i, next] = stack.back();
    if (next < i->operand_count()) {
      const Instruction* operand = i->operand(next++);
      if (operand->shape().IsArray() && operand->shape().num_elements() == i->shape().num_elements() && expand(operand))
        stack.emplace_back(operand, 0);
      continue;
    }
    const Instruction* done = i;
    stack.pop_back();
    if (done != root && !scopes_.Find(level, KeyOf(done, index))) EmitAll(done, index);
  }
}

Vals ElementalEmitter::EmitAll(const Instruction* instruction, const ArrayIndex& index) {
  instruction = Resolve(instruction);
  const Shape& shape = instruction->shape();
  if (!status_.ok()) return Fail(status_, shape);
  const int level = LevelOf(index);
  LoopScopes::Key key = KeyOf(instruction, index);
  if (const std::vector<V>* known = scopes_.Find(level, key)) {
    Vals vals;
    const std::vector<Shape> leaves = shape.Leaves();
    for (size_t k = 0; k < leaves.size(); ++k)
      vals.push_back(Val{(*known)[2 * k], (*known)[2 * k + 1], leaves[k].type()});
    return vals;
  }
  if (depth_ >= kMaxDepth || ++emitted_ > kMaxEmitted)
    return Fail(Unimplemented("%", instruction->name(), ": a kernel that is nested too deeply or grows too large"),
                shape);
  ++depth_;
  Vals vals = scopes_.At(level, [&]() -> Vals {
    const auto buffer = buffers_.find(instruction);
    if (buffer != buffers_.end()) return {Load(buffer->second, shape.type(), index)};
    const Kept* kept = nullptr;
    if (kept_)
      if (const auto found = kept_->find(instruction); found != kept_->end()) kept = &found->second;
    if (kept && kept->filled) return {Load(kept->memory, shape.type(), index)};
    if (SameIndex(instruction->op()) && depth_ % 16 == 1) EmitSameIndexOperands(instruction, index);
    Vals computed = Compute(*instruction, index);
    if (kept) Store(kept->memory, computed[0], index);
    return computed;
  });
  --depth_;
  scopes_.Remember(level, std::move(key), Flat(vals));
  return vals;
}

void ElementalEmitter::Provide(const Instruction* instruction, const ArrayIndex& index, const Vals& values) {
  scopes_.Remember(LevelOf(index), KeyOf(Resolve(instruction), index), Flat(values));
}

void ElementalEmitter::Fetch(const Instruction* instruction, const ArrayIndex& index, int count) {
  std::vector<std::pair<const Instruction*, ArrayIndex>> stack{{instruction, index}};
  std::set<const Instruction*> seen;
  while (!stack.empty()) {
    const auto [named, at] = std::move(stack.back());
    stack.pop_back();
    const Instruction* i = Resolve(named);
    if (!seen.insert(i).second) continue;
    if (const auto buffer = buffers_.find(i); buffer != buffers_.end()) {
      const LaneIndex linear = indices_.Linear(at);
      if (linear.affine())
        elements_.Fetch(buffer->second, i->shape().type(), linear.base, count > 0 ? count : lanes(),
                        ElementBuilder::Cache::kNext);
    } else if (i->op() == Op::Transpose) {
      stack.emplace_back(i->operand(0), SelectGroups(*i, at));
    } else if (SameIndex(i->op())) {
      for (int64_t k = 0; k < i->operand_count(); ++k)
        if (i->operand(k)->shape().IsArray() && i->operand(k)->shape().num_elements() == i->shape().num_elements())
          stack.emplace_back(i->operand(k), at);
    }
  }
}

Vals ElementalEmitter::Compute(const Instruction& i, const ArrayIndex& index) {
  return (this->*kRules[i.op()])(i, index);
}

Vals ElementalEmitter::WithMask(const Condition& condition, const std::function<Vals()>& f) {
  const Condition saved = mask_;
  mask_ = Both(mask_, condition);
  Vals result = f();
  mask_ = saved;
  return result;
}

Vals ElementalEmitter::Choose(const Condition& inside, bool uniform, const std::function<Vals()>& then,
                              const std::function<Vals()>& otherwise) {
  if (!inside.value) return then();
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(inside.value)) return known->isOne() ? then() : otherwise();
  if (VectorBuilder::Lanes(inside.value) > 1) {
    const Condition outside = EmitCondition(ConditionOp::kNot, inside.value, nullptr, inside.level);
    const Vals a = WithMask(inside, then);
    const Vals c = WithMask(outside, otherwise);
    Vals out;
    for (size_t k = 0; k < a.size(); ++k) out.push_back(elements_.Select(inside.value, a[k], c[k]));
    return out;
  }
  std::vector<ElementType> types;
  const auto flatten = [&](const Vals& vals) {  // both sides must give as many lanes
    std::vector<V> flat;
    types.clear();
    for (const Val& v : vals) {
      const Val wide = elements_.Splat(v, uniform ? 1 : lanes());
      types.push_back(v.type);
      flat.push_back(wide.re);
      if (wide.im) flat.push_back(wide.im);
    }
    return flat;
  };
  const std::vector<V> flat =
      scopes_.If(inside.value, [&] { return flatten(then()); }, [&] { return flatten(otherwise()); });
  Vals out;
  size_t at = 0;
  for (ElementType type : types) {
    Val v{flat[at++], nullptr, type};
    if (IsComplex(type)) v.im = flat[at++];
    out.push_back(v);
  }
  return out;
}

// Conditions are emitted where their operands are, once: they are part of the keys of what is emitted under them.
ElementalEmitter::Condition ElementalEmitter::EmitCondition(ConditionOp op, V a, V c, int level) {
  LoopScopes::Key key{static_cast<uint64_t>(op), reinterpret_cast<uint64_t>(a), reinterpret_cast<uint64_t>(c)};
  if (const std::vector<V>* known = scopes_.Find(level, key)) return Condition{(*known)[0], level};
  V v = scopes_.At(level, [&] {
    switch (op) {
      case ConditionOp::kBelow: return b_.ULt(a, c);
      case ConditionOp::kAnd: return b_.And(a, c);
      case ConditionOp::kNot: break;
    }
    return b_.Not(a);
  });
  scopes_.Remember(level, std::move(key), {v});
  return Condition{v, level};
}

ElementalEmitter::Condition ElementalEmitter::Both(const Condition& a, const Condition& c) {
  if (!a.value) return c;
  if (!c.value) return a;
  if (llvm::isa<llvm::ConstantInt>(a.value)) return a;  // false: InRange gives no other constant
  if (llvm::isa<llvm::ConstantInt>(c.value)) return c;
  return EmitCondition(ConditionOp::kAnd, a.value, c.value, std::max(a.level, c.level));
}

namespace {

// The digits from which on scale * digit + offset is in [0, bound), and no longer is, for all offsets.
void AddSplits(const LaneIndex& x, int64_t bound, std::set<int64_t>& splits) {
  constexpr int64_t kTooFar = int64_t{1} << 60;  // no array is as large
  if (x.scale == 0 || std::max(std::abs(x.offset_low), std::abs(x.offset_high)) > kTooFar || bound > kTooFar) return;
  const int64_t step = std::abs(x.scale);
  if (x.scale > 0) {
    splits.insert(x.per * -FloorDiv(x.offset_low, step));
    splits.insert(x.per * -FloorDiv(x.offset_high - bound, step));
  } else {
    splits.insert(x.per * (FloorDiv(x.offset_high - bound, step) + 1));
    splits.insert(x.per * (FloorDiv(x.offset_low, step) + 1));
  }
}

}  // namespace

ElementalEmitter::Condition ElementalEmitter::InRange(const LaneIndex& x, int64_t bound) {
  if (x.low >= 0 && x.high < bound) return Condition{};
  if (x.low != LaneIndex::kNoLow && x.high != LaneIndex::kNoHigh && (x.high < 0 || x.low >= bound))
    return Condition{b_.False(), 0};
  if (splits_ && x.digit >= 0) AddSplits(x, bound, (*splits_)[x.digit]);
  const Condition below = EmitCondition(ConditionOp::kBelow, indices_.Materialize(x), b_.I64(bound), x.level);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(below.value);  // the index is a constant without saying so
  return known && known->isOne() ? Condition{} : below;
}

Vals ElementalEmitter::Unsupported(const Instruction& i, const ArrayIndex&) {
  return Fail(Unimplemented(Name(i.op()), " ", i.shape().ToString(), ": no kernel computes it element by element"),
              i.shape());
}

// x y + z, x y - z or z - x y, rounded once.
Vals ElementalEmitter::ContractedSum(const Instruction& sum, int64_t product, const ArrayIndex& index) {
  const Instruction& factors = *sum.operand(product);
  V x = Emit(factors.operand(0), index).re, y = Emit(factors.operand(1), index).re;
  V z = Emit(sum.operand(1 - product), index).re;
  if (sum.op() == Op::Subtract) (product == 0 ? z : x) = b_.FNeg(product == 0 ? z : x);
  b_.Match(x, y);
  b_.Match(x, z);
  b_.Match(y, z);
  return {Val{b_.Fma(x, y, z), nullptr, sum.shape().type()}};
}

// Is it a quotient of rows by one number each, that bf16 rounds? (Not a matter of lanes: all elements are computed
// alike.)
bool ElementalEmitter::DividesForBf16(const Instruction& i) const {
  if (i.op() != Op::Divide || i.shape().rank() == 0) return false;
  const ElementType type = i.shape().type();
  if (type != ElementType::BF16 && (type != ElementType::F32 || !MayStayUnrounded(i))) return false;
  const Instruction* divisor = Resolve(i.operand(1));
  const int64_t last = i.shape().rank() - 1;
  return divisor->op() == Op::Broadcast &&
         std::ranges::find(divisor->dimensions(), last) == divisor->dimensions().end();
}

Vals ElementalEmitter::Elementwise(const Instruction& i, const ArrayIndex& index) {
  // Where another kernel has made the product, it is rounded, and its factors are out of reach.
  if (const int64_t product = ContractedOperand(i); product >= 0 && !buffers_.contains(i.operand(product)))
    return ContractedSum(i, product, index);
  Vals operands;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    // clamp and select take scalars for some operands.
    const bool scalar = i.operand(k)->shape().rank() == 0 && i.shape().rank() != 0;
    operands.push_back(Emit(i.operand(k), scalar ? ArrayIndex{} : index));
  }
  const ScalarOp op{i.op(), i.shape().type(), &i.any_attrs(), MayStayUnrounded(i), DividesForBf16(i)};
  return {scalars_.Emit(op, operands)};
}

Vals ElementalEmitter::PassThrough(const Instruction& i, const ArrayIndex& index) {
  if (!i.shape().IsArray()) return Unsupported(i, index);
  return {Emit(i.operand(0), index)};
}

Vals ElementalEmitter::ConstantRule(const Instruction& i, const ArrayIndex& index) {
  const Literal& literal = i.literal();
  const ElementType type = literal.type();
  if (literal.num_elements() == 1 || literal.AllElementsEqual())
    return {elements_.Constant(type, literal.bytes().data())};
  ElementBuilder::Memory& memory = constants_[&i];
  if (!memory.pointer) {
    const auto bytes = literal.bytes();
    llvm::Constant* data = llvm::ConstantDataArray::getRaw(
        llvm::StringRef(reinterpret_cast<const char*>(bytes.data()), bytes.size()), bytes.size(), b_.Int(8));
    auto* global = new llvm::GlobalVariable(b_.module(), data->getType(), /*isConstant=*/true,
                                            llvm::GlobalValue::PrivateLinkage, data, "constant");
    global->setAlignment(llvm::Align(64));
    memory = {.pointer = global, .invariant = true, .alignment = 64};
  }
  return {Load(memory, type, index)};
}

Vals ElementalEmitter::Iota(const Instruction& i, const ArrayIndex& index) {
  const int64_t dimension = i.attrs<IotaAttrs>().dimension;
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < i.shape().rank(); ++d)
    (d < dimension ? outer : inner) *= d == dimension ? 1 : i.shape().dim(d);
  const int64_t size = i.shape().dim(dimension);
  const ArrayIndex grouped = indices_.Refactor(index, Int64Vector{outer, size, inner});
  V number = indices_.Materialize(grouped.digits[1]);
  if (size <= INT32_MAX) {  // vectors convert 32-bit integers with one instruction
    return {scalars_.Convert(Val{b_.ZExtOrTrunc(number, 32), nullptr, ElementType::S32}, i.shape().type())};
  }
  return {scalars_.Convert(Val{number, nullptr, ElementType::S64}, i.shape().type())};
}

Vals ElementalEmitter::GetTupleElement(const Instruction& i, const ArrayIndex& index) {
  if (!i.shape().IsArray()) return Unsupported(i, index);
  const int64_t k = i.tuple_index();
  const Instruction* tuple = i.operand(0);
  while (tuple->op() == Op::Fusion && BindFusion(*tuple)) tuple = tuple->called(0)->root();
  if (tuple->op() == Op::Tuple) return {Emit(tuple->operand(k), index)};
  if (loops_.contains(tuple)) return StateOfLoop(i, index);
  const Vals all = EmitAll(tuple, index);
  return {all[static_cast<size_t>(k)]};
}

// All trips of the elements at a position, in registers.
Vals ElementalEmitter::While(const Instruction& i, const ArrayIndex& index) {
  using Role = PositionwiseLoop::Role;
  const std::optional<PositionwiseLoop> loop = FindPositionwiseLoop(i);
  if (!loop || index.num_elements() != loop->elements) return Unsupported(i, index);
  const Instruction *init = i.operand(0), *next = i.body()->root();
  LoopState state{init, index, std::vector<std::optional<Val>>(loop->roles.size()), loop->roles};
  std::vector<size_t> places;  // of what changes, in the state
  Vals start;
  for (size_t k = 0; k < loop->roles.size(); ++k) {
    if (loop->roles[k] == Role::kInvariant) continue;
    const Instruction* first = init->operand(static_cast<int64_t>(k));
    start.push_back(loop->roles[k] == Role::kCarried ? elements_.Splat(Emit(first, index), lanes())
                                                     : Emit(first, ArrayIndex{}));
    places.push_back(k);
  }
  // Calls `emit` with the state that is carried.
  const auto with = [&](const Vals& carried, const auto& emit) {
    for (size_t c = 0; c < places.size(); ++c) state.carried[places[c]] = carried[c];
    for (const Computation* c : {i.body(), i.condition()}) loops_[c->parameter(0)] = state;
    const uint64_t around = std::exchange(trip_, scopes_.NewOwner());
    auto emitted = emit();
    trip_ = around;
    for (const Computation* c : {i.body(), i.condition()}) loops_.erase(c->parameter(0));
    return emitted;
  };
  const auto trip = [&](V, const Vals& carried) {
    return with(carried, [&] {
      Vals results;
      for (const size_t k : places)
        results.push_back(
            Emit(next->operand(static_cast<int64_t>(k)), loop->roles[k] == Role::kCarried ? index : ArrayIndex{}));
      return results;
    });
  };
  Vals ends;
  if (loop->going_on >= 0) {
    const auto going_on = std::find(places.begin(), places.end(), static_cast<size_t>(loop->going_on));
    const auto goes_on = [&](const Vals& carried) {
      V any = AnyLane(carried[static_cast<size_t>(going_on - places.begin())]);
      for (const Instruction* limit : loop->limits)
        any = b_.ir().CreateAnd(any, with(carried, [&] { return Emit(limit, ArrayIndex{}); }).re);
      return any;
    };
    ends = LoopUntilEnded(start, goes_on, trip);
  } else {
    ends = LoopOver("trips", b_.I64(0), b_.I64(loop->trips), 1, start, trip, /*pinned=*/true);
  }
  Vals results(loop->roles.size());
  for (size_t k = 0; k < results.size(); ++k)
    results[k] = elements_.Poison(i.shape().element(static_cast<int64_t>(k)).type(), 1);
  for (size_t c = 0; c < places.size(); ++c) results[places[c]] = ends[c];
  return results;
}

V ElementalEmitter::AnyLane(const Val& pred) {
  V on = pred.re;
  if (mask_.value) on = b_.ir().CreateAnd(elements_.Splat(pred, lanes()).re, mask_.value);
  return VectorBuilder::Lanes(on) > 1 ? b_.ir().CreateOrReduce(on) : on;
}

// Predicates go from trip to trip as masks of `bits` a lane: vectors of single bits would be taken apart.
std::vector<llvm::Value*> ElementalEmitter::CarriedParts(const Vals& values, int bits, const Vals& like) {
  std::vector<V> parts;
  for (size_t k = 0; k < values.size(); ++k) {
    const Val v = elements_.Splat(values[k], like[k].lanes());
    parts.push_back(IsMask(v) ? b_.ir().CreateSExt(v.re, MaskType(v, bits)) : v.re);
    if (v.im) parts.push_back(v.im);
  }
  return parts;
}

Vals ElementalEmitter::FromParts(std::span<const V> parts, int bits, const Vals& like) {
  Vals values = like;
  size_t k = 0;
  for (Val& v : values) {
    const bool mask = IsMask(v);
    v.re = parts[k++];
    if (mask) v.re = b_.ir().CreateICmpSLT(v.re, llvm::Constant::getNullValue(v.re->getType()));
    if (v.im) v.im = parts[k++];
  }
  return values;
}

// In pieces of so many trips, between which it is asked whether the run was cancelled: the loop may be endless.
Vals ElementalEmitter::LoopUntilEnded(const Vals& init, const std::function<V(const Vals&)>& goes_on,
                                      const std::function<Vals(V, const Vals&)>& trip) {
  constexpr int64_t kPiece = 4096;
  IrBuilder& ir = b_.ir();
  // Masks as wide as other values, which is what vectors of them are compared to.
  int bits = 8;
  for (const Val& v : init)
    if (v.type != ElementType::Pred) bits = std::max(bits, static_cast<int>(v.re->getType()->getScalarSizeInBits()));
  const auto values = [&](std::span<const V> parts) { return FromParts(parts, bits, init); };
  const auto not_cancelled = [&]() -> std::vector<V> {
    llvm::FunctionCallee asked =
        b_.module().getOrInsertFunction(kCancelledSymbol, llvm::FunctionType::get(b_.Int(1), false));
    auto* function = llvm::cast<llvm::Function>(asked.getCallee());
    function->setDoesNotThrow();
    function->addRetAttr(llvm::Attribute::ZExt);
    return {ir.CreateNot(ir.CreateCall(asked))};
  };
  // The count of the piece's trips comes last.
  const auto in_piece = [&](std::span<const V> at) {
    return ir.CreateAnd(goes_on(values(at)), ir.CreateICmpSLT(at.back(), b_.I64(kPiece)));
  };
  const auto counted_trip = [&](std::span<const V> at) {
    std::vector<V> next = CarriedParts(trip(nullptr, values(at)), bits, init);
    next.push_back(ir.CreateAdd(at.back(), b_.I64(1)));
    return next;
  };
  const auto piece = [&](std::span<const V> carried) {
    std::vector<V> counted(carried.begin(), carried.end());
    counted.push_back(b_.I64(0));
    std::vector<V> ends = scopes_.While("trips", counted, in_piece, counted_trip);
    ends.pop_back();
    return ends;
  };
  const auto another_piece = [&](std::span<const V> at) {
    return scopes_.If(goes_on(values(at)), not_cancelled, [&] { return std::vector<V>{ir.getFalse()}; })[0];
  };
  return values(scopes_.While("pieces", CarriedParts(init, bits, init), another_piece, piece));
}

// The same elements, perhaps counted by other digits: a walk in one digit reaches [n,1] by division, which is emitted
// once, but what sums up to it again is a value of its own.
bool ElementalEmitter::IsAt(const ArrayIndex& index, const ArrayIndex& position) {
  if (indices_.Linear(index) == indices_.Linear(position)) return true;
  const ArrayIndex there = indices_.Refactor(position, index.sizes);
  return std::equal(there.digits.begin(), there.digits.end(), index.digits.begin(), index.digits.end());
}

Vals ElementalEmitter::StateOfLoop(const Instruction& i, const ArrayIndex& index) {
  const LoopState& state = loops_.at(i.operand(0));
  const size_t k = static_cast<size_t>(i.tuple_index());
  if (!state.carried[k]) return {Emit(state.init->operand(i.tuple_index()), index)};
  if (state.roles[k] == PositionwiseLoop::Role::kUniform) return {*state.carried[k]};
  if (!IsAt(index, state.position))
    return Fail(Unimplemented("%", i.name(), " is read at another position of its loop"), i.shape());
  return {*state.carried[k]};
}

bool ElementalEmitter::BindFusion(const Instruction& i) {
  const Computation& body = *i.called(0);
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const auto [at, fresh] = aliases_.emplace(body.parameter(k), i.operand(k));
    if (!fresh && at->second != i.operand(k)) {
      Fail(Unimplemented("%", i.name(), ": two fusions of one kernel share the computation %", body.name()), i.shape());
      return false;
    }
  }
  return true;
}

Vals ElementalEmitter::FusionRule(const Instruction& i, const ArrayIndex& index) {
  if (!BindFusion(i)) return Fail(status_, i.shape());
  return EmitAll(i.called(0)->root(), index);
}

Vals ElementalEmitter::GetDimensionSize(const Instruction& i, const ArrayIndex& index) {
  const Shape& shape = i.operand(0)->shape();
  const int64_t dimension = i.dimensions()[0];
  if (shape.is_dynamic(dimension)) return Unsupported(i, index);
  return {Val{b_.I32(static_cast<int32_t>(shape.dim(dimension))), nullptr, ElementType::S32}};
}

Decision CanEmitElement(const Instruction& i) {
  if (kRules[i.op()] == ElementRules::kUnsupported && i.op() != Op::Tuple)
    return Decision::No(Name(i.op()), " has no elementwise code");
  for (const Shape& leaf : i.shape().Leaves()) {
    if (!leaf.IsArray()) return Decision::No(Name(i.op()), " of ", i.shape().ToString());
    if (!leaf.IsStatic()) return Decision::No(Name(i.op()), " of dynamic shape ", leaf.ToString());
  }
  if (i.op() == Op::Fusion) {
    for (const Instruction* inner : i.called(0)->instructions()) {
      if (inner->op() == Op::Parameter) continue;
      Decision d = CanEmitElement(*inner);
      if (!d) return d;
    }
    return Decision::Yes();
  }
  if (i.op() == Op::Remainder && IsComplex(i.shape().type())) return Decision::No("complex numbers have no remainder");
  if (i.op() == Op::BitcastConvert || i.op() == Op::Bitcast) {
    const ElementType from = i.operand(0)->shape().type(), to = i.shape().type();
    if (from != to && (IsComplex(from) || IsComplex(to)))
      return Decision::No("bitcast of ", Name(from), " to ", Name(to));
  }
  if (i.op() == Op::While)
    return FindPositionwiseLoop(i) ? Decision::Yes() : Decision::No("its trips are not independent of each other");
  for (const Computation* c : i.called()) {
    Decision d = CanInline(*c);
    if (!d) return d;
  }
  return Decision::Yes();
}

}  // namespace strop
