// Rules of sort.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Along a dimension of at most one element, everything is in order.
Instruction* SortOfOne(Instruction* i, Builder& b) {
  const Shape& shape = i->operand(0)->shape();
  const int64_t along = i->attrs<SortAttrs>().dimensions[0];
  if (!shape.IsScalar() && shape.dim(along) > 1) return nullptr;
  if (i->operand_count() == 1) return i->operand(0);
  return b.Tuple(i->operands());
}

constexpr Rule kRules[] = {
    {"sort-of-one", Op::Sort, &SortOfOne},
};

}  // namespace

RuleSet SortRules() { return kRules; }

}  // namespace strop::simplify
