// Executable::Run: resolves every argument once, then walks the steps. The loop for kernels is the hot path: no lock,
// no allocation, no virtual call.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>

#include "strop/base/claims.h"
#include "strop/base/lookout.h"
#include "strop/runtime/cancelled_scope.h"
#include "strop/runtime/executable.h"
#include "strop/runtime/launch_queue.h"
#include "strop/runtime/rng_state.h"
#include "strop/runtime/run_collective.h"

namespace strop {
namespace {

constexpr int64_t kCopyTaskBytes = 1 << 17;    // copies are shared out in pieces of this size
constexpr int64_t kLeastSharedCopy = 7 << 16;  // bytes; less is there before other threads have come
// Of what one thread goes on with.
constexpr int64_t kLeastForOneThread = 1 << 22;

void CopyBytes(void* to, const void* from, int64_t bytes, int64_t least_shared, ThreadPool* pool) {
  if (!pool || bytes < least_shared) {
    std::memcpy(to, from, bytes);
    return;
  }
  pool->ParallelFor((bytes + kCopyTaskBytes - 1) / kCopyTaskBytes, [&](int64_t task) {
    int64_t begin = task * kCopyTaskBytes;
    std::memcpy(static_cast<char*>(to) + begin, static_cast<const char*>(from) + begin,
                std::min(kCopyTaskBytes, bytes - begin));
  });
}

// A round of a library's kernel, for any number of threads.
class Round {
 public:
  Round(const TaskKernel& kernel, const TaskCall& call, int64_t prepare_tasks, int64_t tasks, int threads)
      : kernel_(kernel),
        call_(call),
        prepare_tasks_(prepare_tasks),
        prepare_(prepare_tasks, threads),
        run_(tasks, threads) {}

  // Returns when no task is left that nobody runs.
  void Work(int thread, void* scratch) {
    prepare_.Work(thread, [&](int64_t begin, int64_t end) {
      kernel_.Prepare(call_, begin, end);
      prepared_.fetch_add(end - begin, std::memory_order_release);
    });
    // What is not done is being done on other threads: nobody waits in between.
    while (!LookOut([&] { return prepared_.load(std::memory_order_acquire) == prepare_tasks_; })) continue;
    run_.Work(thread, [&](int64_t begin, int64_t end) { kernel_.Run(call_, begin, end, scratch); });
  }

 private:
  const TaskKernel& kernel_;
  const TaskCall& call_;
  const int64_t prepare_tasks_;
  Claims prepare_, run_;
  std::atomic<int64_t> prepared_{0};
};

// The arena of one run.
class Arena {
 public:
  explicit Arena(Allocator& allocator) : allocator_(allocator) {}
  ~Arena() { allocator_.Free(block_); }
  Status Allocate(int64_t bytes) {
    STROP_ASSIGN(block_, allocator_.Allocate(bytes));
    return OkStatus();
  }
  char* data() const { return static_cast<char*>(block_.data); }

 private:
  Allocator& allocator_;
  Block block_;
};

}  // namespace

class Runner {
 public:
  Runner(const Executable& executable, const RunArgs& args)
      : e_(executable),
        a_(args),
        threads_(args.pool ? args.pool->num_threads() : 1),
        arena_(args.device->allocator()) {}

  Status Run() {
    const ExecutableSpec& spec = e_.spec_;
    int64_t arena_bytes = e_.arena_bytes(threads_);
    int64_t table_bytes = static_cast<int64_t>(e_.arg_slots_.size() * sizeof(void*));
    void* small_table[kSmallTable];
    bool small = e_.arg_slots_.size() <= kSmallTable;
    if (int64_t bytes = SaturatingAdd(arena_bytes, small ? 0 : table_bytes)) {
      Status status = arena_.Allocate(bytes);
      if (!status.ok()) {
        const std::string& origin = spec.temp_origin;
        return std::move(status).Note(
            StrCat("for the temporary values of ", e_.name(), origin.empty() ? "" : ", the largest ", origin));
      }
    }
    table_ = small ? small_table : reinterpret_cast<void**>(arena_.data() + arena_bytes);
    STROP_TRY(Resolve());
    WriteDynamicDims();
    STROP_TRY(RunEntry());
    if (a_.output_dims) ReadDynamicDims();
    return OkStatus();
  }

 private:
  static constexpr size_t kSmallTable = 128;

