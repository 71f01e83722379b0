// PTX of an LLVM module, by LLVM's own back end.
#pragma once
#include <memory>
#include <string>

#include "strop/base/status.h"
#include "strop/codegen/vector_builder.h"

namespace llvm {
class TargetMachine;
}

namespace strop::gpu {

class PtxWriter {
 public:
  // For an architecture as NVIDIA calls it ("sm_90"). NotFound: LLVM does not know it.
  static Result<std::unique_ptr<PtxWriter>> Create(const std::string& machine);
  ~PtxWriter();

  // Writes to the module.
  VectorBuilder& builder() { return builder_; }
  // Unimplemented: something in it calls a function that GPUs do not have.
  Result<std::string> Write(int optimization_level);

 private:
  PtxWriter(std::unique_ptr<llvm::TargetMachine> machine);
  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  VectorBuilder builder_;
};

}  // namespace strop::gpu
