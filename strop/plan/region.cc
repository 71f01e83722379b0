// Finding regions: from the outermost loop inwards, the first whose steps all may join becomes one.
//
// A step may join if the target can emit its code inside another function and it is too small to be spread over
// threads (a step that is not would lose them). A region's code is bounded, so that compile time stays linear.
//
// A loop over parts (passes/loop_splitter.cc) becomes a region of tasks, a trip each, whatever the size of its steps:
// what a trip writes must be its own, or a part of a result that is updated in place.
#include "strop/plan/region.h"

#include <algorithm>
#include <map>
#include <set>

#include "strop/analysis/trip_count.h"
#include "strop/plan/values.h"

namespace strop {

int64_t Region::num_kernels() const {
  int64_t n = 0;
  for (const std::vector<RegionNode>& program : programs)
    n += std::count_if(program.begin(), program.end(),
                       [](const RegionNode& node) { return node.kind == RegionNodeKind::kKernel; });
  return n;
}

std::string Region::ToString() const {
  std::string out;
  for (size_t k = 0; k < buffers.size(); ++k) {
    const RegionBuffer& b = buffers[k];
    StrAppend(out, k == 0 ? "  buffers" : ",", " b", k, " ", b.size, " B");
    if (b.local >= 0)
      StrAppend(out, " local at ", b.local);
    else if (b.arg < 0)
      StrAppend(out, " local");
    else
      StrAppend(out, " arg ", b.arg,
                b.loaded && b.stored ? " in out"
                : b.loaded           ? " in"
                : b.stored           ? " out"
                                     : "",
                b.in_parts ? " in parts" : "");
  }
  if (!out.empty()) out += '\n';
  if (tasks > 1) StrAppend(out, "  ", tasks, " tasks, whose number is in b", number, "\n");
  for (size_t p = 0; p < programs.size(); ++p) {
    for (const RegionNode& node : programs[p]) {
      StrAppend(out, "  ", p, ": ");
      const size_t results = node.kind == RegionNodeKind::kKernel ? node.in_place.size()
                             : node.kind == RegionNodeKind::kCopy ? 1
                                                                  : 0;
      const size_t operands = node.args.size() - results;
      for (size_t k = operands; k < node.args.size(); ++k) StrAppend(out, "b", node.args[k], " ");
      StrAppend(out, results ? "= " : "", node.kind == RegionNodeKind::kCopy ? "copy" : Name(node.instruction->op()),
                " %", node.instruction->name(), " <-");
      for (size_t k = 0; k < operands; ++k) StrAppend(out, " b", node.args[k]);
      if (node.kind == RegionNodeKind::kWhile)
        StrAppend(out, "  condition ", node.programs[0], " body ", node.programs[1]);
      for (const RegionNode::Counter& counter : node.counters)
        StrAppend(out, "  counts b", counter.buffer, " to ", counter.last);
      for (const std::vector<int32_t>& rotation : node.rotations) StrAppend(out, "  rotates b", Join(rotation, " b"));
      if (node.kind == RegionNodeKind::kConditional) StrAppend(out, "  branches ", Join(node.programs, ","));
      out += '\n';
    }
  }
  return out;
}

namespace plan_internal {
namespace {

constexpr int64_t kMaxCodeSize = 1000;           // of a region, in simple instructions
constexpr int64_t kFunctionCodeSize = 10;        // of exp and its like
constexpr int64_t kMaxCopyBytes = 256 << 10;     // larger copies are spread over threads
constexpr int64_t kMaxLocalBytes = 2 << 10;      // larger values stay in the arena
constexpr int64_t kMaxAllLocalBytes = 32 << 10;  // of the stack
constexpr int64_t kMaxTaskBytes = 64 << 20;      // of a task

int64_t CodeSize(const Instruction& i) {
  if (i.op() != Op::Fusion) return Is(i.op(), kFloatMath) ? kFunctionCodeSize : 1;
  int64_t size = 0;
  for (const Instruction* inner : i.called(0)->instructions()) size += CodeSize(*inner);
  return size;
}

class RegionFormer {
 public:
  RegionFormer(Graph& graph, const TargetInfo& target) : g_(graph), target_(target) {}

  void Run() {
    std::stable_sort(g_.steps.begin(), g_.steps.end(),
                     [](const ProtoStep& a, const ProtoStep& b) { return a.position < b.position; });
    steps_of_.resize(g_.programs.size());
    for (size_t s = 0; s < g_.steps.size(); ++s) steps_of_[g_.steps[s].program].push_back(s);
    gone_.resize(g_.steps.size());
    Search(0);
    size_t kept = 0;
    for (size_t s = 0; s < g_.steps.size(); ++s) {
      if (gone_[s]) continue;
      if (kept != s) g_.steps[kept] = std::move(g_.steps[s]);
      ++kept;
    }
    g_.steps.erase(g_.steps.begin() + static_cast<int64_t>(kept), g_.steps.end());
  }

