#include "strop/runtime/validate.h"

#include <algorithm>
#include <set>

namespace strop {
namespace {

// Deeper nesting of loops, branches and calls than this would only come from a broken generator.
constexpr int kMaxProgramDepth = 1000;

template <class... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <class... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;

int64_t ByteSize(const Shape& shape) { return shape.IsArray() ? shape.byte_size() : 0; }

class Validator {
 public:
  explicit Validator(const ExecutableSpec& spec) : spec_(spec) {}

  Status Run() {
    STROP_TRY(CheckInterface());
    for (size_t i = 0; i < spec_.slots.size(); ++i) STROP_TRY(CheckSlot(i));
    for (const Program& program : spec_.programs) {
      for (const Step& step : program.steps) {
        Status status = CheckStep(step);
        if (!status.ok()) return std::move(status).Note(StrCat("step ", step.info.name, " of program ", program.name));
      }
    }
    STROP_TRY(CheckOutputs());
    return CheckNesting();
  }

 private:
  Status CheckInterface() const {
    if (!InRange(spec_.entry, spec_.programs.size()))
      return InvalidArgument("entry program ", spec_.entry, " does not exist");
    if (spec_.temp_bytes < 0) return InvalidArgument("temp_bytes is negative");
    for (const ParameterSpec& parameter : spec_.parameters) STROP_TRY(CheckLeaf(parameter.shape));
    for (const OutputSpec& output : spec_.outputs) STROP_TRY(CheckLeaf(output.shape));
    for (const ConstantData& constant : spec_.constants) {
      if (constant.size < 0 || (!constant.data && constant.size > 0)) return InvalidArgument("constant without data");
    }
    return OkStatus();
  }

  static Status CheckLeaf(const Shape& shape) {
    if (shape.IsTuple()) return InvalidArgument("parameters and outputs must be leaves, not ", shape.ToString());
    return shape.IsArray() ? shape.Validate() : OkStatus();
  }

  static bool InRange(int64_t index, size_t size) { return index >= 0 && index < static_cast<int64_t>(size); }

  // Bytes of what a slot is a part of.
  Result<int64_t> BaseSize(const Slot& slot) const {
    switch (slot.kind) {
      case SlotKind::kParameter:
        if (InRange(slot.index, spec_.parameters.size())) return ByteSize(spec_.parameters[slot.index].shape);
        break;
      case SlotKind::kConstant:
        if (InRange(slot.index, spec_.constants.size())) return spec_.constants[slot.index].size;
        break;
      case SlotKind::kOutput:
        if (!InRange(slot.index, spec_.outputs.size())) break;
        switch (spec_.outputs[slot.index].source) {
          case OutputSource::kFresh:
          case OutputSource::kAliasParameter: return ByteSize(spec_.outputs[slot.index].shape);
          default: return InvalidArgument("output ", slot.index, " is forwarded and has no memory of its own");
        }
      case SlotKind::kTemp: return spec_.temp_bytes;
      case SlotKind::kView:
        if (!InRange(slot.index, spec_.slots.size())) break;
        if (spec_.slots[slot.index].kind == SlotKind::kView) return InvalidArgument("a view of a view");
        return spec_.slots[slot.index].size;
    }
    return InvalidArgument("index ", slot.index, " is out of range");
  }

  Status CheckSlot(size_t i) const {
    const Slot& slot = spec_.slots[i];
    Result<int64_t> base = BaseSize(slot);
    if (!base.ok()) return std::move(base).status().Note(StrCat("slot ", i));
    if (slot.offset < 0 || slot.size < 0 || slot.offset > *base || slot.size > *base - slot.offset) {
      return InvalidArgument("slot ", i, ": bytes [", slot.offset, ", +", slot.size, ") lie outside of its ", *base,
                             " bytes");
    }
    return OkStatus();
  }

  bool IsSize(const DynamicDim& d, const Shape& shape) const {
    return shape.IsArray() && InRange(d.dim, shape.rank()) && InRange(d.slot, spec_.slots.size()) &&
           spec_.slots[d.slot].size >= static_cast<int64_t>(sizeof(int32_t));
  }

