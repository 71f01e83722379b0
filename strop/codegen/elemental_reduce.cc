// Reductions as values: reduce, reduce-window, map, and scalar computations inlined.
//
// Order of evaluation. A result element starts from the init value and takes the operand's elements in index order,
// unless the combiner is known to be associative and commutative (RecognizeCombiner) and the position is uniform: then
// the lanes accumulate apart along the innermost reduced dimension, and are combined by a tree in the end. Either way
// the order depends on the shapes alone.
//
// Sums of floats are cut: every kSumBlock elements make a partial sum, as many of these the next, so that the rounding
// error grows with the logarithm of the length and not with its root (or, of numbers of one sign, the length itself).
//
//   reduce f32[8,1000] over 1, position uniform:  acc[16 lanes] = identity; loop r by 16: acc += x[i, r..r+15]; tree; +
//   init reduce f32[1000,8] over 0, lanes along dim 1: acc[16 lanes] = init;     loop r by 1:  acc += x[r, lanes]
#include <algorithm>
#include <cmath>

#include "strop/analysis/pairwise.h"
#include "strop/codegen/elemental.h"
#include "strop/ir/contraction.h"

namespace strop {

using V = llvm::Value*;

Decision CanInline(const Computation& computation) {
  for (const Instruction* i : computation.instructions()) {
    switch (i->op()) {
      case Op::Parameter:
      case Op::Constant:
      case Op::Tuple:
      case Op::GetTupleElement:
      case Op::Call:
      case Op::Conditional:
      case Op::Fusion:
      case Op::Map:
      case Op::Reshape:
      case Op::Bitcast:
      case Op::BitcastConvert:
      case Op::Broadcast:
      case Op::Copy:
      case Op::OptimizationBarrier: break;
      default:
        if (!IsElementwise(i->op()))
          return Decision::No("%", i->name(), " in %", computation.name(), " is no scalar operation");
    }
    for (const Shape& leaf : i->shape().Leaves())
      if (!leaf.IsArray() || leaf.num_elements() != 1)
        return Decision::No("%", i->name(), " in %", computation.name(), " is no scalar");
    for (const Computation* callee : i->called()) {
      Decision d = CanInline(*callee);
      if (!d) return d;
    }
  }
  return Decision::Yes();
}

Vals ElementalEmitter::Inline(const Computation& computation, const Vals& arguments, const Instruction* known) {
  std::unordered_map<const Instruction*, Vals> values;
  size_t next = 0;
  for (const Instruction* parameter : computation.parameters()) {
    Vals& leaves = values[parameter];
    for (int64_t k = 0; k < parameter->shape().num_leaves(); ++k) leaves.push_back(arguments[next++]);
  }
  for (const Instruction* i : computation.instructions()) {
    if (i->op() == Op::Parameter) continue;
    if (i == known) {
      values[i] = {Val{b_.True(), nullptr, ElementType::Pred}};
      continue;
    }
    Vals operands;
    for (int64_t k = 0; k < i->operand_count(); ++k) {
      const Vals& v = values[i->operand(k)];
      operands.insert(operands.end(), v.begin(), v.end());
    }
    Vals& out = values[i];
    switch (i->op()) {
      case Op::Constant: out = {elements_.Constant(i->shape().type(), i->literal().bytes().data())}; break;
      case Op::Tuple:
      case Op::Reshape:
      case Op::Broadcast:
      case Op::Copy:
      case Op::OptimizationBarrier: out = operands; break;
      case Op::Bitcast:
      case Op::BitcastConvert: out = {scalars_.Bitcast(operands[0], i->shape().type())}; break;
      case Op::GetTupleElement: {
        int64_t first = 0;
        for (int64_t k = 0; k < i->tuple_index(); ++k) first += i->operand(0)->shape().element(k).num_leaves();
        out.assign(operands.begin() + first, operands.begin() + first + i->shape().num_leaves());
        break;
      }
      case Op::Call:
      case Op::Fusion:
      case Op::Map: out = Inline(*i->called(0), operands); break;
      case Op::Conditional: out = InlineConditional(*i, operands); break;
      default: out = {scalars_.Emit(ScalarOp{i->op(), i->shape().type(), &i->any_attrs()}, operands)};
    }
  }
  return values[computation.root()];
}

// All branches are computed, one is chosen: they are scalar code without effects. `operands`: the predicate (branch 0
// if true) or the index (the last branch if out of range), then the leaves of each branch's argument.
Vals ElementalEmitter::InlineConditional(const Instruction& i, const Vals& operands) {
  const int64_t branches = static_cast<int64_t>(i.called().size());
  const Val& selector = operands[0];
  size_t next = 1;
  std::vector<Vals> results;
  for (int64_t k = 0; k < branches; ++k) {
    const size_t leaves = static_cast<size_t>(i.operand(k + 1)->shape().num_leaves());
    results.push_back(Inline(*i.called(k), Vals(operands.begin() + next, operands.begin() + next + leaves)));
    next += leaves;
  }
  Vals chosen = results.back();
  for (int64_t k = branches - 1; k-- > 0;) {
    V here = IsPred(selector.type) ? selector.re : b_.ir().CreateICmpEQ(selector.re, b_.I(k, selector.re));
    for (size_t leaf = 0; leaf < chosen.size(); ++leaf) {
      const Val& value = results[static_cast<size_t>(k)][leaf];
      const int lanes = std::max({VectorBuilder::Lanes(here), value.lanes(), chosen[leaf].lanes()});
      chosen[leaf] =
          elements_.Select(b_.Splat(here, lanes), elements_.Splat(value, lanes), elements_.Splat(chosen[leaf], lanes));
    }
  }
  return chosen;
}

// A loop whose carried values are HLO values.
Vals ElementalEmitter::LoopOver(const char* name, V begin, V end, int64_t step, const Vals& init,
                                const std::function<Vals(V i, const Vals& carried)>& body, bool pinned) {
  const auto flatten = [](const Vals& vals) {
    std::vector<V> flat;
    for (const Val& v : vals) {
      flat.push_back(v.re);
      if (v.im) flat.push_back(v.im);
    }
    return flat;
  };
  const auto unflatten = [&](std::span<const V> flat) {
    Vals vals;
    size_t k = 0;
    for (const Val& v : init) {
      Val out{flat[k++], nullptr, v.type};
      if (v.im) out.im = flat[k++];
      vals.push_back(out);
    }
    return vals;
  };
  const std::vector<V> results = scopes_.Loop(
      name, begin, end, step, flatten(init),
      [&](V i, std::span<const V> carried) {
        Vals next = body(i, unflatten(carried));
        for (size_t k = 0; k < next.size(); ++k) next[k] = elements_.Splat(next[k], init[k].lanes());
        return flatten(next);
      },
      pinned);
  return unflatten(results);
}

struct ElementalEmitter::Accumulation {
  const Instruction* reduce = nullptr;
  LaneCombiner combiner;
  int64_t inputs = 1;
  std::vector<size_t> loops;        // groups of the operand that are reduced, outermost first
  bool across_lanes = false;        // the last of them by lanes
  bool in_strips = false;           // parts are strips, with the masks of these
  bool in_chains = false;           // parts are neighbours along the last loop, whose steps would wait for each other
  bool first_vector_taken = false;  // the accumulators start as the first elements of the last (and only) loop
  Vals partials;            // sums are cut into partial ones, which start as these, by input; empty: they are not
  bool contracted = false;  // a sum of products that are not rounded (ir/contraction.h)
  const Instruction* known = nullptr;  // a comparison of the combiner that holds for all elements in their order
};

// x y + z, rounded once, if `product` is x y of these lanes and not made elsewhere; otherwise the sum as it is.
static V PlusProduct(VectorBuilder& b, V z, V product) {
  const auto* made = llvm::dyn_cast<llvm::BinaryOperator>(product);
  if (!made || made->getOpcode() != llvm::Instruction::FMul || product->getType() != z->getType())
    return b.FAdd(z, product);
  return b.Fma(made->getOperand(0), made->getOperand(1), z);
}

Vals ElementalEmitter::CombineInto(const LaneCombiner& combiner, const Vals& accumulators, const Vals& values, V mask,
                                   const Accumulation* a) {
  Vals args = accumulators;
  for (size_t k = 0; k < values.size(); ++k) {
    Val v = values[k];
    v.type = accumulators[k].type;  // small floats may accumulate as f32
    args.push_back(v);
  }
  Vals next;
  if (a && a->contracted) {
    next = {Val{PlusProduct(b_, args[0].re, args[1].re), nullptr, args[0].type}};
  } else if (combiner.op != Op::kEnd) {
    static const Attrs kNone = NoAttrs{};
    next = {scalars_.Emit(ScalarOp{combiner.op, args[0].type, &kNone}, args)};
  } else {
    next = InlineByRegisters(*combiner.computation, args, a ? a->known : nullptr);
  }
  if (mask)
    for (size_t k = 0; k < next.size(); ++k) next[k] = elements_.Select(mask, next[k], accumulators[k]);
  return next;
}

// Conditions on more lanes than a register has are kept as one mask, which is put together from those of the registers
// and taken apart again for each choice; so what chooses (argmax) is computed register by register.
Vals ElementalEmitter::InlineByRegisters(const Computation& computation, const Vals& args, const Instruction* known) {
  int lanes = 1, bits = 8;
  for (const Val& v : args) {
    lanes = std::max(lanes, v.lanes());
    bits = std::max(bits, VectorBuilder::ScalarBits(v.re));
    if (v.im) return Inline(computation, args, known);
  }
  if (lanes * bits <= b_.target().vector_bytes * 8 || lanes % 2) return Inline(computation, args, known);
  const auto half = [&](int first) {
    Vals part;
    for (const Val& v : args)
      part.push_back(v.lanes() == 1 ? v : Val{b_.Slice(v.re, first, lanes / 2), nullptr, v.type});
    return InlineByRegisters(computation, part, known);
  };
  Vals low = half(0), high = half(lanes / 2);
  for (size_t k = 0; k < low.size(); ++k)
    low[k].re = b_.Concat(b_.Splat(low[k].re, lanes / 2), b_.Splat(high[k].re, lanes / 2));
  return low;
}

// The dimension of `from` that `dimension` of `to`, the same elements in other dimensions, is a part of; or -1.
static int64_t DimensionAround(const Shape& from, const Shape& to, int64_t dimension) {
  int64_t behind = 1, suffix = 1;
  for (int64_t d = to.rank() - 1; d > dimension; --d) behind *= to.dim(d);
  for (int64_t d = from.rank() - 1; d >= 0; suffix *= from.dim(d--))
    if (behind % suffix == 0 && (suffix * from.dim(d)) % (behind * to.dim(dimension)) == 0) return d;
  return -1;
}

// The input of a reduction over one dimension that counts along it (an iota, perhaps broadcast or converted), or -1.
int64_t ElementalEmitter::PositionInput(const Instruction& i, int64_t inputs) const {
  if (i.dimensions().size() != 1) return -1;
  for (int64_t k = 0; k < inputs; ++k) {
    int64_t dimension = i.dimensions()[0];
    const Instruction* at = Resolve(i.operand(k));
    while (!buffers_.contains(at) && IsInteger(at->shape().type()) && at->op() != Op::Iota) {
      if (at->op() == Op::Convert && Bits(at->shape().type()) >= 32) {
        at = Resolve(at->operand(0));
      } else if (at->op() == Op::Broadcast) {
        const Dims& to = at->dimensions();
        const auto from = std::find(to.begin(), to.end(), dimension);
        if (from == to.end()) break;
        dimension = from - to.begin();
        at = Resolve(at->operand(0));
      } else if (at->op() == Op::Reshape) {
        dimension = DimensionAround(at->operand(0)->shape(), at->shape(), dimension);
        at = Resolve(at->operand(0));
      } else {
        break;
      }
    }
    if (at->op() == Op::Iota && IsInteger(at->shape().type()) && at->attrs<IotaAttrs>().dimension == dimension)
      return k;
  }
  return -1;
}

// The combiner's comparison of two positions, of the elements before against that of the next one. It always holds,
// since positions count up, if the first one is no more than any; where they are equal it does not matter.
const Instruction* ElementalEmitter::ComparisonOfPositions(const Instruction& i, int64_t inputs,
                                                           int64_t position) const {
  const Instruction* init = Resolve(i.operand(inputs + position));
  if (init->op() != Op::Constant || init->literal().GetInt(0) != 0) return nullptr;
  const Instruction* before = i.called(0)->parameter(position);
  if (Bits(before->shape().type()) < 32) return nullptr;  // may begin again
  const Instruction* next = i.called(0)->parameter(inputs + position);
  for (const Instruction* c : i.called(0)->instructions()) {
    if (c->op() != Op::Compare) continue;
    const CompareDirection direction = c->attrs<CompareAttrs>().direction;
    const bool less = direction == CompareDirection::Lt || direction == CompareDirection::Le;
    const bool greater = direction == CompareDirection::Gt || direction == CompareDirection::Ge;
    if ((less && c->operand(0) == before && c->operand(1) == next) ||
        (greater && c->operand(0) == next && c->operand(1) == before))
      return c;
  }
  return nullptr;
}

constexpr int kChains = 4;
constexpr int64_t kLeastInChains = 16;
constexpr int64_t kLeastInHalves = 8;  // elements of a row that is chosen from

// A step of a reduction of it is mostly waiting for the step before.
bool ElementalEmitter::IsLittleCode(const Instruction& operand) const {
  constexpr int kLittleCode = 8;
  std::vector<const Instruction*> found = {Resolve(&operand)};
  for (size_t n = 0; n < found.size(); ++n) {
    if (buffers_.contains(found[n]) || found[n]->op() == Op::Constant) continue;
    const Op op = found[n]->op();
    if (n >= kLittleCode || Is(op, kFloatMath)) return false;
    if (!IsElementwise(op) && op != Op::Broadcast && op != Op::Reshape && op != Op::Bitcast && op != Op::Slice)
      return false;
    for (const Instruction* next : found[n]->operands()) found.push_back(Resolve(next));
  }
  return true;
}

// Extremes of floats in one register, of what is little code: a step is several instructions, which wait for those of
// the step before.
bool ElementalEmitter::IsLongChain(const Instruction& reduce, const LaneCombiner& combiner, ElementType type,
                                   int width) const {
  if ((combiner.op != Op::Minimum && combiner.op != Op::Maximum) || reduce.operand_count() != 2 || !IsFloat(type))
    return false;
  if (width * Bits(type) > b_.target().vector_bytes * 8 || b_.quick()) return false;
  return IsLittleCode(*reduce.operand(0));
}

constexpr int64_t kWideStrip = 128, kLargeOperand = int64_t{1} << 20;  // bytes

// As many elements are added one after the other.
constexpr int64_t kSumBlock = 64;
constexpr int64_t kMaxUnrolledReduce = 4;  // elements that are combined without a loop

// e with combine(e, x) = x for all x, or nullopt.
std::optional<Val> ElementalEmitter::Identity(const LaneCombiner& combiner, ElementType type) {
  V zero = llvm::Constant::getNullValue(elements_.RegisterType(type));
  const auto make = [&](V v) { return Val{v, IsComplex(type) ? v : nullptr, type}; };
  const bool real = IsFloat(type) || IsComplex(type);
  const int bits = IsPred(type) ? 1 : Bits(type);
  switch (combiner.op) {
    case Op::Add: return make(real ? b_.F(-0.0, zero) : zero);
    case Op::Or:
    case Op::Xor: return make(zero);
    case Op::And: return make(b_.I(-1, zero));
    case Op::Multiply:
      return IsComplex(type) ? std::nullopt : std::optional(make(real ? b_.F(1, zero) : b_.I(1, zero)));
    case Op::Minimum:
    case Op::Maximum: {
      if (IsComplex(type)) return std::nullopt;
      const bool min = combiner.op == Op::Minimum;
      if (real) return make(b_.F(min ? HUGE_VAL : -HUGE_VAL, zero));
      if (!IsSigned(type)) return make(b_.I(min ? -1 : 0, zero));
      const int64_t highest = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
      return make(b_.I(min ? highest : -highest - 1, zero));
    }
    default: return std::nullopt;
  }
}

// What partial results start as, of as many lanes as the accumulators.
Vals ElementalEmitter::PartialResults(const Accumulation& a, const Vals& accumulators) {
  Vals start;
  for (const Val& v : accumulators)
    start.push_back(elements_.Splat(a.partials[start.size() % a.partials.size()], v.lanes()));
  return start;
}

// Loops in loops, each of at most kSumBlock trips, that walk from begin to end.
Vals ElementalEmitter::LoopInBlocks(const Accumulation& a, V begin, V end, int64_t step, int64_t trips,
                                    const Vals& accumulators,
                                    const std::function<Vals(V i, const Vals& carried)>& body) {
  if (a.partials.empty() || trips <= kSumBlock) return LoopOver("reduce", begin, end, step, accumulators, body);
  int64_t inner = kSumBlock;
  while (inner * kSumBlock < trips) inner *= kSumBlock;
  return LoopOver("block", begin, end, inner * step, accumulators, [&](V first, const Vals& carried) {
    V last = b_.ir().CreateNSWAdd(first, b_.I64(inner * step));
    last = b_.ir().CreateSelect(b_.ir().CreateICmpSLT(last, end), last, end);
    return CombineAll(a, carried, LoopInBlocks(a, first, last, step, inner, PartialResults(a, carried), body), nullptr);
  });
}

// The values of all parts at their positions, combined with their accumulators.
Vals ElementalEmitter::CombineParts(const Accumulation& a, const std::vector<ArrayIndex>& parts,
                                    const Vals& accumulators, V mask) {
  Vals values;
  for (size_t p = 0; p < parts.size(); ++p) {
    const Vals of_part = WithMask(a.in_strips ? strip_masks_[p] : Condition{}, [&] {
      Vals emitted;
      for (int64_t k = 0; k < a.inputs; ++k) emitted.push_back(Emit(a.reduce->operand(k), parts[p]));
      return emitted;
    });
    values.insert(values.end(), of_part.begin(), of_part.end());
  }
  return CombineAll(a, accumulators, values, mask, /*elements=*/true);
}

// The same of values that are known: elements of the operand, or partial results.
Vals ElementalEmitter::CombineAll(const Accumulation& a, const Vals& accumulators, const Vals& values, V mask,
                                  bool elements) {
  const size_t inputs = static_cast<size_t>(a.inputs);
  Vals next;
  for (size_t first = 0; first < accumulators.size(); first += inputs) {
    const auto of = [&](const Vals& all) { return Vals(all.begin() + first, all.begin() + first + inputs); };
    const Vals combined = CombineInto(a.combiner, of(accumulators), of(values), mask, elements ? &a : nullptr);
    next.insert(next.end(), combined.begin(), combined.end());
  }
  return next;
}

// Are the elements of a row read together, and emitted one by one? Quick code gathers them in a loop.
bool ElementalEmitter::DealsOut(const Instruction& reduce) const {
  return lanes() > 1 && ReducesNeighbours(reduce) && !(b_.quick() && b_.target().masked_memory);
}

Vals ElementalEmitter::AccumulateLoops(const Accumulation& a, size_t loop, std::vector<ArrayIndex>& parts,
                                       Vals accumulators) {
  if (loop == a.loops.size()) return CombineParts(a, parts, accumulators, nullptr);
  const size_t group = a.loops[loop];
  const int64_t size = parts[0].sizes[group];
  const bool vector = a.across_lanes && loop + 1 == a.loops.size();
  const bool chains = a.in_chains && loop + 1 == a.loops.size();
  const int64_t step = vector || chains ? (vector ? lanes() : 1) * static_cast<int64_t>(parts.size()) : 1;
  int64_t inside = 1;  // elements that one trip adds
  for (size_t l = loop + 1; l < a.loops.size(); ++l) inside *= parts[0].sizes[a.loops[l]];
  const auto go_to = [&](const LaneIndex& digit) {
    for (size_t p = 0; p < parts.size(); ++p) {
      const int64_t number = static_cast<int64_t>(p);
      LaneIndex& at = parts[p].digits[group];
      at = digit;
      if (vector && p > 0) at = indices_.Neighbours(digit, lanes() * number);
      if (chains && p > 0) at = indices_.Shift(digit, number);
    }
  };
  const bool dealt = !vector && group + 1 == parts[0].sizes.size() && DealsOut(*a.reduce);
  const auto one_by_one = [&](int64_t first, int64_t last, Vals carried) {
    for (int64_t k = first; k < last; ++k) {
      go_to(indices_.Constant(k));
      carried = AccumulateLoops(a, loop + 1, parts, carried);
    }
    return carried;
  };
  if (dealt && a.known && a.combiner.reorderable && parts.size() == 1 && size >= kLeastInHalves) {
    // Choices wait for each other: so those of the second half do not wait for the first one.
    const int64_t half = size / 2;
    accumulators = one_by_one(0, half, accumulators);
    go_to(indices_.Constant(half));
    Vals others;
    for (int64_t k = 0; k < a.inputs; ++k)
      others.push_back(elements_.Splat(Emit(a.reduce->operand(k), parts[0]), accumulators[0].lanes()));
    return CombineAll(a, accumulators, one_by_one(half + 1, size, others), nullptr, /*elements=*/true);
  }
  if (dealt || (!vector && size * inside <= kMaxUnrolledReduce)) return one_by_one(0, size, accumulators);
  const auto body = [&](V i, const Vals& carried) {
    go_to(indices_.Counter(i, scopes_.current(), vector ? 1 : 0, step));
    if (a.partials.empty() || inside < kSumBlock / 4) return AccumulateLoops(a, loop + 1, parts, carried);
    return CombineAll(a, carried, AccumulateLoops(a, loop + 1, parts, PartialResults(a, carried)), nullptr);
  };
  const int64_t whole = size - size % step;
  const int64_t begin = vector && a.first_vector_taken ? step : 0;
  if (whole > begin)
    accumulators = LoopInBlocks(a, b_.I64(begin), b_.I64(whole), step, (whole - begin) / step, accumulators, body);
  return whole < size ? AccumulateTail(a, group, whole, size, parts, accumulators) : accumulators;
}

// The last vectors, one a strip; of the last of them, some lanes. Or the last elements, one a chain.
Vals ElementalEmitter::AccumulateTail(const Accumulation& a, size_t group, int64_t first, int64_t size,
                                      std::vector<ArrayIndex>& parts, Vals accumulators) {
  const size_t inputs = static_cast<size_t>(a.inputs);
  const int64_t step = a.in_chains ? 1 : lanes();
  for (size_t p = 0; p < parts.size() && first < size; ++p, first += step) {
    parts[p].digits[group] =
        a.in_chains ? indices_.Constant(first) : LaneIndex{.base = b_.I64(first), .stride = 1, .multiple = lanes()};
    const std::vector<ArrayIndex> part{parts[p]};
    const auto at = accumulators.begin() + static_cast<std::ptrdiff_t>(p * inputs);
    const Vals before(at, at + static_cast<std::ptrdiff_t>(inputs));
    Condition rest;
    if (size - first < step) rest = {b_.ULt(b_.LaneNumbers(lanes(), 64), b_.I64(size - first)), 0};
    const Vals after = WithMask(rest, [&] { return CombineParts(a, part, before, rest.value); });
    std::copy(after.begin(), after.end(), at);
  }
  return accumulators;
}

// A reduction that all lanes share runs along lanes of its own: which lanes of the result are on says nothing of them.
// If none is, its position may be anywhere.
Vals ElementalEmitter::ReduceUnmasked(const Instruction& i, const ArrayIndex& index) {
  ArrayIndex safe = index;
  for (size_t d = 0; d < safe.digits.size(); ++d) {
    LaneIndex& digit = safe.digits[d];
    const int64_t last = std::max<int64_t>(safe.sizes[d] - 1, 0);
    if (digit.low >= 0 && digit.high <= last) continue;
    V clamped = scopes_.At(digit.level, [&] { return b_.Binary(llvm::Intrinsic::umin, digit.base, b_.I64(last)); });
    digit = indices_.FromLanes(clamped, digit.level).Within(0, last);
  }
  const Condition saved = mask_;
  mask_ = Condition{};
  Vals result = Reduce(i, safe);
  mask_ = saved;
  return result;
}

Vals ElementalEmitter::Reduce(const Instruction& i, const ArrayIndex& index) {
  if (mask_.value && index.uniform()) return ReduceUnmasked(i, index);
  return ReduceParts(i, {&index, 1});
}

Vals ElementalEmitter::ReduceParts(const Instruction& i, std::span<const ArrayIndex> parts) {
  return ReduceAt(i, parts, false);
}

// Empty where nothing is added that rounds, or something has no such start.
Vals ElementalEmitter::PartialStarts(std::span<const Op> ops, const Vals& init) {
  Vals starts;
  bool rounds = false;
  for (size_t k = 0; k < ops.size(); ++k) {
    rounds |= ops[k] == Op::Add && !IsInteger(init[k].type) && !IsPred(init[k].type);
    const std::optional<Val> identity = Identity({nullptr, true, ops[k]}, init[k].type);
    if (!identity) return {};
    starts.push_back(*identity);
  }
  return rounds ? starts : Vals();
}

Vals ElementalEmitter::ReduceAt(const Instruction& i, std::span<const ArrayIndex> parts, bool in_strips) {
  Accumulation a{&i, RecognizeCombiner(*i.called(0)), i.operand_count() / 2, {}, false, in_strips};
  const Shape& operand = i.operand(0)->shape();
  std::vector<bool> reduced(operand.rank(), false);
  for (int64_t d : i.dimensions()) reduced[d] = true;
  // Groups of operand dimensions, kept and reduced in turns.
  std::vector<bool> group_reduced;
  Int64Vector sizes, kept;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (group_reduced.empty() || group_reduced.back() != reduced[d]) {
      group_reduced.push_back(reduced[d]);
      sizes.push_back(1);
    }
    sizes.back() *= operand.dim(d);
  }
  for (size_t g = 0; g < sizes.size(); ++g) {
    if (group_reduced[g])
      a.loops.push_back(g);
    else
      kept.push_back(sizes[g]);
  }
  std::vector<ArrayIndex> positions;
  for (const ArrayIndex& index : parts) {
    const ArrayIndex at = indices_.Refactor(index, kept);
    ArrayIndex& position = positions.emplace_back();
    position.sizes = sizes;
    size_t next = 0;
    for (size_t g = 0; g < sizes.size(); ++g)
      position.digits.push_back(group_reduced[g] ? indices_.Constant(0) : at.digits[next++]);
  }