  void* Address(const Slot& slot) const {
    char* base = nullptr;
    switch (slot.kind) {
      case SlotKind::kParameter: {
        int32_t output = alias_of_parameter_.empty() ? -1 : alias_of_parameter_[slot.index];
        base = static_cast<char*>(output >= 0 ? a_.outputs[output] : a_.inputs[slot.index]);
        break;
      }
      case SlotKind::kConstant:
        base = static_cast<char*>(const_cast<void*>(e_.spec_.constants[slot.index].data));
        break;
      case SlotKind::kTemp: base = arena_.data(); break;
      case SlotKind::kOutput: base = static_cast<char*>(a_.outputs[slot.index]); break;
      case SlotKind::kView: return Address(e_.spec_.slots[slot.index]);
    }
    return base ? base + slot.offset : nullptr;
  }

  // Fills in the argument table; brings aliased parameters and forwarded outputs into place.
  Status Resolve() {
    const ExecutableSpec& spec = e_.spec_;
    if (a_.inputs.size() != spec.parameters.size() || a_.outputs.size() != spec.outputs.size()) {
      return InvalidArgument(e_.name(), " takes ", spec.parameters.size(), " inputs and ", spec.outputs.size(),
                             " outputs, got ", a_.inputs.size(), " and ", a_.outputs.size());
    }
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      const OutputSpec& output = spec.outputs[i];
      if (output.source != OutputSource::kAliasParameter) continue;
      if (a_.outputs[i] == a_.inputs[output.index]) continue;  // donated: the memory is the same already
      if (alias_of_parameter_.empty()) alias_of_parameter_.assign(spec.parameters.size(), -1);
      alias_of_parameter_[output.index] = static_cast<int32_t>(i);
      Copy(a_.outputs[i], a_.inputs[output.index], output.shape.IsArray() ? output.shape.byte_size() : 0);
    }
    for (size_t i = 0; i < e_.arg_slots_.size(); ++i) table_[i] = Address(spec.slots[e_.arg_slots_[i]]);
    return OkStatus();
  }

  // `for_all`: see FlatStep.
  void Copy(void* to, const void* from, int64_t bytes, bool for_all = false) {
    if (to == from || bytes == 0) return;
    CopyBytes(to, from, bytes, for_all ? kLeastSharedCopy : kLeastForOneThread, a_.pool);
    if (a_.stats) a_.stats->bytes_copied += bytes;
  }

  void WriteDynamicDims() {
    const ExecutableSpec& spec = e_.spec_;
    for (size_t i = 0; i < spec.parameters.size(); ++i) {
      for (const DynamicDim& d : spec.parameters[i].dynamic_dims) {
        const Int64Vector& dims = a_.input_dims.empty() ? spec.parameters[i].shape.dims() : a_.input_dims[i];
        const auto size = static_cast<int32_t>(dims[d.dim]);
        std::memcpy(Address(spec.slots[d.slot]), &size, sizeof size);
      }
    }
  }

  void ReadDynamicDims() {
    const ExecutableSpec& spec = e_.spec_;
    a_.output_dims->resize(spec.outputs.size());
    for (size_t i = 0; i < spec.outputs.size(); ++i) {
      Int64Vector& dims = (*a_.output_dims)[i] = spec.outputs[i].shape.dims();
      for (const DynamicDim& d : spec.outputs[i].dynamic_dims) {
        int32_t size;
        std::memcpy(&size, Address(spec.slots[d.slot]), sizeof size);
        dims[d.dim] = std::clamp<int64_t>(size, 0, dims[d.dim]);
      }
    }
  }

  Status CancelledError() const { return MakeError(StatusCode::kCancelled, e_.name(), " was cancelled"); }
  bool Cancelled() const { return a_.cancelled && a_.cancelled->load(std::memory_order_relaxed); }

  Status RunEntry() {
    const CancelledScope cancelled(a_.cancelled);
    if (!a_.early || e_.early_results_.groups.empty()) return RunProgram(e_.spec_.entry);
    const Executable::FlatProgram range = e_.programs_[e_.spec_.entry];
    const Executable::FlatStep* const first = e_.flat_.data() + range.first;
    const Executable::FlatStep* begin = first;
    for (size_t n = 0; n < e_.early_results_.groups.size(); ++n) {
      const Executable::FlatStep* end = first + e_.early_results_.groups[n].steps;
      STROP_TRY(RunSteps(begin, end));
      a_.early->OnReady(n);
      begin = end;
    }
    return RunSteps(begin, first + range.count);
  }

  Status RunProgram(int32_t program) {
    const Executable::FlatProgram range = e_.programs_[program];
    const Executable::FlatStep* begin = e_.flat_.data() + range.first;
    return RunSteps(begin, begin + range.count);
  }