 private:
  using Args = std::vector<std::pair<int32_t, Access>>;

  void Search(int32_t program) {
    for (size_t s : steps_of_[program]) {
      if (std::holds_alternative<WhileStep>(g_.steps[s].body)) {
        if (FormTasks(s)) continue;
        int64_t size = 0;
        if (Joins(g_.steps[s], size, target_.joins_region)) {
          Form(s);
          continue;
        }
      }
      for (int32_t called : Called(g_.steps[s])) Search(called);
    }
  }

  static std::vector<int32_t> Called(const ProtoStep& step) {
    if (const auto* w = std::get_if<WhileStep>(&step.body)) return {w->condition, w->body};
    if (const auto* c = std::get_if<ConditionalStep>(&step.body)) return c->branches;
    return {};
  }

  using MayJoin = std::function<Decision(const Instruction& kernel)>;

  bool Joins(const ProtoStep& step, int64_t& size, const MayJoin& may_join) const {
    if (step.is_kernel || step.is_custom_call) {
      const Instruction& i = *step.instruction;
      size += CodeSize(i);
      return size <= kMaxCodeSize && static_cast<bool>(may_join(i));
    }
    if (std::holds_alternative<CopyStep>(step.body)) {
      const Value& from = g_.values[step.args[0].first];
      return from.size <= kMaxCopyBytes || from.group == g_.values[step.args[1].first].group;
    }
    const std::vector<int32_t> called = Called(step);
    return !called.empty() && std::all_of(called.begin(), called.end(), [&](int32_t p) {
      return std::all_of(steps_of_[p].begin(), steps_of_[p].end(),
                         [&](size_t s) { return Joins(g_.steps[s], size, may_join); });
    });
  }

  void Form(size_t root) {
    Begin(root);
    Finish(root, Describe(root));
  }

  // False: the loop is not one over parts, or not all that a trip writes is its own.
  bool FormTasks(size_t root) {
    const int64_t tasks = IndependentTrips(*g_.steps[root].instruction);
    int64_t size = 0;
    if (tasks <= 1 || !Joins(g_.steps[root], size, target_.joins_task)) return false;
    const std::vector<bool> gone = gone_;
    Begin(root);
    region_->tasks = tasks;
    std::optional<Args> args = DescribeTasks(root);
    if (!args) {
      gone_ = gone;
      return false;
    }
    Finish(root, std::move(*args));
    return true;
  }

  void Begin(size_t root) {
    region_ = std::make_shared<Region>();
    buffers_.clear();
    values_of_buffers_.clear();
    region_->programs.emplace_back();
    AddNode(root, 0);
  }

  void Finish(size_t root, Args args) {
    ProtoStep& step = g_.steps[root];
    Rotate(step);
    gone_[root] = false;
    step.body = RegionStep{};
    step.args = std::move(args);
    step.num_operands = 0;
    step.region = std::move(region_);
  }

  // Do others lie in it?
  bool HasViews(size_t buffer) const {
    const int32_t group = g_.values[values_of_buffers_[buffer]].group;
    return std::ranges::any_of(g_.groups, [&](const Group& other) {
      return other.lies_in_another() && !other.values.empty() && g_.values[other.index].group == group;
    });
  }

  // A spare's memory may hold a carry throughout the region.
  void Rotate(const ProtoStep& step) {
    std::set<int32_t> viewed;  // groups that others lie in
    for (const Group& group : g_.groups)
      if (group.lies_in_another() && !group.values.empty()) viewed.insert(g_.values[group.index].group);
    RotateCarries(*region_, [&](int32_t buffer) {
      const Group& group = GroupOf(buffer);
      return !group.lies_in_another() && group.base != Base::Constant && !region_->buffers[buffer].in_parts &&
             !viewed.contains(g_.values[values_of_buffers_[buffer]].group);
    });
    for (const std::vector<RegionNode>& program : region_->programs) {
      for (const RegionNode& node : program) {
        for (const std::vector<int32_t>& rotation : node.rotations) {
          for (int32_t v : GroupOf(rotation.back()).values) {
            g_.values[v].begin = std::min(g_.values[v].begin, step.first_position);
            g_.values[v].end = std::max(g_.values[v].end, step.position);
          }
        }
      }
    }
  }

