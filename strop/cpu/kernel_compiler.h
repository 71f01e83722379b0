// KernelCompiler: generated kernels. Equal kernels are compiled once, different ones in groups that share an LLVM
// module (what LLVM does once a module costs as much as a small kernel), groups in parallel, and the machine code is
// kept for later programs.
#pragma once
#include <memory>
#include <string>

#include "strop/backend/backend.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/load/recipe.h"

namespace llvm {
class Module;
}

namespace strop::cpu {

class Emitters;
class KernelCache;

// What recipes refer to, besides.
struct GeneratedKernels : CompiledKernels {
  LoadContext context = {};
};

class KernelCompiler {
 public:
  // Code for this instruction set. Only the host's may run here.
  explicit KernelCompiler(const Isa& isa = Isa::OfHost());
  ~KernelCompiler();
  // Is code generated for this kernel (a fusion, or an instruction by itself)? No says why not, family by family.
  static Decision Supports(const Instruction& kernel);

  // One KernelStep per spec. Kernels that turn out not to be possible after all (Unimplemented) are interpreted.
  Result<GeneratedKernels> Compile(std::span<const KernelSpec> specs, const KernelCompileOptions& options);

 private:
  struct Job;
  struct Member;
  struct GroupCode;

  std::unique_ptr<llvm::Module> EmitQuickly(std::span<Job* const> jobs, std::span<const Member> members,
                                            const llvm::Module& better) const;
  void CompileGroup(std::span<Job* const> jobs, const KernelCompileOptions& options);

  const std::shared_ptr<Emitters> emitters_;
  const std::shared_ptr<KernelCache> cache_;
};

// What a kernel's code depends on, as text: equal keys, equal code. Names and metadata are not in it.
std::string KernelKey(const KernelSpec& spec);

}  // namespace strop::cpu
