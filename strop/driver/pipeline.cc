#include "strop/driver/pipeline.h"

namespace strop {

PassPipeline CompilePipeline(const Backend& backend, const CompileSettings& settings) {
  PassPipeline p("compile");
  return p;
}

}  // namespace strop
