// Reductions as values.
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

struct ElementalEmitter::Accumulation {
  const Instruction* reduce = nullptr;
  LaneCombiner combiner;
  int64_t inputs = 1;
  std::vector<size_t> loops;        // groups of the operand that are reduced, outermost first
  bool across_lanes = false;        // the last of them by lanes
  bool in_strips = false;           // parts are strips, with the masks of these
  bool in_chains = false;           // parts are neighbours along the last loop, whose steps would wait for each other
  bool first_vector_taken = false;  // the accumulators start as the first elements of the last (and only) loop
  Vals partials;                // sums are cut into partial ones, which start as these, by input; empty: they are not
  int64_t position_input = -1;  // counts along the reduced dimension, or -1
  bool contracted = false;      // a sum of products that are not rounded (ir/contraction.h)
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
  std::vector<ArrayIndex> positions = PositionsOfReduction(i, parts, a.loops);

  Vals init;
  for (int64_t k = 0; k < a.inputs; ++k) init.push_back(EmitScalarOperand(i.operand(a.inputs + k)));
  const ElementType type = init[0].type;
  const bool single = a.combiner.op != Op::kEnd && a.inputs == 1;
  // Sums and products of small floats accumulate in f32 and are rounded once.
  const bool widen =
      single && (a.combiner.op == Op::Add || a.combiner.op == Op::Multiply) && IsFloat(type) && Bits(type) < 32;
  if (widen) init[0].type = ElementType::F32;
  const bool uniform = parts[0].uniform();
  const Int64Vector& sizes = positions[0].sizes;
  const int64_t innermost = a.loops.empty() ? 0 : sizes[a.loops.back()];
  const std::optional<Val> identity = Identity(a.combiner, init[0].type);
  a.partials =
      single ? PartialStarts(std::span(&a.combiner.op, 1), init) : PartialStarts(OpsOfResults(*i.called(0)), init);
  a.position_input = identity ? -1 : PositionInput(i, a.inputs);
  if (a.position_input >= 0) a.known = ComparisonOfPositions(i, a.inputs, a.position_input);
  a.contracted = ContractedOperand(i) == 0;
  // In a row that is not the kernel's only work, too, so that the steps need not wait for each other.
  // (More lanes than a register has are several chains.)
  const bool waits = row_strips_ == 1 && single && IsFloat(type) &&
                     lanes() * ElementBuilder::RegisterBits(type) <= 8 * b_.target().vector_bytes &&
                     innermost >= lanes() * kChains && IsLittleCode(*i.operand(0));
  const int strips = waits ? kChains : row_strips_;
  a.across_lanes = parts.size() == 1 && uniform && lanes() > 1 && a.combiner.reorderable && !a.loops.empty() &&
                   a.loops.back() + 1 == sizes.size() && innermost >= lanes() * strips &&
                   (identity || (a.position_input >= 0 && a.loops.size() == 1));
  Vals results;
  if (a.across_lanes) {
    positions.resize(static_cast<size_t>(strips), positions[0]);
    results = AccumulateAcrossLanes(a, positions, init, identity);
  } else {
    const int width = uniform ? 1 : lanes();
    if (!in_strips && parts.size() == 1 && innermost >= kLeastInChains && !DealsOut(i) &&
        IsLongChain(i, a.combiner, type, width)) {
      a.in_chains = true;
      positions.resize(kChains, positions[0]);
    }
    results = AccumulateInLanes(a, positions, init, width);
  }
  if (widen)
    for (Val& v : results) v = Val{elements_.RoundToFormat(type, v.re), nullptr, type};
  return results;
}

// The dimensions of the operand in groups, kept and reduced ones by turns: where each part of the result begins in
// them. `loops` receives the groups that are reduced.
std::vector<ArrayIndex> ElementalEmitter::PositionsOfReduction(const Instruction& i, std::span<const ArrayIndex> parts,
                                                               std::vector<size_t>& loops) {
  const Shape& operand = i.operand(0)->shape();
  std::vector<bool> reduced(static_cast<size_t>(operand.rank()), false), group_reduced;
  for (int64_t d : i.dimensions()) reduced[static_cast<size_t>(d)] = true;
  Int64Vector sizes, kept;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (group_reduced.empty() || group_reduced.back() != reduced[static_cast<size_t>(d)]) {
      group_reduced.push_back(reduced[static_cast<size_t>(d)]);
      sizes.push_back(1);
    }
    sizes.back() *= operand.dim(d);
  }
  for (size_t g = 0; g < sizes.size(); ++g) {
    if (group_reduced[g])
      loops.push_back(g);
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
  return positions;
}

// The lanes, in strips, each take elements of their own of the innermost loop, and are combined in the end.
Vals ElementalEmitter::AccumulateAcrossLanes(Accumulation& a, std::vector<ArrayIndex>& strips, const Vals& init,
                                             const std::optional<Val>& identity) {
  Vals accumulators;
  a.first_vector_taken = !identity;
  for (size_t p = 0; p < strips.size(); ++p) {
    if (identity) {
      accumulators.push_back(elements_.Splat(*identity, lanes()));
      continue;
    }
    V first = b_.I64(lanes() * static_cast<int64_t>(p));
    strips[p].digits[a.loops[0]] = LaneIndex{.base = first, .stride = 1, .multiple = lanes()};
    for (int64_t k = 0; k < a.inputs; ++k)
      accumulators.push_back(elements_.Splat(Emit(a.reduce->operand(k), strips[p]), lanes()));
  }
  accumulators = AccumulateLoops(a, 0, strips, accumulators);
  accumulators = AcrossStrips(a.combiner, accumulators, static_cast<size_t>(a.inputs), a.position_input);
  accumulators = AcrossLanes(a.combiner, accumulators, a.position_input);
  accumulators = CombineInto(a.combiner, init, accumulators, nullptr);
  for (Val& v : accumulators)
    if (!v.im) v.re = b_.Lane(v.re, 0);
  return accumulators;
}

// Each lane has a result of its own, or all of them one (`width` 1); each part, or chain, has accumulators of its own.
Vals ElementalEmitter::AccumulateInLanes(const Accumulation& a, std::vector<ArrayIndex>& parts, const Vals& init,
                                         int width) {
  const Shape& operand = a.reduce->operand(0)->shape();
  Vals accumulators;
  for (size_t p = 0; p < parts.size(); ++p)  // an extreme may be combined with init more than once
    for (const Val& v : init) accumulators.push_back(elements_.Splat(v, width));
  // Columns of a large operand: the processor sees no stream in a strip of each row, but the next strip is behind it.
  const int saved = fetch_ahead_, together = a.in_strips ? width * static_cast<int>(parts.size()) : width;
  const bool far = together * Bytes(operand.type()) >= kWideStrip && operand.byte_size() >= kLargeOperand &&
                   !b_.target().fast_last_cache;
  fetch_ahead_ = far && !mask_.value && !(a.in_strips && last_strips_) ? together : 0;
  accumulators = AccumulateLoops(a, 0, parts, accumulators);
  if (a.in_chains) accumulators = AcrossStrips(a.combiner, accumulators, 1, -1);
  fetch_ahead_ = saved;
  return accumulators;
}

}  // namespace strop
