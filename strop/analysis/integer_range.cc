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
      default: return std::nullopt;
    }
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
      case Op::Multiply: return Arithmetic(i.op(), Of(*i.operand(0)), Of(*i.operand(1)));
      case Op::Select:
        if (i.operand(0)->op() == Op::Compare)
          if (const std::optional<bool> first = Compare(*i.operand(0))) return Of(*i.operand(*first ? 1 : 2));
        return std::nullopt;
      default: return std::nullopt;
    }
  }

  static Range Arithmetic(Op op, Range x, Range y) {
    if (!x || !y) return std::nullopt;
    if (op == Op::Add) return IntegerRange{x->low + y->low, x->high + y->high};
    if (op == Op::Subtract) return IntegerRange{x->low - y->high, x->high - y->low};
    const auto [least, most] = std::minmax({x->low * y->low, x->low * y->high, x->high * y->low, x->high * y->high});
    return IntegerRange{least, most};
  }

  int steps_ = 0;
};

}  // namespace

std::optional<IntegerRange> RangeOf(const Instruction& i) { return Finder().Of(i); }

std::optional<bool> ComparisonOf(const Instruction& compare) { return Finder().Compare(compare); }

}  // namespace strop