  Status RunSteps(const Executable::FlatStep* step, const Executable::FlatStep* end) {
    for (; step != end; ++step) {
      if (Cancelled()) [[unlikely]]
        return CancelledError();
      if (a_.observer) [[unlikely]]
        a_.observer->OnBegin(*step->step);
      if (a_.stats) ++a_.stats->steps;
      if (step->kind == StepKind::kKernel) {
        RunKernel(*step);
      } else {
        Status status = RunOther(*step);
        if (!status.ok()) [[unlikely]]
          return Explain(std::move(status), *step->step);
      }
      if (a_.observer) [[unlikely]]
        a_.observer->OnEnd(*step->step);
    }
    return Cancelled() ? CancelledError() : OkStatus();  // what a kernel wrote that saw it is nothing
  }

  static Status Explain(Status status, const Step& step) {
    // The innermost step is the one to tell; loops and calls around it would only repeat it.
    if (step.kind() == StepKind::kWhile || step.kind() == StepKind::kConditional || step.kind() == StepKind::kCall)
      return status;
    std::string note = StrCat("while running ", step.info.name);
    if (!step.info.op_name.empty()) StrAppend(note, " (", step.info.op_name, ")");
    if (!step.info.source.empty()) status = std::move(status).At(step.info.source);
    return std::move(status).Note(std::move(note));
  }

  void RunKernel(const Executable::FlatStep& step) {
    void* const* args = table_ + step.first_arg;
    if (step.prepares) return RunRounds(step, std::get<KernelStep>(step.step->body), args);
    if (step.num_tasks == 1 || !a_.pool) {
      RunTasks(step, args, 0, step.num_tasks, ScratchOf(step, 0));
      return;
    }
    a_.pool->ParallelForRuns(step.num_tasks, [&](int64_t begin, int64_t end, int participant) {
      const CancelledScope cancelled(a_.cancelled);
      RunTasks(step, args, begin, end, ScratchOf(step, participant));
    });
  }

  // A participant's; null if the step wants none.
  char* ScratchOf(const Executable::FlatStep& step, int participant) const {
    return step.scratch_bytes > 0 ? SharedBy(step) + step.shared_bytes + participant * step.scratch_bytes : nullptr;
  }

  char* SharedBy(const Executable::FlatStep& step) const { return arena_.data() + step.ScratchAt(threads_); }

  static void RunTasks(const Executable::FlatStep& step, void* const* args, int64_t begin, int64_t end, void* scratch) {
    if (step.fn)
      step.fn(args, begin, end, scratch);
    else
      step.library->Run({args}, begin, end, scratch);
  }

  void RunRounds(const Executable::FlatStep& step, const KernelStep& kernel, void* const* args) {
    for (TaskCall call{args, 0, SharedBy(step)}; call.round < kernel.rounds; ++call.round) {
      if (!a_.pool) {
        kernel.library->Prepare(call, 0, kernel.prepare_tasks);
        kernel.library->Run(call, 0, kernel.num_tasks, ScratchOf(step, 0));
        continue;
      }
      // One job for both, so that workers wake up once: each takes tasks that prepare, then others.
      Round round(*kernel.library, call, kernel.prepare_tasks, kernel.num_tasks, a_.pool->num_threads());
      const int64_t threads =
          std::min<int64_t>(a_.pool->num_threads(), std::max(kernel.prepare_tasks, kernel.num_tasks));
      a_.pool->ParallelForRuns(
          threads, [&](int64_t, int64_t, int participant) { round.Work(participant, ScratchOf(step, participant)); });
    }
  }

  Status RunOther(const Executable::FlatStep& flat) {
    const Step& step = *flat.step;
    std::span<void* const> args(table_ + flat.first_arg, flat.num_args);
    switch (flat.kind) {
      case StepKind::kKernel: return Internal("kernels are run above");
      case StepKind::kCopy: Copy(args[1], args[0], SlotSize(flat, 0), flat.for_all); return OkStatus();
      case StepKind::kHost: return RunHost(std::get<HostStep>(step.body), step.info, args);
      case StepKind::kWhile: return RunWhile(flat, std::get<WhileStep>(step.body), args);
      case StepKind::kConditional: return RunConditional(std::get<ConditionalStep>(step.body), args);
      case StepKind::kCall: return RunProgram(std::get<CallStep>(step.body).program);
      case StepKind::kCustomCall: {
        const CustomCallStep& s = std::get<CustomCallStep>(step.body);
        LaunchQueue::BlockingScope blocking;  // it may call back into the host and wait for it
        return s.call->Run({args.first(s.num_operands), args.subspan(s.num_operands), a_});
      }
      case StepKind::kRngState:
        e_.rng_->Next(std::get<RngStateStep>(step.body).delta, static_cast<uint64_t*>(args[0]));
        return OkStatus();
      case StepKind::kDeviceId:
        *static_cast<uint32_t*>(args[0]) = std::get<DeviceIdStep>(step.body).partition ? a_.partition : a_.replica;
        return OkStatus();
      case StepKind::kInfeed: return RunInfeed(flat, args);
      case StepKind::kOutfeed: return RunOutfeed(flat, args);
      case StepKind::kRegion: return RunRegion(flat, std::get<RegionStep>(step.body), args);
      case StepKind::kView: PlaceView(std::get<ViewStep>(step.body), step.args.back().slot, args); return OkStatus();
      case StepKind::kCollective: return RunCollective(std::get<CollectiveStep>(step.body), a_, args);
    }
    return Internal("unknown step kind");
  }

