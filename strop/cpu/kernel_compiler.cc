#include "strop/cpu/kernel_compiler.h"

#include <algorithm>
#include <functional>
#include <new>

#include "strop/base/thread_pool.h"
#include "strop/codegen/vector_builder.h"
#include "strop/cpu/host_isa.h"
#include "strop/cpu/jit.h"
#include "strop/cpu/kernel_family.h"
#include "strop/ir/printer.h"

namespace strop::cpu {
namespace {

constexpr int64_t kCacheBytes = int64_t{64} << 20;

void AppendComputations(const Instruction& i, const PrintOptions& options, std::string& key) {
  for (const Computation* c : i.called()) {
    key += PrintComputation(*c, options);
    for (const Instruction* inner : c->instructions()) AppendComputations(*inner, options, key);
  }
}

// A symbol that profilers can show: the kernel's name, letters and digits only.
std::string SymbolName(const std::string& name) {
  std::string symbol = "strop_";
  for (char c : name) symbol += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return symbol;
}

}  // namespace

std::string KernelKey(const KernelSpec& spec) {
  PrintOptions options = PrintOptions::Fingerprint();
  options.operand_shapes = true;
  std::string key = PrintInstruction(*spec.instruction, options);
  // An operand that appears twice is one buffer twice.
  for (int64_t k = 0; k < spec.instruction->operand_count(); ++k)
    for (int64_t j = 0; j < k; ++j)
      if (spec.instruction->operand(j) == spec.instruction->operand(k)) StrAppend(key, " ", j, "=", k);
  StrAppend(key, " in place ", Join(spec.in_place, ","), "\n");
  AppendComputations(*spec.instruction, options, key);
  return key;
}

Decision KernelCompiler::Supports(const Instruction& kernel) {
  std::string why_not;
  if (FindFamily(kernel, &why_not)) return Decision::Yes();
  return Decision::No(why_not);
}

KernelCompiler::Compiled KernelCompiler::CompileOne(const KernelSpec& spec, const std::string& key,
                                                    const KernelCompileOptions& options) {
  Compiled out;
  const auto compile = [&]() -> Status {
    const KernelFamily* family = FindFamily(*spec.instruction);
    if (!family) return Unimplemented("no kernel family takes %", spec.name());
    STROP_ASSIGN(std::unique_ptr<ObjectEmitter> emitter, ObjectEmitter::Create(options.optimization_level));
    llvm::LLVMContext context;
    llvm::Module module(spec.name(), context);
    emitter->Prepare(module);
    VectorBuilder builder(module, HostIsa::Get().vector_target());
    EmitContext emit{builder, SymbolName(spec.name())};
    STROP_ASSIGN(const EmittedKernel emitted, family->emit(spec, emit));
    EmitOptions emit_options{.optimization_level = options.optimization_level};
    if (!options.dump_dir.empty()) emit_options.dump_prefix = options.dump_dir + "/" + spec.name();
    STROP_ASSIGN(const std::string object, emitter->Emit(module, emit_options));
    STROP_ASSIGN(out.code, LoadedCode::Load(object));
    void* address = out.code->Find(emit.function);
    if (!address) return Internal("kernel %", spec.name(), " has no entry");
    if (family->wrap) {
      out.step = family->wrap(spec, address);
    } else {
      out.step = KernelStep{.fn = reinterpret_cast<KernelFn>(address),
                            .num_tasks = emitted.num_tasks,
                            .scratch_bytes = emitted.scratch_bytes};
    }
    return OkStatus();
  };
  out.status = compile();
  return out;
}

std::shared_ptr<const KernelCompiler::Compiled> KernelCompiler::Find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = cache_.find(key);
  return found == cache_.end() ? nullptr : found->second.compiled;
}

void KernelCompiler::Keep(const std::string& key, std::shared_ptr<const Compiled> compiled) {
  const int64_t bytes = compiled->code ? compiled->code->bytes() : 0;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cache_.try_emplace(key, Entry{std::move(compiled), next_age_}).second) return;
  ++next_age_;
  cached_bytes_ += bytes;
  while (cached_bytes_ > kCacheBytes && cache_.size() > 1) {
    const auto oldest = std::min_element(cache_.begin(), cache_.end(),
                                         [](const auto& a, const auto& b) { return a.second.age < b.second.age; });
    if (oldest->second.compiled->code) cached_bytes_ -= oldest->second.compiled->code->bytes();
    cache_.erase(oldest);
  }
}

Result<CompiledKernels> KernelCompiler::Compile(std::span<const KernelSpec> specs,
                                                const KernelCompileOptions& options) {
  // One job per different kernel.
  struct Job {
    const KernelSpec* spec;
    std::string key;
    std::shared_ptr<const Compiled> compiled;
  };
  std::vector<Job> jobs;
  std::vector<size_t> job_of;
  std::map<std::string, size_t> by_key;
  const std::string level = StrCat("O", options.optimization_level, " ");
  for (const KernelSpec& spec : specs) {
    std::string key = level + KernelKey(spec);
    const auto [at, fresh] = by_key.try_emplace(key, jobs.size());
    job_of.push_back(at->second);
    if (fresh) jobs.push_back(Job{&spec, std::move(key), nullptr});
  }
  std::vector<Job*> missing;
  for (Job& job : jobs) {
    if (options.dump_dir.empty()) job.compiled = Find(job.key);  // a dump wants to see it made
    if (!job.compiled) missing.push_back(&job);
  }
  const auto run = [&](int64_t n) {
    Job& job = *missing[static_cast<size_t>(n)];
    job.compiled = std::make_shared<const Compiled>(CompileOne(*job.spec, job.key, options));
  };
  const int64_t count = static_cast<int64_t>(missing.size());
  if (options.pool && count > 1) {
    options.pool->ParallelFor(count, run);
  } else {
    for (int64_t n = 0; n < count; ++n) run(n);
  }
  for (Job* job : missing)
    if (job->compiled->status.ok()) Keep(job->key, job->compiled);

  CompiledKernels out;
  auto code = std::make_shared<std::vector<std::shared_ptr<const Compiled>>>();
  for (Job& job : jobs) {
    if (job.compiled->code) {
      out.code_bytes += job.compiled->code->bytes();
      code->push_back(job.compiled);
    }
  }
  out.code = code;
  for (size_t k = 0; k < specs.size(); ++k) {
    const Compiled& compiled = *jobs[job_of[k]].compiled;
    if (compiled.status.ok()) {
      out.kernels.push_back(CompiledKernel{.body = compiled.step});
    } else if (compiled.status.code() == StatusCode::kUnimplemented) {
      out.kernels.push_back(InterpretKernel(specs[k]));
    } else {
      return Status(compiled.status).Note(StrCat("while compiling %", specs[k].name()));
    }
  }
  return out;
}

}  // namespace strop::cpu
