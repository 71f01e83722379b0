// BuildPlan: walks the scheduled module and writes down programs of steps over values; then coalesces values, places
// them, and turns values into slots.
//
// Tuples vanish here: an instruction has one value per leaf, and tuple, get-tuple-element, reshape, bitcast, copy and
// barriers only pass values on. A loop's carries become values that its body rewrites; a carry that the body passes on
// unchanged is the initial value itself.
#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "strop/ir/unwritten.h"
#include "strop/plan/collective.h"
#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop {
namespace {

using namespace plan_internal;
using Leaves = std::vector<int32_t>;

// Follows a leaf through tuples and barriers to the instruction that defines it.
std::pair<const Instruction*, int64_t> ResolveLeaf(const Instruction* i, int64_t leaf) {
  for (;;) {
    switch (i->op()) {
      case Op::GetTupleElement:
        leaf += LeafOffset(i->operand(0)->shape(), i->tuple_index());
        i = i->operand(0);
        break;
      case Op::Tuple: {
        int64_t k = 0;
        while (leaf >= i->operand(k)->shape().num_leaves()) leaf -= i->operand(k++)->shape().num_leaves();
        i = i->operand(k);
        break;
      }
      case Op::OptimizationBarrier:
      case Op::Domain:
      case Op::Copy:
      case Op::AddDependency: i = i->operand(0); break;
      default: return {i, leaf};
    }
  }
}

class PlanBuilder {
 public:
  PlanBuilder(const Module& module, const TargetInfo& target) : module_(module), target_(target) {}

  Result<Plan> Build(bool profile_memory) {
    plan_.spec.name = module_.name();
    const Computation& entry = *module_.entry();
    const EntryLayout layout = module_.EffectiveEntryLayout();
    std::vector<Leaves> parameters;
    for (Instruction* p : entry.parameters()) {
      Leaves leaves;
      for (const Shape& leaf : layout.parameters[p->parameter_number()].Leaves()) {
        int32_t v = g_.NewValue(leaf.byte_size(), p, -1, -1);
        Group& group = g_.groups[g_.values[v].group];
        group.base = Base::Parameter;
        group.index = static_cast<int32_t>(plan_.spec.parameters.size());
        g_.parameter_values.push_back(v);
        AddSizes(v, leaf, [&] { return g_.NewValue(kSizeBytes, p, -1, -1); });
        plan_.spec.parameters.push_back({leaf, ParameterMemory(plan_.spec.parameters.size())});
        leaves.push_back(v);
      }
      parameters.push_back(std::move(leaves));
    }
    for (auto [output, parameter] : DonatedParameters(module_)) donated_.insert(parameter);
    const int32_t main = NewProgram(entry.name());
    STROP_ASSIGN(Leaves results, Walk(entry, std::move(parameters), main));
    // Each result is a buffer of its own, neither an argument nor another result: whoever frees one or gives it away
    // leaves the others alone. (The copy of a donated argument vanishes.)
    for (size_t k = 0; k < results.size(); ++k) {
      const int32_t value = results[k];
      const bool taken = std::find(results.begin(), results.begin() + k, value) != results.begin() + k;
      const Group& group = g_.groups[g_.values[value].group];
      if (!taken && group.base != Base::Parameter && !group.lies_in_another()) continue;
      results[k] = Fresh(g_.values[value].size, entry.root());
      AddCopy(main, entry.root(), value, results[k], CopyFor::kResult);
      if (auto sizes = g_.sizes.find(value); sizes != g_.sizes.end()) g_.sizes[results[k]] = sizes->second;
    }
    position_ += kStepDistance;
    g_.end_position = position_;
    for (int32_t v : results) {
      Read(v);
      if (auto sizes = g_.sizes.find(v); sizes != g_.sizes.end())
        for (auto [dim, size] : sizes->second) Read(size);
    }
    g_.outputs = results;
    PlaceOutputs(module_, g_, plan_);
    FinishLiveness();
    Coalesce(g_);
    BindOutputs(g_, plan_);
    FormRegions(g_, target_);
    FormRings(g_);
    plan_.spec.temp_bytes = AssignArena(g_, target_.buffer_alignment);
    FindScratch(g_);
    plan_.spec.temp_origin = LargestTemporaries(g_, plan_.spec.temp_bytes);
    if (profile_memory) plan_.memory = ProfileMemory(g_, plan_);
    Assemble(g_, target_, plan_);
    return std::move(plan_);
  }

