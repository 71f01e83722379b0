// Reads and writes of buffers at the positions of the lanes: how far they lie apart, and what their mask leaves out.
#include <algorithm>

#include "strop/codegen/elemental.h"

namespace strop {

using V = llvm::Value*;

ElementBuilder::Memory ElementalEmitter::Masked(ElementBuilder::Memory memory) const {
  if (!mask_.tail) memory.padding = 0;
  return memory;
}

// Is the next row that the walk comes to the one behind this one? Not where it is picked by an index.
static bool RowsFollow(const ArrayIndex& index) {
  return std::all_of(index.digits.begin(), index.digits.end(), [](const LaneIndex& digit) {
    return !digit.uniform() || digit.digit >= 0 || llvm::isa<llvm::Constant>(digit.base);
  });
}

// Elements are picked from a row, here and there: the processor sees no stream, but the next row lies behind this one.
void ElementalEmitter::FetchNextRow(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index) {
  constexpr int64_t kLine = 64, kMostBytes = 4096, kBeyondCaches = int64_t{1} << 20;
  const int64_t row = index.sizes.empty() ? 0 : index.sizes.back(), bytes = row * Bytes(type);
  const bool in_walk = walk_.size > 0 && walk_.along.level == scopes_.current();
  // Most lines of the row are read, or it is not worth while.
  if (bytes <= kLine || !RowsFollow(index) || (in_walk && bytes > kLine * walk_.size)) return;
  ArrayIndex first = index;
  first.digits.back() = indices_.Constant(0);
  const LaneIndex next = indices_.Add(indices_.Linear(first), indices_.Constant(walk_.rows * row));
  if (!next.uniform() || next.level == 0 || next.level == scopes_.current()) return;
  if (bytes <= std::min(kMostBytes, kLine * 4 * lanes()) && walk_.rows == 1) {
    LoopScopes::Key key{kFetchedRow, reinterpret_cast<uint64_t>(memory.pointer), reinterpret_cast<uint64_t>(next.base)};
    if (scopes_.Find(next.level, key)) return;
    scopes_.At(next.level, [&] { elements_.Fetch(memory, type, next.base, static_cast<int>(row)); });
    scopes_.Remember(next.level, std::move(key), {next.base});
    return;
  }
  // A part of it at each point of this row. (Of 16 MB, elements took 2.2 ns each without this, and 0.5 with it.)
  const bool along = in_walk && walk_.along.affine() && walk_.along.stride == 1;
  if (!along || mask_.value || index.num_elements() * Bytes(type) < kBeyondCaches) return;
  const int64_t part = (bytes * lanes() / walk_.size + kLine - 1) / kLine * kLine, elements = part / Bytes(type);
  if (elements % lanes() != 0) return;
  V at = b_.Add(next.base, b_.Mul(walk_.along.base, b_.I64(elements / lanes())));
  elements_.Fetch(memory, type, at, static_cast<int>(elements));
}

// Lanes anywhere, counted from the place that the digits say that they have in common: so the numbers are the same for
// all that is computed at a point of the walk, and 32 bits hold them.
Val ElementalEmitter::GatherFromRow(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index,
                                    const LaneIndex& at) {
  const int64_t elements = index.num_elements();
  const bool small = elements * Bytes(type) <= INT32_MAX;
  // Where no lane is on, the place in common may be anywhere.
  if (at.pattern || llvm::isa<llvm::Constant>(at.lanes) || !small || (mask_.value && !mask_.tail))
    return elements_.Gather(memory, type, indices_.Materialize(at), mask_.value, elements);
  // What a digit was made of may have more in common than the digit has.
  ArrayIndex whole;
  for (size_t d = 0; d < index.digits.size(); ++d) {
    const ArrayIndex* digits = index.digits[d].uniform() ? nullptr : indices_.DigitsOf(index.digits[d]);
    const ArrayIndex as_it_is{{index.digits[d]}, {index.sizes[d]}};
    const ArrayIndex& made = digits && digits->num_elements() == index.sizes[d] ? *digits : as_it_is;
    for (size_t k = 0; k < made.digits.size(); ++k) {
      whole.digits.push_back(made.digits[k]);
      whole.sizes.push_back(made.sizes[k]);
    }
  }
  ArrayIndex row = whole, lanes = whole;
  int64_t within = 1;  // elements from there on, if all that is in common is in front; else it is not known how many
  bool leading = true;
  for (size_t d = 0; d < whole.digits.size(); ++d) {
    const bool uniform = whole.digits[d].uniform();
    leading &= uniform;
    if (!leading) within *= uniform ? 0 : whole.sizes[d];
    (uniform ? lanes : row).digits[d] = indices_.Constant(0);
  }
  const LaneIndex first = indices_.Linear(row), apart = indices_.Linear(lanes);
  const ElementBuilder::Memory from = scopes_.At(first.level, [&] { return elements_.From(memory, type, first.base); });
  V numbers = indices_.Materialize(apart);
  V narrow = scopes_.At(apart.level, [&] { return b_.ZExtOrTrunc(numbers, 32); });
  return elements_.Gather(from, type, narrow, mask_.value, within, walk_.picks);
}

// Lanes in neighbouring groups of a few elements, each at the same known place of its group: that place, or -1.
static int64_t PhaseOf(const ArrayIndex& index, const LaneIndex& at) {
  if (at.lanes || at.stride <= 1 || index.sizes.empty() || index.sizes.back() != at.stride) return -1;
  const LaneIndex& last = index.digits.back();
  const auto* place = last.uniform() ? llvm::dyn_cast<llvm::ConstantInt>(last.base) : nullptr;
  if (!place || place->getSExtValue() < 0 || place->getSExtValue() >= at.stride) return -1;
  return place->getSExtValue();
}

// The processor fetches ahead by itself, but not beyond a page, and not as far as memory is away. (Sums of 64 MiB: 30
// GB/s of one thread and 48 of two without this, 34 and 54 with it.)
static constexpr int64_t kFarAhead = 6 << 10;  // bytes

// Where no lane is on, a vector may be as far outside of its array as the array is long: processors find out slowly
// that nothing of it is to be read where there is no memory. (A large array, of which half of the vectors of a dynamic
// roll were outside, took 20 times as long.)
bool ElementalEmitter::MayBeFarOutside(ElementType type, const ArrayIndex& index) const {
  constexpr int64_t kLarge = int64_t{64} << 10;
  return mask_.value && !mask_.tail && VectorBuilder::Lanes(mask_.value) > 1 &&
         !llvm::isa<llvm::Constant>(mask_.value) && index.num_elements() * Bytes(type) >= kLarge;
}

// Lanes at one distance from each other are in neighbouring groups of so many elements, of which another part of the
// kernel may read the others: all read the same vectors. Null: there may be no such groups in memory.
Val ElementalEmitter::LoadFromGroups(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index,
                                     const LaneIndex& at, int64_t stride) {
  constexpr int64_t kLargestGroup = 32;
  const int64_t size = std::abs(stride);
  const std::optional<Int64Vector> distances = indices_.Distances(at);
  if (mask_.value || size < 2 || size > kLargestGroup || !distances || at.low == LaneIndex::kNoLow ||
      at.high == LaneIndex::kNoHigh)
    return {};
  const int64_t first = std::min(distances->front(), distances->back()), phase = (first % size + size) % size;
  if (at.low < phase || at.high - phase + size > index.num_elements()) return {};
  const LaneIndex base{.base = at.base, .level = at.level};
  const LaneIndex groups = indices_.Add(base, indices_.Constant(first - phase));
  const Val read = elements_.Load(memory, type, groups.base, size, lanes(), nullptr, 1, phase);
  if (stride > 0) return read;
  return Val{b_.Reverse(read.re), read.im ? b_.Reverse(read.im) : nullptr, type};
}

Val ElementalEmitter::Load(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index) {
  const LaneIndex known = indices_.Linear(index);
  LaneIndex at = indices_.AffineIfEven(known);
  if (known.pattern && !at.lanes)
    if (const Val read = LoadFromGroups(memory, type, index, known, at.stride); read.re) return read;
  if (at.pattern) {
    if (const Val picked = elements_.Pick(memory, type, at.base, at.pattern, mask_.value); picked.re) return picked;
  }
  if (at.lanes) FetchNextRow(memory, type, index);
  if (at.lanes) return GatherFromRow(memory, type, index, at);
  if (mask_.value && at.stride == 0 && !index.sizes.empty()) {
    // One element for all lanes cannot be masked; where no lane is on, its position may be anywhere.
    int64_t elements = 1;
    for (int64_t size : index.sizes) elements *= size;
    const V last = b_.I64(std::max<int64_t>(elements - 1, 0));
    at.base = scopes_.At(at.level, [&] { return b_.Binary(llvm::Intrinsic::umin, at.base, last); });
    at.multiple = 1;
  }
  if (at.stride != 0 && MayBeFarOutside(type, index)) {
    at.level = LevelOf(index);
    at.base = scopes_.At(at.level, [&] { return b_.Select(b_.ir().CreateOrReduce(mask_.value), at.base, b_.I64(0)); });
  }
  const ArrayIndex* digits = PhaseOf(index, at) < 0 ? indices_.DigitsOf(at) : nullptr;
  ArrayIndex first = digits ? *digits : index;
  if (const int64_t phase = PhaseOf(first, at); phase >= 0 && !mask_.value) {
    first.digits.back() = indices_.Constant(0);
    const LaneIndex group = indices_.AffineIfEven(indices_.Linear(first));  // of a vector inside a period, too
    return elements_.Load(memory, type, group.base, at.stride, lanes(), nullptr, group.multiple, phase);
  }
  if (fetch_ahead_ > 0 && at.stride == 1)
    elements_.Fetch(memory, type, b_.Add(at.base, b_.I64(fetch_ahead_)), lanes());
  else if (memory.far && at.stride == 1 && !mask_.value)
    elements_.Fetch(memory, type, at.base, lanes(), ElementBuilder::Cache::kNext, kFarAhead);
  return elements_.Load(Masked(memory), type, at.base, at.stride, at.stride == 0 ? 1 : lanes(), mask_.value,
                        at.multiple);
}

void ElementalEmitter::Store(const ElementBuilder::Memory& memory, const Val& value, const ArrayIndex& index) {
  const LaneIndex at = indices_.AffineIfEven(indices_.Linear(index));
  if (at.lanes)
    elements_.Scatter(memory, value, indices_.Materialize(at), mask_.value);
  else
    elements_.Store(Masked(memory), value, at.base, at.stride, at.stride == 0 ? 1 : lanes(), mask_.value, at.multiple);
}

}  // namespace strop
