// The way from LLVM IR to object code: optimise briefly, emit an object in memory, which load/code.h links into
// executable pages.
//
// No ORC: a kernel is one module that names a few functions of libm or of this library, so a target machine, the object
// writer and a section linker do all that is needed; nothing is started, no thread, no symbol search (names resolve
// through one table, load/symbols.h). Object code is a plain string, so that it can be kept.
//
// LLVM's fatal errors (an instruction it cannot select) come back as Internal, never as an abort.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace llvm {
class Module;
class TargetMachine;
}  // namespace llvm

namespace strop {
struct VectorTarget;
}

namespace strop::cpu {

struct Isa;

struct EmitOptions {
  int optimization_level = 2;  // 0: least time in the compiler
  // For regions: values of allocas become registers, short loops straight code, deferred functions code.
  bool promote_memory = false;
  std::string dump_prefix;  // not empty: <prefix>.ll and <prefix>.s are written
};

// One target machine, and the passes for it, which are made once (a tenth of the time of a small kernel); not for use
// by two threads at once. Cheap to make (about 0.1 ms).
class ObjectEmitter {
 public:
  static Result<std::unique_ptr<ObjectEmitter>> Create(const Isa& isa, int optimization_level);
  ~ObjectEmitter();

  // Sets the module's triple and data layout: to be called before IR is built.
  void Prepare(llvm::Module& module) const;
  // ELF object of the module, which is left optimised.
  Result<std::string> Emit(llvm::Module& module, const EmitOptions& options);

 private:
  ObjectEmitter(std::unique_ptr<llvm::TargetMachine> machine, const Isa& isa);
  struct Pipeline;
  Result<std::string> EmitUnguarded(llvm::Module& module, const EmitOptions& options);
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<const VectorTarget> target_;
  std::unique_ptr<Pipeline> pipelines_[2];  // without and with promote_memory
};

}  // namespace strop::cpu
