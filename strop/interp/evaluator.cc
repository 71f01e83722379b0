#include "strop/interp/evaluator.h"

#include <set>
#include <utility>

namespace strop::interp {

namespace {

bool IsDynamic(const Instruction& instruction) {
  if (!instruction.shape().IsStatic()) return true;
  for (int64_t i = 0; i < instruction.operand_count(); ++i)
    if (!instruction.operand(i)->shape().IsStatic()) return true;
  return false;
}

// What the root needs, and what acts on the world outside. Custom calls always run: their targets may be checks.
std::vector<bool> LiveSlots(const std::vector<const Instruction*>& list,
                            const std::unordered_map<const Instruction*, int>& slot, const Instruction* root) {
  std::vector<bool> live(list.size());
  for (size_t i = list.size(); i-- > 0;) {
    const Instruction* instruction = list[i];
    if (instruction == root || instruction->op() == Op::CustomCall || instruction->HasSideEffect()) live[i] = true;
    if (!live[i]) continue;
    for (int64_t k = 0; k < instruction->operand_count(); ++k) live[slot.at(instruction->operand(k))] = true;
  }
  return live;
}

// Marks the get-tuple-elements that are the last to want their element, of tuples that are only taken apart.
void MarkTakenElements(ComputationPlan& plan) {
  std::vector<bool> only_taken_apart(static_cast<size_t>(plan.slot_count), true);
  only_taken_apart[static_cast<size_t>(plan.root_slot)] = false;
  for (const PlanStep& step : plan.steps)
    if (step.instruction->op() != Op::GetTupleElement)
      for (int slot : step.operands) only_taken_apart[static_cast<size_t>(slot)] = false;
  std::set<std::pair<int, int64_t>> wanted_later;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    PlanStep& step = plan.steps[i];
    if (step.instruction->op() != Op::GetTupleElement) continue;
    const int slot = step.operands[0];
    const bool last = wanted_later.emplace(slot, step.instruction->tuple_index()).second;
    step.take_element = last && only_taken_apart[static_cast<size_t>(slot)];
  }
}

}  // namespace

ComputationPlan MakePlan(const Computation& computation) {
  ComputationPlan plan;
  std::vector<const Instruction*> list;
  std::unordered_map<const Instruction*, int> slot;
  for (const Instruction* instruction : computation.instructions()) {
    slot[instruction] = static_cast<int>(list.size());
    list.push_back(instruction);
  }
  plan.slot_count = static_cast<int>(list.size());
  plan.root_slot = slot.at(computation.root());
  for (const Instruction* p : computation.parameters()) plan.parameter_slots.push_back(slot.at(p));
  const std::vector<bool> live = LiveSlots(list, slot, computation.root());
  for (size_t i = 0; i < list.size(); ++i) {
    const Instruction* instruction = list[i];
    if (!live[i] || instruction->IsParameter()) continue;
    PlanStep step{instruction, EvalFunction(instruction->op()), static_cast<int>(i), {}, {}};
    step.dynamic = IsDynamic(*instruction);
    for (int64_t k = 0; k < instruction->operand_count(); ++k)
      step.operands.push_back(slot.at(instruction->operand(k)));
    plan.steps.push_back(std::move(step));
  }
  std::vector<bool> read_later(list.size());
  read_later[static_cast<size_t>(plan.root_slot)] = true;
  for (size_t i = plan.steps.size(); i-- > 0;) {
    PlanStep& step = plan.steps[i];
    step.last_use.resize(step.operands.size());
    for (size_t k = step.operands.size(); k-- > 0;) {  // of equal operands, the last one is the last use
      const size_t s = static_cast<size_t>(step.operands[k]);
      step.last_use[k] = !read_later[s];
      read_later[s] = true;
    }
  }
  MarkTakenElements(plan);
  return plan;
}

Shape StaticShape(const Shape& shape) {
  if (shape.IsStatic()) return shape;
  Shape out = shape;
  if (shape.IsTuple()) {
    for (Shape& element : out.mutable_elements()) element = StaticShape(element);
  } else {
    for (int64_t i = 0; i < shape.rank(); ++i) out.set_dynamic(i, false);
  }
  return out;
}

