// Strips: vectors side by side, of a register each, that a reduction accumulates at a time. One vector of several
// registers would hide the latency as well, but LLVM's code generator would have to take it apart, operation by
// operation, which takes as long again.
#include <algorithm>
#include <array>

#include "strop/codegen/elemental.h"

namespace strop {

std::vector<ArrayIndex> ElementalEmitter::StripsAt(const ArrayIndex& at) {
  std::vector<ArrayIndex> out(strips(), at);
  const LaneIndex& first = at.digits.back();
  for (size_t s = 1; s < out.size(); ++s) {
    LaneIndex& digit = out[s].digits.back();
    digit = first;  // all that is known of the lanes of the first strip that are on is true of the others
    const LaneIndex moved = indices_.Neighbours(first, static_cast<int64_t>(s) * lanes());
    digit.lanes = digit.pattern = moved.pattern;  // of the same base, to which everything else is added once
    digit.stride = 0;
  }
  return out;
}

void ElementalEmitter::ReduceStrips(const Instruction& reduce, std::span<const ArrayIndex> strips) {
  const size_t results = static_cast<size_t>(reduce.operand_count() / 2);
  int level = 0;
  for (size_t s = 0; s < strips.size(); ++s)
    WithMask(strip_masks_[s], [&] {
      level = std::max(level, LevelOf(strips[s]));
      return Vals();
    });
  const Vals all = scopes_.At(level, [&] { return ReduceAt(reduce, strips, /*in_strips=*/true); });
  for (size_t s = 0; s < strips.size(); ++s)
    WithMask(strip_masks_[s], [&] {
      const auto first = all.begin() + static_cast<std::ptrdiff_t>(s * results);
      Provide(&reduce, strips[s], Vals(first, first + static_cast<std::ptrdiff_t>(results)));
      return Vals();
    });
}

Vals ElementalEmitter::EmitStrip(size_t strip, const Instruction* instruction, const ArrayIndex& at) {
  return WithMask(strip_masks_[strip], [&] { return EmitAll(instruction, at); });
}

void ElementalEmitter::StoreStrip(size_t strip, const ElementBuilder::Memory& memory, const Val& value,
                                  const ArrayIndex& at) {
  WithMask(strip_masks_[strip], [&] {
    Store(memory, value, at);
    return Vals();
  });
}

// A selection (argmax) that is not commutative, because of NaNs or ties, is made so: both orders are tried, and the
// result whose position comes first counts.
Vals ElementalEmitter::CombineHalves(const LaneCombiner& combiner, const Vals& low, const Vals& high,
                                     int64_t position) {
  Vals combined = CombineInto(combiner, low, high, nullptr);
  if (position < 0) return combined;
  const Vals swapped = CombineInto(combiner, high, low, nullptr);
  const size_t p = static_cast<size_t>(position);
  llvm::Value* first = scalars_.Compare(CompareDirection::Le, CompareOrder::Default, combined[p], swapped[p]).re;
  for (size_t k = 0; k < combined.size(); ++k) combined[k] = elements_.Select(first, combined[k], swapped[k]);
  return combined;
}

// Combines the strips, halves against each other, as if they were one vector.
Vals ElementalEmitter::AcrossStrips(const LaneCombiner& combiner, Vals accumulators, size_t inputs, int64_t position) {
  while (accumulators.size() > inputs) {
    const size_t half = accumulators.size() / 2;
    Vals next;
    for (size_t first = 0; first < half; first += inputs) {
      const auto strip = [&](size_t at) {
        const auto begin = accumulators.begin() + static_cast<std::ptrdiff_t>(at);
        return Vals(begin, begin + static_cast<std::ptrdiff_t>(inputs));
      };
      const Vals combined = CombineHalves(combiner, strip(first), strip(half + first), position);
      next.insert(next.end(), combined.begin(), combined.end());
    }
    accumulators = std::move(next);
  }
  return accumulators;
}

// Combines the lanes, halves against each other. Extremes of floats stay vectors of four equal lanes: they are made of
// bits, which LLVM would take to registers of integers and back, and of fewer lanes with more instructions.
Vals ElementalEmitter::AcrossLanes(const LaneCombiner& combiner, Vals accumulators, int64_t position) {
  const bool extreme = (combiner.op == Op::Minimum || combiner.op == Op::Maximum) && accumulators.size() == 1 &&
                       IsFloat(accumulators[0].type);
  for (int n = accumulators[0].lanes(); n > 1; n /= 2) {
    if (n == 4 && extreme) {
      for (const std::array<int, 4>& order : {std::array{2, 3, 0, 1}, {1, 0, 3, 2}}) {
        Val turned = accumulators[0];
        turned.re = b_.ir().CreateShuffleVector(turned.re, llvm::ArrayRef<int>(order.data(), order.size()));
        accumulators = CombineHalves(combiner, accumulators, {turned}, position);
      }
      return accumulators;
    }
    Vals low, high;
    for (const Val& v : accumulators) {
      low.push_back(Val{b_.Slice(v.re, 0, n / 2), v.im ? b_.Slice(v.im, 0, n / 2) : nullptr, v.type});
      high.push_back(Val{b_.Slice(v.re, n / 2, n / 2), v.im ? b_.Slice(v.im, n / 2, n / 2) : nullptr, v.type});
    }
    accumulators = CombineHalves(combiner, low, high, position);
  }
  return accumulators;
}

}  // namespace strop
