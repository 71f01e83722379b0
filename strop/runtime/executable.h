// Executable: a compiled program as flat arrays: programs of steps, a table of slots (where each value lives),
// constants.
//
// The plan and a backend fill in an ExecutableSpec; Executable::Create checks it and flattens it. Run() then resolves
// every step argument to an address once and walks the steps in order:
//
//   slots     0: parameter 0        1: temp [0, 4096)      2: output 0
//   entry     kernel "fusion.1" (read 0, write 1), 8 tasks;  kernel "reduce.2" (read 1, write 2), 1 task
//
// One arena (temp block) serves a run; all programs (loop bodies, branches, callees) share the slots, so loop carries
// are updated in place and a trip costs only its steps. A run allocates the arena and nothing else; small executables
// run without touching a lock or another thread.
//
// This is the lowest interface: raw addresses in and out, synchronous. launch.h puts buffers, donation and events on
// top.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "strop/base/status.h"
#include "strop/runtime/buffer.h"
#include "strop/runtime/collectives.h"
#include "strop/runtime/custom_call.h"
#include "strop/runtime/device.h"
#include "strop/runtime/early_results.h"
#include "strop/runtime/launch_habit.h"
#include "strop/runtime/object_code.h"
#include "strop/types/shape.h"

namespace strop {

// ---- where values live ----------------------------------------------------------------------------------------------

enum class SlotKind : uint8_t { kParameter, kConstant, kTemp, kOutput, kView };

// `size` bytes at `offset` of a parameter, a constant, an output, or the arena (kTemp; index 0). kView: they lie in
// slot `index`, which is no view; where, a ViewStep says; until then, at its beginning.
struct Slot {
  SlotKind kind = SlotKind::kTemp;
  int32_t index = 0;
  int64_t offset = 0;  // temp offsets are multiples of kBufferAlignment if kernels want aligned memory
  int64_t size = 0;
};

enum class Access : uint8_t { kRead, kWrite, kReadWrite };

struct StepArg {
  int32_t slot = 0;
  Access access = Access::kRead;
};

// ---- steps ----------------------------------------------------------------------------------------------------------

struct RunArgs;
struct StepInfo;

// The native ABI of compiled kernels: runs tasks [task_begin, task_end) on args[i], the addresses of the step's
// arguments in order. `scratch` is `scratch_bytes` of 64-byte aligned memory of this thread's own (null if 0).
using KernelFn = void (*)(void* const* args, int64_t task_begin, int64_t task_end, void* scratch);

// A kernel of Strop's own library (GEMM, sort, ...), bound to one problem: C++ code with the contract of KernelFn.
// In each round, memory that its tasks share is filled by `prepare_tasks` before these run.
struct TaskCall {
  void* const* args;
  int64_t round = 0;
  void* shared = nullptr;  // 64-byte aligned, as the next
  void* kept = nullptr;    // of a region's call: what Keep filled
};
class TaskKernel {
 public:
  virtual ~TaskKernel() = default;
  // Before the first of the calls of a region that has begun: from arguments that are the same in all of them.
  virtual void Keep(const TaskCall&) const {}
  virtual void Prepare(const TaskCall&, int64_t /*task_begin*/, int64_t /*task_end*/) const {}
  virtual void Run(const TaskCall& call, int64_t task_begin, int64_t task_end, void* scratch) const = 0;
};

// Machine code: compiled for the program (`fn`) or from the library (`library`, if fn is null). Tasks may run in any
// order on any thread; results must not depend on how they are grouped.
struct KernelStep {
  KernelFn fn = nullptr;
  int64_t num_tasks = 1;  // > 1: spread over the thread pool
  int64_t scratch_bytes = 0;
  std::shared_ptr<const TaskKernel> library = nullptr;
  int64_t rounds = 1, prepare_tasks = 0, shared_bytes = 0;  // of a library kernel
  // Of a region's call, if there is anything to keep: where that lies in what the region's calls keep, behind a line of
  // the cache of its own, which says whether it is there.
  int64_t kept_bytes = 0, kept_at = 0;
  static constexpr int64_t kKeptHead = 64;
};

// What a region is told and tells besides its arguments.
struct RegionContext {
  const std::atomic<bool>* cancelled = nullptr;  // not null: looked at once a trip
  int64_t trips = 0;                             // of all its loops
  const KernelStep* calls = nullptr;             // library kernels that it calls, by number
  void* scratch = nullptr;                       // for those
  void* shared = nullptr;
  char* kept = nullptr;
  int32_t task = 0;
  void* locals = nullptr;  // memory of the task's own, 64-byte aligned
};
// The function by whose name such code calls them: (context, number of the call, its arguments).
inline constexpr const char* kRegionCallSymbol = "strop_region_call";
// Machine code for loops and branches of small steps as a whole, or one of the tasks of such a region, on this thread;
// false: it saw that it was cancelled.
using RegionFn = bool (*)(void* const* args, RegionContext* context);
struct RegionStep {
  RegionFn fn = nullptr;
  std::vector<KernelStep> calls = {};
  int64_t num_tasks = 1;    // > 1: spread over the thread pool, in any order
  int64_t local_bytes = 0;  // of each
};

// args[1] = args[0], same size. A copy onto itself is free and not counted.
struct CopyStep {};

// C++ code of Strop: interpreter fallback, library kernels.
struct HostCall {
  std::span<void* const> args;
  const RunArgs& run;
  const StepInfo& info;
};
struct HostStep {
  std::function<Status(const HostCall&)> fn;  // thread-safe: runs of one executable may overlap
  bool interpreted = false;                   // counted and reported: not compiled code
  bool may_block = false;                     // may wait for the host (a callback): other launches go on meanwhile
};

// while (args[0]) body; args[0] is one byte (pred) that `condition` writes, and is left out where the number of trips
// is known. Carries live in slots that the body updates.
//
// Then come the rings: of each the number of slots, all of a size, no two of which are the same. When a trip ends each
// slot of a ring takes the memory of the next one, and the last one that of the first; when the loop ends all have
// theirs of before, with what the slots held last, except for the last slot of each ring, which then holds nothing.
struct WhileStep {
  int32_t condition = 0;    // program; ignored if trip_count >= 0
  int32_t body = 0;         // program
  int64_t trip_count = -1;  // known number of trips
  std::vector<int32_t> rings = {};
  static constexpr int32_t kMostInRing = 16;
  size_t first_of_rings() const { return trip_count < 0 ? 1 : 0; }
};

// Runs one branch: by pred (branch 0 when args[0] is true, else 1), or by s32 index (out of range: the last).
struct ConditionalStep {
  std::vector<int32_t> branches;  // programs
  bool by_index = false;
};

struct CallStep {
  int32_t program = 0;
};

// args: operands, then results (as many as call's site has).
struct CustomCallStep {
  std::shared_ptr<CustomCall> call;
  int32_t num_operands = 0;
  std::shared_ptr<const CustomCallSite> site = nullptr;  // what `call` was bound for; null: it cannot be written down
};

// args[0] (u64[2], low word first) = the executable's 128-bit random state, which then advances by `delta`.
struct RngStateStep {
  uint64_t delta = 0;
};

// args[0] (u32) = replica or partition number.
struct DeviceIdStep {
  bool partition = false;
};

// One queue entry per argument.
struct InfeedStep {};
struct OutfeedStep {};

// args: what the view lies in, a start of type `type` for each dim, the view. It lies at `offset` and, for each dim, as
// many strides behind as its start says, which is clamped to [0, limit]. All in bytes. Nothing is copied.
struct ViewStep {
  struct Dim {
    ElementType type = ElementType::S32;
    int64_t limit = 0, stride = 0;
  };
  int64_t offset = 0;
  std::vector<Dim> dims;
};

enum class CollectiveKind : uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kPermute, kBroadcast };