Status Evaluator::Poll() const {
  if (options_.cancelled && options_.cancelled()) return Status(StatusCode::kCancelled, "interpretation was cancelled");
  return OkStatus();
}

const ComputationPlan& Evaluator::PlanOf(const Computation& computation) {
  std::unique_ptr<ComputationPlan>& plan = plans_[&computation];
  if (!plan) plan = std::make_unique<ComputationPlan>(MakePlan(computation));
  return *plan;
}

Result<ScalarFunction*> Evaluator::Scalar(const Computation& computation) {
  std::unique_ptr<ScalarFunction>& function = functions_[&computation];
  if (!function) {
    STROP_ASSIGN(function, ScalarFunction::Make(*this, computation));
  }
  return function.get();
}

namespace {

// Whose result's memory is bound as late as at the async-done; the value carries the result all the same.
bool BindsLate(const Instruction& i) {
  return (i.op() == Op::AsyncStart || i.op() == Op::AsyncUpdate) && i.shape().element(1) == Shape::Tuple({});
}

}  // namespace

Result<Literal> Evaluator::RunInstruction(const Instruction& instruction, EvalFn fn, bool dynamic,
                                          std::span<Literal> operands) {
  if (!dynamic) {
    OpCall call{*this, instruction, operands, instruction.shape()};
    STROP_ASSIGN(Literal result, fn(call));
    // The ops index by shapes: a value of another shape than the instruction's would make the next one read out of
    // bounds.
    if (!result.shape().Compatible(instruction.shape()) && !BindsLate(instruction))
      return Internal("interpreter: ", Name(instruction.op()), " gave ", result.shape().ToString(), " for ",
                      instruction.shape().ToString());
    return result;
  }
  STROP_ASSIGN(Shape shape, ActualShape(instruction, operands));
  if (IsElementwise(instruction.op()))
    for (Literal& operand : operands) {
      STROP_ASSIGN(operand, CutToShape(std::move(operand), shape));
    }
  OpCall call{*this, instruction, operands, shape};
  return fn(call);
}

Result<Literal> Evaluator::Run(const Computation& computation, std::vector<Literal> arguments) {
  STROP_TRY(Poll());
  if (depth_ >= options_.max_call_depth)
    return ResourceExhausted("interpreter: computations are nested more than ", options_.max_call_depth, " deep");
  const ComputationPlan& plan = PlanOf(computation);
  if (arguments.size() != plan.parameter_slots.size())
    return InvalidArgument("computation ", computation.name(), " has ", plan.parameter_slots.size(),
                           " parameters, got ", arguments.size(), " arguments");
  std::vector<Literal> slots(static_cast<size_t>(plan.slot_count));
  for (size_t i = 0; i < arguments.size(); ++i)
    slots[static_cast<size_t>(plan.parameter_slots[i])] = std::move(arguments[i]);
  ++depth_;
  std::vector<Literal> operands;
  Status error;
  for (const PlanStep& step : plan.steps) {
    operands.clear();
    for (size_t k = 0; k < step.operands.size(); ++k) {
      Literal& value = slots[static_cast<size_t>(step.operands[k])];
      if (step.last_use[k])
        operands.push_back(std::move(value));
      else if (!step.take_element)
        operands.push_back(value);
    }
    Result<Literal> result = [&]() -> Result<Literal> {
      if (!step.take_element) return RunInstruction(*step.instruction, step.fn, step.dynamic, operands);
      Literal& tuple = step.last_use[0] ? operands[0] : slots[static_cast<size_t>(step.operands[0])];
      const size_t index = static_cast<size_t>(step.instruction->tuple_index());
      if (index >= tuple.elements().size()) return Internal("interpreter: tuple index out of range");
      return std::move(tuple.mutable_elements()[index]);
    }();
    if (!result.ok()) {
      error = std::move(result).status();
      if (error.location().empty()) {
        error = std::move(error).At(step.instruction->Where());
        error = std::move(error).Note(
            StrCat("while evaluating ", Name(step.instruction->op()), " %", step.instruction->name()));
      }
      break;
    }
    slots[static_cast<size_t>(step.slot)] = *std::move(result);
  }
  --depth_;
  if (!error.ok()) return error;
  return std::move(slots[static_cast<size_t>(plan.root_slot)]);
}

}  // namespace strop::interp
