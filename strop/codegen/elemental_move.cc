// Data movement: rules from a position in the result to a position in the operand.
//
// Dimensions that an op treats alike are handled as one digit (a "group"): a broadcast of [64,3] to [8,64,3] sees the
// digits [8] and [192], a slice of whole rows sees [rows * row size] with an offset. So positions stay linear, and
// loads contiguous, wherever they can.
#include <algorithm>

#include "strop/analysis/integer_range.h"
#include "strop/codegen/dim_groups.h"
#include "strop/codegen/elemental.h"

namespace strop {

using V = llvm::Value*;

namespace {

// The most of `size` elements that a boundary between digits of the position has behind it, and that divide them.
int64_t LargestCut(const ArrayIndex& index, int64_t size) {
  int64_t behind = 1, cut = 1;
  for (size_t d = index.sizes.size(); d > 0 && behind <= size; --d) {
    if (behind > 0 && size % behind == 0) cut = behind;
    behind *= index.sizes[d - 1];
  }
  return cut;
}

// The digits in front of that boundary.
size_t DigitsInFront(const ArrayIndex& index, int64_t behind) {
  size_t d = index.sizes.size();
  for (int64_t product = 1; d > 0 && product < behind; --d) product *= index.sizes[d - 1];
  return d;
}

bool HasCut(const ArrayIndex& index, int64_t suffix) { return LargestCut(index, suffix) == suffix; }

// Groups cut behind the first of their dimensions where the position is: conditions on the dimension in front are then
// conditions on one digit. `single`: also where that is of one element, a slice at some place of an array.
std::vector<DimGroup> CutAsIn(const ArrayIndex& index, const Instruction& i, bool single = false) {
  const std::vector<DimGroup> groups = ResultGroups(i);
  std::vector<DimGroup> cut;
  int64_t suffix = 1;
  for (size_t g = groups.size(); g-- > 0;) {
    DimGroup first = groups[g];
    const int64_t behind = suffix;
    suffix *= first.size;
    int64_t inner = single || first.inner < first.size ? first.inner : 1;
    for (int64_t d = first.first + 1; d < first.last && inner > 1; ++d) {
      const int64_t next = inner / i.shape().dim(d);
      if (HasCut(index, behind * inner) || first.size == inner) {
        cut.push_back(DimGroup{d, first.last, inner, next, -1});
        first = DimGroup{first.first, d, first.size / inner, first.inner / inner, -1};
        break;
      }
      inner = next;
    }
    cut.push_back(first);
  }
  std::reverse(cut.begin(), cut.end());
  return cut;
}

}  // namespace

// The digits of those groups that the operand has, in its order.
ArrayIndex ElementalEmitter::SelectGroups(const Instruction& i, const ArrayIndex& index) {
  const std::vector<DimGroup> groups = ResultGroups(i);
  const ArrayIndex grouped = indices_.Refactor(index, GroupSizes(groups));
  std::vector<size_t> order;
  ArrayIndex inner;
  for (const DimGroup& g : InSourceOrder(groups, &order)) {
    inner.digits.push_back(grouped.digits[order[inner.sizes.size()]]);
    inner.sizes.push_back(g.size);
  }
  return inner;
}

Vals ElementalEmitter::Broadcast(const Instruction& i, const ArrayIndex& index) {
  const Instruction* operand = i.operand(0);
  if (operand->shape().num_elements() == 1) return {EmitScalarOperand(operand)};
  return {Emit(operand, SelectGroups(i, index))};
}

Vals ElementalEmitter::Transpose(const Instruction& i, const ArrayIndex& index) {
  return {Emit(i.operand(0), SelectGroups(i, index))};
}

Vals ElementalEmitter::Slice(const Instruction& i, const ArrayIndex& position) {
  const SliceDims& slice = i.attrs<SliceAttrs>().slice;
  const Shape& from = i.operand(0)->shape();
  // What is in memory is read at one number, at distances from it that are known.
  const bool computed = !buffers_.contains(Resolve(i.operand(0)));
  const ArrayIndex index = computed ? indices_.InKnownDigits(position) : position;
  const std::vector<DimGroup> groups = CutAsIn(index, i, computed);
  const ArrayIndex grouped = indices_.Refactor(index, GroupSizes(groups));
  ArrayIndex inner;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t d = groups[g].first;
    const LaneIndex digit = indices_.Mul(grouped.digits[g], slice[d].stride);
    inner.digits.push_back(indices_.Plus(digit, slice[d].start * groups[g].inner));
    inner.sizes.push_back(from.dim(d) * groups[g].inner);
  }
  return {Emit(i.operand(0), inner)};
}

