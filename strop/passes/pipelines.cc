#include "strop/passes/pipelines.h"

namespace strop {
namespace {

// Each makes work for the others: a constant index opens a branch, whose body's tuples fall together, whose parts are
// equal.
constexpr PassId kSimplify[] = {
    PassId::TupleSimplifier,
    PassId::Simplify,
    PassId::ConstantFolding,
    PassId::WhileSimplifier,
    PassId::ConditionalSimplifier,
    PassId::Cse,
    PassId::Dce,
};
constexpr int kRounds = 8;

}  // namespace

void AddSimplification(PassPipeline& p, int optimization_level) {
  // First: calls hide what every other pass wants to see, and layouts mean something only until here.
  p.Add(PassId::CallInliner);
  p.Add(PassId::SingleDevice);
  p.Add(PassId::LayoutNormalization);
  p.AddRepeated(kSimplify, optimization_level == 0 ? 1 : kRounds);
}

}  // namespace strop