  Vals init;
  for (int64_t k = 0; k < a.inputs; ++k) init.push_back(EmitScalarOperand(i.operand(a.inputs + k)));
  const ElementType type = init[0].type;
  const bool single = a.combiner.op != Op::kEnd && a.inputs == 1;
  // Sums and products of small floats accumulate in f32 and are rounded once.
  const bool widen =
      single && (a.combiner.op == Op::Add || a.combiner.op == Op::Multiply) && IsFloat(type) && Bits(type) < 32;
  if (widen) init[0].type = ElementType::F32;
  const bool uniform = parts[0].uniform();
  const int64_t innermost = a.loops.empty() ? 0 : sizes[a.loops.back()];
  const std::optional<Val> identity = Identity(a.combiner, init[0].type);
  a.partials =
      single ? PartialStarts(std::span(&a.combiner.op, 1), init) : PartialStarts(OpsOfResults(*i.called(0)), init);
  const int64_t position_input = identity ? -1 : PositionInput(i, a.inputs);
  if (position_input >= 0) a.known = ComparisonOfPositions(i, a.inputs, position_input);
  a.contracted = ContractedOperand(i) == 0;
  // In a row that is not the kernel's only work, too, so that the steps need not wait for each other.
  // (More lanes than a register has are several chains.)
  const bool waits = row_strips_ == 1 && single && IsFloat(type) &&
                     lanes() * ElementBuilder::RegisterBits(type) <= 8 * b_.target().vector_bytes &&
                     innermost >= lanes() * kChains && IsLittleCode(*i.operand(0));
  const int strips = waits ? kChains : row_strips_;
  a.across_lanes = parts.size() == 1 && uniform && lanes() > 1 && a.combiner.reorderable && !a.loops.empty() &&
                   a.loops.back() + 1 == sizes.size() && innermost >= lanes() * strips &&
                   (identity || (position_input >= 0 && a.loops.size() == 1));
  Vals accumulators;
  if (a.across_lanes) {
    positions.resize(static_cast<size_t>(strips), positions[0]);
    a.first_vector_taken = !identity;
    for (size_t p = 0; p < positions.size(); ++p) {
      if (identity) {
        accumulators.push_back(elements_.Splat(*identity, lanes()));
        continue;
      }
      V first = b_.I64(lanes() * static_cast<int64_t>(p));
      positions[p].digits[a.loops[0]] = LaneIndex{.base = first, .stride = 1, .multiple = lanes()};
      for (int64_t k = 0; k < a.inputs; ++k)
        accumulators.push_back(elements_.Splat(Emit(i.operand(k), positions[p]), lanes()));
    }
    accumulators = AccumulateLoops(a, 0, positions, accumulators);
    accumulators = AcrossStrips(a.combiner, accumulators, static_cast<size_t>(a.inputs), position_input);
    accumulators = AcrossLanes(a.combiner, accumulators, position_input);
    accumulators = CombineInto(a.combiner, init, accumulators, nullptr);
    for (Val& v : accumulators)
      if (!v.im) v.re = b_.Lane(v.re, 0);
  } else {
    const int width = uniform ? 1 : lanes();
    if (!in_strips && parts.size() == 1 && innermost >= kLeastInChains && !DealsOut(i) &&
        IsLongChain(i, a.combiner, type, width)) {
      a.in_chains = true;
      positions.resize(kChains, positions[0]);
    }
    for (size_t p = 0; p < positions.size(); ++p)  // an extreme may be combined with init more than once
      for (const Val& v : init) accumulators.push_back(elements_.Splat(v, width));
    // Columns of a large operand: the processor sees no stream in a strip of each row, but the next strip is behind it.
    const int saved = fetch_ahead_, together = in_strips ? width * static_cast<int>(parts.size()) : width;
    const bool far = together * Bytes(operand.type()) >= kWideStrip && operand.byte_size() >= kLargeOperand &&
                     !b_.target().fast_last_cache;
    fetch_ahead_ = far && !mask_.value && !(in_strips && last_strips_) ? together : 0;
    accumulators = AccumulateLoops(a, 0, positions, accumulators);
    if (a.in_chains) accumulators = AcrossStrips(a.combiner, accumulators, 1, -1);
    fetch_ahead_ = saved;
  }
  if (widen)
    for (Val& v : accumulators) v = Val{elements_.RoundToFormat(type, v.re), nullptr, type};
  return accumulators;
}