 private:
  // ---- walking ------------------------------------------------------------------------------------------------------

  int32_t NewProgram(const std::string& name) {
    g_.programs.push_back(name);
    return static_cast<int32_t>(g_.programs.size() - 1);
  }

  MemoryKind ParameterMemory(size_t leaf) const {
    const auto& kinds = module_.config().parameter_memory_kinds;
    return leaf < kinds.size() ? KindOf(kinds[leaf]) : MemoryKind::kDevice;
  }

  // Notes a read of v at the current position; inside a loop that does not contain v's definition, at the loop's end.
  void Read(int32_t v) {
    Value& value = g_.values[v];
    const Group& group = g_.groups[value.group];
    if (group.lies_in_another()) Read(group.index);
    ReadAt(value, position_, g_.open_branch);
    int32_t outermost = -1;
    for (int32_t l = loop_; l != value.loop && l >= 0; l = g_.loops[l].parent) outermost = l;
    if (outermost >= 0) loop_reads_.push_back({v, outermost});
  }

  // Reads in branches are kept apart until all is known.
  void ReadAt(Value& value, int64_t position, int32_t branch) {
    if (g_.Contains(branch, value.branch)) {
      value.end = std::max(value.end, position);
    } else if (!value.branch_reads.empty() && value.branch_reads.back().first == branch) {
      value.branch_reads.back().second = std::max(value.branch_reads.back().second, position);
    } else {
      value.branch_reads.push_back({branch, position});
    }
  }

  void FinishLiveness() {
    for (auto [v, loop] : loop_reads_) ReadAt(g_.values[v], g_.loops[loop].end, g_.loops[loop].branch);
    for (Value& value : g_.values) {
      value.end_outside = value.end;
      for (auto [branch, position] : value.branch_reads) value.end = std::max(value.end, position);
    }
  }

  int32_t Fresh(int64_t size, const Instruction* def) { return g_.NewValue(size, def, position_, loop_); }

  // A step at the next position: reads `operands`, then defines a value per result leaf.
  ProtoStep& AddStep(int32_t program, const Instruction* i, StepBody body, const Leaves& operands, Leaves* results) {
    position_ += kStepDistance;
    ProtoStep step;
    step.program = program;
    step.position = position_;
    step.instruction = i;
    step.body = std::move(body);
    step.num_operands = static_cast<int32_t>(operands.size());
    for (int32_t v : operands) {
      Read(v);
      step.args.push_back({v, Access::kRead});
    }
    if (results) {
      for (const Shape& leaf : i->shape().Leaves()) {
        int32_t v = Fresh(leaf.byte_size(), i);
        step.args.push_back({v, Access::kWrite});
        results->push_back(v);
      }
    }
    g_.steps.push_back(std::move(step));
    return g_.steps.back();
  }

  // to := from, as a step that vanishes if they come to share memory.
  void AddCopy(int32_t program, const Instruction* i, int32_t from, int32_t to, CopyFor copy_for) {
    position_ += kStepDistance;
    Read(from);
    ProtoStep step;
    step.program = program;
    step.position = position_;
    step.instruction = i;
    step.body = CopyStep{};
    step.copy_for = copy_for;
    step.args = {{from, Access::kRead}, {to, Access::kWrite}};
    step.num_operands = 1;
    g_.steps.push_back(std::move(step));
    Value& value = g_.values[to];
    value.begin = position_;
    value.end = std::max(value.end, position_);
    g_.handovers.insert({from, to});
  }

  Leaves OperandLeaves(const Instruction& i, const std::unordered_map<const Instruction*, Leaves>& of) {
    Leaves out;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Leaves& leaves = of.at(i.operand(k));
      out.insert(out.end(), leaves.begin(), leaves.end());
    }
    return out;
  }

