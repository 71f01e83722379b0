#include "strop/runtime/executable.h"

#include <algorithm>
#include <unordered_map>

#include "strop/runtime/rng_state.h"
#include "strop/runtime/validate.h"

namespace strop {

std::string_view Name(StepKind kind) {
  static constexpr std::string_view kNames[kNumStepKinds] = {
      "kernel",    "copy",      "host",   "while",   "conditional", "call",   "custom-call",
      "rng-state", "device-id", "infeed", "outfeed", "collective",  "region", "view"};
  return kNames[static_cast<int>(kind)];
}

namespace {

// Numbers the collectives in the order in which they stand. Devices that run programs of their own meet by these
// numbers, as long as the same exchanges come in the same order.
void NumberCollectives(ExecutableSpec& spec) {
  int64_t next = 0;
  for (Program& program : spec.programs)
    for (Step& step : program.steps)
      if (CollectiveStep* collective = std::get_if<CollectiveStep>(&step.body)) collective->op = next++;
}

int64_t Aligned(int64_t bytes) {
  return SaturatingAdd(bytes, kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// Those whose address changes while a run goes on.
std::vector<bool> MovingSlots(const ExecutableSpec& spec) {
  std::vector<bool> moves(spec.slots.size());
  for (size_t n = 0; n < moves.size(); ++n) moves[n] = spec.slots[n].kind == SlotKind::kView;
  for (const Program& program : spec.programs) {
    for (const Step& step : program.steps) {
      const WhileStep* loop = std::get_if<WhileStep>(&step.body);
      for (size_t k = loop ? loop->first_of_rings() : step.args.size(); k < step.args.size(); ++k)
        moves[step.args[k].slot] = true;
    }
  }
  return moves;
}

}  // namespace

Executable::Executable(ExecutableSpec spec) : spec_(std::move(spec)) { NumberCollectives(spec_); }
Executable::~Executable() = default;

Result<std::shared_ptr<const Executable>> Executable::Create(ExecutableSpec spec) {
  Status valid = ValidateSpec(spec);
  if (!valid.ok()) return std::move(valid).Note(StrCat("executable ", spec.name));
  std::shared_ptr<Executable> executable(new Executable(std::move(spec)));
  executable->Flatten();
  for (const OutputSpec& output : executable->spec_.outputs)
    executable->has_dynamic_outputs_ |= !output.dynamic_dims.empty();
  executable->early_results_ = FindEarlyResults(executable->spec_);
  return std::shared_ptr<const Executable>(std::move(executable));
}

void Executable::Flatten() {
  rng_ = std::make_unique<RngState>(spec_.rng_seed[0], spec_.rng_seed[1]);
  const std::vector<bool> moves = MovingSlots(spec_);
  for (const Program& program : spec_.programs) {
    programs_.push_back({static_cast<int32_t>(flat_.size()), static_cast<int32_t>(program.steps.size())});
    for (const Step& step : program.steps) {
      FlatStep flat{.step = &step,
                    .first_arg = static_cast<int32_t>(arg_slots_.size()),
                    .num_args = static_cast<int32_t>(step.args.size()),
                    .kind = step.kind()};
      if (const KernelStep* kernel = std::get_if<KernelStep>(&step.body)) {
        flat.fn = kernel->fn;
        flat.library = kernel->library.get();
        flat.num_tasks = kernel->num_tasks;
        flat.prepares = kernel->prepare_tasks > 0 || kernel->rounds != 1;
        flat.shared_bytes = Aligned(kernel->shared_bytes);
        flat.scratch_bytes = Aligned(kernel->scratch_bytes);
        flat.participants = std::max<int64_t>({1, kernel->num_tasks, kernel->prepare_tasks});
      }
      if (const RegionStep* region = std::get_if<RegionStep>(&step.body)) {
        int64_t kept_bytes = 0;
        for (const KernelStep& call : region->calls) {
          flat.shared_bytes = std::max(flat.shared_bytes, Aligned(call.shared_bytes));
          flat.scratch_bytes = std::max(flat.scratch_bytes, Aligned(call.scratch_bytes));
          if (call.kept_bytes > 0) kept_bytes = std::max(kept_bytes, call.kept_at + Aligned(call.kept_bytes));
        }
        flat.calls_keep_at = flat.shared_bytes;
        flat.shared_bytes += kept_bytes;
        flat.num_tasks = region->num_tasks;
        flat.participants = region->num_tasks;
        if (region->num_tasks > 1) {  // kernels that a task calls are its own
          flat.calls_share_at = Aligned(region->local_bytes);
          flat.calls_scratch_at = flat.calls_share_at + flat.shared_bytes;
          flat.scratch_bytes += flat.calls_scratch_at;
          flat.shared_bytes = 0;
        }
      }
      if (flat.shared_bytes + flat.scratch_bytes > 0) {
        PlaceScratch(flat);
        packing_.push_back(static_cast<int32_t>(flat_.size()));
      }
      if (const HostStep* host = std::get_if<HostStep>(&step.body)) num_interpreted_ += host->interpreted;
      may_block_ |=
          flat.kind == StepKind::kCollective || flat.kind == StepKind::kInfeed || flat.kind == StepKind::kOutfeed;
      ++step_counts_[static_cast<int>(flat.kind)];
      flat_.push_back(flat);
      for (const StepArg& arg : step.args) {
        if (moves[arg.slot]) {
          moving_args_.resize(spec_.slots.size());
          moving_args_[arg.slot].push_back(static_cast<int32_t>(arg_slots_.size()));
        }
        arg_slots_.push_back(arg.slot);
      }
    }
    ShareCopies(programs_.back());
  }
}

// A loop of one task that comes next would find parts of the copy in other processors' caches. Kernels have several
// tasks, or write a part of it only.
void Executable::ShareCopies(const FlatProgram& program) {
  std::unordered_map<int32_t, const FlatStep*> next_use;  // by slot
  for (int32_t n = program.count; n-- > 0;) {
    FlatStep& flat = flat_[program.first + n];
    if (flat.kind == StepKind::kCopy) {
      const auto next = next_use.find(flat.step->args[1].slot);
      flat.for_all = next == next_use.end() || next->second->kind == StepKind::kKernel || next->second->num_tasks > 1;
    }
    for (const StepArg& arg : flat.step->args) next_use[arg.slot] = &flat;
  }
}

void Executable::PlaceScratch(FlatStep& flat) const {
  flat.room = flat.step->scratch;
  if (flat.room.behind < 0) flat.room.behind = spec_.temp_bytes;
  flat.room.behind = Aligned(flat.room.behind);
  const int64_t unaligned = Aligned(flat.room.gap_at) - flat.room.gap_at;
  flat.room.gap_at += unaligned;
  flat.room.gap_bytes -= unaligned;
}

int64_t Executable::FlatStep::ScratchBytes(int threads) const {
  const int64_t with_own = std::clamp<int64_t>(threads, 1, participants);
  return SaturatingAdd(shared_bytes, SaturatingMultiply(scratch_bytes, with_own));
}

int64_t Executable::arena_bytes(int threads) const {
  int64_t bytes = Aligned(spec_.temp_bytes);
  for (int32_t n : packing_)
    bytes = std::max(bytes, SaturatingAdd(flat_[n].ScratchAt(threads), flat_[n].ScratchBytes(threads)));
  return bytes;
}

std::string Executable::ToString() const {
  static constexpr std::string_view kSlotKinds[] = {"parameter", "constant", "temp", "output", "view of slot"};
  static constexpr std::string_view kAccess[] = {"", "=", "+="};  // written, updated
  std::string out =
      StrCat("executable ", spec_.name, ": ", spec_.parameters.size(), " parameters, ", spec_.outputs.size(),
             " outputs, ", spec_.temp_bytes, " temp bytes", spec_.run_inline ? ", inline" : "", "\n");
  for (size_t i = 0; i < spec_.slots.size(); ++i) {
    const Slot& slot = spec_.slots[i];
    StrAppend(out, "slot ", i, ": ", kSlotKinds[static_cast<int>(slot.kind)]);
    if (slot.kind != SlotKind::kTemp) StrAppend(out, " ", slot.index);
    StrAppend(out, " [", slot.offset, ", ", slot.offset + slot.size, ")\n");
  }
  for (size_t p = 0; p < spec_.programs.size(); ++p) {
    const Program& program = spec_.programs[p];
    StrAppend(out, static_cast<int64_t>(p) == spec_.entry ? "entry " : "program ", p, " ", program.name, ":\n");
    for (const Step& step : program.steps) {
      StrAppend(out, "  ", Name(step.kind()), " ", step.info.name, "(");
      for (size_t i = 0; i < step.args.size(); ++i) {
        StrAppend(out, i ? ", " : "", kAccess[static_cast<int>(step.args[i].access)], step.args[i].slot);
      }
      StrAppend(out, ")");
      if (const KernelStep* kernel = std::get_if<KernelStep>(&step.body)) StrAppend(out, " tasks=", kernel->num_tasks);
      if (const HostStep* host = std::get_if<HostStep>(&step.body); host && host->interpreted)
        StrAppend(out, " interpreted");
      std::vector<int32_t> programs = ProgramsOf(step);
      if (!programs.empty()) StrAppend(out, " programs=", Join(programs, ","));
      if (const WhileStep* loop = std::get_if<WhileStep>(&step.body); loop && !loop->rings.empty())
        StrAppend(out, " rings=", Join(loop->rings, ","));
      if (!step.info.op_name.empty()) StrAppend(out, " op_name=\"", step.info.op_name, "\"");
      if (!step.info.source.empty()) StrAppend(out, " source=", step.info.source);
      StrAppend(out, "\n");
    }
  }
  return out;
}

}  // namespace strop
