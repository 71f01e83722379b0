#include "strop/analysis/scalar_pattern.h"

namespace strop {
namespace {

const Instruction* SkipCopies(const Instruction* i) {
  while (i->op() == Op::Copy || i->op() == Op::Bitcast ||
         (i->op() == Op::Convert && i->shape().Compatible(i->operand(0)->shape())))
    i = i->operand(0);
  return i;
}

int64_t ParameterOf(const Instruction* i) {
  i = SkipCopies(i);
  return i->IsParameter() ? i->parameter_number() : -1;
}

// select(x != x, NaN, y): gives y.
const Instruction* StripNan(const Instruction* i) {
  if (i->op() != Op::Select || i->operand(0)->op() != Op::Compare) return nullptr;
  const Instruction* test = i->operand(0);
  if (test->attrs<CompareAttrs>().direction != CompareDirection::Ne || test->operand(0) != test->operand(1))
    return nullptr;
  const Instruction* nan = i->operand(1);
  if (nan->op() == Op::Broadcast) nan = nan->operand(0);
  if (!nan->IsConstant() || !nan->literal().shape().IsArray() || nan->literal().num_elements() != 1) return nullptr;
  const double v = nan->literal().GetDouble(0);
  return v != v ? i->operand(2) : nullptr;
}

// select(x == 0, 0, x): gives x.
const Instruction* StripZero(const Instruction* i) {
  if (i->op() != Op::Select || i->operand(0)->op() != Op::Compare || !i->operand(1)->IsSplat(0)) return nullptr;
  const Instruction* test = i->operand(0);
  if (test->attrs<CompareAttrs>().direction != CompareDirection::Eq || !test->operand(1)->IsSplat(0)) return nullptr;
  return test->operand(0) == i->operand(2) ? i->operand(2) : nullptr;
}

// The parameter behind JAX's canonical form of a float (zeros without sign, one NaN), or the plain parameter.
int64_t CanonicalParameter(const Instruction* i, bool& canonical) {
  canonical = false;
  if (const Instruction* inner = StripNan(i)) {
    if (const Instruction* x = StripZero(inner)) {
      canonical = true;
      return ParameterOf(x);
    }
    return -1;
  }
  return ParameterOf(i);
}

// The order of a comparison of the two sides of one operand.
std::optional<SortOrder> OrderOf(const Instruction* comparison) {
  if (comparison->op() != Op::Compare) return std::nullopt;
  const CompareAttrs& attrs = comparison->attrs<CompareAttrs>();
  bool left_canonical, right_canonical;
  const int64_t left = CanonicalParameter(comparison->operand(0), left_canonical);
  const int64_t right = CanonicalParameter(comparison->operand(1), right_canonical);
  if (left < 0 || right < 0 || left_canonical != right_canonical || left / 2 != right / 2 || left == right)
    return std::nullopt;
  const bool less = attrs.direction == CompareDirection::Lt, greater = attrs.direction == CompareDirection::Gt;
  if (!less && !greater) return std::nullopt;
  SortOrder order;
  order.operand = left / 2;
  order.descending = (left > right) != greater;
  const bool total = attrs.order == CompareOrder::TotalOrder;
  if (left_canonical && !total) return std::nullopt;
  order.kind = left_canonical ? SortOrder::Kind::Canonical : total ? SortOrder::Kind::Total : SortOrder::Kind::Ieee;
  return order;
}

// Does `equal` hold just where neither side of `comparison`, which orders them, comes first? Floats that are compared
// as numbers leave NaN without a place.
bool IsTieOf(const Instruction* equal, const Instruction* comparison) {
  if (equal->op() != Op::Compare || equal->attrs<CompareAttrs>().direction != CompareDirection::Eq) return false;
  const Instruction *a = comparison->operand(0), *b = comparison->operand(1);
  if (IsComplex(a->shape().type())) return false;
  const auto is_total = [](const Instruction* i) { return i->attrs<CompareAttrs>().order == CompareOrder::TotalOrder; };
  if (IsFloat(a->shape().type()) && (!is_total(equal) || !is_total(comparison))) return false;
  return (equal->operand(0) == a && equal->operand(1) == b) || (equal->operand(0) == b && equal->operand(1) == a);
}

}  // namespace

std::optional<SortOrder> MatchSortOrder(const Computation& c) { return OrderOf(c.root()); }

std::vector<const Instruction*> MatchSortKeys(const Computation& c) {
  std::vector<const Instruction*> keys;
  const Instruction* rest = c.root();
  while (rest->op() == Op::Or) {
    const Instruction* next = nullptr;
    for (int64_t k = 0; k < 2 && !next; ++k) {
      const Instruction *first = rest->operand(k), *tie = rest->operand(1 - k);
      if (!OrderOf(first) || tie->op() != Op::And) continue;
      for (int64_t n = 0; n < 2 && !next; ++n) {
        if (!IsTieOf(tie->operand(n), first)) continue;
        keys.push_back(first);
        next = tie->operand(1 - n);
      }
    }
    if (!next) return {};
    rest = next;
  }
  if (!OrderOf(rest)) return {};
  keys.push_back(rest);
  return keys;
}

}  // namespace strop