  Result<Leaves> Walk(const Computation& computation, std::vector<Leaves> parameters, int32_t program) {
    if (++depth_ > 200) return InvalidArgument("control flow is nested more than 200 deep in %", computation.name());
    std::unordered_map<const Instruction*, Leaves> of;
    for (const Instruction* i : computation.instructions()) {
      STROP_ASSIGN(Leaves leaves, Visit(*i, parameters, of, program));
      of[i] = std::move(leaves);
    }
    --depth_;
    return of.at(computation.root());
  }

  Result<Leaves> Visit(const Instruction& i, const std::vector<Leaves>& parameters,
                       const std::unordered_map<const Instruction*, Leaves>& of, int32_t program) {
    if (HandsOnItsOperand(i.op())) return of.at(i.operand(0));
    switch (i.op()) {
      case Op::Parameter: return parameters[i.parameter_number()];
      case Op::Constant: return Constant(i);
      case Op::Tuple: return OperandLeaves(i, of);
      case Op::GetTupleElement: {
        const Leaves& tuple = of.at(i.operand(0));
        int64_t first = LeafOffset(i.operand(0)->shape(), i.tuple_index());
        return Leaves(tuple.begin() + first, tuple.begin() + first + i.shape().num_leaves());
      }
      case Op::AfterAll: return Leaves{Fresh(0, &i)};
      case Op::Call: {
        std::vector<Leaves> arguments;
        for (int64_t k = 0; k < i.operand_count(); ++k) arguments.push_back(of.at(i.operand(k)));
        return Walk(*i.to_apply(), std::move(arguments), program);
      }
      case Op::While: return Loop(i, of.at(i.operand(0)), program);
      case Op::Conditional: return Conditional(i, of, program);
      case Op::Slice:
      case Op::DynamicSlice:
      case Op::Fusion:
        if (const std::optional<SliceView> view = ViewOf(i, target_.buffer_alignment))
          if (MayBeView(i, *view->of, of.at(view->of)[0])) return View(i, *view, of, program);
        return VisitStep(i, OperandLeaves(i, of), program);
      case Op::Concatenate: {
        const Leaves parts = OperandLeaves(i, of);
        if (i.parent() != module_.entry()) return VisitStep(i, parts, program);
        const std::vector<bool> in_place = PartsInPlace(g_, i, parts, target_);
        return std::ranges::find(in_place, true) != in_place.end() ? Join(i, parts, in_place, program)
                                                                   : VisitStep(i, parts, program);
      }
      default: return VisitStep(i, OperandLeaves(i, of), program);
    }
  }

  Result<Leaves> VisitStep(const Instruction& i, const Leaves& operands, int32_t program) {
    Leaves results;
    const bool unwritten = MayStayUnwritten(i);
    if (unwritten) position_ += kStepDistance;
    if (unwritten ||
        (i.shape().byte_size() == 0 && i.shape().IsStatic() && !i.HasSideEffect())) {  // nothing to compute
      for (const Shape& leaf : i.shape().Leaves()) results.push_back(Fresh(leaf.byte_size(), &i));
      return results;
    }
    if (IsCollective(i.op()) && module_.config().replica_count * module_.config().num_partitions > 1) {
      STROP_ASSIGN(CollectiveStep step, MakeCollectiveStep(i, module_.config()));
      AddStep(program, &i, std::move(step), operands, &results);
      return results;
    }
    switch (i.op()) {
      case Op::PartitionId: AddStep(program, &i, DeviceIdStep{true}, operands, &results); break;
      case Op::ReplicaId: AddStep(program, &i, DeviceIdStep{false}, operands, &results); break;
      case Op::RngGetAndUpdateState: {
        RngStateStep body;
        body.delta = static_cast<uint64_t>(i.attrs<RngStateAttrs>().delta);
        AddStep(program, &i, body, operands, &results);
        break;
      }
      case Op::Infeed: {  // result: (data, token)
        results = Transfer(i, InfeedStep{}, {}, i.shape().element(0), program);
        results.push_back(Fresh(0, &i));
        break;
      }
      case Op::Outfeed: {  // operands: data, token; result: token
        const int64_t data = i.operand(0)->shape().num_leaves();
        Transfer(i, OutfeedStep{}, Leaves(operands.begin(), operands.begin() + data), Shape::Tuple({}), program);
        results.push_back(Fresh(0, &i));
        break;
      }
      case Op::CustomCall:
        AddStep(program, &i, CustomCallStep{}, operands, &results).is_custom_call = true;
        ShareCustomCallOperands(i);
        break;
      default:
        AddStep(program, &i, HostStep{}, operands, &results).is_kernel = true;
        ShareKernelOperands(i);
        STROP_TRY(PassSizes(i, operands, results));
    }
    return results;
  }

