#include "strop/spmd/parts.h"

#include <algorithm>
#include <optional>

#include "strop/spmd/propagation.h"
#include "strop/spmd/rule.h"

namespace strop::spmd {
namespace {

bool IsInParts(const Values& values, const Instruction& operand, uint8_t axis) {
  const Parted& p = values.Of(operand);
  return p.whole.IsArray() && Contains(p.specs[0].unreduced, axis);
}

bool IsZero(const Instruction& i) { return i.IsSplat(0); }

// The operands whose sums become the sum: all of `first` to `last` at once.
struct Summed {
  int64_t first = 0, last = 0;  // not including it
};

// Of a product: the one that is in parts, if the other is not.
std::optional<Summed> Factor(const Instruction& i, const Values& values, uint8_t axis, int64_t factors) {
  std::optional<Summed> out;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    if (!IsInParts(values, *i.operand(k), axis)) continue;
    if (out || k >= factors) return std::nullopt;
    out = Summed{k, k + 1};
  }
  return out;
}

std::optional<Summed> SummedOperands(const Instruction& i, const Values& values, uint8_t axis) {
  switch (i.op()) {
    case Op::Add:
    case Op::Subtract:
    case Op::Negate:
    case Op::Copy:
    case Op::Concatenate:
    case Op::Reshape:
    case Op::Transpose:
    case Op::Broadcast:
    case Op::Reverse:
    case Op::Slice: return Summed{0, i.operand_count()};
    case Op::Convert: {
      const bool floats = IsFloat(i.shape().type()) && IsFloat(i.operand(0)->shape().type());
      return floats ? std::optional(Summed{0, 1}) : std::nullopt;
    }
    case Op::Multiply:
    case Op::Dot: return Factor(i, values, axis, 2);
    case Op::Divide: return IsFloat(i.shape().type()) ? Factor(i, values, axis, 1) : std::nullopt;
    case Op::Select: return Summed{1, 3};
    case Op::DynamicSlice: return Summed{0, 1};
    case Op::DynamicUpdateSlice: return Summed{0, 2};
    case Op::Pad: return IsZero(*i.operand(1)) ? std::optional(Summed{0, 1}) : std::nullopt;
    case Op::Reduce: {
      const bool sum = i.operand_count() == 2 && IsZero(*i.operand(1)) && CombinerOf(i) == Op::Add;
      return sum ? std::optional(Summed{0, 1}) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

// Operands that lie in parts, or are had in parts for nothing; one at least lies so.
bool Keeps(const Instruction& i, const Values& values, uint8_t axis) {
  const std::optional<Summed> summed = SummedOperands(i, values, axis);
  bool any = false;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const bool in_parts = IsInParts(values, *i.operand(k), axis);
    const bool wanted = summed && k >= summed->first && k < summed->last;
    if (in_parts && !wanted) return false;
    if (wanted && !in_parts && !IsFree(*i.operand(k))) return false;
    any = any || in_parts;
  }
  return any;
}

}  // namespace

Axes KeptParts(const Instruction& i, const Values& values, const std::vector<Spec>& wanted) {
  Axes kept;
  if (!i.shape().IsArray() || values.manual().Has(i)) return kept;
  for (uint8_t axis : wanted[0].unreduced)
    if (Keeps(i, values, axis)) kept.push_back(axis);
  return kept;
}

Spec WithParts(Spec spec, const Instruction& i, const Values& values, int64_t k, const Axes& kept) {
  for (uint8_t axis : kept) {
    const std::optional<Summed> summed = SummedOperands(i, values, axis);
    if (summed && k >= summed->first && k < summed->last) spec.unreduced.push_back(axis);
  }
  return spec;
}

Spec WithParts(Spec spec, const Axes& kept) {
  for (uint8_t axis : kept) spec.unreduced.push_back(axis);
  return spec;
}

}  // namespace strop::spmd