namespace {

constexpr int64_t kMaxUnrolled = 32;          // elements of a window that are emitted one by one
constexpr int64_t kMaxUnrolledAtBorders = 9;  // the same, where each may lie outside: every border has code of its own

// Is every element of every window, along this dimension, an element of the operand?
bool AlwaysInside(const WindowDim& w, int64_t bound, int64_t results) {
  return w.base_dilation == 1 && w.pad_low <= 0 && (results - 1) * w.stride + w.DilatedSize() - w.pad_low <= bound;
}

// Is the window so small that a loop over it costs more than its elements?
bool Unrolled(const Window& window, const Shape& operand, const Shape& result) {
  int64_t elements = 1;
  bool inside = true;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const WindowDim& w = window.dims[d];
    elements = SaturatingMultiply(elements, w.size);
    inside &= AlwaysInside(w, operand.dim(static_cast<int64_t>(d)), result.dim(static_cast<int64_t>(d)));
    if (w.base_dilation > 1) return false;
  }
  return elements <= (inside ? kMaxUnrolled : kMaxUnrolledAtBorders);
}

}  // namespace

// The window's elements in order, those in padding or between dilated elements left out. Window dimensions of size one
// need no loop.
Vals ElementalEmitter::ReduceWindow(const Instruction& i, const ArrayIndex& index) {
  const Window& window = i.attrs<WindowAttrs>().window;
  const int64_t inputs = i.operand_count() / 2;
  const Shape& operand = i.operand(0)->shape();
  const Shape& result = i.shape().IsTuple() ? i.shape().element(0) : i.shape();
  const LaneCombiner combiner = RecognizeCombiner(*i.called(0));
  const ArrayIndex at = indices_.Refactor(index, result.dims());
  const int width = index.uniform() ? 1 : lanes();
  Vals accumulators;
  for (int64_t k = 0; k < inputs; ++k)
    accumulators.push_back(elements_.Splat(EmitScalarOperand(i.operand(inputs + k)), width));
  const ElementType type = accumulators[0].type;
  const bool widen = combiner.op == Op::Add && IsFloat(type) && Bits(type) < 32;
  if (widen) accumulators[0].type = ElementType::F32;

  const bool unrolled = Unrolled(window, operand, result);
  ArrayIndex position;
  position.sizes = operand.dims();
  position.digits.resize(operand.dims().size());
  const std::function<Vals(size_t, Condition, Vals)> dimension = [&](size_t d, Condition inside, Vals acc) -> Vals {
    if (d == window.dims.size()) {
      const auto take = [&]() -> Vals {
        Vals values;
        for (int64_t k = 0; k < inputs; ++k) values.push_back(Emit(i.operand(k), position));
        const bool by_lane = inside.value && VectorBuilder::Lanes(inside.value) > 1;
        return CombineInto(combiner, acc, values, by_lane ? inside.value : nullptr);
      };
      if (inside.value && VectorBuilder::Lanes(inside.value) > 1) return WithMask(inside, take);
      return Choose(inside, index.uniform(), take, [&] { return acc; });
    }
    const WindowDim& w = window.dims[d];
    const auto step = [&](const LaneIndex& offset, const Vals& carried) {
      LaneIndex x = indices_.Add(indices_.Mul(at.digits[d], w.stride), indices_.Mul(offset, w.window_dilation));
      x = indices_.Add(x, indices_.Constant(-w.pad_low));
      Condition here = inside;
      const int64_t bound = operand.dim(static_cast<int64_t>(d));
      const bool always = AlwaysInside(w, bound, result.dim(static_cast<int64_t>(d)));
      if (w.base_dilation > 1) {
        here = Both(here, InRange(x, (bound - 1) * w.base_dilation + 1));
        const auto [quotient, rest] = indices_.DivMod(x, w.base_dilation, INT64_MAX);
        here = Both(here, InRange(rest, 1));
        x = quotient;
      } else if (!always) {
        here = Both(here, InRange(x, bound));
      }
      position.digits[d] = x;
      return dimension(d + 1, here, carried);
    };
    if (w.size == 1) return step(indices_.Constant(0), acc);
    if (unrolled) {
      for (int64_t n = 0; n < w.size; ++n) acc = step(indices_.Constant(w.reversal ? w.size - 1 - n : n), acc);
      return acc;
    }
    return LoopOver("window", b_.I64(0), b_.I64(w.size), 1, acc, [&](V n, const Vals& carried) {
      const LaneIndex offset = indices_.Counter(n, scopes_.current(), 0, 1).Within(0, w.size - 1);
      return step(w.reversal ? indices_.Sub(w.size - 1, offset) : offset, carried);
    });
  };
  accumulators = dimension(0, Condition{}, accumulators);
  if (widen) accumulators[0] = Val{elements_.RoundToFormat(type, accumulators[0].re), nullptr, type};
  return accumulators;
}