  Status CheckOutputs() const {
    std::vector<bool> aliased(spec_.parameters.size());
    for (size_t i = 0; i < spec_.outputs.size(); ++i) {
      const OutputSpec& output = spec_.outputs[i];
      int64_t bytes = ByteSize(output.shape);
      int64_t source_bytes = bytes;
      bool found = true;
      switch (output.source) {
        case OutputSource::kFresh: break;
        case OutputSource::kAliasParameter:
        case OutputSource::kForwardParameter:
          found = InRange(output.index, spec_.parameters.size());
          if (found) source_bytes = ByteSize(spec_.parameters[output.index].shape);
          if (found && output.source == OutputSource::kAliasParameter) {
            if (aliased[output.index]) return InvalidArgument("two outputs alias parameter ", output.index);
            aliased[output.index] = true;
          }
          break;
        case OutputSource::kForwardConstant:
          found = InRange(output.index, spec_.constants.size());
          if (found) source_bytes = spec_.constants[output.index].size;
          break;
        case OutputSource::kForwardOutput:
          found = InRange(output.index, spec_.outputs.size()) &&
                  (spec_.outputs[output.index].source == OutputSource::kFresh ||
                   spec_.outputs[output.index].source == OutputSource::kAliasParameter);
          if (found) source_bytes = ByteSize(spec_.outputs[output.index].shape);
          break;
      }
      if (!found) return InvalidArgument("output ", i, ": source ", output.index, " does not exist");
      if (source_bytes != bytes) {
        return InvalidArgument("output ", i, " has ", bytes, " bytes, its source ", source_bytes);
      }
      for (const DynamicDim& d : output.dynamic_dims)
        if (!IsSize(d, output.shape)) return InvalidArgument("output ", i, ": bad dynamic dimension ", d.dim);
    }
    for (size_t i = 0; i < spec_.parameters.size(); ++i) {
      for (const DynamicDim& d : spec_.parameters[i].dynamic_dims)
        if (!IsSize(d, spec_.parameters[i].shape) || spec_.slots[d.slot].kind != SlotKind::kTemp)
          return InvalidArgument("parameter ", i, ": bad dynamic dimension ", d.dim);
    }
    // A forwarded parameter is shared with the caller: it must stay as it came.
    for (const OutputSpec& output : spec_.outputs) {
      if (output.source == OutputSource::kForwardParameter && aliased[output.index]) {
        return InvalidArgument("parameter ", output.index, " is both aliased and forwarded");
      }
    }
    return OkStatus();
  }

  int64_t ArgSize(const Step& step, size_t i) const { return spec_.slots[step.args[i].slot].size; }

  Status CheckStep(const Step& step) const {
    const auto& [behind, gap_at, gap_bytes] = step.scratch;
    if (behind < -1 || behind > spec_.temp_bytes || gap_at < 0 || gap_bytes < 0 || gap_at > spec_.temp_bytes ||
        gap_bytes > spec_.temp_bytes - gap_at)
      return InvalidArgument("scratch memory outside of the arena of ", spec_.temp_bytes, " bytes");
    for (const StepArg& arg : step.args) {
      if (!InRange(arg.slot, spec_.slots.size())) return InvalidArgument("slot ", arg.slot, " does not exist");
      const Slot& slot = spec_.slots[arg.slot];
      if (arg.access == Access::kRead) continue;
      if (slot.kind == SlotKind::kConstant) return InvalidArgument("writes constant ", slot.index);
      if (slot.kind == SlotKind::kView && step.kind() != StepKind::kView)
        return InvalidArgument("writes a view of slot ", slot.index);
      if (slot.kind == SlotKind::kParameter && !IsAliased(slot.index)) {
        return InvalidArgument("writes parameter ", slot.index, ", which no output aliases");
      }
    }
    for (int32_t program : ProgramsOf(step)) {
      if (!InRange(program, spec_.programs.size())) return InvalidArgument("program ", program, " does not exist");
    }
    return std::visit(
        Overloaded{
            [&](const KernelStep& s) { return CheckKernel(s); },
            [&](const CopyStep&) {
              if (step.args.size() != 2) return InvalidArgument("a copy takes 2 arguments");
              if (ArgSize(step, 0) != ArgSize(step, 1)) {
                return InvalidArgument("copies ", ArgSize(step, 0), " bytes to ", ArgSize(step, 1));
              }
              return OkStatus();
            },
            [&](const HostStep& s) { return s.fn ? OkStatus() : InvalidArgument("host step without function"); },
            [&](const WhileStep& s) { return CheckWhile(step, s); },
            [&](const ConditionalStep& s) {
              if (s.branches.empty()) return InvalidArgument("conditional without branches");
              if (!s.by_index && s.branches.size() != 2) return InvalidArgument("a pred chooses between 2 branches");
              return CheckArg0(step, s.by_index ? 4 : 1);
            },
            [&](const CallStep&) { return OkStatus(); },
            [&](const CustomCallStep& s) {
              if (!s.call) return InvalidArgument("custom call without code");
              if (s.num_operands < 0 || s.num_operands > static_cast<int64_t>(step.args.size())) {
                return InvalidArgument("bad number of operands");
              }
              return OkStatus();
            },
            [&](const RngStateStep&) { return CheckArg0(step, 16); },
            [&](const DeviceIdStep&) { return CheckArg0(step, 4); },
            [&](const InfeedStep&) { return OkStatus(); },
            [&](const OutfeedStep&) { return OkStatus(); },
            [&](const CollectiveStep& s) { return CheckCollective(step, s); },
            [&](const ViewStep& s) { return CheckView(step, s); },
            [&](const RegionStep& s) {
              for (const KernelStep& call : s.calls) {
                STROP_TRY(CheckKernel(call));
                if (call.kept_bytes < 0 || call.kept_bytes > int64_t{1} << 40 ||
                    (call.kept_bytes > 0 && (call.kept_at < KernelStep::kKeptHead || call.kept_at > int64_t{1} << 40)))
                  return InvalidArgument("bad size or place of what a call keeps");
              }
              if (s.num_tasks < 1 || s.num_tasks > 1 << 20 || s.local_bytes < 0 || s.local_bytes > int64_t{1} << 40)
                return InvalidArgument("bad task count or size of a task's memory");
              return s.fn ? OkStatus() : InvalidArgument("region without code");
            },
        },
        step.body);
  }

