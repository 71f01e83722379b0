// Backend: what a target implements, and all that it implements. `strop/null/` is the smallest complete one: copy it.
//
// The driver calls, in this order: AddPasses (optimise for this target), target() (the plan's decisions), Supports (per
// instruction, through target().supports), Compile (all kernels of a plan at once).
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"
#include "strop/ir/module.h"
#include "strop/plan/region.h"
#include "strop/plan/target_info.h"
#include "strop/runtime/device.h"
#include "strop/runtime/executable.h"
#include "strop/runtime/step_maker.h"

namespace strop {

class PassPipeline;

// One kernel of a plan: an instruction that is not fused, or an Op::Fusion.
//
// By the time it gets here: every array is dense and row-major (layouts, if any, are row-major), operands are arrays
// (never tuples), the result is an array or a flat tuple of arrays. In memory pred is a byte 0/1, elements of less than
// a byte take one (sign-extended if signed), complex is (re, im). The step's arguments are the operands in order, then
// the results in order. Buffers of distinct arguments do not overlap, with two exceptions that the plan arranges:
//   in_place[r] = k >= 0: result r has the very address of operand k, and holds its value at entry. Always so for the
//   operand of dynamic-update-slice and scatter (alone or as root of a fusion): the kernel writes the updated elements
//   only. The same for an elementwise kernel that may overwrite an operand element by element.
struct KernelSpec {
  const Instruction* instruction = nullptr;
  std::vector<int> in_place;  // one per result; -1: memory of its own
  // Not null: a region (see plan/region.h), which becomes a RegionStep; `instruction` is its loop. Only targets that
  // let kernels join regions see any.
  std::shared_ptr<const Region> region = nullptr;
  // Not 0: a part of a band (plan/band.h); each task computes so many elements of the result, in order, and its buffers
  // are such that they are there for the task that runs alone.
  int64_t task_elements = 0;
  // Of such a part: its result goes past the caches, and its operands come from memory in its turn.
  bool streams = false, fetches = false;
  bool unaligned = false;  // a result's address is aligned to its elements only
  std::string name() const { return instruction->name(); }
};

// What became of it: the body of the step (KernelStep: machine code; HostStep: C++ code, `interpreted` if it is the
// evaluator), and the work it does.
struct CompiledKernel {
  StepBody body;
  int64_t flops = 0;
  int64_t bytes = 0;
  // What `body` was made from, for StepMaker; empty: it cannot be written down.
  std::string recipe = {};
  // For reports: the way in which it is computed ("gemm", "loop"), and how it was cut ("blocks of 96x512, k by 256").
  std::string family = {}, tiles = {};
  // What stands in the way of compiling it, where that came out while it was compiled.
  std::string why_interpreted = {};
};

// What the machine can do at best, for estimates of what a kernel should take. Empty: not known.
struct MachinePeaks {
  struct Bandwidth {
    int64_t footprint = 0;  // bytes that are touched again and again
    double bytes_per_second = 0;
  };
  double flops_per_second = 0;
  std::vector<Bandwidth> bandwidths;  // the smallest footprint first
  std::string how;                    // "measured: ...", for people
};

struct CompiledKernels {
  std::vector<CompiledKernel> kernels;  // in the order of the specs
  std::shared_ptr<const void> code;     // keeps machine code alive
  int64_t code_bytes = 0;
  std::vector<std::shared_ptr<const ObjectCode>> objects = {};  // that code, as recipes number it
};

// How soon there is code, and how fast it is (docs/adr/0026). Results are the same bits.
enum class Tier : uint8_t {
  kOptimizing,  // fast code at once
  kBaseline,    // only what is quick to compile
  kAuto,        // that first; fast code is made beside the program, and takes its place while it runs
};

struct KernelCompileOptions {
  int optimization_level = 2;  // 0: as fast as possible to compile
  Tier tier = Tier::kOptimizing;
  std::string dump_dir;        // not empty: write .ll, .s, ... of each kernel there
  ThreadPool* pool = nullptr;  // compile on these threads; null: this one alone
};

enum class Phase : uint8_t {
  kSimplify,    // after the common simplifications, on Stage::Optimized
  kBeforePlan,  // last changes before layouts and fusion
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;  // "cpu"; also its --backend= name
  virtual const TargetInfo& target() const = 0;
  // As a kernel, unfused. No says why not; the instruction is then interpreted, counted and named.
  virtual Decision Supports(const Instruction& instruction) const = 0;
  virtual void AddPasses(Phase phase, PassPipeline& pipeline) const = 0;
  virtual Result<CompiledKernels> Compile(std::span<const KernelSpec> specs,
                                          const KernelCompileOptions& options) const = 0;
  // The devices of this process; `count` 0: as many as there are, or as options say.
  // Those on the host compute on `pool`, which outlives them, and share memory of such options.
  virtual Result<std::unique_ptr<DeviceSet>> OpenDevices(int count, ThreadPool& pool,
                                                         Allocator::Options memory = {}) const = 0;
  virtual std::vector<std::string> MemorySpaces() const = 0;  // "device", "pinned_host", ...
  virtual std::string Describe() const = 0;                   // for `strop devices`
  // This backend for another machine than the one that it runs on, by the name that compilers give it: programs are
  // compiled for it, and written down. NotFound: there is none of that name.
  virtual Result<std::unique_ptr<Backend>> ForMachine(std::string_view name) const;
  // Machine code is for machines of the same text: the instruction set with all that code generation asks about it.
  virtual std::string CodeKey() const { return std::string(name()); }
  // May code of this key run here? No says what is missing.
  virtual Decision RunsCode(std::string_view key) const;
  // Makes steps of a program that was written down, from the recipes and objects of Compile().
  virtual Result<std::unique_ptr<StepMaker>> OpenCode(std::span<const std::string_view> objects) const;
  // Measured when asked, in some ten milliseconds.
  virtual MachinePeaks MeasurePeaks() const { return {}; }
};

// A kernel that the evaluator runs: the fallback of any backend, and all of `null`. Its recipe names the instruction.
CompiledKernel InterpretKernel(const KernelSpec& spec, std::string why = {});
// The step of such a recipe. InvalidArgument if the module has no such instruction.
Result<StepBody> InterpretRecipe(std::string_view recipe, const Module& module);

}  // namespace strop