// args: n operands, then n results. Sizes as in collectives.h: an operand is [outer][...][block] around the dimension
// that is gathered, scattered or exchanged; an all-reduce has outer = 1 and block = all elements of its operand.
struct CollectiveStep {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  ReductionKind reduction = ReductionKind::kSum;
  int64_t op = 0;                            // number of the operation: its channel, or any number unique in the module
  std::vector<std::vector<int32_t>> groups;  // logical ids (replica * num_partitions + partition); empty: all in one
  std::vector<std::pair<int32_t, int32_t>> source_target;  // kPermute, logical ids
  struct Operand {
    ElementType type = ElementType::F32;
    int64_t outer = 1;
    int64_t block = 0;  // elements
  };
  std::vector<Operand> operands;
};

using StepBody =
    std::variant<KernelStep, CopyStep, HostStep, WhileStep, ConditionalStep, CallStep, CustomCallStep, RngStateStep,
                 DeviceIdStep, InfeedStep, OutfeedStep, CollectiveStep, RegionStep, ViewStep>;
enum class StepKind : uint8_t {  // order of StepBody
  kKernel,
  kCopy,
  kHost,
  kWhile,
  kConditional,
  kCall,
  kCustomCall,
  kRngState,
  kDeviceId,
  kInfeed,
  kOutfeed,
  kCollective,
  kRegion,
  kView,
};
inline constexpr int kNumStepKinds = 14;
std::string_view Name(StepKind kind);  // "kernel", "copy", ...

