// The pipelines that all backends share; the driver puts them together with a backend's own passes.
#pragma once
#include "strop/passes/pipeline.h"

namespace strop {

// From an imported module to Stage::Optimized: everything inlined, row-major and simplified.
void AddSimplification(PassPipeline& pipeline, int optimization_level);

}  // namespace strop