Vals ElementalEmitter::Reverse(const Instruction& i, const ArrayIndex& index) {
  std::vector<bool> reversed(i.shape().rank(), false);
  for (int64_t d : i.dimensions()) reversed[d] = true;
  const std::vector<DimGroup> groups = ResultGroups(i);
  ArrayIndex inner = indices_.Refactor(index, GroupSizes(groups));
  for (size_t g = 0; g < groups.size(); ++g)
    if (reversed[groups[g].first]) inner.digits[g] = indices_.Sub(groups[g].size - 1, inner.digits[g]);
  return {Emit(i.operand(0), inner)};
}

Vals ElementalEmitter::Pad(const Instruction& i, const ArrayIndex& position) {
  const ArrayIndex index = indices_.InKnownDigits(position);
  const PaddingConfig& padding = i.attrs<PadAttrs>().padding;
  const Shape& from = i.operand(0)->shape();
  const auto untouched = [&](int64_t d) { return padding[d] == PaddingDim{}; };
  const std::vector<DimGroup> groups = CutAsIn(index, i);
  const ArrayIndex grouped = indices_.Refactor(index, GroupSizes(groups));
  ArrayIndex inner;
  Condition inside, between;  // `between`: of rows, whose lanes are at known places as long as no more is asked of them
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t d = groups[g].first, bound = from.dim(d) * groups[g].inner;
    LaneIndex digit = grouped.digits[g];
    const int64_t step = padding[d].interior + 1, low = padding[d].low;
    if (step > 1) {
      // Counted from a whole step in front of the first element, so that nothing is negative.
      const int64_t steps = std::max<int64_t>(0, (low + step - 1) / step), shift = steps * step - low;
      const auto [quotient, rest] = indices_.DivMod(indices_.Shift(digit, shift), step, groups[g].size + shift);
      Condition& there = rest.uniform() ? between : inside;
      there = Both(there, InRange(rest, 1));
      digit = indices_.Plus(quotient, -steps);
      // Less than a step in front and behind is between elements as well.
      if (low >= step || padding[d].high >= step || from.dim(d) == 0) there = Both(there, InRange(digit, bound));
    } else if (!untouched(d)) {
      digit = indices_.Plus(digit, -low * groups[g].inner);
      inside = Both(inside, InRange(digit, bound));
    }
    inner.digits.push_back(digit);
    inner.sizes.push_back(bound);
  }
  const auto element = [&]() -> Vals { return {Emit(i.operand(0), inner)}; };
  const auto padded = [&]() -> Vals { return {EmitScalarOperand(i.operand(1))}; };
  return Choose(between, index.uniform(), [&] { return Choose(inside, index.uniform(), element, padded); }, padded);
}