  static Status CheckKernel(const KernelStep& s) {
    if (!s.fn && !s.library) return InvalidArgument("kernel without code");
    if (s.num_tasks < 0 || s.scratch_bytes < 0 || s.scratch_bytes > int64_t{1} << 40)
      return InvalidArgument("bad task count or scratch size");
    if (s.rounds < 1 || s.prepare_tasks < 0 || s.shared_bytes < 0 || s.shared_bytes > int64_t{1} << 40)
      return InvalidArgument("bad rounds, or size of what they share");
    if (!s.library && (s.rounds != 1 || s.prepare_tasks != 0))
      return InvalidArgument("only library kernels have rounds");
    return OkStatus();
  }

  Status CheckWhile(const Step& step, const WhileStep& loop) const {
    if (loop.trip_count < 0) STROP_TRY(CheckArg0(step, 1));
    size_t next = loop.first_of_rings();
    std::set<int32_t> seen;
    for (int32_t ring : loop.rings) {
      if (ring < 2 || ring > WhileStep::kMostInRing || step.args.size() - next < static_cast<size_t>(ring))
        return InvalidArgument("a ring of ", ring, " slots");
      for (size_t k = next; k < next + static_cast<size_t>(ring); ++k) {
        const Slot& slot = spec_.slots[step.args[k].slot];
        if (slot.kind != SlotKind::kTemp && slot.kind != SlotKind::kOutput)
          return InvalidArgument("slot ", step.args[k].slot, " cannot be in a ring");
        if (slot.size != ArgSize(step, next)) return InvalidArgument("slots of a ring differ in size");
        if (!seen.insert(step.args[k].slot).second)
          return InvalidArgument("slot ", step.args[k].slot, " is twice in rings");
      }
      next += static_cast<size_t>(ring);
    }
    return next == step.args.size() ? OkStatus() : InvalidArgument("a loop has ", step.args.size(), " arguments");
  }

  Status CheckArg0(const Step& step, int64_t bytes) const {
    if (step.args.empty() || ArgSize(step, 0) < bytes) {
      return InvalidArgument("the first argument must have ", bytes, " bytes");
    }
    return OkStatus();
  }

  Status CheckView(const Step& step, const ViewStep& s) const {
    if (step.args.size() != s.dims.size() + 2) return InvalidArgument("expected a start for each of its dimensions");
    const Slot& view = spec_.slots[step.args.back().slot];
    if (view.kind != SlotKind::kView || view.index != step.args[0].slot)
      return InvalidArgument("slot ", step.args.back().slot, " is no view of slot ", step.args[0].slot);
    int64_t end = SaturatingAdd(s.offset, view.size);
    bool ordered = s.offset >= 0;
    for (size_t d = 0; d < s.dims.size(); ++d) {
      const ViewStep::Dim& dim = s.dims[d];
      ordered &= dim.limit >= 0 && dim.stride >= 0;
      end = SaturatingAdd(end, SaturatingMultiply(dim.limit, dim.stride));
      if (!IsInteger(dim.type) || Bits(dim.type) < 8 || ArgSize(step, d + 1) < Bytes(dim.type))
        return InvalidArgument("bad start ", d);
    }
    if (!ordered || end > ArgSize(step, 0)) return InvalidArgument("the view lies outside of its slot");
    return OkStatus();
  }

  bool IsAliased(int32_t parameter) const {
    return std::any_of(spec_.outputs.begin(), spec_.outputs.end(), [&](const OutputSpec& output) {
      return output.source == OutputSource::kAliasParameter && output.index == parameter;
    });
  }

