// KernelCompiler: generated kernels. Equal kernels are compiled once, different ones in groups that share an LLVM
// module (what LLVM does once a module costs as much as a small kernel), groups in parallel, and the machine code is
// kept for later programs.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "strop/backend/backend.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/load/recipe.h"

namespace strop::cpu {

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
  struct Compiled {
    std::shared_ptr<const LoadedCode> code;     // of the whole group; null: `status` says why
    std::shared_ptr<const std::string> object;  // where it comes from
    int64_t code_bytes = 0, kept_bytes = 0;     // this kernel's share: of the code, of both
    std::string function;
    const KernelFamily* family = nullptr;  // null: a region
    EmittedKernel emitted;
    Status status;
  };
  struct Job;
  class Emitters;

  void CompileGroup(std::span<Job* const> jobs, const KernelCompileOptions& options);
  std::shared_ptr<const Compiled> Find(const std::string& key);
  void Keep(const std::string& key, std::shared_ptr<const Compiled> compiled);

  const Isa isa_;
  std::unique_ptr<Emitters> emitters_;
  std::mutex mutex_;
  // Looked up by key; the oldest entries go when the code outgrows kCacheBytes.
  struct Entry {
    std::shared_ptr<const Compiled> compiled;
    int64_t age = 0;
  };
  std::map<std::string, Entry> cache_;
  int64_t cached_bytes_ = 0;
  int64_t next_age_ = 0;
};

// What a kernel's code depends on, as text: equal keys, equal code. Names and metadata are not in it.
std::string KernelKey(const KernelSpec& spec);

}  // namespace strop::cpu
