// Compile(): the way of a program through the rooms, from a verified module to an executable.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strop/analysis/cost.h"
#include "strop/backend/backend.h"
#include "strop/base/options.h"
#include "strop/ir/module.h"
#include "strop/plan/plan.h"
#include "strop/runtime/custom_call.h"
#include "strop/runtime/executable.h"

namespace strop {

// XLA's dump flags (driver/xla_dump.h).
struct XlaDumpOptions {
  std::string to, module_re, pass_re;  // xla_dump_to, xla_dump_hlo_module_re, xla_dump_hlo_pass_re
  bool as_text = false, as_proto = false, as_dot = false, as_html = false, as_url = false;
  bool large_constants = false, snapshots = false;
};

// Programs whose compilation failed or was slow (driver/reproducer.h).
struct ReproducerSettings {
  std::string folder;      // empty: none are written
  bool automatic = false;  // nobody named the folder: mistakes of Strop and slow compilations only
  int64_t slow_milliseconds = 0, most_files = 0, most_bytes = 0;
  std::vector<std::string> flags;  // of the command that repeats it
};

// Programs that are kept for other processes (driver/program_cache.h).
struct CacheSettings {
  std::string folder;  // empty: none are
  int64_t most_bytes = 0;
};

namespace spmd {
class CallOwners;
}

struct CompileSettings {
  int optimization_level = 2;  // 0: few passes, fast code generation
  Tier tier = Tier::kOptimizing;
  bool verify_each = false;  // verify the module after every pass
  std::string dump_dir;      // STROP_DUMP
  XlaDumpOptions xla_dump;
  std::vector<std::string> disabled_passes;
  const CustomCallRegistry* custom_calls = nullptr;  // null: no targets are known
  const spmd::CallOwners* call_owners = nullptr;     // null: nobody cuts custom calls
  std::string lapack_library;                        // option of that name; empty: the usual places
  ThreadPool* pool = nullptr;                        // for code generation; null: the calling thread alone
  std::string memory_limit;                          // option of that name
  bool explain = false;                              // collect the reasons below
  ReproducerSettings reproducers;
  CacheSettings cache;
  // The program once more, as it was before compiling; a compilation that is given none leaves no reproducer.
  std::function<Result<std::unique_ptr<Module>>()> reload;
};

// How the backend made a kernel of the plan.
struct KernelNote {
  const Instruction* instruction = nullptr;
  int32_t program = 0, step = 0;  // of the executable
  std::string family, tiles;
};

// Why something is not as fast as it might be; for `strop explain` and STROP_LOG=1. All but `interpreted` is filled if
// CompileSettings::explain.
struct Explanation {
  std::vector<std::string> interpreted;  // "%x (sort, model.py:3): comparator ... is not compiled"
  std::vector<FusionLimit> fusion_limits;
  std::vector<ScheduleDecision> schedule;
  std::vector<PlannedCopy> copies;
  std::vector<Recomputation> recomputed;  // to stay below the memory limit
  std::vector<KernelNote> kernels;
  MemoryProfile memory;
};

struct Timing {
  std::string phase;  // "passes", "plan", "codegen"
  double milliseconds = 0;
};

// The module of a compiled program: there, or read from an artifact when somebody asks for it, which running and most
// questions do not.
class ProgramModule {
 public:
  ProgramModule() = default;
  explicit ProgramModule(std::shared_ptr<const Module> module) : module_(std::move(module)) {}
  // A HloModuleProtoWithConfig that `owner` keeps.
  ProgramModule(std::string_view proto, std::shared_ptr<const void> owner) : proto_(proto), owner_(std::move(owner)) {}

  // An error of an artifact alone.
  Result<std::shared_ptr<const Module>> Get() const;
  Result<std::string> Proto() const;

 private:
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Module> module_;  // guarded by mutex_
  std::string_view proto_;
  std::shared_ptr<const void> owner_;
};

struct CompiledProgram {
  std::unique_ptr<ProgramModule> module;  // scheduled; what as_text() shows. Interpreted kernels refer to it.
  std::shared_ptr<const Executable> executable;
  EntryLayout entry;  // the program's arguments and result, tuples and all
  ModuleCost cost;
  Explanation explanation;
  std::vector<Timing> timings;
  std::string plan_text;                             // filled if `explain`
  std::shared_ptr<const class Snapshots> snapshots;  // not null: each execution is to be written (driver/xla_dump.h)
};

// Takes the module over. Errors: InvalidArgument (the program), Unimplemented (op, types, reason), Internal (stage and
// pass).
Result<std::shared_ptr<const CompiledProgram>> Compile(std::unique_ptr<Module> module, const Backend& backend,
                                                       const CompileSettings& options = {});

// What the options of the process say: dumps, libraries, the tier where they leave it to `tier`. InvalidArgument if
// they name none.
Result<CompileSettings> SettingsFrom(const Options& options, Tier tier = Tier::kOptimizing);

// All backends, in order of preference; never empty. The list is in registry.cc.
const std::vector<const Backend*>& Backends();
// By name, for this machine or for that of the name `machine` (Backend::ForMachine); NotFound with the nearest known
// one.
Result<const Backend*> FindBackend(std::string_view name, std::string_view machine = {});

}  // namespace strop