  // Bytes of operand and result for a group of `size`; the smallest group is the strictest that can be checked here.
  Status CheckCollective(const Step& step, const CollectiveStep& s) const {
    size_t n = s.operands.size();
    if (step.args.size() != 2 * n) return InvalidArgument("expected ", n, " operands and as many results");
    for (size_t i = 0; i < n; ++i) {
      const CollectiveStep::Operand& operand = s.operands[i];
      if (operand.outer < 0 || operand.block < 0 || Bytes(operand.type) == 0) return InvalidArgument("bad operand ", i);
      int64_t bytes = SaturatingMultiply(SaturatingMultiply(operand.outer, operand.block), Bytes(operand.type));
      if (ArgSize(step, i) < bytes || ArgSize(step, n + i) < bytes) {
        return InvalidArgument("operand ", i, ": ", bytes, " bytes do not fit its slots");
      }
      for (const std::vector<int32_t>& group : s.groups) {
        int64_t all = SaturatingMultiply(bytes, static_cast<int64_t>(group.size()));
        bool exchanges = s.kind == CollectiveKind::kAllToAll;
        if ((exchanges || s.kind == CollectiveKind::kReduceScatter) && ArgSize(step, i) < all) {
          return InvalidArgument("operand ", i, " is too small for a group of ", group.size());
        }
        if ((exchanges || s.kind == CollectiveKind::kAllGather) && ArgSize(step, n + i) < all) {
          return InvalidArgument("result ", i, " is too small for a group of ", group.size());
        }
      }
      if (s.kind != CollectiveKind::kAllReduce && Overlap(step.args[i].slot, step.args[n + i].slot)) {
        return InvalidArgument("operand and result ", i, " share memory");
      }
    }
    return OkStatus();
  }

  const Slot& BaseOf(int32_t slot) const {
    const Slot& s = spec_.slots[slot];
    return s.kind == SlotKind::kView ? spec_.slots[s.index] : s;
  }

  bool Overlap(int32_t a, int32_t b) const {
    const Slot &x = BaseOf(a), &y = BaseOf(b);
    if (x.kind != y.kind || (x.kind != SlotKind::kTemp && x.index != y.index)) return false;
    return x.offset < y.offset + y.size && y.offset < x.offset + x.size;
  }

  // No program may reach itself, and nesting is limited, because running nests on the stack.
  Status CheckNesting() const {
    enum class Mark : uint8_t { kNew, kOpen, kDone };
    size_t n = spec_.programs.size();
    std::vector<std::vector<int32_t>> callees(n);
    for (size_t p = 0; p < n; ++p) {
      for (const Step& step : spec_.programs[p].steps) {
        std::vector<int32_t> programs = ProgramsOf(step);
        callees[p].insert(callees[p].end(), programs.begin(), programs.end());
      }
    }
    std::vector<Mark> marks(n, Mark::kNew);
    std::vector<int> depth(n, 1);
    std::vector<std::pair<int32_t, size_t>> stack;  // program, next callee
    for (size_t root = 0; root < n; ++root) {
      if (marks[root] == Mark::kNew) stack.emplace_back(root, 0);
      while (!stack.empty()) {
        auto& [p, next] = stack.back();
        marks[p] = Mark::kOpen;
        if (next == callees[p].size()) {
          marks[p] = Mark::kDone;
          if (depth[p] > kMaxProgramDepth) return InvalidArgument("programs nest deeper than ", kMaxProgramDepth);
          int below = depth[p];
          stack.pop_back();
          if (!stack.empty()) depth[stack.back().first] = std::max(depth[stack.back().first], below + 1);
          continue;
        }
        int32_t callee = callees[p][next++];
        if (marks[callee] == Mark::kOpen)
          return InvalidArgument("program ", spec_.programs[callee].name, " calls itself");
        if (marks[callee] == Mark::kNew)
          stack.emplace_back(callee, 0);
        else
          depth[p] = std::max(depth[p], depth[callee] + 1);
      }
    }
    return OkStatus();
  }

  const ExecutableSpec& spec_;
};

}  // namespace

std::vector<int32_t> ProgramsOf(const Step& step) {
  if (const WhileStep* s = std::get_if<WhileStep>(&step.body)) {
    if (s->trip_count >= 0) return {s->body};
    return {s->condition, s->body};
  }
  if (const ConditionalStep* s = std::get_if<ConditionalStep>(&step.body)) return s->branches;
  if (const CallStep* s = std::get_if<CallStep>(&step.body)) return {s->program};
  return {};
}

Status ValidateSpec(const ExecutableSpec& spec) { return Validator(spec).Run(); }

}  // namespace strop
