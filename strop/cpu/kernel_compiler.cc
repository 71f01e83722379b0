#include "strop/cpu/kernel_compiler.h"

#include <algorithm>
#include <functional>
#include <new>

#include "strop/base/thread_pool.h"
#include "strop/codegen/kernel_body.h"
#include "strop/codegen/vector_builder.h"
#include "strop/cpu/jit.h"
#include "strop/cpu/load/code.h"
#include "strop/ir/printer.h"

namespace strop::cpu {
namespace {

constexpr int64_t kCacheBytes = int64_t{64} << 20;
constexpr size_t kKernelsPerGroup = 16;

void AppendComputations(const Instruction& i, const PrintOptions& options, std::string& key) {
  for (const Computation* c : i.called()) {
    key += PrintComputation(*c, options);
    for (const Instruction* inner : c->instructions()) AppendComputations(*inner, options, key);
  }
}

// As large as groups may be while all threads have one.
size_t GroupSize(size_t kernels, const ThreadPool* pool) {
  const size_t threads = pool ? static_cast<size_t>(pool->num_threads()) : 1;
  return std::clamp<size_t>((kernels + threads - 1) / threads, 1, kKernelsPerGroup);
}

}  // namespace

struct KernelCompiler::Job {
  const KernelSpec* spec;
  std::string key;
  std::shared_ptr<const Compiled> compiled;
  std::string recipe = {};
  MadeStep made = {};
};

// Target machines are not for two threads at once, and take a while to make: they are lent out.
class KernelCompiler::Emitters {
 public:
  explicit Emitters(const Isa& isa) : isa_(isa) {}

