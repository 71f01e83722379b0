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
    PassId::CounterRanges,
    PassId::ConditionalSimplifier,
    PassId::CallInliner,  // a map of branches is one of selects now
    PassId::SortSplitter,
    PassId::SortSimplifier,
    PassId::Cse,
    PassId::Dce,
};
// With the passes that bring dots and convolutions into the form that kernels read: what they move meets the algebra.
constexpr PassId kSettle[] = {
    PassId::LayoutPropagation,
    PassId::DotCanonicalizer,
    PassId::ConvolutionCanonicalizer,
    PassId::PatchConvolutions,
    PassId::TupleSimplifier,
    PassId::Simplify,
    PassId::ConstantFolding,
    PassId::WhileSimplifier,
    PassId::CounterRanges,
    PassId::ConditionalSimplifier,
    PassId::CallInliner,
    PassId::Cse,
    PassId::Dce,
};
constexpr int kRounds = 8;

}  // namespace

void AddSimplification(PassPipeline& p, int optimization_level) {
  const int rounds = optimization_level == 0 ? 1 : kRounds;
  // First: calls hide what every other pass wants to see, and layouts mean something only until here.
  p.Add(PassId::Synchronizer);
  p.Add(PassId::CallInliner);
  p.Add(PassId::ShardingPropagation);
  p.Add(PassId::SpmdPartitioner);
  p.Add(PassId::SingleDevice);
  p.Add(PassId::DecompositionRewriter);  // both know calls that ask for layouts
  p.Add(PassId::LapackRewriter);
  if (optimization_level > 0) {
    p.Add(PassId::LinearAlgebraExpander);  // of what is read by columns
    p.Add(PassId::LapackRows);             // the rest of it
  }
  p.Add(PassId::LayoutNormalization);
  p.Add(PassId::CollectiveReducerExpander);
  p.Add(PassId::ZeroSizedElimination);
  if (optimization_level > 0) {
    p.Add(PassId::TupleSimplifier);
    p.Add(PassId::LapackFuser);  // permutations of few elements soon are no gathers any more
  }
  p.Add(PassId::Cse);
  p.Add(PassId::LoopConditions);  // what was written twice is still the same twice
  p.AddRepeated(kSimplify, rounds);
  if (optimization_level > 0) p.Add(PassId::LapackFuser);  // masks are in one form now
  // What expands comes once the program is small, so that dead code is not expanded; then its own algebra is
  // simplified.
  p.Add(PassId::QuantizeExpander);
  p.Add(PassId::BatchNormExpander);
  p.Add(PassId::RngExpander);
  p.Add(PassId::LinearAlgebraWidener);
  // Before invariants leave their loops: a transpose that folds into a dot costs nothing where it is.
  p.Add(PassId::DotCanonicalizer);
  p.Add(PassId::ConvolutionCanonicalizer);
  if (optimization_level > 0) {
    p.Add(PassId::LoopUnroller);
    p.Add(PassId::LoopInvariantCodeMotion);
    p.Add(PassId::Dce);  // what moved out reads nothing any more
    p.Add(PassId::LoopProductSinking);
    p.Add(PassId::StackUpdates);
    p.Add(PassId::LoopDoubler);
  }
  p.AddRepeated(kSettle, rounds);
  if (optimization_level > 0) {
    p.Add(PassId::BatchInnermost);  // of a settled program: what it undoes was folded into products
    p.AddRepeated(kSettle, rounds);
  }
  if (optimization_level > 0) p.Add(PassId::CollectiveCombiner);  // nothing looks into it
}

}  // namespace strop
