#include "strop/driver/pipeline.h"

#include "strop/passes/pipelines.h"

namespace strop {

PassPipeline CompilePipeline(const Backend& backend, const CompileSettings& settings) {
  PassPipeline p("compile");
  AddSimplification(p, settings.optimization_level);
  backend.AddPasses(Phase::kSimplify, p);
  backend.AddPasses(Phase::kBeforePlan, p);
  p.Add(PassId::BoundedOutliner);  // last: nothing looks inside
  p.Add(PassId::TupleSimplifier);  // of its results
  return p;
}

}  // namespace strop