std::optional<ScanShape> ScanOf(const Instruction& i) {
  if (i.op() != Op::ReduceWindow) return std::nullopt;
  const Shape& operand = i.operand(0)->shape();
  const Window& window = i.attrs<WindowAttrs>().window;
  ScanShape shape;
  bool found = false;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const WindowDim& w = window.dims[static_cast<size_t>(d)];
    if (w.stride != 1 || w.base_dilation != 1 || w.window_dilation != 1 || w.reversal) return std::nullopt;
    if (w.size == 1 && w.pad_low == 0 && w.pad_high == 0) {
      (found ? shape.inner : shape.outer) *= operand.dim(d);
      continue;
    }
    const bool forward = w.pad_low == w.size - 1 && w.pad_high == 0;
    shape.backward = w.pad_low == 0 && w.pad_high == w.size - 1;
    if (found || w.size != operand.dim(d) || (!forward && !shape.backward)) return std::nullopt;
    found = true;
    shape.n = w.size;
  }
  return found ? std::optional(shape) : std::nullopt;
}

// Forwards the order is that of each window by itself, backwards that of an associative combiner.
void ElementalEmitter::Scan(const Instruction& i, const ScanShape& shape, const ArrayIndex& at,
                            const std::function<void(const ArrayIndex&, const Vals&)>& store) {
  const int64_t inputs = i.operand_count() / 2;
  const LaneCombiner combiner = RecognizeCombiner(*i.called(0));
  Vals init;
  for (int64_t k = 0; k < inputs; ++k)
    init.push_back(elements_.Splat(EmitScalarOperand(i.operand(inputs + k)), at.uniform() ? 1 : lanes()));
  const ElementType type = init[0].type;
  const bool widen = combiner.op == Op::Add && IsFloat(type) && Bits(type) < 32;
  if (widen) init[0].type = ElementType::F32;
  ArrayIndex position = indices_.Refactor(at, Int64Vector{shape.outer, shape.inner});
  position =
      ArrayIndex{{position.digits[0], indices_.Constant(0), position.digits[1]}, {shape.outer, shape.n, shape.inner}};
  LoopOver("scan", b_.I64(0), b_.I64(shape.n), 1, init, [&](V n, const Vals& carried) {
    const LaneIndex step = indices_.Counter(n, scopes_.current(), 0, 1).Within(0, shape.n - 1);
    position.digits[1] = shape.backward ? indices_.Sub(shape.n - 1, step) : step;
    Vals values;
    for (int64_t k = 0; k < inputs; ++k) {
      values.push_back(Emit(i.operand(k), position));
      values.back().type = init[static_cast<size_t>(k)].type;
    }
    const Vals next = shape.backward ? CombineInto(combiner, values, carried, nullptr)
                                     : CombineInto(combiner, carried, values, nullptr);
    Vals results = next;
    if (widen) results[0] = Val{elements_.RoundToFormat(type, next[0].re), nullptr, type};
    store(position, results);
    return next;
  });
}

Vals ElementalEmitter::Map(const Instruction& i, const ArrayIndex& index) {
  Vals arguments;
  for (int64_t k = 0; k < i.operand_count(); ++k) arguments.push_back(Emit(i.operand(k), index));
  return Inline(*i.called(0), arguments);
}

}  // namespace strop