  template <class Make>
  void AddSizes(int32_t value, const Shape& leaf, Make&& make) {
    for (int64_t d = 0; leaf.IsArray() && d < leaf.rank(); ++d)
      if (leaf.is_dynamic(d)) g_.sizes[value].push_back({d, make()});
  }

  // More arguments of the last step: the sizes of operands of bounded size, then those of such results.
  Status PassSizes(const Instruction& i, const Leaves& operands, const Leaves& results) {
    size_t k = 0;
    for (int64_t o = 0; o < i.operand_count(); ++o) {
      for (const Shape& leaf : i.operand(o)->shape().Leaves()) {
        const int32_t v = operands[k++];
        if (leaf.IsArray() && !leaf.IsStatic() && !g_.sizes.contains(v)) STROP_TRY(SizesAtBounds(i, v, leaf));
        if (!leaf.IsArray() || leaf.IsStatic()) continue;
        for (auto [dim, size] : g_.sizes.at(v)) {
          Read(size);
          g_.steps.back().args.push_back({size, Access::kRead});
        }
      }
    }
    const std::vector<Shape> shapes = i.shape().Leaves();
    for (size_t r = 0; r < results.size(); ++r) {
      AddSizes(results[r], shapes[r], [&] {
        g_.steps.back().args.push_back({Fresh(kSizeBytes, &i), Access::kWrite});
        return g_.steps.back().args.back().first;
      });
    }
    return OkStatus();
  }

  // What no kernel made (an infeed, a custom call) is meant whole.
  Status SizesAtBounds(const Instruction& i, int32_t value, const Shape& leaf) {
    for (int64_t d = 0; d < leaf.rank(); ++d) {
      if (!leaf.is_dynamic(d)) continue;
      Leaves size;
      STROP_TRY(AddConstantLeaves(i, Literal::Scalar(static_cast<int32_t>(leaf.dim(d))), size));
      g_.sizes[value].push_back({d, size[0]});
    }
    return OkStatus();
  }

  // A slice is a view of memory that nobody writes as long as this program runs: of what comes from outside the loop,
  // of an argument that stays the caller's, or of what is computed here and handed on as it is. What is small is left
  // to regions.
  bool MayBeView(const Instruction& slice, const Instruction& array, int32_t of) const {
    const Value& value = g_.values[of];
    const Group& group = g_.groups[value.group];
    if (!target_.joins_region || target_.joins_region(slice) || group.base == Base::View) return false;
    return value.loop != loop_ || group.base == Base::Constant ||
           (group.base == Base::Parameter && !donated_.count(group.index)) ||
           (group.base == Base::None && IsLeftAlone(array));
  }

  Leaves View(const Instruction& i, const SliceView& view, const std::unordered_map<const Instruction*, Leaves>& of,
              int32_t program) {
    Leaves operands = {of.at(view.of)[0]}, results;
    for (const Instruction* start : view.starts) operands.push_back(of.at(start)[0]);
    AddStep(program, &i, view.step, operands, &results);
    Group& group = g_.groups[g_.values[results[0]].group];
    group.base = Base::View;
    group.index = operands[0];
    return results;
  }

  // No step: its parts are computed, or else copied, to where they lie in it.
  Leaves Join(const Instruction& i, const Leaves& parts, const std::vector<bool>& in_place, int32_t program) {
    const int32_t whole = Fresh(i.shape().byte_size(), &i);
    int64_t offset = 0;
    for (size_t k = 0; k < parts.size(); ++k) {
      const int64_t bytes = i.operand(static_cast<int64_t>(k))->shape().byte_size();
      int32_t part = parts[k];
      if (!in_place[k]) {
        part = Fresh(bytes, &i);
        AddCopy(program, &i, parts[k], part, CopyFor::kPart);
      }
      Group& group = g_.groups[g_.values[part].group];
      group.base = Base::Part;
      group.index = whole;
      group.offset = offset;
      g_.values[whole].begin = std::min(g_.values[whole].begin, g_.values[part].begin);
      offset += bytes;
    }
    g_.values[whole].end = position_;
    return {whole};
  }