  void AddNode(size_t s, size_t into) {
    const ProtoStep& step = g_.steps[s];
    gone_[s] = true;
    RegionNode node;
    node.instruction = step.instruction;
    for (size_t k = 0; k < step.args.size(); ++k) node.args.push_back(BufferOf(step.args[k].first));
    if (std::holds_alternative<CopyStep>(step.body)) {
      node.kind = RegionNodeKind::kCopy;
      if (node.args[0] == node.args[1] || g_.values[step.args[0].first].size == 0) return;
    } else if (step.is_kernel || step.is_custom_call) {
      const auto operands = node.args.begin() + step.num_operands;
      for (auto result = operands; result != node.args.end(); ++result) {
        const auto shared = std::find(std::make_reverse_iterator(operands), node.args.rend(), *result);
        node.in_place.push_back(shared == node.args.rend() ? -1 : static_cast<int>(node.args.rend() - shared) - 1);
      }
    } else {
      const auto* conditional = std::get_if<ConditionalStep>(&step.body);
      node.kind = conditional ? RegionNodeKind::kConditional : RegionNodeKind::kWhile;
      node.by_index = conditional && conditional->by_index;
      if (!conditional) CountTrips(step, node);
      for (int32_t called : Called(step)) {
        const size_t program = region_->programs.size();
        node.programs.push_back(static_cast<int32_t>(program));
        region_->programs.emplace_back();
        for (size_t inner : steps_of_[called]) AddNode(inner, program);
      }
    }
    for (size_t k = 0; k < step.args.size(); ++k)
      if (step.args[k].second != Access::kRead) region_->buffers[node.args[k]].written = true;
    region_->programs[into].push_back(std::move(node));
  }

  const Loop* LoopOf(const ProtoStep& step) const {
    const auto loop = std::find_if(g_.loops.begin(), g_.loops.end(),
                                   [&](const Loop& l) { return l.begin + 1 == step.first_position; });
    return loop == g_.loops.end() ? nullptr : &*loop;
  }

  void CountTrips(const ProtoStep& step, RegionNode& node) {
    const Loop* loop = LoopOf(step);
    if (!loop) return;
    for (const Loop::Counter& counter : loop->counters)
      node.counters.push_back({BufferOf(counter.value), g_.values[counter.value].size, counter.last});
  }

  int32_t BufferOf(int32_t value) {
    const int32_t group = g_.values[value].group;
    const auto [at, added] = buffers_.try_emplace(group, static_cast<int32_t>(region_->buffers.size()));
    if (added) {
      region_->buffers.push_back({.size = g_.values[value].size});
      values_of_buffers_.resize(region_->buffers.size());
      values_of_buffers_.back() = value;
    }
    return at->second;
  }

  // Does the outside see the buffer before the region, and after it?
  struct Seen {
    bool before = false, after = false;
  };
  Seen SeenOutside(size_t buffer, const ProtoStep& step) const {
    const Group& group = GroupOf(buffer);
    Seen seen{.before = group.base == Base::Parameter || group.base == Base::Constant};
    for (int32_t v : group.values) {
      seen.before |= g_.values[v].begin < step.first_position;
      seen.after |= g_.values[v].end > step.position;
    }
    return seen;
  }
  Group& GroupOf(size_t buffer) const { return g_.groups[g_.values[values_of_buffers_[buffer]].group]; }

  void AddArg(size_t k, Args& args) {
    RegionBuffer& buffer = region_->buffers[k];
    buffer.same = buffer.loaded && !buffer.written && !GroupOf(k).lies_in_another() && !HasViews(k);
    buffer.arg = static_cast<int32_t>(args.size());
    args.push_back({values_of_buffers_[k], buffer.written ? Access::kReadWrite : Access::kRead});
  }

  // What each buffer is to the outside, and so the step's arguments.
  Args Describe(size_t root) {
    const ProtoStep& step = g_.steps[root];
    Args args;
    int64_t local_bytes = 0;
    for (size_t k = 0; k < region_->buffers.size(); ++k) {
      RegionBuffer& buffer = region_->buffers[k];
      const auto [before, after] = SeenOutside(k, step);
      buffer.loaded = before;
      buffer.stored = after && buffer.written;
      if (!before && !after && GroupOf(k).base == Base::None && buffer.size <= kMaxLocalBytes &&
          local_bytes + buffer.size <= kMaxAllLocalBytes) {
        local_bytes += buffer.size;
        GroupOf(k).in_region = true;
        continue;
      }
      AddArg(k, args);
    }
    return args;
  }