  class Loan {
   public:
    Loan(Emitters& lender, int level, std::unique_ptr<ObjectEmitter> emitter)
        : lender_(lender), level_(level), emitter_(std::move(emitter)) {}
    ~Loan() { lender_.Return(level_, std::move(emitter_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ObjectEmitter& emitter() { return *emitter_; }
    // After a failure inside LLVM: nothing is known of its state.
    void Discard() { emitter_.reset(); }

   private:
    Emitters& lender_;
    int level_;
    std::unique_ptr<ObjectEmitter> emitter_;
  };

  Result<std::unique_ptr<Loan>> Borrow(int level) {
    std::unique_ptr<ObjectEmitter> emitter;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      std::vector<std::unique_ptr<ObjectEmitter>>& idle = idle_[level];
      if (!idle.empty()) {
        emitter = std::move(idle.back());
        idle.pop_back();
      }
    }
    if (!emitter) {
      STROP_ASSIGN(emitter, ObjectEmitter::Create(isa_, level));
    }
    return std::make_unique<Loan>(*this, level, std::move(emitter));
  }

 private:
  void Return(int level, std::unique_ptr<ObjectEmitter> emitter) {
    if (!emitter) return;
    std::lock_guard<std::mutex> lock(mutex_);
    idle_[level].push_back(std::move(emitter));
  }
  const Isa& isa_;
  std::mutex mutex_;
  std::map<int, std::vector<std::unique_ptr<ObjectEmitter>>> idle_;  // by optimization level
};

KernelCompiler::KernelCompiler(const Isa& isa) : isa_(isa), emitters_(std::make_unique<Emitters>(isa_)) {}
KernelCompiler::~KernelCompiler() = default;

namespace {

std::string RegionKey(const Region& region) {
  std::string key = "region";
  for (const RegionBuffer& b : region.buffers)
    StrAppend(key, " ", b.size, ":", b.arg, b.loaded ? "l" : "", b.stored ? "s" : "", b.written ? "w" : "");
  key += '\n';
  for (const std::vector<RegionNode>& program : region.programs) {
    StrAppend(key, "program of ", program.size(), "\n");
    for (const RegionNode& node : program) {
      StrAppend(key, static_cast<int>(node.kind), " ", Join(node.args, ","), " ", Join(node.programs, ","),
                node.by_index ? " by index\n" : "\n");
      if (node.kind == RegionNodeKind::kKernel) key += KernelKey(KernelSpec{node.instruction, node.in_place});
    }
  }
  return key;
}

}  // namespace

std::string KernelKey(const KernelSpec& spec) {
  if (spec.region) return RegionKey(*spec.region);
  PrintOptions options = PrintOptions::Fingerprint();
  options.operand_shapes = true;
  std::string key = PrintInstruction(*spec.instruction, options);
  // An operand that appears twice is one buffer twice.
  for (int64_t k = 0; k < spec.instruction->operand_count(); ++k)
    for (int64_t j = 0; j < k; ++j)
      if (spec.instruction->operand(j) == spec.instruction->operand(k)) StrAppend(key, " ", j, "=", k);
  StrAppend(key, " in place ", Join(spec.in_place, ","), " by ", spec.task_elements, "\n");
  AppendComputations(*spec.instruction, options, key);
  return key;
}

Decision KernelCompiler::Supports(const Instruction& kernel) {
  std::string why_not;
  if (FindFamily(kernel, &why_not)) return Decision::Yes();
  return Decision::No(why_not);
}

// One module for all jobs. A kernel that cannot be emitted is left out of it; if LLVM fails on the module, each kernel
// gets one of its own, so that only the culprit fails.
void KernelCompiler::CompileGroup(std::span<Job* const> jobs, const KernelCompileOptions& options) {
  struct Member {
    Job* job;
    const KernelFamily* family;
    std::string function;
    EmittedKernel emitted;
  };
  std::vector<Member> members;
  auto object = std::make_shared<std::string>();
  const auto compile = [&]() -> Result<std::shared_ptr<const LoadedCode>> {
    STROP_ASSIGN(const std::unique_ptr<Emitters::Loan> loan, emitters_->Borrow(options.optimization_level));
    llvm::LLVMContext context;
    llvm::Module module(jobs[0]->spec->name(), context);
    loan->emitter().Prepare(module);
    for (Job* job : jobs) {
      VectorBuilder builder(module, isa_.vector_target());
      EmitContext emit{builder, KernelSymbol(job->spec->name(), members.size())};
      const KernelFamily* family = job->spec->region ? nullptr : FindFamily(*job->spec->instruction);
      Result<EmittedKernel> emitted = Unimplemented("no kernel family takes %", job->spec->name());
      if (family || job->spec->region) emitted = EmitFunction(*job->spec, family, emit);
      if (emitted.ok()) {
        members.push_back(Member{job, family, emit.function, *emitted});
        continue;
      }
      if (llvm::Function* half_made = module.getFunction(emit.function)) half_made->eraseFromParent();
      job->compiled = std::make_shared<const Compiled>(Compiled{.status = emitted.status()});
    }
    if (members.empty()) return nullptr;
    EmitOptions emit_options{.optimization_level = options.optimization_level,
                             .promote_memory = jobs[0]->spec->region != nullptr};
    if (!options.dump_dir.empty()) emit_options.dump_prefix = options.dump_dir + "/" + jobs[0]->spec->name();
    Result<std::string> emitted = loan->emitter().Emit(module, emit_options);
    if (!emitted.ok()) loan->Discard();
    STROP_TRY(emitted.status());
    *object = *std::move(emitted);
    const std::string_view objects[] = {*object};
    return LoadedCode::Load(objects);
  };
  const Result<std::shared_ptr<const LoadedCode>> code = compile();
  if (!code.ok() && members.size() > 1) {
    for (const Member& m : members) CompileGroup({&m.job, 1}, options);
    return;
  }
  for (const Member& m : members) {
    Compiled compiled;
    compiled.status = code.status();
    if (code.ok()) {
      compiled.code = *code;
      compiled.object = object;
      compiled.code_bytes = (*code)->bytes() / static_cast<int64_t>(members.size());
      compiled.kept_bytes =
          compiled.code_bytes + static_cast<int64_t>(object->size()) / static_cast<int64_t>(members.size());
      compiled.function = m.function;
      compiled.family = m.family;
      compiled.emitted = m.emitted;
    }
    m.job->compiled = std::make_shared<const Compiled>(std::move(compiled));
  }
  for (Job* job : jobs)  // nothing was tried
    if (!job->compiled) job->compiled = std::make_shared<const Compiled>(Compiled{.status = code.status()});
}

std::shared_ptr<const KernelCompiler::Compiled> KernelCompiler::Find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = cache_.find(key);
  return found == cache_.end() ? nullptr : found->second.compiled;
}

void KernelCompiler::Keep(const std::string& key, std::shared_ptr<const Compiled> compiled) {
  const int64_t bytes = compiled->kept_bytes;
  std::lock_guard<std::mutex> lock(mutex_);
  if (!cache_.try_emplace(key, Entry{std::move(compiled), next_age_}).second) return;
  ++next_age_;
  cached_bytes_ += bytes;
  while (cached_bytes_ > kCacheBytes && cache_.size() > 1) {
    const auto oldest = std::min_element(cache_.begin(), cache_.end(),
                                         [](const auto& a, const auto& b) { return a.second.age < b.second.age; });
    cached_bytes_ -= oldest->second.compiled->kept_bytes;
    cache_.erase(oldest);
  }
}

Result<GeneratedKernels> KernelCompiler::Compile(std::span<const KernelSpec> specs,
                                                 const KernelCompileOptions& options) {
  // One job per different kernel.
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
  // A dump shows each kernel by itself.
  const auto regions = std::stable_partition(missing.begin(), missing.end(), [](Job* j) { return !j->spec->region; });
  const size_t kernels = static_cast<size_t>(regions - missing.begin());
  const size_t group_size = options.dump_dir.empty() ? GroupSize(kernels, options.pool) : 1;
  std::vector<std::span<Job* const>> parts;  // regions by themselves: they get passes of their own
  for (size_t first = 0; first < missing.size(); first += parts.back().size())
    parts.push_back(std::span(missing).subspan(first, first < kernels ? std::min(group_size, kernels - first) : 1));
  const int64_t groups = static_cast<int64_t>(parts.size());
  const auto run = [&](int64_t n) { CompileGroup(parts[static_cast<size_t>(n)], options); };
  if (options.pool && groups > 1) {
    options.pool->ParallelFor(groups, run);
  } else {
    for (int64_t n = 0; n < groups; ++n) run(n);
  }
  for (Job* job : missing)
    if (job->compiled->status.ok()) Keep(job->key, job->compiled);

  GeneratedKernels out;
  out.context.kinds = AllRecipeKinds();
  auto code = std::make_shared<std::vector<std::shared_ptr<const Compiled>>>();
  std::map<const LoadedCode*, int32_t> numbers;
  for (Job& job : jobs) {
    const Compiled& compiled = *job.compiled;
    if (!compiled.code) continue;
    const auto [object, fresh] = numbers.try_emplace(compiled.code.get(), static_cast<int32_t>(numbers.size()));
    if (fresh) {
      out.objects.push_back(compiled.object);
      out.context.objects.push_back({compiled.code.get(), 0});
    }
    out.code_bytes += compiled.code_bytes;
    code->push_back(job.compiled);
    STROP_ASSIGN(job.recipe,
                 RecipeOf(*job.spec, compiled.family, compiled.emitted, CodeRef{object->second, compiled.function}));
    STROP_ASSIGN(job.made, MakeStep(job.recipe, out.context));
  }
  out.code = code;
  for (size_t k = 0; k < specs.size(); ++k) {
    const Job& job = jobs[job_of[k]];
    const Compiled& compiled = *job.compiled;
    if (compiled.status.ok()) {
      out.kernels.push_back({.body = job.made.body,
                             .recipe = job.recipe,
                             .family = std::string(compiled.family ? compiled.family->name : "region"),
                             .tiles = compiled.emitted.tiles});
    } else if (compiled.status.code() == StatusCode::kUnimplemented && !specs[k].region) {
      out.kernels.push_back(InterpretKernel(specs[k]));
    } else {
      return Status(compiled.status).Note(StrCat("while compiling %", specs[k].name()));
    }
  }
  return out;
}

}  // namespace strop::cpu
