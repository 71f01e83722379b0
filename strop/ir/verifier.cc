// The verifier, in the order that verifier.h states. Everything is one walk over the module: linear, no recursion.
//
// Promises of the stages, beyond those that hold always:
//   Partitioned  no sharding domains are left (`domain`)
//   LaidOut      every array is row-major, whether it says so or not; only custom calls, and the bitcasts and tuple
//   elements
//                around them, may name another layout
//   Scheduled    config().is_scheduled is set; the list order, always topological, is the order of execution
#include "strop/ir/verifier.h"

#include <cmath>
#include <unordered_set>

#include "strop/ir/builder.h"
#include "strop/ir/physical_shape.h"

namespace strop {
namespace {

template <class... Parts>
Status In(const Computation& c, const Parts&... parts) {
  return InvalidArgument("computation %", c.name(), ": ", parts...);
}
template <class... Parts>
Status At(const Instruction& i, const Parts&... parts) {
  return InvalidArgument(Name(i.op()), " %", i.name(), ": ", parts...).At(i.Where());
}

// ---- the graph ------------------------------------------------------------------------------------------------------

Status VerifyRootAndParameters(const Computation& c) {
  if (!c.root()) return In(c, "has no root");
  if (c.root()->parent() != &c) return In(c, "the root %", c.root()->name(), " belongs to another computation");
  for (int64_t i = 0; i < c.parameter_count(); ++i) {
    const Instruction* p = c.parameter(i);
    if (!p || p->parent() != &c) return In(c, "parameter ", i, " is missing");
    if (!p->IsParameter() || p->parameter_number() != i)
      return In(c, "%", p->name(), " is registered as parameter ", i, ", but is not");
  }
  int64_t count = 0;
  for (const Instruction* i : c.instructions()) {
    if (!i->IsParameter()) continue;
    ++count;
    if (!i->any_attrs().is<ParameterAttrs>()) return Internal("%", i->name(), " has no parameter number");
    const int64_t number = i->parameter_number();
    if (number < 0 || number >= c.parameter_count() || c.parameter(number) != i)
      return At(*i, "computation %", c.name(), " has another parameter ", number, ", or the number is out of range");
  }
  if (count != c.parameter_count()) return In(c, "has ", count, " parameters, but numbers up to ", c.parameter_count());
  return OkStatus();
}

// Operands and control predecessors come before, in the same computation; the use edges mirror the operands.
Status VerifyEdges(const Computation& c, std::vector<bool>& seen) {
  std::unordered_set<std::string_view> names;
  for (const Instruction* i : c.instructions()) {
    if (i->parent() != &c) return Internal("%", i->name(), " is listed in %", c.name(), ", but belongs elsewhere");
    if (i->op() >= Op::kEnd) return Internal("%", i->name(), " has no op");
    if (!names.insert(i->name()).second) return In(c, "two instructions are named %", i->name()).At(i->Where());
    auto check = [&](const Instruction* before, std::string_view what) -> Status {
      if (!before) return Internal(what, " of %", i->name(), " is null");
      if (before->parent() != &c)
        return At(*i, what, " %", before->name(), " is not in the same computation %", c.name());
      if (!seen[before->id()])
        return At(*i, what, " %", before->name(), " does not come before it: the graph has a cycle or is out of order");
      return OkStatus();
    };
    for (int64_t k = 0; k < i->operand_count(); ++k) STROP_TRY(check(i->operand(k), "operand"));
    for (const Instruction* p : i->control_predecessors()) STROP_TRY(check(p, "control predecessor"));
    for (const Use& use : i->uses())
      if (use.user->operand_count() <= use.operand_number || use.user->operand(use.operand_number) != i)
        return Internal("the use edges of %", i->name(), " and the operands of %", use.user->name(), " disagree");
    seen[i->id()] = true;
  }
  return OkStatus();
}

// Depth-first over the call graph; a callee that is still open closes a cycle.
Status VerifyCallGraph(const Module& module) {
  enum : uint8_t { kNew, kOpen, kDone };
  int64_t bound = 0;
  for (const Computation* c : module.computations()) bound = std::max(bound, c->id() + 1);
  std::vector<uint8_t> state(bound, kNew);
  std::vector<bool> owned(bound, false);
  for (const Computation* c : module.computations()) owned[c->id()] = true;
  struct Frame {
    const Computation* at;
    const Instruction* caller;  // the next callee is caller->called(next)
    size_t next;
  };
  for (const Computation* start : module.computations()) {
    if (state[start->id()] != kNew) continue;
    std::vector<Frame> stack = {{start, start->first(), 0}};
    state[start->id()] = kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (!frame.caller) {
        state[frame.at->id()] = kDone;
        stack.pop_back();
        continue;
      }
      if (frame.next == frame.caller->called().size()) {
        frame.caller = frame.caller->next();
        frame.next = 0;
        continue;
      }
      const Instruction& caller = *frame.caller;
      const Computation* callee = caller.called(static_cast<int64_t>(frame.next++));
      if (!callee) return At(caller, "a called computation is missing");
      if (callee->module() != &module || callee->id() >= bound || !owned[callee->id()])
        return At(caller, "the called computation %", callee->name(), " is not in the module");
      if (state[callee->id()] == kOpen) return At(caller, "computation %", callee->name(), " calls itself");
      if (state[callee->id()] == kDone) continue;
      state[callee->id()] = kOpen;
      stack.push_back({callee, callee->first(), 0});
    }
  }
  return OkStatus();
}

// ---- single instructions --------------------------------------------------------------------------------------------

// The op whose result a -done (or async-update) completes; kEnd where any value will do.
Op StartOf(Op done) {
  switch (done) {
    case Op::AllGatherDone: return Op::AllGatherStart;
    case Op::AllReduceDone: return Op::AllReduceStart;
    case Op::CollectivePermuteDone: return Op::CollectivePermuteStart;
    case Op::CopyDone: return Op::CopyStart;
    case Op::AsyncDone:
    case Op::AsyncUpdate: return Op::AsyncStart;
    default: return Op::kEnd;
  }
}

Status VerifyInstruction(const Instruction& i) {
  STROP_TRY(Status(i.shape().Validate()).At(i.Where()));
  STROP_TRY(VerifyShape(i));
  if (i.op() == Op::Constant && !i.literal().has_values())
    return At(i, "the text that this comes from left out its values ({...}), and they are too large to make up");
  if (const auto* accuracy = i.any_attrs().get_if<AccuracyAttrs>())
    if (std::isnan(accuracy->result_accuracy.atol) || std::isnan(accuracy->result_accuracy.rtol))
      return At(i, "a tolerance of result_accuracy is no number");
  if (const auto* norm = i.any_attrs().get_if<BatchNormAttrs>())
    if (std::isnan(norm->epsilon)) return At(i, "epsilon is no number");
  const Op start = StartOf(i.op());
  if (start != Op::kEnd) {
    const Op given = i.operand(0)->op();
    const bool chained = given == Op::AsyncUpdate && start == Op::AsyncStart;
    if (given != start && !chained)
      return At(i, "the operand must be ", Name(start), ", but is ", Name(given), " %", i.operand(0)->name());
  }
  return OkStatus();
}

// ---- the entry ------------------------------------------------------------------------------------------------------

// The part of `shape` at `index`, or null.
const Shape* PartAt(const Shape& shape, const Dims& index) {
  const Shape* at = &shape;
  for (int64_t i : index) {
    if (!at->IsTuple() || i < 0 || i >= at->tuple_size()) return nullptr;
    at = &at->element(i);
  }
  return at;
}

std::string IndexText(const Dims& index) { return StrCat("{", Join(index, ","), "}"); }

Status VerifyEntryLayout(const Module& module) {
  if (!module.config().has_entry_layout) return OkStatus();
  const EntryLayout& layout = module.config().entry_layout;
  const Computation& entry = *module.entry();
  if (static_cast<int64_t>(layout.parameters.size()) != entry.parameter_count())
    return InvalidArgument("entry_computation_layout has ", layout.parameters.size(), " parameters, but %",
                           entry.name(), " takes ", entry.parameter_count());
  const bool physical = HasPhysicalEntry(module);
  auto fits = [physical](const Shape& seen, const Shape& actual) {
    return (physical ? PhysicalShape(seen) : seen).Compatible(actual);
  };
  for (int64_t i = 0; i < entry.parameter_count(); ++i)
    if (!fits(layout.parameters[i], entry.parameter(i)->shape()))
      return InvalidArgument("entry_computation_layout gives parameter ", i, " the shape ", layout.parameters[i],
                             ", but it is ", entry.parameter(i)->shape());
  if (!fits(layout.result, entry.root()->shape()))
    return InvalidArgument("entry_computation_layout gives the result the shape ", layout.result, ", but it is ",
                           entry.root()->shape());
  return OkStatus();
}

Status VerifyAliasing(const Module& module) {
  const Computation& entry = *module.entry();
  auto part_of_parameter = [&](int64_t number, const Dims& index) -> const Shape* {
    if (number < 0 || number >= entry.parameter_count()) return nullptr;
    return PartAt(entry.parameter(number)->shape(), index);
  };
  std::unordered_set<std::string> outputs, inputs;
  for (const InputOutputAlias& alias : module.config().input_output_alias) {
    const std::string input = StrCat("(", alias.parameter, ", ", IndexText(alias.parameter_index), ")");
    const Shape* output_part = PartAt(entry.root()->shape(), alias.output_index);
    const Shape* input_part = part_of_parameter(alias.parameter, alias.parameter_index);
    if (!output_part)
      return InvalidArgument("input_output_alias: the result ", entry.root()->shape(), " has no part ",
                             IndexText(alias.output_index));
    if (!input_part) return InvalidArgument("input_output_alias: there is no parameter ", input);
    if (!output_part->IsArray() || !input_part->IsArray())
      return InvalidArgument("input_output_alias: only arrays can be aliased, not ", *input_part, " and ",
                             *output_part);
    if (input_part->byte_size() != output_part->byte_size())
      return InvalidArgument("input_output_alias: parameter ", input, " is ", *input_part, ", but result ",
                             IndexText(alias.output_index), " is ", *output_part, ", of another size");
    if (!outputs.insert(IndexText(alias.output_index)).second || !inputs.insert(input).second)
      return InvalidArgument("input_output_alias: parameter ", input, " or result ", IndexText(alias.output_index),
                             " is aliased twice");
  }
  for (const BufferDonor& donor : module.config().buffer_donors) {
    const std::string input = StrCat("(", donor.parameter, ", ", IndexText(donor.parameter_index), ")");
    if (!part_of_parameter(donor.parameter, donor.parameter_index))
      return InvalidArgument("buffer_donor: there is no parameter ", input);
    if (inputs.count(input)) return InvalidArgument("buffer_donor: parameter ", input, " is aliased already");
  }
  return OkStatus();
}

// ---- stages ---------------------------------------------------------------------------------------------------------

bool IsRowMajor(const Shape& shape) {
  std::vector<const Shape*> pending = {&shape};
  while (!pending.empty()) {
    const Shape* at = pending.back();
    pending.pop_back();
    if (at->IsArray() && at->has_layout() && !at->layout().IsRowMajor()) return false;
    for (const Shape& e : at->elements()) pending.push_back(&e);
  }
  return true;
}

bool MayNameLayouts(Op op) {
  return op == Op::CustomCall || op == Op::Dot || op == Op::Bitcast || op == Op::GetTupleElement;
}

Status VerifyStage(const Module& module) {
  const Stage stage = module.stage();
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions()) {
      if (stage >= Stage::Partitioned && i->op() == Op::Domain)
        return Internal("domain %", i->name(), " is left at stage ", Name(stage));
      if (stage >= Stage::LaidOut && !MayNameLayouts(i->op()) && !IsRowMajor(i->shape()))
        return Internal(Name(i->op()), " %", i->name(), " is not row-major at stage ", Name(stage), ": ",
                        i->shape().ToStringWithLayout());
    }
  if (stage >= Stage::Scheduled && !module.config().is_scheduled)
    return Internal("the module is not marked as scheduled at stage ", Name(stage));
  return OkStatus();
}

}  // namespace

Status VerifyModule(const Module& module) {
  if (!module.entry()) return InvalidArgument("module ", module.name(), " has no entry computation");
  bool entry_found = false;
  for (const Computation* c : module.computations()) {
    entry_found |= c == module.entry();
    STROP_TRY(VerifyRootAndParameters(*c));
  }
  if (!entry_found) return Internal("the entry computation is not in the module");
  std::vector<bool> seen(module.id_bound(), false);
  for (const Computation* c : module.computations()) STROP_TRY(VerifyEdges(*c, seen));
  STROP_TRY(VerifyCallGraph(module));
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions()) STROP_TRY(VerifyInstruction(*i));
  STROP_TRY(VerifyEntryLayout(module));
  STROP_TRY(VerifyAliasing(module));
  return VerifyStage(module);
}

}  // namespace strop