  // A step that moves `read` out, or values of the leaves of `written` in.
  Leaves Transfer(const Instruction& i, StepBody body, const Leaves& read, const Shape& written, int32_t program) {
    Leaves results;
    ProtoStep& step = AddStep(program, &i, std::move(body), read, nullptr);
    for (const Shape& leaf : written.Leaves()) {
      int32_t v = Fresh(leaf.byte_size(), &i);
      step.args.push_back({v, Access::kWrite});
      results.push_back(v);
    }
    return results;
  }

  // Is one a part of the other, or a view of it, or of a part?
  bool LiesIn(int32_t part, int32_t whole) const {
    const Group* group = &g_.groups[g_.values[part].group];
    while (group->lies_in_another()) {
      if (g_.values[group->index].group == g_.values[whole].group) return true;
      group = &g_.groups[g_.values[group->index].group];
    }
    return false;
  }

  // Wishes and duties of the last step: which operand memory its results may take over.
  void ShareKernelOperands(const Instruction& i) {
    const size_t at = g_.steps.size() - 1;
    const ProtoStep& step = g_.steps[at];
    const int32_t results = static_cast<int32_t>(step.args.size()) - step.num_operands;
    if (step.num_operands != i.operand_count()) return;  // tuple operands: no kernel reads those in place
    for (int32_t r = 0; r < results; ++r) {
      for (int32_t k = 0; k < step.num_operands; ++k) {
        InPlace reuse = CanReuseOperand(i, k, r);
        if (reuse == InPlace::No) continue;
        bool everywhere = true;  // the same value as another operand may be read later than it is overwritten
        for (int32_t m = 0; m < step.num_operands; ++m) {
          if (m == k) continue;
          const bool same = step.args[m].first == step.args[k].first;
          if ((same && CanReuseOperand(i, m, r) != InPlace::Allowed) || LiesIn(step.args[m].first, step.args[k].first))
            everywhere = false;
        }
        AskToShare(at, k, step.num_operands + r, reuse == InPlace::Required, everywhere);
      }
    }
  }

  void ShareCustomCallOperands(const Instruction& i) {
    const size_t at = g_.steps.size() - 1;
    const ProtoStep& step = g_.steps[at];
    if (step.num_operands != i.operand_count()) return;
    for (const OutputOperandAlias& a : i.attrs<CustomCallAttrs>().output_to_operand_aliasing) {
      int64_t leaf = a.output_index.empty() ? 0 : a.output_index[0];
      if (a.output_index.size() > 1 || !a.operand_index.empty() || a.operand >= step.num_operands) continue;
      AskToShare(at, static_cast<int32_t>(a.operand), step.num_operands + static_cast<int32_t>(leaf), true, true);
    }
  }

  void AskToShare(size_t at, int32_t operand_arg, int32_t result_arg, bool required, bool handover) {
    const ProtoStep& step = g_.steps[at];
    int32_t operand = step.args[operand_arg].first, result = step.args[result_arg].first;
    if (handover) g_.handovers.insert({operand, result});
    if (required)
      g_.must_share.push_back({at, operand_arg, result_arg});
    else if (handover)
      g_.reuse_wishes.push_back({operand, result});
  }

  Result<Leaves> Constant(const Instruction& i) {
    auto it = constants_.find(&i);
    if (it != constants_.end()) return it->second;
    Leaves leaves;
    STROP_TRY(AddConstantLeaves(i, i.literal(), leaves));
    constants_[&i] = leaves;
    return leaves;
  }