// What a step is to the user: for errors, profiles, explain.
struct StepInfo {
  std::string name;     // "fusion.3"
  std::string op;       // "fusion"
  std::string op_name;  // metadata: "jit(f)/add"
  std::string source;   // "model.py:12"
  int64_t flops = 0;
  int64_t bytes = 0;  // memory traffic
};

// Where in the arena scratch memory may lie: in a gap between what is alive while the step runs, or behind all that.
struct ScratchRoom {
  int64_t behind = -1;  // -1: not known, behind all temporaries
  int64_t gap_at = 0, gap_bytes = 0;
};

struct Step {
  StepBody body;
  std::vector<StepArg> args;
  StepInfo info;
  // What the backend makes `body` from, of kernels, regions and host steps; empty: it cannot be written down.
  std::string recipe = {};
  ScratchRoom scratch = {};  // of kernels and regions

  StepKind kind() const { return static_cast<StepKind>(body.index()); }
};

struct Program {
  std::string name;
  std::vector<Step> steps;
};

// ---- the whole ------------------------------------------------------------------------------------------------------

struct ConstantData {
  const void* data = nullptr;  // kBufferAlignment-aligned if kernels want it so
  int64_t size = 0;
  std::shared_ptr<const void> owner;  // keeps data alive
};

// How much of a dynamic dimension is meant: an s32 scalar in a slot.
struct DynamicDim {
  int64_t dim = 0;
  int32_t slot = 0;
};

struct ParameterSpec {
  Shape shape;
  MemoryKind memory = MemoryKind::kDevice;
  std::vector<DynamicDim> dynamic_dims;  // temporaries, written when a run begins
  bool given_away = false;               // a launch takes the caller's buffer, whether or not an output has its memory
};

// Where an output's memory comes from.
enum class OutputSource : uint8_t {
  kFresh,             // allocated at launch
  kAliasParameter,    // parameter `index`'s memory if it is donated, else fresh memory with a copy of the parameter.
                      // Steps see parameter and output slot at the same address either way.
  kForwardParameter,  // is parameter `index`; no step writes it, launches share the storage
  kForwardConstant,   // is constant `index`; likewise
  kForwardOutput,     // is output `index` (which is not forwarded itself); likewise
};

struct OutputSpec {
  Shape shape;
  MemoryKind memory = MemoryKind::kDevice;
  OutputSource source = OutputSource::kFresh;
  int32_t index = -1;
  bool must_alias = false;               // kAliasParameter: refuse to run if the parameter is not donated
  std::string origin;                    // of a large output, for errors: "dot (model.py:12)"
  std::vector<DynamicDim> dynamic_dims;  // read when a run has ended
};

struct ExecutableSpec {
  std::string name;
  std::vector<ParameterSpec> parameters;  // leaves: tuples are flattened
  std::vector<OutputSpec> outputs;
  std::vector<ConstantData> constants;
  std::vector<Slot> slots;
  std::vector<Program> programs;
  int32_t entry = 0;
  int64_t temp_bytes = 0;   // size of the arena
  std::string temp_origin;  // of a large arena, for errors: "64 GiB f32[131072,131072] of sort (model.py:12), ..."
  bool run_inline = false;  // cheap enough for the caller's thread
  int64_t code_bytes = 0;
  std::shared_ptr<const void> code;  // keeps the machine code alive
  // Where that code comes from, for those who write the program down: what recipes name by number.
  std::vector<std::shared_ptr<const ObjectCode>> objects;
  uint64_t rng_seed[2] = {0x7012395, 0};  // first state of RngStateStep, low word first (XLA's)
};

// Counters of one run, for tests and explain.
struct RunStats {
  int64_t steps = 0;         // executed
  int64_t trips = 0;         // of loops
  int64_t bytes_copied = 0;  // CopySteps, and parameters copied because an alias was not donated
  int64_t interpreted = 0;   // HostSteps marked so
};

// Told about every step; for profilers. Calls come from the thread that runs the executable.
class StepObserver {
 public:
  virtual ~StepObserver() = default;
  virtual void OnBegin(const Step& step) = 0;
  virtual void OnEnd(const Step& step) = 0;
};

// Told of results that are there before the run has ended, group by group. Calls come from the thread that runs the
// executable, which goes on only when they have returned.
class EarlyResultsObserver {
 public:
  virtual ~EarlyResultsObserver() = default;
  virtual void OnReady(size_t group) = 0;  // of Executable::early_results()
};

