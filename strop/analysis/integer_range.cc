#include "strop/analysis/integer_range.h"

#include <algorithm>

#include "strop/ir/attrs.h"

namespace strop {
namespace {

using Range = std::optional<IntegerRange>;

constexpr int kMostSteps = 64;                  // instructions that are looked at
constexpr int64_t kLargest = int64_t{1} << 31;  // magnitude: products of two stay far from the end of int64_t

// Nothing that the type does not hold, so that no operation has wrapped around.
Range Held(ElementType type, IntegerRange range) {
  const int bits = Bits(type) - (IsSigned(type) ? 1 : 0);
  const int64_t end = bits >= 32 ? kLargest : int64_t{1} << bits;
  if (range.low < (IsSigned(type) ? -end : 0) || range.high >= end) return std::nullopt;
  return range;
}

class Finder {
 public:
  explicit Finder(const RangeOfState& of_state) : of_state_(of_state) {}

  Range Of(const Instruction& i) {
    const ElementType type = i.shape().type();
    if (!i.shape().IsArray() || !IsInteger(type) || ++steps_ > kMostSteps) return std::nullopt;
    const Range found = Computed(i);
    return found ? Held(type, *found) : std::nullopt;
  }

  std::optional<bool> Compare(const Instruction& compare) {
    const Range x = Of(*compare.operand(0)), y = Of(*compare.operand(1));
    if (!x || !y) return std::nullopt;
    switch (compare.attrs<CompareAttrs>().direction) {
      case CompareDirection::Lt: return Decide(x->high < y->low, x->low >= y->high);
      case CompareDirection::Le: return Decide(x->high <= y->low, x->low > y->high);
      case CompareDirection::Gt: return Decide(x->low > y->high, x->high <= y->low);
      case CompareDirection::Ge: return Decide(x->low >= y->high, x->high < y->low);
      case CompareDirection::Eq:
      case CompareDirection::Ne: {
        const bool apart = x->high < y->low || x->low > y->high, same = x->low == x->high && *x == *y;
        const bool equal = compare.attrs<CompareAttrs>().direction == CompareDirection::Eq;
        return equal ? Decide(same, apart) : Decide(apart, same);
      }
    }
    return std::nullopt;
  }

 private:
  static std::optional<bool> Decide(bool yes, bool no) { return yes || no ? std::optional<bool>(yes) : std::nullopt; }

  Range Computed(const Instruction& i) {
    switch (i.op()) {
      case Op::Constant: {
        if (i.literal().num_elements() != 1) return std::nullopt;
        const int64_t value = i.literal().GetInt(0);
        return IntegerRange{value, value};
      }
      case Op::Iota: return IntegerRange{0, std::max<int64_t>(i.shape().dim(i.attrs<IotaAttrs>().dimension) - 1, 0)};
      case Op::Broadcast:
      case Op::Reshape:
      case Op::Slice:
      case Op::Copy:
      case Op::Convert: return Of(*i.operand(0));
      case Op::Add:
      case Op::Subtract:
      case Op::Multiply:
      case Op::Minimum:
      case Op::Maximum:
      case Op::Remainder: return Arithmetic(i.op(), Of(*i.operand(0)), Of(*i.operand(1)));
      case Op::Clamp: return Clamped(i);
      case Op::GetTupleElement: return of_state_ ? of_state_(i) : std::nullopt;
      case Op::Select:
        if (i.operand(0)->op() == Op::Compare)
          if (const std::optional<bool> first = Compare(*i.operand(0))) return Of(*i.operand(*first ? 1 : 2));
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  static Range Arithmetic(Op op, Range x, Range y) {
    if (!x || !y) return std::nullopt;
    switch (op) {
      case Op::Add: return IntegerRange{x->low + y->low, x->high + y->high};
      case Op::Subtract: return IntegerRange{x->low - y->high, x->high - y->low};
      case Op::Minimum: return IntegerRange{std::min(x->low, y->low), std::min(x->high, y->high)};
      case Op::Maximum: return IntegerRange{std::max(x->low, y->low), std::max(x->high, y->high)};
      case Op::Remainder:
        if (x->low < 0 || y->low < 1) return std::nullopt;
        return IntegerRange{x->high < y->low ? x->low : 0, std::min(x->high, y->high - 1)};
      default: break;
    }
    const auto [least, most] = std::minmax({x->low * y->low, x->low * y->high, x->high * y->low, x->high * y->high});
    return IntegerRange{least, most};
  }

  Range Clamped(const Instruction& i) {
    const Range low = Of(*i.operand(0)), high = Of(*i.operand(2));
    if (!low || !high || low->high > high->low) return std::nullopt;
    const IntegerRange x = Of(*i.operand(1)).value_or(IntegerRange{low->low, high->high});
    return IntegerRange{std::clamp(x.low, low->low, high->high), std::clamp(x.high, low->low, high->high)};
  }

  const RangeOfState& of_state_;
  int steps_ = 0;
};

}  // namespace

std::optional<IntegerRange> RangeOf(const Instruction& i, const RangeOfState& of_state) {
  return Finder(of_state).Of(i);
}

std::optional<bool> ComparisonOf(const Instruction& compare, const RangeOfState& of_state) {
  return Finder(of_state).Compare(compare);
}

}  // namespace strop