  int64_t SlotSize(const Executable::FlatStep& flat, int32_t arg) const {
    return e_.spec_.slots[e_.arg_slots_[flat.first_arg + arg]].size;
  }

  // From here on the arguments that are this view have its address.
  void PlaceView(const ViewStep& view, int32_t slot, std::span<void* const> args) {
    int64_t offset = view.offset;
    for (size_t d = 0; d < view.dims.size(); ++d) {
      const ViewStep::Dim& dim = view.dims[d];
      offset += dim.stride * std::clamp<int64_t>(ReadIndex(dim.type, args[d + 1]), 0, dim.limit);
    }
    Move(slot, static_cast<char*>(args[0]) + offset);
  }

  void Move(int32_t slot, void* address) {
    for (int32_t arg : e_.moving_args_[slot]) table_[arg] = address;
  }

  // An integer; what is larger than any size stays so.
  static int64_t ReadIndex(ElementType type, const void* from) {
    uint64_t bits = 0;
    std::memcpy(&bits, from, Bytes(type));  // little-endian
    const int unused = 64 - 8 * static_cast<int>(Bytes(type));
    if (IsSigned(type)) return static_cast<int64_t>(bits << unused) >> unused;
    return static_cast<int64_t>(std::min<uint64_t>(bits, INT64_MAX));
  }

  Status RunHost(const HostStep& step, const StepInfo& info, std::span<void* const> args) {
    if (step.interpreted && a_.stats) ++a_.stats->interpreted;
    HostCall call{args, a_, info};
    if (!step.may_block) return step.fn(call);
    LaunchQueue::BlockingScope blocking;
    return step.fn(call);
  }

  Status RunWhile(const Executable::FlatStep& flat, const WhileStep& step, std::span<void* const> args) {
    int64_t trip = 0;
    for (; trip != step.trip_count; ++trip) {
      if (step.trip_count < 0) {
        STROP_TRY(RunProgram(step.condition));
        if (!*static_cast<const uint8_t*>(args[0])) break;
      }
      if (Cancelled()) [[unlikely]]
        return CancelledError();
      STROP_TRY(RunProgram(step.body));
      ForEachRing(step, [&](size_t first, int32_t ring) { TurnRing(flat, first, ring, 1); });
      if (a_.stats) ++a_.stats->trips;
    }
    // Slots of rings get their memory of before, and what they hold comes there, too.
    ForEachRing(step, [&](size_t first, int32_t ring) {
      const int64_t turned = trip % ring;
      if (turned == 0) return;
      TurnRing(flat, first, ring, ring - turned);
      BringBack(table_ + flat.first_arg + first, ring, turned, SlotSize(flat, static_cast<int32_t>(first)));
    });
    return OkStatus();
  }

  // fn(first, size) for each ring of the loop, which is that many arguments from the first on.
  template <class Fn>
  static void ForEachRing(const WhileStep& step, const Fn& fn) {
    size_t first = step.first_of_rings();
    for (int32_t ring : step.rings) {
      fn(first, ring);
      first += static_cast<size_t>(ring);
    }
  }

  // Each of the slots that are arguments [first, first + ring) takes the memory of the one `by` behind it.
  void TurnRing(const Executable::FlatStep& flat, size_t first, int32_t ring, int64_t by) {
    void* at[WhileStep::kMostInRing];
    std::copy_n(table_ + flat.first_arg + first, ring, at);
    for (int64_t k = 0; k < ring; ++k) Move(e_.arg_slots_[flat.first_arg + first + k], at[(k + by) % ring]);
  }