struct RunArgs {
  std::span<void* const> inputs;  // one address per parameter
  std::span<void* const>
      outputs;                 // one per output; equal to the input's for a donated alias; null allowed if forwarded
  Device* device = nullptr;    // arena, infeed; required
  ThreadPool* pool = nullptr;  // null: everything on this thread
  Collectives* collectives = nullptr;
  const DeviceAssignment* assignment = nullptr;  // null: one replica, one partition
  int32_t replica = 0;
  int32_t partition = 0;
  int64_t run_id = 0;
  void* ffi_context = nullptr;                   // for typed FFI handlers
  const std::atomic<bool>* cancelled = nullptr;  // looked at between steps and trips
  RunStats* stats = nullptr;
  StepObserver* observer = nullptr;
  EarlyResultsObserver* early = nullptr;
  std::span<const Int64Vector> input_dims;          // actual sizes of dynamic inputs; empty: they are at their bounds
  std::vector<Int64Vector>* output_dims = nullptr;  // actual sizes of dynamic outputs, if wanted
};

class Executable {
 public:
  // InvalidArgument naming the step if the spec is inconsistent: indices out of range, slots outside their base,
  // recursive programs, missing functions. A spec that passed can be run without further checks.
  static Result<std::shared_ptr<const Executable>> Create(ExecutableSpec spec);
  ~Executable();

  const ExecutableSpec& spec() const { return spec_; }
  const std::string& name() const { return spec_.name; }
  int64_t num_parameters() const { return static_cast<int64_t>(spec_.parameters.size()); }
  int64_t num_outputs() const { return static_cast<int64_t>(spec_.outputs.size()); }

  // Steps of a kind over all programs (each counted once, not per trip).
  int64_t num_steps(StepKind kind) const { return step_counts_[static_cast<int>(kind)]; }
  int64_t num_interpreted() const { return num_interpreted_; }
  // Has steps that wait for other devices or the host (collectives, infeed, outfeed): never runs on the caller's thread
  // unless told to.
  bool may_block() const { return may_block_; }
  const EarlyResults& early_results() const { return early_results_; }
  bool has_dynamic_outputs() const { return has_dynamic_outputs_; }
  // Where its executions run best, as seen so far.
  LaunchHabit& launch_habit() const { return launch_habit_; }
  // Bytes of the arena with `threads` participants, what kernels pack into and share included.
  int64_t arena_bytes(int threads) const;

  // The error of a failed step names the step and carries the user's line.
  Status Run(const RunArgs& args) const;

  // What runs, for people: slots and steps, one a line.
  std::string ToString() const;

 private:
  friend class Runner;
  // What the run loop reads of a step, close together: without the strings and the variant.
  struct FlatStep {
    const Step* step = nullptr;
    KernelFn fn = nullptr;
    const TaskKernel* library = nullptr;
    int64_t num_tasks = 0;
    int32_t first_arg = 0, num_args = 0;  // in arg_slots_
    StepKind kind = StepKind::kKernel;
    bool prepares = false;  // a library kernel in rounds
    bool for_all = false;   // a copy that is better shared out, if it is large
    // Of kernels and regions, in the arena: what participants share, then what each of them has. Multiples of a line.
    int64_t shared_bytes = 0, scratch_bytes = 0, participants = 1;  // of those, at most
    // Where in a participant's memory the kernels have theirs that a region's tasks call; in front of it is the task's.
    int64_t calls_share_at = 0, calls_scratch_at = 0;
    int64_t calls_keep_at = 0;  // behind what they share
    ScratchRoom room;
    int64_t ScratchBytes(int threads) const;
    int64_t ScratchAt(int threads) const { return ScratchBytes(threads) <= room.gap_bytes ? room.gap_at : room.behind; }
  };
  struct FlatProgram {
    int32_t first = 0, count = 0;  // in flat_
  };
  struct RngState;

  explicit Executable(ExecutableSpec spec);
  void Flatten();
  void ShareCopies(const FlatProgram& program);
  void PlaceScratch(FlatStep& flat) const;

  ExecutableSpec spec_;
  std::vector<FlatStep> flat_;
  std::vector<FlatProgram> programs_;
  std::vector<int32_t> arg_slots_;  // slot of every argument of every step, in step order
  // By slot that is a view or in a ring of a loop: the arguments that are this slot. Empty if there are none.
  std::vector<std::vector<int32_t>> moving_args_;
  std::unique_ptr<RngState> rng_;
  int64_t step_counts_[kNumStepKinds] = {};
  int64_t num_interpreted_ = 0;
  std::vector<int32_t> packing_;  // in flat_: the steps with scratch memory
  bool may_block_ = false;
  bool has_dynamic_outputs_ = false;
  EarlyResults early_results_;
  mutable LaunchHabit launch_habit_;
};

}  // namespace strop