Vals ElementalEmitter::Concatenate(const Instruction& i, const ArrayIndex& position) {
  const ArrayIndex index = indices_.InKnownDigits(position);
  const int64_t dimension = i.dimensions()[0];
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < i.shape().rank(); ++d)
    if (d != dimension) (d < dimension ? outer : inner) *= i.shape().dim(d);
  // The dimension by itself if the position has it so, else together with what is behind it, up to a boundary.
  const int64_t behind = inner > 0 ? LargestCut(index, inner) : 1;
  inner /= behind;
  std::vector<int64_t> offsets{0};
  for (int64_t k = 0; k < i.operand_count(); ++k)
    offsets.push_back(offsets.back() + i.operand(k)->shape().dim(dimension) * inner);
  const bool of_pieces = std::ranges::any_of(i.operands(), [this](const Instruction* piece) {
    const Instruction* made = Resolve(piece);
    return made->op() == Op::Concatenate && !buffers_.contains(made);
  });
  if (!of_pieces) {
    const ArrayIndex grouped = indices_.Refactor(index, Int64Vector{outer, offsets.back(), behind});
    return ConcatenateRange(i, grouped, 1, 0, i.operand_count(), offsets);
  }
  // Pieces are made of pieces along other dimensions: in front of this one and behind it the position's own digits.
  Int64Vector sizes;
  const size_t first_behind = DigitsInFront(index, behind), along = DigitsInFront(index, offsets.back() * behind);
  if (HasCut(index, offsets.back() * behind))
    sizes.assign(index.sizes.begin(), index.sizes.begin() + static_cast<std::ptrdiff_t>(along));
  else
    sizes.push_back(outer);
  const size_t at = sizes.size();
  sizes.push_back(offsets.back());
  for (size_t d = first_behind; d < index.sizes.size(); ++d) sizes.push_back(index.sizes[d]);
  return ConcatenateRange(i, indices_.Refactor(index, sizes), at, 0, i.operand_count(), offsets);
}

// Operands [first, last) by bisection of their offsets along digit `along` of the position.
Vals ElementalEmitter::ConcatenateRange(const Instruction& i, const ArrayIndex& grouped, size_t along, int64_t first,
                                        int64_t last, std::span<const int64_t> offsets) {
  if (last - first == 1) {
    ArrayIndex inner = grouped;
    inner.digits[along] = indices_.Plus(grouped.digits[along], -offsets[first]);
    inner.sizes[along] = offsets[last] - offsets[first];
    return {Emit(i.operand(first), inner)};
  }
  const int64_t middle = (first + last) / 2;
  return Choose(
      InRange(grouped.digits[along], offsets[middle]), grouped.uniform(),
      [&] { return ConcatenateRange(i, grouped, along, first, middle, offsets); },
      [&] { return ConcatenateRange(i, grouped, along, middle, last, offsets); });
}

namespace {

// x of select(x < 0, x + size, x), an index as Python has it; or null.
const Instruction* CountedFromBothEnds(const Instruction& i, int64_t size) {
  if (i.op() != Op::Select || !i.shape().IsScalar() || !IsSigned(i.shape().type())) return nullptr;
  if (Bits(i.shape().type()) < 32 || size > INT32_MAX) return nullptr;
  const Instruction *negative = i.operand(0), *sum = i.operand(1), *x = i.operand(2);
  if (negative->op() != Op::Compare || negative->attrs<CompareAttrs>().direction != CompareDirection::Lt ||
      negative->operand(0) != x || !negative->operand(1)->IsSplat(0) || sum->op() != Op::Add)
    return nullptr;
  for (int64_t k = 0; k < 2; ++k)
    if (sum->operand(k) == x && sum->operand(1 - k)->IsSplat(static_cast<double>(size))) return x;
  return nullptr;
}

// That index, put where a window fits. What is compared with x is known as soon as x is: a loop that goes from index to
// index waits for each of these steps.
V EitherEnd(VectorBuilder& b, V x, int64_t size, int64_t window) {
  V from_end = b.Select(b.SLt(x, b.I(-size, x)), b.Zero(x), b.Add(x, b.I(size, x)));
  V from_begin = b.Binary(llvm::Intrinsic::smin, x, b.I(size - 1, x));
  V v = b.Select(b.SLt(x, b.Zero(x)), from_end, from_begin);
  if (window > 1) v = b.Binary(llvm::Intrinsic::smin, v, b.I(size - window, x));
  return b.ZExtOrTrunc(v, 64);
}

// In the index's own bits where they hold the end, so that what is known of it is seen.
V PutIntoRange(VectorBuilder& b, const Val& start, int64_t last) {
  V v = start.re;
  if (start.type == ElementType::S32 && last <= INT32_MAX) {
    v = b.Binary(llvm::Intrinsic::smin, b.Binary(llvm::Intrinsic::smax, v, b.Zero(v)), b.I(last, v));
    return b.ZExtOrTrunc(v, 64);
  }
  v = IsSigned(start.type) ? b.SExtOrTrunc(v, 64) : b.ZExtOrTrunc(v, 64);
  v = b.Binary(llvm::Intrinsic::smax, v, b.Zero(v));
  if (start.type == ElementType::U64)  // beyond INT64_MAX is large, not negative
    v = b.Select(b.SLt(start.re, b.Zero(start.re)), b.I(INT64_MAX, v), v);
  return b.Binary(llvm::Intrinsic::smin, v, b.I(last, v));
}

// What an index was extended from, if that had 32 bits and a sign; or null.
V BeforeExtension(V v) {
  const auto* wide = llvm::dyn_cast<llvm::SExtInst>(v);
  return wide && VectorBuilder::ScalarBits(wide->getOperand(0)) == 32 ? wide->getOperand(0) : nullptr;
}

// Is it extended from so few bits, without a sign, that it is no more than that?
bool IsAtMost(V v, int64_t most) {
  const auto* wide = llvm::dyn_cast<llvm::ZExtInst>(v);
  const int bits = wide ? VectorBuilder::ScalarBits(wide->getOperand(0)) : 64;
  return bits < 32 && (int64_t{1} << bits) - 1 <= most;
}

}  // namespace