  // The same for tasks that run at once. Nothing of the plan is changed where they cannot.
  std::optional<Args> DescribeTasks(size_t root) {
    const ProtoStep& step = g_.steps[root];
    const Loop* loop = LoopOf(step);
    if (!loop || loop->carries.empty()) return std::nullopt;
    std::set<int32_t> carried;  // groups
    for (int32_t v : loop->carries) carried.insert(g_.values[v].group);
    const int32_t counted = g_.values[loop->carries[0]].group;
    Args args;
    std::vector<size_t> own;
    int64_t local_bytes = 0;
    for (size_t k = 0; k < region_->buffers.size(); ++k) {
      RegionBuffer& buffer = region_->buffers[k];
      const int32_t group = g_.values[values_of_buffers_[k]].group;
      const auto [before, after] = SeenOutside(k, step);
      buffer.loaded = before;
      if (group == counted) {
        region_->number = static_cast<int32_t>(k);
      } else if (carried.contains(group)) {
        buffer.in_parts = true;
        buffer.stored = buffer.written;
      } else if (buffer.written) {
        if (before || after || GroupOf(k).base != Base::None) return std::nullopt;
        own.push_back(k);
        if (buffer.size <= kMaxLocalBytes && local_bytes + buffer.size <= kMaxAllLocalBytes) {
          local_bytes += buffer.size;
        } else {
          buffer.local = region_->local_bytes;
          region_->local_bytes += (buffer.size + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
        }
        continue;
      }
      AddArg(k, args);
    }
    if (region_->number < 0 || region_->local_bytes > kMaxTaskBytes || !WritesPartsInPlace()) return std::nullopt;
    for (size_t k : own) GroupOf(k).in_region = true;
    return args;
  }

  // Is what tasks share updated in place, and never copied?
  bool WritesPartsInPlace() const {
    for (const std::vector<RegionNode>& program : region_->programs) {
      for (const RegionNode& node : program) {
        const auto in_parts = [&](int32_t buffer) { return region_->buffers[buffer].in_parts; };
        if (node.kind == RegionNodeKind::kCopy && in_parts(node.args[1])) return false;
        if (node.kind != RegionNodeKind::kKernel) continue;
        const size_t operands = node.args.size() - node.in_place.size();
        for (size_t r = 0; r < node.in_place.size(); ++r)
          if (in_parts(node.args[operands + r]) && !Updates(*node.instruction, r)) return false;
      }
    }
    return true;
  }
  static bool Updates(const Instruction& kernel, size_t result) {
    const Instruction* root = kernel.op() == Op::Fusion ? kernel.called(0)->root() : &kernel;
    if (root->op() == Op::Tuple) root = root->operand(static_cast<int64_t>(result));
    return root->op() == Op::DynamicUpdateSlice;
  }

  Graph& g_;
  const TargetInfo& target_;
  std::vector<std::vector<size_t>> steps_of_;  // by program
  std::vector<bool> gone_;
  // Of the region that is being made.
  std::shared_ptr<Region> region_;
  std::map<int32_t, int32_t> buffers_;  // by group
  std::vector<int32_t> values_of_buffers_;
};

}  // namespace

void NoteCounters(const Instruction& i, std::span<const int32_t> carry, Loop& loop) {
  const std::optional<Counter> counter = FindCounter(i);
  if (!counter || counter->trips < 1) return;
  int64_t leaf = 0;
  const int64_t elements = i.shape().IsTuple() ? i.shape().tuple_size() : 1;
  for (int64_t k = 0; k < elements; ++k) {
    const Shape& shape = i.shape().IsTuple() ? i.shape().element(k) : i.shape();
    if (shape.IsArray() && shape.IsScalar() && IsInteger(shape.type()) && Bits(shape.type()) >= 32) {
      const std::optional<Progression> p = FindProgression(i, k);
      const __int128 last = p ? p->init + static_cast<__int128>(p->step) * (counter->trips - 1) : -1;
      const __int128 largest = Bits(shape.type()) == 32 ? INT32_MAX : INT64_MAX;
      if (p && p->step != 0 && p->init >= 0 && last >= 0 && last <= largest)
        loop.counters.push_back({carry[static_cast<size_t>(leaf)], std::max(p->init, static_cast<int64_t>(last))});
    }
    leaf += static_cast<int64_t>(shape.Leaves().size());
  }
}

void FormRegions(Graph& graph, const TargetInfo& target) {
  if (target.joins_region) RegionFormer(graph, target).Run();
}

}  // namespace plan_internal
}  // namespace strop
