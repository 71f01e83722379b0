// The passes that Compile() runs, in order, with the reason for the order.
#pragma once
#include "strop/backend/backend.h"
#include "strop/driver/compile.h"
#include "strop/passes/pipeline.h"

namespace strop {

PassPipeline CompilePipeline(const Backend& backend, const CompileSettings& options);

}  // namespace strop