  // What belongs to home[k] is found `turned` places behind it; nothing belongs to the last one.
  void BringBack(void* const* home, int64_t ring, int64_t turned, int64_t bytes) {
    const int64_t spare = ring - 1;
    const auto behind = [&](int64_t k) { return (k + turned) % ring; };
    for (int64_t k = behind(spare); k != spare; k = behind(k)) Copy(home[k], home[behind(k)], bytes);
    // Where the steps of `turned` do not meet all places, the others' goes by way of the spare one.
    for (int64_t begin = 0; begin < std::gcd(ring, turned) - 1; ++begin) {
      int64_t k = begin;
      Copy(home[spare], home[k], bytes);
      for (; behind(k) != begin; k = behind(k)) Copy(home[k], home[behind(k)], bytes);
      Copy(home[k], home[spare], bytes);
    }
  }

  Status RunRegion(const Executable::FlatStep& flat, const RegionStep& step, std::span<void* const> args) {
    static constexpr std::atomic<bool> kNever{false};
    RegionContext context{.cancelled = a_.cancelled ? a_.cancelled : &kNever, .calls = step.calls.data()};
    bool ended = true;
    if (step.num_tasks > 1) {
      ended = RunRegionTasks(flat, step, args.data(), context);
    } else {
      context.scratch = ScratchOf(flat, 0);
      context.shared = SharedBy(flat);
      context.kept = SharedBy(flat) + flat.calls_keep_at;
      ForgetKept(step, context.kept);
      ended = step.fn(args.data(), &context);
    }
    if (a_.stats) a_.stats->trips += context.trips;
    return ended ? OkStatus() : CancelledError();
  }

  // Nothing is there yet of what calls keep.
  static void ForgetKept(const RegionStep& step, char* kept) {
    for (const KernelStep& call : step.calls)
      if (call.kept_bytes > 0) kept[call.kept_at - KernelStep::kKeptHead] = 0;
  }

  // `all` gets the trips of all tasks.
  bool RunRegionTasks(const Executable::FlatStep& flat, const RegionStep& step, void* const* args, RegionContext& all) {
    std::atomic<bool> ended{true};
    std::atomic<int64_t> trips{0};
    const auto run = [&](int64_t begin, int64_t end, int participant) {
      const CancelledScope cancelled(a_.cancelled);
      RegionContext context = all;
      char* own = ScratchOf(flat, participant);
      context.locals = own;
      context.shared = own + flat.calls_share_at;
      context.scratch = own + flat.calls_scratch_at;
      context.kept = own + flat.calls_share_at + flat.calls_keep_at;
      ForgetKept(step, context.kept);
      for (int64_t task = begin; task < end; ++task) {
        context.task = static_cast<int32_t>(task);
        if (!step.fn(args, &context)) ended.store(false, std::memory_order_relaxed);
        trips.fetch_add(context.trips, std::memory_order_relaxed);
      }
    };
    if (a_.pool)
      a_.pool->ParallelForRuns(step.num_tasks, run);
    else
      run(0, step.num_tasks, 0);
    all.trips = trips.load(std::memory_order_relaxed);
    return ended.load(std::memory_order_relaxed);
  }

  Status RunConditional(const ConditionalStep& step, std::span<void* const> args) {
    int64_t last = static_cast<int64_t>(step.branches.size()) - 1;
    int64_t branch;
    if (step.by_index) {
      int32_t index;
      std::memcpy(&index, args[0], sizeof index);
      branch = index < 0 || index > last ? last : index;
    } else {
      branch = *static_cast<const uint8_t*>(args[0]) ? 0 : 1;
    }
    return RunProgram(step.branches[branch]);
  }

  Status RunInfeed(const Executable::FlatStep& flat, std::span<void* const> args) {
    LaunchQueue::BlockingScope blocking;
    for (int32_t i = 0; i < flat.num_args; ++i) {
      std::span<uint8_t> out(static_cast<uint8_t*>(args[i]), SlotSize(flat, i));
      STROP_TRY(a_.device->infeed().Pop(out, a_.cancelled));
    }
    return OkStatus();
  }

  Status RunOutfeed(const Executable::FlatStep& flat, std::span<void* const> args) {
    LaunchQueue::BlockingScope blocking;
    for (int32_t i = 0; i < flat.num_args; ++i) {
      const uint8_t* bytes = static_cast<const uint8_t*>(args[i]);
      STROP_TRY(a_.device->outfeed().Push({bytes, bytes + SlotSize(flat, i)}));
    }
    return OkStatus();
  }

  const Executable& e_;
  const RunArgs& a_;
  const int threads_;
  Arena arena_;
  void** table_ = nullptr;
  std::vector<int32_t> alias_of_parameter_;  // output that stands for a parameter; empty if none does (the usual case)
};

Status Executable::Run(const RunArgs& args) const { return Runner(*this, args).Run(); }

}  // namespace strop