std::vector<LaneIndex> ElementalEmitter::EmitStarts(const Instruction& i, int64_t first_operand,
                                                    std::span<const int64_t> dims, std::span<const int64_t> sizes) {
  std::vector<LaneIndex> starts;
  const bool vector_form = i.operand_count() == first_operand + 1 && i.operand(first_operand)->shape().rank() == 1;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == sizes[d]) {  // only one start fits
      starts.push_back(indices_.Constant(0));
      continue;
    }
    ArrayIndex at;
    if (vector_form) {
      at.sizes = {static_cast<int64_t>(dims.size())};
      at.digits.push_back(indices_.Constant(static_cast<int64_t>(d)));
    }
    const Instruction* operand = i.operand(first_operand + (vector_form ? 0 : static_cast<int64_t>(d)));
    const int level = LevelOf(at);
    V clamped = nullptr;
    if (const Instruction* counted = CountedFromBothEnds(*operand, dims[d])) {
      const Val start = Emit(counted, at);
      clamped = scopes_.At(level, [&] { return EitherEnd(b_, start.re, dims[d], sizes[d]); });
    } else {
      const Val start = Emit(operand, at);
      clamped = scopes_.At(level, [&] { return PutIntoRange(b_, start, dims[d] - sizes[d]); });
    }
    starts.push_back(indices_.FromLanes(clamped, level));
  }
  return starts;
}

Vals ElementalEmitter::DynamicSlice(const Instruction& i, const ArrayIndex& index) {
  const Shape& from = i.operand(0)->shape();
  const Int64Vector& sizes = i.shape().dims();
  const std::vector<LaneIndex> starts = EmitStarts(i, 1, from.dims(), sizes);
  const std::vector<DimGroup> groups = CutAsIn(index, i);
  const ArrayIndex grouped = indices_.Refactor(index, GroupSizes(groups));
  ArrayIndex inner;
  for (size_t g = 0; g < groups.size(); ++g) {
    inner.digits.push_back(indices_.Add(grouped.digits[g], indices_.Mul(starts[groups[g].first], groups[g].inner)));
    inner.sizes.push_back(from.dim(groups[g].first) * groups[g].inner);
  }
  return {Emit(i.operand(0), inner)};
}

Vals ElementalEmitter::DynamicUpdateSlice(const Instruction& i, const ArrayIndex& index) {
  const Shape& whole = i.shape();
  const Shape& update = i.operand(1)->shape();
  const std::vector<LaneIndex> starts = EmitStarts(i, 2, whole.dims(), update.dims());
  const std::vector<DimGroup> groups = ResultGroups(i);
  const ArrayIndex grouped = indices_.Refactor(index, GroupSizes(groups));
  ArrayIndex inner;
  Condition inside;
  for (size_t g = 0; g < groups.size(); ++g) {
    const int64_t d = groups[g].first, size = update.dim(d) * groups[g].inner;
    LaneIndex digit = grouped.digits[g];
    if (size != groups[g].size) {
      digit = indices_.Add(digit, indices_.Mul(starts[d], -groups[g].inner));
      inside = Both(inside, InRange(digit, size));
    }
    inner.digits.push_back(digit);
    inner.sizes.push_back(size);
  }
  if (update.num_elements() == 0) return {Emit(i.operand(0), index)};
  return Choose(
      inside, index.uniform(), [&]() -> Vals { return {Emit(i.operand(1), inner)}; },
      [&]() -> Vals { return {Emit(i.operand(0), index)}; });
}