  Status AddConstantLeaves(const Instruction& i, const Literal& literal, Leaves& leaves) {
    if (literal.shape().IsTuple()) {
      for (const Literal& e : literal.elements()) STROP_TRY(AddConstantLeaves(i, e, leaves));
      return OkStatus();
    }
    std::span<const uint8_t> bytes = literal.bytes();
    ConstantData data;
    data.size = static_cast<int64_t>(bytes.size());
    // Literals are as aligned as their allocation; kernels want kBufferAlignment.
    const int64_t room = data.size + kBufferAlignment;
    auto storage = std::shared_ptr<uint8_t[]>(new (std::nothrow) uint8_t[room]);
    if (!storage) return ResourceExhausted("out of memory: ", room, " bytes for constant %", i.name());
    uint8_t* aligned = reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(storage.get()) + kBufferAlignment - 1) /
                                                  kBufferAlignment * kBufferAlignment);
    if (data.size > 0) std::memcpy(aligned, bytes.data(), bytes.size());
    data.data = aligned;
    data.owner = storage;
    int32_t v = g_.NewValue(data.size, &i, -1, -1);
    Group& group = g_.groups[g_.values[v].group];
    group.base = Base::Constant;
    group.index = static_cast<int32_t>(plan_.spec.constants.size());
    plan_.spec.constants.push_back(std::move(data));
    leaves.push_back(v);
    return OkStatus();
  }

  // ---- control flow -------------------------------------------------------------------------------------------------

  Result<Leaves> Loop(const Instruction& i, const Leaves& init, int32_t program) {
    const Computation& body = *i.body();
    const Computation& condition = *i.condition();
    const size_t n = init.size();
    std::vector<Shape> shapes = i.shape().Leaves();
    std::vector<bool> invariant(n);
    for (size_t k = 0; k < n; ++k) {
      auto [def, leaf] = ResolveLeaf(body.root(), static_cast<int64_t>(k));
      invariant[k] = def == body.parameter(0) && leaf == static_cast<int64_t>(k);
    }
    // Carries start as copies of the initial values.
    const int32_t outer = loop_;
    const int32_t loop = static_cast<int32_t>(g_.loops.size());
    g_.loops.push_back({outer, 0, 0, g_.open_branch});
    Leaves carry(n);
    for (size_t k = 0; k < n; ++k) {
      if (invariant[k]) {
        carry[k] = init[k];
        continue;
      }
      carry[k] = g_.NewValue(shapes[k].byte_size(), &i, position_, loop);
      g_.loops[loop].carries.push_back(carry[k]);
      AddCopy(program, &i, init[k], carry[k], CopyFor::kLoopStart);
      g_.loop_wishes.push_back({init[k], carry[k]});
    }
    NoteCounters(i, carry, g_.loops[loop]);
    loop_ = loop;
    g_.loops[loop].begin = position_;
    const int32_t condition_program = NewProgram(condition.name());
    STROP_ASSIGN(Leaves predicate, Walk(condition, {carry}, condition_program));
    // Where the condition says no, the carries are the result: it must not overwrite one that the body does not read.
    position_ += kStepDistance;
    for (size_t k = 0; k < n; ++k)
      if (!invariant[k]) Read(carry[k]);
    const int32_t body_program = NewProgram(body.name());
    STROP_ASSIGN(Leaves next, Walk(body, {carry}, body_program));
    // A carry that becomes another carry's old value goes through a copy: all rewrites happen "at once".
    for (size_t k : HandedOn(carry, next)) {
      if (invariant[k]) continue;
      int32_t saved = g_.NewValue(shapes[k].byte_size(), &i, position_, loop);
      AddCopy(body_program, &i, next[k], saved, CopyFor::kLoopSwap);
      next[k] = saved;
    }
    Leaves result(n);
    std::vector<Leaves::value_type> tails;
    for (size_t k = 0; k < n; ++k) {
      if (invariant[k]) continue;
      int32_t tail = g_.NewValue(shapes[k].byte_size(), &i, position_, loop);
      STROP_CHECK(JoinFresh(carry[k], tail));
      AddCopy(body_program, &i, next[k], tail, CopyFor::kLoopNext);
      tails.push_back(tail);
    }
    position_ += kStepDistance;
    g_.loops[loop].end = position_;
    for (int32_t t : tails) g_.values[t].end = position_;
    Read(predicate[0]);
    g_.values[predicate[0]].end = std::max(g_.values[predicate[0]].end, position_);
    loop_ = outer;
    size_t tail = 0;
    for (size_t k = 0; k < n; ++k) {
      if (invariant[k]) {
        result[k] = init[k];
        continue;
      }
      g_.loop_wishes.push_back({tails[tail++], next[k]});
      result[k] = Fresh(shapes[k].byte_size(), &i);
      JoinFresh(carry[k], result[k]);
    }
    ProtoStep step;
    step.program = program;
    step.position = position_;
    step.first_position = g_.loops[loop].begin + 1;
    step.instruction = &i;
    WhileStep body_step;
    body_step.condition = condition_program;
    body_step.body = body_program;
    body_step.trip_count = -1;
    step.body = body_step;
    step.args = {{predicate[0], Access::kRead}};
    step.num_operands = 1;
    g_.steps.push_back(std::move(step));
    return result;
  }

  // Puts a value made just now into the group of another, whatever their lives: the same memory by construction.
  bool JoinFresh(int32_t into, int32_t fresh) {
    Group& from = g_.groups[g_.values[fresh].group];
    if (from.values.size() != 1) return false;
    from.values.clear();
    g_.values[fresh].group = g_.values[into].group;
    g_.groups[g_.values[into].group].values.push_back(fresh);
    return true;
  }

  Result<Leaves> Conditional(const Instruction& i, const std::unordered_map<const Instruction*, Leaves>& of,
                             int32_t program) {
    ConditionalStep body;
    body.by_index = !IsPred(i.operand(0)->shape().type());
    ProtoStep step;
    position_ += kStepDistance;
    step.program = program;
    step.position = position_;
    step.instruction = &i;
    const Leaves& selector = of.at(i.operand(0));
    Read(selector[0]);
    step.args = {{selector[0], Access::kRead}};
    step.num_operands = 1;
    std::vector<Shape> shapes = i.shape().Leaves();
    Leaves result(shapes.size());
    for (size_t k = 0; k < shapes.size(); ++k) result[k] = g_.NewValue(shapes[k].byte_size(), &i, position_, loop_);
    const size_t branches = i.called().size();
    std::vector<std::pair<int32_t, int32_t>> wishes;
    std::vector<int32_t> written;
    const int32_t outer = g_.open_branch, conditional = conditionals_++;
    for (size_t b = 0; b < branches; ++b) {
      g_.open_branch = static_cast<int32_t>(g_.branches.size());
      g_.branches.push_back({outer, conditional});
      const Computation& branch = *i.called(static_cast<int64_t>(b));
      const int32_t branch_program = NewProgram(branch.name());
      body.branches.push_back(branch_program);
      std::vector<Leaves> arguments = {of.at(i.operand(static_cast<int64_t>(b) + 1))};
      if (branch.parameter_count() == 0) arguments.clear();
      STROP_ASSIGN(Leaves roots, Walk(branch, std::move(arguments), branch_program));
      for (size_t k = 0; k < shapes.size(); ++k) {
        int32_t tail = g_.NewValue(shapes[k].byte_size(), &i, position_, loop_);
        JoinFresh(result[k], tail);
        AddCopy(branch_program, &i, roots[k], tail, CopyFor::kBranch);
        wishes.push_back({roots[k], tail});
        written.push_back(tail);
      }
      // What this branch wrote must outlive its last copy.
      for (int32_t t : written) g_.values[t].end = std::max(g_.values[t].end, position_);
      written.clear();
    }
    g_.open_branch = outer;
    position_ += kStepDistance;
    for (int32_t v : result) g_.values[v].begin = g_.values[v].end = position_;
    for (auto [root, tail] : wishes) g_.branch_wishes.push_back({root, tail});
    step.body = std::move(body);
    g_.steps.push_back(std::move(step));
    return result;
  }

  const Module& module_;
  const TargetInfo& target_;
  Plan plan_;
  Graph g_;
  int64_t position_ = 0;
  int32_t loop_ = -1;
  int32_t conditionals_ = 0;  // so far
  int depth_ = 0;
  std::vector<std::pair<int32_t, int32_t>> loop_reads_;
  std::set<int64_t> donated_;  // parameters whose memory results may have
  std::unordered_map<const Instruction*, Leaves> constants_;
};

}  // namespace

Result<Plan> BuildPlan(const Module& module, const TargetInfo& target, bool profile_memory) {
  return PlanBuilder(module, target).Build(profile_memory);
}

}  // namespace strop
