#include "strop/cpu/kernel_compiler.h"

#include <llvm/IR/Module.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <functional>
#include <map>
#include <new>
#include <set>

#include "strop/analysis/cost.h"
#include "strop/base/thread_pool.h"
#include "strop/codegen/kernel_body.h"
#include "strop/codegen/kernel_frame.h"
#include "strop/codegen/llvm_guard.h"
#include "strop/codegen/vector_builder.h"
#include "strop/cpu/emitters.h"
#include "strop/cpu/kernel_cache.h"
#include "strop/cpu/load/code.h"
#include "strop/cpu/tiered_code.h"
#include "strop/ir/printer.h"

namespace strop::cpu {
namespace {

constexpr size_t kKernelsPerGroup = 16;
// What quick code costs more than fast code in a run, in processor time: for an operation on one element, whose vectors
// are in memory between any two, and for a transcendental one (measured on sums, softmax, gelu); and how much of that
// the milliseconds are worth that a kernel is compiled sooner.
constexpr double kQuickNanoseconds = 0.06, kQuickTranscendental = 1.2, kMostQuickNanoseconds = 3e6;

void AppendComputations(const Instruction& i, const PrintOptions& options, std::string& key) {
  for (const Computation* c : i.called()) {
    key += PrintComputation(*c, options);
    for (const Instruction* inner : c->instructions()) AppendComputations(*inner, options, key);
  }
}

// May it run by quick code first? Regions may not: their loops may run for long before they are entered again.
bool MayBeQuick(const KernelSpec& spec) {
  return !spec.region && static_cast<double>(Flops(*spec.instruction)) * kQuickNanoseconds +
                                 static_cast<double>(Transcendentals(*spec.instruction)) * kQuickTranscendental <
                             kMostQuickNanoseconds;
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
  bool quick = false;  // compiled quickly first
  KernelCache::Entry compiled = nullptr;
  std::string recipe = {};
  MadeStep made = {};
};

KernelCompiler::KernelCompiler(const Isa& isa)
    : emitters_(std::make_shared<Emitters>(isa)), cache_(std::make_shared<KernelCache>()) {}
KernelCompiler::~KernelCompiler() = default;

namespace {

std::string RegionKey(const Region& region) {
  std::string key = "region";
  if (region.tasks > 1) StrAppend(key, " of ", region.tasks, " tasks by ", region.number, " with ", region.local_bytes);
  for (const RegionBuffer& b : region.buffers) {
    StrAppend(key, " ", b.size, ":", b.arg, b.loaded ? "l" : "", b.stored ? "s" : "", b.written ? "w" : "",
              b.in_parts ? "p" : "");
    if (b.local >= 0) StrAppend(key, "@", b.local);
  }
  key += '\n';
  for (const std::vector<RegionNode>& program : region.programs) {
    StrAppend(key, "program of ", program.size(), "\n");
    for (const RegionNode& node : program) {
      StrAppend(key, static_cast<int>(node.kind), " ", Join(node.args, ","), " ", Join(node.programs, ","),
                node.by_index ? " by index" : "");
      for (const RegionNode::Counter& counter : node.counters)
        StrAppend(key, " counts ", counter.buffer, ":", counter.bytes, " to ", counter.last);
      for (const std::vector<int32_t>& rotation : node.rotations) StrAppend(key, " rotates ", Join(rotation, ","));
      key += '\n';
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
  StrAppend(key, " in place ", Join(spec.in_place, ","), " by ", spec.task_elements,
            spec.streams ? " past the caches" : "", spec.fetches ? " from memory" : "",
            spec.unaligned ? " at any address" : "",
            KernelFrame::WritesLargeResult(*spec.instruction) ? " to the caller\n" : "\n");
  AppendComputations(*spec.instruction, options, key);
  return key;
}

Decision KernelCompiler::Supports(const Instruction& kernel) {
  std::string why_not;
  if (FindFamily(kernel, &why_not)) return Decision::Yes();
  return Decision::No(why_not);
}

namespace {

// LLVM IR with what it lives in.
struct Ir {
  explicit Ir(const std::string& name) : module(std::make_unique<llvm::Module>(name, context)) {}
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> module;
};

Result<std::string> EmitObject(Emitters& emitters, llvm::Module& module, const EmitOptions& options) {
  STROP_ASSIGN(const std::unique_ptr<Emitters::Loan> loan, emitters.Borrow(options.optimization_level));
  Result<std::string> object = loan->emitter().Emit(module, options);
  if (!object.ok()) loan->Discard();
  return object;
}

}  // namespace

struct KernelCompiler::GroupCode {
  std::shared_ptr<const LoadedCode> code;
  std::shared_ptr<const ObjectCode> object;
  size_t object_bytes = 0;
  std::shared_ptr<const TieredCode> tiers = nullptr;
};

struct KernelCompiler::Member {
  std::string key;
  const KernelFamily* family;
  std::string function;
  EmittedKernel emitted;

  // With the code of the group, which is shared by so many members.
  std::shared_ptr<CompiledKernelCode> In(const GroupCode& group, size_t members) const {
    auto compiled = std::make_shared<CompiledKernelCode>();
    compiled->code_bytes = group.code->bytes() / static_cast<int64_t>(members);
    compiled->kept_bytes = compiled->code_bytes + static_cast<int64_t>(group.object_bytes / members);
    compiled->code = group.code;
    compiled->object = group.object;
    compiled->tiers = group.tiers;
    compiled->function = function;
    compiled->family = family;
    compiled->emitted = emitted;
    return compiled;
  }
};

// The members once more, as IR that is quick to compile; a copy where it would be cut into other tasks.
std::unique_ptr<llvm::Module> KernelCompiler::EmitQuickly(std::span<Job* const> jobs, std::span<const Member> members,
                                                          const llvm::Module& better) const {
  auto module = std::make_unique<llvm::Module>(better.getName(), better.getContext());
  module->setTargetTriple(better.getTargetTriple());
  module->setDataLayout(better.getDataLayout());
  for (size_t m = 0; m < members.size(); ++m) {
    VectorBuilder builder(*module, emitters_->isa().vector_target());
    builder.MakeQuick();
    EmitContext emit{builder, members[m].function};
    const Result<EmittedKernel> emitted = EmitFunction(*jobs[m]->spec, members[m].family, emit);
    const EmittedKernel& wanted = members[m].emitted;
    if (!emitted.ok() || emitted->num_tasks != wanted.num_tasks || emitted->cut != wanted.cut ||
        emitted->scratch_bytes != wanted.scratch_bytes)
      return llvm::CloneModule(better);
  }
  return module;
}

// One module for all jobs. A kernel that cannot be emitted is left out of it; if LLVM fails on the module, each kernel
// gets one of its own, so that only the culprit fails.
void KernelCompiler::CompileGroup(std::span<Job* const> jobs, const KernelCompileOptions& options) {
  const bool is_region = jobs[0]->spec->region != nullptr;
  const bool tiered = jobs[0]->quick;
  EmitOptions emit_options{.optimization_level = options.optimization_level, .promote_memory = is_region};
  if (!options.dump_dir.empty()) emit_options.dump_prefix = options.dump_dir + "/" + jobs[0]->spec->name();
  std::vector<Member> members;
  std::vector<Job*> made;  // for these
  auto ir = std::make_shared<Ir>(jobs[0]->spec->name());
  std::string object;
  const auto compile = [&]() -> Result<std::shared_ptr<const LoadedCode>> {
    const LlvmScope scope;
    {
      STROP_ASSIGN(const std::unique_ptr<Emitters::Loan> loan, emitters_->Borrow(emit_options.optimization_level));
      loan->emitter().Prepare(*ir->module);
    }
    for (Job* job : jobs) {
      VectorBuilder builder(*ir->module, emitters_->isa().vector_target());
      EmitContext emit{builder, KernelSymbol(job->spec->name(), members.size())};
      const KernelFamily* family = job->spec->region ? nullptr : FindFamily(*job->spec->instruction);
      Result<EmittedKernel> emitted = Unimplemented("no kernel family takes %", job->spec->name());
      if (family || job->spec->region) emitted = EmitFunction(*job->spec, family, emit);
      if (emitted.ok()) {
        members.push_back(Member{job->key, family, emit.function, *emitted});
        made.push_back(job);
        continue;
      }
      if (llvm::Function* half_made = ir->module->getFunction(emit.function)) half_made->eraseFromParent();
      auto failed = std::make_shared<CompiledKernelCode>();
      failed->status = emitted.status();
      job->compiled = std::move(failed);
    }
    if (members.empty()) return nullptr;
    if (!tiered) {
      STROP_ASSIGN(object, EmitObject(*emitters_, *ir->module, emit_options));
      const std::string_view objects[] = {object};
      return LoadedCode::Load(objects);
    }
    const std::unique_ptr<llvm::Module> quick = EmitQuickly(made, members, *ir->module);
    STROP_ASSIGN(object, EmitObject(*emitters_, *quick, EmitOptions{.optimization_level = 0}));
    return LoadedCode::LoadReplaceable(object);
  };
  const Result<std::shared_ptr<const LoadedCode>> code = compile();
  if (!code.ok() && members.size() > 1) {
    for (Job* const& job : made) CompileGroup({&job, 1}, options);
    return;
  }
  if (!code.ok()) {
    auto failed = std::make_shared<CompiledKernelCode>();
    failed->status = code.status();
    for (Job* job : jobs)
      if (!job->compiled) job->compiled = failed;
    return;
  }
  GroupCode group{*code, nullptr, object.size()};
  auto text = std::make_shared<const std::string>(std::move(object));
  if (options.tier == Tier::kAuto && tiered) {
    const auto better = [ir, emitters = emitters_, emit_options] {
      return EmitObject(*emitters, *ir->module, emit_options);
    };
    const auto keep = [cache = cache_, members](std::shared_ptr<const std::string> bytes,
                                                std::shared_ptr<const LoadedCode> loaded) {
      const size_t size = bytes->size();
      const GroupCode best{std::move(loaded), std::make_shared<FinalObject>(std::move(bytes)), size};
      for (const Member& m : members) cache->Keep(m.key, m.In(best, members.size()));
    };
    group.tiers = std::make_shared<TieredCode>(*code, std::move(text), better, keep);
    group.object = group.tiers;
  } else {
    group.object = std::make_shared<FinalObject>(std::move(text));
  }
  for (size_t m = 0; m < members.size(); ++m) made[m]->compiled = members[m].In(group, members.size());
}

Result<GeneratedKernels> KernelCompiler::Compile(std::span<const KernelSpec> specs,
                                                 const KernelCompileOptions& options) {
  // One job per different kernel.
  std::vector<Job> jobs;
  std::vector<size_t> job_of;
  std::map<std::string, size_t> by_key;
  const bool in_tiers = options.tier != Tier::kOptimizing && options.optimization_level > 0 && options.dump_dir.empty();
  const std::string level = StrCat(options.tier == Tier::kBaseline ? "B" : "O", options.optimization_level, " ");
  for (const KernelSpec& spec : specs) {
    std::string key = level + KernelKey(spec);
    const auto [at, fresh] = by_key.try_emplace(key, jobs.size());
    job_of.push_back(at->second);
    if (fresh) jobs.push_back(Job{&spec, std::move(key), in_tiers && MayBeQuick(spec)});
  }
  std::vector<Job*> missing;
  for (Job& job : jobs) {
    if (options.dump_dir.empty()) job.compiled = cache_->Find(job.key);  // a dump wants to see it made
    if (options.tier == Tier::kOptimizing && job.compiled && job.compiled->tiers) {
      (void)job.compiled->tiers->Final();  // which puts the better code in its place
      job.compiled = cache_->Find(job.key);
    }
    if (!job.compiled) missing.push_back(&job);
  }
  // Kernels with each kind of code, then regions, by themselves: they get passes of their own. A dump shows each kernel
  // by itself.
  const auto order = [](const Job* job) { return job->spec->region ? 2 : job->quick ? 0 : 1; };
  std::stable_sort(missing.begin(), missing.end(), [&](Job* a, Job* b) { return order(a) < order(b); });
  const auto ends_at = [&](int kind) {
    return static_cast<size_t>(
        std::count_if(missing.begin(), missing.end(), [&](const Job* job) { return order(job) <= kind; }));
  };
  const size_t ends[] = {ends_at(0), ends_at(1)};
  const size_t group_size = options.dump_dir.empty() ? GroupSize(ends[1], options.pool) : 1;
  std::vector<std::span<Job* const>> parts;
  for (size_t first = 0; first < missing.size(); first += parts.back().size()) {
    const size_t end = first < ends[0] ? ends[0] : first < ends[1] ? ends[1] : first + 1;
    parts.push_back(std::span(missing).subspan(first, std::min(group_size, end - first)));
  }
  const int64_t groups = static_cast<int64_t>(parts.size());
  const auto run = [&](int64_t n) { CompileGroup(parts[static_cast<size_t>(n)], options); };
  if (options.pool && groups > 1) {
    options.pool->ParallelFor(groups, run);
  } else {
    for (int64_t n = 0; n < groups; ++n) run(n);
  }
  for (Job* job : missing)
    if (job->compiled->status.ok()) cache_->Keep(job->key, job->compiled);

  GeneratedKernels out;
  out.context.kinds = AllRecipeKinds();
  auto code = std::make_shared<std::vector<KernelCache::Entry>>();
  std::map<const LoadedCode*, int32_t> numbers;
  for (Job& job : jobs) {
    const CompiledKernelCode& compiled = *job.compiled;
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
    const CompiledKernelCode& compiled = *job.compiled;
    if (compiled.status.ok()) {
      out.kernels.push_back({.body = job.made.body,
                             .recipe = job.recipe,
                             .family = std::string(compiled.family ? compiled.family->name : "region"),
                             .tiles = compiled.emitted.tiles});
    } else if (compiled.status.code() == StatusCode::kUnimplemented && !specs[k].region) {
      out.kernels.push_back(InterpretKernel(specs[k], std::string(compiled.status.message())));
    } else {
      return Status(compiled.status).Note(StrCat("while compiling %", specs[k].name()));
    }
  }
  std::set<const TieredCode*> scheduled;
  for (const Job* job : missing)
    if (const auto& tiers = job->compiled->tiers; tiers && scheduled.insert(tiers.get()).second)
      TieredCode::Schedule(tiers);
  return out;
}

}  // namespace strop::cpu