ArrayIndex ElementalEmitter::WindowPosition(const Instruction& i, const ArrayIndex& at) {
  const Shape& whole = i.shape();
  const Shape& update = i.operand(1)->shape();
  const std::vector<LaneIndex> starts = EmitStarts(i, 2, whole.dims(), update.dims());
  const std::vector<DimGroup> groups = ResultGroups(i);
  Int64Vector sizes;
  for (const DimGroup& g : groups) sizes.push_back(update.dim(g.first) * g.inner);
  ArrayIndex position = indices_.Refactor(at, sizes);
  for (size_t g = 0; g < groups.size(); ++g) {
    position.digits[g] = indices_.Add(position.digits[g], indices_.Mul(starts[groups[g].first], groups[g].inner));
    position.sizes[g] = groups[g].size;
  }
  return position;
}

// A number that is a sum of multiples of digits, whatever else a program says of negative ones: none if it may be
// another one somewhere. So slices that overlap, and diagonals, are read as they lie.
std::optional<LaneIndex> ElementalEmitter::KnownIndex(const Instruction& i, const ArrayIndex& at) {
  const auto of_operand = [&](int64_t k) { return KnownIndex(*i.operand(k), at); };
  const auto range = [&](int64_t k) { return RangeOf(*i.operand(k)); };
  switch (i.op()) {
    case Op::Constant: return indices_.Constant(i.literal().GetInt(0));
    case Op::Iota: return indices_.Refactor(at, i.shape().dims()).digits[i.attrs<IotaAttrs>().dimension];
    case Op::Broadcast:
      if (i.operand(0)->shape().num_elements() == 1) return KnownIndex(*i.operand(0), ArrayIndex{});
      return KnownIndex(*i.operand(0), SelectGroups(i, at));
    case Op::Reshape:
    case Op::Copy:
    case Op::Convert: return of_operand(0);
    case Op::Add:
    case Op::Subtract: {
      const std::optional<LaneIndex> x = of_operand(0), y = of_operand(1);
      if (!x || !y) return std::nullopt;
      return indices_.Add(*x, i.op() == Op::Add ? *y : indices_.Mul(*y, -1));
    }
    case Op::Multiply:
      for (int64_t k : {0, 1}) {
        if (range(k)->low != range(k)->high) continue;
        const std::optional<LaneIndex> other = of_operand(1 - k);
        return other ? std::optional(indices_.Mul(*other, range(k)->low)) : std::nullopt;
      }
      return std::nullopt;
    case Op::Select: return of_operand(*ComparisonOf(*i.operand(0)) ? 1 : 2);  // as RangeOf knows
    default: return std::nullopt;
  }
}

LaneIndex ElementalEmitter::EmitIndexComponent(const Instruction* indices, int64_t index_vector_dim,
                                               const ArrayIndex& batch, int64_t component) {
  // Components that are put together here are asked for apart: x[rows, columns].
  while (indices->op() == Op::Concatenate && indices->dimensions()[0] == index_vector_dim &&
         !buffers_.contains(Resolve(indices))) {
    int64_t k = 0;
    while (component >= indices->operand(k)->shape().dim(index_vector_dim))
      component -= indices->operand(k++)->shape().dim(index_vector_dim);
    indices = indices->operand(k);
  }
  const Int64Vector& dims = indices->shape().dims();
  int64_t before = 1, done = 1;  // elements of the batch in front of the component, and of the digits so far
  for (int64_t d = 0; d < index_vector_dim; ++d) before *= dims[static_cast<size_t>(d)];
  bool placed = index_vector_dim == indices->shape().rank();
  ArrayIndex at;
  for (size_t k = 0; k <= batch.digits.size(); ++k) {
    if (!placed && done == before) {
      at.digits.push_back(indices_.Constant(component));
      at.sizes.push_back(indices->shape().dim(index_vector_dim));
      placed = true;
    }
    if (k == batch.digits.size()) break;
    at.digits.push_back(batch.digits[k]);
    at.sizes.push_back(batch.sizes[k]);
    done *= batch.sizes[k];
  }
  if (const std::optional<IntegerRange> range = RangeOf(*indices))
    if (const std::optional<LaneIndex> known = KnownIndex(*indices, at)) return known->Within(range->low, range->high);
  const Val value = Emit(indices, at);
  const int level = LevelOf(at);
  V wide = scopes_.At(
      level, [&] { return IsSigned(value.type) ? b_.SExtOrTrunc(value.re, 64) : b_.ZExtOrTrunc(value.re, 64); });
  return indices_.FromLanes(wide, level);
}

// An index of a gather in [0, room], once for all rows that have it in common. `wraps`: beyond INT64_MAX it is large.
V ElementalEmitter::ClampIndex(const LaneIndex& start, bool wraps, int64_t room) {
  V wide = indices_.Materialize(start), narrow = wraps ? nullptr : BeforeExtension(wide);
  LoopScopes::Key key{kIndexInRange, reinterpret_cast<uint64_t>(narrow ? narrow : wide), static_cast<uint64_t>(room)};
  if (const std::vector<V>* done = scopes_.Find(start.level, key)) return (*done)[0];
  V clamped = scopes_.At(start.level, [&]() -> V {
    if (IsAtMost(narrow ? narrow : wide, room)) return b_.ZExtOrTrunc(narrow ? narrow : wide, 64);
    if (narrow) return PutIntoRange(b_, Val{narrow, nullptr, ElementType::S32}, room);
    return PutIntoRange(b_, Val{wide, nullptr, wraps ? ElementType::U64 : ElementType::S64}, room);
  });
  scopes_.Remember(start.level, std::move(key), {clamped});
  return clamped;
}

Vals ElementalEmitter::Gather(const Instruction& i, const ArrayIndex& index) {
  const GatherAttrs& a = i.attrs<GatherAttrs>();
  const Shape& operand = i.operand(0)->shape();
  const std::vector<DimGroup> groups = ResultGroups(i);
  const ArrayIndex at = indices_.Refactor(index, GroupSizes(groups));
  const auto contains = [](const Dims& dims, int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  // Result dimensions are batch dimensions (positions in `indices`, without index_vector_dim) and window dimensions.
  ArrayIndex batch;
  std::vector<size_t> windows;
  for (size_t g = 0; g < groups.size(); ++g) {
    if (contains(a.offset_dims, groups[g].first)) {
      windows.push_back(g);
      continue;
    }
    batch.digits.push_back(at.digits[g]);
    batch.sizes.push_back(at.sizes[g]);
  }
  ArrayIndex inner;
  size_t next_window = 0;
  for (int64_t d = 0; d < operand.rank();) {
    LaneIndex digit = indices_.Constant(0);
    int64_t behind = 1, dims = 1;  // of a digit of several dimensions: elements behind the first
    const bool is_batch = contains(a.operand_batching_dims, d);
    if (!is_batch && !contains(a.collapsed_slice_dims, d)) {
      const size_t g = windows[next_window++];
      digit = at.digits[g];
      behind = groups[g].inner;
      dims = groups[g].last - groups[g].first;
    }
    if (is_batch) digit = BatchDigit(i, groups, at, d);
    inner.digits.push_back(indices_.Add(digit, indices_.Mul(GatherStart(i, batch, d), behind)));
    inner.sizes.push_back(operand.dim(d) * behind);
    d += dims;
  }
  return {Emit(i.operand(0), inner)};
}

// The digit of the result that says where a batching dimension of the operand is read.
LaneIndex ElementalEmitter::BatchDigit(const Instruction& i, std::span<const DimGroup> groups, const ArrayIndex& at,
                                       int64_t operand_dim) {
  const GatherAttrs& a = i.attrs<GatherAttrs>();
  const size_t k = std::find(a.operand_batching_dims.begin(), a.operand_batching_dims.end(), operand_dim) -
                   a.operand_batching_dims.begin();
  size_t g = 0;
  while (groups[g].source != a.start_indices_batching_dims[k] ||
         std::find(a.offset_dims.begin(), a.offset_dims.end(), groups[g].first) != a.offset_dims.end())
    ++g;
  return at.digits[g];
}

// Where the window of a gather begins along a dimension of its operand.
LaneIndex ElementalEmitter::GatherStart(const Instruction& i, const ArrayIndex& batch, int64_t operand_dim) {
  const GatherAttrs& a = i.attrs<GatherAttrs>();
  const auto mapped = std::find(a.start_index_map.begin(), a.start_index_map.end(), operand_dim);
  const int64_t room = i.operand(0)->shape().dim(operand_dim) - a.slice_sizes[operand_dim];
  if (mapped == a.start_index_map.end() || room == 0) return indices_.Constant(0);
  const LaneIndex start =
      EmitIndexComponent(i.operand(1), a.index_vector_dim, batch, mapped - a.start_index_map.begin());
  if (start.low >= 0 && start.high <= room) return start;
  V clamped = ClampIndex(start, i.operand(1)->shape().type() == ElementType::U64, room);
  return indices_.FromLanes(clamped, start.level);
}

// The bits of an element as an integer of Bits(type), and back.
V ElementalEmitter::ToBits(const Val& value) {
  const int bits = Bits(value.type);
  if (IsInteger(value.type)) return value.re;
  V stored = elements_.ToStorage(value.type, value.re);
  stored = b_.ir().CreateBitCast(stored, VectorBuilder::Like(b_.Int(8 * Bytes(value.type)), stored));
  return b_.ZExtOrTrunc(stored, bits);
}

Val ElementalEmitter::FromBits(ElementType type, V bits) {
  if (IsInteger(type)) return Val{bits, nullptr, type};
  V stored = b_.ZExtOrTrunc(bits, 8 * Bytes(type));
  stored = b_.ir().CreateBitCast(stored, VectorBuilder::Like(elements_.StorageType(type), stored));
  return Val{elements_.FromStorage(type, stored), nullptr, type};
}

// bitcast (of the same size: the bytes in another shape) and bitcast-convert, which may split or join elements along a
// new innermost dimension, lowest bits first.
Vals ElementalEmitter::BitcastRule(const Instruction& i, const ArrayIndex& index) {
  const Instruction* operand = i.operand(0);
  const ElementType from = operand->shape().type(), to = i.shape().type();
  if (from == to) return {Emit(operand, index)};
  if (IsComplex(from) || IsComplex(to)) return Unsupported(i, index);
  const int from_bits = Bits(from), to_bits = Bits(to);
  if (from_bits == to_bits) return {FromBits(to, ToBits(Emit(operand, index)))};
  if (from_bits > to_bits) {  // split
    const int64_t parts = from_bits / to_bits;
    const ArrayIndex at = indices_.Refactor(index, Int64Vector{i.shape().num_elements() / parts, parts});
    V bits = ToBits(Emit(operand, ArrayIndex{{at.digits[0]}, {at.sizes[0]}}));
    V shift = b_.ZExtOrTrunc(indices_.Materialize(indices_.Mul(at.digits[1], to_bits)), from_bits);
    b_.Match(bits, shift);
    return {FromBits(to, b_.ZExtOrTrunc(b_.ir().CreateLShr(bits, shift), to_bits))};
  }
  const int64_t parts = to_bits / from_bits, count = i.shape().num_elements();  // join
  const ArrayIndex at = indices_.Refactor(index, Int64Vector{count});
  V joined = nullptr;
  for (int64_t k = 0; k < parts; ++k) {
    V bits = ToBits(Emit(operand, ArrayIndex{{at.digits[0], indices_.Constant(k)}, {count, parts}}));
    bits = b_.Shl(b_.ZExtOrTrunc(bits, to_bits), static_cast<int>(k) * from_bits);
    joined = joined ? b_.Or(joined, bits) : bits;
  }
  return {FromBits(to, joined)};
}

}  // namespace strop
